"""Calls Slurm's commands: with few variables, no shell, a time limit, and patience with a controller that restarts."""

import errno
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crowdperf.sweeps.executor import ExecutorError

PAUSES_S = (1.0, 2.0, 5.0, 10.0, 12.0)
"""Five more tries within 30 s: a controller that is started again answers after a few (Slurm 22.05)."""
SOCKET_ERRORS = (
    "ECONNREFUSED",
    "ECONNRESET",
    "ENOTCONN",
    "EPIPE",
    "ECONNABORTED",
    "ETIMEDOUT",
    "EHOSTUNREACH",
    "ENETUNREACH",
)
"""Of a connection to a controller that ends, or that is on a machine out of reach; clients print their texts."""
SILENCE = re.compile(
    r"Unable to contact slurm controller|Socket timed out|Zero Bytes were transmitted|"
    r"[Cc]ommunication connection failure|Unable to establish (?:configuration|control)|Slurm backup controller|"
    + "|".join(re.escape(os.strerror(getattr(errno, name))) for name in SOCKET_ERRORS)
)
"""What clients say when the controller did not answer, which is no answer about jobs (seen with Slurm 22.05.8)."""
CLIENTS = ("sbatch", "squeue", "scontrol", "scancel", "sinfo")
TIMEOUT_S = 60


@dataclass(frozen=True)
class Answer:
    """What a client did. told: its words, line by line, each line once."""

    code: int
    out: str
    told: str

    @property
    def is_silence(self) -> bool:
        """Whether the controller did not answer."""
        return self.code != 0 and SILENCE.search(self.told) is not None

    @property
    def line(self) -> str:
        """Its words on one line, for the middle of a sentence."""
        return self.told.replace("\n", "; ")


class Client:
    """Slurm's commands with an environment of the named variables only: sbatch hands it on, and Slurm stores it."""

    def __init__(self, names: Sequence[str]) -> None:
        self.environment = {name: os.environ[name] for name in names if name in os.environ}

    def missing(self) -> str:
        """Which commands are not there, with what to do; empty if none."""
        path = self.environment.get("PATH")
        lacking = [name for name in CLIENTS if shutil.which(name, path=path) is None]
        if not lacking:
            return ""
        return (
            f"no {', '.join(lacking)} on PATH: --executor=slurm runs on a machine that can submit jobs; "
            "try: cm run script --tags=get,slurm, or --executor=local"
        )

    def run(self, *words: str, stdin: str = "", keep: Sequence[int] = ()) -> Answer:
        """Runs a client once."""
        try:
            done = subprocess.run(
                words,
                env=self.environment,
                input=stdin,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT_S,
                pass_fds=tuple(keep),
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Answer(124, "", f"Socket timed out: {words[0]} did not end within {TIMEOUT_S} s")
        except OSError as error:
            raise ExecutorError(
                f"{words[0]} cannot be started: {error}; try: cm run script --tags=get,slurm"
            ) from error
        lines = dict.fromkeys(" ".join(line.split()) for line in done.stderr.splitlines())
        return Answer(done.returncode, done.stdout, "\n".join(filter(None, lines)))

    def ask(self, *words: str) -> str:
        """What a client prints. Silence is asked again, never taken for an answer. Raises ExecutorError."""
        for pause in (*PAUSES_S, None):
            answer = self.run(*words)
            if answer.code == 0:
                return answer.out
            if not answer.is_silence:
                break
            if pause is not None:
                time.sleep(pause)
        raise ExecutorError(
            f"{words[0]} failed: {answer.line or f'exit code {answer.code}'}. Submitted jobs continue, and "
            "rerunning the command finds them. Try: sinfo"
        )

    def submit(self, words: Sequence[str], known: Callable[[], str], descriptor: int) -> str:
        """Submits a job; gives its number. After silence `known` says whether the job was taken all the same."""
        for pause in (*PAUSES_S, None):
            answer = self.run("sbatch", *words, keep=(descriptor,))
            number = answer.out.strip().partition(";")[0]
            if answer.code == 0 and number.isdigit():
                return number
            if not answer.is_silence or pause is None:
                break
            time.sleep(pause)
            if number := known():
                return number
        raise ExecutorError(f"sbatch refused the job: {answer.line or answer.out.strip() or 'without a word'}")

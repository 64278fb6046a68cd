"""Runs a measurement on one slice while other work runs on the others, and says whether that work outlasted it.

As in NVIDIA's HeteroMIG harness, background benchmarks begin first, and a measurement counts only if all of them ended
after it, or were ended then. Source: closed/NVIDIA/documentation/heterogeneous_mig.md of
mlcommons/inference_results_v2.0 (425a0d30), read 2026-11-28.

Effects: starts processes, each in a group of its own, and ends all of them. Not run on hardware.
"""

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from .actions import MigError
from .slices import Slice

POLL_S, END_S = 0.1, 20.0
"""How often the work is looked at; how long it has to end after an interrupt."""


class Work(NamedTuple):
    """Words to run on a slice, in a folder of their own: calls of cm in one folder wait for each other. What the other
    work prints goes to a log in it."""

    words: tuple[str, ...]
    slice: Slice
    folder: Path
    is_main: bool = False

    @property
    def log(self) -> Path | None:
        """The file for what it prints; None: the terminal."""
        return None if self.is_main else self.folder / "output.log"

    @property
    def line(self) -> str:
        """The command as a user could type it."""
        line = f"cd {shlex.quote(str(self.folder))} && CUDA_VISIBLE_DEVICES={self.slice.uuid} {shlex.join(self.words)}"
        return line if self.is_main else f"({line} > output.log 2>&1) &"


class Outcome(NamedTuple):
    """The code of the measurement (None: it was not begun, or was ended), and the work that ended before it."""

    code: int | None
    early: tuple[Work, ...]


def works(
    main: str, background: str, on: Slice, others: Sequence[Slice], folder: Path
) -> tuple[Work, tuple[Work, ...]]:
    """The measurement and the other work. background: one command for all slices, or a JSON list with one for each of
    the first ones. Raises MigError."""
    try:
        listed = json.loads(background) if background.strip().startswith("[") else [background] * len(others)
        texts = [text for text in listed if isinstance(text, str) and text.strip()]
        lines = [tuple(shlex.split(text)) for text in (main, *texts)]
    except ValueError as error:
        raise MigError(
            f"--main and --background cannot be read: {error}\n  hint: --background='[\"cm run ...\"]'"
        ) from error
    if not texts or len(texts) != len(listed) or len(texts) > len(others) or not all(lines):
        raise MigError(
            f"--background contains {len(listed)} commands for {len(others)} free slices besides the measurement\n"
            "  allowed: one command for all of them, or a JSON list with a command for each of some of them"
        )
    beside = (Work(words, one, folder / f"slice-{one.number}") for words, one in zip(lines[1:], others, strict=False))
    return Work(lines[0], on, folder / f"slice-{on.number}", is_main=True), tuple(beside)


def run(main: Work, others: Sequence[Work], settle_s: float) -> Outcome:
    """Starts the other work, ``settle_s`` later the measurement; both end when one of the others does, or that ends.

    HeteroMIG has start_time_buffer, which counts from the first query; this counts from the start of the commands.
    """
    with ExitStack() as stack:
        running = [(work, stack.enter_context(_started(work))) for work in others]

        def early() -> tuple[Work, ...]:
            return tuple(work for work, process in running if process.poll() is not None)

        until_s = time.monotonic() + settle_s
        while time.monotonic() < until_s and not early():
            time.sleep(POLL_S)
        if found := early():
            return Outcome(None, found)
        process = stack.enter_context(_started(main))
        while process.poll() is None:
            if found := early():
                return Outcome(None, found)
            time.sleep(POLL_S)
        return Outcome(process.returncode, early())


@contextmanager
def _started(work: Work) -> Iterator[subprocess.Popen[bytes]]:
    """The process of a work; it and all that it started are ended at the end of the block."""
    with ExitStack() as stack:
        work.folder.mkdir(parents=True, exist_ok=True)
        output = stack.enter_context(open(work.log, "wb")) if work.log else None
        env = {**os.environ, "CUDA_VISIBLE_DEVICES": work.slice.uuid}
        try:
            process = subprocess.Popen(
                work.words, cwd=work.folder, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise MigError(
                f"{shlex.join(work.words)} cannot be started: {error.strerror}\n  hint: --main, --background"
            ) from error
        try:
            yield process
        finally:
            for number, patience_s in ((signal.SIGINT, END_S), (signal.SIGKILL, None)):
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, number)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(patience_s)

"""Carries out a plan: the only module here that runs programs and writes files.

Whatever is written lies in a folder of its own below the system's temporary one and is removed at the end, but for the
folder of the cache, and what ``--save`` names. A container that was started to run commands is stopped and removed in
every case, also when a command fails or the run is interrupted.
"""

import contextlib
import functools
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from crowdperf.kit.user_paths import expanded

from . import bases, launch
from .bases import Base
from .plan import CONTEXT, FILE, Plan, inspect, pull, told
from .shell_words import RequestError

END_TIMEOUT_S = 120.0
"""Far longer than stopping takes: an engine kills a container 10 s after it was told to stop."""
ERRORS = 2
"""The file descriptor of stderr: what engines tell while they build is no data."""


class Outcome(NamedTuple):
    """How it ended: the exit code of what was run, which words failed, and the container that goes on (detached)."""

    code: int
    failed: tuple[str, ...] = ()
    container_id: str = ""
    plan: Plan | None = None


class Failed(Exception):
    """A line of the engine failed; everything after it is left out."""

    def __init__(self, code: int, words: Sequence[str]) -> None:
        super().__init__(shlex.join(words))
        self.code, self.words = (code if code >= 0 else 128 - code), tuple(words)  # a shell's code for a signal


def carry_out(plan: Plan, remake: Callable[[Base], Plan], output: int = 1) -> Outcome:
    """Builds, and runs what is asked for. ``output``: the file descriptor for what the commands inside write.

    Raises RequestError for what can be told before anything is built.
    """
    action, container = plan.request.action, plan.container
    if action in ("prebuild", "attach") and not plan.request.is_detached and not has_terminal():
        raise RequestError(
            f"_{action} opens a shell in the container, and there is no terminal",
            hint="the same call with --detach (make: DOCKER_DETACH=1) leaves it running, for exec. "
            "cm run script --tags=run,container,mlperf,_headless --commands='make build' needs no terminal",
        )
    _check_mounts(plan)
    environment = {**os.environ, **launch.environment(container, dict(os.environ))}
    try:
        plan = _with_digest(plan, remake, environment)
        _build(plan, environment)
        if action == "build":
            return Outcome(0, plan=plan)
        _make_cache(plan)
        if action == "headless":
            return _headless(plan, environment, output)
        if plan.request.is_detached:
            started = _run(launch.start(plan.container), environment, is_captured=True)
            return Outcome(0, container_id=started or plan.container.name, plan=plan)  # Apptainer knows names only
        ended = subprocess.run(launch.attach(plan.container), env=environment, check=False)
        return Outcome(ended.returncode, (), plan=plan)
    except Failed as error:
        return Outcome(error.code, error.words, plan=plan)


def has_terminal() -> bool:
    """Whether a person sits at both ends of this process."""
    return sys.stdin is not None and os.isatty(0) and os.isatty(1)


def save(plan: Plan) -> None:
    """Writes the file of the image and the whole plan into the folder of ``--save``. Raises RequestError."""
    folder = expanded(plan.request.save)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _file_name(plan)).write_text(plan.text, encoding="utf-8")
        (folder / "plan.txt").write_text(told(plan) + "\n", encoding="utf-8")
    except OSError as error:
        raise RequestError(f"--save={plan.request.save} cannot be written: {error}", hint="your own folder") from error


def _check_mounts(plan: Plan) -> None:
    for mount in plan.container.mounts:
        if not mount.is_made and not os.path.isdir(mount.source):
            raise RequestError(
                f"{mount.source} is to be mounted at {mount.target}, and is not a folder of this machine",
                hint="make it first: engines make one that belongs to root, or refuse",
            )


def _make_cache(plan: Plan) -> None:
    for mount in plan.container.mounts:
        if mount.is_made and not os.path.isdir(mount.source):
            Path(mount.source).mkdir(parents=True)
            if os.getuid() == 0 and not mount.is_read_only:
                os.chown(mount.source, plan.account.uid, plan.account.gid)


def _with_digest(plan: Plan, remake: Callable[[Base], Plan], environment: dict[str, str]) -> Plan:
    """The plan with the digest that the engine resolves for the base image; as it is when there is none to tell."""
    base = plan.request.base
    if base.is_pinned or plan.container.engine == "apptainer":
        return plan
    ask = functools.partial(
        subprocess.run, inspect(plan.container, base.reference),
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    asked = ask()
    if asked.returncode != 0:
        _run(pull(plan.container, base.reference), environment)
        asked = ask()
    try:
        known = bases.resolved(base, json.loads(asked.stdout))
    except ValueError:
        known = None
    if known is None:
        print(f"note: {base.reference} has no digest (an image made on this machine has none)", file=sys.stderr)
        return plan
    print(f"base image: {known.reference}", file=sys.stderr)
    return remake(known)


def _build(plan: Plan, environment: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory(prefix="crowdperf-container-") as folder:
        context, file = Path(folder) / CONTEXT, Path(folder) / _file_name(plan)
        context.mkdir()
        if plan.is_copied:
            _export(plan, context)
        file.write_text(plan.text, encoding="utf-8")
        if plan.container.engine == "apptainer":
            Path(plan.container.image).parent.mkdir(parents=True, exist_ok=True)
        for words in launch.build(plan.container, plan.request, plan.tag, str(file), str(context)):
            _run(words, environment, folder=context)


def _export(plan: Plan, target: Path) -> None:
    """The files of the commit, by git itself, with an index of its own so that the checkout's stays as it is. Without
    those that would leave others out: they are for the image of Containerfile."""
    checkout = plan.checkout
    index = {**os.environ, "GIT_INDEX_FILE": str(target.parent / "index")}
    git = ("git", "-c", f"safe.directory={checkout}", "-C", checkout)
    _run((*git, "read-tree", plan.commit), index)
    _run((*git, "checkout-index", "--all", f"--prefix={target}/"), index)
    for name in (".containerignore", ".dockerignore"):
        (target / name).unlink(missing_ok=True)


def _headless(plan: Plan, environment: dict[str, str], output: int) -> Outcome:
    """Runs the steps one after the other in a container; the first that fails ends it."""
    try:
        container_id = _run(launch.start(plan.container), environment, is_captured=True)
        print(f"container {plan.container.name} {container_id[:12]}".rstrip(), file=sys.stderr)
        for step in plan.request.steps:
            _run(launch.execute(plan.container, step), environment, output=output)
        return Outcome(0, plan=plan)
    finally:
        _end(plan, environment)


def _end(plan: Plan, environment: dict[str, str]) -> None:
    """Stops and removes the container. Signals wait, and the engine's program is out of reach of Ctrl-C."""
    with _undisturbed():
        for words in launch.end(plan.container):
            with contextlib.suppress(subprocess.TimeoutExpired, OSError):
                subprocess.run(
                    words,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,  # for a container that was never made it is an error, which is no news
                    timeout=END_TIMEOUT_S,
                    start_new_session=True,
                    check=False,
                )


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Signals that come inside the block are passed on at its end; in another than the main thread it does nothing."""
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {}
    with contextlib.suppress(ValueError):
        for number in numbers:
            before[number] = signal.signal(number, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        os.kill(os.getpid(), came[0])


def _run(
    words: Sequence[str],
    environment: dict[str, str],
    *,
    output: int = ERRORS,
    is_captured: bool = False,
    folder: Path | None = None,
) -> str:
    """Runs words without input and gives what they wrote, where captured. Raises Failed for a code other than 0."""
    try:
        done = subprocess.run(
            list(words),
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if is_captured else output,
            text=True,
            check=False,
        )
    except OSError as error:
        print(f"{words[0]}: {error.strerror}", file=sys.stderr)
        raise Failed(127, words) from error
    if done.returncode != 0:
        raise Failed(done.returncode, words)
    return done.stdout.strip() if is_captured else ""


def _file_name(plan: Plan) -> str:
    return "image.def" if plan.container.engine == "apptainer" else FILE

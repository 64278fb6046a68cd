"""Fails one call to the operating system after the other, each in a process of its own; tells what went wrong.

    PYTHONPATH=tests/support:automation python tests/crash/faults.py --stride=1

For each action (a first run, a hit, a renewal, gc, rm) the calls that the engine makes are counted. Then the action is
repeated once for each of them, in the state it began with, and that call fails with EIO or ENOSPC. Whatever the call
was, the answer must be one that a user can act on, and the same request, asked again on a sound disk, must give the
right result; entries that were finished before must still be there unless they were to be removed.
"""

import argparse
import builtins
import errno
import fcntl
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import recipe_engine.running.failure
import recipe_engine.running.journal
import recipe_engine.running.shell  # noqa: F401
from helpers import CHECKOUT, TemporaryHome
from recipe_engine.actions.adapter import answer_cm
from recipe_engine.actions.cache_actions import gc_action, remove_action
from recipe_engine.actions.run import run_action
from recipe_engine.disk import store

ENGINE = str(CHECKOUT / "automation" / "recipe_engine")
ERRNOS = (errno.EIO, errno.ENOSPC)
CALLS = (
    *((os, name) for name in ("open", "write", "pwrite", "ftruncate", "replace", "rename", "mkdir", "unlink", "rmdir")),
    *((os, name) for name in ("listdir", "scandir", "stat", "lstat", "utime", "chmod", "fchmod", "chdir", "getcwd")),
    (fcntl, "flock"),
    (subprocess, "Popen"),
    (io, "open"),
)
"""What may fail; what an open file writes is added in ``Fault._opened``."""


class Fault:
    """The one call that fails, by its number; with 0 none does, and ``count`` tells how many there are."""

    def __init__(self, number: int, code: int) -> None:
        self.number = number
        self.code = code
        self.count = 0
        self.place = ""

    def install(self) -> None:
        """Wraps the calls of this process, for good."""
        for module, name in CALLS:
            setattr(module, name, self._fallible(name, getattr(module, name)))
        builtins.open = io.open = self._opened(io.open)

    def _fallible(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def perhaps(*arguments: Any, **options: Any) -> Any:
            self._meet(name, arguments)
            return function(*arguments, **options)

        return perhaps

    def _opened(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def opened(*arguments: Any, **options: Any) -> Any:
            file = function(*arguments, **options)
            file.write = self._fallible("write to a file", file.write)
            return file

        return opened

    def _meet(self, name: str, arguments: tuple[Any, ...]) -> None:
        frame, lines = sys._getframe(2), []
        while frame and "importlib" not in frame.f_code.co_filename:
            lines.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
            if frame.f_code.co_filename.startswith(ENGINE):
                break
            frame = frame.f_back  # type: ignore[assignment]
        else:
            return  # not of the engine, or Python reads a module for it
        self.count += 1
        if self.count == self.number:
            self.place = f"{name} at {os.path.relpath(lines[-1], ENGINE)}"
            path = arguments[0] if arguments and isinstance(arguments[0], str | os.PathLike) else None
            raise OSError(self.code, os.strerror(self.code), *([os.fspath(path)] if path is not None else []))


class Scenario(NamedTuple):
    """An action of the engine, what comes before it, and whether it may remove finished entries."""

    name: str
    action: Callable[[TemporaryHome], dict[str, Any]]
    is_warm: bool = True
    removes: bool = False


def _run(home: TemporaryHome, **i: Any) -> dict[str, Any]:
    i = {"tags": "print,things", "quiet": True, "lock_timeout": "5", **i}
    return answer_cm(lambda i: run_action(i, home.engine_home, None), i, None)


SCENARIOS = (
    Scenario("first run", _run, is_warm=False),
    Scenario("hit", _run),
    Scenario("renew", lambda home: _run(home, tags="get,thing", renew=True)),
    Scenario(
        "gc",
        lambda home: answer_cm(lambda i: gc_action(i, home.engine_home), {"max_size": "1", "f": True}, None),
        removes=True,
    ),
    Scenario(
        "rm",
        lambda home: answer_cm(lambda i: remove_action(i, home.engine_home), {"tags": "get", "f": True}, None),
        removes=True,
    ),
)


def write_recipes(home: TemporaryHome) -> None:
    """A recipe that needs two cached ones; what it gives proves that they ran."""
    for name in ("base", "thing"):
        key = f"CM_{name.upper()}"
        home.recipe(
            f"get-{name}",
            {"cache": True, "new_env_keys": [key], "deps": [{"tags": "get,base"}] if name == "thing" else []},
            run_sh=f"echo {name} > data; echo {key}=$(cat data) > tmp-run-env.out",
        )
    home.recipe(
        "print-things",
        {"deps": [{"tags": "get,thing"}, {"tags": "get,base"}], "new_env_keys": ["CM_BOTH"]},
        run_sh='echo "CM_BOTH=$CM_BASE-$CM_THING" > tmp-run-env.out',
    )


def in_child(home: TemporaryHome, action: Callable[[TemporaryHome], dict[str, Any]], fault: Fault) -> dict[str, Any]:
    """What an action answers in a process where one call fails, with the number of calls and the place of that one."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.chdir(home.work)
            for number in (1, 2):
                os.dup2(os.open(home.folder / "output", os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
            store.MANY = 0  # so that the index of entries takes part
            send = os.write
            fault.install()
            try:
                answer = action(home)
            except BaseException as error:
                answer = {"return": -1, "error": f"internal error: {type(error).__name__} escaped: {error}"}
            kept = {"return": answer["return"], "error": str(answer.get("error", "")), "env": answer.get("new_env")}
            send(writer, json.dumps({**kept, "count": fault.count, "place": fault.place}).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        text = file.read()
    os.waitpid(child, 0)
    value: dict[str, Any] = json.loads(text)
    return value


def finished(home: TemporaryHome) -> set[str]:
    """The recipes with a finished entry; a renewal may put another in its place."""
    return {meta["associated_script_artifact"] for meta in home.entries() if "tmp" not in meta["tags"]}


class Sweep:
    """All faults of all scenarios in one home; ``problems`` are the broken rules, in words."""

    def __init__(self, folder: Path) -> None:
        self.home = TemporaryHome(folder / "now")
        self.template = folder / "template"
        self.problems: list[str] = []
        self.counts: dict[str, int] = {}
        write_recipes(self.home)

    def reset(self) -> None:
        """Puts the home back into the state in which the scenario begins."""
        shutil.rmtree(self.home.folder)
        shutil.copytree(self.template, self.home.folder, symlinks=True)

    def run(self, scenario: Scenario, stride: int, offset: int = 0) -> None:
        """Fails every ``stride``-th call of a scenario; each with both errors when that is every one, else with one."""
        if scenario.is_warm:
            self.expect_right(scenario.name, "before any fault")
        shutil.rmtree(self.template, ignore_errors=True)
        shutil.copytree(self.home.folder, self.template, symlinks=True)
        before = finished(self.home)
        whole = in_child(self.home, scenario.action, Fault(0, 0))
        if whole["return"]:
            self.problems.append(f"{scenario.name}: fails without a fault: {whole['error']}")
        self.counts[scenario.name] = 0
        for number in range(1 + offset, whole["count"] + 1, stride):
            for code in ERRNOS if stride == 1 else ERRNOS[self.counts[scenario.name] % 2 :][:1]:
                self.reset()
                self.counts[scenario.name] += 1
                answer = in_child(self.home, scenario.action, Fault(number, code))
                what = f"call {number}, {answer['place']}, fails with {errno.errorcode[code]}"
                if "internal error" in answer["error"] or (answer["return"] and not answer["error"]):
                    self.problems.append(f"{scenario.name}: {what}: {answer['error']}")
                lost = before - finished(self.home)
                if lost and not scenario.removes:
                    self.problems.append(f"{scenario.name}: {what}: lost the finished entries of {sorted(lost)}")
                self.expect_right(scenario.name, what)
        self.reset()

    def expect_right(self, name: str, what: str) -> None:
        """Asks again on a sound disk."""
        answer = in_child(self.home, _run, Fault(0, 0))
        if answer["return"] or answer["env"] != {"CM_BOTH": "base-thing"}:
            self.problems.append(f"{name}: {what}: the next run gives {answer}")


def sweep(folder: Path, *, stride: int, offset: int = 0) -> Sweep:
    """Runs all scenarios."""
    made = Sweep(folder)
    for scenario in SCENARIOS:
        made.run(scenario, stride, offset)
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stride", type=int, default=1, help="fail every so many-th call")
    parser.add_argument("--offset", type=int, default=0, help="begin with the call after this one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        done = sweep(Path(folder), stride=options.stride, offset=options.offset)
    print("\n".join(done.problems))
    print(f"{sum(done.counts.values())} faults {done.counts}: {len(done.problems)} problems")
    return 1 if done.problems else 0


if __name__ == "__main__":
    sys.exit(main())

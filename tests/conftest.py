"""Loads the engine as the adapters do, and keeps tests away from the user's CM home."""

import compileall
import functools
import gc
import importlib
import importlib.util
import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import engine_package  # noqa: F401 - the engine is importable from here on
import pytest
from changed_tests import HARNESS_TESTS
from harness_libraries import LIBRARIES, need

import crowdperf  # noqa: F401 - switches off telemetry before a test imports onnxruntime

pytest_plugins = ["helpers"]

ROOT = Path(__file__).resolve().parent.parent

# Who starts the tests in the background of a shell, or under nohup, starts them with signals ignored; what the tests
# start would inherit that, and never end at Ctrl-C.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

os.environ["CM_REPOS"] = os.devnull + "/tests-must-choose-a-home-of-their-own"
os.environ.pop("CROWDPERF_CACHE", None)
for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):  # of the developer: tests name their servers
    os.environ.pop(name, None)
os.environ.pop("PYTHONUNBUFFERED", None)  # it hides errors of what is printed last, at the exit of a process


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="also run the slow checks")
    parser.addoption("--costs", type=Path, help="add the processor seconds of each test file to this JSON file")


def pytest_configure(config: pytest.Config) -> None:
    """Compiles the project's modules once: the many ``cm`` processes of the tests leave no bytecode behind."""
    if not hasattr(config, "workerinput"):  # no worker of pytest-xdist
        for folder in ("automation", "script", "src"):
            compileall.compile_dir(ROOT / folder, quiet=2)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Lets pytest keep the tests as it compiled them, which takes longer than the rest of collecting them, also where
    Python is told to leave no bytecode behind. What the tests themselves run does as it is told.

    Keeps Python's collector from going through all collected tests, which takes a second each time.
    """
    leaves_no_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = False
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        sys.dont_write_bytecode = leaves_no_bytecode


class _HarnessModule(pytest.Module):
    """A test file that is skipped, or fails (see `need`), where it imports a library that this environment lacks."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        try:
            return super().collect()
        except self.CollectError as error:
            missing = str(getattr(error.__cause__, "name", None)).partition(".")[0]
            if missing in LIBRARIES:
                need(missing)
            raise


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    folder = module_path.relative_to(ROOT / "tests").parts[0]
    return _HarnessModule.from_parent(parent, path=module_path) if folder in HARNESS_TESTS else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--full"):
        for item in items:
            if item.get_closest_marker("full"):
                item.add_marker(pytest.mark.skip(reason="slow: run by ./test.sh --full"))


@pytest.fixture(scope="session", autouse=True)
def imports_of_a_text_are_found_once() -> Iterator[None]:
    """Hooks look through the sources of this checkout in each call, because a process has one; here it has hundreds."""
    packages = importlib.import_module("recipe_engine.disk.packages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packages, "imports_of", functools.cache(packages.imports_of))
        yield


_COSTS = pytest.StashKey[dict[str, float]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Counts the processor time of a test and of the processes it waited for, on behalf of its file."""
    before = os.times()
    try:
        return (yield)
    finally:
        costs = item.config.stash.setdefault(_COSTS, {})
        file = item.nodeid.partition("::")[0]
        costs[file] = costs.get(file, 0.0) + sum(os.times()[:4]) - sum(before[:4])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Adds what was counted to the file (see tools/changed_tests.py); a worker of pytest-xdist leaves it to the process
    that started it.
    """
    costs = session.config.stash.get(_COSTS, {})
    place: Path | None = session.config.getoption("--costs")
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["costs"] = costs
    elif place:
        known = json.loads(place.read_text(encoding="utf-8")) if place.is_file() else {}
        rounded = {file: round(known.get(file, 0.0) + cost_s, 1) for file, cost_s in costs.items()}
        place.write_text(json.dumps(known | rounded, indent=0, sort_keys=True) + "\n", encoding="utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes over what a worker counted; one that crashed has counted nothing."""
    costs = node.config.stash.setdefault(_COSTS, {})
    for file, cost_s in getattr(node, "workeroutput", {}).get("costs", {}).items():
        costs[file] = costs.get(file, 0.0) + cost_s


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Small networks in torch are quickest with one thread, on a busy machine by far."""
    import torch  # not every environment has it

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)

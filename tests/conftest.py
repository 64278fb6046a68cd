"""Loads the engine as the adapters do, and keeps tests away from the user's CM home."""

from __future__ import annotations

import compileall
import gc
import importlib.util
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest_plugins = ["helpers"]

ROOT = Path(__file__).resolve().parent.parent
ENGINE = ROOT / "automation" / "recipe_engine"

if "recipe_engine" not in sys.modules:
    spec = importlib.util.spec_from_file_location(
        "recipe_engine", ENGINE / "__init__.py", submodule_search_locations=[str(ENGINE)]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules["recipe_engine"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["recipe_engine"])

# Who starts the tests in the background of a shell, or under nohup, starts them with signals ignored; what the tests
# start would inherit that, and never end at Ctrl-C.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

os.environ["CM_REPOS"] = os.devnull + "/tests-must-choose-a-home-of-their-own"
os.environ.pop("CROWDPERF_CACHE", None)
os.environ.pop("PYTHONUNBUFFERED", None)  # it hides errors of what is printed last, at the exit of a process


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="also run the slow checks")


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
        gc.collect()
        gc.freeze()
        sys.dont_write_bytecode = leaves_no_bytecode


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--full"):
        for item in items:
            if item.get_closest_marker("full"):
                item.add_marker(pytest.mark.skip(reason="slow: run by ./test.sh --full"))

"""Fixtures for the tests of recipes: the dict of a hook, a folder as a cache entry, programs made up on PATH."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from local_server import LocalServer

HookInput = Callable[..., dict[str, Any]]
FakeTool = Callable[..., Path]


@pytest.fixture
def hook_input() -> HookInput:
    """Makes the dict that a hook gets, with the given env, state and other keys."""

    def make(env: dict[str, Any] | None = None, state: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        return {
            "env": {} if env is None else env,
            "state": {} if state is None else state,
            "os_info": {"platform": "linux"},
            "recursion_spaces": "",
            "input": {},
            "meta": {},
            **more,
        }

    return make


@pytest.fixture
def preprocessed(inside: Path, hook_input: HookInput, capsys: pytest.CaptureFixture[str]) -> HookInput:
    """Calls `preprocess` of a recipe in an empty folder with these inputs; the answer has what was printed, too."""

    def make(recipe: Any, meta: dict[str, Any], variation: str = "", **inputs: str) -> dict[str, Any]:
        env = {"CM_TMP_CURRENT_PATH": str(inside)}
        env |= {meta["input_mapping"][name]: value for name, value in inputs.items()}
        env |= meta["variations"][variation]["env"] if variation else {}
        i = hook_input(env)
        answer = recipe.preprocess(i)
        printed = capsys.readouterr()
        return {**answer, "env": i["env"], "state": i["state"], "text": printed.out, "said": printed.err}

    return make


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the current one during the test, as a cache entry is for a hook."""
    folder = tmp_path / "entry"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def fake_tool(tmp_path: Path) -> FakeTool:
    """Writes an executable shell script of the given name and text, by default in one folder `tools`."""

    def write(name: str, text: str, folder: Path | None = None) -> Path:
        place = folder or tmp_path / "tools"
        place.mkdir(parents=True, exist_ok=True)
        path = place / name
        path.write_text("#!/bin/sh\n" + text + "\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    return write


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    """An HTTP server of this process on a free local port."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with LocalServer() as running:
        yield running

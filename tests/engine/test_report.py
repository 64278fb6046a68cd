"""From results and errors to CM's answer: codes, texts, streams, signals."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome, with_python_path
from recipe_engine.actions.adapter import answer_cm, set_up_logging, stdout_to_stderr, to_cm
from recipe_engine.rules.errors import ErrorText, HookFailed, NotFound, RecipeError, ScriptFailed, VariationNotFound
from recipe_engine.rules.model import CacheEntry, RecipeId, StepResult
from recipe_engine.running.console import raised_as_interrupted


@pytest.fixture(autouse=True)
def quiet_logging() -> Iterator[None]:
    """Puts the engine's logger back as it was."""
    logger = logging.getLogger("recipe_engine")
    before = (list(logger.handlers), logger.level, logger.propagate)
    yield
    logger.handlers[:], logger.level, logger.propagate = before[0], before[1], before[2]


class Cm:
    output: Any = None


RESULT = StepResult(
    label="get-x",
    status="ran",
    new_env={"CM_X": "1", "CM_GH_TOKEN": "s"},
    new_state={"s": 1},
    dependency_tags=("get,y",),
)


def test_an_answer_that_is_shown_has_no_secrets() -> None:
    shown = to_cm(RESULT, {"env": {"CM_A": "2", "CM_HF_TOKEN": "t"}, "out": "json"})
    assert (shown["env"], shown["new_env"]) == ({"CM_X": "1", "CM_A": "2"}, {"CM_X": "1"})
    assert to_cm(RESULT, {})["new_env"]["CM_GH_TOKEN"] == "s"


def test_the_dicts_of_the_caller_are_updated_and_are_those_of_the_answer() -> None:
    env: dict[str, Any] = {"CM_X": "0", "CM_A": "2"}
    state: dict[str, Any] = {"kept": {"a": 1}}
    answer = to_cm(RESULT, {"env": env, "state": state})
    assert (env, state) == ({"CM_X": "1", "CM_A": "2", "CM_GH_TOKEN": "s"}, {"kept": {"a": 1}, "s": 1})
    assert answer["env"] is env
    assert answer["state"] is state


def test_an_answer_says_whether_it_was_skipped_its_version_and_its_entry() -> None:
    plain = to_cm(RESULT, {})
    assert set(plain) == {"return", "env", "new_env", "state", "new_state", "deps"}
    entry = CacheEntry("u", Path("/c/u"), (), "", RecipeId("get-x", "a"), "", None)
    full = to_cm(RESULT._replace(status="skipped", version="1.2", entry=entry), {})
    assert (full["skipped"], full["version"]) == (True, "1.2")
    assert full["cache_entry"] == {"uid": "u", "path": "/c/u"}


def failing(error: BaseException) -> Any:
    def action(_: Any) -> dict[str, Any]:
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFound("x"), 1),
        (VariationNotFound("x"), 16),
        (ScriptFailed("x"), 2),
        (HookFailed("x", code=7), 7),
        (RecipeError("x"), 1),
        (KeyboardInterrupt(), 130),
        (ValueError("x"), 1),
    ],
)
def test_errors_become_cms_codes(error: BaseException, code: int) -> None:
    assert answer_cm(failing(error), {}, Cm())["return"] == code


def test_the_text_of_an_error_has_chain_log_and_hint() -> None:
    error = ScriptFailed("it failed", hint="try this", trace=("get-a", "get-b"), log_path="/log.txt")
    text = answer_cm(failing(error), {}, Cm())["error"]
    assert text == "it failed\n  chain: get-a -> get-b\n  log: /log.txt\n  hint: try this"


def test_on_the_console_the_text_goes_to_stderr_once(capsys: pytest.CaptureFixture[str]) -> None:
    cm = Cm()
    answer_cm(failing(NotFound("no recipe")), {"out": "con"}, cm)
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "\nCM error: no recipe\n"
    assert cm.output == "shown", "cmind would print it again, with an exclamation mark behind the hint"


@pytest.mark.parametrize("out", ["json", ""])
def test_elsewhere_the_text_is_only_in_the_answer(capsys: pytest.CaptureFixture[str], out: str) -> None:
    answer = answer_cm(failing(NotFound("no recipe")), {"out": out}, Cm())
    assert answer == {"return": 1, "error": "no recipe"}
    assert capsys.readouterr() == ("", "")


def test_an_internal_error_names_its_place_and_how_to_see_more(capsys: pytest.CaptureFixture[str]) -> None:
    text = answer_cm(failing(ValueError("boom")), {}, Cm())["error"]
    assert "internal error: ValueError: boom (test_report.py:" in text
    assert "--debug" in text
    answer_cm(failing(ValueError("boom")), {"debug": True}, Cm())
    assert "Traceback" in capsys.readouterr().err


PRINTING = """
import os, subprocess, sys
from recipe_engine.actions.adapter import stdout_to_stderr
print("before")
with stdout_to_stderr(True):
    print("printed")
    os.write(1, b"written\\n")
    subprocess.run(["echo", "child"], check=True)
print("after")
"""


def test_everything_that_is_printed_goes_to_stderr_inside_the_block() -> None:
    command = [sys.executable, "-c", PRINTING]
    done = subprocess.run(command, env=with_python_path("automation"), capture_output=True, text=True, check=True)
    assert done.stdout == "before\nafter\n"
    assert sorted(done.stderr.split()) == ["child", "printed", "written"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_every_letter_can_be_printed_in_any_locale(home: TemporaryHome, encoding: str) -> None:
    text, env = "5 \u20ac \U0001f600", {"PYTHONIOENCODING": encoding}
    home.recipe("get-x", {"name": text, "new_env_keys": ["CM_X"], "env": {"CM_X": text}})
    assert home.run_cm("get,x", env=env).answer["new_env"] == {"CM_X": text}
    found = home.cm("help", "script", "get-x", env=env)
    assert found.code == 0, found.stderr
    assert (text if encoding == "utf-8" else r"5 \u20ac \U0001f600") in found.stdout


def test_stdout_comes_back_after_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="x"), stdout_to_stderr(True):
        raise ValueError("x")
    os.write(1, b"after\n")
    assert capfd.readouterr().out == "after\n"


def test_sigterm_ends_the_block_like_ctrl_c_and_only_there() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), raised_as_interrupted():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
    inside = answer_cm(lambda _: {"return": 0, "handler": signal.getsignal(signal.SIGTERM)}, {}, None)
    assert inside["handler"] is before, "a caller in Python keeps its own"


def test_the_story_is_set_up_once_and_more_is_told_on_request() -> None:
    logger = logging.getLogger("recipe_engine")
    logger.handlers[:] = []
    set_up_logging(is_verbose=False)
    set_up_logging(is_verbose=False)
    assert len(logger.handlers) == 1
    assert logger.level == logging.INFO
    set_up_logging(is_verbose=True)
    assert logger.level == logging.DEBUG


def test_an_internal_error_shows_no_secret_of_the_environment_or_the_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_PAT", "planted-pat")
    i = {"out": "con", "hf_token": "planted-input", "debug": True}
    answer = answer_cm(failing(ValueError("bad planted-pat planted-input https://u:p@h/")), i, None)
    assert "internal error: ValueError: bad ******** ******** https://********@h/" in answer["error"]
    assert "planted" not in "".join(capsys.readouterr())


def test_an_error_that_is_shown_still_knows_where_it_comes_from() -> None:
    assert isinstance(answer_cm(failing(NotFound("no x")), {"out": "con"}, None)["error"], ErrorText)

"""Values of every kind go to a native script and come back: unchanged, never executed, or clearly refused."""

from pathlib import Path
from typing import Any

import pytest
from cases import texts
from helpers import TemporaryHome
from hypothesis import example, given, settings
from hypothesis import strategies as st
from recipe_engine.rules.errors import RecipeError
from recipe_engine.running.shell import read_env_file

KEYS = tuple(f"CM_V{number}" for number in range(8))
HOSTILE = st.text(st.sampled_from("$`\"'\\ \n\t(){}[]<>|&;=#!*?~%^a1é😀\r\x01\x7f"), max_size=30)
ROUND = settings(max_examples=max(10, settings.default.max_examples // 4) if settings.default else 10)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> TemporaryHome:
    """A home with a recipe whose script writes down what it got, each value with a NUL behind it, as it is."""
    made = TemporaryHome(tmp_path_factory.mktemp("env"))
    made.write_cmr(values="literal")  # what CM expands in others: tests/engine/test_quoting.py
    names = " ".join(f'"${{{key}-}}"' for key in KEYS)
    made.recipe("get-x", {"new_env_keys": ["CM_V*", "+CM_LIST"]}, run_sh=f"printf '%s\\0' {names} > seen\n")
    made.recipe("get-l", {"new_env_keys": ["+CM_LIST"]}, run_sh="printf '%s' \"$CM_LIST\" > seen\n")
    return made


def seen(home: TemporaryHome) -> bytes:
    """What the script wrote down."""
    return (home.work / "seen").read_bytes()


def is_passable(value: str) -> bool:
    """Whether a process can get this value at all: no NUL, and nothing that is no Unicode."""
    try:
        return "\0" not in value and bool(value.encode() or True)
    except UnicodeEncodeError:
        return False


@ROUND
@example(["\0"])
@example(["\ud800"])
@example(["\\$"])
@given(st.lists(st.one_of(HOSTILE, texts), min_size=1, max_size=len(KEYS)))
def test_env_values_reach_the_script_and_the_answer_as_they_are(home: TemporaryHome, given_values: list[str]) -> None:
    env = {key: value for key, value in zip(KEYS, given_values, strict=False) if "<<<" not in value}
    (home.work / "seen").unlink(missing_ok=True)
    try:
        answer = home.run("get,x", env=dict(env))
    except RecipeError as error:
        assert not all(map(is_passable, env.values())), error.message
        return
    assert seen(home) == b"".join(env.get(key, "").encode() + b"\0" for key in KEYS)
    assert not list(home.folder.rglob("pwned"))
    assert {**env, **answer["new_env"]} == env


@ROUND
@given(st.lists(HOSTILE.filter(lambda text: text != ""), min_size=1, max_size=4, unique=True))
def test_lists_reach_the_script_joined_and_as_they_are(home: TemporaryHome, items: list[str]) -> None:
    (home.work / "seen").unlink(missing_ok=True)
    home.run("get,l", env={"+CM_LIST": list(items)})
    assert seen(home) == ":".join(items).encode()
    assert not list(home.folder.rglob("pwned"))


@given(
    st.dictionaries(st.from_regex(r"[A-Z_]{1,6}", fullmatch=True), st.text(max_size=20), max_size=5),
    st.binary(max_size=40),
)
def test_what_a_script_leaves_is_read_to_the_end_of_each_line(
    tmp_path_factory: pytest.TempPathFactory, env: dict[str, Any], junk: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp() / "left"
    folder.mkdir(exist_ok=True)
    path = Path(folder, "tmp-run-env.out")
    one_line = {key: value for key, value in env.items() if value == value.strip() and "\n" not in value}
    passable = {key: value for key, value in one_line.items() if is_passable(value)}
    path.write_bytes("".join(f"{key}={value}\n" for key, value in passable.items()).encode())
    assert read_env_file(path) == passable
    path.write_bytes(junk)
    assert all(isinstance(value, str) for value in read_env_file(path).values())

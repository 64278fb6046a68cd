"""Flags of the actions: one that the help of an action does not name is an error on the console."""

from typing import Any

import pytest
from helpers import TemporaryHome
from recipe_engine.actions.adapter import answer_cm
from recipe_engine.actions.help import check_flags
from recipe_engine.actions.run import parse_query_input, parse_request
from recipe_engine.rules.errors import RequestError

WRONG = """
runs script lst last
runs script verbos -
resume script forc force
reproduce script check check_only
reproduce script tolerence tolerance
diff script exitcode exit_code
audit script lvl level
add script tag tags
doc script output output_dir
native-run script comand command
find script tag tags
rm script forse force
version script x -
show cache foo -
show cache enw env
gc cache dry dry_run
gc cache maxsize max_size
verify cache skp skip
pin cache tag tags
explain cache tgas tags
download_file utils md5 md5sum
unzip_file utils strip strip_folders
compare_versions utils version -
"""


@pytest.mark.parametrize("line", WRONG.strip().splitlines())
def test_an_unknown_flag_is_an_error_with_the_nearest_and_the_whole_command(line: str) -> None:
    action, automation, name, meant = line.split()
    i: dict[str, Any] = {"action": action, "automation": automation, "artifact": "it", name: "3", "out": "con"}
    with pytest.raises(RequestError) as caught:
        check_flags(i)
    first = f"unknown flag --{name} for cm {action} {automation}"
    if meant == "-":
        assert caught.value.message.startswith(first)
    else:
        assert caught.value.message == f"{first}, did you mean --{meant}?"
        assert caught.value.hint == f"cm {action} {automation} it --{meant}=3"


def test_flags_of_the_console_and_secrets_of_a_run_are_let_through() -> None:
    given = {"out": "con", "v": True, "j": True, "hf_token": "x", "env": {"CM_API_KEY": "0123456789ab"}}
    check_flags({"action": "resume", "automation": "script,5b4e0237da074764", **given})


@pytest.mark.parametrize(("out", "code"), [("", 0), ("con", 1), ("json", 1)])
def test_the_console_is_checked_and_a_program_may_hand_in_anything(out: str, code: int) -> None:
    i = {"action": "show", "automation": "cache", "tgas": "x", "out": out}
    assert answer_cm(lambda _: {"return": 0}, i, None)["return"] == code


# --- words of a run ---


@pytest.mark.parametrize("name", ["tag", "tgs", "tasg"])
def test_misspelt_tags_are_named_where_no_recipe_is(name: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_request({"action": "plan", name: "get,x", "quiet": True})
    assert caught.value.message == f"unknown flag --{name}, did you mean --tags?"
    assert caught.value.hint == "cm plan script --tags=get,x --quiet"


@pytest.mark.parametrize("words", [("get", "python3", "_custom"), ("get,python3", "_custom"), ("get,python3,_custom",)])
def test_tags_without_quotes_are_answered_with_the_line_that_works(words: tuple[str, ...]) -> None:
    i = {"action": "run", "artifact": words[0], "artifacts": words[1:], "quiet": True}
    with pytest.raises(RequestError) as caught:
        parse_query_input({**i, "out": "con"})
    assert caught.value.message == f"a recipe name is one word: pass tags with --tags, found: {' '.join(words)}"
    assert caught.value.hint == "cm run script --tags=get,python3,_custom --quiet"


def test_values_without_an_equals_sign_are_not_taken_for_tags() -> None:
    i = {"action": "run", "tags": "get,python3", "artifact": "a", "artifacts": ("b",), "name": True, "out": "con"}
    with pytest.raises(RequestError, match="found next to --tags: a b") as caught:
        parse_query_input(i)
    assert caught.value.hint == "an input and its value are one word: --INPUT=VALUE"


def test_a_comment_that_a_shell_handed_over_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    def never(_: object) -> dict[str, Any]:
        raise AssertionError("carried out")

    for words in (["#", "what", "has been"], ["a", "#", "--help"]):
        i = {"action": "show", "automation": "cache", "artifact": words[0], "artifacts": words[1:], "out": "con"}
        assert answer_cm(never, {**i, "help": True}, None)["return"] == 1
        error = capsys.readouterr().err
        assert "everything from # on was passed as arguments" in error and "setopt interactive_comments" in error


@pytest.mark.parametrize("value", [True, ""])
def test_a_version_without_a_value_is_refused(value: object) -> None:
    with pytest.raises(RequestError, match="--version_min has no value"):
        parse_request({"tags": "get,x", "version_min": value, "out": "con"})


def test_a_recipe_may_hand_on_an_empty_version() -> None:
    assert parse_request({"tags": "get,x", "version": ""}).version.exact == ""


def test_an_input_that_no_test_has_is_refused(home: TemporaryHome) -> None:
    home.recipe("get-x", {"tests": {"run_inputs": [{"size": "1"}]}, "input_mapping": {"size": "CM_SIZE"}})
    done = home.cm("test", "script", "get-x", "--sizes=2")
    assert done.code == 1
    assert "unknown input --sizes for cm test script: none of these tests has it, did you mean --size?" in done.stderr
    assert home.cm("test", "script", "get-x", "--size=2").code == 0

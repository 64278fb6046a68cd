"""customize.py: loading it, calling it, and what its answers may be."""

import os
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest
from helpers import uid_of
from recipe_engine.rules.errors import ErrorText, HookFailed, ScriptFailed
from recipe_engine.rules.model import HookResult, Layer, Recipe, RecipeId
from recipe_engine.running.hooks import Artifact, call_hook, load_customize


def recipe(tmp_path: Path, customize: str = "", **files: str) -> Recipe:
    folder = tmp_path / "get-x"
    folder.mkdir(exist_ok=True)
    for name, text in {"customize": customize, **files}.items():
        if text:
            (folder / f"{name}.py").write_text(textwrap.dedent(text))
    return Recipe(id=RecipeId("get-x", uid_of("get-x")), path=folder, repo_path=tmp_path, tags=("x",), layer=Layer())


def preprocess(made: Recipe, env: dict[str, Any] | None = None) -> HookResult | None:
    i = {"env": {} if env is None else env, "state": {}, "meta": {}, "artifact": Artifact(made), "customize": {}}
    return call_hook(made, "preprocess", i)


def test_a_recipe_without_hooks_has_none(tmp_path: Path) -> None:
    assert preprocess(recipe(tmp_path)) is None
    assert load_customize(recipe(tmp_path)) is None


def test_a_hook_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert preprocess(recipe(tmp_path, "def postprocess(i):\n    return {'return': 0}\n")) is None


def test_everything_an_answer_may_hold_is_read(tmp_path: Path) -> None:
    answer = (
        "{'return': 0, 'skip': True, 'script': {'tags': 'get,y'}, 'version': 3, 'add_extra_cache_tags': ['a', 1],"
        " 'files': ['data'], 'other': 1}"
    )
    found = preprocess(recipe(tmp_path, f"def preprocess(i):\n    return {answer}\n"))
    assert found == HookResult(
        skip=True, replacement={"tags": "get,y"}, version="3", extra_cache_tags=("a", "1"), files=("data",)
    )


@pytest.mark.parametrize(
    "answer", ["None", "0", "[]", "'ok'", "{}", "{'return': '0'}", "{'return': None}", "{'error': 'x'}"]
)
def test_an_answer_that_is_none_is_refused_with_its_place_and_value(tmp_path: Path, answer: str) -> None:
    with pytest.raises(HookFailed, match=r"get-x: preprocess in customize\.py must return a dict") as caught:
        preprocess(recipe(tmp_path, f"def preprocess(i):\n    return {answer}\n"))
    assert repr(eval(answer)) in caught.value.message


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ("'files': 5", "must return a list as 'files', got 5"),
        ("'runs': {'tags': 'get,y'}", "must return a list as 'runs', got {'tags': 'get,y'}"),
        ("'add_extra_cache_tags': 1.5", "must return a list as 'add_extra_cache_tags', got 1.5"),
        ("'locked': 'abc'", "must return a dict as 'locked', got 'abc'"),
    ],
    ids=["files", "runs", "tags", "locked"],
)
def test_an_item_of_an_answer_of_the_wrong_kind_is_named(tmp_path: Path, item: str, text: str) -> None:
    with pytest.raises(HookFailed) as caught:
        preprocess(recipe(tmp_path, f"def preprocess(i):\n    return {{'return': 0, {item}}}\n"))
    assert caught.value.message == f"get-x: preprocess in customize.py {text}"


def test_a_text_in_the_place_of_a_list_is_a_list_of_one(tmp_path: Path) -> None:
    answer = "{'return': 0, 'files': 'model.onnx', 'add_extra_cache_tags': 'a, b,'}"
    found = preprocess(recipe(tmp_path, f"def preprocess(i):\n    return {answer}\n"))
    assert found == HookResult(extra_cache_tags=("a", "b"), files=("model.onnx",))


@pytest.mark.parametrize(
    ("statement", "place", "found"),
    [
        ("i['env'][1] = 'x'", "env", "1"),
        ("i['env'] = None", "env", "None"),
        ("del i['env']", "env", "None"),
        ("i['state'][1, 2] = 'x'", "state", r"\(1, 2\)"),
        ("i['run_script_input'] = []", "run_script_input", r"\[\]"),
    ],
    ids=["env-key", "env", "no-env", "state-key", "run_script_input"],
)
def test_a_hook_that_breaks_what_it_was_given_is_named(tmp_path: Path, statement: str, place: str, found: str) -> None:
    made = recipe(tmp_path, f"def preprocess(i):\n    {statement}\n    return {{'return': 0}}\n")
    problem = (
        rf"get-x: preprocess in customize\.py must leave i\['{place}'\] as a dict with string keys, found " rf"{found}$"
    )
    with pytest.raises(HookFailed, match=problem):
        call_hook(made, "preprocess", {"env": {}, "state": {}, "run_script_input": {}})


@pytest.mark.parametrize("code", [1, 2, 16, 99])
def test_an_error_answer_keeps_its_code_and_text(tmp_path: Path, code: int) -> None:
    for answer, text in (
        (f"{{'return': {code}, 'error': 'no such tool'}}", "no such tool"),
        (f"{{'return': {code}}}", "no error text"),
    ):
        with pytest.raises(HookFailed, match=f"get-x: {text}") as caught:
            preprocess(recipe(tmp_path, f"def preprocess(i):\n    return {answer}\n"))
        assert caught.value.code == code


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("{}['key']", "KeyError"),
        ("raise ValueError('so it is')", "ValueError: so it is"),
        ("1 / 0", "ZeroDivisionError"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("assert False", "AssertionError"),
    ],
)
def test_a_hook_that_raises_is_named_with_its_line(tmp_path: Path, statement: str, name: str) -> None:
    made = recipe(tmp_path, f"def preprocess(i):\n    {statement}\n    return {{'return': 0}}\n")
    with pytest.raises(HookFailed, match=name) as caught:
        preprocess(made)
    assert f"{made.path}/customize.py:2: {statement}" in caught.value.message
    assert caught.value.code == 1


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("def preprocess(i)\n", "SyntaxError"),
        ("import no_such_module\n", "no_such_module"),
        ("exit(1)\n", "SystemExit"),
    ],
)
def test_a_customize_that_cannot_be_loaded_is_named(tmp_path: Path, text: str, name: str) -> None:
    made = recipe(tmp_path, text)
    with pytest.raises(HookFailed, match=name) as caught:
        preprocess(made)
    assert str(made.path / "customize.py") in caught.value.message


def test_an_interrupt_in_a_hook_is_no_failure_of_the_recipe(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        preprocess(recipe(tmp_path, "def preprocess(i):\n    raise KeyboardInterrupt\n"))


def test_a_hook_may_import_modules_beside_it(tmp_path: Path) -> None:
    made = recipe(
        tmp_path,
        """
        from . import table
        from .table import VALUE

        def preprocess(i):
            from .late import LATE
            i["env"].update(A=table.VALUE, B=VALUE, C=LATE)
            return {"return": 0}
        """,
        table="VALUE = 'seven'\n",
        late="LATE = 'eight'\n",
    )
    env: dict[str, Any] = {}
    preprocess(made, env)
    assert env == {"A": "seven", "B": "seven", "C": "eight"}


def test_two_recipes_may_have_modules_of_the_same_name(tmp_path: Path) -> None:
    customize = "from . import names\ndef preprocess(i):\n    i['env']['X'] = names.X\n    return {'return': 0}\n"
    seen = []
    for alias in ("one", "two"):
        (tmp_path / alias).mkdir()
        made = recipe(tmp_path / alias, customize, names=f"X = '{alias}'\n")._replace(id=RecipeId(alias, uid_of(alias)))
        env: dict[str, Any] = {}
        preprocess(made, env)
        seen.append(env["X"])
    assert seen == ["one", "two"]


def test_an_edited_customize_is_loaded_again(tmp_path: Path) -> None:
    env: dict[str, Any] = {}
    made = recipe(tmp_path, "def preprocess(i):\n    i['env']['X'] = 1\n    return {'return': 0}\n")
    preprocess(made, env)
    path = made.path / "customize.py"
    before = path.stat().st_mtime_ns
    recipe(tmp_path, "def preprocess(i):\n    i['env']['X'] = 2\n    return {'return': 0}\n")
    os.utime(path, ns=(before + 1, before + 1))
    preprocess(made, env)
    assert env["X"] == 2


def test_a_customize_is_loaded_only_once_while_it_stays_the_same(tmp_path: Path) -> None:
    made = recipe(tmp_path, "def preprocess(i):\n    return {'return': 0}\n")
    assert load_customize(made) is load_customize(made)


def test_a_customize_that_failed_to_load_leaves_no_half_module(tmp_path: Path) -> None:
    made = recipe(tmp_path, "import no_such_module\n")
    with pytest.raises(HookFailed):
        preprocess(made)
    assert f"recipe_{made.id.uid}_customize" not in sys.modules


def test_an_error_that_a_recipe_passes_on_stays_what_it_was(tmp_path: Path) -> None:
    made = recipe(tmp_path, "def preprocess(i):\n    return i['env']['inner']\n")
    origin = ScriptFailed("get-y: run.sh failed", hint="look", trace=("get-x", "get-y"), log_path="/log")
    with pytest.raises(ScriptFailed) as caught:
        preprocess(made, {"inner": {"return": 2, "error": ErrorText.of(origin)}})
    assert caught.value is origin


def test_an_error_that_a_recipe_words_anew_is_its_own(tmp_path: Path) -> None:
    made = recipe(tmp_path, "def preprocess(i):\n    return {'return': 1, 'error': 'sorry: ' + i['env']['inner']}\n")
    with pytest.raises(HookFailed, match="get-x: sorry: get-y: run"):
        preprocess(made, {"inner": ErrorText.of(ScriptFailed("get-y: run.sh failed"))})


@pytest.mark.parametrize(
    "statement",
    [
        "raise ValueError(i['env']['HF_TOKEN'])",
        "return {'return': 3, 'error': 'denied: ' + i['env']['HF_TOKEN']}",
        "i['env']['GH_TOKEN'] = 'correct-horse-2'; raise ValueError('correct-horse-2')",
        "i['env']['GH_TOKEN'] = 'correct-horse-3'; raise OSError('correct-horse-3')",
    ],
)
def test_an_error_of_a_hook_shows_no_secret(tmp_path: Path, statement: str) -> None:
    made = recipe(tmp_path, f"def preprocess(i):\n    {statement}\n")
    with pytest.raises(HookFailed) as caught:
        preprocess(made, {"HF_TOKEN": "correct-horse-battery"})
    assert "correct-horse" not in caught.value.describe() + str(caught.value)
    assert "********" in caught.value.message
    assert caught.value.code == (3 if "return" in statement else 1)


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("i['state']['x'] = i['state']", "must not leave a value in i['env'] or i['state'] that contains itself"),
        ("i['state']['x'] = [[]]; i['state']['x'][0].append(i['state']['x'])", "that contains itself"),
        ("raise GeneratorExit", "raised GeneratorExit"),
    ],
)
def test_a_hook_that_breaks_the_process_is_named(tmp_path: Path, statement: str, text: str) -> None:
    made = recipe(tmp_path, f"def preprocess(i):\n    {statement}\n    return {{'return': 0}}\n")
    with pytest.raises(HookFailed, match=r"get-x: preprocess in customize\.py") as caught:
        preprocess(made)
    assert text in caught.value.message


def test_a_hook_that_closes_standard_output_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", (tmp_path / "out").open("w"))
    made = recipe(tmp_path, "import sys\ndef preprocess(i):\n    sys.stdout.close()\n    return {'return': 0}\n")
    with pytest.raises(HookFailed, match=r"get-x: preprocess in customize\.py closed sys\.stdout"):
        preprocess(made)
    print("what is printed now is lost, and no error")
    sys.stdout.close()


def test_a_thread_that_a_hook_leaves_behind_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = """
        import threading
        def preprocess(i):
            i['env']['thread'] = threading.Thread(target=i['env']['wait'], name='left-over', daemon=i['env']['daemon'])
            i['env']['thread'].start()
            return {'return': 0}
    """
    for is_daemon, count in ((True, 0), (False, 1)):
        ends = threading.Event()
        env: dict[str, Any] = {"wait": ends.wait, "daemon": is_daemon}
        with caplog.at_level("WARNING"):
            preprocess(recipe(tmp_path, text), env)
        ends.set()
        env["thread"].join()
        told = [record.getMessage() for record in caplog.records]
        assert len(told) == count
    assert "get-x: preprocess in customize.py left a thread running (left-over)" in told[0]

"""One step: what its hooks are given, and what it takes over from them."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome, uid_of
from recipe_engine.rules.errors import MetaError
from recipe_engine.running.context import os_info, passed_on_env

KEYS_THAT_RECIPES_READ = {
    "artifact",
    "automation",
    "customize",
    "env",
    "input",
    "meta",
    "os_info",
    "recursion_spaces",
    "run_script_input",
    "script_tags",
    "state",
    "variation_tags",
}
"""Section 5.2 of the format: what hooks of the CM community find in their dict."""


NATIVE = """
    def postprocess(i):
        answer = i["automation"].run_native_script({"env": {**i["env"], "+SEEN": "/native"}, "script_name": "also"})
        i["env"]["CM_NATIVE"] = answer["env_tmp"]["CM_NATIVE"]
        return {"return": 0}
"""


def test_one_text_in_a_plus_key_is_one_folder_wherever_it_comes_from(home: TemporaryHome) -> None:
    hook = "def preprocess(i):\n    i['env']['+SEEN'] = '/hook'\n    return {'return': 0}"
    home.recipe("get-hook", {"new_env_keys": ["+SEEN"]}, customize=hook)
    home.recipe("get-meta", {"new_env_keys": ["+SEEN"], "env": {"+SEEN": "/meta"}})
    home.recipe("get-script", {"new_env_keys": ["+SEEN"]}, run_sh="echo '+SEEN=/script' > tmp-run-env.out")
    home.recipe(
        "get-x",
        {"deps": [{"tags": f"get,{name}"} for name in ("hook", "meta", "script")], "new_env_keys": ["CM_*"]},
        run_sh='echo "CM_SEEN=$SEEN" > tmp-run-env.out',
        customize=NATIVE,
        files={"also.sh": 'echo "CM_NATIVE=$SEEN" > tmp-run-env.out'},
    )
    new_env = home.run("get,x", env={"+SEEN": "/given"})["new_env"]
    assert new_env["CM_SEEN"].strip(":").split(":") == ["/given", "/hook", "/meta", "/script"]
    assert new_env["CM_NATIVE"].strip(":") == "/native"


@pytest.fixture
def spy(home: TemporaryHome, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """The hooks that were called and the dicts that they got; recipes call ``spy(name, i)``."""
    seen: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(sys, "spy", lambda name, i: seen.append((name, i)), raising=False)
    return seen


SPYING = """
    import sys
    def preprocess(i):
        sys.spy("preprocess", i)
        return {"return": 0}

    def postprocess(i):
        sys.spy("postprocess", i)
        return {"return": 0}

    def detect_version(i):
        sys.spy("detect_version", i)
        return {"return": 0, "version": "1.2"}
"""


def test_hooks_find_everything_that_recipes_read(home: TemporaryHome, spy: list[tuple[str, dict[str, Any]]]) -> None:
    meta = {"customize": {"own": 1}, "variations": {"v": {}, "d": {"group": "g", "default": True}}}
    folder = home.recipe("get-x", meta, customize=SPYING)
    home.run("get,x,_v", env={"CM_A": "1"}, state={"s": 1}, verify="no")
    assert [name for name, _ in spy] == ["preprocess", "postprocess"]
    for _, i in spy:
        assert set(i) >= KEYS_THAT_RECIPES_READ
        assert i["env"]["CM_A"] == "1"
        assert i["state"] == {"s": 1}
        assert i["input"]["verify"] == "no"
        assert i["script_tags"] == ["get", "x"]
        assert i["variation_tags"] == ["v"], "explicit ones only"
        assert i["customize"] == {"own": 1}
        assert (i["artifact"].path, i["artifact"].repo_path) == (str(folder), str(home.repo))
        assert i["artifact"].meta["uid"] == uid_of("get-x")
        assert i["os_info"]["platform"] == ("darwin" if sys.platform == "darwin" else "linux")
        run_script_input = i["run_script_input"]
        assert run_script_input["path"] == str(folder)
        assert run_script_input["script_name"] == "run"
        assert run_script_input["run_state"]["script_variation_tags"] == ["v"]
        assert i["env"]["CM_TMP_CURRENT_SCRIPT_PATH"] == str(folder)
        assert i["env"]["CM_TMP_CURRENT_PATH"] == i["env"]["CM_TMP_CURRENT_SCRIPT_WORK_PATH"] == str(home.work)


def test_a_cached_recipe_is_told_its_entry_as_working_folder(
    home: TemporaryHome, spy: list[tuple[str, dict[str, Any]]]
) -> None:
    home.recipe("get-x", {"cache": True}, customize=SPYING)
    home.run("get,x")
    env = spy[0][1]["env"]
    assert env["CM_TMP_CURRENT_SCRIPT_WORK_PATH"] == str(home.entry("get-x"))
    assert env["CM_TMP_CURRENT_PATH"] == str(home.work)


def test_the_lines_of_a_deeper_recipe_are_indented(home: TemporaryHome, spy: list[tuple[str, dict[str, Any]]]) -> None:
    home.recipe("get-x", customize=SPYING)
    home.recipe("get-p", {"deps": [{"tags": "get,x"}]}, customize=SPYING)
    home.run("get,p")
    spaces = [i["recursion_spaces"] for name, i in spy if name == "preprocess"]
    assert len(spaces[0]) > len(spaces[1])


def test_a_hook_sees_the_dependencies_as_they_are_after_overrides(
    home: TemporaryHome, spy: list[tuple[str, dict[str, Any]]]
) -> None:
    home.recipe("get-y", {"variations": {"v": {}}})
    home.recipe("get-x", {"deps": [{"tags": "get,y", "names": ["y"]}]}, customize=SPYING)
    home.run("get,x", adr={"y": {"tags": "_v"}})
    assert spy[0][1]["meta"]["deps"][0]["tags"] == "get,y,_v"


SPOIL = """
    def preprocess(i):
        i["os_info"]["platform"] = i["os_info"]["env"]["spoilt"] = "spoilt"
        i["run_script_input"]["os_info"]["bits"] = "spoilt"
        i["artifact"].meta["customize"]["words"].append("spoilt")
        i["customize"]["words"].append("spoilt")
        i["meta"]["env"]["CM_A"] = "spoilt"
        i["const_state"]["deep"]["list"].append("spoilt")
        i["input"]["nested"]["list"].append("spoilt")
        return {"return": 0}
"""


def test_what_a_hook_changes_in_its_input_reaches_no_other_recipe(
    home: TemporaryHome, spy: list[tuple[str, dict[str, Any]]]
) -> None:
    home.recipe("get-x", customize=SPYING)
    meta = {
        "customize": {"words": ["own"]},
        "env": {"CM_A": "1"},
        "new_env_keys": ["CM_A"],
        "const_state": {"deep": {"list": ["own"]}},
        "new_state_keys": ["deep"],
    }
    home.recipe("get-spoil", meta, customize=SPOIL)
    home.recipe(
        "get-p", {"deps": [{"tags": "get,spoil", "nested": {"list": ["own"]}} for _ in range(2)]}, customize=SPYING
    )
    given = {"list": ["own"]}
    home.run("get,p", nested=given)
    answer = home.run("get,spoil", nested=given)
    assert (given, answer["new_env"]) == ({"list": ["own"]}, {"CM_A": "1"})
    assert answer["new_state"]["deep"]["list"] == ["own", "spoilt"], "its own step's constants, once"
    home.run("get,x")
    seen = spy[-1][1]
    assert "spoilt" not in json.dumps([seen["os_info"], seen["run_script_input"]["os_info"], seen["artifact"].meta])


def test_a_dependency_list_that_a_hook_breaks_is_an_error_that_names_it(home: TemporaryHome) -> None:
    customize = """
        def preprocess(i):
            i["meta"]["prehook_deps"] = ["get,y"]
            return {"return": 0}
    """
    home.recipe("get-x", customize=customize)
    with pytest.raises(MetaError, match="get-x: prehook_deps"):
        home.run("get,x")


def test_a_hook_may_clear_the_environment_of_the_process(home: TemporaryHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", type(os.environ)({}, *(str.encode, bytes.decode) * 2))
    clears = "import os\ndef preprocess(i):\n    os.environ.clear()\n    return {'return': 0}\n"
    home.recipe("get-x", {"cache": True}, customize=clears)
    assert home.run("get,x")["cache_entry"]


def test_a_version_from_the_last_hook_counts(home: TemporaryHome) -> None:
    customize = """
        def preprocess(i):
            return {"return": 0, "version": "1", "add_extra_cache_tags": ["a", "b"]}
        def postprocess(i):
            return {"return": 0, "version": "2", "add_extra_cache_tags": ["b", "c"]}
    """
    home.recipe("get-x", {"cache": True}, customize=customize)
    assert home.run("get,x")["version"] == "2"
    (entry,) = home.entries()
    assert entry["version"] == "2"
    assert {"a", "b", "c", "version-2"} <= set(entry["tags"])
    assert "version-1" not in entry["tags"]


def test_a_constant_beats_what_hooks_scripts_and_dependencies_say(home: TemporaryHome) -> None:
    home.recipe("get-y", {"env": {"CM_X": "from y"}, "new_env_keys": ["CM_X"]})
    customize = """
        def preprocess(i):
            assert i["env"]["CM_X"] == "user", i["env"]["CM_X"]
            i["env"]["CM_X"] = "from hook"
            return {"return": 0}
    """
    meta = {"deps": [{"tags": "get,y"}], "new_env_keys": ["CM_X"]}
    run_sh = 'test "$CM_X" = user && echo CM_X=from-script > tmp-run-env.out'
    home.recipe("get-x", meta, customize=customize, run_sh=run_sh)
    assert home.run("get,x", const={"CM_X": "user"})["new_env"] == {"CM_X": "user"}


def test_lists_grow_behind_and_give_only_what_is_new(home: TemporaryHome) -> None:
    for name in "ab":
        change = f"i['env'].setdefault('+PATH', []).insert(0, '/{name}')"
        customize = f"def preprocess(i):\n    {change}\n    return {{'return': 0}}\n"
        home.recipe(f"get-{name}", {"new_env_keys": ["+PATH"]}, customize=customize)
    meta = {"deps": [{"tags": "get,a"}, {"tags": "get,b"}, {"tags": "get,a"}], "new_env_keys": ["+PATH", "CM_X"]}
    home.recipe("get-x", meta, run_sh='echo "CM_X=$PATH" > tmp-run-env.out')
    answer = home.run("get,x", env={"+PATH": ["/given"]})
    assert answer["new_env"]["+PATH"] == ["/a", "/b"]
    assert answer["env"]["+PATH"] == ["/given", "/a", "/b"]
    assert answer["new_env"]["CM_X"] == "/given:/a:/b:" + os.environ["PATH"]


def test_os_info_has_what_recipes_read() -> None:
    info = os_info()
    assert info["platform"] in ("linux", "darwin", "windows")
    assert info["bits"] in ("32", "64")
    assert info["python_bits"] == str(64 if sys.maxsize > 2**32 else 32)
    assert {"run_bat", "bat_ext", "env_separator", "set_env", "env_var", "start_script"} <= set(info)


@pytest.mark.parametrize("key", ["http_proxy", "HTTPS_PROXY", "no_proxy", "GH_TOKEN"])
def test_proxies_and_the_github_token_of_the_user_are_passed_on(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv(key, "value")
    assert passed_on_env()[key] == "value"
    monkeypatch.setenv(key, "")
    assert key not in passed_on_env()


def test_the_github_token_of_the_user_is_given_under_cms_name_only(
    home: TemporaryHome, spy: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GH_TOKEN", "from-environment")
    home.recipe("get-x", customize=SPYING)
    home.run("get,x")
    home.run("get,x", env={"CM_GH_TOKEN": "given"})
    tokens = [(i["env"].get("GH_TOKEN"), i["env"]["CM_GH_TOKEN"]) for name, i in spy if name == "preprocess"]
    assert tokens == [(None, "from-environment"), (None, "given")]


def test_files_in_a_recipe_folder_are_not_changed_by_running_it(home: TemporaryHome) -> None:
    folder = home.recipe("get-x", customize="def preprocess(i):\n    return {'return': 0}\n", run_sh="true")

    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"}

    before = files()
    home.run("get,x")
    assert files() == before

"""Which files say what a recipe is, what it inherits, and recipes of CM's successor."""

import json
import os
import re
import shutil
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers import CHECKOUT, TemporaryHome, uid_of
from recipe_engine.disk.digests import recipe_digest, recipe_files, recipe_stamp
from recipe_engine.disk.metadata import MAX_BASES, MAX_META_BYTES, MissingBase, meta_files, read_meta
from recipe_engine.rules.conditions import decide
from recipe_engine.rules.errors import MetaError, RecipeError, VariationError
from recipe_engine.rules.schema import apply_overrides, parse_condition_blocks, parse_dependency


def write(root: Path, name: str, /, **files: Any) -> Path:
    """A recipe folder; a mapping is written as JSON, a text as it is. ``__`` in a name stands for its dot."""
    folder = root / "script" / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / file.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


# --- which files ---


@pytest.mark.parametrize(
    ("files", "name", "values"),
    [
        ({"_cm__yaml": "a: 1\nb: 1\n"}, "_cm.yaml", {"a": 1, "b": 1}),
        ({"_cm__json": {"a": 1}}, "_cm.json", {"a": 1}),
        ({"_cm__yaml": "a: {x: 1}\nb: 1\n", "_cm__json": {"a": {"y": 2}}}, "_cm.yaml", {"a": {"y": 2}, "b": 1}),
        ({"meta__yaml": "a: 1\n"}, "meta.yaml", {"a": 1}),
        ({"_cm__yaml": "a: 1\n", "meta__yaml": "a: 2\nb: 2\n"}, "_cm.yaml", {"a": 1}),
        ({"README__md": "text"}, "_cm.yaml", {}),
    ],
)
def test_json_replaces_keys_of_yaml_and_the_successors_file_counts_only_alone(
    tmp_path: Path, files: dict[str, Any], name: str, values: dict[str, Any]
) -> None:
    found = read_meta(write(tmp_path, "x", **files))
    assert (found.name, found.values) == (name, values)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("_cm__yaml", "- a\n", "expected a mapping, found list"),
        ("_cm__yaml", "", "expected a mapping, found NoneType"),
        ("_cm__yaml", "a: [", "not valid YAML: "),
        (
            "_cm__yaml",
            "a: b\n\tc: d\n",
            "not valid YAML: while scanning a plain scalar at line 1, column 4 found a tab character that violates "
            "indentation at line 2, column 1",
        ),
        ("_cm__json", "{", "not valid JSON: "),
        ("meta__yaml", "a: b: c", "not valid YAML: "),
    ],
)
def test_a_file_that_is_no_mapping_is_named(tmp_path: Path, file: str, text: str, message: str) -> None:
    folder = write(tmp_path, "x", **{file: text})
    with pytest.raises(MetaError) as caught:
        read_meta(folder)
    assert str(caught.value).startswith(f"{meta_files(folder)[0]}: {message}")


# --- what it inherits ---

BASE = {"alias": "old", "uid": "b" * 16, "tags": ["a"], "env": {"X": "1", "Y": "1"}, "cache": True}


@pytest.mark.parametrize(
    "wanted", ["script::old-folder", "old-folder", "script::old", "old", "script::" + "b" * 16, "script,5b4e::old,bb"]
)
def test_a_base_is_found_by_folder_alias_or_uid(tmp_path: Path, wanted: str) -> None:
    write(tmp_path, "old-folder", _cm__json=BASE)
    folder = write(tmp_path, "new", _cm__json={"uid": "c" * 16, "_base": wanted})
    assert read_meta(folder).values["env"] == BASE["env"]


def test_mappings_are_merged_lists_appended_and_the_names_are_its_own(tmp_path: Path) -> None:
    base = write(tmp_path, "old", _cm__json=BASE)
    own = {"uid": "c" * 16, "_base": "old", "tags": ["a", "b"], "env": {"Y": "2"}, "cache": False}
    folder = write(tmp_path, "new", _cm__json=own)
    found = read_meta(folder)
    assert found.values == {"uid": "c" * 16, "tags": ["a", "b"], "env": {"X": "1", "Y": "2"}, "cache": False}
    assert found.files == (folder / "_cm.json", base / "_cm.json")


@pytest.mark.parametrize("wanted", ["old", "script::old"])
@pytest.mark.parametrize("file", ["_cm.json", "_cm.yaml"])
def test_a_recipe_is_another_one_when_what_it_inherits_is(tmp_path: Path, wanted: str, file: str) -> None:
    oldest = write(tmp_path, "oldest", _cm__json=BASE)
    write(tmp_path, "old", _cm__yaml="alias: old\n_base: oldest\n")
    own = {"uid": "c" * 16, "_base": wanted}
    folder = write(
        tmp_path, "new", **{file.replace(".", "__"): own if file == "_cm.json" else f"uid: c\n_base: {wanted}\n"}
    )
    before = recipe_digest(folder), recipe_stamp(folder)
    assert set(recipe_files(folder)) == {"../old/_cm.yaml", "../oldest/_cm.json", file}
    (oldest / "_cm.json").write_text(json.dumps({**BASE, "env": {"X": "other"}}))
    assert recipe_digest(folder) != before[0]
    assert recipe_stamp(folder) != before[1]


def test_a_base_that_is_called_by_its_folder_is_found_without_reading_other_recipes(tmp_path: Path) -> None:
    write(tmp_path, "broken", _cm__yaml="a: [")
    write(tmp_path, "old", _cm__json=BASE)
    assert read_meta(write(tmp_path, "new", _cm__yaml="uid: c\n_base: script::old\n")).values["uid"] == "c"


def test_a_base_in_the_own_repository_goes_before_one_in_another(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    write(there, "old", _cm__json={"env": {"FROM": "there"}})
    write(there, "only-there", _cm__json={"env": {"FROM": "there"}})
    write(here, "old", _cm__json={"env": {"FROM": "here"}})
    new = write(here, "new", _cm__json={"_base": "old"})
    other = write(here, "other", _cm__json={"_base": "only-there"})
    assert read_meta(new, [there, here]).values["env"] == {"FROM": "here"}
    assert read_meta(other, [there, here]).values["env"] == {"FROM": "there"}


def test_a_missing_base_names_it_and_the_files_that_would_mend_it(tmp_path: Path) -> None:
    folder = write(tmp_path, "new", _cm__json={"_base": "script::nobody"})
    with pytest.raises(MissingBase, match="'script::nobody' is not in any registered repository") as caught:
        read_meta(folder)
    assert tmp_path / "script" / "nobody" / "_cm.yaml" in caught.value.files


def test_a_recipe_is_no_base_of_itself_and_a_ring_ends(tmp_path: Path) -> None:
    alone = write(tmp_path, "alone", _cm__json={"_base": "alone"})
    with pytest.raises(MissingBase):
        read_meta(alone)
    write(tmp_path, "one", _cm__json={"_base": "two"})
    ring = write(tmp_path, "two", _cm__json={"_base": "one"})
    with pytest.raises(MetaError, match=f"more than {MAX_BASES} recipes inherit"):
        read_meta(ring)


def test_an_edited_base_changes_what_inherits_from_it(home: TemporaryHome) -> None:
    home.recipe("base-x", {"env": {"CM_X": "1"}, "new_env_keys": ["CM_X"]})
    home.recipe("new-y", {"_base": "base-x"})
    assert home.run("new,y")["new_env"] == {"CM_X": "1"}
    home.recipe("base-x", {"env": {"CM_X": "twenty"}, "new_env_keys": ["CM_X"]})
    assert home.run("new,y")["new_env"] == {"CM_X": "twenty"}


def test_a_recipe_whose_condition_makes_no_sense_stops_nobody_else(home: TemporaryHome) -> None:
    home.recipe("bad-x", {"deps": [{"tags": "good,x", "enable_if_env": {"CM_X": {"a": 1}}}]})
    home.recipe("good-x", {"env": {"CM_X": "1"}, "new_env_keys": ["CM_X"]})
    assert home.run("good,x")["new_env"] == {"CM_X": "1"}
    with pytest.raises(RecipeError):
        home.run("bad,x")


# --- recipes of CM's successor ---


def successor(home: TemporaryHome, alias: str, yaml: str, **files: str) -> Path:
    """A recipe with a ``meta.yaml``; ``customize`` and ``run_sh`` are its code."""
    head = (
        f'alias: {alias}\nuid: "{uid_of(alias)}"\nautomation_uid: 5b4e0237da074764\ntags: [{alias.replace("-", ",")}]\n'
    )
    names = {"customize": "customize.py", "run_sh": "run.sh"}
    texts = {names.get(name, name.replace("__", ".")): textwrap.dedent(text) for name, text in files.items()}
    folder = home.repo / "script" / alias
    folder.mkdir(parents=True)
    for name, text in {**texts, "meta.yaml": head + textwrap.dedent(yaml)}.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_the_engines_own_keys_have_the_prefix_that_the_recipe_knows(home: TemporaryHome) -> None:
    successor(
        home,
        "new-x",
        """
        new_env_keys: [MLC_X_*]
        default_version: "1.5"
        """,
        customize="""
        def preprocess(i):
            env = i["env"]
            for name in ("QUIET", "VERSION", "TMP_CURRENT_SCRIPT_PATH", "NAME", "TMP_PATH", "TMP_PIP_VERSION_STRING"):
                env["MLC_X_" + name] = env.get("MLC_" + name, "none")
            return {"return": 0}
        """,
        run_sh='echo "MLC_X_SHELL=$MLC_VERSION $(basename "$MLC_TMP_CURRENT_SCRIPT_PATH")" >tmp-run-env.out\n',
    )
    given = home.run("new,x", name="n", path="/a")["new_env"]
    assert given == {
        "MLC_X_QUIET": "yes",
        "MLC_X_VERSION": "1.5",
        "MLC_X_TMP_CURRENT_SCRIPT_PATH": str(home.repo / "script" / "new-x"),
        "MLC_X_NAME": "n",
        "MLC_X_TMP_PATH": "/a",
        "MLC_X_TMP_PIP_VERSION_STRING": "==1.5",
        "MLC_X_SHELL": "1.5 new-x",
    }


def test_a_version_in_env_is_asked_for_by_the_recipes_own_prefix(home: TemporaryHome) -> None:
    body = """
    new_env_keys: [MLC_X]
    versions: {"2.0": {env: {MLC_X: two}}}
    """
    successor(home, "new-x", body)
    assert home.run("new,x", env={"MLC_VERSION": "2.0"})["new_env"] == {"MLC_X": "two"}


VERSIONED = """
    cache: true
    new_env_keys: [MLC_ROUND]
    variations:
      "version.#": {group: version, env: {MLC_ROUND: "any #"}}
      version.4_1: {group: version, env: {MLC_ROUND: four}}
      version.6_0: {group: version, default: true, env: {MLC_ROUND: six}}
"""


@pytest.mark.parametrize(
    ("words", "given", "expected"),
    [
        ("", {}, "six"),
        ("", {"version": "4_1"}, "four"),
        ("", {"version": "5_0"}, "any 5_0"),
        ("", {"env": {"MLC_VERSION": "4_1"}}, "four"),
        (",_version.4_1", {"version": "4_1"}, "four"),
        (",_version.4_1", {}, "four"),
    ],
)
def test_a_version_selects_the_variation_of_that_name(
    home: TemporaryHome, words: str, given: dict[str, Any], expected: str
) -> None:
    successor(home, "get-round", VERSIONED)
    answer = home.run("get,round" + words, **given)
    assert answer["new_env"] == {"MLC_ROUND": expected}
    assert home.run("get,round" + words, **given) == answer
    assert len(home.entries("get-round")) == 1


def test_a_version_selects_the_variation_of_that_name_in_a_dependency_too(home: TemporaryHome) -> None:
    successor(home, "get-round", VERSIONED)
    deps = "deps: [{tags: 'get,round', names: [round], version: '4_1'}]"
    successor(home, "get-top", deps + "\nnew_env_keys: [MLC_ROUND]\n")
    assert home.run("get,top")["new_env"] == {"MLC_ROUND": "four"}
    assert home.run("get,top", adr={"round": {"version": "5_0"}})["new_env"] == {"MLC_ROUND": "any 5_0"}
    tags = [entry["tags"] for entry in home.entries("get-round")]
    assert sorted(tag for words in tags for tag in words if tag.startswith("_")) == ["_version.4_1", "_version.5_0"]


def test_a_version_and_another_variation_of_the_group_contradict_each_other(home: TemporaryHome) -> None:
    successor(home, "get-round", VERSIONED)
    with pytest.raises(VariationError, match="several variations of the group 'version' are on"):
        home.run("get,round,_version.6_0", version="4_1")


def test_a_version_selects_no_variation_of_a_recipe_of_cm(home: TemporaryHome) -> None:
    variations = {"version.4_1": {"group": "v", "env": {"CM_ROUND": "four"}}, "version.#": {"group": "v"}}
    home.recipe("get-round", {"variations": variations, "new_env_keys": ["CM_ROUND"]})
    assert home.run("get,round", version="4_1")["new_env"] == {}


def test_an_entry_of_the_successor_carries_every_variation_that_was_applied_as_a_tag(home: TemporaryHome) -> None:
    successor(home, "get-round", VERSIONED)
    home.run("get,round")
    (entry,) = home.entries("get-round")
    assert [tag for tag in entry["tags"] if tag.startswith("_")] == ["_version.6_0"]


def test_recipes_of_the_successor_know_the_folder_where_the_user_called(home: TemporaryHome) -> None:
    body = "cache: true\nenv: {MLC_SEEN: <<<MLC_USER_RUN_DIR>>>}\nnew_env_keys: [MLC_SEEN]\n"
    successor(home, "get-inner", body)
    successor(home, "get-top", "cache: true\ndeps: [{tags: 'get,inner'}]\nnew_env_keys: [MLC_SEEN]\n")
    assert home.run("get,top")["new_env"] == {"MLC_SEEN": str(home.work)}
    given = home.run("get,inner", new=True, env={"MLC_USER_RUN_DIR": "/given"})
    assert given["new_env"] == {"MLC_SEEN": "/given"}


def test_keys_of_the_engine_do_not_reach_a_dependency(home: TemporaryHome) -> None:
    successor(home, "new-x", "deps: [{tags: 'inner,x'}]\nnew_env_keys: [MLC_SEEN]\n")
    successor(
        home,
        "inner-x",
        "new_env_keys: [MLC_SEEN]\n",
        customize="""
        def preprocess(i):
            keys = ("MLC_VERSION", "MLC_NAME", "MLC_TMP_PATH", "MLC_INPUT")
            i["env"]["MLC_SEEN"] = ",".join(key for key in keys if key in i["env"])
            return {"return": 0}
        """,
    )
    assert home.run("new,x", version="1", name="n", path="/a", input="b")["new_env"] == {"MLC_SEEN": ""}


def test_predeps_runs_before_the_dependencies_and_can_be_switched_off(home: TemporaryHome) -> None:
    home.recipe("pick-x", {"variations": {"v": {"env": {"MLC_X": "v"}}}, "new_env_keys": ["MLC_X"]})
    code = """
    def predeps(i):
        i["env"]["MLC_PICK"] = "_v"
        return {"return": 0}
    """
    body = "deps: [{tags: 'pick,x', update_tags_from_env: [MLC_PICK]}]\nnew_env_keys: [MLC_X]\n"
    successor(home, "with-predeps", body, customize=code)
    successor(home, "without-predeps", body + "predeps: false\n", customize=code)
    assert home.run("with,predeps")["new_env"] == {"MLC_X": "v"}
    assert home.run("without,predeps")["new_env"] == {}
    assert home.run("with,predeps", fake_run=True)["new_env"] == {}


@pytest.mark.parametrize(
    ("env", "files", "chosen"),
    [
        ({}, ["run.sh", "run-linux.sh"], "run.sh"),
        ({"MLC_HOST_OS_TYPE": "linux"}, ["run.sh", "run-linux.sh"], "run-linux.sh"),
        ({"MLC_HOST_OS_FLAVOR_LIKE": "debian"}, ["run.sh", "run-debian.sh"], "run-debian.sh"),
        ({"CM_HOST_OS_FLAVOR": "ubuntu"}, ["run.sh", "run-ubuntu.sh"], "run.sh"),
        (
            {"MLC_HOST_OS_FLAVOR": "ubuntu", "MLC_HOST_OS_FLAVOR_LIKE": "debian"},
            ["run-debian.sh", "run-ubuntu.sh"],
            "run-ubuntu.sh",
        ),
    ],
)
def test_the_native_script_is_chosen_by_the_successors_rules(
    home: TemporaryHome, env: dict[str, str], files: list[str], chosen: str
) -> None:
    texts = {name.replace(".", "__"): f'echo "MLC_RAN={name}" >tmp-run-env.out\n' for name in files}
    successor(home, "new-x", "new_env_keys: [MLC_RAN]\n", **texts)
    assert home.run("new,x", env=env)["new_env"] == {"MLC_RAN": chosen}


def test_a_list_in_env_adds_one_tag_for_each_item_and_tags_may_hang_on_conditions(home: TemporaryHome) -> None:
    variations = {"a": {"env": {"MLC_A": "1"}}, "b": {"env": {"MLC_B": "1"}}, "c": {"env": {"MLC_C": "1"}}}
    home.recipe("pick-x", {"variations": variations, "new_env_keys": ["MLC_A", "MLC_B", "MLC_C"]})
    body = """
    new_env_keys: [MLC_A, MLC_B, MLC_C]
    env: {+MLC_PICK: [a, b], MLC_ASK: 'yes'}
    deps:
    - tags: pick,x
      update_tags_from_env_with_prefix: {_: [+MLC_PICK]}
      update_tags_if_env: {_c: {enable_if_env: {MLC_ASK: ['yes']}}}
    """
    successor(home, "new-x", body)
    assert home.run("new,x")["new_env"] == {"MLC_A": "1", "MLC_B": "1", "MLC_C": "1"}


def test_a_relative_path_input_counts_from_the_folder_of_the_call(home: TemporaryHome) -> None:
    body = """
    cache: true
    input_mapping: {folder: MLC_FOLDER}
    input_description: {folder: {is_path: true}}
    new_env_keys: [MLC_FOLDER]
    """
    successor(home, "new-x", body)
    assert home.run("new,x", folder="sub")["new_env"] == {"MLC_FOLDER": str(home.work / "sub")}
    assert home.run("new,x", folder="/abs")["new_env"] == {"MLC_FOLDER": "/abs"}


@pytest.mark.parametrize(("path", "kind"), [("pipe", "a pipe"), ("/dev/zero", "a device")])
def test_a_pipe_or_a_device_as_a_path_input_is_refused_before_anything_opens_it(
    home: TemporaryHome, path: str, kind: str
) -> None:
    body = """
    input_mapping: {folder: MLC_FOLDER}
    input_description: {folder: {is_path: true}}
    """
    successor(home, "new-x", body, run_sh='cat "$MLC_FOLDER"')
    os.mkfifo(home.work / "pipe")
    words = f"--folder={home.work / path} is {kind}, allowed: a regular file or a folder"
    with pytest.raises(RecipeError, match=re.escape(words)):
        home.run("new,x", folder=path)


def test_constants_that_a_hook_sets_hold(home: TemporaryHome) -> None:
    code = """
    def preprocess(i):
        i["const"]["MLC_X"] = "kept"
        return {"return": 0}
    """
    successor(home, "new-x", "new_env_keys: [MLC_X]\n", customize=code, run_sh='echo "MLC_X=lost" >tmp-run-env.out\n')
    assert home.run("new,x")["new_env"] == {"MLC_X": "kept"}


IMPORTS = """
import mlc
from mlc import utils
from mlc.utils import load_json
from utils import *

def preprocess(i):
    env = i["env"]
    utils.save_json("made.json", {"a": 1})
    env["MLC_X_JSON"] = str(load_json("made.json")["meta"])
    env["MLC_X_TRUE"] = f"{is_true('Yes')} {is_true('2')}"
    asked = {"action": "run", "target": "script", "tags": "inner,x", "quiet": True}
    for name, object in (("MLC", mlc), ("ACTION", i["automation"].action_object)):
        r = object.access(dict(asked))
        if r["return"] > 0:
            return r
        env["MLC_X_" + name] = r["new_env"]["MLC_INNER"]
    i["automation"].logger.info("told by a recipe")
    return {"return": 0}
"""


@pytest.mark.parametrize("helpers", ["", "def is_true(value):\n    return 'its own'\n"])
def test_a_hook_imports_what_the_successor_offers_without_its_package(home: TemporaryHome, helpers: str) -> None:
    """In a real ``cm``, with the repository's own utils.py and without it."""
    if helpers:
        (home.repo / "automation").mkdir()
        (home.repo / "automation" / "utils.py").write_text("from mlc.utils import *\n" + helpers, encoding="utf-8")
    successor(home, "inner-x", "env: {MLC_INNER: ours}\nnew_env_keys: [MLC_INNER]\n")
    successor(home, "new-x", "new_env_keys: [MLC_X_*]\n", customize=IMPORTS)
    done = home.run_cm("new,x")
    assert done.code == 0, done.stderr + done.stdout
    assert done.answer["new_env"] == {
        "MLC_X_JSON": "{'a': 1}",
        "MLC_X_TRUE": "its own its own" if helpers else "True False",
        "MLC_X_MLC": "ours",
        "MLC_X_ACTION": "ours",
    }
    assert "told by a recipe" in done.stderr


WHO = """
from utils import who

def preprocess(i):
    import utils  # as late as it gets
    i["env"]["MLC_{0}"] = who + utils.who
    return {{"return": 0}}
"""


def test_each_successors_repository_has_its_own_utils(home: TemporaryHome) -> None:
    """In a real ``cm``: one run with recipes of two repositories, each called twice."""
    first, second = home.repo, home.folder / "second"
    (second / "script").mkdir(parents=True)
    (second / "cmr.yaml").write_text('alias: second\nuid: "fedcba9876543210"\n', encoding="utf-8")
    home.register(CHECKOUT, first, second)
    for repo, name in ((second, "second"), (first, "first")):
        home.repo = repo
        (repo / "automation").mkdir()
        (repo / "automation" / "utils.py").write_text(f"who = '{name}'\n", encoding="utf-8")
        successor(home, f"of-{name}", f"new_env_keys: [MLC_{name.upper()}]\n", customize=WHO.format(name.upper()))
    deps = "".join(f"- {{tags: 'of,{name}'}}\n" for name in ("first", "second", "first", "second"))
    successor(home, "new-x", f"deps:\n{deps}new_env_keys: [MLC_FIRST, MLC_SECOND]\n")
    done = home.run_cm("new,x")
    assert done.code == 0, done.stderr + done.stdout
    assert done.answer["new_env"] == {"MLC_FIRST": "firstfirst", "MLC_SECOND": "secondsecond"}


@pytest.mark.parametrize("first", ["cm", "successor"])
def test_recipes_of_both_kinds_with_one_uid_never_share_an_entry(home: TemporaryHome, first: str) -> None:
    """Most recipes of the successor kept the uid and the tags of CM's, with other env keys."""
    cm = {"cache": True, "env": {"CM_TOOL": "cm"}, "new_env_keys": ["CM_TOOL"]}
    given = {}
    for kind in (first, *({"cm", "successor"} - {first}), first):
        shutil.rmtree(home.repo / "script" / "tool-x", ignore_errors=True)
        if kind == "cm":
            home.recipe("tool-x", cm)
        else:
            successor(home, "tool-x", "cache: true\nenv: {MLC_TOOL: mlc}\nnew_env_keys: [MLC_TOOL]\n")
        given[kind] = home.run("tool,x")["new_env"]
    assert given == {"cm": {"CM_TOOL": "cm"}, "successor": {"MLC_TOOL": "mlc"}}
    assert len(home.entries("tool-x")) == 2
    assert any("reused from the cache" in line for line in home.story), "each keeps its own"


def test_a_mapping_in_the_place_of_a_value_never_holds_in_a_successors_recipe() -> None:
    block = {"enable_if_env": {"MLC_OS": ["linux"], "adr": {"compiler": {"tags": "gcc"}}}}
    (condition,) = parse_condition_blocks(block, "x/meta.yaml: update_meta_if_env[0]")
    assert condition.wanted == (("MLC_OS", ("linux",)), ("adr", ()))
    assert decide((condition,), {"MLC_OS": "linux", "adr": "x"}).answer == "no"
    with pytest.raises(MetaError):
        parse_condition_blocks(block, "x/_cm.yaml: update_meta_if_env[0]")
    entry = parse_dependency({"tags": "get,y", "names": ["y"], **block}, "x/meta.yaml: deps[0]")
    (changed,) = apply_overrides([entry], {"y": {"tags": "_z"}}, {})
    assert (changed.tags_text, changed.conditions) == ("get,y,_z", (condition,))


# --- files that expand ---

LEVELS = 10


def _bomb(leaf: str, level: str) -> str:
    """Anchors a0 to a9, each of which holds the one before ten times."""
    lines = [f"a0: &a0 {leaf}"]
    lines += [f"a{n}: &a{n} {level.format(', '.join([f'*a{n - 1}'] * 10))}" for n in range(1, LEVELS)]
    return "\n".join(lines) + "\n"


BOMBS = {
    "lists": _bomb("[lol, lol]", "[{}]") + "tags: [big, bomb]\n",
    "env": _bomb("[lol]", "[{}]") + f"tags: [big, bomb]\nenv: {{CM_X: *a{LEVELS - 1}}}\n",
    "deps": _bomb("[{tags: 'good,x'}]", "[{}]") + f"tags: [big, bomb]\ndeps: *a{LEVELS - 1}\n",
    "variations": _bomb("{env: {CM_X: '1'}}", "{{v: [{}]}}") + f"tags: [big, bomb]\nvariations: *a{LEVELS - 1}\n",
    "tags": _bomb("[lol]", "[{}]") + f"tags: *a{LEVELS - 1}\n",
    "merge keys": _bomb("{x: 1}", "{{<<: [{}]}}") + "tags: [big, bomb]\n",
    "one long file": "tags: [big, bomb]\nenv: {CM_X: '" + "x" * MAX_META_BYTES + "'}\n",
}


MERGES_EACH_KEY_ONCE = tuple(map(int, yaml.__version__.split(".")[:3])) >= (6, 0, 4)
"""From PyYAML 6.0.4 on, a mapping that is merged a hundred times is as small as one that is merged once."""


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_a_recipe_that_expands_without_measure_is_left_out_and_named(home: TemporaryHome, text: str) -> None:
    home.recipe("good-x", {"env": {"CM_X": "1"}, "new_env_keys": ["CM_X"]})
    folder = home.repo / "script" / "big-bomb"
    folder.mkdir()
    head = f"alias: big-bomb\nautomation_alias: script\nautomation_uid: 5b4e0237da074764\nuid: '{uid_of('bomb')}'\n"
    (folder / "_cm.yaml").write_text(head + text, encoding="utf-8")
    assert home.run("good,x")["new_env"] == {"CM_X": "1"}
    if text == BOMBS["merge keys"] and MERGES_EACH_KEY_ONCE:
        assert home.run("big,bomb")["return"] == 0
        return
    with pytest.raises(RecipeError) as caught:
        home.run("big,bomb")
    assert str(folder / "_cm.yaml") in str(caught.value) + caught.value.hint
    assert f"the limit is {MAX_META_BYTES}" in str(caught.value) + caught.value.hint


def test_the_limit_is_far_above_anchors_as_people_use_them(tmp_path: Path) -> None:
    text = "a: &a {env: {CM_X: '1'}, deps: [{tags: 'x,y'}]}\nvariations:\n" + "".join(
        f"  v{n}:\n    <<: *a\n    b: *a\n" for n in range(500)
    )
    found = read_meta(write(tmp_path, "x", _cm__yaml=text)).values
    assert len(found["variations"]) == 500
    assert found["variations"]["v499"]["deps"] == [{"tags": "x,y"}]

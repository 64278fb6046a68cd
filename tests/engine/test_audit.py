"""Each kind of mistake is found where it stands, sound recipes give no finding, and our own recipes are sound."""

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers import CHECKOUT, TemporaryHome
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from recipe_engine.actions.adapter import Home
from recipe_engine.actions.scaffold import TEMPLATES, add_action
from recipe_engine.auditing.audit import RULES, audit_action
from recipe_engine.auditing.findings import CODES
from recipe_engine.auditing.recipes import places_of
from recipe_engine.disk.repos import RepoInfo
from recipe_engine.rules.errors import NotFound, RequestError

WHOLE = {"type": "whole", "env": "CM_N", "desc": "how many"}
GROUP_OF_TWO = {"a": {"group": "g", "default": True}, "b": {"group": "g"}}
ADDRESS = "https://example.org/data.bin"

Case = tuple[str, Mapping[str, Any], Mapping[str, str]]
CASES: list[Case] = [
    ("wrong-type", {"deps": "get,y"}, {}),
    ("wrong-type", {"variations": {"v": {"deps": {"tags": "get,y"}}}}, {}),
    ("wrong-type", {"versions": {"1.0": {"env": ["A"]}}}, {}),
    ("uid-missing", {"uid": ""}, {}),
    ("uid-malformed", {"uid": "ABCDEF0123456789"}, {}),
    ("uid-unquoted", {"uid": 1234567890123456}, {}),
    ("alias-folder", {"alias": "get-other"}, {}),
    ("tags-missing", {"tags": []}, {}),
    ("tag-unusable", {"tags": ["get", "_x"]}, {}),
    ("tag-unusable", {"tags": ["get", "a,b"]}, {}),
    ("tag-blank", {"tags": ["get", "a b"]}, {}),
    ("tag-repeated", {"tags": ["get", "x", "x"]}, {}),
    ("tags-same", {"tags": ["get", "sound"]}, {}),
    ("uid-repeated", {"uid": "a5ede5ede5ede5ed"}, {}),
    ("alias-repeated", {"alias": "get-sound"}, {}),
    ("key-unknown", {"new_env_kyes": ["CM_X"]}, {}),
    ("key-unknown", {"variations": {"v": {"CM_X": "1"}}}, {}),
    ("input-undescribed", {"input_mapping": {"size": "CM_X"}}, {}),
    ("input-undescribed", {"input_mapping": {"size": "CM_X"}, "input_description": {"size": {"default": 1}}}, {}),
    ("input-unread", {"input_description": {"size": {"desc": "of what"}}}, {}),
    ("input-alias", {"input_description": {"n": WHOLE, "m": {**WHOLE, "env": "CM_M", "aliases": ["n"]}}}, {}),
    ("input-alias", {"input_description": {"n": {**WHOLE, "aliases": ["quiet"]}}}, {}),
    (
        "input-alias",
        {"input_description": {"n": {**WHOLE, "aliases": ["k"]}, "m": {**WHOLE, "env": "CM_M", "aliases": ["k"]}}},
        {},
    ),
    ("input-alias", {"input_description": {"n": {**WHOLE, "aliases": ["k"]}}, "unused_inputs": {"k": "why"}}, {}),
    ("input-twice", {"input_description": {"n": WHOLE, "m": WHOLE}}, {}),
    ("input-type", {"input_description": {"n": WHOLE, "m": {**WHOLE, "type": "path"}}}, {}),
    ("input-default", {"input_description": {"n": {**WHOLE, "default": "all"}}}, {}),
    ("cache-without-keys", {"cache": True}, {}),
    ("keys-wide", {"new_env_keys": ["CM_*"]}, {}),
    ("promise-empty", {"new_env_keys": ["CM_NEVER_SET"]}, {}),
    ("group-two-defaults", {"variations": {**GROUP_OF_TWO, "c": {"group": "g", "default": True}}}, {}),
    ("default-unknown", {"default_variation": "z", "variations": GROUP_OF_TWO}, {}),
    ("default-unknown", {"variations": {**GROUP_OF_TWO, "c": {"default_variations": {"g": "z"}}}}, {}),
    ("default-unknown", {"variations": {**GROUP_OF_TWO, "c": {"default_variations": {"h": "a"}}}}, {}),
    ("alias-unusable", {"variations": {"a": {"alias": "z"}}}, {}),
    ("alias-unusable", {"variations": {**GROUP_OF_TWO, "c": {"alias": "a", "group": "h"}}}, {}),
    ("base-unknown", {"variations": {"a": {"base": ["z"]}}}, {}),
    ("base-cycle", {"variations": {"a": {"base": ["b"]}, "b": {"base": ["a"]}}}, {}),
    ("variation-unusable", {"variations": {"a,": {}}}, {}),
    ("variation-unusable", {"variations": {"a b": {}}}, {}),
    ("variation-alone", {"variations": {**GROUP_OF_TWO, "c": {"base": ["a", "b"]}}}, {}),
    ("combination-dead", {"variations": {"a": {}, "a,z": {}}}, {}),
    ("combination-dead", {"variations": {**GROUP_OF_TWO, "a,b": {}}}, {}),
    ("combination-dead", {"variations": {"n.#": {}, "a": {}, "a,n.#": {}}}, {}),
    (
        "combination-dead",
        {"variations": {"a": {}, "b": {}, "a,b": {}}, "invalid_variation_combinations": [["a", "b"]]},
        {},
    ),
    ("combination-unknown", {"variations": {"a": {}}, "invalid_variation_combinations": [["a", "z"]]}, {}),
    ("dep-without-tags", {"deps": [{"names": ["y"]}]}, {}),
    ("dep-unanswered", {"deps": [{"tags": "get,nothing"}]}, {}),
    ("dep-unanswered", {"variations": {"v": {"post_deps": [{"tags": "get,sound,-get"}]}}}, {}),
    ("dep-unanswered", {"deps": [{"tags": "get,sound,_v,-_v"}]}, {}),
    ("dep-variation-unknown", {"deps": [{"tags": "get,sound,_z"}]}, {}),
    ("dep-open", {"deps": [{"tags": "get,<<<CM_X>>>"}]}, {}),
    ("handle-unknown", {"ad": {"y": {"tags": "_z"}}}, {}),
    ("handle-unused", {"variations": {"v": {"adr": {"y": {"tags": "_z"}}}}}, {}),
    (
        "override-unanswered",
        {"deps": [{"tags": "get,sound", "names": ["y"]}], "variations": {"a": {"adr": {"y": {"tags": "_z"}}}}},
        {},
    ),
    ("override-unanswered", {"deps": [{"tags": "get,sound", "names": ["y"]}], "ad": {"y": {"tags": "_z"}}}, {}),
    ("env-unset", {"deps": [{"tags": "get,sound", "enable_if_env": {"CM_NEVER_SET": ["yes"]}}]}, {}),
    ("env-unset", {"env": {"CM_X": "<<<CM_NEVER_SET>>>/bin"}}, {}),
    ("condition-empty", {"deps": [{"tags": "get,sound", "enable_if_env": {"CM_X": []}}]}, {}),
    ("library-unknown", {"library": ["pkg.x"]}, {}),
    ("library-unknown", {"variations": {"v": {"library": "pkg.x"}}}, {}),
    ("needs-unusable", {"needs": {"disk": 3}}, {}),
    ("needs-unusable", {"needs": {"disk_mb": "much"}}, {}),
    ("needs-unusable", {"needs": {"downloads": [{"what": "x", "sha": "1"}]}}, {}),
    ("needs-unusable", {"needs": {"downloads": [{"what": "x", "sha256": "1"}]}}, {}),
    ("needs-unusable", {"needs": {"downloads": [{"size_bytes": 1}]}}, {}),
    ("download-unchecked", {"needs": {"downloads": [{"what": ADDRESS}]}}, {}),
    ("download-unchecked", {"env": {"CM_DOWNLOAD_URL": ADDRESS}}, {}),
    ("download-unchecked", {"variations": {"v": {"env": {"CM_DOWNLOAD_URL": ADDRESS}}}}, {}),
    ("download-unchecked", {"deps": [{"tags": f"download,file,_url.{ADDRESS}"}]}, {}),
    ("download-unchecked", {}, {"run.sh": f"wget -q {ADDRESS}\n"}),
    ("download-unchecked", {}, {"run.sh": f'cd /tmp && curl -L "{ADDRESS}" > data.bin\n'}),
    ("download-unchecked", {}, {"customize.py": f"import os\n\nos.system('cd x && wget -q {ADDRESS}')\n"}),
    ("download-md5", {"env": {"CM_DOWNLOAD_URL": ADDRESS, "CM_DOWNLOAD_CHECKSUM": "0" * 32}}, {}),
    ("hook-syntax", {}, {"customize.py": "def preprocess(i):\nreturn {}\n"}),
    ("hook-syntax", {}, {"customize.py": "return 1\n"}),
    ("hook-signature", {}, {"customize.py": "def preprocess():\n    return {'return': 0}\n"}),
    ("hook-signature", {}, {"customize.py": "def postprocess(i, j):\n    return {'return': 0}\n"}),
    ("script-missing", {"script_name": "build"}, {}),
    ("script-missing", {"script_name": "build.sh"}, {"build.sh": "true\n"}),
    ("script-missing", {"variations": {"v": {"script_name": "build"}}}, {"builder.sh": "true\n"}),
    ("shell-line-ends", {}, {"run.sh": "echo a\r\necho b\r\n"}),
    ("shell-syntax", {}, {"run.sh": "if true; then\n  echo a\n"}),
    ("shell-eval", {}, {"run.sh": 'eval "$CM_RUN_CMD"\n'}),
    ("shell-unquoted", {}, {"run.sh": "cd x && rm -rf $CM_X/build\n"}),
    ("secret-literal", {"env": {"CM_HF_TOKEN": "hf_0123456789"}}, {}),
    ("secret-literal", {"deps": [{"tags": "get,sound", "env": {"CM_MY_PASSWORD": "open sesame"}}]}, {}),
]
WRITTEN_AS_TEXT: dict[str, str] = {
    "no-parse": "alias: [\n",
    "uid-plain": "alias: get-x\nuid: abcdef0123456789\ntags: [get, x]\n",
    "uid-unquoted": "alias: get-x\nuid: 1234567890123456\ntags: [get, x]\n",
    "key-repeated": 'alias: get-x\nuid: "abcdef0123456789"\ntags: [get, x]\nenv:\n  A: 1\n  A: 2\n',
}
ELSEWHERE = {"readme-missing", "uid-elsewhere"}
"""Codes with a test of their own."""

SOUND: list[tuple[Mapping[str, Any], Mapping[str, str]]] = [
    ({}, {}),
    ({"input_mapping": {"size": "CM_X"}, "input_description": {"size": {"desc": "how many"}}}, {}),
    ({"cache": True, "new_env_keys": ["CM_X"], "env": {"CM_X": "1"}}, {}),
    (
        {"cache": True, "new_env_keys": ["CM_X_*", "+PATH", "<<<CM_NAME>>>", "+ LDFLAGS"]},
        {"customize.py": "KEYS = ['+PATH', '+ LDFLAGS']\n"},
    ),
    ({"variations": {**GROUP_OF_TWO, "c": {"default_variations": {"g": "b"}}, "b,c": {}}}, {}),
    (
        {
            "variations": {
                "n.#": {"group": "g"},
                "c": {"base": ["n.8"], "default_variations": {"g": "n.8"}},
                "c,n.8": {},
            }
        },
        {},
    ),
    ({"deps": [{"tags": "get,sound,_v,-nothing", "names": ["y"]}], "ad": {"y": {"version": "1"}}}, {}),
    ({"deps": [{"tags": "get,sound", "names": ["y"]}], "adr": {"y": {"tags": "_v,_w.3"}}}, {}),
    (
        {
            "deps": [{"tags": "get,sound", "names": ["y"]}, {"tags": f"download,file,_url.{ADDRESS}", "names": ["y"]}],
            "adr": {"y": {"tags": "_v"}},
            "env": {"CM_DOWNLOAD_SHA256": "0" * 64},
        },
        {},
    ),
    ({"variations": {"n.#": {"deps": [{"tags": "get,sound,_#"}]}}}, {}),
    ({"env": {"CM_DOWNLOAD_URL": ADDRESS, "CM_DOWNLOAD_SHA256": "0" * 64}}, {}),
    ({"deps": [{"tags": f"download,file,_url.{ADDRESS}", "sha256sum": "0" * 64}]}, {}),
    ({"env": {"CM_GIT_URL": "https://example.org/repo.git"}}, {}),
    ({"needs": {"downloads": [{"what": ADDRESS, "sha256": "0" * 64}], "disk_mb": 1, "sudo": "to install"}}, {}),
    ({"env": {"CM_HF_TOKEN": "<<<HF_TOKEN>>>"}, "default_env": {"HF_TOKEN": ""}}, {}),
    ({}, {"run.sh": 'rm -rf "$CM_X/build" \'$y\' ; echo $CM_X # rm $CM_X\n# eval "$x"\ncat <<EOF\nrm $x\nEOF\n'}),
    ({}, {"run.sh": f"wget {ADDRESS}\nsha256sum -c sums\necho wget {ADDRESS}\n"}),
    ({}, {"customize.py": "def preprocess(i, _more=None):\n    return {'return': 0}\n\n\ndef helper():\n    pass\n"}),
    ({"script_name": "build"}, {"build-linux.sh": "true\n"}),
    ({}, {"customize.py": f"HINT = 'wget {ADDRESS}'\n"}),
    ({}, {"customize.py": f"run('wget {ADDRESS}')\nrun('sha256sum -c sums')\n"}),
]


@pytest.fixture
def sound(home: TemporaryHome) -> TemporaryHome:
    """A home with recipes that others may depend on."""
    home.recipe("get-sound", {"uid": "a5ede5ede5ede5ed", "variations": {"v": {}, "w.#": {}}}, files={"README.md": "x"})
    url = {"url.#": {"env": {"CM_DOWNLOAD_URL": "#"}}}
    home.recipe("download-file", {"variations": url}, files={"README.md": "x"})
    return home


def audit(home: TemporaryHome, **i: Any) -> dict[str, Any]:
    return audit_action({"level": "info", **i}, home.engine_home)


def codes_of(home: TemporaryHome, name: str = "get-x") -> list[str]:
    return [row["code"] for row in audit(home, artifact=name)["findings"]]


@pytest.mark.parametrize(("code", "meta", "files"), CASES)
def test_a_mistake_is_found(sound: TemporaryHome, code: str, meta: Mapping[str, Any], files: Mapping[str, str]) -> None:
    folder = sound.recipe("get-x", meta, files={"README.md": "x"})
    for name, text in files.items():
        (folder / name).write_bytes(text.encode())
    name = str(meta.get("alias", "get-x"))
    found = [row for row in audit(sound, artifact=name)["findings"] if row["code"] == code]
    assert found, audit(sound, artifact=name)["findings"]
    assert all(row["text"] and row["level"] == CODES[code].level for row in found)
    assert any(Path(row["file"]).parent == folder and Path(row["file"]).is_file() for row in found)


@pytest.mark.parametrize(("code", "text"), WRITTEN_AS_TEXT.items())
def test_a_mistake_of_writing_is_found(sound: TemporaryHome, code: str, text: str) -> None:
    folder = sound.repo / "script" / "get-x"
    folder.mkdir()
    (folder / "_cm.yaml").write_text(text, encoding="utf-8")
    assert code in codes_of(sound)


def test_every_code_has_a_case_and_a_rule() -> None:
    assert {code for code, _, _ in CASES} | set(WRITTEN_AS_TEXT) | ELSEWHERE == set(CODES)
    assert {code for rule in RULES for code in rule.codes} == set(CODES)


@pytest.mark.parametrize(("meta", "files"), SOUND)
def test_a_sound_recipe_gives_no_finding(
    sound: TemporaryHome, meta: Mapping[str, Any], files: Mapping[str, str]
) -> None:
    sound.recipe("get-x", meta, files={"README.md": "x", **files})
    assert audit(sound, artifact="get-x")["findings"] == []


def test_a_recipe_without_readme_is_told(home: TemporaryHome) -> None:
    home.recipe("get-x")
    assert codes_of(home) == ["readme-missing"]


def test_the_same_uid_in_another_repository_is_only_a_note(home: TemporaryHome) -> None:
    home.recipe("get-x", files={"README.md": "x"})
    other = home.folder / "other"
    folder = other / "script" / "get-x"
    folder.mkdir(parents=True)
    for name in ("_cm.json", "README.md"):
        (folder / name).write_bytes((home.repo / "script" / "get-x" / name).read_bytes())
    both = home.engine_home._replace(repos=[*home.engine_home.repos, RepoInfo(other, "other", "00000000000000aa")])
    answer = audit_action({"level": "info"}, both)
    assert [row["code"] for row in answer["findings"]] == ["uid-elsewhere"] * 2
    assert answer["return"] == 0, answer
    assert audit_action({"artifact": "other:"}, both)["recipes"] == 1
    with pytest.raises(NotFound, match="no registered repository 'nowhere'"):
        audit_action({"artifact": "nowhere:"}, both)


def test_a_finding_names_file_line_and_key(home: TemporaryHome) -> None:
    folder = home.repo / "script" / "get-x"
    folder.mkdir()
    (folder / "README.md").touch()
    lines = ["alias: get-x", 'uid: "abcdef0123456789"', "tags: [get, x]", "variations:", "  v:", "    grup: g"]
    (folder / "_cm.yaml").write_text("\n".join(lines), encoding="utf-8")
    (row,) = audit(home)["findings"]
    assert (row["file"], row["line"], row["key"]) == (str(folder / "_cm.yaml"), 6, "variations.v.grup")
    assert row["hint"] == "did you mean group?"


def test_errors_give_code_1_and_the_level_chooses_what_is_told(
    home: TemporaryHome, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    home.recipe("get-x", {"deps": [{"tags": "get,nothing"}], "cahce": True, "new_env_keys": ["CM_NEVER_SET"]})
    caplog.set_level(logging.INFO, "recipe_engine")
    told = {}
    for level in ("error", "warning", "info"):
        answer = audit_action({"level": level, "out": "con"}, home.engine_home)
        assert answer["return"] == 1
        assert answer["error"] == "the audit found 1 error"
        assert answer["counts"] == {"error": 1, "warning": 2, "info": 1}
        told[level] = capsys.readouterr().out
    assert "error dep-unanswered: no recipe has 'get,nothing' [deps[0].tags]" in told["error"]
    assert "key-unknown" not in told["error"]
    assert "key-unknown" in told["warning"]
    assert "promise-empty" not in told["warning"]
    assert "promise-empty" in told["info"]
    with pytest.raises(RequestError, match="--level=all is not known"):
        audit_action({"level": "all"}, home.engine_home)


def test_recipes_are_chosen_by_name_glob_uid_or_tags(sound: TemporaryHome) -> None:
    sound.recipe("get-x", {"tags": ["get", "x", "both"]}, files={"README.md": "x"})
    chosen = {
        "get-x": 1,
        "recipes:get-x": 1,
        "recipes:": 3,
        "get-*": 2,
        "a5ede5ede5ede5ed": 1,
        "get both": 1,
        "": 3,
    }
    assert {word: audit(sound, artifact=word)["recipes"] for word in chosen} == chosen
    assert audit(sound, tags="get")["recipes"] == 2
    for i in ({"artifact": "get-soud"}, {"tags": "get,soud"}):
        with pytest.raises(NotFound, match="soud") as caught:
            audit(sound, **i)
        assert "sound" in caught.value.describe()


def test_cm_prints_one_json_object_and_ends_with_the_code(home: TemporaryHome) -> None:
    home.recipe("get-x", {"deps": [{"tags": "get,nothing"}]})
    done = home.cm("audit", "script", "recipes:", "--out=json")
    assert done.code == 1
    assert [row["code"] for row in done.answer["findings"]] == ["readme-missing", "dep-unanswered"]
    done = home.cm("audit", "script", "recipes:get-x")
    assert done.code == 1
    assert "_cm.json" in done.stdout
    assert "checked 1 recipe: 1 error, 1 warning, 0 notes" in done.stderr


def test_our_own_recipes_are_sound() -> None:
    answer = audit_action({}, Home([RepoInfo(CHECKOUT, "crowdperf", "", python="src")], Path("unused"), Path("unused")))
    assert answer["findings"] == []
    assert answer["recipes"] == len(list((CHECKOUT / "script").glob("*/_cm.*")))


VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.sampled_from(["", "a", "_a", "a,b", "n.#", "<<<CM_X>>>", "#"])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abg"), inner, max_size=3)),
    max_leaves=6,
)
BLOCK_KEYS = ["deps", "env", "variations", "versions", "tags", "base", "group", "alias", "default", "adr", "ad"]
MORE_KEYS = ["needs", "input_mapping", "uid", "update_meta_if_env", "default_variations"]
BLOCKS = st.dictionaries(st.sampled_from([*BLOCK_KEYS, *MORE_KEYS]), VALUES, max_size=5)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(meta=BLOCKS, inner=BLOCKS)
@example(meta={}, inner={"update_meta_if_env": [None]})
def test_whatever_the_metadata_is_the_audit_ends(
    home: TemporaryHome, meta: dict[str, Any], inner: dict[str, Any]
) -> None:
    home.recipe("get-x", {**meta, "variations": {"v": inner, "v,w": inner, "n.#": inner}} if inner else meta)
    for row in audit(home)["findings"]:
        assert row["code"] in CODES
        json.dumps(row)


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("a: 1\nb:\n  c: 2\n", "b.c", 3),
        ("a:\n- x\n- y: 1\n", "a[1].y", 3),
        ("a:\n- x\n", "a[5].zzz", 1),
        ("a: 1\n", "nothing", 0),
        ("a: [", "a", 0),
        ('{"a": {\n"b": 1}}', "a.b", 2),
        ("a: &x\n  b: 1\nc: *x\n", "c.b", 2),
        ("a: &x\n  b: *x\n", "a.b", 2),
    ],
)
def test_a_key_path_has_a_line(text: str, key: str, line: int) -> None:
    assert places_of(text).line(key) == line


def test_texts_without_quotes_and_keys_that_stand_twice_are_noted() -> None:
    places = places_of('a: x\nb: "y"\na: z\n')
    assert places.repeated == (("a", 3),)
    assert places.plain == {"a"}


@pytest.fixture(autouse=True)
def quiet_logging() -> Iterator[None]:
    """Loggers of the engine pass their lines on, so that ``caplog`` sees them."""
    logger = logging.getLogger("recipe_engine")
    before = logger.propagate
    logger.propagate = True
    yield
    logger.propagate = before


@pytest.mark.parametrize("template", sorted(path.name for path in TEMPLATES.iterdir()))
@pytest.mark.parametrize("tags", ["get,thing", "get,on,1.0,with:colon,3"])
def test_a_new_recipe_of_each_template_passes(home: TemporaryHome, template: str, tags: str) -> None:
    (home.repo / "src" / "crowdperf" / "benchmarks").mkdir(parents=True)
    asked = {"artifact": "recipes:get-thing", "tags": tags, "template": template, "program": "bash"}
    add_action(asked, home.engine_home)
    findings = audit_action({"level": "info"}, home.engine_home)["findings"]
    is_alone = template != "benchmark"  # whose dependencies are recipes of crowdperf
    assert {row["code"] for row in findings} == (set() if is_alone else {"dep-unanswered"})
    if is_alone:
        assert home.cm("audit", "script", "recipes:get-thing", "--level=info").stdout == ""

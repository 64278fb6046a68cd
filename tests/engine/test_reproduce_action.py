"""A result that a recipe recorded is made again elsewhere, or what differs is named; two results are told apart."""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome, Terminal, uid_of
from recipe_engine.disk.files import working_folder
from recipe_engine.provenance.compare import parse_tolerance
from recipe_engine.provenance.record import SEALS, other_code_lines, parse_record, record_action, sealed
from recipe_engine.provenance.reproduce import reproduce_action
from recipe_engine.rules.errors import NothingFound, RequestError
from recipe_engine.running.toolversion import tool_version

MAKE_PARTS = """
    import json, os

    def postprocess(i):
        with open("weights.bin", "w") as file:
            file.write("weights " + i["env"]["CM_VERSION"])
        with open("data.bin", "w") as file:
            file.write("data")
        digest = __import__("hashlib").sha256(b"data").hexdigest()
        with open("data.json", "w") as file:
            json.dump({"files": {"data.bin": {"sha256": digest}}}, file)
        i["env"]["CM_PARTS"] = os.getcwd()
        return {"return": 0, "version": i["env"]["CM_VERSION"], "files": ["weights.bin", "data.json"],
                "locked": {"python_packages": {"numpy": {"version": "2.0"}}}}
"""
MAKE_RESULT = """
    import json, os

    def preprocess(i):
        env = i["env"]
        folder = os.path.join(env["CM_OUT"], "run", "one")
        os.makedirs(folder)
        with open(os.path.join(env["CM_PARTS"], "weights.bin")) as file:
            weights = file.read()
        text = open(env["CM_CONF"]).read() if env.get("CM_CONF") else ""
        with open(os.path.join(env["CM_TMP_CURRENT_SCRIPT_REPO_PATH"], "chance.json")) as file:
            chance = json.load(file)
        score, speed = len(weights) + len(text) + chance["luck"], chance["speed"]
        with open(os.path.join(folder, "score.txt"), "w") as file:
            file.write(str(score))
        asked = {"tags": "make,result", "quiet": True, "word": env.get("CM_WORD", "word")}
        asked.update({name: i["input"][name] for name in ("my_token", "data_path", "adr") if name in i["input"]})
        if text:
            asked["conf"] = "<record>/conf"
        record = {
            "action": "record", "automation": "script", "folder": folder, "name": "thing/one", "request": asked,
            "folder_input": "out_folder", "duration_s": 3, "attachments": {"conf": text} if text else {},
            "inputs": {"conf": {"text": text}}, "machine": {"cores": env.get("CM_CORES", "2")},
            "settings": {"batch": {"value": env.get("CM_BATCH", "4"), "origin": "default"}},
            "outcome": {"exact": {"score": score}, "within": {"speed": {"value": speed, "unit": "1/s"}}},
            "files": ["score.txt"],
        }
        return {"return": 0, **i["automation"].cmind.access(record)} if not env.get("CM_BAD") else {
            "return": 1, "error": "no response out"}
"""


class Cmind:
    """What a hook needs of cmind: ``access`` that writes records."""

    def __init__(self, home: TemporaryHome) -> None:
        self.home = home

    def access(self, i: dict[str, Any]) -> dict[str, Any]:
        """Answers ``cm record script``."""
        return record_action(i, self.home.engine_home)


def write_recipes(home: TemporaryHome) -> None:
    set_chance(home, speed=100)
    home.recipe(
        "get-parts",
        {"cache": True, "default_version": "2", "new_env_keys": ["CM_PARTS"]},
        customize=MAKE_PARTS,
    )
    home.recipe(
        "make-result",
        {
            "deps": [{"tags": "get,parts"}],
            "input_mapping": {
                "out_folder": "CM_OUT",
                "conf": "CM_CONF",
                "my_token": "CM_MY_TOKEN",
                "speed": "CM_SPEED",
                "word": "CM_WORD",
                "bad": "CM_BAD",
            },
            "input_description": {
                "out_folder": "",
                "conf": {"is_path": True},
                "my_token": "",
                "word": "",
                "bad": {"choices": ["yes", "no"]},
                "data_path": {"is_path": True},
            },
            "result_folder_input": "out_folder",
            "variations": {"fast": {}, "size.#": {}},
        },
        customize=MAKE_RESULT,
    )


@pytest.fixture
def maker(home: TemporaryHome) -> TemporaryHome:
    write_recipes(home)
    return home


def make(home: TemporaryHome, name: str = "results", **inputs: Any) -> Path:
    """Makes a result and returns the folder that it is in."""
    folder = home.work / name
    home.run("make,result", cmind=Cmind(home), out_folder=str(folder), **inputs)
    return folder


def reproduce(home: TemporaryHome, folder: Path, **i: Any) -> dict[str, Any]:
    with working_folder(home.work):
        asked = {"artifact": str(folder), "yes": True, **i}
        answer: dict[str, Any] = reproduce_action(asked, home.engine_home, Cmind(home))
    return answer


def record_of(folder: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / "run" / "one" / "record.json").read_text(encoding="utf-8"))
    return value


def differing(answer: Mapping[str, Any]) -> list[str]:
    (row,) = answer["results"]
    return [difference["name"] for difference in (*row["differing"], *row["damaged"])]


# --- the record ---


def test_a_record_holds_request_lock_and_journal_and_no_place_of_this_machine(maker: TemporaryHome) -> None:
    record = record_of(make(maker, data_path=os.path.expanduser("~/d"), my_token="s3cr3t-value"))
    assert record["request"]["inputs"]["data_path"] == "<home>/d"
    assert record["request"]["secrets"] == ["my_token"]
    assert [row["recipe"].partition(",")[0] for row in record["lock"]["things"]] == ["get-parts"]
    assert record["lock"]["things"][0]["is_made"]
    assert [row["event"] for row in record["journal"]] == ["run", "run", "done"]
    assert record["files"].keys() == {"score.txt"}
    text = json.dumps(record)
    assert str(maker.folder) not in text
    assert "s3cr3t" not in text


def test_a_recipe_that_was_edited_while_it_ran_gives_no_record(maker: TemporaryHome) -> None:
    recipe = maker.repo / "script" / "make-result" / "customize.py"
    edit = f"open({str(recipe)!r}, 'a').write('# edited')"
    recipe.write_text(recipe.read_text().replace("    os.makedirs(folder)", f"    os.makedirs(folder)\n    {edit}"))
    with pytest.raises(RequestError, match="recipes were edited during the run: make-result"):
        make(maker)
    assert not list(maker.work.rglob("record.json"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"folder": "/no/such/folder"}, "is not the folder of a result"),
        ({"name": ""}, "needs the name"),
        ({"request": "x"}, "needs the name of the result and the request"),
        ({"inputs": ["x"]}, "the inputs of a record must be a mapping"),
        ({"request": {"tags": "get,parts"}}, "declares result_folder_input, found get-parts"),
        ({"folder_input": "conf"}, "must be the input --out_folder of make-result, found --conf"),
    ],
)
def test_a_record_of_nothing_is_refused(maker: TemporaryHome, change: dict[str, Any], words: str) -> None:
    row = {
        "folder": str(maker.work),
        "name": "x",
        "request": {"tags": "make,result"},
        "folder_input": "out_folder",
        **change,
    }
    with pytest.raises(RequestError, match=words):
        record_action({**row, **change}, maker.engine_home)


# --- making it again ---


def test_a_result_is_reproduced_on_an_empty_home(maker: TemporaryHome, elsewhere: TemporaryHome) -> None:
    folder = make(maker)
    carried = elsewhere.work / "carried"
    folder.rename(carried)
    before = (carried / "run" / "one" / "record.json").read_bytes()
    shutil.rmtree(maker.store)
    answer = reproduce(elsewhere, carried)
    assert (answer["return"], answer["verdict"]) == (0, "reproduced")
    new = Path(answer["folder"])
    assert new.parent == elsewhere.work / "reproduced"
    assert json.loads((new / "reproduction.json").read_text())["results"][0]["is_reproduced"]
    assert (new / "01" / "run" / "one" / "score.txt").read_text() == (carried / "run" / "one" / "score.txt").read_text()
    assert (carried / "run" / "one" / "record.json").read_bytes() == before
    assert list(new.parent.iterdir()) == [new]
    assert reproduce(elsewhere, carried)["folder"] != str(new), "never over an earlier one"


def test_the_locked_version_is_made_though_the_default_is_newer(maker: TemporaryHome, elsewhere: TemporaryHome) -> None:
    maker.run("get,parts", version="1")
    answer = reproduce(elsewhere, make(maker))
    assert answer["return"] == 0, answer
    assert [meta["version"] for meta in elsewhere.entries("get-parts")] == ["1"]


def test_a_file_that_the_run_was_given_travels_in_the_record(maker: TemporaryHome, elsewhere: TemporaryHome) -> None:
    conf = maker.work / "my.conf"
    conf.write_text("a = 1")
    folder = make(maker, conf=str(conf))
    conf.unlink()
    assert reproduce(elsewhere, folder)["return"] == 0


@pytest.mark.parametrize("bad", ["No", "off", "false", "n-o", " no "])
def test_a_choice_may_be_recorded_in_any_spelling_that_a_run_accepts(maker: TemporaryHome, bad: str) -> None:
    folder = make(maker)
    reseal(folder, lambda row: row["request"]["inputs"].update(bad=bad))
    assert reproduce(maker, folder, check_only=True)["verdict"] == "same inputs"


def test_secrets_have_to_be_given_again(maker: TemporaryHome, elsewhere: TemporaryHome) -> None:
    folder = make(maker, my_token="s3cr3t")
    with pytest.raises(RequestError, match="--my_token") as caught:
        reproduce(elsewhere, folder)
    assert f"cm reproduce script {folder / 'run' / 'one'} --my_token=..." in caught.value.hint
    assert reproduce(elsewhere, folder, my_token="s3cr3t")["return"] == 0


def set_chance(home: TemporaryHome, *, speed: float, luck: int = 0) -> None:
    """What the next runs meet by chance: a speed, and something that is added to the score."""
    (home.repo / "chance.json").write_text(json.dumps({"speed": speed, "luck": luck}), encoding="utf-8")


@pytest.mark.parametrize(
    ("speed", "tolerance", "is_reproduced"),
    [("109", None, True), ("91", None, True), ("111", None, False), ("111", "12%", True), ("101", "0.5", False)],
)
def test_speed_may_differ_within_the_tolerance(
    maker: TemporaryHome, speed: str, tolerance: str | None, is_reproduced: bool
) -> None:
    set_chance(maker, speed=100)
    folder = make(maker)
    set_chance(maker, speed=float(speed))
    answer = reproduce(maker, folder, **({"tolerance": tolerance} if tolerance else {}))
    assert (answer["return"] == 0) is is_reproduced
    (figure,) = [row for row in answer["results"][0]["figures"] if row["name"] == "speed"]
    assert figure["after"] == float(speed)
    assert figure["is_same"] is is_reproduced


def test_an_exact_figure_must_be_equal(maker: TemporaryHome) -> None:
    set_chance(maker, speed=100)
    folder = make(maker)
    set_chance(maker, speed=100, luck=1)
    answer = reproduce(maker, folder, tolerance="90")
    assert answer["verdict"] == "not reproduced"
    assert answer["error"] == "not reproduced: thing/one"
    assert [row["name"] for row in answer["results"][0]["figures"] if not row["is_same"]] == ["score"]


def test_a_run_that_makes_nothing_ends_with_its_own_error(maker: TemporaryHome) -> None:
    folder = make(maker, word="w")
    reseal(folder, lambda row: row["request"]["inputs"].update(bad="yes"))
    with pytest.raises(Exception, match="no response out") as caught:
        reproduce(maker, folder)
    assert "while reproducing thing/one in" in str(getattr(caught.value, "notes", ""))


def reseal(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes the record of a result and seals it anew."""
    row = record_of(folder)
    change(row)
    content = {name: value for name, value in row.items() if name not in (SEALS, "format")}
    (folder / "run" / "one" / "record.json").write_text(json.dumps(sealed(content)))


def refused(maker: TemporaryHome, folder: Path, words: str) -> None:
    """A run, a check and a plan end with the same refusal, which has no control characters."""
    for mode in ({}, {"check_only": True}, {"plan": True}):
        with pytest.raises(RequestError, match=words) as caught:
            reproduce(maker, folder, **mode)
        assert "\x1b" not in caught.value.describe()


# --- what differs is named ---


def one_byte(path: Path, *, keep_time: bool) -> None:
    """Changes the first byte of a file, and maybe hides it from whoever only looks at size and time."""
    status = path.stat()
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    if keep_time:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("keep_time", [True, False])
def test_one_byte_of_a_model_is_named(maker: TemporaryHome, keep_time: bool) -> None:
    folder = make(maker)
    assert reproduce(maker, folder, check_only=True)["verdict"] == "same inputs"
    one_byte(maker.entry("get-parts") / "weights.bin", keep_time=keep_time)
    answer = reproduce(maker, folder, check_only=True)
    assert answer["return"] == 1
    (row,) = answer["results"]
    assert "weights.bin" in json.dumps(row["differing"] + row["damaged"])
    assert (not row["damaged"]) is keep_time
    if keep_time:
        assert reproduce(maker, folder)["verdict"] == "inputs differ", "a run would not notice it"
    else:
        assert reproduce(maker, folder)["verdict"] == "reproduced", "a run makes it anew"


def test_one_byte_of_data_that_a_manifest_lists_is_named(maker: TemporaryHome) -> None:
    folder = make(maker)
    one_byte(maker.entry("get-parts") / "data.bin", keep_time=True)
    assert differing(reproduce(maker, folder, check_only=True)) == ["get-parts data.bin"]
    assert not (maker.work / "reproduced").exists()


def test_one_byte_of_a_recipe_is_named_by_file(maker: TemporaryHome) -> None:
    folder = make(maker)
    recipe = maker.repo / "script" / "get-parts" / "customize.py"
    recipe.write_text(recipe.read_text() + "#")
    (recipe.parent / "more.py").write_text("")
    for words in ({"check_only": True}, {}):
        assert differing(reproduce(maker, folder, **words)) == ["get-parts/customize.py", "get-parts/more.py"]
    shutil.rmtree(recipe.parent)
    assert "get-parts" in differing(reproduce(maker, folder, check_only=True))[0]


def test_one_byte_of_the_result_itself_is_named(maker: TemporaryHome) -> None:
    folder = make(maker)
    one_byte(folder / "run" / "one" / "score.txt", keep_time=True)
    assert differing(reproduce(maker, folder)) == ["score.txt"]
    (folder / "run" / "one" / "score.txt").unlink()
    (row,) = reproduce(maker, folder)["results"]
    assert row["differing"][0]["note"] == "the file is missing"


def test_an_edited_line_of_a_recorded_configuration_is_named(maker: TemporaryHome) -> None:
    folder = make(maker)
    (folder / "run" / "one" / "score.txt").write_text("# score\na.b = 1\nc = 2\n")
    reseal(folder, lambda row: row["inputs"].update({"score.txt": {"a.b": "1", "c": "1"}}))
    (row,) = reproduce(maker, folder)["results"]
    assert [tuple(found.values()) for found in row["differing"]] == [
        ("result", "score.txt c", "1", "2", "this line was edited")
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda row: row["lock"].update(command="x"), "was edited after it was written: lock"),
        (lambda row: row["outcome"]["exact"].update(score=1), "was edited after it was written: outcome"),
        (lambda row: row.pop("lock"), "its lock is missing"),
        (lambda row: row.pop("seals"), "was edited"),
        (lambda row: row.update(format=9), "not a record of format 1: found 9"),
    ],
)
def test_an_edited_record_is_refused_by_the_part(maker: TemporaryHome, change: Any, words: str) -> None:
    folder = make(maker)
    row = record_of(folder)
    change(row)
    (folder / "run" / "one" / "record.json").write_text(json.dumps(row))
    with pytest.raises(RequestError, match=words):
        reproduce(maker, folder)


def test_what_is_no_result_is_refused_with_the_reason(maker: TemporaryHome) -> None:
    for place, words in (
        (maker.work / "nothing", "it does not exist"),
        (maker.work, "it contains no record.json"),
        (maker.repo / "cmr.yaml", "it is a file"),
    ):
        with pytest.raises(NothingFound, match=words):
            reproduce(maker, place)
    with pytest.raises(RequestError, match="no result was selected"):
        reproduce_action({}, maker.engine_home, None)


@pytest.mark.parametrize("given", ["x", "-1", "nan", "inf"])
def test_a_tolerance_that_is_no_number_of_percent_is_refused(given: str) -> None:
    with pytest.raises(RequestError, match=f"--tolerance: found '{given}'"):
        parse_tolerance(given)


def test_a_plan_says_what_would_be_run_and_does_none_of_it(maker: TemporaryHome, elsewhere: TemporaryHome) -> None:
    folder = make(maker)
    answer = reproduce(elsewhere, folder, plan=True)
    assert answer["return"] == 0, answer
    (row,) = answer["plan"]
    assert (row["duration_s"], row["unmade"]) == (3.0, ["get-parts"])
    assert row["command"].startswith(f"cm run script make-result,{uid_of('make-result')} --tags=make,result ")
    assert not elsewhere.entries()
    assert not (elsewhere.work / "reproduced").exists()


def test_an_output_folder_with_something_in_it_is_refused(maker: TemporaryHome) -> None:
    folder = make(maker)
    with pytest.raises(RequestError, match="never overwritten"):
        reproduce(maker, folder, output_dir=str(folder))
    answer = reproduce(maker, folder, output_dir=str(maker.work / "again"))
    assert answer["folder"] == str(maker.work / "again")


def test_a_nested_secret_is_named_and_never_kept(maker: TemporaryHome) -> None:
    row = {
        "folder": str(maker.work),
        "name": "x",
        "folder_input": "out_folder",
        "request": {"tags": "make,result", "quiet": True, "env": {"CM_HF_TOKEN": "s3cr3t-value", "CM_A": "b"}},
        "settings": {"source": "https://me:s3cr3t-word@host/x"},
    }
    record_action(row, maker.engine_home)
    text = (maker.work / "record.json").read_text(encoding="utf-8")
    assert "s3cr3t" not in text
    request = json.loads(text)["request"]
    assert (request["secrets"], request["inputs"]["env"]) == (["env.CM_HF_TOKEN"], {"CM_A": "b"})


def test_a_path_that_a_recipe_gives_as_an_object_or_in_a_tuple_names_no_place_of_this_machine(
    maker: TemporaryHome,
) -> None:
    home = Path.home()
    row = {
        "folder": str(maker.work),
        "name": "x",
        "folder_input": "out_folder",
        "request": {"tags": "make,result", "quiet": True, "data_path": home / "d"},
        "inputs": {"data": {"files": (str(home / "a"), home / "b")}},
    }
    record_action(row, maker.engine_home)
    record = json.loads((maker.work / "record.json").read_text(encoding="utf-8"))
    assert record["request"]["inputs"]["data_path"] == "<home>/d"
    assert record["inputs"]["data"]["files"] == ["<home>/a", "<home>/b"]


# --- a folder that a stranger made ---


def hostile(home: TemporaryHome, change: Any) -> Path:
    """A sound result whose record was changed and sealed anew."""
    folder = make(home)
    reseal(folder, change)
    program = folder / "run" / "one" / "python3"
    program.write_text(f"#!/bin/bash\ntouch {home.work / 'ran'}\n")
    program.chmod(0o755)
    return folder


LOADER_KEYS = ("PATH", "+PATH", "LD_PRELOAD", "PYTHONPATH", "BASH_ENV", "PIP_INDEX_URL", "GIT_SSH_COMMAND", "CM_WORD")
HOSTILE_INPUTS: list[tuple[dict[str, Any], str]] = [
    ({"tags": "get,parts"}, "may only request a recipe that declares result_folder_input, found get-parts"),
    ({"path": "<result>"}, "--path: not an input that make-result describes"),
    ({"state": {"script_prefix": ["touch ran"]}}, "--state.script_prefix: not an input"),
    ({"const_state": {"script_prefix": ["touch ran"]}}, "--const_state.script_prefix: not an input"),
    ({"const": {"CM_A": "b"}}, "--const.CM_A: not an input"),
    *[({"env": {key: "x"}}, f"--env.{re.escape(key)}: not an input") for key in LOADER_KEYS],
    ({"env": "x"}, "--env: not an input"),
    ({"adr": {"parts": {"tags": "_evil"}}}, "--adr.parts.tags: not an input"),
    ({"add_deps_recursive": {"parts": {"tags": "_evil"}}}, "--add_deps_recursive.parts.tags: not an input"),
    *[({name: "x"}, f"--{name}: not an input") for name in ("extra", "index_url", "find_links", "version", "input")],
    *[({name: "x"}, f"--{name}: not an input") for name in ("action", "frozen", "debug_script", "shell")],
    ({"artifact": "get-parts", "tags": ""}, "may only request a recipe that declares"),
    ({"artifact": "make-result"}, "--artifact: not an input"),
    ({"tags": ["make", "result"]}, "--tags: not an input"),
    ({"tags": "make,result,_size.9"}, "--tags: not a variation that make-result lists by name: size.9"),
    ({"tags": "make,result,_size.#"}, "--tags: not a variation that make-result lists by name: size.#"),
    ({"word": {"a": "b"}}, "--word.a: not an input"),
    ({"word": ["a"]}, "--word: not an input"),
    ({"word": "<result>/python3"}, "--word: must not be inside the folder of the result"),
    ({"word": "run/one/python3"}, "--word: must not be inside"),
    ({"word": "attachments/python3"}, "--word: must not be inside"),
    ({"word": "a:./attachments/x"}, "--word: must not be inside"),
    ({"word": "--x=../../run/one/python3"}, "--word: must not be inside"),
    ({"word": "<record>/conf"}, "--word: must not be a file of the record"),
    ({"word": "a\x1b[2Jb"}, "request is not valid in a record"),
    ({"tags": "make,result,\x1b[2J"}, "request is not valid in a record"),
    ({"\x1b[2J": "x"}, "request is not valid in a record"),
    ({"conf": "<record>/other"}, "--conf: must not be a file of the record"),
    ({"conf": "conf.txt"}, "--conf: must be an absolute path"),
    ({"bad": "$(touch ran)"}, "--bad: must be one of yes, no"),
]


@pytest.mark.parametrize(("inputs", "reason"), HOSTILE_INPUTS)
def test_a_folder_cannot_ask_for_what_its_recipe_does_not_offer(
    maker: TemporaryHome, inputs: dict[str, Any], reason: str
) -> None:
    folder = hostile(maker, lambda row: row["request"]["inputs"].update(inputs))
    refused(maker, folder, reason)
    assert not (maker.work / "reproduced").exists()
    assert not (maker.work / "ran").exists()


def test_an_absolute_path_into_the_folder_is_refused_through_links_too(maker: TemporaryHome) -> None:
    folder = make(maker)
    (maker.work / "link").symlink_to(folder)
    for place in (folder, maker.work / "link"):
        for value in (f"{place}/run", f"x={place}/run/one/score.txt", str(place)):
            reseal(folder, lambda row, value=value: row["request"]["inputs"].update(word=value))
            with pytest.raises(RequestError, match="--word: must not be inside the folder"):
                reproduce(maker, folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda row: row["request"].update(folder_input="conf"), "must be the input --out_folder"),
        (lambda row: row["request"].update(secrets=["x --y"]), "is not a flag"),
        (lambda row: row["lock"]["things"][0].update(version="1\x1b[2J"), "lock is not valid in a record"),
        (lambda row: row["lock"]["things"][0].update(version="1;x"), "'1;x' is not a version"),
        (lambda row: row["lock"]["things"][0].update(version="--upload-pack=x"), "is not a version"),
        (lambda row: row["attachments"].update({"../../x": "text"}), "attachments is not valid in a record"),
        (lambda row: row["attachments"].update({"/tmp/x": "text"}), "attachments is not valid in a record"),
        (lambda row: row.update(name="x\x1b[2J"), "name is not valid in a record"),
        (lambda row: row["files"].update({"../../x": "0"}), "files is not valid in a record"),
    ],
)
def test_a_record_that_leads_astray_is_refused(maker: TemporaryHome, change: Any, words: str) -> None:
    refused(maker, hostile(maker, change), words)


def test_an_input_that_no_folder_may_ask_for_counts_when_the_user_gives_it(maker: TemporaryHome) -> None:
    folder = make(maker, adr={"parts": {"version_min": "1"}})
    with pytest.raises(RequestError, match=r"--adr\.parts\.version_min: not an input") as caught:
        reproduce(maker, folder)
    assert "pass it on the command line" in caught.value.hint
    with pytest.raises(RequestError, match=r"--adr\.parts\.version_min"):
        reproduce(maker, folder, adr={"parts": {"version_min": "2"}})
    assert reproduce(maker, folder, adr={"parts": {"version_min": "1"}})["return"] == 0


def test_nothing_runs_before_the_user_agrees(
    maker: TemporaryHome, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    folder = make(maker)
    for typed in ("", "n\n", "what\n"):
        monkeypatch.setattr(sys, "stdin", Terminal(typed))
        with pytest.raises(RequestError, match="no command was run") as caught:
            reproduce(maker, folder, yes=None)
        assert f"cm reproduce script {folder} --yes" in caught.value.hint
        assert not (maker.work / "reproduced").exists()
    assert "recipes: get-parts, make-result" in caplog.text
    assert "Python packages: numpy 2.0" in caplog.text
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert reproduce(maker, folder, yes=None)["return"] == 0


def test_attachments_of_one_name_in_two_folders_stay_two_files(maker: TemporaryHome) -> None:
    def change(row: dict[str, Any]) -> None:
        row["attachments"] = {"a/conf": "a = 1", "b/conf": "b"}
        row["request"]["inputs"]["conf"] = "<record>/a/conf"
        row["outcome"]["exact"]["score"] += len("a = 1")

    answer = reproduce(maker, hostile(maker, change))
    made = Path(answer["folder"]) / "01" / "attachments"
    assert [(made / name / "conf").read_text() for name in "ab"] == ["a = 1", "b"]
    assert answer["results"][0]["figures"][0]["is_same"]


def test_control_characters_of_a_record_reach_no_terminal(
    maker: TemporaryHome, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(row: dict[str, Any]) -> None:
        row["outcome"]["exact"] = {"score\x1b]0;title\x07": "\x1b[2J"}

    with pytest.raises(RequestError, match="not reproduced"):
        reproduce(maker, hostile(maker, change), out="con")
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "score\\x1b]0;title\\x07: recorded \\x1b[2J" in shown


def test_a_pipe_in_place_of_a_record_is_not_read(maker: TemporaryHome) -> None:
    os.mkfifo(maker.work / "record.json")
    with pytest.raises(NothingFound, match=r"contains no record\.json"):
        reproduce(maker, maker.work)


# --- the packages of the recipes' repository ---


def uses_package(maker: TemporaryHome) -> Path:
    """Lets make-result import a module of its repository; gives its file."""
    module = maker.repo / "src" / "inhouse_record" / "words.py"
    module.parent.mkdir(parents=True)
    module.write_text("WORD = 1\n")
    maker.write_cmr(python="src")
    hook = maker.repo / "script" / "make-result" / "customize.py"
    hook.write_text("from inhouse_record import words\n" + hook.read_text())
    return module


def test_a_changed_file_of_the_packages_is_a_difference_and_a_restored_one_is_none(maker: TemporaryHome) -> None:
    module = uses_package(maker)
    folder = make(maker)
    assert list(record_of(folder)["lock"]["library"]) == ["recipes:src/inhouse_record/words.py"]
    assert reproduce(maker, folder, check_only=True)["verdict"] == "same inputs"
    module.write_text("WORD = 2\n")
    assert differing(reproduce(maker, folder, check_only=True)) == ["recipes:src/inhouse_record/words.py"]
    module.unlink()
    module.with_name("other.py").touch()
    assert "recipes:src/inhouse_record/words.py" in differing(reproduce(maker, folder, check_only=True))


def test_a_record_made_before_packages_were_noted_is_compared_without_them(
    maker: TemporaryHome, caplog: pytest.LogCaptureFixture
) -> None:
    uses_package(maker)
    folder = make(maker)
    reseal(folder, lambda row: row["lock"].pop("library"))
    assert reproduce(maker, folder, check_only=True)["verdict"] == "same inputs"
    assert caplog.text.count("has no digests of the packages that recipes use") == 1


def test_a_recipe_of_a_record_that_is_no_longer_registered_is_named(maker: TemporaryHome) -> None:
    folder = make(maker)
    reseal(folder, lambda row: row["lock"]["recipes"].update({"get-old-lib,a000000000000001": "0" * 64}))
    answer = reproduce(maker, folder, check_only=True)
    assert (answer["verdict"], differing(answer)) == ("inputs differ", ["get-old-lib"])
    assert answer["results"][0]["differing"][0]["note"] == "no registered repository has this recipe"


@pytest.mark.parametrize(
    ("made", "shown", "not_shown"),
    [
        (
            {"commit": "a" * 40, "version": "0.0.1", "is_modified": False},
            ["0.0.1+gaaaaaaaaaaaa, this is "],
            "no commit",
        ),
        ({"commit": "a" * 40, "version": "0.0.1", "is_modified": True}, ["files that are in no commit"], "unknown"),
        ({"commit": "$(touch x)", "version": "0.0.1"}, ["made by crowdperf 0.0.1, this is "], "worktree"),
        ({}, ["made by crowdperf of an unknown version, this is "], "worktree"),
    ],
    ids=["of a commit", "modified", "a forged commit", "an old record"],
)
def test_what_can_be_done_for_a_result_of_other_code_is_said(
    maker: TemporaryHome, caplog: pytest.LogCaptureFixture, made: dict[str, Any], shown: list[str], not_shown: str
) -> None:
    folder = make(maker)
    reseal(folder, lambda row: row.update(crowdperf=made))
    assert reproduce(maker, folder, check_only=True)["verdict"] == "same inputs"
    one = parse_record((folder / "run" / "one" / "record.json").read_text(), "it")._replace(folder=folder)
    text = "\n".join(other_code_lines(one, "cm run script X", Path("/new"), Path("/srv/crowdperf")))
    worktree = f"git -C /srv/crowdperf worktree add --detach /srv/crowdperf-{'a' * 12} {'a' * 40} && "
    if made.get("commit") == "a" * 40:
        shown = [*shown, f"own code: {worktree}/srv/crowdperf-{'a' * 12}/cm reproduce script {folder}"]
    for words in (*shown, "makes a new result: cm run script X", f"cm diff script {folder} /new"):
        assert words in text
    assert not_shown not in text


def test_nothing_is_offered_for_a_result_of_this_code(maker: TemporaryHome) -> None:
    folder = make(maker)
    one = parse_record((folder / "run" / "one" / "record.json").read_text(), "it")
    assert one.crowdperf["commit"] == tool_version().commit
    assert (list(other_code_lines(one, "cm run script X", Path("/new"))) == []) is bool(tool_version().commit)


def test_a_recipe_of_which_many_files_moved_is_one_line_and_the_json_has_all(
    maker: TemporaryHome, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = maker.repo / "script" / "get-parts"
    for number in range(9):
        (recipe / f"part_{number}.py").write_text("")
    folder = make(maker)
    reseal(folder, lambda row: row.update(crowdperf={"commit": "a" * 40, "version": "0.0.1", "is_modified": False}))
    for number in range(7):
        (recipe / f"part_{number}.py").unlink()
    (recipe / "part_7.py").write_text("#")
    (recipe / "new.py").write_text("")
    with pytest.raises(RequestError, match=r"get-parts/new\.py, get-parts/part_0\.py, .* and 4 more"):
        reproduce(maker, folder, check_only=True, out="con")
    said = capsys.readouterr().out
    assert "recipe get-parts: 9 files differ (7 missing, 1 new, 1 changed), such as get-parts/new.py" in said
    assert "part_1.py" not in said and "to reproduce it with its own code: git -C " in said
    assert len(differing(reproduce(maker, folder, check_only=True))) == 9


@pytest.mark.parametrize("name", ["recipes:../../etc/passwd", "recipes:/etc/passwd", "other:src/x.py", "nothing", ":"])
def test_a_record_reads_no_file_outside_the_registered_repositories(maker: TemporaryHome, name: str) -> None:
    source = maker.engine_home.source()
    assert source.file_of(name) is None

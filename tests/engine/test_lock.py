"""A lock made in one CM home gives the same in another one, or names what differs."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome
from recipe_engine.actions.run import new_engine, parse_request
from recipe_engine.disk.entries import details_of
from recipe_engine.disk.files import working_folder
from recipe_engine.provenance import lock as locking
from recipe_engine.provenance.lock import LockingEngine, lock_action
from recipe_engine.provenance.lockfile import (
    LockedArtifact,
    LockedFile,
    Lockfile,
    LockMismatch,
    differences,
    lockfile_json,
    parse_lockfile,
    portable,
)
from recipe_engine.rules.cachekey import Artifact
from recipe_engine.rules.conditions import symbol
from recipe_engine.rules.errors import CacheMiss, RequestError
from recipe_engine.rules.model import RecipeId

A, B = "a" * 64, "b" * 64


def thing(**changes: Any) -> LockedArtifact:
    files = {"x.bin": LockedFile(3, A)}
    base = LockedArtifact(RecipeId("get-x", "u"), Artifact("u", (), (), ()), "1.2", files, {}, True)
    return base._replace(**changes)


WHOLE = Artifact("u", ("v",), ("a", "b"), (("name", "n"),))


@pytest.mark.parametrize(
    ("asked", "is_found"),
    [
        (WHOLE, True),
        (WHOLE._replace(tags=("a",)), False),
        (WHOLE._replace(tags=("a", symbol("KEY", "get-y"))), True),
        (WHOLE._replace(tags=(f"x-{symbol('KEY', 'get-y')}",)), True),
        (WHOLE._replace(tags=("c", symbol("KEY", "get-y"))), False),
        (WHOLE._replace(tags=(symbol("KEY", "get-y"),), variations=()), False),
        (WHOLE._replace(inputs=(("name", symbol("KEY", "get-y")),)), True),
        (WHOLE._replace(inputs=(("name", symbol("KEY", "get-y")), ("other", "1"))), False),
    ],
)
def test_what_a_plan_does_not_know_whole_may_be_any_locked_thing_that_fits(asked: Artifact, is_found: bool) -> None:
    locked = thing(artifact=WHOLE)
    assert Lockfile("", {}, {}, (locked,)).find(asked) == ([locked] if is_found else [])


DIFFERENCES = {
    "nothing": (thing(), thing(), []),
    "version": (thing(), thing(version="1.3"), ["its version is 1.3, locked is 1.2"]),
    "no version locked": (thing(version=""), thing(version="1.3"), []),
    "file": (thing(), thing(files={"x.bin": LockedFile(3, B)}), [f"its file x.bin is {B}, locked is {A}"]),
    "file gone": (thing(), thing(files={}), [f"its file x.bin is missing, locked is {A}"]),
    "file more": (thing(files={}), thing(), []),
    "package version": (
        thing(facts={"python_packages": {"numpy": {"version": "1"}}}),
        thing(facts={"python_packages": {"numpy": {"version": "2"}}}),
        ['its python_packages numpy is {"version": "2"}, locked is {"version": "1"}'],
    ),
    "package gone": (
        thing(facts={"python_packages": {"numpy": {"version": "1"}}}),
        thing(),
        ['its python_packages numpy is missing, locked is {"version": "1"}'],
    ),
    "package more": (
        thing(facts={"python_packages": {}}),
        thing(facts={"python_packages": {"numpy": {"version": "1"}}}),
        ["its python_packages numpy is not in the lockfile"],
    ),
    "commit": (
        thing(facts={"git": {"repo": "c1"}}),
        thing(facts={"git": {"repo": "c2"}}),
        ["its git repo is c2, locked is c1"],
    ),
}


@pytest.mark.parametrize(("locked", "now", "words"), DIFFERENCES.values(), ids=DIFFERENCES.keys())
def test_differences_are_named(locked: LockedArtifact, now: LockedArtifact, words: list[str]) -> None:
    found = differences(locked, now)
    assert len(found) == len(words)
    assert all(word in text for word, text in zip(words, found, strict=True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/h/cache/0123456789abcdef/m.onnx", "<cache>/m.onnx"),
        ("/h/cache/0123456789abcdef", "<cache>"),
        ("/h/cachet/x", "/h/cachet/x"),
        ("--model=/h/cache/0123456789abcdef/m --n=3", "--model=<cache>/m --n=3"),
        ("1.2.3", "1.2.3"),
        ("a/ b/", "a/ b/"),
    ],
)
def test_places_of_one_machine_are_put_by_name(text: str, expected: str) -> None:
    assert portable(text, [("/h/cache", "<cache>"), ("/", "<home>")]) == expected


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, "{}", '{"format": 9}', '{"format": 1, "recipes": 3}'])
def test_a_file_that_is_no_lock_is_refused_with_the_command_that_makes_one(text: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_lockfile(text, "my.lock")
    assert "my.lock" in caught.value.message
    assert "cm lock script" in caught.value.hint


MAKE_TOOL = """
    def postprocess(i):
        env = i["env"]
        env["CM_TOOL"] = env["CM_VERSION"]
        env["CM_TOOL_FILE"] = __import__("os").path.abspath("tool.bin")
        return {"return": 0, "version": env["CM_VERSION"], "files": ["tool.bin", "where.txt"]}
"""
PIPELINE: Mapping[str, Any] = {"deps": [{"tags": "get,app"}], "new_env_keys": ["CM_APP"]}


def write_recipes(home: TemporaryHome, *, newest: str = "3", content: str = "tool") -> None:
    home.recipe(
        "get-tool",
        {"cache": True, "default_version": newest, "new_env_keys": ["CM_TOOL", "CM_TOOL_FILE"]},
        customize=MAKE_TOOL,
        run_sh=f'printf "{content} $CM_VERSION" > tool.bin\npwd > where.txt\n',
    )
    home.recipe(
        "get-app",
        {
            "cache": True,
            "deps": [{"tags": "get,tool"}],
            "input_mapping": {"with_tool": "CM_WITH"},
            "new_env_keys": ["CM_APP"],
        },
        run_sh='echo "CM_APP=app-$CM_TOOL" > tmp-run-env.out\n',
    )
    home.recipe("run-app", PIPELINE)


@pytest.fixture
def pipeline(home: TemporaryHome) -> TemporaryHome:
    write_recipes(home)
    return home


def lock_of(home: TemporaryHome, **inputs: Any) -> dict[str, Any]:
    with working_folder(home.work):
        return lockfile_json(LockingEngine(new_engine(home.engine_home, None)).lockfile(parse_request(inputs)))


def put_lock(home: TemporaryHome, lock: Mapping[str, Any]) -> str:
    path = home.work / "crowdperf.lock"
    path.write_text(json.dumps(lock), encoding="utf-8")
    return str(path)


def test_a_lock_looks_below_what_is_reused(pipeline: TemporaryHome) -> None:
    pipeline.run("run,app")
    lock = lock_of(pipeline, tags="run,app")
    assert [row["recipe"].partition(",")[0] for row in lock["things"]] == ["get-app", "get-tool"]
    tool = lock["things"][1]
    assert tool["version"] == "3"
    assert list(tool["files"]) == ["tool.bin"], "where.txt holds a path of this machine"
    assert sorted(name.partition(",")[0] for name in lock["recipes"]) == ["get-app", "get-tool", "run-app"]
    assert lock == lock_of(pipeline, tags="run,app")


def test_an_empty_home_gets_the_same_though_newer_versions_exist(
    pipeline: TemporaryHome, elsewhere: TemporaryHome
) -> None:
    pipeline.run("get,tool", version="2")
    pipeline.run("run,app")
    lock = lock_of(pipeline, tags="run,app")
    assert [row["version"] for row in lock["things"] if "version" in row] == ["2"]
    answer = elsewhere.run("run,app", frozen=put_lock(elsewhere, lock))
    assert answer["new_env"]["CM_APP"] == "app-2"
    assert lock_of(elsewhere, tags="run,app") == lock
    assert pipeline.run("run,app", frozen=put_lock(pipeline, lock))["new_env"]["CM_APP"] == "app-2"


def test_only_small_text_files_are_searched_for_the_place_of_the_cache(
    home: TemporaryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    customize = "def postprocess(i):\n    return {'return': 0, 'files': ['plain.txt', 'named.txt', 'weights.bin']}"
    run_sh = "echo text > plain.txt; pwd > named.txt; printf '\\0%s' \"$PWD\" > weights.bin"
    home.recipe("get-model", {"cache": True}, customize=customize, run_sh=run_sh)
    home.run("get,model")
    request = parse_request({"tags": "get,model"})
    (thing,) = LockingEngine(new_engine(home.engine_home, None)).lockfile(request).artifacts
    assert thing.files.keys() == {"plain.txt", "weights.bin"}
    monkeypatch.setattr(locking, "SEARCHED_BYTES", 1)
    (thing,) = LockingEngine(new_engine(home.engine_home, None)).lockfile(request).artifacts
    assert thing.files.keys() == {"plain.txt", "named.txt", "weights.bin"}


def test_a_changed_recipe_is_refused_by_name(pipeline: TemporaryHome, elsewhere: TemporaryHome) -> None:
    pipeline.run("run,app")
    lock = put_lock(elsewhere, lock_of(pipeline, tags="run,app"))
    (pipeline.repo / "script" / "get-tool" / "run.sh").write_text('printf "tool 3" > tool.bin; pwd > where.txt\n')
    for flag in ("frozen", "locked"):
        with pytest.raises(LockMismatch) as caught:
            elsewhere.run("run,app", **{flag: lock})
        assert "the recipe get-tool is not the one" in caught.value.message
        assert caught.value.trace == ("run-app", "get-app", "get-tool")


def test_a_changed_version_is_refused_by_name(pipeline: TemporaryHome, elsewhere: TemporaryHome) -> None:
    pipeline.run("run,app")
    lock = lock_of(pipeline, tags="run,app")
    next(row for row in lock["things"] if "version" in row)["version"] = "2"
    with pytest.raises(LockMismatch, match=r"get-tool differs from(.|\n)*tool\.bin"):
        elsewhere.run("run,app", frozen=put_lock(elsewhere, lock))
    with pytest.raises(LockMismatch, match="its version is 3, locked is 2"):
        elsewhere.run("get,tool", version="3", locked=put_lock(elsewhere, lock))


def test_a_changed_file_is_refused_by_name(pipeline: TemporaryHome, elsewhere: TemporaryHome) -> None:
    pipeline.run("run,app")
    lock = lock_of(pipeline, tags="run,app")
    for row in lock["things"]:
        for file in row.get("files", {}).values():
            file["sha256"] = A
    with pytest.raises(LockMismatch) as caught:
        elsewhere.run("run,app", frozen=put_lock(elsewhere, lock))
    assert "its file tool.bin is " in caught.value.message
    assert A in caught.value.message


def test_what_the_lock_does_not_know_is_refused_when_frozen_and_told_when_locked(
    pipeline: TemporaryHome, elsewhere: TemporaryHome
) -> None:
    pipeline.run("run,app")
    lock = put_lock(elsewhere, lock_of(pipeline, tags="run,app"))
    pipeline.recipe("get-other", {"cache": True})
    with pytest.raises(LockMismatch, match="does not list the recipe get-other"):
        elsewhere.run("get,other", frozen=lock)
    elsewhere.run("get,other", locked=lock)
    assert any("does not list the recipe get-other" in line for line in elsewhere.story)
    with pytest.raises(LockMismatch, match="get-app with these inputs"):
        elsewhere.run("get,app", with_tool="x", frozen=lock)


def test_a_lock_without_a_run_says_what_it_cannot_know(pipeline: TemporaryHome, elsewhere: TemporaryHome) -> None:
    shown = pipeline.cm("lock", "script", "--tags=run,app", "--file=my.lock")
    assert shown.code == 0
    assert "not in the cache yet" in shown.stderr
    lock = json.loads((pipeline.work / "my.lock").read_text(encoding="utf-8"))
    assert not any(row["is_made"] for row in lock["things"])
    with pytest.raises(LockMismatch, match="perhaps not in the cache when the file was written"):
        elsewhere.run("run,app", frozen=put_lock(elsewhere, lock))


def test_runs_that_a_recipe_starts_itself_are_held_to_the_lock_too(
    pipeline: TemporaryHome, elsewhere: TemporaryHome
) -> None:
    call = """
        def preprocess(i):
            asked = {"action": "run", "automation": "script", "tags": "get,other", "quiet": True}
            return i["automation"].cmind.access(asked)
    """
    pipeline.recipe("get-other", {"cache": True})
    pipeline.recipe("run-other", customize=call)
    lock = put_lock(elsewhere, lock_of(pipeline, tags="run,app"))
    lock_now = json.loads(Path(lock).read_text(encoding="utf-8"))
    digests = lock_of(pipeline, tags="run,other")["recipes"]
    lock = put_lock(elsewhere, {**lock_now, "recipes": digests})
    failed = elsewhere.cm("run", "script", "--tags=run,other", "--quiet", f"--frozen={lock}")
    assert failed.code == 1
    assert "does not list the recipe get-other" in failed.stderr


def test_a_frozen_run_from_the_cache_alone_makes_no_step_however_deep(
    pipeline: TemporaryHome, elsewhere: TemporaryHome
) -> None:
    pipeline.run("run,app")
    lock = lock_of(pipeline, tags="run,app")
    alone = {"only_execute_from_cache": True}
    assert pipeline.run("run,app", frozen=put_lock(pipeline, lock), **alone)["new_env"]["CM_APP"] == "app-3"
    with pytest.raises(CacheMiss, match="is not in the cache"):
        elsewhere.run("run,app", frozen=put_lock(elsewhere, lock), **alone)
    assert elsewhere.entries() == []


def test_facts_of_hooks_and_git_commits_are_locked(pipeline: TemporaryHome, elsewhere: TemporaryHome) -> None:
    commit = "git -c user.name=t -c user.email=t@t commit -q --allow-empty -m"
    dates = "GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'"
    pipeline.recipe(
        "get-source",
        {"cache": True, "new_env_keys": ["CM_SOURCE"]},
        customize="""
            import os
            def postprocess(i):
                i["env"]["CM_SOURCE"] = os.path.abspath("repo")
                seen = sorted(i["locked"].get("packages", {"none": 0}))
                return {"return": 0, "locked": {"packages": {"p": {"version": "1"}}, "seen": seen}}
        """,
        run_sh=f'git init -q -b main repo && cd repo && {dates} {commit} "$CM_WORD"\n',
    )
    pipeline.run("get,source", env={"CM_WORD": "first"})
    lock = lock_of(pipeline, tags="get,source")
    (row,) = lock["things"]
    entry = pipeline.entry("get-source")
    head = subprocess.run(["git", "-C", entry / "repo", "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    assert row["facts"] == {"git": {"repo": head.strip()}, "packages": {"p": {"version": "1"}}, "seen": ["none"]}
    del row["facts"]["seen"]
    elsewhere.run("get,source", env={"CM_WORD": "first"}, frozen=put_lock(elsewhere, lock))
    details = json.loads((elsewhere.entry("get-source") / "entry.json").read_text(encoding="utf-8"))
    assert details["locked"]["seen"] == ["p"], "hooks see what is locked"
    with pytest.raises(LockMismatch, match=r"its git repo is .*, locked is .*"):
        elsewhere.run("get,source", env={"CM_WORD": "other"}, new=True, frozen=put_lock(elsewhere, lock))


def test_the_plan_of_a_frozen_run_shows_the_refusal(pipeline: TemporaryHome, elsewhere: TemporaryHome) -> None:
    pipeline.run("run,app")
    lock = put_lock(elsewhere, lock_of(pipeline, tags="run,app"))
    good = elsewhere.cm("plan", "script", "--tags=run,app", f"--frozen={lock}")
    assert good.code == 0
    (pipeline.repo / "script" / "get-app" / "run.sh").write_text("true\n")
    bad = elsewhere.cm("plan", "script", "--tags=run,app", f"--frozen={lock}")
    assert bad.code == 1
    assert "get-app is not the one" in bad.stderr


def test_the_plan_of_a_frozen_run_takes_what_it_does_not_know_yet_for_what_was_locked(
    pipeline: TemporaryHome, elsewhere: TemporaryHome
) -> None:
    pipeline.recipe("get-part", {"cache": True}, run_sh="true")
    deps = [{"tags": "get,tool"}, {"tags": "get,part", "extra_cache_tags": "tool-<<<CM_TOOL>>>"}]
    pipeline.recipe("run-parts", {"deps": deps})
    pipeline.run("run,parts")
    lock = put_lock(elsewhere, lock_of(pipeline, tags="run,parts"))
    plan = elsewhere.cm("plan", "script", "--tags=run,parts", f"--frozen={lock}")
    assert plan.code == 0, plan.stdout + plan.stderr
    assert elsewhere.cm("run", "script", "--tags=run,parts", f"--frozen={lock}", "--quiet").code == 0


def test_a_lock_that_is_not_there_is_an_error_with_the_command(pipeline: TemporaryHome) -> None:
    failed = pipeline.cm("run", "script", "--tags=run,app", "--frozen", "--quiet")
    assert failed.code == 1
    assert "crowdperf.lock does not exist" in failed.stderr
    assert "cm lock script" in failed.stderr


@pytest.mark.parametrize(
    ("name", "problem"),
    [("/dev/zero", "is not a lockfile: it is larger than 4.1 kB"), (".", r"cannot be read: .*Is a directory")],
    ids=["endless", "folder"],
)
def test_what_cannot_be_a_lockfile_is_refused(
    home: TemporaryHome, monkeypatch: pytest.MonkeyPatch, name: str, problem: str
) -> None:
    monkeypatch.setattr(locking, "MAX_LOCK_BYTES", 4096)
    home.recipe("get-x")
    with pytest.raises(RequestError, match=problem):
        home.run("get,x", locked=name)


def test_a_file_flag_without_a_value_writes_no_file(home: TemporaryHome) -> None:
    home.recipe("get-x")
    with pytest.raises(RequestError, match="--file has no value"):
        lock_action({"tags": "get,x", "file": True}, home.engine_home)
    assert list(home.work.iterdir()) == []


def test_a_lockfile_may_be_below_the_home_of_the_user(home: TemporaryHome, monkeypatch: pytest.MonkeyPatch) -> None:
    home.recipe("get-x")
    monkeypatch.setenv("HOME", str(home.folder))
    with working_folder(home.work):
        lock_action({"tags": "get,x", "file": "~/my.lock"}, home.engine_home)
    assert json.loads((home.folder / "my.lock").read_text())["command"] == "cm run script --tags=get,x"
    assert home.run("get,x", frozen="~/my.lock")["return"] == 0


def test_a_lock_tells_the_paths_that_were_given(home: TemporaryHome) -> None:
    inputs = {"model": {"type": "path", "env": "CM_MODEL", "aliases": ["m"]}, "out": {"type": "path"}, "n": {}}
    home.recipe("get-x", {"input_description": inputs})
    answer = lock_action({"tags": "get,x", "m": "a.bin", "n": "3"}, home.engine_home)
    row = {"env": "CM_MODEL", "names": ["model", "m", "env.CM_MODEL"], "path": os.path.abspath("a.bin")}
    assert answer["given_paths"] == {"model": row}
    again = lock_action({"tags": "get,x", "env": {"CM_MODEL": "a.bin"}}, home.engine_home)
    assert again["given_paths"] == {"model": row}


COPY = """
    def postprocess(i):
        env = i["env"]
        env["CM_GET_DEPENDENT_CACHED_PATH"] = env["CM_COPY_GIVEN"]
        return {"return": 0, "version": open(env["CM_COPY_GIVEN"]).read()}
"""
PREPARED: Mapping[str, Any] = {"cache": True, "deps": [{"tags": "get,copy"}], "input_description": {}}


def test_files_that_name_the_copy_of_another_step_are_not_locked(home: TemporaryHome) -> None:
    given = {"copy": {"type": "path", "env": "CM_COPY_GIVEN"}}
    home.recipe("get-copy", {"cache": True, "input_description": given}, customize=COPY)
    made = "def postprocess(i):\n    return {'return': 0, 'files': ['index.json', 'data.bin']}\n"
    run_sh = 'echo "$CM_COPY_GIVEN" > index.json\necho data > data.bin\n'
    home.recipe("get-prepared", {**PREPARED, "input_description": given}, customize=made, run_sh=run_sh)
    copy = home.work / "mine.txt"
    copy.write_text("1")
    home.run("get,prepared", copy=str(copy))
    answer = lock_action({"tags": "get,prepared", "copy": str(copy)}, home.engine_home)
    files = {row["recipe"].partition(",")[0]: list(row.get("files", {})) for row in answer["lock"]["things"]}
    assert files == {"get-copy": [], "get-prepared": ["data.bin"]}
    assert {row["recipe"]: row["depends_on"] for row in answer["used_entries"].values()} == {
        "get-copy": str(copy), "get-prepared": "",
    }  # fmt: skip


def test_a_changed_copy_is_named_with_what_to_give(home: TemporaryHome) -> None:
    home.recipe("get-copy", {"cache": True, "input_description": {"copy": {"type": "path", "env": "CM_COPY_GIVEN"}}},
                customize=COPY)  # fmt: skip
    copy = home.work / "mine.txt"
    copy.write_text("1")
    home.run("get,copy", copy=str(copy))
    lock = put_lock(home, lock_of(home, tags="get,copy", copy=str(copy)))
    copy.write_text("2")
    with pytest.raises(LockMismatch) as caught:
        home.run("get,copy", copy=str(copy), frozen=lock, renew=True)
    assert "its version is 2, locked is 1" in caught.value.message
    assert caught.value.hint == f"it describes {copy}: give the one that was locked, or create a new lockfile"


def test_a_lock_leaves_out_text_and_compiled_files_that_name_the_cache_and_reads_no_data(
    home: TemporaryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_sh = """
        echo "prefix=$PWD" > settings
        { head -c 5000 /dev/zero | tr '\\0' x; echo "$PWD"; } > long.txt
        { printf '\\x7fELF\\0'; head -c 5000 /dev/zero; echo "$PWD"; } > tool
        { printf '\\0\\0'; echo "$PWD"; } > module.pyc
        { printf '\\xff\\xd8\\0'; echo "$PWD"; } > image.jpg
        echo plain > plain.txt
    """
    customize = "def postprocess(i):\n    return {'return': 0, 'files': ['.']}\n"
    home.recipe("get-x", {"cache": True}, customize=customize, run_sh=run_sh)
    home.run("get,x")
    (entry,) = home.open_store().entries()
    details = details_of(entry)
    assert details
    assert {name for name, _ in locking._portable_files(entry, details, [str(home.store)])} == {
        "image.jpg",
        "plain.txt",
    }
    monkeypatch.setattr(locking, "SEARCHED_BYTES", 4000)
    found = {name for name, _ in locking._portable_files(entry, details, [str(home.store)])}
    assert found == {"image.jpg", "plain.txt", "long.txt", "tool"}


def test_a_lock_holds_an_exact_request_that_is_reported_in_full(home: TemporaryHome) -> None:
    home.recipe(
        "get-tool",
        {"cache": True},
        customize='def postprocess(i):\n    return {"return": 0, "version": i["env"]["CM_VERSION"] + ".140"}\n',
    )
    home.run("get,tool", version="12.2")
    lock = lock_action({"tags": "get,tool", "version": "12.2"}, home.engine_home)["lock"]
    (home.work / "crowdperf.lock").write_text(json.dumps(lock), encoding="utf-8")
    home.run("get,tool", version="12.2", frozen=True)
    with pytest.raises(LockMismatch, match=r"its version is 12\.3\.140, locked is 12\.2\.140"):
        home.run("get,tool", version="12.3", frozen=True)

"""A new recipe fits the schema and runs at once (test_audit.py: it passes the audit); what is in use is refused."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from helpers import CHECKOUT, TemporaryHome
from recipe_engine.actions.adapter import Home
from recipe_engine.actions.scaffold import TEMPLATES, NewRecipe, add_action
from recipe_engine.disk.repos import RepoInfo
from recipe_engine.rules.errors import NotFound, RequestError

NAMES = sorted(path.name for path in TEMPLATES.iterdir() if not (path / "repo").is_dir())
SCHEMA = json.loads((CHECKOUT / "docs" / "reference" / "cm-recipe.schema.json").read_text(encoding="utf-8"))


def add(home: TemporaryHome, artifact: str, **i: Any) -> dict[str, Any]:
    return add_action({"artifact": artifact, **i}, home.engine_home)


def test_there_are_templates() -> None:
    assert NAMES == ["file", "plain", "tool"]
    assert sorted({path.name for path in TEMPLATES.iterdir()} - set(NAMES)) == ["benchmark"]


BENCHMARKS = Path("src", "crowdperf", "benchmarks")


def test_a_benchmark_is_a_recipe_and_its_part_of_the_harness(home: TemporaryHome) -> None:
    with pytest.raises(RequestError, match="benchmarks is missing") as caught:
        add(home, "recipes:get-blue-squares", template="benchmark")
    assert "cm add script crowdperf:get-NAME" in caught.value.hint
    assert not (home.repo / "script" / "get-blue-squares").exists()
    (home.repo / BENCHMARKS).mkdir(parents=True)
    answer = add(home, "recipes:get-blue-squares", template="benchmark")
    folders = (home.repo / "script" / "get-blue-squares", home.repo / BENCHMARKS / "blue_squares")
    written = {path for folder in folders for path in folder.iterdir()}
    assert {Path(name) for name in answer["files"]} == written and len(written) == 8
    assert not any("@" in path.read_text(encoding="utf-8") for path in written)
    record = (folders[1] / "record.py").read_text(encoding="utf-8")
    assert 'name="blue_squares"' in record and 'model="get,blue,squares"' in record
    assert yaml.safe_load((folders[0] / "_cm.yaml").read_text(encoding="utf-8"))["tags"] == ["get", "blue", "squares"]
    with pytest.raises(RequestError, match=r"record.py exists already|dataset.py exists already"):
        add(home, "recipes:get-blue_squares", template="benchmark", tags="get,other")


@pytest.mark.parametrize("template", NAMES)
@pytest.mark.parametrize("tags", ["get,thing", "get,on,1.0,with:colon,3"])
def test_a_new_recipe_is_sound_and_runs(home: TemporaryHome, template: str, tags: str) -> None:
    answer = add(home, "recipes:get-thing", tags=tags, template=template, program="bash")
    folder = home.repo / "script" / "get-thing"
    assert answer["path"] == str(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "_cm.yaml", "customize.py", "run.sh"]
    assert sorted(answer["files"]) == sorted(str(path) for path in folder.iterdir())
    assert "@" not in "".join(path.read_text(encoding="utf-8") for path in folder.iterdir())
    meta = yaml.safe_load((folder / "_cm.yaml").read_text(encoding="utf-8"))
    jsonschema.validate(meta, SCHEMA)
    assert meta["tags"] == tags.split(",")
    assert meta["uid"] == answer["uid"]
    ran = home.run(tags)
    assert set(ran["new_env"]) == set(meta["new_env_keys"])
    assert all(ran["new_env"].values())


@pytest.mark.parametrize(
    ("repo", "line"),
    [
        (CHECKOUT, "# yaml-language-server: $schema=../../docs/reference/cm-recipe.schema.json\n"),
        (CHECKOUT.parent / "other", f"$schema=../../../{CHECKOUT.name}/docs/reference/cm-recipe.schema.json\n"),
        (Path("/somewhere/else/repos/other"), ""),
    ],
)
def test_editors_are_told_the_schema_where_the_path_to_it_is_the_same_for_all(repo: Path, line: str) -> None:
    new = NewRecipe(RepoInfo(repo, "x", ""), "get-x", "abcdef0123456789", ("get", "x"), "plain", "x")
    assert new.fill_in("@SCHEMA_LINE@").endswith(line)
    assert bool(line) == bool(new.schema_line)


def test_a_recipe_without_repository_goes_into_the_local_one(home: TemporaryHome) -> None:
    local = home.path / "repos" / "local"
    local.mkdir(parents=True)
    both = home.engine_home._replace(repos=[*home.engine_home.repos, RepoInfo(local, "local", "9a3280b14a4285c9")])
    answer = add_action({"artifact": "get-thing"}, both)
    assert answer["path"] == str(local / "script" / "get-thing")
    assert answer["tags"] == ["get", "thing"]
    with pytest.raises(NotFound, match="no registered repository is called 'local'") as caught:
        add(home, "get-thing")
    assert "cm add script recipes:ALIAS" in caught.value.hint


@pytest.mark.parametrize(
    ("artifact", "inputs", "problem"),
    [
        ("", {}, "no name"),
        ("recipes:", {}, "no name"),
        ("recipes:a b", {}, "cannot be the name"),
        ("recipes:../up", {}, "cannot be the name"),
        ("recipes:a1b2c3d4e5f60718", {}, "cannot be the name"),
        ("recipes:null", {}, "cannot be the name"),
        ("recipes:get-thing,12", {}, "is not a uid"),
        ("recipes:get-old", {"tags": "get,new"}, "the name 'get-old' is in use by recipes:get-old"),
        ("recipes:get-thing,abcdef0123456789", {}, "the uid abcdef0123456789 is in use by recipes:get-old"),
        ("recipes:get-thing", {"tags": "get,old"}, "already match recipes:get-old"),
        ("recipes:get-thing", {"tags": "old"}, "already match recipes:get-old"),
        ("recipes:get-thing", {"tags": "get,_thing"}, "cannot be the tags"),
        ("recipes:get-thing", {"tags": "get,-thing"}, "cannot be the tags"),
        ("recipes:get-thing", {"tags": "get,a b"}, "cannot be the tags"),
        ("recipes:get-thing", {"tags": ","}, "cannot be the tags"),
        ("recipes:get-thing", {"template": "plian"}, "--template=plian is not known"),
        ("recipes:get-thing", {"template": "tool", "program": "a;b"}, "is not the name of a program"),
        ("recipes:in-the-way", {}, "exists already"),
    ],
)
def test_what_cannot_be_taken_is_refused_and_nothing_is_written(
    home: TemporaryHome, artifact: str, inputs: dict[str, Any], problem: str
) -> None:
    home.recipe("get-old", {"uid": "abcdef0123456789"})
    (home.repo / "script" / "in-the-way").mkdir()
    before = sorted(home.repo.rglob("*"))
    with pytest.raises(RequestError, match=re.escape(problem)) as caught:
        add(home, artifact, **inputs)
    assert caught.value.hint or problem == "no name"
    assert sorted(home.repo.rglob("*")) == before


def test_cm_adds_and_runs(home: TemporaryHome) -> None:
    done = home.cm("add", "script", "recipes:get-thing", "--tags=get,thing")
    assert done.code == 0, done.stderr
    assert "cm audit script recipes:get-thing" in done.stderr
    ran = home.run_cm("get,thing", "--greeting=Hi")
    assert ran.answer["new_env"] == {"CM_THING_MESSAGE": "Hi from get-thing"}
    again = home.cm("add", "script", "recipes:get-thing", "--tags=get,thing", "--out=json")
    assert again.code == 1
    assert "already match recipes:get-thing" in again.answer["error"]


@pytest.mark.parametrize(
    "template", ["tool", "benchmark", *(pytest.param(name, marks=pytest.mark.full) for name in ("file", "plain"))]
)
def test_the_test_that_comes_with_a_recipe_of_this_checkout_passes(tmp_path: Path, template: str) -> None:
    copy = tmp_path / "copy"
    ignored = shutil.ignore_patterns("__pycache__", "fixtures", "test_*")
    for name in ("recipes", "support"):
        shutil.copytree(CHECKOUT / "tests" / name, copy / "tests" / name, ignore=ignored)
    (copy / BENCHMARKS).mkdir(parents=True)
    home = Home([RepoInfo(copy, "crowdperf", "0000000000000001")], tmp_path / "home", tmp_path / "home" / "local")
    answer = add_action({"artifact": "crowdperf:get-new-thing", "template": template, "program": "bash"}, home)
    test = copy / "tests" / "recipes" / "test_get_new_thing.py"
    assert str(test) in answer["files"]
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(copy),
        "-o",
        f"pythonpath=tests/support {CHECKOUT / 'automation'}",  # tests/conftest.py is not there
    ]
    done = subprocess.run(
        [*words, str(test)], cwd=copy, env=os.environ.copy(), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


@pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="needs ruff")
@pytest.mark.parametrize("template", [*NAMES, "benchmark"])
def test_the_code_of_a_new_recipe_is_as_ours_must_be(home: TemporaryHome, template: str) -> None:
    (home.repo / BENCHMARKS).mkdir(parents=True)
    add(home, "recipes:get-thing", template=template)
    settings = ["--no-cache", "--config", str(CHECKOUT / "pyproject.toml")]
    for action in (["check", "--ignore=I001"], ["format", "--check"]):  # which imports are its own a repository knows
        words = [sys.executable, "-m", "ruff", *action, *settings, str(home.repo)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr

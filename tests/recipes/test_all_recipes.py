"""What every recipe of this repository has in common."""

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome, checkout_home, recipe_metas
from recipe_engine.actions.run import new_engine, parse_request
from recipe_engine.planning.plan_action import make_plan
from recipe_loader import RECIPES, recipe_meta

HOOKS = sorted(RECIPES.glob("*/customize.py"))


def imports_its_neighbours(path: Path) -> bool:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.ImportFrom) and node.level for node in tree.body)


@pytest.mark.parametrize("path", list(filter(imports_its_neighbours, HOOKS)), ids=lambda path: path.parent.name)
def test_under_cms_own_engine_a_recipe_names_the_mend_before_anything_else(path: Path) -> None:
    spec = importlib.util.spec_from_file_location("customize", path)  # as cmind 4.2.0 loads it
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ImportError, match="Put it first with: cm use crowdperf:script"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


@pytest.mark.parametrize(
    ("tags", "alias"),
    [
        ("get,dataset,imagenet", "get-dataset-imagenet-val"),
        ("get,dataset,imagenet,validation", "get-dataset-imagenet-val"),
        ("get,dataset,squad,_tiny", "get-dataset-squad"),
        ("get,dataset,preprocessed,imagenet,_tiny", "get-preprocessed-dataset-imagenet"),
    ],
)
def test_plain_tags_of_a_data_set_mean_its_recipe_and_ask_nothing(home: TemporaryHome, tags: str, alias: str) -> None:
    done = home.cm("explain", "script", f"--tags={tags}", "--out=json")
    candidates = done.answer["explanation"]["choice"]["candidates"]
    assert [row["alias"] for row in candidates if row["verdict"] == "chosen"] == [alias]


def test_the_alias_of_a_recipe_is_one_of_its_tags() -> None:
    assert [meta["alias"] for meta in recipe_metas() if meta["alias"] not in meta["tags"]] == []


def test_each_recipe_has_its_metadata_and_its_hooks() -> None:
    folders = {path.name for path in RECIPES.iterdir() if path.is_dir() and path.name != "__pycache__"}
    lacks = {name: {path.name for path in (RECIPES / name).iterdir()} for name in folders}
    needed = {"_cm.yaml", "customize.py"}
    assert {name: sorted(needed - files) for name, files in lacks.items() if not needed <= files} == {}


@pytest.mark.parametrize(("alias", "heir"), [("published-detector", "retinanet"), ("published-model", "whisper")])
def test_a_recipe_that_only_holds_metadata_names_one_that_runs(home: TemporaryHome, alias: str, heir: str) -> None:
    done = home.cm("run", "script", alias, "--quiet", "--out=json")
    assert (done.code, f"{alias} only contains the shared metadata" in done.answer["error"]) == (1, True)
    assert done.answer["error"].splitlines()[0].endswith(f"--tags=get,ml-model,{heir}")
    assert alias in recipe_meta(f"get-ml-model-{heir}")["tags"]


def test_a_program_that_a_recipe_starts_finds_no_python_file_of_the_users_folder() -> None:
    """`python -m` looks into the working folder first, which is the user's unless a recipe has one of its own."""
    exposed, count = [], 0
    for meta in recipe_metas():
        has_a_folder = any(meta.get(key) for key in ("cache", "force_cache", "own_folder"))
        for script in (RECIPES / meta["alias"]).glob("run*.sh"):
            text = script.read_text(encoding="utf-8")
            before, started, _ = text.partition(" -m crowdperf.")
            count += bool(started)
            if started and not has_a_folder and "\ncd " not in before:
                exposed.append(f"{meta['alias']}/{script.name}")
    assert exposed == [] and count > 10


def labels_of(step: dict[str, Any]) -> Iterator[str]:
    """The labels of the steps of a plan that would run or be taken from the cache."""
    if step["action"] != "skip":
        yield step["label"]
        for child in step.get("children", ()):
            yield from labels_of(child)


@pytest.mark.parametrize(
    "alias", ["generate-triton-model-repository", "get-triton-server", "get-vllm-server", "serve-mlperf-model"]
)
def test_a_fake_run_of_a_server_installs_nothing(home: TemporaryHome, alias: str) -> None:
    plan = home.cm("plan", "script", f"--tags={alias}", "--fake_run", "--out=json").answer["plan"]
    cached = {meta["alias"] for meta in recipe_metas() if meta.get("cache")}
    assert cached & set(labels_of(plan["steps"])) <= {alias}


def test_a_fake_run_installs_no_wheels_whose_version_preprocess_would_choose(tmp_path: Path) -> None:
    home = checkout_home(tmp_path)
    for tags in ("get,cuda,_pip", "get,cudnn,_pip", "get,cudnn,_cu12", "get,tensorrt,_pip", "get,tensorrt,_rtx"):
        plan = make_plan(new_engine(home, None), parse_request({"tags": tags, "fake_run": True}))
        wheels = [step for _, step in plan.root.walk() if "generic-python-lib" in step.label]
        assert (plan.errors, plan.open_count, plan.needs.downloads) == ((), 0, ()), tags
        assert wheels and all((step.action, step.reason) == ("skip", "fake run") for step in wheels), tags


DATA_SETS = ("brats19", "coco", "criteo", "imagenet-val", "kits19", "librispeech", "openimages", "squad")


@pytest.mark.parametrize("name", DATA_SETS)
def test_the_tags_that_help_shows_for_a_data_set_are_its_shortest(name: str) -> None:
    meta = recipe_meta(f"get-dataset-{name}")
    assert meta["tags_help"] == f"get dataset {name.removesuffix('-val')}"
    assert set(meta["tags_help"].split()) <= set(meta["tags"])

"""40 misspelt inputs of our recipes, with every action that takes a recipe's inputs: 40 errors, and nothing has run."""

import contextlib
import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers import recipe_metas
from recipe_engine.actions.adapter import Home
from recipe_engine.actions.run import new_engine, run_action
from recipe_engine.actions.script_actions import prepare_action
from recipe_engine.disk.files import working_folder
from recipe_engine.explaining.explain import explain_action
from recipe_engine.planning.plan_action import plan_action
from recipe_engine.provenance.lock import lock_action
from recipe_engine.rules.errors import RecipeError, RequestError
from recipe_engine.rules.inputs import declared_inputs, remarks_on_handles
from recipe_engine.rules.keys import CHILD_KEYS, DEPENDENCY_KEYS
from recipe_engine.rules.model import PHASES
from recipe_engine.rules.query import candidates, parse_query
from recipe_loader import recipe_meta

from crowdperf.rules.app_names import APP_RECIPE, PRECISION_ALIASES, app_names

ACTIONS = {
    "run": lambda i, home: run_action(i, home, None),
    "plan": plan_action,
    "explain": explain_action,
    "lock": lock_action,
    "prepare": lambda i, home: prepare_action(i, home, None),
}
MISSPELT = {
    "run,mlperf,inference": "scenaro=scenario bath_size=batch_size modl=model devise=device backnd=backend",
    "app,mlperf,inference,_digits": "threds=threads scenarios=scenario outputdir=output_dir presicion=precision",
    "generate,inference,submission": "submiter=submitter hwname=hw_name results_dirs=results_dir divison=division",
    "install,python-venv": "nam=name",
    "get,generic-python-lib,_package.numpy": "force_instal=force_install indexurl=index_url find_link=find_links",
    "download,file": "uri=url md5=md5sum sha256=sha256sum file_name=filename",
    "run,mlperf,compliance": "tests=test result_dir=results_dir divsion=division",
    "get,cuda": "runfile=run_file as_rot=as_root pth=path",
    "check,mlperf,submission": "submision_dir=submission_dir formt=format oficial=official",
    "generate-run-cmds,inference": "frmework=framework sorce=source submissiondir=submission_dir",
    "get,dataset,imagenet,validation": "imagnet_path=imagenet_path sed=seed paths=path",
    "tune,system": "govenor=governor aply=apply gpuclocks=gpu_clocks",
    "get,python3": "inpt=input",
}
CASES = [
    pytest.param(tags, *pair.split("="), action, id=f"{action} {tags} --{pair.partition('=')[0]}")
    for number, (tags, pair) in enumerate((tags, pair) for tags, pairs in MISSPELT.items() for pair in pairs.split())
    for action in [list(ACTIONS)[number % len(ACTIONS)]]
]


def test_there_are_forty_of_more_than_twelve_recipes() -> None:
    assert len(CASES) == 40
    assert len(MISSPELT) > 12


@pytest.mark.parametrize(("tags", "name", "meant", "action"), CASES)
def test_a_misspelt_input_is_an_error_that_names_the_right_one_and_nothing_runs(
    ours: Home, tmp_path: Path, tags: str, name: str, meant: str, action: str
) -> None:
    asked = {"action": action, "automation": "script", "tags": tags, name: "1", "quiet": True}
    with working_folder(tmp_path), pytest.raises(RequestError) as caught:
        ACTIONS[action](asked, ours)
    first = caught.value.message.splitlines()[0]
    assert first.startswith(f"unknown input --{name} for recipe ")
    assert first.endswith(f", did you mean --{meant}?")
    assert f"--{meant}=1" in caught.value.hint
    assert caught.value.hint.startswith(f"cm {'run' if action == 'prepare' else action} script --tags=")
    assert list(tmp_path.iterdir()) == []
    assert not (ours.path / "runs").exists()
    assert not any(ours.store_path.glob("*/_cm.json"))


@pytest.mark.parametrize("action", list(ACTIONS))
def test_a_misspelt_name_of_a_dependency_is_an_error_too(ours: Home, tmp_path: Path, action: str) -> None:
    asked = {"action": action, "automation": "script", "tags": "run,mlperf,inference", "quiet": True}
    with working_folder(tmp_path), pytest.raises(RequestError) as caught:
        ACTIONS[action]({**asked, "adr": {"pyhton": {"name": "mine"}}}, ours)
    text = "run-mlperf-inference: --adr.pyhton: no recipe has a dependency called pyhton, did you mean --adr.python?"
    assert caught.value.message == text
    assert "--adr.python.name=mine" in caught.value.hint
    assert not any(ours.store_path.glob("*/_cm.json"))


@pytest.mark.parametrize("alias", ["generate-submission", "run-mlperf-inference-app"])
def test_a_dependency_of_the_tutorial_that_is_not_needed_here_is_explained(alias: str) -> None:
    recipe: Any = SimpleNamespace(id=SimpleNamespace(alias=alias), unused_inputs=recipe_meta(alias)["unused_inputs"])
    first, *others = remarks_on_handles(recipe, {}, ["inference-src", "somebody-elses"], {"python"})
    assert first.startswith("--adr.inference-src has no effect: crowdperf includes the rules of each round")
    words = "--adr.somebody-elses: no recipe has a dependency called somebody-elses, so it has no effect"
    assert others == [f"{alias}: {words}"]


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        ({"adr": {"imagenet": {"tags": "_size.50"}}}, "--adr"),
        ({"add_deps_recursive": {"imagenet": {"tags": "_size.50"}}}, "--add_deps_recursive"),
    ],
)
@pytest.mark.parametrize("action", list(ACTIONS))
def test_a_name_that_no_dependency_has_is_answered_with_those_of_the_run(
    ours: Home, tmp_path: Path, caplog: pytest.LogCaptureFixture, action: str, words: Any, flag: str
) -> None:
    asked = {"action": action, "automation": "script", "tags": "run,mlperf,inference", "quiet": True, "out": "con"}
    asked |= {"model": "resnet50", "device": "cpu", "scenario": "Offline", "mode": "performance", **words}
    with working_folder(tmp_path), caplog.at_level("WARNING"), contextlib.suppress(RecipeError):
        ACTIONS[action](asked, ours)
    (told,) = (text for text in map(logging.LogRecord.getMessage, caplog.records) if "dependency called" in text)
    text = f"! run-mlperf-inference: {flag}.imagenet: no recipe has a dependency called imagenet, so it has no effect\n"
    if action == "prepare":  # stops at the dependencies of the recipe, which has none with a name
        assert told == text.rstrip()
        return
    assert told.startswith(f"{text}  names in this run: ")
    names = told.partition("run: ")[2].partition(" and ")[0].split(", ")
    assert "dataset (get-dataset-imagenet-val)" in names[:4] and len(names) == 8


def test_names_that_look_like_the_wrong_one_come_first() -> None:
    recipe: Any = SimpleNamespace(id=SimpleNamespace(alias="app"), unused_inputs={})
    rows = [("python", "get-python3"), ("dataset", "get-dataset-imagenet-val"), ("ml-model", "get-ml-model-resnet50")]
    for word, first in (("images", "python"), ("models", "ml-model"), ("imagenet", "dataset")):
        (line,) = remarks_on_handles(recipe, {}, [word], set(), lambda: rows)
        assert line.partition("in this run: ")[2].startswith(f"{first} (")


# --- what our recipes declare ---


def test_every_input_that_is_mapped_to_env_is_described() -> None:
    for meta in recipe_metas():
        blocks = [meta, *(meta.get("variations") or {}).values(), *(meta.get("versions") or {}).values()]
        mapped = {name for block in blocks for name in (block or {}).get("input_mapping") or {}}
        assert sorted(mapped - set(meta.get("input_description") or {})) == [], meta["alias"]


def _dependencies(meta: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    blocks = [meta, *(meta.get("variations") or {}).values(), *(meta.get("versions") or {}).values()]
    for block in blocks:
        for phase in PHASES:
            yield from (block or {}).get(phase) or ()


def test_every_input_that_a_dependency_is_given_is_declared_by_it(ours: Home) -> None:
    engine = new_engine(ours, None)
    own = {*DEPENDENCY_KEYS, *CHILD_KEYS}
    for meta in recipe_metas():
        for entry in _dependencies(meta):
            if extra := set(entry) - own:
                query = parse_query([word for word in entry["tags"].split(",") if "<<<" not in word])
                child = engine.source.recipe(candidates(query, "", engine.source.index)[0])
                assert sorted(extra - declared_inputs(child)) == [], (meta["alias"], json.dumps(entry))


def test_the_choices_of_the_recipes_that_run_benchmarks_are_all_names_that_the_app_knows() -> None:
    names = app_names(recipe_meta(APP_RECIPE))
    for alias in ("run-mlperf-inference", "run-mlperf-inference-app"):
        described = recipe_meta(alias)["input_description"]
        assert sorted(described["model"]["choices"]) == sorted({*names.models, *names.aliases})
        assert sorted(described["backend"]["choices"]) == sorted(names.backends)
        assert set(described["precision"]["choices"]) == {*names.precisions, *PRECISION_ALIASES}
        assert sorted(described["source"]["choices"]) == sorted(names.sources)

"""What a recipe tells about itself."""

from pathlib import Path
from typing import Any

import pytest
from recipe_engine.documents.recipe_help import call_tags, costs_of, help_json, help_lines, inputs_of, readme_text
from recipe_engine.rules.errors import MetaError
from recipe_engine.rules.model import Recipe
from recipe_engine.rules.schema import parse_recipe

META: dict[str, Any] = {
    "alias": "get-model",
    "uid": "a" * 16,
    "name": "Get a model",
    "tags": ["get", "model", "get-model"],
    "tags_help": "get model",
    "cache": True,
    "default_version": "2.0",
    "input_description": {
        "size": {"desc": "how big\n it is", "default": "small", "choices": ["small", "big"]},
        "note": "free text",
    },
    "input_mapping": {"size": "CM_SIZE", "plain": "CM_PLAIN"},
    "variations": {
        "cpu": {"group": "device", "default": True},
        "cuda": {"group": "device", "base": ["fast"]},
        "fast": {"input_mapping": {"speed": "CM_SPEED"}},
        "path.#": {},
        "gpu": {"alias": "cuda"},
        "cpu,fast": {},
    },
    "versions": {"1.0": {}, "2.0": {}},
    "deps": [{"tags": "get,python3", "names": ["python"], "skip_if_env": {"CM_X": ["yes"]}}],
    "post_deps": [{"tags": "check,model"}],
    "cost": {"time": "a minute\n on 2 cores", "disk": "1 MB"},
    "hardware_status": "not run on a GPU",
    "new_env_keys": ["CM_MODEL_*"],
    "new_state_keys": ["model"],
}


@pytest.fixture
def recipe() -> Recipe:
    """A recipe with something of everything."""
    return parse_recipe(META, Path("/r/script/get-model"), Path("/r"))


def test_help_tells_how_to_call_inputs_groups_versions_dependencies_and_results(recipe: Recipe) -> None:
    text = "\n".join(help_lines(recipe))
    for part in (
        "get-model: Get a model",
        "folder: /r/script/get-model",
        "kept in the cache",
        "cm run script --tags=get,model[,_VARIATION] [--INPUT=VALUE]",
        "--size=    how big it is; default: small; one of: small, big; sets CM_SIZE",
        "--plain=   sets CM_PLAIN",
        "--note=    free text",
        "--speed=   sets CM_SPEED; only with _fast",
        "Variations, one of the group 'device':\n  _cpu (default)\n  _cuda (switches on _fast)",
        "  _gpu (same as _cuda)",
        "  _path.#",
        "default 2.0; known: 1.0, 2.0",
        "Runs before the recipe:\n  get,python3; names python; skip_if_env: CM_X in [yes]",
        "Runs after the recipe:\n  check,model",
        "Cost:\n  time: a minute on 2 cores\n  disk: 1 MB",
        "Hardware status:\n  not run on a GPU",
        "Gives:\n  CM_MODEL_*\n  state model",
    ):
        assert part in text, part
    assert "_cpu,fast" not in text, "combinations are not asked for by themselves"


def test_what_cost_does_not_say_comes_from_needs(recipe: Recipe) -> None:
    big = {"what": "host: big", "size_bytes": 2_000_000, "license": "MIT"}
    needs = {"downloads": [big, {"what": "<<<CM_URL>>>"}], "disk_mb": 3, "sudo": "installs a package"}
    meta = {**META, "variations": {"x": {"needs": needs}}}
    assert costs_of(parse_recipe(meta, Path("/r/script/x"), Path("/r"))) == {
        "time": "a minute on 2 cores",
        "download": "`_x`: host: big (2.0 MB; license: MIT)",
        "disk": "1 MB",
        "root": "`_x`: installs a package",
    }


@pytest.mark.parametrize(
    ("needs", "costs"),
    [
        ({"disk_mb": "300", "sudo": True}, {"disk": "`_x`: 300.0 MB", "root": "`_x`: yes"}),
        ({"disk_mb": "²", "sudo": ["adds a key", "installs"]}, {"root": "`_x`: adds a key; installs"}),
        (
            {"downloads": ["https://host/x", {"size_bytes": 5}, {"what": "a", "size_bytes": "big"}]},
            {"download": "`_x`: a"},
        ),
        ({"downloads": "https://host/x"}, {}),
    ],
)
def test_needs_of_any_shape_are_read_as_in_a_plan(needs: dict[str, Any], costs: dict[str, str]) -> None:
    meta = {"alias": "x", "uid": "b" * 16, "variations": {"x": {"needs": needs}}}
    assert costs_of(parse_recipe(meta, Path("/r/script/x"), Path("/r"))) == costs


def test_a_cost_of_another_shape_is_named() -> None:
    with pytest.raises(MetaError, match=r"_cm\.yaml: cost: expected a mapping, found bool True"):
        costs_of(parse_recipe({"alias": "x", "uid": "b" * 16, "cost": True}, Path("/r/script/x"), Path("/r")))


def test_a_recipe_with_nothing_gets_no_empty_sections() -> None:
    bare = parse_recipe({"alias": "x", "uid": "b" * 16, "tags": ["x"]}, Path("/r/script/x"), Path("/r"))
    text = "\n".join(help_lines(bare))
    assert "cm run script --tags=x\n" in text
    for title in ("Inputs", "Variations", "Versions", "Runs", "Cost", "Hardware status", "Gives"):
        assert title not in text
        assert f"## {title}" not in readme_text(bare)


def test_recommended_tags_count_only_when_the_recipe_has_them(recipe: Recipe) -> None:
    assert call_tags(recipe.meta, recipe.tags) == "get,model"
    other = recipe._replace(meta={**META, "tags_help": "get modell"})
    assert call_tags(other.meta, other.tags) == "get,model,get-model"


def test_the_page_holds_the_same_facts(recipe: Recipe) -> None:
    page = readme_text(recipe)
    for part in (
        "# get-model\n\nGet a model. Its result is kept in the cache.\n",
        "    cm run script --tags=get,model[,_VARIATION]",
        "| `--size` | how big it is; default: small; one of: small, big; sets CM_SIZE |",
        "Group `device`, one of:\n\n- `_cpu` (default)\n- `_cuda` (switches on _fast)\n",
        "## Runs after the recipe\n\n- check,model\n",
        "- `CM_MODEL_*`",
    ):
        assert part in page, part
    assert "\n\n\n" not in page


def test_a_bar_in_a_description_does_not_break_the_table() -> None:
    meta = {"alias": "x", "uid": "b" * 16, "tags": ["x"], "input_description": {"a": "one|two"}}
    assert "| `--a` | one\\|two |" in readme_text(parse_recipe(meta, Path("/r/script/x"), Path("/r")))


def test_a_program_gets_the_same_facts(recipe: Recipe) -> None:
    facts = help_json(recipe)
    assert [item["name"] for item in facts["inputs"]] == [item.name for item in inputs_of(recipe)]
    assert facts["inputs"][2]["choices"] == ["small", "big"]
    assert [item["name"] for item in facts["variations"]["device"]] == ["cpu", "cuda"]
    assert facts["dependencies"]["deps"][0]["names"] == ["python"]
    assert facts["versions"] == ["1.0", "2.0"]

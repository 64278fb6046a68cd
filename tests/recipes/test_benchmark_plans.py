"""The plan of every benchmark's run: nothing is open with made inputs; what to fetch by hand is told."""

import pytest
from helpers import CHECKOUT
from recipe_engine.actions.adapter import Home
from recipe_engine.actions.run import new_engine, parse_request
from recipe_engine.disk.files import working_folder
from recipe_engine.disk.repos import RepoInfo
from recipe_engine.planning.plan import Plan
from recipe_engine.planning.plan_action import make_plan
from recipe_loader import recipe_meta

from crowdperf.rules.app_names import APP_RECIPE, app_names
from crowdperf.rules.backends import default_backend
from crowdperf.rules.benchmarks import record_of

MODELS = [name for name in app_names(recipe_meta(APP_RECIPE)).models if not record_of(name).recipes.is_own]
BY_HAND = {
    "resnet50": "get-dataset-imagenet-val",
    "llama2-70b-99.9": "get-dataset-mlperf-text",
    "llama3.1-8b": "get-ml-model-mlperf-text",
    "3d-unet-99": "get-dataset-kits19",
    "3d-unet-brats-99": "get-dataset-brats19",
    "dlrm-99": "get-dataset-criteo",
    "dlrm-v2-99": "get-ml-model-dlrm-v2",
}


def plan_of(ours: Home, model: str, *variations: str, mode: str = "performance", url: str = "") -> Plan:
    backend = default_backend(model, asks_server=bool(url))
    names = ("offline", mode, "cpu", backend, model, *variations)
    tags = ",".join(["app", "mlperf", "inference", *(f"_{name}" for name in names)])
    with working_folder(ours.path):
        return make_plan(new_engine(ours, None), parse_request({"tags": tags, **({"endpoint": url} if url else {})}))


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """An empty CM home with this repository."""
    folder = tmp_path_factory.mktemp("plans")
    return Home([RepoInfo(CHECKOUT, "crowdperf", "0123456789abcdef", python="src")], folder, folder / "repos" / "local")


@pytest.mark.parametrize("model", MODELS)
def test_with_tiny_inputs_every_step_is_known_and_none_fails(ours: Home, model: str) -> None:
    plan = plan_of(ours, model, *(() if record_of(model).recipes.is_fixed else ("tiny",)))
    assert [step.label for _, step in plan.root.walk() if not step.is_certain] == []
    assert plan.errors == ()


@pytest.mark.parametrize(("model", "recipe"), BY_HAND.items())
def test_what_must_be_fetched_by_hand_is_told_before_anything_is_installed(ours: Home, model: str, recipe: str) -> None:
    errors = plan_of(ours, model).errors
    assert any(error.trace[-1].startswith(recipe) and "by hand" in error.message for error in errors), errors


def server_plan(ours: Home, model: str, mode: str) -> str:
    """The labels of the steps of a run against a server."""
    made = () if record_of(model).recipes.is_fixed else ("tiny",)
    plan = plan_of(ours, model, *made, mode=mode, url="http://127.0.0.1:9/v1")
    assert plan.errors == ()
    return " ".join(step.label for _, step in plan.root.walk() if step.action != "skip")


@pytest.mark.parametrize("model", [name for name in MODELS if record_of(name).generation is not None])
def test_a_run_against_a_server_needs_no_weights_and_a_performance_run_no_answers(ours: Home, model: str) -> None:
    labels = server_plan(ours, model, "performance")
    for word in ("torch", "safetensors", "_huggingface", "rouge"):
        assert word not in labels, word
    assert ("get-dataset-smollm2,_prompts" if model == "smollm2" else ",_tokenizer") in labels


def test_an_accuracy_run_against_a_server_has_the_answers_and_so_has_any_run_here(ours: Home) -> None:
    labels = server_plan(ours, "smollm2", "accuracy")
    assert "get-dataset-smollm2" in labels and "_prompts" not in labels and "rouge-score" in labels
    labels = " ".join(step.label for _, step in plan_of(ours, "smollm2").root.walk() if step.action != "skip")
    assert "get-ml-model-smollm2" in labels and "_prompts" not in labels

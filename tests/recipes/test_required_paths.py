"""Data and weights that users have to get themselves: a run is refused at its start, with one command to paste."""

import shlex
from pathlib import Path

import cmind.cli
import pytest
from recipe_engine.actions.adapter import Home, answer_cm
from recipe_engine.actions.run import new_engine, parse_request, run_action
from recipe_engine.disk.files import working_folder
from recipe_engine.planning.plan_action import plan_action
from recipe_engine.rules.query import candidates

BENCHMARKS = {
    "3d-unet-99": "get,dataset,original,kits19",
    "3d-unet-brats-99": "get,dataset,original,brats19",
    "dlrm-99": "get,dataset,original,criteo",
    "dlrm-v2-99": "get,dataset,original,criteo,_multihot",
    "llama2-70b-99.9": "get,dataset,mlperf-text,_llama2-70b",
    "llama3.1-8b": "get,ml-model,mlperf-text,_llama3.1-8b",
    "resnet50": "get,dataset,imagenet,validation",
    "rgat": "get,dataset,igbh",
    "stable-diffusion-xl": "get,dataset,coco2014",
    "whisper": "get,dataset,whisper",
    "yolo-99": "get,ml-model,yolo",
}


DOORS = ("run,mlperf,inference --device=cpu --scenario=Offline --model=", "app,mlperf,inference,_cpu,_offline,_")


@pytest.mark.parametrize(
    ("model", "door"),
    [
        pytest.param(model, door, marks=() if number % len(DOORS) == place else pytest.mark.full)
        for number, model in enumerate(BENCHMARKS)
        for place, door in enumerate(DOORS)
    ],
)
def test_what_has_to_be_given_is_asked_for_before_anything_is_made(
    ours: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, door: str
) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # behind one nobody looks whether servers can be reached
    command = f"cm run script --quiet --tags={door}{model}"
    i = cmind.cli.parse(shlex.split(command)[1:])["cm_input"]
    with working_folder(tmp_path):
        ran = answer_cm(lambda i: run_action(i, ours, None), i, None)
        planned = plan_action(i, ours)
    assert (ran["return"], planned["return"]) == (1, 1)
    first, *_, last = ran["error"].splitlines()
    assert "must be fetched by hand" in first and first in planned["error"] and not list(tmp_path.iterdir())
    assert not list(ours.path.rglob("cache/*/*"))
    start, _, rest = last.partition(f"--tags={BENCHMARKS[model]} --path=")
    assert start == "  hint: cm run script " and rest.endswith("   # once: later runs find it")
    request = parse_request({"tags": BENCHMARKS[model]})
    assert len(candidates(request.query, "", new_engine(ours, None).source.index)) == 1

"""Hooks of get-ml-model-neuron: lay a compiled network out as NVIDIA's document for AWS Inferentia has it.

The compiling is done by generate-engine,_neuron; here its file gets the documented name, with compile.json beside it.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdperf.machine import neuron
from crowdperf.machine.probe import Machine

INFO_KEY = "CM_ML_MODEL_INFO_FILE"
PLACES = {
    "resnet50": "resnet50/resnet50-pytorch-bs{batch}/resnet50_neuron_bs{batch}_dynamic.pt",
    "bert-99": "bert/bert-pytorch-bs{batch}/bert-large-int32-bs{batch}-concat.pt",
}
"""Below /home/ubuntu/inferentia-compiled-models in README_Triton_Inferentia.md of mlcommons/inference_results_v2.0
(425a0d30); below this recipe's cache entry here."""


def place_of(model: str, batch: int) -> Path:
    """Where a compiled network lies below the root."""
    return Path(PLACES[model].format(batch=batch))


def compiled(info: Mapping[str, Any], place: Path) -> dict[str, Any]:
    """The content of compile.json: what the file was made with, from model.json's `engine`. Raises KeyError."""
    engine = info["engine"]
    return {
        "file": place.name,
        "batch": engine["compiled_batch"],
        "dynamic": engine["is_dynamic"],
        "dtype": engine["dtype"],
        "sizes": engine["sizes"],
        "compiler": engine["compiler"],
        "is_synthetic": bool(info.get("is_synthetic")),
        "from_sha256": engine["from_sha256"],
        "sha256": info["files"]["model"]["sha256"],
    }


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Refuses a machine without Neuron device; a run is planned first, so that nothing is fetched for it then."""
    why = "" if i["env"].get("CM_MLPERF_SIMULATE") else neuron.missing(Machine())
    hint = "hint: --simulate=neuron creates a file for the CPU instead, to test the path"
    return {"return": 16, "error": f"{why}\n{hint}"} if why else {"return": 0}


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: places the compiled file, and exports where it is."""
    from crowdperf.kit.whole_file import link_or_copy, write_json

    env = i["env"]
    source = Path(env[INFO_KEY])
    try:
        info = json.loads(source.read_text(encoding="utf-8"))
        place = place_of(env["CM_NEURON_MODEL"], info["engine"]["compiled_batch"])
        facts = compiled(info, place)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        link_or_copy(source.parent / info["files"]["model"]["file"], place)
    except (OSError, ValueError, KeyError) as error:
        return {"return": 1, "error": f"{source} cannot be used: {error!r}\nhint: run it again with --new"}
    about = place.with_name("compile.json")
    write_json(about, facts)
    env["CM_ML_MODEL_NEURON_FILE"] = str(place.absolute())
    env["CM_ML_MODEL_NEURON_ROOT"] = str(Path.cwd())
    env["CM_ML_MODEL_NEURON_COMPILER"] = json.dumps(facts["compiler"])
    env["CM_GET_DEPENDENT_CACHED_PATH"] = str(source)
    print(json.dumps(facts, indent=2))
    return {"return": 0, "files": [str(place), str(about)]}

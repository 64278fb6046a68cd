"""Hooks of get-ml-model-own-onnx: write model.json of the user's ONNX file, which stays where it is."""

import json
from pathlib import Path

from crowdperf.call.answers import failure, runs_to_its_end
from crowdperf.data.answers import model_answer
from crowdperf.data.model_info import RealModel, write_model_info

plan = runs_to_its_end


def postprocess(i):
    """CM hook: writes model.json into the cache entry."""
    env, folder = i["env"], Path.cwd()
    file, largest = Path(env["CM_OWN_NETWORK_FILE"]), env["CM_OWN_NETWORK_LARGEST_BATCH"]
    model = RealModel(
        name="own_onnx",
        framework="onnx",
        files={"model": file},
        source=file.name,
        license="not stated",
        beside=tuple(file.parent / name for name in json.loads(env["CM_OWN_NETWORK_BESIDE"])),
        config=json.loads(env["CM_OWN_NETWORK_CONFIG"]),
        precision=env["CM_OWN_NETWORK_PRECISION"],
        origin="own",
        facts={"engine": {"largest_batch": int(largest)}} if largest else {},
    )
    try:
        write_model_info(folder, model)
    except OSError as error:
        return failure(f"cannot describe {file}: {error}")
    return model_answer(env, folder)

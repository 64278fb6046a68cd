"""Hooks of get-ml-model-3d-unet: choose between the published model, random weights and a small fitted one.

A published ONNX file is taken as it is, described by a model.json; a published checkpoint is taken over by the
harness's maker. run.sh does the work.
"""

from __future__ import annotations

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine; put it first with: cm use crowdperf:script")

import json
from pathlib import Path

from mlperf_data import answers, modelinfo, weights

from .published import ARCHITECTURES, FILES, FIT_PROGRAMS

PUBLISHED_KEY = "CM_3D_UNET_PUBLISHED_PATH"


def plan(i):
    """The same when a run is only planned: nothing on disk is changed."""
    return preprocess(i)


def preprocess(i):
    """CM hook: decides what run.sh does and what must be fetched."""
    env = i["env"]
    source, data, framework = env["CM_3D_UNET_SOURCE"], env["CM_3D_UNET_DATA"], env["CM_ML_MODEL_FRAMEWORK"]
    path, refused = weights.own_copy(env, source)
    if refused is not None:
        return refused
    env["CM_3D_UNET_ARCHITECTURE"] = ARCHITECTURES[data]
    env["CM_3D_UNET_FIT"] = FIT_PROGRAMS[data]
    env["CM_3D_UNET_IS_DOWNLOADED"] = "no"
    if source != "published":
        env["CM_3D_UNET_WAY"] = "fit" if source == "tiny" else "random"
        return {"return": 0}
    file = FILES[data, framework]
    if file.member is not None and path is None:
        what = f"the published file of 3d-unet for {data} and {framework} is an archive: {file.url}"
        return answers.failure(what, f"unpack it and give {file.member} with --path, or take _onnx")
    env["CM_3D_UNET_WAY"] = "published-onnx" if framework == "onnx" else "checkpoint"
    url = env.get("CM_3D_UNET_URL") or file.url  # a mirror of the same file may be named
    facts = {"source": str(path or url), "reference": {"DICE": file.reference}, "licence": file.licence}
    env["CM_3D_UNET_FACTS"] = json.dumps(facts)
    if path is not None:
        env[PUBLISHED_KEY] = str(path)
        return {"return": 0}
    env["CM_3D_UNET_IS_DOWNLOADED"] = "yes"
    md5 = env.get("CM_3D_UNET_MD5") or file.md5 or ""
    env.update({"CM_3D_UNET_URL": url, "CM_3D_UNET_FILE": file.name, "CM_3D_UNET_MD5": md5})
    return {"return": 0}


def postprocess(i):
    """CM hook: describes a published ONNX file, and exports the model after a look at its checksum."""
    env = i["env"]
    if env["CM_3D_UNET_WAY"] == "published-onnx":
        facts = json.loads(env["CM_3D_UNET_FACTS"])
        model = modelinfo.RealModel(
            name=env["CM_3D_UNET_ARCHITECTURE"],
            framework="onnx",
            files={"model": Path(env[PUBLISHED_KEY])},
            source=facts["source"],
            licence=facts["licence"],
            reference=facts["reference"],
        )
        modelinfo.write_model_info(Path.cwd(), model)
    return answers.model_answer(env, Path.cwd())

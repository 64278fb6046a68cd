"""Hooks of quantize-ml-model: see whether the model needs a calibration, and give the new model in place of the old.

The work is done by `python3 -m crowdperf.models.quantize` in the benchmark's virtual environment.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdperf.call.answers import failure
from crowdperf.call.values import text_of
from crowdperf.data.errors import DataError
from crowdperf.data.onnx_graph import operators_in

CONVOLUTIONS = {"Conv", "ConvTranspose"}
HINT = (
    "hint: it is made as a dependency, e.g. cm run script --tags=app,mlperf,inference,_resnet50,_tiny,_int8, or give "
    "--model_info=model.json --model=NAME --dataset=FOLDER"
)


class ModelError(Exception):
    """The model cannot be quantised; the text says why."""


def network_files(info_file: Path) -> list[Path]:
    """The ONNX files that a model.json names. Raises ModelError for another framework or precision."""
    if not info_file.is_file():
        raise ModelError(f"there is no {info_file}")
    try:
        info = json.loads(info_file.read_text(encoding="utf-8"))
        found = (info.get("framework"), info.get("precision", "fp32"))
        files = [info_file.parent / str(entry["file"]) for entry in info["files"].values()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{info_file} cannot be used: {error!r}") from error
    if found != ("onnx", "fp32"):
        raise ModelError(f"{info_file} describes a {found[1]} model for {found[0]}, but an fp32 ONNX model is needed")
    return files


def needs_calibration(env: Mapping[str, Any], files: list[Path]) -> bool:
    """Whether ranges must be known before: static int8, which `auto` takes for networks with convolutions."""
    if text_of(env, "CM_QUANTIZE_PRECISION") != "int8":
        return False
    method = text_of(env, "CM_QUANTIZE_METHOD")
    return method == "static" or (method == "auto" and any(operators_in(file) & CONVOLUTIONS for file in files))


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: decides on the calibration and writes the arguments of crowdperf.models.quantize."""
    env = i["env"]
    given = text_of(env, "CM_QUANTIZE_MODEL_INFO_FILE") or text_of(env, "CM_ML_MODEL_INFO_FILE")
    if not given:
        return {"return": 1, "error": f"quantize-ml-model has no model (CM_ML_MODEL_INFO_FILE)\n{HINT}"}
    info_file = Path(given)
    try:
        env["CM_QUANTIZE_NEEDS_CALIBRATION"] = "yes" if needs_calibration(env, network_files(info_file)) else "no"
    except (ModelError, DataError) as error:
        return failure(error, HINT)
    env["CM_ML_MODEL_INFO_FILE"] = str(info_file)  # for the calibration
    env["CM_ML_MODEL_QUANTIZED_FROM"] = str(info_file)
    env["CM_ML_MODEL_QUANTIZED_FROM_SHA256"] = hashlib.sha256(info_file.read_bytes()).hexdigest()
    words = {
        "model_info": info_file,
        "output_dir": Path.cwd(),
        "precision": text_of(env, "CM_QUANTIZE_PRECISION"),
        "method": text_of(env, "CM_QUANTIZE_METHOD"),
        "target": text_of(env, "CM_QUANTIZE_TARGET") or "cpu",
    }
    lines = [f"--{name}={value}\n" for name, value in words.items()]
    Path("arguments.txt").write_text("".join(lines), encoding="utf-8")
    return {"return": 0}


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: exports the new model, in place of the one it was made from."""
    from crowdperf.data.answers import model_answer

    answer: dict[str, Any] = model_answer(i["env"], Path.cwd())
    if answer["return"] == 0:
        beside = json.loads(Path("model.json").read_text(encoding="utf-8")).get("beside", [])
        answer["files"] += [str(Path.cwd() / name) for name in beside]
        i["env"]["CM_GET_DEPENDENT_CACHED_PATH"] = i["env"]["CM_ML_MODEL_QUANTIZED_FROM"]
    return answer

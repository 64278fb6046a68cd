"""Hooks of get-ml-model-resnet50: choose what run.sh does, check a given copy, and hand the model on.

`sources.py` holds the addresses and checksums.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import json
from pathlib import Path

from crowdperf.call.answers import failure
from crowdperf.data import answers, copy_identity, model_info
from crowdperf.data.errors import DataError
from crowdperf.kit.rooms import require_room
from crowdperf.kit.whole_file import file_digest

from . import sources

FOLDER_KEY = "CM_RESNET50_FOLDER"
WORK_KEY = "CM_RESNET50_WORK"
FILE_KEY = "CM_RESNET50_PUBLISHED_FILE"
LICENSE = "Apache-2.0 (MLCommons' collection of reference models)"


def made_work(env, path):
    """The env for run.sh where the model is made here. Raises DataError, MissingRoom."""
    copy_identity.refuse_beside(path, "a model made here")
    source, is_fitted = env["CM_RESNET50_SOURCE"], env.get("CM_RESNET50_IS_FITTED") == "yes"
    if is_fitted:
        require_room("standins", "resnet50 with fitted weights (_tiny)", "use _synthetic, whose weights are random")
    is_kept = (
        source == "tiny" and env.get("CM_ML_MODEL_FRAMEWORK") == "onnx" and env.get("CM_ML_MODEL_SEED", "0") == "0"
    )
    return {
        WORK_KEY: "random" if not is_fitted else "fitted" if is_kept else "fit",
        "CM_RESNET50_CONFIG": "tiny" if source == "tiny" else "full",
    }


def checked_file(path, framework):
    """The published file that a given one is. Raises DataError for another one."""
    md5 = file_digest(path, "md5")
    known = sources.known_by(md5, framework)
    if known is None:
        names = ", ".join(f"{file.url} ({file.md5})" for file in sources.FILES if file.framework == framework)
        raise DataError(
            f"{path} is none of the published {framework} files: its MD5 is {md5}, they are {names}",
            model_info.OWN_MODEL_HINT,
        )
    return known


def real_work(env, path, entry):
    """The env for run.sh and the download of a published model, or for a given folder. Raises ValueError, DataError."""
    framework = env["CM_ML_MODEL_FRAMEWORK"]
    if path is not None and path.is_dir():
        return {WORK_KEY: "nothing", FOLDER_KEY: str(path)}
    wanted = sources.choose(framework, env["CM_ML_MODEL_ONNX_OPSET"])
    if path is not None:
        wanted = checked_file(path, framework)
    return {
        WORK_KEY: "convert" if framework == "pytorch" else "nothing",
        FILE_KEY: str(path or entry / wanted.file_name),
        "CM_RESNET50_CONFIG": json.dumps(sources.config_of(wanted, env["CM_RESNET50_OUTPUT"])),
        "CM_RESNET50_FACTS": json.dumps(
            {
                "source": wanted.url,
                "license": LICENSE,
                "md5": wanted.md5,
                "reference": {"acc": wanted.accuracy},
                "origin": "published",
            }
        ),
        "CM_RESNET50_IS_DOWNLOADED": "no" if path else "yes",
        "CM_RESNET50_MD5": wanted.md5,
        "CM_RESNET50_MIRRORS": ",".join(wanted.mirrors),
        "CM_RESNET50_URL": wanted.url,
    }


def preprocess(i):
    """CM hook: decides what is fetched and what run.sh does."""
    env = i["env"]
    entry = Path.cwd()
    env[FOLDER_KEY] = str(entry)
    is_made = env["CM_RESNET50_SOURCE"] != "real"
    return answers.work_answer(env, lambda path: made_work(env, path) if is_made else real_work(env, path, entry))


plan = preprocess


def describe(env, folder):
    """Writes model.json for a published ONNX file, which is used as it is."""
    facts = json.loads(env["CM_RESNET50_FACTS"])
    model_info.write_model_info(
        folder,
        model_info.RealModel(
            name="resnet50",
            framework="onnx",
            files={"model": Path(env[FILE_KEY])},
            source=facts["source"],
            license=facts["license"],
            config=json.loads(env["CM_RESNET50_CONFIG"]),
            reference=facts["reference"],
            facts={"md5": facts["md5"]},
            origin=facts["origin"],
        ),
    )


def postprocess(i):
    """CM hook: exports the model, whose files must be those of its model.json, under the community's keys too."""
    env = i["env"]
    folder, asked = Path(env[FOLDER_KEY]), env["CM_ML_MODEL_FRAMEWORK"]
    if env[WORK_KEY] == "nothing" and folder == Path.cwd():
        describe(env, folder)
    answer = answers.model_answer(env, folder)
    if answer["return"] > 0:
        return answer
    info = model_info.read_model_info(folder).values
    framework = env["CM_ML_MODEL_FRAMEWORK"]
    if framework != asked:
        return failure(
            f"{folder} contains a model for {framework or 'an unnamed framework'}, not for {asked}",
            f"hint: cm run script --tags=get,ml-model,resnet50,_{framework or 'onnx'} --path={folder}",
        )
    config = info.get("config") or {}
    env["CM_ML_MODEL_INPUT_LAYER_NAME"] = str(config.get("input_name", "image"))
    env["CM_ML_MODEL_OUTPUT_LAYER_NAME"] = str(config.get("output_name", config.get("output", "scores")))
    accuracy = (info.get("reference") or {}).get("acc")
    if accuracy is not None:
        env["CM_ML_MODEL_ACCURACY"] = str(accuracy)
    return answer

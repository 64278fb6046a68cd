"""Hooks of get-ml-model-bert-large-squad: choose what run.sh does, check a given copy, and hand the model on.

`sources.py` holds the addresses and checksums; `describe_onnx.py` runs in the benchmark's Python.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import json
from pathlib import Path

from crowdperf.data import answers, copy_identity, model_info
from crowdperf.data.errors import DataError
from crowdperf.kit.rooms import require_room
from crowdperf.kit.whole_file import file_digest

from .sources import choose

LICENSE = "Apache-2.0"


def check_given_file(path, wanted):
    """Raises DataError when the given file is not the published one."""
    found = file_digest(path, "md5")
    if found != wanted.md5:
        raise DataError(
            f"{path} is not {wanted.file_name}: its MD5 is {found}, not {wanted.md5}",
            f"get {wanted.url}, or {model_info.OWN_MODEL_HINT}",
        )


def plan_work(env, path, entry):
    """The env for run.sh and the download. Raises ValueError or DataError."""
    source, framework, precision = env["CM_BERT_SOURCE"], env["CM_ML_MODEL_FRAMEWORK"], env["CM_ML_MODEL_PRECISION"]
    work = {"CM_BERT_IS_DOWNLOADED": "no", "CM_BERT_FOLDER": str(entry), "CM_BERT_WORK": source}
    if source in ("synthetic", "tiny"):
        copy_identity.refuse_beside(path, "a synthetic model")
        if precision != "fp32":
            raise ValueError(f"_{source} models are made in fp32, not {precision}\nhint: leave _{precision} out here")
        if source == "tiny":
            require_room("standins", "bert-large with _tiny", "use _synthetic, whose weights are random")
            work["CM_BERT_WORK"] = "tiny" if framework == "onnx" else "fit"
        return work
    if path is not None and path.is_dir():
        return {**work, "CM_BERT_FOLDER": str(path), "CM_BERT_WORK": "given"}
    wanted = choose(framework, precision, is_free_length=env.get("CM_BERT_IS_FREE_LENGTH") == "yes")
    if path is not None:
        check_given_file(path, wanted)
    facts = {
        "license": LICENSE,
        "source": wanted.url if path is None else path.name,
        "reference": {"F1": wanted.f1},
        "precision": precision,
        "md5": wanted.md5,
        "origin": "published",
    }
    return {
        **work,
        "CM_BERT_FACTS": json.dumps(facts),
        "CM_BERT_IS_DOWNLOADED": "yes" if path is None else "no",
        "CM_BERT_MD5": wanted.md5,
        "CM_BERT_MIRRORS": ",".join(wanted.mirrors),
        "CM_BERT_PUBLISHED_FILE": str(path or entry / wanted.file_name),
        "CM_BERT_URL": wanted.url,
        "CM_BERT_WORK": "convert" if wanted.is_checkpoint else "describe",
    }


def preprocess(i):
    """CM hook: decides what run.sh does."""
    env = i["env"]
    return answers.work_answer(env, lambda path: plan_work(env, path, Path.cwd()))


plan = preprocess


def postprocess(i):
    """CM hook: exports the model, whose files must be those of its model.json, under the community's keys too."""
    env = i["env"]
    folder = Path(env["CM_BERT_FOLDER"])
    answer = answers.model_answer(env, folder)
    if answer["return"] > 0:
        return answer
    info = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    framework = env["CM_ML_MODEL_FRAMEWORK"]
    names = (info.get("config") or {}).get("tensor_names") or {}
    for key, name in (
        ("INPUT_IDS", "input_ids"),
        ("INPUT_MASK", "input_mask"),
        ("INPUT_SEGMENTS", "segment_ids"),
        ("OUTPUT_START_LOGITS", "output_start_logits"),
        ("OUTPUT_END_LOGITS", "output_end_logits"),
    ):
        env[f"CM_ML_MODEL_{key}_NAME"] = str(names.get(name, name))
    reference = info.get("reference") or {}
    if "F1" in reference:
        env["CM_ML_MODEL_F1"] = str(reference["F1"])
    precision = env["CM_ML_MODEL_PRECISION"].upper()
    if framework == "onnx" and precision in ("FP32", "INT8"):
        env[f"CM_ML_MODEL_BERT_LARGE_{precision}_PATH"] = env["CM_ML_MODEL_FILE_WITH_PATH"]
    return answer

"""Hooks of get-ml-model-smollm2: hand on the model that make_model.py wrote."""

from pathlib import Path

from crowdperf.call.answers import runs_to_its_end
from crowdperf.data import answers

plan = runs_to_its_end


def postprocess(i):
    """CM hook: exports the model's files, after a look at their checksums."""
    env, folder = i["env"], Path.cwd()
    answer = answers.model_answer(env, folder)
    if answer["return"] == 0 and env["CM_SMOLLM2_FORM"] == "gguf" and env["CM_SMOLLM2_WEIGHTS"] == "as_shipped":
        env["CM_ML_MODEL_SMOLLM2_GGUF_PATH"] = env["CM_ML_MODEL_FILE_WITH_PATH"]
    return answer

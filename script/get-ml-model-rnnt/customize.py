"""Hooks of get-ml-model-rnnt: choose between fitted, random and published weights, and hand the model on."""

import json
from pathlib import Path

from mlperf_data import answers, given

GIVEN_KEY = "CM_MLPERF_DATA_GIVEN_PATH"
# Word error rate of the published weights, in full precision: README of speech_recognition/rnnt (mlcommons/inference).
REFERENCE = {"WER": 100 - 7.452253714852645}


def facts_of(source: str) -> str:
    """JSON of what model.json says about the published weights beside its files."""
    facts = {"source": source, "reference": REFERENCE, "licence": "see https://zenodo.org/record/3662521"}
    return json.dumps(facts)


def plan(i):
    """The same when a run is only planned: nothing on disk is changed."""
    return preprocess(i)


def preprocess(i):
    """CM hook: decides whether the checkpoint must be fetched."""
    env = i["env"]
    path = given.given_path(env.get(GIVEN_KEY))
    source = env["CM_RNNT_SOURCE"]
    if path is not None and source != "checkpoint":
        return answers.failure("a path was given together with synthetic weights", "leave one of them out")
    env["CM_RNNT_IS_DOWNLOADED"] = "yes" if source == "checkpoint" and path is None else "no"
    if source == "checkpoint":
        env["CM_RNNT_FACTS"] = facts_of(str(path) if path else env["CM_RNNT_URL"])
    if path is not None:
        env["CM_RNNT_CHECKPOINT_PATH"] = str(path)
    return {"return": 0}


def postprocess(i):
    """CM hook: exports the model's files, after a look at their checksums."""
    return answers.model_answer(i["env"], Path.cwd())

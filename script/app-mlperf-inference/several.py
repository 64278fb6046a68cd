"""Whether a call makes its LoadGen run itself, and the call of run-mlperf-inference that makes all others. Pure.

run-mlperf-inference gives results their table, page and record, and makes each run as a call of this recipe with
`--output_dir`. It is handed what a user asks for: several runs (what is not given means all, as a list does what it
lists), and a single one without a folder of its own. A compliance test and a search for a target are made here.
"""

from collections.abc import Mapping
from typing import Any

from crowdperf.call.recipe_calls import passed_on_inputs
from crowdperf.rules.names import RequestError

from .run_request import the_one

TAGS = "run,mlperf,inference"
ALL = "all"

NAMED_BY_VARIATIONS = {
    "model": "CM_MLPERF_MODEL",
    "backend": "CM_MLPERF_BACKEND",
    "device": "CM_MLPERF_DEVICE",
    "source": "CM_MLPERF_SOURCE",
}
"""Inputs of run-mlperf-inference that are variations here."""

ONE_RUN_ONLY = ("output_dir", "compliance_test", "compliance_reference")


def is_several(values: Mapping[str, Any]) -> bool:
    """True unless the call names one scenario and one mode."""
    return not (the_one(values, "scenario") and the_one(values, "mode"))


def inputs_for_all(
    env: Mapping[str, Any], values: Mapping[str, Any], inputs: Mapping[str, Any], mapping: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return the inputs of run-mlperf-inference that make what was asked for; None when this recipe makes it.

    `mapping` is this recipe's input_mapping. Raises RequestError for an input that suits a single run only.
    """
    if not is_several(values):
        is_made_here = values["output_dir"] or values["compliance_test"] or values["find"]
        return None if is_made_here else _handed_on(env, inputs, mapping)
    if values["output_dir"]:
        way_out = "also give its scenario and mode, or use --results_dir, which gets a folder for this run"
        raise RequestError([f"--output_dir is the folder of one run: {way_out}"])
    if values["compliance_test"]:
        words = "is for one run in performance mode: give its scenario, and --mode=performance"
        raise RequestError([f"--compliance_test {words}"])
    return _handed_on(env, inputs, mapping)


def _handed_on(env: Mapping[str, Any], inputs: Mapping[str, Any], mapping: Mapping[str, str]) -> dict[str, Any]:
    keys = {**NAMED_BY_VARIATIONS, **{name: key for name, key in mapping.items() if name not in ONE_RUN_ONLY}}
    given = {name: str(env[key]) for name, key in sorted(keys.items()) if env.get(key) not in (None, "")}
    passed_on = passed_on_inputs(inputs)
    return {"tags": TAGS, "scenario": ALL, "mode": ALL, **given, **passed_on}

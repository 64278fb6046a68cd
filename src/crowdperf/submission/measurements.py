"""measurements.json of a run: what was measured, from the run's own records (result.json, model.json).

    {"input_data_types": "fp32", "retraining": "no", "starting_weights_filename": "resnet50.onnx",
     "weight_data_types": "fp32", "weight_transformations": "none", "crowdperf": {"format": 1, ...}}

The first five keys are the official ones (each must say something); "crowdperf" is for our own tools, which read it
when they check, show or repeat a result.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.kit.whole_file import read_object
from crowdperf.rules.backends import weight_changes, weight_type
from crowdperf.rules.benchmarks import RECORDS, model_of
from crowdperf.rules.provenance import together
from crowdperf.submission.run_discovery import FoundRun, Sut

FORMAT = 1


class UnknownWeights(Exception):
    """Nothing says any more how a model's weights were made; the text names what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What is known of a model's weights. files: names, never paths; sha256 by network.

    calibration_list: name, sha256 and is_official of the list of samples, by result.json; empty where it has none.
    """

    files: tuple[str, ...]
    sha256: Mapping[str, str]
    precision: str
    is_synthetic: bool
    transformation: str
    calibration: Mapping[str, Any]
    calibration_list: Mapping[str, Any]
    license: str
    source: str


def _input_type(model: str) -> str:
    record = RECORDS.get(model_of(model))
    return "fp32" if record is None else record.input_type


def weights_of(run: FoundRun) -> Weights:
    """Return what the run's records say about its weights. Raises UnknownWeights for a lost quantisation."""
    info = _model_info(run)
    precision = str(run.setting("precision") or info.get("precision") or "fp32")
    quantisation = info.get("quantisation") or {}
    files = tuple(str(entry.get("file", "")) for _, entry in sorted((info.get("files") or {}).items()))
    if not files and run.setting("model_path"):
        files = (Path(str(run.setting("model_path"))).name,)
    if precision == "int8" and not quantisation:
        raise UnknownWeights(f"{run.name} has int8 weights, but its model.json is missing: their origin is unknown")
    starting = tuple(name.replace(f".{precision}.onnx", ".onnx") if quantisation else name for name in files)
    return Weights(
        files=starting or ("none (the backend computes nothing)",),
        sha256={str(name): str(digest) for name, digest in (run.result.get("model_sha256") or {}).items()},
        precision=weight_type(precision),
        is_synthetic=bool((run.result.get("is_synthetic") or {}).get("model")),
        transformation=_transformation(run, precision, quantisation),
        calibration=quantisation.get("calibration") or {},
        calibration_list=run.result.get("calibration") or {},
        license=str(info.get("license") or info.get("licence") or ""),
        source=str(info.get("source") or info.get("url") or ""),
    )


def _model_info(run: FoundRun) -> dict[str, Any]:
    """Return the model's description when it is still the one of the run, else nothing."""
    path = run.setting("model_info_path")
    info = (read_object(Path(str(path))) if path else None) or {}
    digests = {name: entry.get("sha256") for name, entry in (info.get("files") or {}).items()}
    used = run.result.get("model_sha256") or {}
    return info if all(digests.get(name) in (None, digest) for name, digest in used.items()) else {}


def _transformation(run: FoundRun, precision: str, quantisation: Mapping[str, Any]) -> str:
    parts = []
    if quantisation:
        methods = sorted(set(map(str, (quantisation.get("methods") or {}).values())))
        parts.append(f"{precision} by crowdperf's quantize-ml-model ({', '.join(methods)})")
        if quantisation.get("reduce_range"):
            parts.append("weights to 7 bits, because the CPU has no VNNI")
    return weight_changes(precision, str(run.setting("backend") or ""), "; ".join(parts))


def measurements(run: FoundRun, accuracy: FoundRun | None, sut: Sut, command: str) -> dict[str, Any]:
    """Return the content of measurements.json of a scenario. Raises UnknownWeights."""
    weights = weights_of(run)
    retraining = "no (weights made by a program)" if weights.is_synthetic else "no"
    return {
        "input_data_types": _input_type(str(run.setting("model") or run.place.model)),
        "retraining": retraining,
        "starting_weights_filename": ", ".join(weights.files),
        "weight_data_types": weights.precision,
        "weight_transformations": weights.transformation,
        "crowdperf": {
            "format": FORMAT,
            "label": label_of(run, accuracy),
            "is_synthetic": {
                name: any(bool((one.result.get("is_synthetic") or {}).get(name)) for one in both(run, accuracy))
                for name in ("model", "dataset", "backend")
            },
            "provenance": together([one.result for one in both(run, accuracy)]),
            "implementation": sut.implementation,
            "device": str(run.setting("device") or ""),
            "backend": str(run.setting("backend") or ""),
            "execution_mode": str(run.setting("execution_mode") or ""),
            "scenario": run.scenario.value,
            "versions": dict(run.result.get("versions") or {}),
            "model_sha256": dict(weights.sha256),
            "calibration": dict(weights.calibration_list) or None,
            "command": [command],
            "started_utc": {one.mode.value: str(one.result.get("started_utc") or "") for one in both(run, accuracy)},
            "settings": settings_of(run),
            "metric": run.result.get("metric"),
            "accuracy": list((accuracy.accuracy.get("metrics") or ()) if accuracy else ()),
            "license": weights.license,
            "source": weights.source,
        },
    }


def both(run: FoundRun, accuracy: FoundRun | None) -> tuple[FoundRun, ...]:
    """Return the runs of a result."""
    return (run,) if accuracy is None else (run, accuracy)


def label_of(run: FoundRun, accuracy: FoundRun | None) -> str:
    """Return the words that must stand beside the run's figures, empty for an ordinary result."""
    labels = [str(one.result.get("label") or "") for one in both(run, accuracy)]
    return "; ".join(dict.fromkeys(filter(None, labels)))


def settings_of(run: FoundRun) -> dict[str, dict[str, Any]]:
    """Return the resolved settings of a run with their origins, without paths."""
    found = {}
    for name, row in sorted((run.result.get("run") or {}).items()):
        if name.endswith(("_path", "_dir")) or name == "user_conf" or not isinstance(row, Mapping):
            continue
        if row.get("value") is not None:
            found[name] = {"value": row["value"], "origin": str(row.get("origin") or "")}
    return found

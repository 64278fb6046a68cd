"""Reads model.json, in which a model's recipe describes its files. The only place that knows the file's keys.

    {"format": 1, "name": "resnet50", "framework": "onnx", "precision": "fp32", "is_synthetic": true,
     "config": {"width": 64}, "files": {"model": {"file": "resnet50.onnx", "sha256": "..."}},
     "reference": {"acc": 99.1},
     "calibration": {"name": "imagenet/cal_image_list_option_1.txt", "sha256": "...", "is_official": true}, ...}

files: by network name; paths start at the folder of model.json. config: what the network's architecture is built
with (network.py); a model file may read further facts of its own there. reference: the score of the fp32 model
on the whole validation set by metric name, null or absent where none is known or it would say nothing (random
weights). calibration: the list of samples that the ranges of activations come from; null or absent where nothing was
calibrated. engine: what engines were built with and for; absent for other files. origin: where the weights came from,
sealed by the digests of the files that this was said of, so that it does not hold for files put in their place:
{"weights": "published", "files": {"model": "<sha256>"}}. Further keys (license, source, seed, versions) are for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from crowdperf.harness.base.errors import HarnessError
from crowdperf.kit.records import NUMBER, TEXT, Record
from crowdperf.kit.text_documents import given_text, json_object
from crowdperf.kit.whole_file import file_digest
from crowdperf.rules.provenance import MODEL_ORIGINS

FORMAT = 1
_HINT = "rebuild the model"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """One file of a model: absolute path, and its digest where model.json gives one."""

    path: Path
    sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSource:
    """The list of samples that a model was calibrated with.

    name: data set and file name of an official list, else what was chosen in words. sha256: of the list. is_official:
    it is a list of mlcommons/inference, and its samples are real; the closed division allows no other.
    """

    name: str
    sha256: str
    is_official: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What is known about a model's files; without a model.json only where its one file is.

    folder: where further files of the model lie (a tokenizer). framework: "onnx", "pytorch", "tensorrt", "openvino",
    "huggingface" (safetensors of a folder in Hugging Face's layout), "gguf", "onnxruntime-genai" (a folder with
    genai_config.json) or None (not known). is_for_tensorrt_only: int8 whose scales are fp16, which onnxruntime answers
    wrongly (`TARGETS` of crowdperf/models/quantize.py).
    """

    folder: Path | None = None
    files: Mapping[str, ModelFile] = field(default_factory=dict)
    framework: str | None = None
    precision: str = "fp32"
    is_synthetic: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    reference: Mapping[str, float] | None = None
    calibration: CalibrationSource | None = None
    engine: Mapping[str, Any] = field(default_factory=dict)
    origin: str = ""
    is_for_tensorrt_only: bool = False


def file_md5(path: Path) -> str:
    """Return the MD5 of a file: publishers of models give no better digest. It tells files apart, nothing more."""
    return file_digest(path, "md5")


def _calibration(record: Record) -> CalibrationSource | None:
    given = record.values.get("calibration") is not None
    return record.within("calibration").filled(CalibrationSource, is_open=True) if given else None


def _refuse_problems(record: Record, source: object) -> None:
    if record.problems:
        raise HarnessError(f"{source} cannot be used: {'; '.join(map(str, record.problems))}", _HINT)


def parse_calibration(values: Any, source: str) -> CalibrationSource | None:
    """Return what `calibration` of a model.json or calibration.json says; raises HarnessError for another form."""
    record = Record({"calibration": values})
    found = _calibration(record)
    _refuse_problems(record, source)
    return found


def gguf_file(facts: ModelFacts, engine: str) -> Path:
    """Return the GGUF file that `engine` reads; raises HarnessError where there is none, or more than one."""
    found = [file.path for file in facts.files.values() if file.path.suffix == ".gguf"]
    if len(found) == 1:
        return found[0]
    names = ", ".join(sorted(file.path.name for file in facts.files.values())) or "nothing"
    raise HarnessError(f"{engine} reads one GGUF file, but the model has {names}", "use the variation _gguf")


def required_config(
    facts: ModelFacts, keys: Iterable[str], recipe: str, otherwise: Mapping[str, Any] = MappingProxyType({})
) -> Mapping[str, Any]:
    """Return the network's configuration, `otherwise` where model.json gives none; raises HarnessError naming the keys
    that it lacks. recipe: the last tag of the recipe that writes such a model.json."""
    config = facts.config or otherwise
    missing = [key for key in keys if key not in config]
    if missing:
        message = f"the model's config is missing {', '.join(missing)}"
        raise HarnessError(message, f"give the model.json that get,ml-model,{recipe} writes")
    return config


def parse_model_facts(text: str, path: Path) -> ModelFacts:
    """Return what the model.json at `path` with this text says; raises HarnessError naming what is wrong with it."""
    try:
        values = json_object(text)
    except ValueError as error:
        raise HarnessError(f"{path} cannot be used: {error}", _HINT) from error
    if values.get("format") != FORMAT:
        raise HarnessError(f"{path} is not a model.json of format {FORMAT}", _HINT)
    record = Record(values)
    rows, scores = record.within("files"), record.within("reference")
    if values.get("files") is None:
        record.note("files", "nothing", "an object")
    named = {name: rows.within(name) for name in rows.values}
    files = {
        name: ModelFile(path=path.parent / row.needed("file"), sha256=row.take("sha256", TEXT))
        for name, row in named.items()
    }
    for name in (name for name, score in scores.values.items() if score is None):
        scores.refuse(name, NUMBER.allowed)
    reference = {name: float(scores.number(name) or 0.0) for name in scores.values}
    precision = record.text("precision", "fp32")
    facts = ModelFacts(
        folder=path.parent,
        files=files,
        framework=record.text("framework") or None,
        precision=precision,
        is_synthetic=record.flag("is_synthetic") is True,
        config=record.within("config").values,
        reference=None if values.get("reference") is None else reference,
        calibration=_calibration(record),
        engine=record.within("engine").values,
        origin=_origin(values.get("origin"), files),
        is_for_tensorrt_only=record.within("quantisation").text("target") == "tensorrt_fp16" and precision == "int8",
    )
    _refuse_problems(record, path)
    return facts


def _origin(values: Any, files: Mapping[str, ModelFile]) -> str:
    """Return what is said of the weights, where it was said of these files."""
    if not isinstance(values, dict) or values.get("weights") not in MODEL_ORIGINS:
        return ""
    is_of_these = values.get("files") == {name: file.sha256 for name, file in files.items()}
    return str(values["weights"]) if is_of_these else ""


def sealed_origin(weights: str, files: Mapping[str, Any]) -> dict[str, Any]:
    """Return the key `origin` of a model.json. files: its key `files`."""
    return {"weights": weights, "files": {name: row["sha256"] for name, row in files.items()}}


def read_model_facts(model_path: Path | None, model_info_path: Path | None) -> ModelFacts:
    """Return what model.json says, or what is known of a bare model file. `model_path` stands in for the only file."""
    if model_info_path is None:
        files = {} if model_path is None else {"model": ModelFile(path=model_path, sha256=None)}
        return ModelFacts(folder=None if model_path is None else model_path.parent, files=files)
    try:
        text = given_text(model_info_path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise HarnessError(f"cannot read {model_info_path}: {reason}", _HINT) from error
    return parse_model_facts(text, model_info_path.absolute())

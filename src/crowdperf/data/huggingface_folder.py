"""A language model in Hugging Face's layout (config.json, safetensors, tokenizer), as far as it can be read without
any library, so that a wrong folder is refused before anything is installed.

Form of a safetensors file: README of huggingface/safetensors, "Format" (read 2026-11-28). Keys of config.json:
transformers' PretrainedConfig.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.data.errors import DataError
from crowdperf.kit.text_documents import mapping

CONFIG, TOKENIZER = "config.json", "tokenizer.json"
BESIDE = ("generation_config.json", "tokenizer_config.json", "chat_template.jinja")
"""Files that a model may have and that are used."""
_INDEX, _WEIGHTS = "model.safetensors.index.json", "*.safetensors"
_MAX_HEADER_BYTES = 100_000_000
"""As the library safetensors has it (MAX_HEADER_SIZE of safetensors/src/tensor.rs)."""
_MAX_TOKENS = 1 << 24
"""Ids of tokens from here on are not believed. The largest vocabularies have 2^18: this project's choice."""
_PRECISIONS = {"F32": "fp32", "F16": "fp16", "BF16": "bf16"}
_HINT = "give the whole folder as on Hugging Face: config.json, *.safetensors, tokenizer.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class HuggingFaceFolder:
    """config: all of config.json. weights: the files with weights. precision: of most weights, as runs name it.
    special: ids of tokens that are not ordinary text."""

    folder: Path
    config: Mapping[str, Any]
    weights: tuple[Path, ...]
    precision: str
    vocabulary: int
    special: tuple[int, ...]
    has_chat_template: bool

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that are used."""
        names = (CONFIG, TOKENIZER, *BESIDE, _INDEX)
        return (*self.weights, *(path for name in names if (path := self.folder / name).is_file()))


def read_huggingface(folder: Path) -> HuggingFaceFolder:
    """Describe the folder. Raises DataError for one that is incomplete or whose model writes no text."""
    config = _object(folder / CONFIG)
    names = _items(config.get("architectures"))
    if not any(str(name).endswith("ForCausalLM") for name in names):
        shown = ", ".join(map(str, names)) or "nothing"
        message = f"{folder} cannot be measured: architectures in {CONFIG} are {shown}"
        raise DataError(message, "give a model that writes text: its architecture ends with ForCausalLM")
    longest = config.get("max_position_embeddings")
    if type(longest) is not int or longest < 1:
        raise DataError(f"{folder / CONFIG}: max_position_embeddings is {longest!r}, expected a whole number", _HINT)
    tokenizer = _object(folder / TOKENIZER)
    weights = _weight_files(folder)
    counts: Counter[str] = Counter()
    for path in weights:
        counts.update(_elements(path))
    if not counts:
        raise DataError(f"{folder} cannot be measured: its weights are of no type of floating-point numbers", _HINT)
    ids = [mapping(one).get("id") for one in _items(tokenizer.get("added_tokens"))]
    whole = (number for number in ids if isinstance(number, int) and not isinstance(number, bool))
    added = [number for number in whole if 0 <= number < _MAX_TOKENS]
    words = mapping(tokenizer.get("model")).get("vocab")
    words = words if isinstance(words, Mapping) else _items(words)
    return HuggingFaceFolder(
        folder=folder,
        config=config,
        weights=weights,
        precision=counts.most_common(1)[0][0],
        vocabulary=max(len(words), *(one + 1 for one in added), 0),
        special=tuple(sorted(added)),
        has_chat_template=(folder / BESIDE[2]).is_file() or _has_template(folder / BESIDE[1]),
    )


def _items(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _has_template(path: Path) -> bool:
    return path.is_file() and bool(_object(path).get("chat_template"))


def _object(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        message = f"{path.parent} cannot be measured: {path.name} is missing"
        if path.name == TOKENIZER and (path.parent / "tokenizer.model").is_file():
            raise DataError(
                message, "write it: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)"
            ) from None
        raise DataError(message, _other_form(path.parent) if path.name == CONFIG else _HINT) from None
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"not JSON ({error})"
        raise DataError(f"{path} cannot be used: {reason}", _HINT) from error
    if not isinstance(values, dict):
        raise DataError(f"{path} cannot be used: not a JSON object", _HINT)
    return values


def _other_form(folder: Path) -> str:
    """What to give instead of a folder that is none of Hugging Face: the model file in it, if there is one."""
    found = sorted(path for path in folder.glob("*") if path.suffix.lower() in (".gguf", ".onnx"))
    if found:
        return " or ".join(f"--model_path={path}" for path in found[:3])
    if any(folder.glob("openvino_*.xml")):
        return "models in OpenVINO's format are not read: give the GGUF file, or the Hugging Face folder of the model"
    return _HINT


def _weight_files(folder: Path) -> tuple[Path, ...]:
    """Return the files with weights: those that the index lists, else all. Raises DataError for missing ones."""
    found = sorted(folder.glob(_WEIGHTS))
    if (folder / _INDEX).is_file():
        listed = sorted({str(name) for name in mapping(_object(folder / _INDEX).get("weight_map")).values()})
        if outside := [name for name in listed if Path(name).name != name or "\0" in name]:
            raise DataError(f"{folder / _INDEX} cannot be used: found {outside[0]!r}; allowed: names of files", _HINT)
        if missing := [name for name in listed if not (folder / name).is_file()]:
            shown = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
            message = f"{folder} is incomplete: {len(missing)} of {len(listed)} files of weights are missing: {shown}"
            raise DataError(message, "download the missing files: hf download REPOSITORY --local-dir FOLDER")
        found = [folder / name for name in listed]
    if not found:
        others = ", ".join(path.name for path in sorted(folder.glob("*.bin"))[:3])
        has = f" (it has {others})" if others else ""
        raise DataError(f"{folder} cannot be measured: there is no {_WEIGHTS}{has}", _HINT)
    return tuple(found)


def _elements(path: Path) -> dict[str, int]:
    """Return the number of weights in a safetensors file by their precision. Raises DataError for a file that is not
    one, or is truncated."""
    try:
        with path.open("rb") as file:
            size = int.from_bytes(head := file.read(8), "little")
            if head == b"version ":
                raise ValueError("it is a pointer of Git LFS: run git lfs pull")
            if len(head) < 8 or size > _MAX_HEADER_BYTES:
                raise ValueError("it does not begin as a safetensors file")
            rows = [one for name, one in json.loads(file.read(size)).items() if name != "__metadata__"]
        needed, there = 8 + size + max((one["data_offsets"][1] for one in rows), default=0), path.stat().st_size
        if needed != there:
            raise ValueError(f"it has {there:,} bytes, expected {needed:,}")
        counts: Counter[str] = Counter()
        for one in rows:
            if one["dtype"] in _PRECISIONS:
                counts[_PRECISIONS[one["dtype"]]] += math.prod(one["shape"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        ours = error if isinstance(error, ValueError) else f"its header has an unexpected form ({error})"
        reason = error.strerror if isinstance(error, OSError) else ours
        raise DataError(f"{path} cannot be used: {reason}", "download the file again") from error
    return dict(counts)


def value_problems(values: Mapping[str, Any], allowed: Mapping[str, Sequence[object]]) -> list[str]:
    """Return what a backend cannot run of a model. values: of config.json, or the same of another file. allowed:
    `model_values` of the backend's record."""
    rope = mapping(values.get("rope_parameters") or values.get("rope_scaling"))
    known = {"rope_type": rope.get("rope_type", rope.get("type", "default")), **values}
    problems = []
    for key, supported in allowed.items():
        if (found := known.get(key)) not in supported:
            shown = ", ".join(repr(one) for one in supported if one is not None) or "none"
            problems.append(f"{key} is {found!r} (supported: {shown})")
    return problems

"""Which tokens end an answer, and which one fills answers up, by the files in a model's folder.

generation_config.json comes first, since generate() of transformers and vLLM's server take its end tokens.
"""

from pathlib import Path
from typing import Any

from crowdperf.kit.text_documents import given_object, mapping

_PLACES = {
    "generation_config.json": (),
    "config.json": (),
    "genai_config.json": ("model",),
}


def _object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, an empty one where there is no file; raises ValueError for anything else."""
    return given_object(path, ValueError, is_needed=False)


def end_tokens(folder: Path | None) -> tuple[int, ...]:
    """Return the token ids that end an answer: `eos_token_id` (a number or a list) of generation_config.json, else of
    config.json, else of `model` in genai_config.json, else the id of `eos_token` of tokenizer_config.json; empty where
    none of them names one, or there is no folder. Raises ValueError for damaged files and other values.
    """
    if folder is None:
        return ()
    for name, keys in _PLACES.items():
        values = _object(folder / name)
        for key in keys:
            values = dict(mapping(values.get(key)))
        found = values.get("eos_token_id")
        if found is not None:
            listed = found if isinstance(found, list) else [found]
            if not all(type(one) is int and one >= 0 for one in listed):
                raise ValueError(f"{folder / name}: eos_token_id is {found!r}; allowed: a number, or a list of numbers")
            return tuple(listed)
    return _named_end(folder)


def padding_token(folder: Path | None) -> int | None:
    """Return the token id that fills answers up (`pad_token_id` of generation_config.json, else of config.json); None
    where neither names one. Raises ValueError for damaged files."""
    if folder is None:
        return None
    for name in ("generation_config.json", "config.json"):
        found = _object(folder / name).get("pad_token_id")
        if type(found) is int and found >= 0:
            return found
    return None


def _named_end(folder: Path) -> tuple[int, ...]:
    """Return the id of the end token that tokenizer_config.json names, as tokenizer.json has it among its added
    tokens."""
    named = _object(folder / "tokenizer_config.json").get("eos_token")
    text = named.get("content") if isinstance(named, dict) else named
    added = _object(folder / "tokenizer.json").get("added_tokens") if isinstance(text, str) else None
    known = [one for one in added or () if isinstance(one, dict) and one.get("content") == text]
    return tuple(one["id"] for one in known if type(one.get("id")) is int)

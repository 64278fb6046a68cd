"""Reads and writes run.json, what the harness was asked to do. It names no folder of the machine that it need not name.

    "model_path": "<result>/../../../../../cache/a69d89d93790d5b5/digits.onnx"    from the folder of run.json
    "model_path": "<checkout>/cache/a69d89d93790d5b5/digits.onnx"                 the result is outside the checkout
    "dataset_path": "<home>/data/imagenet"                                        from the user's home
    "dataset_path": "/mnt/imagenet"                                               elsewhere, as the user gave it

A relative path that leads over the root folder would name the same folders as the absolute one, and redaction would not
see them. A run, its score and its compliance tests read these files again, so that the path cannot be left out. Bundles
do not contain run.json.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from crowdperf.kit.path_redaction import HOME, RESULT
from crowdperf.kit.user_paths import home_folder
from crowdperf.logs.layout import RunPaths

PATH_KEYS = frozenset(
    ("output_dir", "model_path", "model_info_path", "dataset_path", "preprocessed_path", "user_conf", "server")
)
"""What holds a path, in a request or in its parts (`serving.server`)."""

COMMAND_KEY = "power_command"
"""What holds a program's path and its arguments."""

CHECKOUT = "<checkout>"
CHECKOUT_FOLDER = Path(__file__).resolve().parents[3]


def _is_below(path: str, folder: str) -> bool:
    return len(folder) > 1 and (path == folder or path.startswith(f"{folder}/"))


def _portable(path: str, folder: str, home: str) -> str:
    if not os.path.isabs(path):
        return path
    checkout = str(CHECKOUT_FOLDER)
    if _is_below(path, checkout) and not _is_below(folder, checkout):
        return CHECKOUT + path[len(checkout) :]
    if _is_below(path, home):
        return HOME + path[len(home) :]
    shared = os.path.commonpath([path, folder])
    if shared.count("/") < 2:  # at most a folder of the root, such as /mnt
        return path
    relative = os.path.relpath(path, folder)
    return RESULT if relative == "." else f"{RESULT}/{relative}"


def _usable(text: str, folder: str, home: str) -> str:
    for sign, place in ((RESULT, folder), (HOME, home), (CHECKOUT, str(CHECKOUT_FOLDER))):
        if text == sign or text.startswith(f"{sign}/"):
            return os.path.normpath(place + text[len(sign) :])
    return text


def _changed(value: Any, folder: Path, change: Callable[[str, str, str], str]) -> Any:
    real, home = os.path.realpath(folder), str(home_folder()).rstrip("/")
    if not isinstance(value, Mapping):
        return value
    changed = {
        key: change(one, real, home) if key in PATH_KEYS and isinstance(one, str) else _changed(one, folder, change)
        for key, one in value.items()
    }
    if isinstance(words := value.get(COMMAND_KEY), list) and words and isinstance(words[0], str):
        changed[COMMAND_KEY] = [change(words[0], real, home), *words[1:]]
    return changed


def portable_request(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a request as run.json in `folder` has it."""
    found: dict[str, Any] = _changed(request, folder, _portable)
    return found


def usable_request(content: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the request that run.json in `folder` holds, its paths absolute."""
    found: dict[str, Any] = _changed(content, folder, _usable)
    return found


def named_request(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request as others may see it: of each path the last part, of addresses all."""
    found: dict[str, Any] = _changed(content, Path(), lambda path, *_: path if "://" in path else Path(path).name)
    return found


def read_request(paths: RunPaths) -> dict[str, Any]:
    """Return the request in run.json. Raises OSError; ValueError for what is no JSON object."""
    content = json.loads(paths.run_json.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ValueError(f"{paths.run_json.name} contains a {type(content).__name__}, not an object")
    return usable_request(content, paths.folder)

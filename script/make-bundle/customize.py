"""Hooks of make-bundle: one file with recipes, packages, data and models of a run (crowdperf.call.bundle)."""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import contextlib
import os
import shlex
import shutil
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

from crowdperf.call.bundle import SUFFIX, Given, Order, make_bundle
from crowdperf.call.bundle_program import BundleError
from crowdperf.call.command import CommandError, words_of_cm
from crowdperf.data.errors import DataError
from crowdperf.data.huggingface_folder import CONFIG, read_huggingface
from crowdperf.data.model_info import MODEL_INFO_FILE
from crowdperf.data.onnx_graph import read_graph

CACHE_AUTOMATION = "cache,541d6f712a6b464e"
OWN_KEYS = ("CM_MLPERF_OWN_", "CM_MLPERF_USER_CONF")
"""How the env keys begin of the inputs that name a model, data or settings of the user. Other paths are of this machine
(a tool), of results, or secret (a key)."""
INPUTS_OF = {"get-dataset-": "dataset_path", "get-ml-model-": "model_path"}
"""The inputs by which runs take a copy that the user has, by the beginning of the recipe's name."""
HINT = "hint: crowdperf bundle --for='run --model=resnet50 --source=tiny' --output=resnet50.pyz"


def command_of(text: str) -> list[str]:
    """The words of `cm` for the run of a bundle. Raises BundleError."""
    if not text.strip():
        raise BundleError(f"--for is missing: the words of a run that was made here before\n{HINT}")
    try:
        words = shlex.split(text)
        if words[:2] == ["run", "script"]:
            return words
        asked = words_of_cm(words)
    except (ValueError, CommandError) as error:
        raise BundleError(f"--for={text!r} is not a command: {error}\n{HINT}") from error
    if asked[:2] != ["run", "script"]:
        raise BundleError(f"--for={text!r} does not run a recipe. Allowed: `run ...`, `run script ...`\n{HINT}")
    return asked


def output_of(given: Path | None) -> Path:
    """The file to write. Raises BundleError for a folder, and for an existing file without --output."""
    output = given or Path.cwd() / f"crowdperf-bundle{SUFFIX}"
    if output.is_dir():
        raise BundleError(f"--output={output} is a folder\nhint: --output={output / f'crowdperf-bundle{SUFFIX}'}")
    if given is None and output.exists():
        hint = f"hint: add --output=NAME{SUFFIX}, which is replaced if it exists"
        raise BundleError(f"{output} exists, and --output is not given\n{hint}")
    return output


def own_files(given: Mapping[str, Mapping[str, Any]]) -> dict[str, Given]:
    """The user's own files by their inputs. given: of `cm lock`. Raises DataError."""
    found = {
        name: Path(row["path"])
        for name, row in given.items()
        if row["env"].startswith(OWN_KEYS) and os.path.exists(row["path"])
    }
    return {name: Given(path, parts(path)) for name, path in found.items()}


def parts(path: Path) -> tuple[Path, ...]:
    """What is packed of an own file or folder: an ONNX file with the files of its weights, of a Hugging Face folder the
    files that runs use (it may have other formats of the same weights). Raises DataError."""
    if path.suffix == ".onnx":
        return (path, *read_graph(path).beside)
    if (path / CONFIG).is_file() and not (path / MODEL_INFO_FILE).is_file():
        with contextlib.suppress(DataError):  # a tokenizer without weights, for a server
            return read_huggingface(path).files
    return (path,)


def without_own(command: Sequence[str], given: Mapping[str, Mapping[str, Any]], own: Container[str]) -> list[str]:
    """The words of a command that name none of the own files. Raises BundleError for inputs that are in a file."""
    if files := [word for word in command if word.startswith("@")]:
        raise BundleError(f"--for has {files[0]}, a file with inputs\nhint: give them as --NAME=VALUE")
    names = {one for name, row in given.items() if name in own for one in row["names"]}
    return [word for word in command if word.lstrip("-").partition("=")[0].replace("-", "_") not in names]


def require_inside(entries: Mapping[str, Mapping[str, str]], own: Mapping[str, Given]) -> None:
    """Raise BundleError for data and models outside the cache that no input of the run names: registered copies."""
    for row in entries.values():
        place = Path(row["depends_on"])
        name = next((name for start, name in INPUTS_OF.items() if row["recipe"].startswith(start)), "")
        is_given = name in own or any(place.is_relative_to(one.path) for one in own.values())
        if name and row["depends_on"] and not is_given:
            raise BundleError(
                f"{row['recipe']} uses {place}, which no input of the run names: it is missing in the bundle\n"
                f"hint: add --{name}={place} to the words of --for"
            )


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: locks the run and writes the bundle; `state.crowdperf_bundle` has its path, size and SHA-256."""
    values = i["values"]
    try:
        output = output_of(values["output"])
        command = command_of(values.text("for"))
        access = i["automation"].cmind.access
        locked = access(["lock", *command[1:]])
        if locked["return"]:
            return {"return": locked["return"], "error": locked["error"]}
        again = shlex.join(["cm", *command])
        if locked["unmade"]:
            names = ", ".join(locked["unmade"])
            raise BundleError(f"the cache has no {names} of this run yet\nhint: {again}   # then make the bundle")
        repository = Path(__file__).resolve().parents[2]
        cache = Path(access({"action": "show", "automation": CACHE_AUTOMATION})["cache"])
        given, entries = locked["given_paths"], locked["used_entries"]
        own = own_files(given)
        require_inside(entries, own)
        words = (*without_own(command, given, own), "--quiet")
        version = access(["version", "script"])
        built_from = {name: version[name] for name in ("commit", "is_modified")} if version.get("commit") else None
        made = make_bundle(Order(words, locked["lock"], repository, cache, output, tuple(entries), own, built_from))
    except (BundleError, DataError) as error:
        return {"return": 1, "error": str(error)}
    except (OSError, shutil.Error) as error:
        return {"return": 1, "error": f"cannot write the bundle: {error}\n{HINT}"}
    i["state"]["crowdperf_bundle"] = {"path": str(made.path), "size_bytes": made.size_bytes, "sha256": made.sha256}
    print(
        f"{made.path}: {made.size_bytes / 1e6:.0f} MB, {made.wheels} packages, {made.entries} data sets and models"
        f"{''.join(f', {one.path}' for one in own.values())}\n"
        f"  SHA-256 {made.sha256}\n  on a machine without a network: python3 {made.path.name}"
    )
    return {"return": 0}

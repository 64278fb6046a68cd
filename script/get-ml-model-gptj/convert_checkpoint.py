"""Makes GPT-J from the published checkpoint's folder.

    python3 convert_checkpoint.py --framework onnx --output_dir FOLDER --checkpoint FOLDER_WITH_CONFIG_JSON --facts JSON

Run by run.sh in the benchmark's virtual environment with src on PYTHONPATH.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from crowdperf.benchmarks.gptj import network as gptj
from crowdperf.harness.base.errors import HarnessError, program
from crowdperf.models.make_model import FRAMEWORKS, ModelRequest, make_model, require_memory

TOKENIZER_FILES = ("tokenizer.json", "vocab.json", "merges.txt")


def find_checkpoint(folder: Path) -> Path:
    """The folder of config.json in or below `folder`; raises HarnessError when there is none, or more than one."""
    found = [path.parent for path in sorted(folder.rglob("config.json"))]
    if len(found) != 1:
        places = ", ".join(map(str, found)) or "none"
        raise HarnessError(
            f"{folder} should contain one checkpoint with config.json; found: {places}", "give its folder"
        )
    return found[0]


def read_config(folder: Path) -> dict:
    """The sizes that config.json of a GPT-J checkpoint gives; raises HarnessError for another kind of model."""
    values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if values.get("model_type") != "gptj":
        raise HarnessError(
            f"{folder} contains a model of type {values.get('model_type')!r}, not gptj", "give GPT-J's folder"
        )
    missing = [key for key in gptj.CONFIGS["full"] if key not in values]
    if missing:
        raise HarnessError(f"{folder / 'config.json'} is missing {', '.join(missing)}", "get the checkpoint again")
    return {key: values[key] for key in gptj.CONFIGS["full"]}


def copy_tokenizer(source: Path, target: Path) -> None:
    """Copies the tokenizer's files; raises HarnessError when they are not there."""
    names = [name for name in TOKENIZER_FILES if (source / name).is_file()]
    if "tokenizer.json" not in names and not {"vocab.json", "merges.txt"} <= set(names):
        raise HarnessError(f"{source} has neither tokenizer.json nor vocab.json with merges.txt", "get them again")
    for name in names:
        shutil.copyfile(source / name, target / name)


@program("convert_checkpoint")
def main(words: Sequence[str] | None) -> None:
    """Command line entry."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--framework", choices=FRAMEWORKS, required=True)
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True, help="folder of the published weights")
    parser.add_argument("--facts", type=json.loads, default={}, help="JSON object of further keys of model.json")
    given = parser.parse_args(words)
    folder = find_checkpoint(given.checkpoint)
    copy_tokenizer(folder, given.output_dir)
    request = ModelRequest(
        architecture="gptj", config=read_config(folder), framework=given.framework, output_dir=given.output_dir,
        weights=folder,
    )  # fmt: skip
    require_memory(request, "model")  # before the files are read
    make_model(request, given.facts)


if __name__ == "__main__":
    sys.exit(main())

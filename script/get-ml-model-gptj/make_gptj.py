"""Makes GPT-J of full size from the published checkpoint's folder, or with random weights.

    python3 make_gptj.py --framework onnx --output_dir FOLDER --checkpoint FOLDER_WITH_CONFIG_JSON --facts JSON
    python3 make_gptj.py --framework onnx --output_dir FOLDER --dataset_dir FOLDER_OF_GET_DATASET_CNNDM_SYNTHETIC

Run by run.sh in the benchmark's virtual environment with src on PYTHONPATH.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

import gptj_tokenizer

from crowdperf.benchmarks.gptj import network as gptj
from crowdperf.harness.base.errors import HarnessError
from crowdperf.models.make_model import FRAMEWORKS, ModelRequest, make_model, require_memory

TOKENIZER_FILES = ("tokenizer.json", "vocab.json", "merges.txt")


def find_checkpoint(folder: Path) -> Path:
    """The folder of config.json in or below `folder`; raises HarnessError when there is none, or more than one."""
    found = [path.parent for path in sorted(folder.rglob("config.json"))]
    if len(found) != 1:
        places = ", ".join(map(str, found)) or "none"
        raise HarnessError(f"{folder} should hold one checkpoint with config.json; found: {places}", "give its folder")
    return found[0]


def read_config(folder: Path) -> dict:
    """The sizes that config.json of a GPT-J checkpoint gives; raises HarnessError for another kind of model."""
    values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if values.get("model_type") != "gptj":
        raise HarnessError(
            f"{folder} holds a model of type {values.get('model_type')!r}, not gptj", "give GPT-J's folder"
        )
    missing = [key for key in gptj.CONFIGS["full"] if key not in values]
    if missing:
        raise HarnessError(f"{folder / 'config.json'} lacks {', '.join(missing)}", "get the checkpoint again")
    return {key: values[key] for key in gptj.CONFIGS["full"]}


def copy_tokenizer(source: Path, target: Path) -> None:
    """Copies the tokenizer's files; raises HarnessError when they are not there."""
    names = [name for name in TOKENIZER_FILES if (source / name).is_file()]
    if "tokenizer.json" not in names and not {"vocab.json", "merges.txt"} <= set(names):
        raise HarnessError(f"{source} has neither tokenizer.json nor vocab.json with merges.txt", "get them again")
    for name in names:
        shutil.copyfile(source / name, target / name)


def main() -> int:
    """Command line entry; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--framework", choices=FRAMEWORKS, required=True)
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint", type=Path, help="folder of the published weights; without it they are random")
    parser.add_argument("--facts", type=json.loads, default={}, help="JSON object of further keys of model.json")
    parser.add_argument("--dataset_dir", type=Path, help="made articles, from which a tokenizer is trained")
    given = parser.parse_args()
    try:
        if given.checkpoint is None:
            request = ModelRequest(
                architecture="gptj", config="full", framework=given.framework, output_dir=given.output_dir,
                seed=given.seed,
            )  # fmt: skip
            make_model(request, {"licence": "Apache-2.0"})
            texts = gptj_tokenizer.article_texts(given.dataset_dir)
            gptj_tokenizer.train(texts, request.values["vocab_size"], given.output_dir / "tokenizer.json")
        else:
            folder = find_checkpoint(given.checkpoint)
            copy_tokenizer(folder, given.output_dir)
            request = ModelRequest(
                architecture="gptj", config=read_config(folder), framework=given.framework,
                output_dir=given.output_dir, weights=folder,
            )  # fmt: skip
            require_memory(request, "model")  # before the files are read
            make_model(request, given.facts)
    except HarnessError as error:
        print(f"make_gptj.py: {error.with_hint}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

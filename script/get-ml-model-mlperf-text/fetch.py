"""Fetches a model from Hugging Face into the current folder: config, tokenizer and safetensors.

    python3 fetch.py --repository meta-llama/Llama-3.1-8B-Instruct [--revision HASH] [--without_weights]

The library huggingface_hub reads the access token itself, from the environment or from where `hf auth login` stored it;
it is not looked at here, nor written. It downloads into its own cache (HF_HOME, HF_HUB_CACHE), which other programs
share: files that are there are not downloaded again. The current folder gets hard links to them, so they need no space
twice and stay when that cache is emptied; where it is on another file system, symbolic links.
"""

import argparse
import os
import sys
from pathlib import Path

WEIGHTS = ["*.safetensors", "*.index.json"]
PATTERNS = ["*.json", "*.jinja"]


def bring(snapshot: Path, folder: Path) -> None:
    """Link the files of a snapshot in the shared cache into a folder, over those that are there. Raises OSError."""
    for path in sorted(snapshot.iterdir()):
        if path.is_dir():
            continue
        content, link = path.resolve(), folder / path.name
        link.unlink(missing_ok=True)
        try:
            os.link(content, link)
        except OSError:  # another file system, or one without hard links
            link.symlink_to(content)


def main() -> int:
    """Command line entry; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repository", required=True)
    parser.add_argument("--revision", default="")
    parser.add_argument("--without_weights", action="store_true", help="config and tokenizer only")
    given = parser.parse_args()
    wanted, left_out = (PATTERNS, WEIGHTS) if given.without_weights else ([*PATTERNS, *WEIGHTS], [])
    try:
        from huggingface_hub import snapshot_download

        snapshot = snapshot_download(
            given.repository, revision=given.revision or None, allow_patterns=wanted, ignore_patterns=["*/*", *left_out]
        )
        bring(Path(snapshot), Path.cwd())
    except Exception as error:  # the library raises errors of many libraries
        print(f"fetch.py: cannot get {given.repository}: {type(error).__name__}: {error}", file=sys.stderr)
        print("hint: give your own copy with --path=FOLDER", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

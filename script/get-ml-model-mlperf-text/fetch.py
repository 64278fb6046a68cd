"""Fetches a model from Hugging Face into the current folder: config, tokenizer and safetensors.

    python3 fetch.py --repository meta-llama/Llama-3.1-8B-Instruct [--revision HASH] [--without_weights]

The library huggingface_hub reads the access token from the environment itself; it is not looked at here, nor written.
"""

import argparse
import sys

WEIGHTS = ["*.safetensors", "*.index.json"]
PATTERNS = ["*.json", "*.jinja"]


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

        snapshot_download(
            given.repository, revision=given.revision or None, local_dir=".", allow_patterns=wanted,
            ignore_patterns=["*/*", *left_out],
        )  # fmt: skip
    except Exception as error:  # the library raises errors of many libraries
        print(f"fetch.py: cannot get {given.repository}: {type(error).__name__}: {error}", file=sys.stderr)
        print("hint: give your own copy with --path=FOLDER", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Writes cnn_eval.json from the validation part of CNN/DailyMail 3.0.0 on Hugging Face; needs the library datasets.

    python3 download.py --output_dir FOLDER

The file is the one that download_cnndm.py of language/gpt-j (mlcommons/inference) writes: one entry for each article,
in the data set's order, with the instruction in front.
"""

import argparse
import sys
from pathlib import Path

from crowdperf.kit.whole_file import write_json

INSTRUCTION = "Summarize the following news article:"
DATASET, VERSION, PART = "abisee/cnn_dailymail", "3.0.0", "validation"


def as_entries(rows) -> list[dict]:
    """The list of tasks of rows with the columns `article` and `highlights`."""
    return [{"instruction": INSTRUCTION, "input": row["article"], "output": row["highlights"]} for row in rows]


def main() -> int:
    """Command line entry; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output_dir", type=Path, required=True)
    given = parser.parse_args()
    try:
        from datasets import load_dataset

        rows = load_dataset(DATASET, name=VERSION, split=PART)
    except Exception as error:  # the library raises errors of many libraries
        print(f"download.py: cannot get {DATASET} {VERSION} ({PART}): {error}", file=sys.stderr)
        print("hint: give your own copy with --path=FOLDER_OF_CNN_EVAL_JSON", file=sys.stderr)
        return 1
    write_json(given.output_dir / "cnn_eval.json", as_entries(rows), indent=4, ensure_ascii=False, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())

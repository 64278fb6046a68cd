"""Makes a Llama with random weights and a tokenizer of its own, in the layout of Hugging Face.

    python3 make.py --name llama3.1-8b --size tiny --seed 1 [--without_weights]

All language models of MLPerf get the same architecture here: what is tried with it is the way of a run, not the model.
"""

import argparse
import json
import sys
from pathlib import Path

from crowdperf.harness.base.errors import HarnessError
from crowdperf.standins import tiny_llama

SIZES = {
    "tiny": {"vocab": 512, "hidden": 64, "layers": 2, "heads": 4, "kv_heads": 2},
    "synthetic": {"vocab": 2048, "hidden": 512, "layers": 8, "heads": 8, "kv_heads": 4},
}
"""0.1 and 20 million weights: our choice, for seconds and for minutes on two cores."""


def main() -> int:
    """Command line entry; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", required=True)
    parser.add_argument("--size", choices=sorted(SIZES), required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without_weights", action="store_true", help="config and tokenizer only")
    given = parser.parse_args()
    try:
        seed = None if given.without_weights else given.seed
        path = tiny_llama.make(Path.cwd(), **SIZES[given.size], seed=seed)
    except HarnessError as error:
        print(f"make.py: {error}", file=sys.stderr)
        return 1
    info = json.loads(path.read_text(encoding="utf-8"))
    info |= {"name": given.name, "architecture": "Llama", "licence": "CC0-1.0: made by a program"}
    path.write_text(json.dumps(info, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`python3 -m harness run.json` runs one LoadGen test; `python3 -m harness score run.json` scores its accuracy log.

Exit codes: 0 the run completed (result.json says whether it is VALID), 1 it failed, 2 the request is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from mlperf_results.logs import Json

from harness.errors import HarnessError
from harness.run import perform, read_config, score


def _arguments(arguments: Sequence[str]) -> tuple[bool, Path]:
    is_score = len(arguments) > 0 and arguments[0] == "score"
    parser = argparse.ArgumentParser(prog="python3 -m harness", usage="%(prog)s [score] run.json", description=__doc__)
    parser.add_argument("run_json", type=Path, help="the request; its keys are in harness/config.py")
    return is_score, parser.parse_args(arguments[1:] if is_score else arguments).run_json


def tell_result(result: Mapping[str, Json]) -> str:
    """Return one line about a finished run."""
    metric, counts, figure = result["metric"], result["sample_counts"], ""
    if isinstance(metric, Mapping):
        figure = f"{metric['name']} {metric['value']:.6g} {metric['unit']}, "
    elif result["latency"] is None and isinstance(counts, Mapping):  # an accuracy run measures nothing
        figure = f"{counts['accuracy']} samples answered, "
    reasons = result["invalid_reasons"]
    because = f" ({'; '.join(map(str, reasons))})" if isinstance(reasons, list) and reasons else ""
    return f"{figure}{'VALID' if result['valid'] else 'INVALID'}{because}; {result['label']}"


def main(arguments: Sequence[str]) -> int:
    """Do what the command line asks for and return the exit code; the story goes to stderr."""
    is_score, run_json = _arguments(arguments)
    try:
        config = read_config(run_json)
        if is_score:
            content = score(config)
            story = f"accuracy {content['accuracy_percent']} %, target {content['target_accuracy_percent']} %"
        else:
            result = perform(config)
            story = tell_result(result)
    except HarnessError as error:
        sys.stderr.write(f"harness: error: {error}\n")
        if error.hint:
            sys.stderr.write(f"harness: hint: {error.hint}\n")
        return error.exit_code
    sys.stderr.write(f"harness: {story}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

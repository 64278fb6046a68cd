"""The harness's commands:

    python3 -m crowdperf.harness run.json               runs one LoadGen test, or with "find": true a search
    python3 -m crowdperf.harness score run.json         scores the accuracy log of a run
    python3 -m crowdperf.harness preprocess --model ... writes a store of preprocessed samples

Exit codes: 0 the run completed (result.json says whether it is VALID), 1 it failed, 2 the request is wrong.
"""

import argparse
import faulthandler
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from crowdperf.harness.base import supervised_server
from crowdperf.harness.base.environment_errors import explained, require_threads
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.watch.measuring import measuring
from crowdperf.harness.watch.owner import end_with_owner
from crowdperf.logs import text_metrics
from crowdperf.logs.rates import chosen_rate_text, has_chosen_rate, reasons_text
from crowdperf.logs.run_log import Json


def _run_json(arguments: Sequence[str]) -> Path:
    parser = argparse.ArgumentParser(
        prog="python3 -m crowdperf.harness", usage="%(prog)s [score] run.json | preprocess --help", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("run_json", type=Path, help="the request (its keys are in crowdperf/harness/runner/config.py)")
    path: Path = parser.parse_args(arguments).run_json
    return path


def tell_result(result: Mapping[str, Json]) -> str:
    """Return one line about a finished run, with the label of its result; an accuracy run has none."""
    metric, counts, figure, label = result["metric"], result["sample_counts"], "", f", {result['label']}"
    if isinstance(metric, Mapping):
        chosen = f" {chosen_rate_text(result)}" if has_chosen_rate(result) else ""
        figure = f"{metric['name']} {metric['value']:.6g} {metric['unit']}{chosen}, "
        if isinstance(text := result.get("text"), Mapping) and (tokens := text_metrics.story(text)):
            figure += f"{tokens}, "
    elif result["latency"] is None and isinstance(counts, Mapping):  # an accuracy run measures nothing
        figure, label = f"{counts['accuracy']} samples answered, ", ""
    reasons = reasons_text(result)
    because = f" ({reasons})" if reasons else ""
    return f"{figure}{'VALID' if result['valid'] else 'INVALID'}{because}{label}"


def tell_score(content: Mapping[str, Json]) -> str:
    parts = []
    metrics = content["metrics"]
    for item in metrics if isinstance(metrics, list) else ():
        if isinstance(item, Mapping):
            target = "no target" if item["target"] is None else f"target {item['target']:.6g}"
            parts.append(f"{item['name']} {item['value']:.6g} ({target})")
    return ", ".join(parts)


def _story(arguments: Sequence[str]) -> str:
    """Do what the command line asks for and return one line about it."""
    if arguments and arguments[0] == "preprocess":
        from crowdperf.harness.commands import preprocess

        return preprocess.run(preprocess.parse(arguments[1:]))
    from crowdperf.harness.commands.accuracy_scores import score
    from crowdperf.harness.runner.run import perform, read_config  # what a run needs is imported by runs only

    if arguments and arguments[0] == "score":
        return tell_score(score(read_config(_run_json(arguments[1:]))))
    config = read_config(_run_json(arguments))
    with measuring():
        if config.find:
            from crowdperf.harness.find.session import find, tell

            return tell(find(config))
        return tell_result(perform(config))


def _tell(error: HarnessError) -> int:
    """Write what failed and what to try to stderr, end servers that are open, and return the exit code."""
    sys.stderr.write(f"harness: error: {error}\n")
    if error.hint:
        sys.stderr.write(f"harness: hint: {error.hint}\n")
    sys.stderr.flush()
    supervised_server.stop_all()
    return error.exit_code


def main(arguments: Sequence[str]) -> int:
    """Do what the command line asks for and return the exit code; the story goes to stderr.

    So does the Python stack of every thread when a native library crashes.
    """
    faulthandler.enable()
    try:
        end_with_owner(os.environ)
        require_threads(os.environ)
        story = _story(arguments)
    except HarnessError as error:
        return _tell(explained(error) or error)
    except (OSError, MemoryError, RuntimeError) as error:
        told = explained(error)
        if told is None:
            raise
        os._exit(_tell(told))  # LoadGen's threads may still run: an ordinary exit would crash in them
    sys.stderr.write(f"harness: {story}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

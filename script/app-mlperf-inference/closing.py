"""The last lines of a call that made a single run in a folder of its own: figure, place, what to do with it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlperf_results.benchmarks import accuracy_tags
from mlperf_results.disturbance import VERDICT, disturbances, server_lines
from mlperf_results.figures import reasons_text
from mlperf_results.names import Mode


def figure_line(result: Mapping[str, Any]) -> str:
    """What the run came to, its verdict and its label; `result`: the content of result.json."""
    run, metric = result["run"], result["metric"]
    what = f"{run['model']['value']} {run['scenario']['value']} {run['mode']['value']}"
    figure = f"{metric['name']} {metric['value']:,.5g} {metric['unit']}, " if metric is not None else ""
    because = reasons_text(result)
    return f"{what}: {figure}{'VALID' if result['valid'] else 'INVALID'}{f' ({because})' if because else ''}"


def closing_lines(result: Mapping[str, Any], session: Path, folder: Path) -> list[str]:
    """What is printed at the end; `session` is the folder of the call, `folder` that of the run in it."""
    input_word = shlex.quote(str(session))
    lines = ["", figure_line(result), result["label"], *(f"{found}: {VERDICT}" for found in disturbances(result))]
    lines += [*server_lines([("the run", result)]), "", f"Results: {folder}"]
    if result["run"]["mode"]["value"] == Mode.ACCURACY.value:
        query = accuracy_tags(result["run"]["model"]["value"])
        lines.append(f"Score:   cm run script --tags={query} --result_dir={shlex.quote(str(folder))}")
    return [*lines, f"Page:    cm run script --tags=report,mlperf,submission --input={input_word}"]

"""Results of earlier runs: found in folders, read from their results.json, filtered, and shown as a table."""

import contextlib
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

from crowdperf.kit.numbers import quantity, repeats_text
from crowdperf.kit.text_documents import given_text, part
from crowdperf.logs.rates import MIN_JUDGED_S, batch_of
from crowdperf.rules.backends import BACKENDS
from crowdperf.rules.names import counted

RESULTS_FILE = "results.json"
PLACES = ("results", "build/runs", "valid_results", "fast_results", "test_results")
"""Where calls put results that name no folder: run-mlperf-inference, the targets of a workspace's Makefile
(run-mlperf-make, tables.yaml), and the tutorial's entry by length of its runs (run-mlperf-inference-app)."""
DEPTHS = ("", "*/", "*/*/")
"""A results folder itself, one for each call, or one for each call by system or by kind of runs."""
WIDTH = 100
_SETTINGS = ("batch", "inst")
_TOKEN_TIMES = ("TTFT p99, ms", "TPOT p99, ms")
"""Columns that are shown where they tell results apart, beside those that have ``WIDTH``; the latter of language
models."""
_REPEAT = re.compile(r"repeat-\d+")
STAMP = re.compile(r"(\d{8}T\d{6}Z)")
"""How the names of results folders begin, unless the user chose one (crowdperf.logs.layout.make_run_id)."""
AGE = re.compile(r"(\d+)\s*(min|h|d|w)")
UNITS = {"min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
MORE = "cm diff script A B compares two of these folders, --out=json has all facts"


class InputError(ValueError):
    """An input that cannot be used; the message has the value found and those allowed."""


class Result(NamedTuple):
    """One scenario of one results folder; ``figure`` and ``score`` are None where there was no such run.

    ``made_utc`` is ISO 8601. ``label`` says what the result must not be taken for; empty for a valid MLPerf result.
    """

    made_utc: str
    run_id: str
    folder: str
    model: str
    backend: str
    device: str
    scenario: str
    figure: float | None
    unit: str
    metric: str
    loadgen: str
    score_name: str
    score: float | None
    score_passed: bool | None
    passed: bool
    label: str
    batch_size: int | None
    instances: int | None
    ttft_p99_ms: float | None
    tpot_p99_ms: float | None
    duration_s: float | None


class Wanted(NamedTuple):
    """What is asked for; an empty text means any, ``last`` 0 all."""

    model: str = ""
    scenario: str = ""
    backend: str = ""
    device: str = ""
    since: datetime | None = None
    last: int = 0


def parse_since(text: str, now: datetime) -> datetime | None:
    """The moment that a date (UTC) or an age means; None without one. Raises InputError."""
    if not text:
        return None
    if age := AGE.fullmatch(text.strip().lower()):
        with contextlib.suppress(OverflowError):  # an age from before the first year
            return now - timedelta(**{UNITS[age[2]]: int(age[1])})
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InputError(f"--since={text} is neither a date (2026-11-01) nor an age (90min, 12h, 7d, 2w)") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def folders_of(current: Path, given: Path | None, runs: Iterable[Mapping[str, Any]]) -> list[Path]:
    """The folders that may hold results folders: the given one, that of the current folder, those of earlier runs.

    ``runs`` are rows of ``cm runs script --out=json``.
    """
    folders = [given] if given else []
    folders += [current / place for place in PLACES]
    for run in runs:
        start = Path(str(run.get("folder") or current))
        folders += [start / place for place in PLACES]
        try:
            words = shlex.split(str(run.get("command") or ""))
        except ValueError:
            continue
        named = [word.partition("=")[2] for word in words if word.startswith("--results_dir=")]
        folders += [start / name for name in named]
    return list(dict.fromkeys(Path(folder).resolve() for folder in folders))


def read_all(folders: Iterable[Path]) -> tuple[list[Result], list[Path]]:
    """The results below the folders, newest first, and the files that could not be read."""
    results: list[Result] = []
    unreadable = []
    paths = dict.fromkeys(
        path for folder in folders for depth in DEPTHS for path in folder.glob(f"{depth}{RESULTS_FILE}")
    )
    for path in paths:
        try:
            results += results_in(path)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            unreadable.append(path)
    return sorted(results, key=lambda result: (result.made_utc, result.folder), reverse=True), unreadable


def results_in(path: Path) -> list[Result]:
    """The results that a results.json describes. Raises OSError, ValueError, KeyError, TypeError or AttributeError."""
    content = json.loads(given_text(path))
    run_id = str(content["run_id"])
    stamp = STAMP.match(run_id)
    made = (
        datetime.strptime(stamp[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
        if stamp
        else datetime.fromtimestamp(int(path.stat().st_mtime), timezone.utc)
    )
    found = []
    for row in content["scenarios"]:
        performance, accuracy = row.get("performance") or {}, row.get("accuracy") or {}
        metric, score = performance.get("metric") or {}, next(iter(accuracy.get("metrics") or ()), {})
        valid = performance.get("valid", accuracy.get("valid"))
        found.append(
            Result(
                made_utc=made.isoformat().replace("+00:00", "Z"),
                run_id=run_id,
                folder=str(path.parent),
                **{name: str(content[name]) for name in ("model", "backend", "device")},
                scenario=str(row["scenario"]),
                figure=None if metric.get("value") is None else float(metric["value"]),
                unit=str(metric.get("unit", "")),
                metric=str(metric.get("name", "")),
                loadgen="" if valid is None else "VALID" if valid else "INVALID",
                score_name=str(score.get("name", "")),
                score=None if score.get("value") is None else float(score["value"]),
                score_passed=score.get("passed"),
                passed=bool(row.get("passed")),
                label=str(performance.get("label", content.get("label")) or ""),
                batch_size=batch_of(str(row["scenario"]), performance),
                instances=_instances(performance),
                ttft_p99_ms=part(performance, "text", "ttft_ms", "p99"),
                tpot_p99_ms=part(performance, "text", "tpot_ms", "p99"),
                duration_s=performance.get("duration_s"),
            )
        )
    return found


def _instances(performance: Mapping[str, Any]) -> int | None:
    found = (performance.get("run") or {}).get("instances")
    value = found.get("value") if isinstance(found, dict) else found
    return int(value) if isinstance(value, int | float) else None


def chosen(results: Sequence[Result], wanted: Wanted) -> list[Result]:
    """Those that are asked for, in the order given; a model may be named by how it begins where none has that name."""
    has_model = any(result.model == wanted.model for result in results)
    fitting = [
        result
        for result in results
        if (result.model == wanted.model if has_model else result.model.startswith(wanted.model))
        and all(
            not getattr(wanted, name) or getattr(result, name) == getattr(wanted, name)
            for name in ("scenario", "backend", "device")
        )
        and (wanted.since is None or datetime.fromisoformat(result.made_utc.replace("Z", "+00:00")) >= wanted.since)
    ]
    return fitting[: wanted.last] if wanted.last else fitting


def table_lines(results: Sequence[Result]) -> list[str]:
    """One line a result within ``WIDTH`` columns, what its mark means, and how many there are."""
    labels = list(dict.fromkeys(result.label for result in results if result.label))
    titles = (
        "made (UTC)",
        "model",
        "backend",
        "device",
        "scenario",
        *_SETTINGS,
        "figure",
        "unit",
        *_TOKEN_TIMES,
        "LoadGen",
        "score",
        "",
    )
    rows = [titles, *(_cells(result, labels) for result in results)]
    told = [_is_told(title, {row[place] for row in rows[1:]}) for place, title in enumerate(titles)]
    rows, titles = [tuple(compress(row, told)) for row in rows], tuple(compress(titles, told))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [">" if title in ("figure", "score", *_SETTINGS, *_TOKEN_TIMES) else "<" for title in titles]
    most = WIDTH + sum(width + 1 for title, width in zip(titles, widths, strict=True)
                       if title in (*_SETTINGS, *_TOKEN_TIMES))  # fmt: skip
    lines = []
    for row in rows:
        line = " ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)).rstrip()
        lines.append(line if len(line) <= most else line[: most - 1] + "…")
    n_folders = len({result.folder for result in results})
    total = f"{counted(len(results), 'result')} in {counted(n_folders, 'folder')}, the newest: {results[0].folder}"
    notes = [f"[{number}] {label}" for number, label in enumerate(labels, 1)]
    return [*lines, "", *notes, *_repeat_lines(results), total, MORE]


def _is_told(title: str, values: set[str]) -> bool:
    if title in _TOKEN_TIMES:
        return values != {""}
    return title not in _SETTINGS or len(values) > 1


def _repeat_lines(results: Sequence[Result]) -> Iterator[str]:
    """Median and spread of each result that was repeated, and how many others were short and made once."""
    found: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        folder = Path(result.folder)
        if result.figure is not None and _REPEAT.fullmatch(folder.name):
            found.setdefault((str(folder.parent), result.model, result.scenario, result.metric), []).append(result)
    for (folder, model, scenario, _), repeats in found.items():
        values = [one.figure for one in repeats if one.figure is not None]
        yield f"{model} {scenario}, repeats in {folder}: median {repeats_text(values, repeats[0].unit)}"
    repeated = {id(one) for repeats in found.values() if len(repeats) > 1 for one in repeats}
    short = [one for one in results if one.duration_s is not None and one.duration_s < MIN_JUDGED_S]
    if alone := sum(id(one) not in repeated for one in short):
        yield f"{counted(alone, 'result')} of one run of less than {MIN_JUDGED_S:.0f} s. To compare, add --repeats=6"


def _cells(result: Result, labels: Sequence[str]) -> tuple[str, ...]:
    score = "" if result.score is None else f"{result.score:.6g}{'' if result.score_passed is not False else ' low'}"
    return (
        result.made_utc[:16].replace("T", " "),
        result.model,
        result.backend,
        "-" if (known := BACKENDS.get(result.backend)) and known.is_remote else result.device,
        result.scenario,
        *("" if value is None else str(value) for value in (result.batch_size, result.instances)),
        "" if result.figure is None else f"{result.figure:,.4g}" if result.figure < 1000 else f"{result.figure:,.0f}",
        result.unit,
        *("" if value is None else quantity(value, 3) for value in (result.ttft_p99_ms, result.tpot_p99_ms)),
        result.loadgen,
        score,
        f"[{labels.index(result.label) + 1}]" if result.label else "",
    )

"""Reads the table that MLCommons publishes of a round, summary.csv, into results. Pure.

Every cell is kept as it is in `raw`; the columns of the database are made beside it, and what could not be made of a
cell is a note of the result. Form: 31 columns, a bare header, all cells quoted (mlcommons/inference_results_v6.1 at
7bf15fd8, read 2026-11-23).
"""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from crowdperf.call.values import truth_of
from crowdperf.rules.names import UnknownName, parse_scenario
from crowdperf.store import published_rows
from crowdperf.store.model import Accuracy, Configuration, NewResult, System

COLUMNS = (
    "Organization", "Availability", "Division", "SystemType", "SystemName", "Platform", "Model", "MlperfModel",
    "Scenario", "Result", "Accuracy", "number_of_nodes", "host_processor_model_name", "host_processors_per_node",
    "host_processor_core_count", "accelerator_model_name", "accelerators_per_node", "total_accelerators", "Location",
    "framework", "operating_system", "notes", "compliance", "errors", "version", "inferred", "has_power", "Units",
    "weight_data_types", "design_power_watts", "PrivateID",
)  # fmt: skip

CORES_NOTE = "host_processor_core_count is per socket or per node, depending on the submitter: kept as is"

_LARGEST_CELL = 1 << 20


class WrongTable(ValueError):
    """The text is not a summary.csv; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Table:
    """The results of a table, what holds for all of it, and the rows without a result: their lines and why."""

    results: tuple[NewResult, ...]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]


Row = Mapping[str, str]


def _scenario(row: Row, notes: list[str]) -> str:
    try:
        return parse_scenario(row["Scenario"]).value
    except UnknownName:
        notes.append(f"Scenario {row['Scenario']!r} is not known")
        return row["Scenario"]


def _names(row: Row, notes: list[str]) -> tuple[str, str]:
    """The benchmark without its tier, and the tier."""
    benchmark = published_rows.BENCHMARK_NAMES.get(row["MlperfModel"], row["MlperfModel"]) or row["Model"]
    if row["Model"] not in (benchmark, row["MlperfModel"]):
        notes.append(f"Model {row['Model']!r} is listed under the benchmark {benchmark}")
    return published_rows.split_tier(benchmark)


def _model(row: Row, benchmark: str) -> str:
    """What tells models apart: closed rows have the benchmark's own, open ones may have any."""
    if row["Division"].casefold() == "open":
        return f"open:{row['Organization']}/{row['Platform']}/{row['Model']}"
    return f"mlperf:{benchmark}"


def _count(row: Row, column: str, notes: list[str]) -> int:
    count = published_rows.count_of(row[column])
    if count is None and not published_rows.is_nothing(row[column]):
        notes.append(f"{column} {row[column]!r} is not a number")
    return count or 0


def _accelerators(row: Row, nodes: int, notes: list[str]) -> tuple[str, int]:
    name = row["accelerator_model_name"].strip()
    name = "" if published_rows.is_nothing(name) else name
    each, total = (_count(row, column, notes) for column in ("accelerators_per_node", "total_accelerators"))
    if total and each and total != each * max(nodes, 1):
        notes.append(f"total_accelerators {total} is not {each} of each of {nodes} nodes")
    return name, (total or each * max(nodes, 1)) if name else 0


def _facts(row: Row, notes: list[str]) -> Iterator[tuple[str, str | float | bool]]:
    for name, column in (("platform", "Platform"), ("availability", "Availability"), ("framework", "framework"),
                         ("operating_system", "operating_system"), ("location", "Location"),
                         ("remarks", "notes")):  # fmt: skip
        if not published_rows.is_nothing(row[column]):
            yield name, row[column]
    if not published_rows.is_nothing(row["design_power_watts"]):
        watts = published_rows.figure_of(row["design_power_watts"])
        if watts is None:
            notes.append(f"design_power_watts {row['design_power_watts']!r} is not a number")
        else:
            yield "design_power_watts", watts
    for column in ("has_power", "inferred"):
        truth = truth_of(row[column])
        if truth is None:
            notes.append(f"{column} {row[column]!r} is not true or false")
        else:
            yield column, truth


def _doubts(row: Row) -> Iterator[str]:
    """What a row says twice and not alike."""
    other = {"open": "closed", "closed": "open"}.get(row["Division"].casefold(), "")
    if other and f"{other} division" in row["notes"].casefold():
        yield f"notes name the {other} division, the row is of the {row['Division']} one"
    if row["compliance"] and row["compliance"] != row["Division"]:
        yield f"compliance {row['compliance']!r} is not the division {row['Division']!r}"
    if row["errors"] not in ("0", ""):
        yield f"errors {row['errors']!r}"
    if row["SystemName"].count("(") != row["SystemName"].count(")"):
        yield f"SystemName {row['SystemName']!r} has a bracket too few or too many"


def _system(row: Row, notes: list[str]) -> System:
    nodes = _count(row, "number_of_nodes", notes)
    accelerator, count = _accelerators(row, nodes, notes)
    sockets, about_sockets = published_rows.sockets_of(
        row["host_processors_per_node"], row["host_processor_model_name"], row["Platform"]
    )
    cores, about_cores = published_rows.cores_of(row["host_processor_core_count"], sockets)
    notes += [note for note in (about_sockets, about_cores) if note]
    return System(
        accelerator=accelerator,
        accelerator_count=count,
        nodes=nodes,
        cpu=row["host_processor_model_name"].strip(),
        sockets=sockets,
        cores=cores,
        memory_gib=0,
        facts=dict(_facts(row, notes)),
    )


def _accuracy(row: Row, notes: list[str]) -> tuple[Accuracy, ...]:
    scores, about = published_rows.scores_of(row["Accuracy"])
    notes += [about] if about else []
    return tuple(Accuracy(name=name, value=value, target=None, passed=None, basis="claimed") for name, value in scores)


def _result(row: Row, run_id: str, figure: float) -> NewResult:
    notes: list[str] = []
    benchmark, tier = _names(row, notes)
    precision, about_precision = published_rows.precision_of(row["weight_data_types"])
    metric, factor, about_unit = published_rows.metric_of(row["Units"])
    notes += [note for note in (about_precision, about_unit) if note]
    system = _system(row, notes)
    configuration = Configuration(
        suite="inference",
        benchmark=benchmark,
        round=row["version"].strip(),
        division=row["Division"].strip().casefold(),
        category=row["SystemType"].strip().casefold(),
        scenario=_scenario(row, notes),
        precision=precision,
        tier=tier,
        stack=published_rows.stack_of(row["framework"]),
        device=published_rows.device_of(system.accelerator),
        data_kind="real",
        run_class="valid",
        model_digest=_model(row, benchmark),
        settings={},
        system=system,
    )
    return NewResult(
        run_id=run_id,
        kind="published",
        configuration=configuration,
        labels=(),
        made_utc="",
        stack_version=row["framework"].strip(),
        metric=metric.name,
        value=figure * factor,
        unit=metric.unit,
        higher_is_better=metric.higher_is_better,
        valid=True,
        verification="published",
        command="",
        figures=(),
        accuracy=_accuracy(row, notes),
        files=(),
        curve=(),
        notes=(*notes, *_doubts(row)),
        raw=dict(row),
        submitter=row["Organization"].strip(),
        system_name=row["SystemName"].strip(),
    )


def _records(text: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header, and the rows with the numbers of their last lines."""
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    try:
        header = next(reader, [])
        return header, [(reader.line_num, cells) for cells in reader if cells]
    except csv.Error as error:
        raise WrongTable(f"line {reader.line_num}: {error}") from error


def read_summary_csv(text: str) -> Table:
    """Return the results of a summary.csv. Raises WrongTable where a column is missing or it is no CSV."""
    header, records = _records(text)
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        raise WrongTable(f"no summary.csv of MLPerf Inference: it has no column {', '.join(missing)}")
    twice = [column for column, count in Counter(header).items() if count > 1]
    if twice:
        raise WrongTable(f"the table has two columns {', '.join(map(repr, twice))}")
    notes = [f"column {column!r} is not known: kept as is" for column in header if column not in COLUMNS]
    results, left_out, seen = [], [], Counter[str]()
    for line, cells in records:
        if len(cells) != len(header):
            left_out.append(f"line {line}: {len(cells)} cells, the header has {len(header)}")
            continue
        row = dict(zip(header, cells, strict=True))
        figure = published_rows.figure_of(row["Result"])
        if figure is None or any(len(cell) > _LARGEST_CELL for cell in cells):
            left_out.append(f"line {line}: Result {row['Result'][:40]!r} is not a number" if figure is None
                            else f"line {line}: a cell has more than {_LARGEST_CELL:,} characters")  # fmt: skip
            continue
        name = f"{row['version']} {row['Location']} {row['Units']}"
        seen[name] += 1
        run_id = name if seen[name] == 1 else f"{name} {seen[name]}"
        results.append(_result(row, run_id, figure))
    notes += [CORES_NOTE] if results else []
    return Table(tuple(results), tuple(notes), tuple(left_out))

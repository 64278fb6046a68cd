"""Hooks of show-mlperf-benchmarks: the benchmarks' records as a table, one with its rules, or all of a round."""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import textwrap

from crowdperf.call.answers import runs_to_its_end
from crowdperf.call.values import text_of
from crowdperf.rules.benchmarks import BENCHMARKS, RECORDS, record_of
from crowdperf.rules.compliance import tests_needed
from crowdperf.rules.names import UnknownName, counted
from crowdperf.rules.official_names import parse_benchmark
from crowdperf.rules.rounds import rounds_of, rules_in, scenarios_of

from . import roundlist

_WIDTH = 100
HINT = "hint: cm run script --tags=show,mlperf,benchmarks lists them"


plan = runs_to_its_end


def preprocess(i):
    """CM hook: prints the table, or the benchmark that is asked for."""
    env = i["env"]
    model = text_of(env, "CM_MLPERF_SHOW_MODEL").lower()
    round_name = text_of(env, "CM_MLPERF_SHOW_ROUND")
    try:
        found, lines = shown(model, round_name)
    except UnknownName as error:
        return {"return": 1, "error": f"{error}\n{HINT}"}
    print("\n".join(lines))
    i["state"]["mlperf_benchmarks"] = found
    return {"return": 0}


def shown(model: str, round_name: str) -> tuple[list[dict], list[str]]:
    """The rows and their lines: all records, one of them, a whole round, or one name of a round without a record."""
    if round_name and (not model or not is_here(model)):
        rows = roundlist.rows_of(round_name, model)
        title = f"MLPerf Inference {round_name}: {counted(len(rows), 'benchmark')}, closed division"
        return rows, [*([] if model else [title, ""]), *roundlist.lines_of(rows)]
    if not model:
        return table(), table_lines(table())
    found = details(model, round_name)
    return [found], lines_of(found)


def is_here(model: str) -> bool:
    """Whether a record has the name."""
    try:
        parse_benchmark(model)
    except UnknownName:
        return False
    return True


def table() -> list[dict]:
    """Each benchmark in short."""
    rows = []
    for record in RECORDS.values():
        rounds = rounds_of(record.names[0]) if record.is_official else ()
        rows.append(
            {
                "names": list(record.names),
                "task": record.title,
                "rounds": [rounds[0], rounds[-1]] if rounds else [],
                "scenarios": [scenario.value for scenario in scenarios_of(record.names[0])],
                "dataset": record.dataset,
                "samples": record.dataset_count,
            }
        )
    return rows


def details(model: str, round_name: str) -> dict:
    """One benchmark's rules in a round. Raises UnknownName."""
    record = record_of(model)
    name = model if model in BENCHMARKS else record.names[0]
    answer = {"name": name, "task": record.title, "dataset": record.dataset, "samples": record.dataset_count}
    if name not in BENCHMARKS:
        return answer
    chosen = round_name or rounds_of(name)[-1]
    rules = rules_in(name, chosen)
    return {
        **answer,
        "samples": rules.dataset_count,
        "rounds": list(rounds_of(name)),
        "round": chosen,
        "edge": [scenario.value for scenario in rules.edge],
        "datacenter": [scenario.value for scenario in rules.datacenter],
        "edge and datacenter": [scenario.value for scenario in rules.both],
        "least_duration_s": rules.min_duration_ms / 1000,
        "samples_in_memory": rules.performance_sample_count or rules.dataset_count,
        "least_offline_samples": rules.offline_min_sample_count,
        "server_limit_ms": rules.server_target_latency_ms,
        "targets": {target.metric: target.target for target in rules.targets},
        "compliance_tests": list(tests_needed(name, chosen, "closed")),
    }


def table_lines(rows: list[dict]) -> list[str]:
    """The table within 100 columns, and what to call next."""
    cells = [("benchmark", "rounds", "task")]
    for row in rows:
        first, *others = row["names"]
        names = " or ".join([first, *(name.removeprefix(first.rpartition("-")[0]) for name in others)])
        cells.append((names, " to ".join(row["rounds"]) or "not MLPerf's", row["task"]))
    widths = [max(len(cell[column]) for cell in cells) for column in (0, 1)]
    left = widths[0] + widths[1] + 4
    lines = []
    for name, rounds, task in cells:
        first, *others = textwrap.wrap(task, _WIDTH - left)
        lines.append(f"{name:<{widths[0]}}  {rounds:<{widths[1]}}  {first}")
        lines += [f"{'':<{left}}{other}" for other in others]
    return [
        *lines,
        "",
        "One of them: cm run script --tags=show,mlperf,benchmarks --model=NAME [--round=v6.1]",
        "A round:     cm run script --tags=show,mlperf,benchmarks --round=v6.1",
        "Run it:      cm run script --tags=run,mlperf,inference --model=NAME",
    ]


def lines_of(found: dict) -> list[str]:
    """One benchmark, a fact a line."""
    lines = [f"{found['name']}: {found['task']}"]
    for key, value in found.items():
        if key in ("name", "task", "targets") or value in (None, []):
            continue
        shown = ", ".join(value) if isinstance(value, list) else f"{value:,}" if isinstance(value, int) else f"{value}"
        lines.append(f"  {key.replace('_', ' '):<22} {shown}")
    lines += [f"  {'target ' + metric:<22} {target:,.10g}" for metric, target in found.get("targets", {}).items()]
    return lines

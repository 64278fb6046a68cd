"""Writes what follows from the benchmarks' records: models of app-mlperf-inference, docs/reference/benchmarks.md.

python tools/make_benchmark_pages.py [--check]
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
APP = CHECKOUT / "script" / "app-mlperf-inference" / "_cm.yaml"
PAGE = CHECKOUT / "docs" / "reference" / "benchmarks.md"
sys.path.append(str(CHECKOUT / "script" / "get-mlperf-results-lib"))

from mlperf_results.benchmarks import RECORDS, benchmarks_of  # noqa: E402
from mlperf_results.names import Scenario  # noqa: E402
from mlperf_results.record import Record  # noqa: E402
from mlperf_results.rounds import rounds_of, scenarios_of  # noqa: E402

_BLOCK = re.compile(r'^  "?([^\s":]+)"?:\n(?:    .*\n)*', re.MULTILINE)
_COMBINATION = re.compile(r"^- \[(.+)\]\n", re.MULTILINE)


def _dependencies(folder: str, record: Record) -> str:
    """Return the `deps` of a benchmark. A fixed one has handles of its own, which source and framework do not touch."""
    recipes = record.recipes
    rows = [(f"dataset-{folder}" if recipes.is_fixed else "dataset", recipes.dataset)]
    if recipes.preprocessed:
        names = "dataset-preprocessed" + (", detection-preprocessed" if recipes.is_detector else "")
        rows.append((names, recipes.preprocessed))
    rows.append((f"{folder}-model" if recipes.is_fixed else "benchmark-model, ml-model", recipes.model))
    return "    deps:\n" + "".join(f"    - names: [{names}]\n      tags: {tags}\n" for names, tags in rows)


def _variations(folder: str, record: Record) -> Iterator[tuple[str, str]]:
    """Yield a benchmark's variations with their text: one for each level, what they share, a name without level."""
    default = "    default: true\n" if record.is_default else ""
    group = "    group: model\n"
    needs = "    base: [quantized_]\n" + default + _dependencies(folder, record)
    if not record.levels:
        yield record.name, needs + f"    env: {{CM_MLPERF_MODEL: {record.name}}}\n" + group
        return
    yield record.name, f"    alias: {record.names[0]}\n"
    yield f"{record.name}_", needs
    for name in record.names:
        yield name, f"    base: [{record.name}_]\n    env: {{CM_MLPERF_MODEL: {name}}}\n" + group


def with_variations(text: str) -> str:
    """Return app-mlperf-inference's `_cm.yaml` with the variations of the records instead of those it has."""
    head, mark, rest = text.partition("\nvariations:\n")
    blocks = {found[1]: found[0] for found in _BLOCK.finditer(rest)}
    bases = {base for block in blocks.values() if "group: model" in block for base in re.findall(r"\[(\S+_)\]", block)}
    kept = {
        name: block
        for name, block in blocks.items()
        if "    group: model\n" not in block and "    alias: " not in block and name not in bases - {"quantized_"}
    }
    made = {
        name: f"  {name}:\n{body}" for folder, record in RECORDS.items() for name, body in _variations(folder, record)
    }
    joined = {**kept, **made}
    return _with_combinations(head) + mark + "".join(joined[name] for name in sorted(joined))


def _with_combinations(head: str) -> str:
    """Return the text with the combinations that fixed benchmarks cannot have."""
    before, mark, rest = head.partition("\ninvalid_variation_combinations:\n")
    rows = _COMBINATION.findall(rest)
    after = rest[sum(len(found[0]) for found in _COMBINATION.finditer(rest)) :]
    fixed = [record.name for record in RECORDS.values() if record.recipes.is_fixed]
    models = {name for record in RECORDS.values() for name in record.names}
    rows = [row for row in rows if not models & set(row.split(", "))]
    rows += [f"{name}, {other}" for name in fixed for other in ("pytorch", "synthetic", "tiny")]
    return before + mark + "".join(f"- [{row}]\n" for row in sorted(rows)) + after


def _cells(folder: str, record: Record) -> Iterator[str]:
    rows = benchmarks_of(folder)
    yield ", ".join(f"`{name}`" for name in record.names)
    yield record.title
    yield f"{rounds_of(rows[0].name)[0]} to {rounds_of(rows[0].name)[-1]}" if rows else "none: not an MLPerf benchmark"
    yield ", ".join(scenario.value for scenario in scenarios_of(rows[0].name if rows else record.name))
    yield f"{record.dataset_count:,}"
    targets = [", ".join(f"{one.metric} {round(one.target, 4):,}" for one in row.targets()) for row in rows]
    yield "; ".join(targets) or "99 % of the model's own score"
    has_server = Scenario.SERVER in scenarios_of(rows[0].name if rows else record.name)
    yield f"{record.server_target_latency_ms:,.0f} ms" if has_server else "none"


def page() -> str:
    """Return docs/reference/benchmarks.md."""
    lines = [
        "# Benchmarks",
        "",
        "Made by tools/make_benchmark_pages.py from the records in",
        "`script/app-mlperf-inference/harness/benchmarks/*/record.py`, which also hold the sources of the figures.",
        "",
        "Samples are those of the validation set, targets those of the closed division in the newest round. Edge and",
        "datacenter systems have different scenarios in some rounds: `mlperf_results/rounds.py`.",
        "",
        "| name | task | rounds | scenarios | samples | accuracy targets | Server limit |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [f"| {' | '.join(_cells(folder, record))} |" for folder, record in RECORDS.items()]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write both files, or with --check only say whether they are up to date; 1 where they are not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    is_check = parser.parse_args().check
    is_stale = False
    for path, text in ((APP, with_variations(APP.read_text(encoding="utf-8"))), (PAGE, page())):
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        is_stale = True
        print(f"{path.relative_to(CHECKOUT)} is not what the records say" if is_check else f"wrote {path}")
        if not is_check:
            path.write_text(text, encoding="utf-8")
    return 1 if is_check and is_stale else 0


if __name__ == "__main__":
    raise SystemExit(main())

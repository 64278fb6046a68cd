"""How far default runs of one machine differ: `./run.sh` several times in a row, each scenario's figure, and how fast a
core was meanwhile.

    python3 benchmarks/default_runs.py --runs=10
    python3 benchmarks/default_runs.py --folders results/A results/B ...       # runs that were made already

"spread" is the largest less the smallest figure, as part of the median. "of it the core": the same of the speed of a
fixed piece of work that each run times twice a second (`probe_mb_per_s` in result.json): what the machine itself did.
"left": the spread of the figures when each is put in proportion to that speed. Exit code 1 when Offline's spread is
above --most, which holds on a machine whose cores keep their speed.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
SCENARIOS = ("SingleStream", "MultiStream", "Offline", "Server")


def spread_percent(values: Sequence[float]) -> float:
    """The largest less the smallest value, in percent of the median."""
    return 100.0 * (max(values) - min(values)) / statistics.median(values)


def run_once() -> Path:
    """Makes a default run and returns its folder."""
    before = set((CHECKOUT / "results").glob("*"))
    subprocess.run([str(CHECKOUT / "run.sh"), "--mode=performance"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)  # fmt: skip
    (made,) = set((CHECKOUT / "results").glob("*")) - before
    return made


def results_of(folder: Path) -> dict[str, dict[str, Any]]:
    """The performance runs in a folder of results by their scenario."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*/*/performance/run_1/result.json")]
    return {result["run"]["scenario"]["value"]: result for result in found}


def row(scenario: str, results: Sequence[dict[str, Any]]) -> list[str]:
    """The line of a scenario."""
    metric = results[0]["metric"]
    figures = [float(result["metric"]["value"]) for result in results]
    probes = [float(result["load"].get("probe_mb_per_s") or 0) for result in results]
    words = [scenario, *(f"{value:,.4g}" for value in (statistics.median(figures), min(figures), max(figures)))]
    words += [metric["unit"], f"{spread_percent(figures):.0f} %"]
    if not all(probes):
        return [*words, "-", "-"]
    power = 1.0 if metric["higher_is_better"] else -1.0
    scaled = [figure / probe**power for figure, probe in zip(figures, probes, strict=True)]
    return [*words, f"{spread_percent(probes):.0f} %", f"{spread_percent(scaled):.0f} %"]


def main() -> int:
    """Makes or reads the runs and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, metavar="N", help="how many runs are made (10)")
    parser.add_argument("--folders", type=Path, nargs="+", metavar="FOLDER", help="results to read instead")
    parser.add_argument("--most", type=float, default=10.0, metavar="PERCENT", help="largest spread of Offline (10)")
    options = parser.parse_args()
    folders = options.folders or [run_once() for _ in range(options.runs)]
    found = [results_of(folder) for folder in folders]
    rows = [["scenario", "median", "least", "most", "unit", "spread", "of it the core", "left"]]
    rows += [
        row(name, [one[name] for one in found if name in one])
        for name in SCENARIOS
        if any(name in one for one in found)
    ]
    widths = [max(len(line[place]) for line in rows) for place in range(len(rows[0]))]
    for line in rows:
        print("  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip())
    offline = [float(one["Offline"]["metric"]["value"]) for one in found if "Offline" in one]
    return int(bool(offline) and spread_percent(offline) > options.most)


if __name__ == "__main__":
    sys.exit(main())

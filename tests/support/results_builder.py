"""Writes LoadGen runs for tests of recipes that read results: recorded logs of real runs, or a summary as of v0.7."""

import re
import shutil
from pathlib import Path

LOGS = Path(__file__).resolve().parents[1] / "logs" / "fixtures"
RECORDED = {
    "SingleStream": "valid-singlestream",
    "MultiStream": "valid-multistream",
    "Offline": "valid-offline",
    "Server": "valid-server",
}
V07_FIGURES = {
    "SingleStream": "90th percentile latency (ns) : {}",
    "MultiStream": "Samples per query : {}",
    "Offline": "Samples per second: {}",
    "Server": "Scheduled samples per second : {}",
}


def recorded_run(
    folder: Path, recording: str, accuracy_log: str = "[]\n", *, min_duration_ms: int | None = 600_000
) -> Path:
    """A performance run (tests/logs/fixtures/README.md says what the recordings are).

    The recorded runs were short: what they were asked to last is changed to ``min_duration_ms``, None for not at all.
    """
    folder.mkdir(parents=True)
    for name in ("mlperf_log_summary.txt", "mlperf_log_detail.txt"):
        shutil.copy(LOGS / recording / name, folder / name)
        if min_duration_ms is not None:
            text = re.sub(r"(min_duration \(ms\) ?: )\d+", rf"\g<1>{min_duration_ms}", (folder / name).read_text())
            text = re.sub(r'("effective_min_duration_ms", "value": )\d+', rf"\g<1>{min_duration_ms}", text)
            (folder / name).write_text(text)
    (folder / "mlperf_log_accuracy.json").write_text(accuracy_log)
    return folder


def accuracy_run(folder: Path, line: str = "accuracy=75.920%, good=37960, total=50000", data: str = "00") -> Path:
    """An accuracy run with its official line."""
    recorded_run(folder, "accuracy-offline", f'[\n{{ "seq_id" : 0, "qsl_idx" : 0, "data" : "{data}" }}\n]\n')
    (folder / "accuracy.txt").write_text(line + "\n")
    return folder


def v07_run(folder: Path, scenario: str, figure: float, *, valid: bool = True, queries: int = 270_336,
            samples: int = 24_576, p99_ns: int = 1000, min_duration_ms: int = 60_000) -> Path:  # fmt: skip
    """A performance run as LoadGen of v0.7 described it."""
    folder.mkdir(parents=True)
    (folder / "mlperf_log_summary.txt").write_text(
        "================================================\nMLPerf Results Summary\n"
        "================================================\n"
        f"SUT name : LWIS_Server\nScenario : {scenario.replace('SingleStream', 'Single Stream')}\n"
        f"Mode     : Performance\n{V07_FIGURES[scenario].format(figure)}\n"
        f"Result is : {'VALID' if valid else 'INVALID'}\n  Min duration satisfied : Yes\n\n"
        "Min latency (ns)                : 10\nMax latency (ns)                : 5000\n"
        f"99.00 percentile latency (ns)   : {p99_ns}\n"
        f"min_duration (ms): {min_duration_ms}\nsamples_per_query : {samples}\n"
        f"min_query_count : {queries}\nqsl_rng_seed : 12786827339337101903\n"
    )
    (folder / "mlperf_log_detail.txt").write_text(f'"pid": 1, "ts": 1ns : version : .5a1 : # {folder} {figure}\n')
    (folder / "mlperf_log_accuracy.json").write_text("[\n]")
    return folder

"""Logs of compliance tests, right and wrong in many ways: what the tests judge, and what the official scripts judged.

`python tests/compliance/compliance_cases.py /path/to/inference` (a clone of mlcommons/inference with the tag v4.0, and
numpy) writes compliance_verdicts.json anew: for each case whether the official script says pass.
"""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[1] / "logs" / "fixtures"
VERDICTS = Path(__file__).resolve().with_name("compliance_verdicts.json")
PERFORMANCE_TESTS = ("TEST01", "TEST04", "TEST05")

_SCORES = {
    "SingleStream": ("early_stopping_latency_ss", r"(Early stopping 90\.0th percentile estimate: )\S+"),
    "MultiStream": ("early_stopping_latency_ms", r"(Early stopping 99\.0th percentile estimate: )\S+"),
    "Offline": ("result_samples_per_second", r"(Samples per second: )\S+"),
    "Server": ("result_completed_samples_per_sec", r"(Completed samples per second    : )\S+"),
}
_LEVELS = {"SingleStream": (4_000, 150_000, 20_000_000), "MultiStream": (1_500_000, 80_000_000)}
_FACTORS = (0.5, 0.79, 0.81, 0.89, 0.901, 0.951, 1.0, 1.049, 1.051, 1.099, 1.101, 1.199, 1.201, 1.26, 2.0)


@dataclass(frozen=True)
class Logs:
    """Detail log and summary of one run."""

    detail: str
    summary: str

    def with_score(self, scenario: str, score: float) -> Logs:
        """The same run with another score in both logs."""
        key, pattern = _SCORES[scenario]
        value = str(round(score)) if scenario.endswith("Stream") else f"{score:.6g}"
        detail, count = re.subn(rf'("key": "{key}", "value": )[^,]+', rf"\g<1>{value}", self.detail)
        summary, other = re.subn(pattern, rf"\g<1>{value}", self.summary)
        assert (count, other) == (1, 1), (scenario, count, other)
        return Logs(detail, summary)

    def changed(self, detail: tuple[str, str], summary: tuple[str, str] | None = None) -> Logs:
        """The same run with one text replaced in each log."""
        assert detail[0] in self.detail
        assert summary is None or summary[0] in self.summary
        return Logs(self.detail.replace(*detail), self.summary.replace(*summary) if summary else self.summary)


def read_logs(name: str) -> Logs:
    """The logs of a fixture, 'valid-offline'."""
    folder = FIXTURES / name
    return Logs((folder / "mlperf_log_detail.txt").read_text(), (folder / "mlperf_log_summary.txt").read_text())


def _damaged(scenario: str, good: Logs) -> Iterator[tuple[str, Logs, Logs]]:
    invalid = good.changed(
        ('"key": "result_validity", "value": "VALID"', '"key": "result_validity", "value": "INVALID"'),
        ("Result is : VALID", "Result is : INVALID"),
    )
    yield "the submitted run is INVALID", invalid, good
    yield "the test's run is INVALID", good, invalid
    failing = good.changed(('"key": "num_errors", "value": 0', '"key": "num_errors", "value": 1'))
    yield "the test's run has errors", good, failing
    other = read_logs("valid-offline" if scenario != "Offline" else "valid-singlestream")
    yield "another scenario", good, other
    if scenario == "Server":
        limit = '"key": "effective_target_latency_ns", "value": 10000000'
        looser = good.changed((limit, limit + "0"), ("target_latency (ns): 10000000", "target_latency (ns): 100000000"))
        yield "another latency limit", good, looser
    key = _SCORES[scenario][0]
    pattern = "Early stopping 9" if scenario.endswith("Stream") else "amples per second"
    yield "no score", good, good.changed((f'"{key}"', '"no_such_key"'), (pattern, "nothing"))


def performance_cases() -> Iterator[tuple[str, Logs, Logs]]:
    """Name, logs of the submitted run and logs of the test's run, for each scenario."""
    for scenario in _SCORES:
        good = read_logs(f"valid-{scenario.lower()}")
        for level in _LEVELS.get(scenario, (5000.0,)):
            reference = good.with_score(scenario, level)
            for factor in _FACTORS:
                yield f"{scenario} {level:g} x {factor:g}", reference, good.with_score(scenario, level * factor)
        for what, reference, tested in _damaged(scenario, good):
            yield f"{scenario} {what}", reference, tested


def entry(index: int, data: bytes, **more: object) -> dict[str, object]:
    """One entry of an accuracy log."""
    return {"seq_id": 0, "qsl_idx": index, "data": data.hex().upper(), **more}


def log_text(entries: list[dict[str, object]]) -> str:
    """An accuracy log as LoadGen writes it."""
    rows = [{**row, "seq_id": number} for number, row in enumerate(entries)]
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"


def _label(value: float) -> bytes:
    return struct.pack("<f", value)


def response_cases() -> Iterator[tuple[str, str, str, str]]:
    """Name, element type, log of the accuracy run, log of the test."""
    whole = [entry(index, _label(index % 7)) for index in range(40)]
    sampled = [whole[index] for index in (3, 9, 3, 20, 39)]
    good, part = log_text(whole), log_text(sampled)
    other_last = [*sampled[:-1], entry(39, _label(6.5))]
    pairs = {
        "the same": (good, part),
        "one other label": (good, log_text(other_last)),
        "every label another": (good, log_text([entry(index, _label(0.5 + index)) for index in (3, 9)])),
        "one other in a repeated sample": (good, log_text([*sampled, entry(3, _label(99))])),
        "negative zero": (good, log_text([entry(7, _label(-0.0)), entry(9, _label(2))])),
        "not a number in both": (
            log_text([entry(0, _label(float("nan")))]),
            log_text([entry(0, _label(float("nan")))]),
        ),
        "nothing sampled": (good, "[\n]\n"),
        "no accuracy run": ("[\n]\n", part),
        "samples the accuracy run lacks, all": (good, log_text([entry(77, _label(1))])),
        "a sample the accuracy run lacks": (good, log_text([*sampled, entry(77, _label(1))])),
        "the accuracy run repeats itself": (log_text([*whole, *whole[:4]]), part),
        "the accuracy run differs from itself": (log_text([*whole, entry(3, _label(50))]), part),
        "an empty response in both": (log_text([entry(0, b"")]), log_text([entry(0, b"")])),
        "an empty response in the test": (good, log_text([entry(3, b""), *sampled[1:]])),
        "truncated for a submission": (good[: good.index("{", 300) + 1] + "..." + good[-200:], part),
        "rows left out of the accuracy run": (log_text([*whole[:4], *whole[36:]]), part),
        "cut off": (good, part[: len(part) // 2]),
        "three bytes": (log_text([entry(0, b"abc")]), log_text([entry(0, b"abc")])),
        "second number differs": (
            log_text([entry(0, _label(1) + _label(2))]),
            log_text([entry(0, _label(1) + _label(3))]),
        ),
        "longer by a number": (log_text([entry(0, _label(1))]), log_text([entry(0, _label(1) + _label(3))])),
        "in one line": (good, json.dumps(sampled)),
        "no such key": (good, '[\n{"qsl_idx": 3}\n]\n'),
    }
    for name, (reference, tested) in pairs.items():
        for element in ("byte", "float32"):
            yield f"{name}, {element}", element, reference, tested


def _answer(tokens: list[int], first: int | None = None, count: int | None = None) -> dict[str, object]:
    data = struct.pack(f"<{len(tokens)}i", *tokens)
    begin = tokens[:1] if first is None else [first]
    return entry(0, data, token_data=struct.pack(f"<{len(begin)}i", *begin).hex(), token_count=count or len(tokens))


def answer_cases() -> Iterator[tuple[str, str, str]]:
    """Name, scenario, log of the test (int32 tokens, the end is 2)."""
    good = _answer([5, 6, 7, 2])
    rows = {
        "right": [good, _answer([9, 2])],
        "no end token": [_answer([5, 6, 7])],
        "two end tokens": [good, _answer([5, 6, 2, 2])],
        "only end tokens": [_answer([2, 2])],
        "three end tokens": [_answer([2, 2, 2])],
        "end in the middle": [_answer([5, 2, 6, 2])],
        "another first token": [good, _answer([5, 6, 2], first=4)],
        "too few counted": [good, _answer([5, 6, 2], count=2)],
        "one token": [_answer([2])],
        "no count": [{**good, "token_count": None}],
        "no first token": [{name: value for name, value in good.items() if name != "token_data"}],
    }
    for name, entries in rows.items():
        for scenario in ("Offline", "Server"):
            yield f"{name}, {scenario}", scenario, log_text(entries)


def _says_pass(command: list[str | Path], folder: Path, words: str = "TEST PASS") -> bool:
    done = subprocess.run([sys.executable, *map(str, command)], cwd=folder, capture_output=True, text=True, check=False)
    return words in done.stdout


def _official_performance(checkout: Path, folder: Path) -> Iterator[tuple[str, bool]]:
    old = folder / "test05.py"
    show = ["git", "-C", str(checkout), "show", "v4.0:compliance/nvidia/TEST05/verify_performance.py"]
    old.write_bytes(subprocess.run(show, capture_output=True, check=True).stdout)
    scripts = {test: checkout / "compliance" / test / "verify_performance.py" for test in ("TEST01", "TEST04")}
    scripts["TEST05"] = old
    for name, reference, tested in performance_cases():
        for test, script in scripts.items():
            paths = []
            for letter, logs in (("r", reference), ("t", tested)):
                path = folder / f"{letter}.txt"
                summary = logs.summary.replace("90.0th", "90th").replace("99.0th", "99th")  # as LoadGen 4.0 wrote it
                path.write_text(logs.detail if test == "TEST01" else summary if test == "TEST05" else logs.summary)
                paths.append(path)
            yield f"{test} {name}", _says_pass([script, "-r", paths[0], "-t", paths[1]], folder)


def record(checkout: Path) -> None:
    """Runs the official scripts on every case and writes what they said."""
    verdicts: dict[str, bool] = {}
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        verdicts.update(_official_performance(checkout, folder))
        one, other = folder / "r.json", folder / "mlperf_log_accuracy.json"
        for name, element, reference, tested in response_cases():
            one.write_text(reference)
            other.write_text(tested)
            script = checkout / "compliance" / "TEST01" / "verify_accuracy.py"
            verdicts[f"responses {name}"] = _says_pass([script, "--dtype", element, "-r", one, "-t", other], folder)
        for name, scenario, tested in answer_cases():
            other.write_text(tested)
            script = checkout / "compliance" / "TEST06" / "run_verification.py"
            command = [script, "-c", folder, "-o", folder / "out", "-s", scenario]
            verdicts[f"answers {name}"] = _says_pass(command, folder, "TEST06 verification complete")
    VERDICTS.write_text(json.dumps(verdicts, indent=1) + "\n")


if __name__ == "__main__":
    record(Path(sys.argv[1]).resolve())

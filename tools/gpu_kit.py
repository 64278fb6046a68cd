#!/usr/bin/env python3
"""The GPU kit: one command, no network, no pip, about ten minutes, one page of figures about a machine with a GPU.

    python3 tools/gpu_kit.py --out kit
    python3 tools/gpu_kit.py --out kit --wheel mlcommons_loadgen-6.0.17-cp312-cp312-....whl --only copies,loops
    python3 tools/gpu_kit.py --device=cpu --out kit      # all that needs no GPU: keeps the kit itself whole

It needs a Python with torch and numpy, safetensors, and LoadGen: in that Python, or as a wheel that is unpacked into
the folder. Each step (gpu_kit_steps.py) is a process of its own with a time limit, so that a crash costs one line:

    PASS | FAIL | SKIP  id  figure  (why)

Everything goes to kit.json and logs.tar.gz in the folder, too; the exit code is the number of FAILs. Standard library
only. Not run on hardware.
"""

import argparse
import json
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from reader import exit_code

CHECKOUT = Path(__file__).resolve().parents[1]
SOURCE = CHECKOUT / "src"
PROGRAM = Path(__file__).with_name("gpu_kit_steps.py")
PASS, FAIL, SKIP = "PASS", "FAIL", "SKIP"
NETWORKS = {"resnet50": "resnet50", "bert": "bert-99"}
"""Architectures, and the benchmark that each is run as."""
NEEDS_GPU = "needs a GPU"
NEEDED = {"torch": "torch", "numpy": "numpy", "safetensors": "safetensors", "mlperf_loadgen": "mlcommons-loadgen"}
"""Modules that the steps import, and the packages that have them."""
LARGEST_CODE = 125
"""Exit codes from 126 on are a shell's own."""


@dataclass(frozen=True)
class Step:
    """One process of the kit. limit_s: when it is ended; on a processor the sizes are small and so is the limit."""

    name: str
    phase: int
    limit_s: float


STEPS = (
    Step("facts", 0, 60),
    Step("devices", 0, 90),
    Step("models", 0, 150),
    Step("copies", 1, 60),
    Step("calls", 2, 120),
    Step("loops", 3, 150),
    Step("harness", 4, 420),
    Step("several", 5, 240),
    Step("llama", 6, 180),
    Step("quiet", 7, 120),
    Step("refusals", 8, 180),
)


@dataclass(frozen=True)
class Row:
    """One line: what was looked at, how it ended, what was measured, and why."""

    id: str
    verdict: str
    figure: str = ""
    why: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        """The row as it is printed."""
        return f"{self.verdict}  {self.id:<34} {self.figure}" + (f"  ({self.why})" if self.why else "")


@dataclass(frozen=True)
class Kit:
    """What a step works with."""

    device: str
    out: Path
    step: str

    @property
    def is_gpu(self) -> bool:
        """Whether the sizes are those of a GPU."""
        return self.device == "cuda"

    @property
    def config(self) -> str:
        """The networks' configuration."""
        return "full" if self.is_gpu else "tiny"

    @property
    def precisions(self) -> tuple[str, ...]:
        """Those that are measured."""
        return ("fp32", "bf16") if self.is_gpu else ("fp32",)

    def tell(self, name: str, verdict: str, figure: str = "", why: str = "", **values: Any) -> None:
        """Add a row."""
        row = Row(name, verdict, figure, why, values)
        with (self.out / "steps" / f"{self.step}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(row)) + "\n")

    def check(self, name: str, is_right: bool, figure: str, why: str = "", **values: Any) -> None:
        """Add a PASS, or a FAIL with the reason."""
        self.tell(name, PASS if is_right else FAIL, figure, "" if is_right else why, **values)


def seconds_of(run: Callable[[], object], synchronize: Callable[[], object], repeats: int = 10) -> float:
    """The median time of a call, after three that are not counted."""
    times = []
    for number in range(repeats + 3):
        started_s = time.perf_counter()
        run()
        synchronize()
        times += [time.perf_counter() - started_s] if number >= 3 else []
    return statistics.median(times)


def rows_of(path: Path) -> list[Row]:
    """The rows that a step has written so far, one JSON object a line; a line that a crash cut off is left out."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            rows.append(Row(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return rows


def environment(out: Path) -> dict[str, str]:
    """What the steps are started with: harness and unpacked LoadGen on their path, GPUs in nvidia-smi's order."""
    known = os.environ.get("PYTHONPATH", "")
    path = [str(out / "lib"), str(SOURCE), *([known] if known else [])]
    order = {"CUDA_DEVICE_ORDER": os.environ.get("CUDA_DEVICE_ORDER", "PCI_BUS_ID")}
    return {**os.environ, **order, "PYTHONPATH": os.pathsep.join(path), "PYTHONDONTWRITEBYTECODE": "1"}


def run_step(step: Step, out: Path, device: str, limit_s: float) -> list[Row]:
    """Run a step and return its rows; one that crashes or takes too long has a FAIL of its own at the end."""
    found, log = out / "steps" / f"{step.name}.jsonl", out / "logs" / f"{step.name}.txt"
    found.unlink(missing_ok=True)
    command = [sys.executable, str(PROGRAM), step.name, "--device", device, "--out", str(out)]
    started_s = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment(out), start_new_session=True
        )
        try:
            code: int | None = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = None
    rows, took_s = rows_of(found), time.monotonic() - started_s
    if code == 0 and rows:
        return rows
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    how = f"not done after {limit_s:.0f} s" if code is None else f"ended with code {code} after {took_s:.0f} s"
    said = f": {lines[-1][:160]}" if lines else ""
    return [*rows, Row(step.name, FAIL, "", f"{how}{said}, see {log}")]


def run_steps(steps: Sequence[Step], out: Path, device: str, end_s: float) -> Iterator[Row]:
    """Yield the rows of the steps, in order; those for which no time is left are skipped."""
    for step in steps:
        left_s = end_s - time.monotonic()
        if left_s < 5:
            yield Row(step.name, SKIP, "", "no time left: give more --minutes, or --only")
            continue
        yield from run_step(step, out, device, min(step.limit_s, left_s))


def _value(rows: Sequence[Row], name: str, key: str) -> Any:
    return next((row.values[key] for row in rows if row.id == name and key in row.values), None)


def _cell(value: Any, words: str = "{:,.0f}") -> str:
    return "-" if value is None else words.format(value)


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of the page: the machine, the copies, one line for each pair of a network and a precision."""
    facts = next((row.values for row in rows if row.id == "facts"), {})
    lines = ["  ".join(str(value) for value in facts.values())] if facts else []
    copies = [row for row in rows if row.id.startswith("copies.") and row.verdict != SKIP]
    lines += ["copies   " + "   ".join(f"{row.id.partition('.')[2]} {row.figure}" for row in copies)] if copies else []
    heads = ("", "bare loop/s", "best of it", "harness/s", "of best", "batch", "stream p90 ms", "W")
    lines.append(f"{heads[0]:<18}" + "".join(f"{head:>15}" for head in heads[1:]))
    for row in rows:
        if not row.id.startswith("loops."):
            continue
        network, precision = row.id.split(".")[1:]
        offline, stream = (f"harness.{network}.{precision}.{name}" for name in ("Offline", "SingleStream"))
        rate, best = _value(rows, offline, "measured"), row.values.get("best")
        cells = (
            _cell(row.values.get("eager")), row.values.get("how", "-"), _cell(rate),
            _cell(None if not rate or not best else 100 * rate / best, "{:.0f} %"),
            _cell(_value(rows, offline, "batch")), _cell(_value(rows, stream, "measured"), "{:.3f}"),
            _cell(_value(rows, offline, "watts")),
        )  # fmt: skip
        lines.append(f"{network} {precision:<12}"[:18].ljust(18) + "".join(f"{cell:>15}" for cell in cells))
    return lines


def write_report(rows: Sequence[Row], out: Path, took_s: float) -> list[str]:
    """Write kit.json and logs.tar.gz, and return the page."""
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in (PASS, FAIL, SKIP)}
    summary = "  ".join(f"{count} {verdict}" for verdict, count in counts.items())
    content = {"format": 1, "took_s": round(took_s, 1), "counts": counts, "rows": [asdict(row) for row in rows]}
    (out / "kit.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    with tarfile.open(out / "logs.tar.gz", "w:gz") as archive:
        for name in ("logs", "steps"):
            archive.add(out / name, name)
    minutes, seconds = divmod(int(took_s), 60)
    return [*table(rows), f"{summary}   in {minutes} min {seconds} s   {out / 'kit.json'}"]


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = ",".join(step.name for step in STEPS)
    parser.add_argument("--out", type=Path, default=Path("kit"), help="folder for everything (default: %(default)s)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--wheel", type=Path, help="LoadGen's wheel, if the Python has none")
    parser.add_argument("--minutes", type=float, default=10.0, help="no step begins after that (default: %(default)s)")
    parser.add_argument("--only", default=names, help="steps, with commas (default: %(default)s)")
    given = parser.parse_args(words)
    wrong = set(given.only.split(",")) - set(names.split(","))
    if wrong:
        parser.error(f"--only: unknown steps {', '.join(sorted(wrong))}; allowed: {names}")
    if given.wheel is not None and not given.wheel.is_file():
        parser.error(f"--wheel: there is no file {given.wheel}")
    return given


def missing_packages(out: Path, wheel: Path | None) -> list[str]:
    """The packages that this Python lacks. LoadGen may be in the folder, or a wheel."""
    path = [str(out / "lib"), *sys.path]
    wanted = {module: package for module, package in NEEDED.items() if wheel is None or module != "mlperf_loadgen"}
    return [package for module, package in wanted.items() if PathFinder.find_spec(module, path) is None]


def require_packages(out: Path, wheel: Path | None, words: Sequence[str]) -> None:
    """End the program with the commands for the right Python, if this one lacks packages."""
    if missing := missing_packages(out, wheel):
        again = shlex.join(["kit-python/bin/python", sys.argv[0], *words])
        print(
            f"gpu_kit.py: error: {sys.executable} has no {', '.join(missing)}. Use the Python that has torch for your "
            "GPU, such as that of NVIDIA's PyTorch containers (LoadGen: --wheel), or make one:\n"
            f"  python3 -m venv kit-python && kit-python/bin/pip install {' '.join(NEEDED.values())} nvidia-ml-py\n"
            f"  {again}",
            file=sys.stderr,
        )
        raise SystemExit(2)


def main(words: Sequence[str] | None = None) -> int:
    """Command line entry; the exit code is the number of FAILs."""
    given = parse(words)
    out, started_s = given.out.resolve(), time.monotonic()
    require_packages(out, given.wheel, sys.argv[1:] if words is None else words)
    for name in ("lib", "steps", "logs"):
        (out / name).mkdir(parents=True, exist_ok=True)
    if given.wheel is not None:
        with zipfile.ZipFile(given.wheel) as archive:
            archive.extractall(out / "lib")
    chosen = [step for step in STEPS if step.name in given.only.split(",")]
    rows: list[Row] = []
    for row in run_steps(chosen, out, given.device, started_s + 60 * given.minutes):
        rows.append(row)
        print(row.line(), flush=True)
    print(
        ""
        if given.device == "cuda"
        else "\nTiny networks on a CPU: they show that the kit works, and are not measurements."
    )
    print("\n".join(write_report(rows, out, time.monotonic() - started_s)))
    return min(sum(row.verdict == FAIL for row in rows), LARGEST_CODE)


if __name__ == "__main__":
    sys.exit(exit_code(main))

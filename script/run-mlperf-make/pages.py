"""What is printed: help, information and plans; and the targets that call no recipe."""

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping

from crowdperf.rules.benchmarks import record_of
from crowdperf.rules.names import ExecutionMode, counted

from . import views
from .context import Around
from .plans import Plan, RecipeCall
from .request import MakeError, table

GB = 10**9
NO_SCRATCH = "MLPERF_SCRATCH_PATH is not set: make link_dirs makes one in CM's cache"


def help_text(around: Around) -> str:
    """The targets and variables."""
    targets = [f"  {name:<24}{row[0]}" for name, row in table("targets").items()]
    variables = [f"  {name:<24}{row[1]}" for name, row in table("variables").items()]
    return "\n".join(["make TARGET [VARIABLE=value ...]", "", *targets, "", *variables])


def info_text(around: Around) -> str:
    """The workspace, the machine and the versions."""
    values, folder = around.request.values, around.folder
    links = {place: folder / place for place in views.BUILD_LINKS}
    rows = {
        "workspace": folder,
        "submitter": values["SUBMITTER"] or "not set",
        "scratch space": values["MLPERF_SCRATCH_PATH"] or NO_SCRATCH,
        **{place: os.readlink(path) if path.is_symlink() else "make link_dirs" for place, path in links.items()},
        "engines": sum(place.startswith("build/engines/") and bool(around.made_by(place)) for place in around.notes),
        "runs": sum(note.get("kind") == "run" for note in around.notes.values()),
        "system": f"{around.system} ({'; '.join(around.here.reasons) or 'as listed'})",
        "operating system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "Python": f"{platform.python_version()}, {sys.executable}",
    }
    return "\n".join(f"{name:<24}{value}" for name, value in rows.items())


def clean_text(around: Around) -> str:
    """Removes links, and says which."""
    removed = views.clean(around.folder, is_shallow=around.request.target == "clean_shallow")
    lines = [f"removed {place}" for place in removed] or ["no links to remove"]
    is_kept = (around.folder / "build/runs").is_dir()
    return "\n".join([*lines, *(["kept: build/runs and build/logs, which are results"] if is_kept else [])])


def shell_text(around: Around) -> str:
    """Opens the user's shell in the workspace. Raises MakeError without a terminal."""
    if not sys.stdin.isatty():
        raise MakeError("make shell needs a terminal", "make info shows the workspace")
    outer = {name: value for name, value in os.environ.items() if not name.startswith("CROWDPERF_")}
    scratch = {"MLPERF_SCRATCH_PATH": around.request.values["MLPERF_SCRATCH_PATH"]}
    code = subprocess.call([os.environ.get("SHELL") or "/bin/sh"], cwd=around.folder, env={**outer, **scratch})
    return f"the shell ended with code {code}"


LOCAL: Mapping[str, Callable[[Around], str]] = {
    "help": help_text,
    "info": info_text,
    "clean": clean_text,
    "clean_shallow": clean_text,
    "shell": shell_text,
}
"""The answers of the targets that call no recipe; cleaning and the shell have effects."""


def plan_text(around: Around, plan: Plan) -> str:
    """Settings with their origins, the recipe calls with what they show, time and space."""
    lines = [around.here.banner] if around.machine else []
    lines += [line for config in plan.configs for line in config.table()]
    lines.append(f"make {around.request.work} makes {counted(len(plan.calls), 'recipe call')}:")
    for call in plan.calls:
        lines += [f"  {call.line}", *(f"      -> {view.place}" for view in call.views)]
    lines += [f"  {copy.source[0]} -> {copy.place} ({copy.kind})" for copy in plan.copies]
    return "\n".join([*lines, *cost_lines(plan)])


def cost_lines(plan: Plan) -> list[str]:
    """The least time of the runs, and the space that models and data take, as far as sources tell it."""
    runs = [call for call in plan.calls if call.tags == "run-mlperf-inference"]
    if not runs:
        return []
    seconds = sum(map(least_s, runs))
    least = f"at least {f'{seconds / 3600:.2f} h' if seconds >= 600 else f'{seconds:.0f} s'}"
    lines = [f"runs: {least if seconds >= 1 else 'as long as all samples take'}, after their requirements are prepared"]
    real = dict.fromkeys(call.inputs["model"] for call in runs if call.inputs["source"] == "real")
    for name in real:
        sizes = record_of(name).sizes
        memory = f", {sizes.memory.size_bytes / GB:.0f} GB of memory to make the model" if sizes.memory else ""
        known = f"at least {sizes.needed_bytes / GB:.0f} GB" if sizes.needed_bytes else "unknown"
        lines.append(f"space of {name}: {known}{memory}")
    return lines


def least_s(call: RecipeCall) -> float:
    """The least seconds of a run: its set duration, and all samples at the rate that it is planned with."""
    inputs, record, seconds = call.inputs, record_of(call.inputs["model"]), 0.0
    rate = float(inputs.get("offline_target_qps") or inputs.get("server_target_qps") or "inf")
    rate = rate if inputs["source"] == "real" else float("inf")  # small made data sets have fewer samples
    if inputs["mode"] != "accuracy":
        length_ms = inputs.get("min_duration_ms") or ExecutionMode(inputs["execution_mode"]).min_duration_ms
        least_count = record.offline_min_sample_count if inputs["scenario"] == "Offline" else 0
        seconds += max(float(length_ms) / 1000, least_count / rate)
    return seconds + (record.dataset_count / rate if inputs["mode"] != "performance" else 0)

"""Writes the README.md of each run of a call, where it does not already say what the run says. Effects."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdperf.kit.user_paths import home_folder
from crowdperf.kit.whole_file import write_whole
from crowdperf.logs.layout import ResultsPaths, RunPaths

from . import readme
from .request import Request

README_NAME = "README.md"
OWN_TAGS = "generate-run-cmds,inference"


def command(tags: str, inputs: Mapping[str, Any]) -> str:
    """A `cm` line for a shell on this machine."""
    return readme.command(tags, inputs, str(home_folder()))


def write_all(
    paths: ResultsPaths, request: Request, passed_on: Mapping[str, Any], repeat: Mapping[str, Any]
) -> tuple[Path, ...]:
    """Makes the README of every run that environment.json tells of; gives those that were written."""
    environment = json.loads(paths.environment_json.read_text(encoding="utf-8"))
    written = []
    for row in environment["runs"]:
        run = RunPaths(paths.folder / row["folder"])
        result = json.loads(run.result_json.read_text(encoding="utf-8"))
        scenario, mode = (result["run"][name]["value"] for name in ("scenario", "mode"))
        facts = readme.RunFacts(
            title=f"{request.model}, {scenario}, {mode}: {paths.run_id}",
            row=row,
            result=result,
            conf=[line for line in _text(run.user_conf).splitlines() if line and not line.startswith("#")],
            score=_text(run.accuracy_text).strip(),
        )
        tags = f"{OWN_TAGS},_{mode}-only,_r{request.round_name.removeprefix('v')}"
        again = command(tags, {**repeat, "scenario": scenario})
        text = readme.render(facts, environment["host"], again, passed_on, str(home_folder()))
        path = run.folder / README_NAME
        if _text(path) == text:
            print(f"Measure files exist at {run.folder}. Skipping regeneration...", flush=True)
            continue
        write_whole(path, text)
        print(f"README of this run: {path}", flush=True)
        written.append(path)
    return tuple(written)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

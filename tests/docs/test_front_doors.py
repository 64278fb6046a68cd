"""docs/howto/from-nvidia.md and from-azure.md: every line of the two documents is planned, and with --full made."""

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import cmind.cli
import make_front_door_pages as front_doors
import pytest
from helpers import CHECKOUT, checkout_home
from recipe_engine.actions.run import new_engine, parse_request
from recipe_engine.running.engine import check_inputs
from recipe_loader import load_module

ROWS = [
    pytest.param(row, id=f"{document}: {row['line'][:70]}")
    for document in front_doors.PAGES
    for row in front_doors.rows(document)
]
WITHOUT_CALLS = ("clean", "clean_shallow", "info", "update_compliance")


@pytest.mark.parametrize("page", sorted(set(front_doors.PAGES.values())))
def test_the_tables_say_what_the_code_does(page: str) -> None:
    path = CHECKOUT / "docs" / "howto" / f"{page}.md"
    again = "run .venv-test/bin/python tools/make_front_door_pages.py"
    assert path.read_text(encoding="utf-8") == front_doors.page_text(page), again


@pytest.mark.parametrize("row", ROWS)
def test_every_line_is_planned_or_refused_with_a_reason(row: dict[str, Any], tmp_path: Path) -> None:
    is_audit = row.get("make", [""])[0].startswith("run_audit")
    if "make" not in row:
        return
    if row["outcome"] == "refused" or is_audit:  # of an audit there is no run
        with pytest.raises(load_module("run-mlperf-make", "request").MakeError) as caught:
            front_doors.plan_of(row, tmp_path / "closed/ACME")
        assert "unknown target" not in str(caught.value)
    else:
        plan = front_doors.plan_of(row, tmp_path / "closed/ACME", **row.get("try", {}))
        assert plan.calls or row["make"][0] in WITHOUT_CALLS
    assert not list(tmp_path.iterdir()), "a plan makes nothing"


@pytest.mark.parametrize("row", [row for row in ROWS if "here" in row.values[0]])
def test_the_recipe_of_a_line_is_there_with_its_inputs(row: dict[str, Any], tmp_path: Path) -> None:
    engine = new_engine(checkout_home(tmp_path), None)
    request = parse_request({**cmind.cli.parse(shlex.split(row["here"])[1:])["cm_input"], "quiet": True})
    check_inputs(engine.source.recipe(engine.choose(request).entry), request, engine)


def test_the_doubled_quote_of_azures_readme_never_gets_to_make(tmp_path: Path) -> None:
    (line,) = [row["line"] for row in front_doors.rows("azure") if '=""' in row["line"]]
    command = ["bash", "-c", line.replace("make", "echo")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0 and "unexpected EOF" in done.stderr and not done.stdout


@pytest.mark.full
@pytest.mark.parametrize("documents", [("nvidia", "nvidia_guides"), ("azure",)], ids=["nvidia", "azure"])
def test_every_line_is_made(documents: tuple[str, ...], tmp_path: Path) -> None:
    """In one workspace, with made data: no traceback, no unknown target, and the code that the outcome says."""
    env = {**os.environ, "MLPERF_SCRATCH_PATH": str(tmp_path / "scratch"), "CROWDPERF_CACHE": str(tmp_path / "cache")}
    (tmp_path / "scratch").mkdir()
    words = ["run", "script", "--tags=run,mlperf,make,_init", f"--path={tmp_path / 'a work'}", "--submitter=ACME"]
    subprocess.run([str(CHECKOUT / "cm"), *words], env=env, timeout=600, check=True)
    told = []
    for row in (row for document in documents for row in front_doors.rows(document) if "make" in row):
        more = [f"{name}={text}" for name, text in row.get("try", {}).items()]
        made = [] if any("MACHINE" in word for word in row["make"]) else ["SOURCE=tiny"]
        done = subprocess.run(
            ["make", *row["make"], *more, *made],
            cwd=tmp_path / "a work/closed/ACME", env=env, capture_output=True, text=True, timeout=3000, check=False,
        )  # fmt: skip
        said = done.stdout + done.stderr
        is_whole = "Traceback" not in said and "unknown target" not in said and " raised " not in said
        codes = {"ran": (0, 2) if row.get("may_fail") else (0,), "refused": (2,), "planned": (0, 2)}
        if not is_whole or done.returncode not in codes[row["outcome"]]:
            told.append(f"{row['line']}: {done.returncode}\n{said[-3000:]}")
    assert told == []

"""Records runs of any CM-compatible engine, for ``compare_goldens.py`` to compare this engine with.

    PYTHONPATH=tests/support:automation
        python tests/compat/record_goldens.py --engine-command=CM --engine=FOLDER --output=FOLDER [--recipes=FOLDER]
        [--commands=FILE | --deep] [--only=NAME,...] [--upstream=TEXT] [--facts-only]

``--engine-command`` is the ``cm`` of the environment of that engine, ``--engine`` a checkout with its ``automation/``.
Without ``--recipes`` the cases of ``fixture_recipes.py`` are recorded. With it, runs on the checkout of a community
repository: those of ``--commands``, a JSON list of ``{"name", "command", "setup_commands"}``, or with ``--deep`` one
fake run of each recipe in which all steps below are faked too (the engine is copied and changed for that), which shows
what each would resolve to. Compare a deep record with ``compare_goldens.py --deep``. ``--facts-only`` leaves out what
the engine says in words of its own (``error``, output), which is compared with nothing.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from compare_goldens import Place, generalised_entries, make_fixtures, make_place, run_cm, tags_of_recipes
from fixture_recipes import CASES, commands, write_recipes

WORDS = {"error": None, "stdout_before_json": "", "stderr_tail": ""}
STEP = re.compile(r"(?:INFO:root:)?( *(?:\* cm run script|! cd|! call|! load).*)")
SHOWN_CHARACTERS = 2000


def cases_of(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The runs to record: name, command and the commands before it."""
    if options.commands:
        found: list[dict[str, Any]] = json.loads(options.commands.read_text(encoding="utf-8"))
        return found
    if options.deep:
        aliases = sorted(tags_of_recipes(options.recipes))
        line = "cm run script {} --fake_run --skip_cache --quiet --out=json"
        return [{"name": alias, "command": line.format(alias)} for alias in aliases]
    rows = {name: commands(name) for name in CASES}
    return [{"name": name, "command": lines[-1], "setup_commands": lines[:-1]} for name, lines in rows.items()]


def split_answer(stdout: str) -> tuple[str, dict[str, Any]]:
    """What was printed before the JSON answer, which comes last, and the answer."""
    for found in reversed(list(re.finditer(r"^\{$", stdout, re.MULTILINE))):
        try:
            answer: dict[str, Any] = json.loads(stdout[found.start() :])
        except ValueError:
            continue
        return stdout[: found.start()], answer
    return stdout, {}


def record(case: dict[str, Any], place: Place, upstream: str) -> dict[str, Any]:
    """One run in a home of its own as a golden."""
    extra = case.get("extra_process_env", {})
    for command in case.get("setup_commands", ()):
        run_cm(place, command, extra)
    started_s = time.monotonic()
    done = run_cm(place, case["command"], extra)
    printed, answer = split_answer(done.stdout)
    answer = place.generalise(answer)
    is_ok = done.returncode == 0
    return {
        "name": case["name"],
        "command": case["command"],
        "extra_process_env": extra,
        "setup_commands": case.get("setup_commands", []),
        "exit_code": done.returncode,
        "return": answer.get("return"),
        "error": answer.get("error"),
        "new_env": answer.get("new_env"),
        "new_state": answer.get("new_state"),
        "deps": answer.get("deps"),
        "env_keys": sorted(answer.get("new_env") or ()),
        "cache_entries": generalised_entries(place),
        "files_left_in_cwd": sorted(path.name for path in place.cwd.iterdir()),
        "steps": [place.generalise(row[1]) for line in done.stderr.splitlines() if (row := STEP.fullmatch(line))],
        "stdout_before_json": place.generalise(printed[-SHOWN_CHARACTERS:]),
        "stderr_tail": "" if is_ok else place.generalise(done.stderr[-SHOWN_CHARACTERS:]),
        "wall_s": round(time.monotonic() - started_s, 2),
        "pythonhashseed": 0,
        "upstream": upstream,
        "success": is_ok,
        "class": "ok" if is_ok else "expected-error",
    }


def index_row(golden: dict[str, Any]) -> dict[str, Any]:
    """What the index says of a golden."""
    return {
        "name": golden["name"],
        "class": golden["class"],
        "exit": golden["exit_code"],
        "command": golden["command"],
        "setup": golden["setup_commands"],
        "new_env_keys": len(golden["env_keys"]),
        "cache_entries": len(golden["cache_entries"]),
        "wall_s": golden["wall_s"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine-command", type=Path, required=True)
    parser.add_argument("--engine", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--recipes", type=Path)
    parser.add_argument("--commands", type=Path)
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--upstream", default="")
    parser.add_argument("--facts-only", action="store_true")
    options = parser.parse_args()
    if options.recipes is None and (options.commands or options.deep):
        parser.error("--commands and --deep need --recipes")
    work = Path(tempfile.mkdtemp(prefix="golden-record-"))
    recipes = options.recipes or write_recipes(work / "recipes")
    fixtures = make_fixtures(options.output / "fixtures")
    options.output.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, case in enumerate(cases_of(options)):
        if options.only and case["name"] not in options.only.split(","):
            continue
        environment = options.engine_command.absolute().parent.parent
        folder = work / ("deep" if options.deep else str(number))
        place = make_place(folder, recipes, fixtures, environment, options.engine, is_deep=options.deep)
        try:
            golden = record(case, place, options.upstream)
        except subprocess.TimeoutExpired:
            print(f"timed out {case['name']}", flush=True)
            continue
        finally:
            if not options.deep:
                shutil.rmtree(folder)
        golden.update(WORDS if options.facts_only else {})
        text = json.dumps(golden, indent=1, ensure_ascii=False)
        (options.output / f"{case['name']}.json").write_text(text + "\n", encoding="utf-8")
        rows.append(index_row(golden))
        print(f"{golden['exit_code']} {case['name']}", flush=True)
    (options.output / "index.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(work)
    shutil.rmtree(fixtures)
    return 0


if __name__ == "__main__":
    sys.exit(main())

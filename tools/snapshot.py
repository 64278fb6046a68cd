"""Takes a picture of what a checkout does, and compares two pictures: a move of code must change nothing else.

    .venv-test/bin/python tools/snapshot.py take --checkout=FOLDER --out=FOLDER [--only=PART[:NAME],...] [--jobs=2]
    .venv-test/bin/python tools/snapshot.py compare BEFORE AFTER [--ignore=WHAT,...] [--rename=OLD=NEW ...]

A picture is a folder with one JSON file a part: help, plans, refusals, runs (run.json of a matrix of runs), gate (its
verdicts on the changed trees of the tests), wheel (its files), counts (tools/house_counts.py). The checkout need not be
the one of this program. Paths, times and digests are masked; disks, processors and the machine are made up, or recorded
ones of this program's tests, so that two machines give the same but for what hooks read of the host without asking the
recorded machine. Nothing is installed, and the checkout is not changed.

compare ends with 1 where something differs. ``--ignore=lib-steps`` leaves out the recipes that only put a folder on a
path, everywhere they are named; ``--ignore=PART`` and ``--ignore=PART:NAME`` (with * for anything) what is meant to
differ. ``--rename=OLD=NEW`` is applied to the first picture. counts are shown, and never a difference.
"""

import argparse
import difflib
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import house_counts
import snapshot_engine
import snapshot_trees
from reader import exit_code
from snapshot_engine import LIBRARY, Engine, mask

ROOT = Path(__file__).resolve().parents[1]
MACHINES = ROOT / "tests" / "machine" / "fixtures"
ENGINE_PARTS: Mapping[str, Callable[[Engine], snapshot_engine.Items]] = {
    "help": snapshot_engine.help_items,
    "plans": snapshot_engine.plan_items,
    "refusals": snapshot_engine.refusal_items,
    "runs": snapshot_engine.run_items,
}
OTHER_PARTS: Mapping[str, Callable[[Path, Path], snapshot_trees.Items]] = {
    "gate": snapshot_trees.gate_items,
    "wheel": snapshot_trees.wheel_items,
    "counts": house_counts.counts_items,
}
SLICES = {"plans": 6, "refusals": 6, "runs": 4, "gate": 4}
"""In how many processes a part is taken; always the same, because what a process has loaded may be seen."""
LONG_S = 20
"""A name that takes longer is told."""
MAX_LINES = 40
"""Of the differences of one name, the rest is counted."""


# --- taking ---


def is_wanted(only: Iterable[str], part: str, name: str = "*") -> bool:
    """Whether ``--only`` asks for a part, or for one of its names; without it everything is asked for."""
    rows = [one.partition(":") for one in only]
    return not rows or any(
        row[0] == part and ("*" in (name, row[2] or "*") or fnmatch.fnmatch(name, row[2])) for row in rows
    )


def slices_of(part: str, only: Iterable[str]) -> int:
    """In how many processes a part is taken; few names of it need no more than one."""
    return 1 if any(":" in one for one in only) else SLICES.get(part, 1)


def masked(value: Any, places: Mapping[str, str]) -> Any:
    """A value of JSON whose texts are masked."""
    if isinstance(value, str):
        return mask(value, places)
    if isinstance(value, dict):
        return {key: masked(one, places) for key, one in value.items()}
    return [masked(one, places) for one in value] if isinstance(value, list | tuple) else value


def take_slice(checkout: Path, part: str, number: int, only: list[str]) -> dict[str, Any]:
    """One slice of a part, in this process, and the processor time that it took."""
    with tempfile.TemporaryDirectory(prefix="snapshot-") as folder:
        scratch = Path(folder).resolve()
        places = {str(scratch / "home"): "<home>", str(scratch / "work"): "<work>", str(scratch): "<scratch>"}
        places |= {str(MACHINES): "<machines>", str(checkout): "<checkout>"}
        places |= {sys.prefix: "<python>", sys.base_prefix: "<python>"}
        if part in ENGINE_PARTS:
            items = ENGINE_PARTS[part](Engine(checkout, MACHINES, scratch))
        else:
            items = OTHER_PARTS[part](checkout, scratch)
        names = [(name, make) for name, make in items if is_wanted(only, part, name)]
        found = {}
        for name, make in names[number :: slices_of(part, only)]:
            began_s = time.process_time()
            found[name] = masked(make(), places)
            if (took_s := time.process_time() - began_s) > LONG_S:
                sys.stderr.write(f"{part}: {name} took {took_s:.0f} s\n")
        os.chdir("/")
    times = os.times()
    return {"found": found, "took_s": times.user + times.system + times.children_user + times.children_system}


def start_slice(checkout: Path, part: str, number: int, only: list[str]) -> dict[str, Any]:
    """The same in a process of its own, with an environment that is the same everywhere."""
    words = [sys.executable, __file__, "slice", f"--checkout={checkout}", f"--part={part}", f"--number={number}"]
    env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0"}
    env |= {"CM_REPOS": os.devnull + "/none", "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.NamedTemporaryFile(prefix="snapshot-", suffix=".json") as file:
        words += [f"--only={','.join(only)}", f"--out={file.name}"]
        done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise SystemExit(f"the part {part} could not be recorded: exit status {done.returncode}")
        found: dict[str, Any] = json.loads(Path(file.name).read_text(encoding="utf-8"))
    return found


def take(checkout: Path, out: Path, only: list[str], jobs: int) -> None:
    """Writes the picture, a file a part."""
    out.mkdir(parents=True, exist_ok=True)
    parts = [part for part in (*ENGINE_PARTS, *OTHER_PARTS) if is_wanted(only, part)]
    tasks = [(part, number) for part in parts for number in range(slices_of(part, only))]
    values: dict[str, dict[str, Any]] = {}
    took_s = dict.fromkeys(parts, 0.0)
    with ThreadPoolExecutor(jobs) as pool:
        answers = pool.map(lambda task: start_slice(checkout, *task, only), tasks)
        for (part, number), answer in zip(tasks, answers, strict=True):
            values.setdefault(part, {}).update(answer["found"])
            took_s[part] += answer["took_s"]
            if number + 1 == slices_of(part, only):
                text = json.dumps(values[part], indent=1, sort_keys=True, ensure_ascii=False)
                (out / f"{part}.json").write_text(text + "\n", encoding="utf-8")
                print(f"{part}: {len(values[part])} names, {took_s[part]:.0f} s of CPU time", flush=True)


# --- comparing ---


def without_libraries(part: str, name: str, value: Any) -> Any:
    """What a part says of a name, without the recipes that only put a folder on a path."""
    if part == "help" and isinstance(value.get("dependencies"), dict):
        kept = {
            phase: [row for row in rows if not re.fullmatch(LIBRARY, row["tags"])]
            for phase, rows in value["dependencies"].items()
        }
        return {**value, "dependencies": kept}
    if part == "plans" and "steps" in value:
        return {**value, "steps": list(_without_library_steps(value["steps"]))}
    return value


def _without_library_steps(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a plan; what stands below a step that is left out moves up."""
    left_out: list[int] = []
    for line in lines:
        depth = len(line) - len(line.lstrip())
        left_out = [one for one in left_out if one < depth]
        if re.match(rf"(?:run|reuse|skip|fail) {LIBRARY}[^ ]* ", line.lstrip()):
            left_out.append(depth)
        else:
            yield line[2 * len(left_out) :]


def differences(before: Path, after: Path, ignored: list[str], renamed: Mapping[str, str]) -> Iterator[list[str]]:
    """The differences of two pictures, each as lines."""
    files = sorted({path.name for folder in (before, after) for path in folder.glob("*.json")} - {"counts.json"})
    for file in files:
        part = file.removesuffix(".json")
        if part in ignored:
            continue
        old, new = (
            json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
            for path in (before / file, after / file)
        )
        for name in sorted({*old, *new}):
            is_library = "lib-steps" in ignored and re.match(LIBRARY, name)
            if is_library or any(fnmatch.fnmatch(f"{part}:{name}", one) for one in ignored):
                continue
            yield from _difference(part, name, old, new, ignored, renamed)


def _difference(
    part: str, name: str, old: Mapping[str, Any], new: Mapping[str, Any], ignored: list[str], renamed: Mapping[str, str]
) -> Iterator[list[str]]:
    if name not in old or name not in new:
        yield [f"{part}: {name}: only {'before' if name in old else 'after'}"]
        return
    texts = []
    for side in (old, new):
        value = without_libraries(part, name, side[name]) if "lib-steps" in ignored else side[name]
        text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
        for word, other in renamed.items() if side is old else ():
            text = text.replace(word, other)
        texts.append(text.splitlines())
    if texts[0] != texts[1]:
        lines = list(difflib.unified_diff(texts[0], texts[1], n=1, lineterm=""))[2:]
        rest = [f"  ... {len(lines) - MAX_LINES} more lines"] if len(lines) > MAX_LINES else []
        yield [f"{part}: {name}:", *("  " + line for line in lines[:MAX_LINES]), *rest]


def compare(before: Path, after: Path, ignored: list[str], renamed: Mapping[str, str]) -> int:
    """Prints the differences; 1 where there are any."""
    for folder in (before, after):
        if not any(folder.glob("*.json")):
            raise SystemExit(f"{folder} has no picture. tools/snapshot.py take --checkout=FOLDER --out={folder}")
    found = list(differences(before, after, ignored, renamed))
    for lines in found:
        print("\n".join(lines))
    counts = [folder / "counts.json" for folder in (before, after)]
    if all(path.is_file() for path in counts):
        old, new = (json.loads(path.read_text(encoding="utf-8")) for path in counts)
        for name in [name for name in {**old, **new} if name != "where"]:
            print(f"count: {name}: {old.get(name)} -> {new.get(name)}")
    print(f"{len(found)} differences" if found else "no difference")
    return int(bool(found))


def words_of(text: str) -> list[str]:
    """The words of a comma list."""
    return [word for word in text.split(",") if word]


def main(words: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    taking, slicing = actions.add_parser("take"), actions.add_parser("slice", help="one slice of a part, for take")
    for one in (taking, slicing):
        one.add_argument("--checkout", type=lambda text: Path(text).resolve(), default=ROOT)
        one.add_argument("--only", type=words_of, default=[])
        one.add_argument("--out", type=lambda text: Path(text).resolve(), required=True)
    taking.add_argument("--jobs", type=int, default=2)
    slicing.add_argument("--part", choices=[*ENGINE_PARTS, *OTHER_PARTS], required=True)
    slicing.add_argument("--number", type=int, required=True)
    comparing = actions.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--ignore", type=words_of, default=[])
    comparing.add_argument("--rename", action="append", default=[], metavar="OLD=NEW")
    given = parser.parse_args(words)
    if given.action == "compare":
        renamed = dict(pair.partition("=")[::2] for pair in given.rename)
        return compare(given.before, given.after, given.ignore, renamed)
    if not (given.checkout / "automation" / "recipe_engine").is_dir():
        raise SystemExit(f"{given.checkout} is not a checkout of crowdperf: it has no automation/recipe_engine")
    if given.action == "slice":
        found = take_slice(given.checkout, given.part, given.number, given.only)
        given.out.write_text(json.dumps(found), encoding="utf-8")
    else:
        take(given.checkout, given.out, given.only, given.jobs)
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(main, sys.argv[1:]))

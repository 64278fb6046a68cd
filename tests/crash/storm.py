"""Many processes of ``cm`` at once, killed at random, for many rounds; tells what went wrong.

    PYTHONPATH=tests/support:automation python tests/crash/storm.py --kills=1000 --processes=16 --seed=1

One round: so many processes run different and equal recipes (some start runs of their own), renew (some renewals
fail), add, collect or remove entries, while ``kill -9`` hits single processes and whole groups, scripts, child runs and
their children too, at random moments; half of the processes also kill
themselves at a random one of their own file operations, where commits and removals are most fragile. When all has
ended, processes that are never hit ask the same questions. The recipes (storm_recipes.py) prove which request made
what; the rules that must hold are in storm_checks.py. The seed fixes what is asked and who is hit when; how processes
interleave is up to the machine.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from helpers import TemporaryHome, cm_command
from storm_checks import Ledger, busy_locks, finished_entries
from storm_recipes import CACHED, METAS, QUERIES, Query, env_key, file_trouble, write_one, write_recipes

PATIENCE_S = 180.0
"""How long a round may take before it counts as blocked; the slowest recipe takes less than a second."""
MARK = "STORM_PROCESS"
"""Each process of the storm, whatever started it, carries this variable: ``<storm>:<round>:<slot>``."""

SELF_KILLER = '''
"""A sitecustomize.py: this process kills itself before or after one of its own file operations, now and then."""

import os
import random
import signal

dice = random.Random(os.environ["STORM_DICE"])


def die():
    with open(os.environ["STORM_DEATHS"], "a") as file:  # not by os.open, which is deadly itself
        file.write(os.environ["STORM_PROCESS"] + "\\n")
    os.kill(os.getpid(), signal.SIGKILL)


class Deadly:
    # an object: a function would become a method of the class in which pathlib of Python 3.10 has os.mkdir

    def __init__(self, function):
        self.function = function

    def __call__(self, *arguments, **options):
        fate = dice.random()
        if fate < 0.002:
            die()
        result = self.function(*arguments, **options)
        if fate > 0.998:
            die()
        return result


if os.environ.get("STORM_DICE"):
    import fcntl

    for name in ("replace", "rename", "unlink", "rmdir", "mkdir", "listdir", "open", "write", "pwrite", "ftruncate"):
        setattr(os, name, Deadly(getattr(os, name)))
    fcntl.flock = Deadly(fcntl.flock)
'''


class Action(NamedTuple):
    """One thing a process does: asks a query, maybe with a flag, or removes a recipe's entries."""

    words: tuple[str, ...]
    query: Query | None = None
    flag: str = ""
    removes: str = ""
    fails: bool = False


class Child(NamedTuple):
    """A started process with what it does and where its output goes."""

    action: Action
    process: subprocess.Popen[bytes]
    mark: str
    out: Path
    err: Path

    @property
    def answer(self) -> Mapping[str, Any] | None:
        """The JSON object that it printed; None when it printed something else."""
        try:
            value = json.loads(self.out.read_text())
        except ValueError:
            return None
        return value if isinstance(value, dict) else None


class Storm:
    """All rounds in one home; ``problems`` are the broken rules, in words."""

    def __init__(self, folder: Path, *, seed: int, process_count: int) -> None:
        self.home = TemporaryHome(folder)
        self.dice = random.Random(seed)
        self.seed = seed
        self.process_count = process_count
        self.name = f"storm-{os.getpid()}-{seed}"
        self.ledger = Ledger(self.home.store)
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self.deaths = folder / "deaths"
        """The marks of the processes that killed themselves, a line each; child runs have the mark of their parent."""
        self.wanted: Sequence[Query] = QUERIES  # by most processes of the round, so that they meet
        write_recipes(self.home)
        (folder / "site").mkdir()
        (folder / "site" / "sitecustomize.py").write_text(SELF_KILLER)
        for name in ("shared", "own", "output"):
            (folder / name).mkdir()
        self.finish([self.start(Action(("version", "core")), "0:first")])  # cmind's own first start

    # --- processes ---

    def start(self, action: Action, slot: str, *, dice: str = "") -> Child:
        """Starts one process in a folder shared with others or of its own; with ``dice`` it may kill itself."""
        mark = f"{self.name}:{slot}"
        work = self.home.folder / "shared"
        if self.dice.random() < 0.5:
            work = self.home.folder / "own" / slot.replace(":", "-")
            work.mkdir(exist_ok=True)
        env = self.home.process_env(
            {
                MARK: mark,
                "STORM_CM": cm_command([])[0],
                "STORM_FAIL": "yes" if action.fails else "",
                "STORM_DICE": dice,
                "STORM_DEATHS": str(self.deaths),
                "PYTHONPATH": str(self.home.folder / "site"),
            }
        )
        out, err = (self.home.folder / "output" / f"{slot.replace(':', '-')}.{end}" for end in ("out", "err"))
        with out.open("wb") as out_file, err.open("wb") as err_file:
            process = subprocess.Popen(
                cm_command(action.words),
                cwd=work,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out_file,
                stderr=err_file,
                start_new_session=True,
            )
        return Child(action, process, mark, out, err)

    def finish(self, children: Sequence[Child]) -> bool:
        """Waits until these processes and all that any process of the storm started have ended; whether they did."""
        end_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < end_s:
            if all(child.process.poll() is not None for child in children) and not any(self.alive()):
                return True
            time.sleep(0.02)
        return False

    def alive(self) -> Iterator[tuple[int, str]]:
        """Every process of this storm with its mark, found by its environment, as orphans have no parent to ask."""
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError):
                    block = Path("/proc", name, "environ").read_bytes()
                    found = [item for item in block.split(b"\0") if item.startswith(f"{MARK}={self.name}:".encode())]
                    if found:
                        yield int(name), found[0].decode().partition("=")[2]

    def strike(self, killed: set[str]) -> None:
        """``kill -9`` for one random process of the storm, or for its whole group."""
        targets = sorted(self.alive())
        if not targets:
            return
        parents = {parent_of(pid) for pid, _ in targets}
        makers = [(pid, mark) for pid, mark in targets if pid in parents]
        pid, mark = self.dice.choice(makers if makers and self.dice.random() < 0.4 else targets)
        is_group = self.dice.random() < 0.3
        with contextlib.suppress(OSError):
            killed.add(mark)
            if is_group and os.getpgid(pid) != os.getpgrp():
                os.killpg(os.getpgid(pid), signal.SIGKILL)
            else:
                os.kill(pid, signal.SIGKILL)
            self.counts["groups killed" if is_group else "processes killed"] += 1
            self.counts["kills"] += 1

    # --- a round ---

    def draw(self, *, may_remove: bool) -> Action:
        """What the next process does."""
        fate = self.dice.random()
        if fate < 0.2 and may_remove:
            return self.removing(self.dice.choice(CACHED))
        if fate < 0.23:
            return Action(("show", "cache", "--out=json"))
        if fate < 0.31:
            return Action(("gc", "cache", "-f", "--out=json"))
        if fate < 0.33 and may_remove:
            return Action(("gc", "cache", "-f", "--max-size=4kB", "--out=json"), removes="everything")
        query = self.dice.choice(self.wanted if self.dice.random() < 0.7 else QUERIES)
        flag = self.dice.choices(["", "--renew", "--new"], [8, 4, 0.4])[0] if query.is_cached else ""
        return self.asking(query, flag)._replace(fails=flag == "--renew" and self.dice.random() < 0.5)

    def removing(self, recipe: str) -> Action:
        """The action that removes the entries of a recipe."""
        return Action(("rm", "cache", f"--tags={recipe.replace('-', ',')}", "-f"), removes=recipe)

    def asking(self, query: Query, flag: str = "") -> Action:
        """The action that asks a query."""
        flags = ("--quiet", "--out=json", *([flag] if flag else []))
        return Action(("run", "script", f"--tags={query.tags}", *query.words, *flags), query=query, flag=flag)

    def round(self, number: int) -> None:
        """One storm and the calm after it; adds what was wrong to ``problems``."""
        self.forget(number)
        before = finished_entries(self.home.store)
        may_remove = self.dice.random() < 0.3
        self.wanted = self.dice.sample(QUERIES, 3)
        killed: set[str] = set()
        children = []
        for slot in range(self.process_count):
            dice = f"{self.seed}:{number}:{slot}" if self.dice.random() < 0.5 else ""
            children.append(self.start(self.draw(may_remove=may_remove), f"{number}:{slot}", dice=dice))
            if self.dice.random() < 0.5:
                time.sleep(self.dice.random() * 0.1)
        for _ in range(self.dice.randint(self.process_count // 4, self.process_count)):
            time.sleep(self.dice.expovariate(20))
            self.strike(killed)
        if not self.finish(children):
            self.blocked(number, children)
            return
        self.judge(number, children, killed)
        self.problems += [f"round {number}: {text}" for text in self.ledger.losses(before, children)]
        self.calm(number)

    def forget(self, number: int) -> None:
        """Removes the entries of some recipes in peace, so that there is always something to make; writes one again."""
        write_one(self.home, self.dice.choice(list(METAS)))
        chosen = [recipe for recipe in CACHED if self.dice.random() < 0.4]
        children = [self.start(self.removing(recipe), f"{number}:forget-{recipe}") for recipe in chosen]
        if not self.finish(children):
            self.blocked(number, children)
        left = {entry.recipe for entry in finished_entries(self.home.store).values()} & set(chosen)
        self.problems += [f"round {number}: cm rm cache left entries of {recipe}" for recipe in sorted(left)]

    def blocked(self, number: int, children: Sequence[Child]) -> None:
        """Notes who still runs after the patience is over, and ends them."""
        for pid, mark in self.alive():
            child = next((child for child in children if child.mark == mark), None)
            said = child.err.read_text(errors="replace")[-500:] if child else ""
            self.problems.append(f"round {number}: blocked: process {pid} ({mark}) still runs; it said: {said}")
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def judge(self, number: int, children: Sequence[Child], killed: set[str]) -> None:
        """Whether each process of the storm gave the right answer, or had a reason to give none."""
        removed = any(child.action.removes for child in children)
        died = set(self.deaths.read_text().splitlines()) if self.deaths.exists() else set()
        for child in children:
            said = child.err.read_text(errors="replace") + child.out.read_text(errors="replace")
            where = f"round {number}: {' '.join(child.action.words)}"
            code = child.process.returncode
            has_lost_entry = "while it was in use" in said and code != -signal.SIGKILL  # a killed run uses none
            if "Traceback" in said or "internal error" in said or has_lost_entry:
                self.problems.append(f"{where}: {said[-2000:]}")
            if code == 0:
                self.counts["processes that succeeded"] += 1
                if child.action.query:
                    self.expect(where, child, is_calm=False)
            elif code == -signal.SIGKILL or child.mark in killed | died:
                self.counts["processes that died or lost a child"] += 1
                self.counts["kills"] += child.mark not in killed
            elif child.action.fails and code in (1, 2):
                self.counts["renewals that failed as asked"] += 1
            elif child.action.removes and code == 16:
                self.counts["removals that found nothing"] += 1
            elif removed:
                self.counts["processes that failed while entries were removed"] += 1
            else:
                self.problems.append(f"{where}: exit {code} though nobody hit it: {said[-2000:]}")

    def expect(self, where: str, child: Child, *, is_calm: bool) -> None:
        """Notes it when an answer is not the only right one; in the calm the file must be right as well."""
        query, answer = child.action.query, child.answer
        assert query is not None
        if answer is None:
            self.problems.append(f"{where}: printed no JSON object: {child.out.read_text(errors='replace')[-500:]!r}")
            return
        env = answer.get("new_env", {})
        proof = env.get(env_key(query.recipe, "PROOF"))
        if proof != "|".join(query.facts):
            self.problems.append(f"{where}: gave {proof!r} instead of {'|'.join(query.facts)!r}")
        elif is_calm and query.is_cached:
            path = Path(env[env_key(query.recipe, "FILE")])
            trouble = file_trouble(path, query.facts, env[env_key(query.recipe, "NONCE")])
            self.problems += [f"{where}: {trouble}"] if trouble else []

    def calm(self, number: int) -> None:
        """Asks some questions with processes that nobody hits; each must be answered, and finished entries reused."""
        self.problems += [f"round {number}: after the storm {text}" for text in busy_locks(self.home.store)]
        before = finished_entries(self.home.store)
        asked = [query for query in QUERIES if self.dice.random() < 0.35] or [QUERIES[number % len(QUERIES)]]
        children = [self.start(self.asking(q), f"{number}:calm-{at}") for at, q in enumerate(asked)]
        if not self.finish(children):
            self.blocked(number, children)
            return
        for child in children:
            where = f"round {number}, after the storm: {' '.join(child.action.words)}"
            if child.process.returncode:
                self.problems.append(f"{where}: exit {child.process.returncode}: {child.err.read_text()[-2000:]}")
            else:
                self.counts["questions asked in the calm"] += 1
                self.expect(where, child, is_calm=True)
        self.problems += [f"round {number}: {text}" for text in self.ledger.losses(before, children)]
        self.problems += [f"round {number}: {text}" for text in self.ledger.wrong_entries()]


def parent_of(pid: int) -> int:
    """The process that started this one; 0 when it has ended."""
    try:
        return int(Path("/proc", str(pid), "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    except OSError:
        return 0


def run(folder: Path, *, kills: int, process_count: int, seed: int, is_told: bool = False) -> Storm:
    """Rounds below ``folder`` until so many processes were killed; stops after the first one with a problem."""
    storm = Storm(folder, seed=seed, process_count=process_count)
    while storm.counts["kills"] < kills:
        number = storm.counts["rounds"] + 1
        began_s = time.monotonic()
        storm.round(number)
        storm.counts["rounds"] += 1
        if is_told:
            entries = len(finished_entries(storm.home.store))
            took_s = time.monotonic() - began_s
            print(
                f"round {number}: {took_s:.1f} s, {storm.counts['kills']} kills, {entries} finished entries, "
                f"{len(storm.problems)} problems",
                flush=True,
            )
        if storm.problems:
            break
    return storm


def main() -> int:
    """The program; its exit code is 1 when a rule was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave the folder of the storm for a look at it")
    words = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="storm-"))
    storm = run(folder, kills=words.kills, process_count=words.processes, seed=words.seed, is_told=True)
    for what, count in sorted(storm.counts.items()):
        print(f"{count:8d} {what}")
    for problem in storm.problems:
        print(f"PROBLEM {problem}")
    print(f"seed {words.seed}: {len(storm.problems)} problems in {storm.counts['rounds']} rounds")
    if words.keep or storm.problems:
        print(f"the home of the storm: {folder}")
    else:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
    return 1 if storm.problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""The command `crowdperf` of the wheel: short verbs for the commands of CM that people use most.

    crowdperf run --model=resnet50 --source=tiny     is   cm run script --tags=run,mlperf,inference --model=...
    crowdperf cm ANY WORDS OF CM                     is   cm ANY WORDS OF CM

With -v it prints the `cm` command first. State is in CM's home ($CM_REPOS), else in the folders of the XDG Base
Directory Specification (0.8): $XDG_DATA_HOME/crowdperf and $XDG_CACHE_HOME/crowdperf.
"""

import difflib
import hashlib
import importlib.metadata
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from pathlib import Path

from crowdperf.call.cm_home import END_AT_CTRL_C, LEAVE_WORKING_FOLDER, make_index, register
from crowdperf.kit.terminal import write_output
from crowdperf.kit.user_paths import home_folder

PACKAGE = Path(__file__).resolve().parents[1]
BUNDLED = PACKAGE / "repository"
"""In an installed wheel: recipes, engine and cmr.yaml (setup.py puts them there)."""
COMMAND = "crowdperf cm"
"""How the commands begin that crowdperf prints and that have no verb."""


class CommandError(Exception):
    """An invalid command line. The text lists the known words."""


@dataclass(frozen=True, slots=True)
class Verb:
    """words: of CM. takes: the input that a word without dashes becomes, `*` for any words of CM, or `tags`, which
    replaces the recipe itself."""

    words: tuple[str, ...]
    about: str
    takes: str = ""


def _recipe(tags: str) -> tuple[str, ...]:
    return ("run", "script", f"--tags={tags}")


VERBS: Mapping[str, Verb] = {
    "run": Verb(
        _recipe("run,mlperf,inference"), "run a benchmark, or any recipe by its tags (crowdperf run get,cuda)", "tags"
    ),
    "plan": Verb(
        ("plan", "script", "--tags=run,mlperf,inference"), "show the steps, downloads and requirements of a run", "tags"
    ),
    "show": Verb(_recipe("show,mlperf,results"), "list your results", "results_dir"),
    "diff": Verb(("diff", "script"), "compare two result folders", "*"),
    "check": Verb(_recipe("check,mlperf,submission"), "check a submission tree", "submission_dir"),
    "sweep": Verb(_recipe("run,mlperf,sweep"), "run the points of a sweep file", "file"),
    "curve": Verb(_recipe("run,mlperf,curve"), "measure a server at rising concurrency", "url"),
    "serve": Verb(_recipe("serve,mlperf,results"), "browse results at http://127.0.0.1", "path"),
    "share": Verb(_recipe("share,mlperf,result"), "send a result to a collector", "result"),
    "bundle": Verb(_recipe("make,bundle"), "pack a run into one file, for a machine without a network", "for"),
    "doctor": Verb(_recipe("doctor"), "check which benchmarks this machine can run"),
    "cache": Verb(("show", "cache"), "list installed tools, models and data sets", "*"),
    "find": Verb(("find", "script"), "list recipes", "*"),
    "runs": Verb(("runs", "script"), "list past runs", "*"),
    "resume": Verb(("resume", "script"), "resume a run that failed or was interrupted", "*"),
    "cm": Verb((), "any command of CM", "*"),
}


def usage() -> str:
    """The help of the command, one line for each verb."""
    rows = "\n".join(f"  {name:8}{verb.about}" for name, verb in VERBS.items())
    return f"""\
crowdperf: MLPerf Inference benchmarks, installed, run and recorded by one command.

crowdperf VERB ...

{rows}

crowdperf VERB --help lists the options of a verb, crowdperf VERB -v prints the cm command that it runs."""


def words_of_cm(words: Sequence[str]) -> list[str]:
    """The words of `cm` for those of `crowdperf`, which may have options before the verb. Pure. Raises CommandError for
    an unknown verb or a word too many."""
    before = list(takewhile(lambda word: word.startswith("-"), words))
    if before == list(words):
        shown = shlex.join(before)
        raise CommandError(f"no verb, found {shown}. Write: crowdperf run {shown}. Known: {', '.join(VERBS)}")
    name, rest = words[len(before)], [*words[len(before) + 1 :], *before]
    verb = VERBS.get(name)
    if verb is None:
        near = difflib.get_close_matches(name, VERBS, 1)
        meant = f" Did you mean {near[0]}?" if near else ""
        raise CommandError(f"unknown verb {name!r}.{meant} Known: {', '.join(VERBS)}")
    if verb.takes == "*":
        return [*verb.words, *rest]
    plain = [word for word in rest if not word.startswith(("-", "@"))]
    if verb.takes == "for" and plain and plain[0] in VERBS:
        own = [word for word in rest if word.startswith("--out")]
        run = [word for word in rest if word not in own]
        if len(run) > 1:
            line = shlex.join(["crowdperf", name, shlex.join(run), *own])
            raise CommandError(f"the words of the run must be one word, in quotes. Write: {line}")
    if verb.takes == "tags" or len(plain) > 1:
        _refuse_separate_values(rest, plain)
    options = [word for word in rest if word not in plain]
    if not plain:
        return [*verb.words, *options]
    if not verb.takes or len(plain) > 1:
        taken = f"one word, for --{verb.takes}" if verb.takes else "options only"
        raise CommandError(f"crowdperf {name} accepts {taken}, found {' '.join(map(shlex.quote, plain))}")
    if verb.takes == "tags":
        return [*verb.words[:2], f"--tags={plain[0]}", *options]
    return [*verb.words, f"--{verb.takes}={plain[0]}", *options]


FLAGS = {"-v", "-q", "--quiet", "--silent"}
"""Options without a value that may stand before the tags of a recipe."""


def _refuse_separate_values(rest: Sequence[str], plain: Sequence[str]) -> None:
    """Raise CommandError for `--model resnet50` and `model=resnet50`, which other programs accept."""
    for option, value in pairwise(rest):
        if value in plain and option.startswith("-") and "=" not in option and option not in FLAGS:
            one = shlex.quote(f"--{option.lstrip('-')}={value}")
            raise CommandError(f"an input and its value are one word: {one}, found {option} {shlex.quote(value)}")
    for word in plain:
        if re.match(r"\w+=", word):
            raise CommandError(f"inputs begin with two dashes: {shlex.quote(f'--{word}')}, found {shlex.quote(word)}")


def repository(data: Path) -> Path:
    """The CM repository: the checkout with this file, else a copy of the wheel's content with a link to its packages,
    created once in `data` for each content of the wheel. Raises OSError."""
    checkout = PACKAGE.parents[1]
    if (checkout / "cmr.yaml").is_file():
        return checkout
    files = importlib.metadata.distribution("crowdperf").read_text("RECORD") or ""
    target = data / "repository" / hashlib.sha256(files.encode()).hexdigest()[:16]
    if target.is_dir():
        return target
    scratch = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copytree(BUNDLED, scratch)
    (scratch / "src").mkdir()
    (scratch / "src" / "crowdperf").symlink_to(PACKAGE)  # recipes refuse another package of this name
    try:
        scratch.rename(target)
    except OSError:  # another process was first
        shutil.rmtree(scratch)
        if not target.is_dir():
            raise
    return target


def printed_verbs() -> str:
    """How the commands of ``cm`` that have a verb are printed, as the engine's CROWDPERF_VERBS wants it. Pure."""
    rows = [(f"crowdperf {name}", " ".join(verb.words)) for name, verb in VERBS.items() if verb.words]
    rows += [
        (f"crowdperf {name} ", f"{' '.join(verb.words[:2])} --tags=")
        for name, verb in VERBS.items()
        if verb.takes == "tags"
    ]
    return "\n".join(f"{shown}={words}" for shown, words in rows)


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that a CM process needs and that are not set yet. Pure."""
    home = Path(env.get("HOME") or home_folder())
    given = {name: value for name, value in env.items() if value.startswith("/")}  # the specification ignores others
    data = Path(given.get("XDG_DATA_HOME") or home / ".local" / "share") / "crowdperf"
    cache = Path(given.get("XDG_CACHE_HOME") or home / ".cache") / "crowdperf"
    wanted = {"CROWDPERF_CM": COMMAND}
    if not env.get("CROWDPERF_CM"):
        wanted |= {"CROWDPERF_VERBS": printed_verbs()}
    if not env.get("CM_REPOS"):
        wanted |= {"CM_REPOS": str(data / "cm"), "CROWDPERF_CACHE": str(cache)}
    return {name: value for name, value in wanted.items() if not env.get(name)}


def _refused(words: Sequence[str], why: str) -> int:
    """Show why nothing was run, with `--out=json` as CM's answer, too. Returns the exit code."""
    if "--out=json" in words:
        print(json.dumps({"return": 1, "error": why}, indent=2))
    print(f"crowdperf: {why}", file=sys.stderr)
    return 1


def main(words: Sequence[str] | None = None) -> int:
    """Replace this process by the CM command. Returns 0 after help and 1 for an invalid command line."""
    asked = list(sys.argv[1:] if words is None else words)
    if not asked or asked[0] in ("-h", "--help", "help"):
        if reason := write_output(f"{usage()}\n"):
            print(f"crowdperf: {reason}", file=sys.stderr)
        return 1 if reason else 0
    try:
        line = ["version", "script"] if asked[0] in ("-V", "--version") else words_of_cm(asked)
        added = environment(os.environ)
        os.environ.update(added)
        home = Path(os.environ["CM_REPOS"])
        register(home, repository(home.parent if "CM_REPOS" in added else home))
        make_index(home)
    except CommandError as error:
        return _refused(asked, f"{error}\n  hint: crowdperf --help")
    except OSError as error:
        return _refused(asked, f"cannot set up its home: {error}\n  hint: CM_REPOS=FOLDER chooses another")
    if asked[0] != "cm" and "-v" in asked:
        print(f"{COMMAND} {shlex.join(line)}", file=sys.stderr)
    cm = [
        sys.executable,
        "-c",
        f"{END_AT_CTRL_C}{LEAVE_WORKING_FOLDER}; from cmind.cli import run; run()",
    ]  # rooms do not import CM
    return os.execv(sys.executable, [*cm, *line])


if __name__ == "__main__":
    sys.exit(main())

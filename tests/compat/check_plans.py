"""Plans a run, makes it, and compares step by step what the plan called certain with what the run did.

    PYTHONPATH=tests/support:automation python tests/compat/check_plans.py
        --recipes=FOLDER [--own] [--only=TEXT] [--jobs=N]

``--recipes`` is a checkout of cm4mlops; with ``--own`` the recipes of this checkout are taken instead. Each command
runs twice in a home of its own: with an empty cache and with the one that the first run filled. Compared are the events
that the run's journal is made of; ``plan_comparison`` says what a contradiction is. Exit status 1 when there is one, or
when a plan changes a file.

Recipes may install Python packages into the environment that runs this tool, so run it in one that can be thrown away
(``python -m venv``, then cmind). It needs no network but a package index for ``pip``.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
LIMIT_S = 600

COMMUNITY = """
get,gcc && compile,c-program --env.CM_SOURCE_FOLDER_PATH=FIXTURES --env.CM_C_SOURCE_FILES=hello.c
csv-to-md,convert --csv_file=FIXTURES/t.csv --md_file=out.md
create,custom,cache,entry --path=FIXTURES/dir --env_key=MYDIR --extra_cache_tags=my,dir
create,patch --old=FIXTURES/dir --new=FIXTURES/other
detect,cpu
detect,os
detect,sudo
download,file --from=FIXTURES/t.csv
download,file,_wget --url=file://FIXTURES/t.csv
download-and-extract --from=FIXTURES/a.tar.gz --extract=yes
extract,file --input=FIXTURES/a.tar.gz
dump,pip,freeze
fail,filter
get,aws-cli --fake_run
get,aria2 --fake_run
get,bazel --fake_run
get,cache,dir,_name.mine
get,cl --fake_run
get,cmake
get,compiler,gcc
get,gcc && get,compiler
get,gcc && get,compiler-flags
get,conda
get,docker
get,gcc
get,generic-python-lib,_package.tabulate
get,generic-python-lib,_package.tqdm --version=4.66.1
get,generic-sys-util,_md5sha1sum
get,generic-sys-util,_detect,_install
get,git,repo,_repo.file://FIXTURES/g --env_key=MYREPO
get,github-cli
get,tool,go
get,java
get,javac
get,llvm
get,mlperf,inference,results,dir,local
get,mlperf,inference,submission,dir,local
get,mlperf,logging
get,openssl
get,platform,details
get,python3
get,python3 --version_min=3.9
get,rclone
get,rust-compiler --fake_run
get,sys-utils-min
get,sys-utils-cm
get,terraform
install,pip,package,for-cmind-python,_package.colorama
install,python-venv --name=planned
print,any-text,_text.hello
print,hello-world,java
print,hello-world,javac
print,hello-world,python
print,hello-world,script
print,native,hello-world,_skip_print_env,_text.ABC
print,python-version
print,python-version --adr.python.name=planned2
run,python --command=FIXTURES/hi.py
run,tar --input_dir=FIXTURES/dir --outfile=out.tar.gz
set,echo,off,win
set,performance,mode
set,sqlite-dir --path=FIXTURES/dir
set,user,limits,_large-nofile
set,venv --name=mine
test,cm-core
test,cm-script,pipeline
test,cm-test,test-scripts,_v1,_v2
test,deps,conditions
test,deps,conditions --test1=1 --test2=on --test3=x
test,deps,conditions2
test,dummy
truncate,mlperf,inference,accuracy,log --input=FIXTURES/dir
upgrade,python-pip
benchmark,program --env.CM_RUN_CMD=true
runtime,system,infos --fake_run
"""
"""Commands on recipes of cm4mlops e1d5c7cf0, each maybe after another one whose tags stand before ``&&``, that end
without a network, or fail without one."""

OWN = """
detect,os
detect,cpu
download,file --from=FIXTURES/t.csv
extract,file --input=FIXTURES/a.tar.gz --to=out
get,python3
get,python3 --version_min=3.9
install,python-venv --name=planned
get,generic-python-lib,_package.tabulate
get,git,history
get,sys-utils-cm
get,docker
get,crowdperf-lib
doctor
tune,system
get,scratch,disk
get,dataset,digits
get,ml-model,digits
get,dataset,squad,_synthetic,_tiny
detect,mlperf,system
check,user,permissions
"""
"""Commands on the recipes of this checkout."""


def check(words: str) -> dict[str, Any]:
    """Plans and runs one command, twice; runs in a process of its own, in the working folder of a fresh home."""
    import cmind
    from cmind.cli import parse
    from plan_comparison import compare, files_below, planned_rows, rows_of
    from recipe_engine.actions.adapter import home_of
    from recipe_engine.rules.errors import RecipeError
    from recipe_engine.running import journal

    events: list[Any] = []
    observe = journal.Journal.observe

    def keep(self: Any, event: Any) -> None:
        events.append(event)
        observe(self, event)

    journal.Journal.observe = keep  # type: ignore[method-assign]
    cm = cmind.CM()
    cm.access({"action": "version", "automation": "core"})
    *first, last = words.split(" && ")
    for earlier in first:
        cm.access({"action": "run", "automation": "script", "tags": earlier, "quiet": True})
    tags, *flags = shlex.split(last)
    inputs = parse(["run", "script", f"--tags={tags}", "--quiet", *flags])["cm_input"]
    counts: Counter[str] = Counter()
    found, ends = [], []
    for _ in range(2):
        own = {key: value for key, value in inputs.items() if key not in ("action", "automation")}
        home = home_of(cm)
        before = files_below(home.path, Path.cwd())
        try:
            planned = planned_rows(dict(own), home)
        except RecipeError as error:
            planned = []
            ends.append(f"refused: {error.message.splitlines()[0]}")
        if files_below(home.path, Path.cwd()) != before:
            found.append("the plan changed a file")
        events.clear()
        answer = cm.access({**inputs, "out": ""})
        code = int(answer["return"])
        if planned:
            ends.append("ok" if code == 0 else f"exit {code}: {str(answer.get('error')).splitlines()[0]}")
            found += compare(planned, rows_of(events), counts, has_failed=code != 0)
        elif code == 0:
            found.append("the plan refused what runs")
    return {"counts": counts, "found": found, "ends": ends}


def make_home(folder: Path, recipes: Path | None) -> dict[str, str]:
    """A CM home in ``folder`` with this engine and the recipes; gives the environment of a process that uses it."""
    home, work, fixtures = folder / "home", folder / "work", folder / "fixtures"
    for path in (home / "repos" / "local", work, fixtures / "dir", fixtures / "other", fixtures / "g"):
        path.mkdir(parents=True)
    known = [CHECKOUT]
    if recipes is not None:
        for name, link, target in (("engine", "automation", CHECKOUT), ("community", "script", recipes)):
            repo = home / "repos" / name
            repo.mkdir()
            uid = "00000000000e0e01" if name == "engine" else "9e97bb72b0474657"
            (repo / "cmr.yaml").write_text(f'alias: {name}\nuid: "{uid}"\n', encoding="utf-8")
            (repo / link).symlink_to(target / link)
        known = [home / "repos" / "engine", home / "repos" / "community"]
    (home / "repos.json").write_text(json.dumps([str(path) for path in known]), encoding="utf-8")
    texts = {
        "hello.c": '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n',
        "t.csv": "a,b\n1,2\n",
        "hi.py": "print('hi')\n",
        "dir/a.txt": "a\n",
        "other/a.txt": "b\n",
        "g/a.txt": "a\n",
    }
    for file, text in texts.items():
        (fixtures / file).write_text(text, encoding="utf-8")
    author = ["-c", "user.name=plans", "-c", "user.email=plans@example.invalid"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", *command], cwd=fixtures / "g", check=True)
    subprocess.run(["tar", "czf", "a.tar.gz", "dir"], cwd=fixtures, check=True)
    env = {key: value for key, value in os.environ.items() if not key.startswith(("CM_", "CROWDPERF_"))}
    bin_folder = str(Path(sys.prefix) / "bin")
    return {**env, "CM_REPOS": str(home), "HOME": str(folder), "PATH": f"{bin_folder}:{env['PATH']}"}


def check_in_home(words: str, recipes: Path | None) -> dict[str, Any]:
    """``check`` in a fresh home."""
    with tempfile.TemporaryDirectory(prefix="plans-") as name:
        folder = Path(name)
        env = make_home(folder, recipes)
        command = [sys.executable, __file__, "--child", words.replace("FIXTURES", str(folder / "fixtures"))]
        try:
            done = subprocess.run(
                command,
                cwd=folder / "work",
                env=env,
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                timeout=LIMIT_S,
            )
            found: dict[str, Any] = json.loads((folder / "work" / "found.json").read_text(encoding="utf-8"))
            return found
        except subprocess.TimeoutExpired:
            return {"counts": {}, "found": [], "ends": [f"took more than {LIMIT_S} s"]}
        except OSError:
            return {"counts": {}, "found": [f"the check broke: {done.stderr[-600:]}"], "ends": []}


def main() -> int:
    """The whole check; its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", type=Path)
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--only", default="", help="commands that hold this text")
    parser.add_argument("--jobs", type=int, default=1, help="commands at the same time")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        found = check(options.child)
        Path("found.json").write_text(json.dumps(found), encoding="utf-8")
        return 0
    if not options.own and options.recipes is None:
        parser.error("--recipes or --own is needed")
    total: Counter[str] = Counter()
    names = ("run", "reuse", "skip", "fail", "open", "values")
    print(f"{'run':>4} {'reuse':>5} {'skip':>4} {'fail':>4} {'open':>4} {'values':>6} {'against':>7}  command")
    commands = [words for words in (OWN if options.own else COMMUNITY).strip().splitlines() if options.only in words]
    recipes = None if options.own else options.recipes.absolute()
    with ThreadPoolExecutor(options.jobs) as pool:
        results = pool.map(lambda words: check_in_home(words, recipes), commands)
        for words, found in zip(commands, results, strict=True):
            counts = Counter(found["counts"])
            total += counts + Counter(against=len(found["found"]), commands=1)
            row = [f"{counts[name]:{max(4, len(name))}}" for name in names]
            print(*row, f"{len(found['found']):7}  {words} ({'; '.join(found['ends'])[:160]})", flush=True)
            for line in found["found"]:
                print(f"        {line}", flush=True)
    row = [f"{total[name]:{max(4, len(name))}}" for name in names]
    print(*row, f"{total['against']:7}  {total['commands']} commands")
    return 1 if total["against"] or not total["commands"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""What ``cm ACTION AUTOMATION --help`` prints: how to call each action, its flags, examples.

A block begins with the call; what follows is printed as it is. The adapters' docstrings are the list of all actions.
"""

import re
from collections.abc import Mapping
from typing import Any

_BLOCKS = r"""
cm run script --tags=TAGS [--INPUT=VALUE ...]
   Runs a recipe and its dependencies. Cached results are reused.

  --tags=get,x,_variation     which recipe, with which variations. "get x _variation" means the same
  --version= --version_min= --version_max=    which version
  --quiet                     never prompt: if several recipes match, use the first
  --silent                    print problems only (-v: also skipped steps, with the reason)
  --renew --new --skip_cache  rebuild the cache entry, add another one, do not use the cache
  --frozen --locked=FILE      the same recipes, versions and files as in a lockfile
  --adr.NAME.KEY=VALUE        change a dependency by its name, at any depth
  --env.KEY=VALUE             set an env value
  --out=json                  one JSON object on standard output
   --time --space --print_versions    time, disk space and versions of the steps
  --help                      with --tags: the inputs, variations and dependencies of the recipe

  cm run script --tags=run,mlperf,inference --model=resnet50 --scenario=Offline

cm plan script --tags=TAGS [--INPUT=VALUE ...] [-v] [--graph=KIND]
   Shows what cm run script with the same arguments would do, download and need. Makes no changes.

  -v                          every step, and why
  --graph=mermaid|dot|html    a diagram on standard output
  --frozen --locked=FILE      what differs from a lockfile
  --out=json                  the whole plan as one JSON object

cm explain script --tags=TAGS [--INPUT=VALUE ...] [--step=NAME] [--keys=KEY,KEY]
  Shows the reasons for a step of a run: who decided its version, variations and env.

  --step=NAME                 the step: an alias, or tags (default: the requested recipe)
  --keys=KEY,KEY              where these env keys come from. * matches any characters

cm lock script --tags=TAGS [--INPUT=VALUE ...] [--file=FILE]
  Prints a lockfile: recipes, versions, files and packages of a run. --frozen enforces it.

  --file=FILE                 write it to a file instead of standard output

  cm lock script --tags=run,mlperf,inference > crowdperf.lock

cm prepare script --tags=TAGS [--INPUT=VALUE ...]
  Runs the dependencies of a recipe, not the recipe itself.

cm runs script [ID] [--last=N] [-v]
   Lists past runs, newest last, or shows the steps of one run.

  ID                          the run: its id, or part of it
  --last=N                    the last N runs (default: 20)
  -v                          whole commands and errors
  --out=json                  all runs, or the last N, as one JSON object

cm resume script [ID] [--force]
  Resumes the last run, or the one with this id, if it failed or was interrupted.

  --force                     also when its recipes have changed since

cm record script --folder=FOLDER --name=NAME ...
  For recipes: records how a result can be reproduced (docs/howto/reproduce.md).

cm reproduce script RESULT [--check_only | --plan] [--yes] [--tolerance=PERCENT]
   Reproduces a result from its folder and compares the two.

  --check_only                only check the inputs
  --plan                      what would run, and the duration of the recorded run
  --yes                       run without asking
  --output_dir=FOLDER         folder for the new results
  --tolerance=PERCENT         allowed difference of the results (default: 10)

cm diff script A B [-v] [--tolerance=PERCENT] [--exit_code]
   [--max_slowdown=PERCENT [--junit=FILE] [--markdown=FILE]]
   Compares two results, or folders of results: metrics first, then the differences.

  -v                          also minor differences, with the origin of each value
  --tolerance=PERCENT         results that differ by less are equal (default: 10)
  --exit_code                 exit code 1 when anything differs
  --max_slowdown=PERCENT      judge B: exit code 0 not slower, 1 slower by more, 2 inconclusive.
                              Folders with several runs of one name, or A1,A2,A3, are repeats,
                              whose spread counts
  --junit=FILE --markdown=FILE    the verdicts for a pipeline and for a pull request
  --out=json                  every difference in full

cm find script [NAME] [--tags=TAGS] [-v]
   Finds recipes and prints one line per recipe, or the folder if only one matches.

  NAME                        an alias, a uid or a pattern (get-*), REPO:NAME for one repository
  -v                          the folders of all

cm help script [RECIPE | ACTION]
  Shows how to call a recipe or an action, or all actions without a name.

cm version script
  Prints the version of crowdperf, of its recipe format and of cmind.

cm add script [REPO:]ALIAS --tags=TAGS [--template=plain|tool|file|benchmark]
  Writes a new recipe from a template.

  --template=KIND             plain; tool: finds or installs a program; file: creates a file;
                              benchmark: a benchmark that runs
  --program=NAME              the program of the template tool

cm audit script [[REPO:]ALIAS] [--tags=TAGS] [--level=error|warning|info]
  Checks recipes without running them. Exit code 1 if there are errors.

cm test script RECIPE [--test_input_index=N|N+] [--test_input_id=ID] [--INPUT=VALUE ...]
  Runs the tests of a recipe.

cm doc script [RECIPE] [--tags=TAGS] [--output_dir=FOLDER]
   Generates a page per recipe from its metadata. Without a folder, prints the pages.

cm native-run script --command=COMMAND [--env.KEY=VALUE]
  Runs a command with an env.

cm rm script [REPO:]NAME | --tags=TAGS [-f]
   Removes recipes (-f: without asking).

cm use crowdperf:script
  Runs all recipes on this engine, even if another one is registered.

cm show cache [UID] [--tags=TAGS] [--env] [-v]
   Shows the cache as a table, or all details of one entry.

  --tags=TAGS                 entries with these tags, -TAG excludes one
  -v                          tags, folder, size and last use of each
  --env                       the values each entry provides to other recipes
  --out=json                  all of it as one JSON object

cm find cache [UID] [--tags=TAGS]
  Prints the folders of cache entries.

cm explain cache [UID] [--tags=TAGS]
   Shows how an entry was built, whether it is intact, what needs it, and how to reach it.

cm verify cache [UID] [--tags=TAGS] [--skip=KIND]
   Compares entries with what their recipes recorded. Exit code 1 if one differs.

cm gc cache [--dry-run] [--max-size=SIZE] [--older-than=AGE] [-f]
   Removes unusable entries and what exceeds the limits, least recently used first.

  --dry-run                   show what would be removed, and why the rest is kept
  --max-size=20GB             keep at most this much
  --older-than=30d            remove entries unused for this long
  -f                          remove without asking

cm pin cache UID | --tags=TAGS
  Protects entries and their dependencies from cm gc cache.

cm unpin cache UID | --tags=TAGS
  Undoes cm pin cache.

cm rm cache UID | --tags=TAGS [-f] [--in_use]
  Removes entries.

  -f                          remove without asking
  --in_use                    also those that a running process uses, which may break it
"""
ACTION_HELP: dict[tuple[str, str], str] = {
    (block.split()[2].rpartition(":")[2], block.split()[1]): block.rstrip()
    for block in re.split(r"\n(?=cm [a-z-]+ [a-z:]+\b)", _BLOCKS.strip("\n"))
}
"""The help of each action by its automation and its name."""
COMMON_NAMES = {"describe": "help", "search": "find", "delete": "rm", "native_run": "native-run"}
"""What users type for the actions that cmind calls otherwise."""
ALSO_CALLED = {"list": "find", "ls": "find"}
"""Other words of cmind for actions."""


def name_of(i: Mapping[str, Any]) -> str:
    """What users call the action."""
    name = str(i.get("action"))
    return ALSO_CALLED.get(name, COMMON_NAMES.get(name, name))


def automation_of(i: Mapping[str, Any]) -> str:
    """The automation that was called, by its alias: ``script`` or ``cache``."""
    return str(i.get("automation") or "script").partition(",")[0].rpartition(":")[2]


_FURTHER = {
    ("script", "add"): "template_tags yaml",
    ("script", "native-run"): "script script_name",
    ("script", "reproduce"): "result",
    ("utils", "compare_versions"): "version1 version2",
    ("utils", "download_file"): "filename max_size_bytes md5sum path sha256sum url verify",
    ("utils", "get_host_os_info"): "bits",
    ("utils", "load_cfg"): "key key_end prune skip_files tags",
    ("utils", "select_cfg"): "alias key key_end prune skip_files tags title uid",
    ("utils", "system"): "cmd path stderr stdout",
    ("utils", "unzip_file"): "filename max_size_bytes path strip_folders",
}
"""Flags that no help names: of actions that recipes call, and what CM's users may give."""


def flags_of(automation: str, action: str) -> list[str]:
    """The flags that the help of an action names, without values."""
    return _named(ACTION_HELP.get((automation, action), ""), "--[a-z][a-z_-]*")


def _named(text: str, flag: str) -> list[str]:
    return list(dict.fromkeys(re.findall(rf"(?<![\w-]){flag}", text)))


def known_flags(automation: str, action: str) -> frozenset[str] | None:
    """The input keys of an action; None for one without help, and for one that takes inputs of recipes (``...``)."""
    text, further = ACTION_HELP.get((automation, action), ""), _FURTHER.get((automation, action), "").split()
    if "..." in text.partition("\n")[0] or not (text or further):
        return None
    found = {flag.lstrip("-").replace("-", "_") for flag in _named(text, "--?[a-z][a-z_-]*")}
    return frozenset([*found, *further, *(("f", "force") if found & {"f", "force"} else ())])

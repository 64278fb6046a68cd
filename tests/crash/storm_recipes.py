"""The recipes of the storm, and what each of them must give: every output says which request made it.

A recipe writes its facts (name, variation, inputs, version, the facts of its dependency) line by line into
``proof.half``, between a first and a last line with one random word, and renames it to ``proof.txt`` when it is whole.
The facts and the word also leave it as env. So a result of another request, a half one, and one into which two
processes wrote can all be told from a right one.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from helpers import TemporaryHome, uid_of

PROVE = """
    # Sourced by every run.sh: prove PREFIX FACT... writes proof.txt and tells PREFIX_PROOF, _NONCE and _FILE.
    # Whatever of it is killed, the whole fails.
    set -u -o pipefail
    [ "${STORM_FAIL:-}" != yes ] || [ "${CM_RENEW_CACHE_ENTRY:-}" != yes ] || exit 11
    [ ! -e proof.half ] || { echo "somebody else's proof.half is here" >&2; exit 9; }
    nonce="$(cat /proc/sys/kernel/random/uuid)" || exit 8
    prove() {
      local prefix="$1" fact proof=""
      shift
      echo "begin $nonce" > proof.half
      for fact in "$@"; do
        sleep "0.0$((RANDOM % 5))"
        echo "$fact" >> proof.half || exit 8
        proof="$proof${proof:+|}$fact"
      done
      echo "end $nonce" >> proof.half || exit 8
      mv proof.half proof.txt || exit 8
      printf '%s\\n' "${prefix}_PROOF=$proof" "${prefix}_NONCE=$nonce" "${prefix}_FILE=$PWD/proof.txt" \\
        > tmp-run-env.out
    }
    # The facts in the proof file of an entry in use. Starts no program, so only a change of the file makes it complain.
    facts_of() {
      local lines=() IFS=";"
      mapfile -t lines < "$1" || true
      if [ "${#lines[@]}" -lt 3 ] || [ "${lines[0]#begin }" != "${lines[-1]#end }" ]; then
        echo "$1 went while it was in use" >&2
        return 6
      fi
      echo "${lines[*]:1:${#lines[@]}-2}"
    }
"""
LEAF = """
    . "$CM_TMP_CURRENT_SCRIPT_PATH/prove.sh"
    prove CM_LEAF "leaf" "colour=$CM_LEAF_COLOUR" "size=$CM_LEAF_SIZE" "version=$CM_VERSION"
"""
MID = """
    . "$CM_TMP_CURRENT_SCRIPT_PATH/prove.sh"
    inner="$(facts_of "$CM_LEAF_FILE")" || exit 7
    [ "$inner" = "${CM_LEAF_PROOF//|/;}" ] || { echo "env and file of get-leaf differ" >&2; exit 6; }
    prove CM_MID "mid" "mode=$CM_MID_MODE" "leaf=$inner"
"""
TREE = """
    . "$CM_TMP_CURRENT_SCRIPT_PATH/prove.sh"
    for branch in 1 2 3; do
      (
        for line in 1 2 3 4; do
          echo "$nonce" >> "branch-$branch" || exit 8
          sleep "0.$((RANDOM % 2))$((RANDOM % 9))"
        done
      ) &
      branches="${branches:-} $!"
    done
    for branch in $branches; do wait "$branch" || exit 8; done
    words="$(cat branch-* | sort -u)" && lines="$(cat branch-* | wc -l)" || exit 8
    [ "$words" = "$nonce" ] || { echo "another process wrote into the branches" >&2; exit 6; }
    prove CM_TREE "tree" "kind=$CM_TREE_KIND" "lines=$lines"
    rm branch-*
"""
TOP = """
    . "$CM_TMP_CURRENT_SCRIPT_PATH/prove.sh"
    mid="$(facts_of "$CM_MID_FILE")" || exit 7
    tree="$(facts_of "$CM_TREE_FILE")" || exit 7
    prove CM_TOP "top" "mid=[$mid]" "tree=[$tree]"
    rm proof.txt
"""
CHILD = """
    . "$CM_TMP_CURRENT_SCRIPT_PATH/prove.sh"
    answer="$("$STORM_CM" run script --tags=get,tree --quiet --out=json 2> child.err)" || { cat child.err >&2; exit 7; }
    pattern='"CM_TREE_FILE": "([^"]*)"'
    [[ "$answer" =~ $pattern ]] || { echo "no file in the answer: $answer" >&2; exit 6; }
    file="${BASH_REMATCH[1]}"
    for _ in 1 2 3; do
      tree="$(facts_of "$file")" || exit 6
      sleep "0.0$((RANDOM % 9))"
    done
    rm child.err
    prove CM_CHILD "child" "tree=$tree"
"""
NEST = """
    . "$CM_TMP_CURRENT_SCRIPT_PATH/prove.sh"
    for _ in 1 2 3; do
      leaf="$(facts_of "$CM_INNER_FILE")" || exit 6
      sleep "0.0$((RANDOM % 9))"
    done
    prove CM_NEST "nest" "leaf=$leaf"
"""
NESTED = '''
    """A hook that starts a run of its own, as the benchmark recipes of the community do."""

    def preprocess(i):
        words = {"action": "run", "automation": "script", "tags": "get,leaf,_blue", "size": "0", "version": "2.0"}
        answer = i["automation"].cmind.access({**words, "quiet": True})
        if answer["return"] == 0:
            i["env"]["CM_INNER_FILE"] = answer["new_env"]["CM_LEAF_FILE"]
        return answer if answer["return"] else {"return": 0}
'''
HOOKED = '''
    """A hook that starts a process of its own, as many recipes of the community do."""

    import os
    import subprocess

    SLOW = """
    set -e
    [ ! -e proof.half ] || { echo "somebody else's proof.half is here" >&2; exit 9; }
    nonce=$(cat /proc/sys/kernel/random/uuid)
    echo "begin $nonce" > proof.half
    for fact in hooked "$FACT"; do sleep "0.0$((RANDOM % 9))"; echo "$fact" >> proof.half; done
    echo "end $nonce" >> proof.half
    mv proof.half proof.txt
    """

    def preprocess(i):
        env = i["env"]
        if os.environ.get("STORM_FAIL") == env.get("CM_RENEW_CACHE_ENTRY") == "yes":
            return {"return": 1, "error": "fails as asked"}
        done = subprocess.run(["bash", "-c", SLOW], env={**os.environ, "FACT": f"hue={env['CM_HOOKED_HUE']}"})
        if done.returncode:
            return {"return": 1, "error": f"the process of the hook ended with {done.returncode}"}
        first, *facts, last = open("proof.txt").read().splitlines()
        if first.split()[1] != last.split()[1]:
            return {"return": 1, "error": "foreign lines in proof.txt"}
        env["CM_HOOKED_PROOF"] = "|".join(facts)
        env["CM_HOOKED_NONCE"] = first.split()[1]
        env["CM_HOOKED_FILE"] = os.path.abspath("proof.txt")
        return {"return": 0}
'''

METAS: dict[str, dict[str, Any]] = {
    "get-leaf": {
        "cache": True,
        "default_env": {"CM_LEAF_SIZE": "0"},
        "default_version": "1.0",
        "input_mapping": {"size": "CM_LEAF_SIZE"},
        "new_env_keys": ["CM_LEAF_*"],
        "variations": {
            "red": {"group": "colour", "default": True, "env": {"CM_LEAF_COLOUR": "red"}},
            "blue": {"group": "colour", "env": {"CM_LEAF_COLOUR": "blue"}},
            "shade.#": {"group": "colour", "env": {"CM_LEAF_COLOUR": "#"}},
        },
        "versions": {"1.0": {}, "2.0": {}},
    },
    "get-mid": {
        "cache": True,
        "deps": [{"tags": "get,leaf,_blue", "names": ["leaf"], "size": "0", "version": "1.0"}],
        "env": {"CM_MID_MODE": "plain"},
        "new_env_keys": ["CM_MID_*"],
        "variations": {
            "deep": {"env": {"CM_MID_MODE": "deep"}, "ad": {"leaf": {"version": "2.0"}}},
        },
    },
    "get-tree": {
        "cache": True,
        "env": {"CM_TREE_KIND": "oak"},
        "new_env_keys": ["CM_TREE_*"],
        "variations": {"fir": {"env": {"CM_TREE_KIND": "fir"}}},
    },
    "get-hooked": {
        "cache": True,
        "new_env_keys": ["CM_HOOKED_*"],
        "variations": {"hue.#": {"group": "hue", "env": {"CM_HOOKED_HUE": "#"}}},
    },
    "get-child": {"cache": True, "new_env_keys": ["CM_CHILD_*"]},
    "get-nest": {"cache": True, "new_env_keys": ["CM_NEST_*"]},
    "run-top": {
        "clean_files": ["proof.half"],  # it runs in a folder of the user's, where a killed run leaves its own
        "deps": [{"tags": "get,mid,_deep"}, {"tags": "get,tree"}],
        "new_env_keys": ["CM_TOP_*"],
    },
}
CACHED = tuple(alias for alias, meta in METAS.items() if meta.get("cache"))
SCRIPTS = {"get-leaf": LEAF, "get-mid": MID, "get-tree": TREE, "get-child": CHILD, "get-nest": NEST, "run-top": TOP}
HOOKS = {"get-hooked": HOOKED, "get-nest": NESTED}
N_FOREIGN = 70
"""Entries of another engine beside those of the storm: with so many the cache gets an index file."""


class Query(NamedTuple):
    """Something to ask for, and the only right answer: ``facts`` in the order in which the recipe proves them."""

    recipe: str
    tags: str
    words: tuple[str, ...]
    facts: tuple[str, ...]

    @property
    def is_cached(self) -> bool:
        """Whether the answer is an entry of the cache."""
        return bool(METAS[self.recipe].get("cache"))


def leaf(colour: str, size: str, version: str) -> tuple[str, ...]:
    """The facts of get-leaf."""
    return ("leaf", f"colour={colour}", f"size={size}", f"version={version}")


def mid(mode: str) -> tuple[str, ...]:
    """The facts of get-mid; its variation ``deep`` asks for another version of its leaf."""
    return ("mid", f"mode={mode}", "leaf=" + ";".join(leaf("blue", "0", "2.0" if mode == "deep" else "1.0")))


def tree(kind: str) -> tuple[str, ...]:
    """The facts of get-tree."""
    return ("tree", f"kind={kind}", "lines=12")


QUERIES = (
    Query("get-leaf", "get,leaf,_red", ("--size=0", "--version=1.0"), leaf("red", "0", "1.0")),
    Query("get-leaf", "get,leaf", ("--size=0", "--version=1.0", "--extra_cache_tags=mine"), leaf("red", "0", "1.0")),
    Query("get-leaf", "get,leaf,_blue", ("--size=0", "--version=1.0"), leaf("blue", "0", "1.0")),
    Query("get-leaf", "get,leaf,_blue", ("--size=0", "--version=2.0"), leaf("blue", "0", "2.0")),
    Query("get-leaf", "get,leaf,_blue", ("--size=7", "--version=1.0"), leaf("blue", "7", "1.0")),
    Query("get-leaf", "get,leaf,_shade.grey", ("--size=0", "--version=1.0"), leaf("grey", "0", "1.0")),
    Query("get-leaf", "get,leaf,_shade.grey", ("--size=3", "--version=2.0"), leaf("grey", "3", "2.0")),
    Query("get-mid", "get,mid", (), mid("plain")),
    Query("get-mid", "get,mid,_deep", (), mid("deep")),
    Query("get-tree", "get,tree", (), tree("oak")),
    Query("get-tree", "get,tree,_fir", (), tree("fir")),
    Query("get-hooked", "get,hooked,_hue.1", (), ("hooked", "hue=1")),
    Query("get-hooked", "get,hooked,_hue.2", (), ("hooked", "hue=2")),
    Query("get-child", "get,child", (), ("child", f"tree={';'.join(tree('oak'))}")),
    Query("get-nest", "get,nest", (), ("nest", f"leaf={';'.join(leaf('blue', '0', '2.0'))}")),
    Query(
        "run-top", "run,top", (), ("top", f"mid=[{';'.join(mid('deep'))}]", f"tree=[{';'.join(tree('oak'))}]")
    ),
)  # fmt: skip
"""Every question of the storm. Inputs and version are always named: else any value in the cache would be right."""


def write_recipes(home: TemporaryHome) -> None:
    """Puts the recipes into the home's repository."""
    for alias in METAS:
        write_one(home, alias)
    for number in range(N_FOREIGN):
        folder = home.store / f"f{number:015x}"
        folder.mkdir(parents=True)
        meta = {"automation_uid": "541d6f712a6b464e", "uid": folder.name, "tags": ["foreign"]}
        text = json.dumps({**meta, "associated_script_artifact": f"get-foreign,{uid_of('get-foreign')}"})
        (folder / "_cm.json").write_text(text)
        os.utime(folder / "_cm.json", (1e9, 1e9))


def write_one(home: TemporaryHome, alias: str) -> None:
    """Writes a recipe, again too: the index of recipes has to read it and to be written."""
    texts = {"customize": HOOKS.get(alias, ""), "run_sh": SCRIPTS.get(alias, ""), "files": {"prove.sh": PROVE}}
    home.recipe(alias, METAS[alias], **texts)


def env_key(recipe: str, what: str) -> str:
    """The env key in which a recipe tells its PROOF, NONCE or FILE."""
    return f"CM_{recipe.split('-')[1].upper()}_{what}"


def file_trouble(path: Path, facts: Sequence[str], nonce: str) -> str:
    """What is wrong with a proof file, in words; empty when it is whole, right and of the maker ``nonce``."""
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        return f"{error}"
    wanted = [f"begin {nonce}", *facts, f"end {nonce}"]
    return "" if lines == wanted else f"{path} holds {lines} instead of {wanted}"

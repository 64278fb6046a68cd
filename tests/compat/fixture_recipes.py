"""Recipes of our own for recorded runs: each shows one promise of the recipe format that a community recipe relies on.

``RECIPES`` maps an alias to its metadata and its texts (see ``write_recipe``), ``CASES`` a name to the commands of a
recorded run; the last command is compared, those before it prepare the home. ``record_goldens.py`` runs them with
another engine and writes ``goldens/``, ``test_goldens.py`` runs them with this one.
"""

from pathlib import Path
from typing import Any

from helpers import write_recipe

SET = {"env": {"CM_A": "inner"}, "new_env_keys": ["CM_A", "CM_SEEN*"], "new_state_keys": ["inner", "seen"]}
NESTED = """
    import copy

    def preprocess(i):
        env, state = copy.deepcopy(i["env"]), {"given": 1}
        for kind in ("one", "two"):
            env["CM_KIND"] = kind
            r = i["automation"].cmind.access({
                "action": "run", "automation": "script", "tags": "compat,inner", "quiet": True,
                "env": env, "state": state})
            if r["return"] > 0:
                return r
            i["env"]["CM_SEEN_" + kind.upper()] = env.get("CM_SEEN_KIND", "nothing")
        i["env"]["CM_A"] = env.get("CM_A", "nothing")
        i["state"]["seen"] = state
        return {"return": 0}
    """
UPDATE = """
    def preprocess(i):
        meta = i["meta"]
        r = i["automation"].update_deps({
            "deps": meta["prehook_deps"] + meta["posthook_deps"],
            "update_deps": {"giver": {"tags": "_b", "env": {"CM_GIVEN_BY": "hook"}}}})
        meta["post_deps"].append({"tags": "compat,giver,_c"})
        return r
    """
ESCAPED = """
    def preprocess(i):
        env = i["env"]
        env["CM_RUN_CMD"] = "(exit 3) | cat ; echo \\\\${PIPESTATUS[0]} > status"
        env["CM_WAIT_CMD"] = "sleep 0.1 & pid=\\\\$! ; wait \\\\${pid} ; echo waited > waited"
        env["CM_NAMED_CMD"] = "echo \\\\${CM_NAME_OF_FILE} > named"
        env["CM_NAME_OF_FILE"] = "a name"
        env["+PATH"] = ["$HOME/compat-bin"]
        return {"return": 0}

    def postprocess(i):
        for key, name in (("STATUS", "status"), ("WAITED", "waited"), ("NAMED", "named"), ("HAS_PATH", "has_path")):
            with open(name) as file:
                i["env"]["CM_" + key] = file.read().strip()
        return {"return": 0}
    """
VERSION = """
    def postprocess(i):
        version = i["env"].get("CM_VERSION", "")
        full = version + ".140" if version == "12.2" else version
        i["env"]["CM_TOOL"] = i["env"]["CM_VERSION"] = full
        return {"return": 0, "version": full}
    """
GIVER = {
    "new_env_keys": ["CM_GIVEN*"],
    "env": {"CM_GIVEN": "plain"},
    "variations": {name: {"env": {f"CM_GIVEN_{name.upper()}": "<<<CM_GIVEN_BY>>>"}} for name in "abc"},
    "default_env": {"CM_GIVEN_BY": "nobody"},
}
EDITION = {
    "cache": True,
    "new_env_keys": ["CM_GIVEN*", "CM_DEEP*"],
    "default_version": "1",
    "deps": [{"tags": "compat,giver", "names": ["giver"]}, {"tags": "compat,deep"}],
    "versions": {
        "1": {
            "add_deps_recursive": {"giver": {"tags": "_a"}},
            "deps": [{"tags": "compat,giver,_c", "names": ["late"]}],
        },
        "2": {"add_deps_recursive": {"giver": {"tags": "_b"}}},
    },
}

RECIPES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "compat-inner": (
        SET,
        {
            "customize": """
            def preprocess(i):
                i["env"]["CM_SEEN_KIND"] = "kind " + i["env"].get("CM_KIND", "none")
                i["state"].setdefault("inner", []).append(i["env"].get("CM_KIND"))
                return {"return": 0}
            """
        },
    ),
    "compat-nested": ({"new_env_keys": ["CM_A", "CM_SEEN*"], "new_state_keys": ["seen"]}, {"customize": NESTED}),
    "compat-giver": (GIVER, {}),
    "compat-deep": (
        {
            "deps": [{"tags": "compat,giver", "names": ["giver"]}],
            "new_env_keys": ["CM_DEEP*", "CM_GIVEN_B", "CM_GIVEN_A"],
        },
        {},
    ),
    "compat-changed": (
        {
            "prehook_deps": [{"tags": "compat,giver", "names": ["giver"]}],
            "posthook_deps": [{"tags": "compat,giver,_a", "names": ["giver", "second"]}],
            "post_deps": [{"tags": "compat,inner"}],
            "new_env_keys": ["CM_GIVEN*", "CM_A"],
        },
        {"customize": UPDATE},
    ),
    "compat-edition": (EDITION, {}),
    "compat-escaped": (
        {"new_env_keys": ["CM_STATUS", "CM_WAITED", "CM_NAMED", "CM_HAS_PATH"], "clean_files": ["status", "waited"]},
        {
            "customize": ESCAPED,
            "run_sh": """
            eval "${CM_RUN_CMD}"
            eval "${CM_WAIT_CMD}"
            eval "${CM_NAMED_CMD}"
            case ":$PATH:" in *":$HOME/compat-bin:"*) echo yes;; *) echo no;; esac > has_path
            """,
        },
    ),
    "compat-tool": ({"cache": True, "new_env_keys": ["CM_TOOL"], "default_version": "9"}, {"customize": VERSION}),
    "compat-twice": (
        {
            "deps": [{"tags": "compat,tool", "version": "12.2"}, {"tags": "compat,tool"}],
            "new_env_keys": ["CM_TOOL"],
        },
        {},
    ),
    "compat-bounds": (
        {
            "deps": [
                {"tags": "compat,tool", "version_min": "3"},
                {"tags": "compat,tool", "version_min": "2", "version_max": "10"},
            ],
            "new_env_keys": ["CM_TOOL"],
        },
        {},
    ),
    "compat-fails": ({"new_env_keys": ["CM_LEFT"]}, {"run_sh": "echo CM_LEFT=behind > tmp-run-env.out\nexit 3\n"}),
    "compat-refuses": (
        {"variations": {"pre": {"env": {"CM_WHEN": "pre"}}, "post": {"env": {"CM_WHEN": "post"}}}},
        {
            "customize": """
            def preprocess(i):
                return {"return": 5, "error": "no"} if i["env"]["CM_WHEN"] == "pre" else {"return": 0}

            def postprocess(i):
                return {"return": 7, "error": "no"} if i["env"]["CM_WHEN"] == "post" else {"return": 0}
            """
        },
    ),
    "compat-below": ({"cache": True, "deps": [{"tags": "compat,inner"}, {"tags": "compat,fails"}]}, {}),
    "compat-forced": ({"can_force_cache": True, "new_env_keys": ["CM_A"], "env": {"CM_A": "forced"}}, {}),
    "compat-clone": (
        {
            "cache": True,
            "input_mapping": {"pull": "CM_PULL"},
            "new_env_keys": ["CM_CLONE", "CM_PULLED"],
            "post_deps": [
                {
                    "tags": "compat,pull",
                    "dynamic": True,
                    "enable_if_env": {"CM_PULL": ["yes"]},
                }
            ],
        },
        {"run_sh": 'echo "CM_CLONE=$PWD" > tmp-run-env.out\n'},
    ),
    "compat-pull": (
        {"new_env_keys": ["CM_PULLED"]},
        {"run_sh": 'touch "$CM_CLONE/pulled"\necho "CM_PULLED=$CM_CLONE/pulled" > tmp-run-env.out\n'},
    ),
    "compat-maybe": (
        {
            "deps": [
                {"tags": "compat,giver,_a", "enable_if_env": {"CM_MISSING": ["yes", "no"]}},
                {"tags": "compat,giver,_b", "enable_if_any_env": {"CM_MISSING": ["yes", "no"]}},
                {"tags": "compat,giver,_c", "skip_if_env": {"CM_MISSING": ["yes", "no"]}},
            ],
            "new_env_keys": ["CM_GIVEN*"],
        },
        {},
    ),
}

RUN = "cm run script --tags="
CASES: dict[str, list[str]] = {
    "nested-access": [f"{RUN}compat,nested"],
    "hook-changes-dependencies": [f"{RUN}compat,changed"],
    "text-escaped-for-the-shell": [f"{RUN}compat,escaped"],
    "exact-version-then-any": [f"{RUN}compat,twice"],
    "two-bounds": [f"{RUN}compat,bounds"],
    "default-version-block": [f"{RUN}compat,edition --adr.late.tags=_b --adr.giver.env.CM_GIVEN_BY=caller"],
    "asked-version-block": [f"{RUN}compat,edition --version=2 --adr.giver.env.CM_GIVEN_BY=caller"],
    "script-fails": [f"{RUN}compat,fails"],
    "script-fails-below": [f"{RUN}compat,below"],
    "script-error-ignored": [f"{RUN}compat,fails --ignore_script_error"],
    "preprocess-refuses": [f"{RUN}compat,refuses,_pre"],
    "postprocess-refuses": [f"{RUN}compat,refuses,_post"],
    "alias-with-other-tags": ["cm run script compat-giver --tags=inner"],
    "alias-with-own-tags": ["cm run script compat-giver --tags=giver,_a"],
    "force-cache-beside-skip-cache": [f"{RUN}compat,forced --force_cache --skip_cache"],
    "pull-what-is-there": [f"{RUN}compat,clone", f"{RUN}compat,clone --pull=yes"],
    "condition-with-yes-and-no": [f"{RUN}compat,maybe"],
}


def write_recipes(folder: Path) -> Path:
    """Writes ``RECIPES`` below ``folder``, which is returned."""
    for alias, (meta, texts) in RECIPES.items():
        write_recipe(folder, alias, meta, **texts)
    return folder


def commands(name: str) -> list[str]:
    """The commands of a case as they are run: nobody is asked, and the answer is one JSON object."""
    return [f"{command} --quiet --out=json" for command in CASES[name]]

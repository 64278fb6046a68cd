"""Secrets that are planted wherever a run may meet one reach no file, no output and no answer of any action."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from helpers import PATIENCE_S, TemporaryHome, finish, shell_wait, wait_until

PLANTED = {
    "HF_TOKEN": "hf" + "_zY1xW4vU7tS0rQ3pO6nM9lK2jI5hG8fE1d",
    "GITHUB_PAT": "planted-pat-1Ab",
    "SSHPASS": "planted-pass-2Bc",
    "KAGGLE_KEY": "planted-kaggle-3Cd",
    "login": "planted-login-4De",
    "proxy": "planted-proxy-5Ef",
    "header": "plantedheader6Fg0123456789",
    "tool": "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7aB3dE6gH9",
    "hook": "planted-by-hook-7Gh",
    "state": "planted-in-state-8Hi",
    "input": "planted-input-9Ij",
    "variation": "planted-variation-0Jk",
    "override": "planted-override-1Kl",
    "script": "planted-by-script-2Lm",
    "first": "planted-first-line-3Mn",
}
PROCESS = {
    **{key: PLANTED[key] for key in ("HF_TOKEN", "GITHUB_PAT", "SSHPASS")},
    "http_proxy": f"http://me:{PLANTED['proxy']}@127.0.0.1:9",
}
WORDS = (
    f"--url=https://me:{PLANTED['login']}@example.org/x.git",
    f"--header=Authorization: Bearer {PLANTED['header']}",
    f"--env.KAGGLE_KEY={PLANTED['KAGGLE_KEY']}",
    f"--env.CM_GIT_URL=https://me:{PLANTED['login']}@example.org/x.git",
    f"--hf_token={PLANTED['input']}",
    f"--adr.inner.env.CM_INNER_PASSWORD={PLANTED['override']}",
)
QUERY = f"--tags=get,leaky,_from.https://me:{PLANTED['variation']}@example.org/y"
CUSTOMIZE = f"""
import os
from pathlib import Path

def preprocess(i):
    env, state = i["env"], i["state"]
    assert env["CM_URL"].startswith("https://me:") and env["CM_HF_TOKEN"], env
    env["CM_MADE_SECRET"] = "{PLANTED["hook"]}"
    env["+CM_LIST"] = ["a", f"https://u:{{env['CM_MADE_SECRET']}}@h/"]
    state["leaky"] = {{"deep": [{{"api_key": "{PLANTED["state"]}"}}, env["CM_URL"]]}}
    state["script_prefix"] = ["export FIRST_PASSWORD_1='{PLANTED["first"]}'"]
    if env.get("CM_FAIL") == "hook":
        return {{"return": 1, "error": f"bad {{env['CM_MADE_SECRET']}} {{os.environ['HF_TOKEN']}} {{env['CM_URL']}}"}}
    if env.get("CM_FAIL") == "raise":
        raise ValueError(f"bad {{env['CM_HEADER']}} {{os.environ['GITHUB_PAT']}} {{state}}")
    print("hook says", os.environ["GITHUB_PAT"], env["CM_URL"])
    return {{"return": 0}}

def postprocess(i):
    i["env"]["CM_GIVEN_URL"] = i["env"]["CM_URL"]
    i["state"]["given"] = i["state"]["leaky"]
    return {{"return": 0, "version": "1.0", "add_extra_cache_tags": [f"from-{{i['env']['CM_URL']}}"]}}
"""
RUN = f"""
set -e
env | sort
for word in HF_TOKEN GITHUB_PAT SSHPASS KAGGLE_KEY CM_MADE_SECRET http_proxy CM_URL CM_HEADER FIRST_PASSWORD_1; do
  echo "$word is ${{!word}}" >&2
done
test "$CM_URL" = "https://me:{PLANTED["login"]}@example.org/x.git"
test "$CM_LIST" = "a:https://u:{PLANTED["hook"]}@h/"
cat tmp-state.json
printf '%s' "{PLANTED["tool"][:9]}"; sleep 0.1; echo "{PLANTED["tool"][9:]}"
echo "CM_SCRIPT_TOKEN={PLANTED["script"]}" >> tmp-run-env.out
echo "CM_PLAIN_OUT=$CM_URL" >> tmp-run-env.out
cp tmp-state.json tmp-run-state.json
if [ -n "$CM_WAIT" ]; then touch "$CM_WAIT"; {shell_wait("false")}; fi
[ "$CM_FAIL" != script ]
"""
SHELL = [QUERY, "--quiet", *WORDS]
ACTIONS: list[list[str]] = [
    ["plan", "script", *SHELL, "-v"],
    ["plan", "script", *SHELL, "--out=json", "--graph=html"],
    ["explain", "script", *SHELL, "--env.CM_X=1", "--keys=CM_URL,CM_HF_TOKEN,KAGGLE_KEY,CM_HEADER"],
    ["run", "script", *SHELL, "-v", "--print_env", "--save_env", "--debug_script", "--repro", "--print_readme"],
    ["run", "script", *SHELL, "--out=json", "--dump_version_info", "--print_versions", "--time", "--print_deps"],
    ["run", "script", *SHELL, "--renew", "-j"],
    ["run", "script", "--tags=use,leaky", *SHELL[1:], "--save_env", "--out=json"],
    ["run", "script", *SHELL, "--new", "--env.CM_FAIL=hook", "--debug"],
    ["run", "script", *SHELL, "--new", "--env.CM_FAIL=raise", "--debug", "--out=json"],
    ["run", "script", *SHELL, "--new", "--env.CM_FAIL=script", "--repro"],
    ["run", "script", *SHELL, "--new=x", "--lock_timeout=planted-login-4De"],
    ["prepare", "script", *SHELL],
    ["explain", "script", *SHELL, "--out=json"],
    ["lock", "script", *SHELL, "--file=crowdperf.lock"],
    ["lock", "script", *SHELL],
    ["run", "script", *SHELL, "--frozen"],
    [
        "record",
        "script",
        "--folder=.",
        "--name=r",
        "--folder_input=out_folder",
        f"--request.{QUERY[2:]}",
        *(f"--request.{word[2:]}" for word in WORDS),
    ],
    ["reproduce", "script", ".", "--check_only", "--hf_token=" + PLANTED["input"]],
    ["diff", "script", ".", "."],
    ["runs", "script"],
    ["resume", "script"],
    ["resume", "script", *WORDS, QUERY],
    ["show", "cache", "--env"],
    ["show", "cache", "--out=json"],
    ["explain", "cache", "--tags=get,leaky"],
    ["verify", "cache"],
    ["find", "cache", "--tags=get,leaky"],
    ["find", "script", QUERY],
    ["help", "script", QUERY, *WORDS],
    ["test", "script", "leaky", *WORDS],
    ["doc", "script", "leaky", "--output_dir=doc"],
    ["audit", "script", "leaky"],
    ["native-run", "script", f"--command=echo {PLANTED['tool']} $KAGGLE_KEY", *WORDS],
    ["version", "script", *WORDS],
    ["docker", "script", *SHELL],
    ["pin", "cache", "--tags=get,leaky"],
    ["system", "utils", f"--cmd=echo {PLANTED['tool']}"],
    ["gc", "cache", "--dry_run", "--max_size=1"],
    ["rm", "cache", "--tags=get,leaky", "-f"],
]
DRIVER = """
import json, sys
from cmind import cli
for words in json.load(open(sys.argv[1])):
    print("##", words[:2], flush=True)
    try:
        cli.run(words)
    except SystemExit as end:
        print("##", end.code, flush=True)
"""


@pytest.fixture
def leaky(home: TemporaryHome) -> TemporaryHome:
    """A home whose recipes meet every planted secret, and show what they meet."""
    mapping = {"url": "CM_URL", "header": "CM_HEADER", "hf_token": "CM_HF_TOKEN"}
    meta = {
        "tags": ["get", "leaky"],
        "cache": True,
        "input_mapping": mapping,
        "result_folder_input": "out_folder",  # else no record of it can be made
        "variations": {"from.#": {"env": {"CM_FROM": "#"}}},
        "new_env_keys": ["CM_*", "+CM_LIST", "KAGGLE_KEY"],
        "new_state_keys": ["given", "leaky"],
        "extra_cache_tags_from_env": [{"env": "CM_URL", "prefix": "url-"}],
        "deps": [{"tags": "get,inner", "names": ["inner"], "env": {"CM_INNER_URL": "<<<CM_URL>>>"}}],
        "tests": {"run_inputs": [{"quiet": True}]},
        "print_env_at_the_end": {"CM_URL": "url"},
    }
    home.recipe("leaky", meta, customize=CUSTOMIZE, run_sh=RUN)
    home.recipe("get-inner", {"cache": True, "new_env_keys": ["CM_INNER_*"]}, run_sh="echo $CM_INNER_PASSWORD")
    users_deps = [{"tags": "get,leaky,_from.<<<CM_URL>>>"}]
    home.recipe("use-leaky", {"deps": users_deps, "input_mapping": mapping}, run_sh="echo $CM_GIVEN_URL")
    return home


def leaks(places: Iterable[Path]) -> list[tuple[str, str]]:
    """The files below these folders that hold a planted secret, each with the secret's name."""
    found = []
    for path in (path for place in places for path in place.rglob("*") if path.is_file() and not path.is_symlink()):
        data = path.read_bytes() + os.fsencode(path.name)
        found += [(path.name, name) for name, secret in PLANTED.items() if secret.encode() in data]
    return found


def names_in(text: str) -> list[str]:
    """The planted secrets in a text."""
    return [name for name, secret in PLANTED.items() if secret in text]


def answers(home: TemporaryHome, actions: Sequence[Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Each action with what it wrote on either stream, its exit code last; all in one process of ``cm``."""
    (home.folder / "actions.list").write_text(json.dumps(actions))
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(home.folder / "actions.list")],
        cwd=home.work,
        env=home.process_env(PROCESS),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=3 * PATIENCE_S,
        check=True,
    )
    parts = done.stdout.decode().split("\n## ['")[:]
    for action, text in zip(actions, parts, strict=True):
        yield " ".join(action[:2]), text


def test_a_planted_secret_reaches_no_file_and_no_output_of_any_action(leaky: TemporaryHome) -> None:
    shown = list(answers(leaky, ACTIONS))
    told = [(action, name, line) for action, text in shown for line in text.splitlines() for name in names_in(line)]
    assert told == []
    assert leaks([leaky.path, leaky.work]) == []
    codes = {action: text.rpartition("## ")[2].strip() for action, text in shown}
    assert not [action for action, text in shown if "internal error" in text], shown
    assert [shown[number][1].rpartition("## ")[2].strip() for number in (3, 4, 5, 6)] == ["0"] * 4, shown[3][1]
    assert codes["lock script"] == codes["record script"] == codes["show cache"] == "0", shown


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_files_hold_no_secret_while_a_script_runs_and_after_its_run_was_killed(
    leaky: TemporaryHome, number: signal.Signals
) -> None:
    ready = leaky.folder / "ready"
    child = leaky.start("run", "script", *SHELL, f"--env.CM_WAIT={ready}", "-v", env=PROCESS)
    wait_until(ready.exists, "the script")
    own = [("tmp-run-env.out", "script"), ("tmp-run-env.out", "login")]  # what the script itself wrote, a moment ago
    assert [leak for leak in leaks([leaky.path, leaky.work]) if leak not in own] == []
    assert list(leaky.store.glob(".locks/*.lock"))
    (os.killpg if number == signal.SIGKILL else os.kill)(child.pid, number)
    done = finish(child)
    assert names_in(done.stdout + done.stderr) == []
    assert [leak for leak in leaks([leaky.path, leaky.work]) if leak not in own] == []


def test_files_that_hold_parts_of_the_env_are_the_users_own(leaky: TemporaryHome) -> None:
    list(answers(leaky, [["run", "script", *SHELL], ["run", "script", "--tags=use,leaky", *SHELL[1:], "--save_env"]]))
    names = ("tmp-run.sh", "tmp-state.json", "tmp-env.sh", "tmp-env-all.sh", "log.txt", "request.json")
    seen = [path for place in (leaky.path, leaky.work) for path in place.rglob("*") if path.name in names]
    assert {path.name for path in seen} == set(names)
    others = [
        path for path in seen if (path.stat().st_mode | path.parent.stat().st_mode) & 0o077 and not is_private(path)
    ]
    assert others == []


def is_private(path: Path) -> bool:
    """Whether nobody else can read the file: by its own mode, or by that of its folder."""
    return not path.stat().st_mode & 0o077 or not path.parent.stat().st_mode & 0o077

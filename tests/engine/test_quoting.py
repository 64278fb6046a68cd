"""What a native script sees of a value, with real bash: CM's double quotes for CM's recipes, and nothing ever runs."""

import json
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome
from recipe_engine.rules.env import quoted
from recipe_engine.running import shell

VARIABLES = {"CM_DIR": "/a dir", "HOME": "/home/x", "CM_EVIL": "$(touch injected)`touch injected`"}


def bash(script: str, folder: Path, env: Mapping[str, str] = VARIABLES) -> str:
    """What bash prints for ``script``; fails when it complains or leaves files behind."""
    done = subprocess.run(
        ["/bin/bash", "-c", script], cwd=folder, env={**env, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert list(folder.iterdir()) == []
    return done.stdout


def seen(value: str, folder: Path) -> str:
    """What a script of CM's recipes sees of a value."""
    return bash(f'CM_X={quoted(value, "cm", VARIABLES)}; printf %s "$CM_X"', folder)


ESCAPED = {
    r"; echo \${PIPESTATUS[0]} > exitstatus": "; echo ${PIPESTATUS[0]} > exitstatus",
    r"cmd_pid=\$! && kill \$cmd_pid": "cmd_pid=$! && kill $cmd_pid",
    r"-f \${CM_DIR}": "-f ${CM_DIR}",
    r"COUNT=\$((COUNT+1)); \$(cat x)": "COUNT=$((COUNT+1)); $(cat x)",
    r"say \"hi\" \`x\`": 'say "hi" `x`',
    r"C:\\dir \n \d \' \ ": r"C:\dir \n \d \' \ ",
    "one \\\ntwo": "one two",
    r"\\\\\\$CM_DIR": r"\\\/a dir",
    r"\\\$CM_DIR": r"\$CM_DIR",
    "$HOME/.local/bin:${CM_DIR}": "/home/x/.local/bin:/a dir",
    "cp $CM_DIR/. ${HOME}s": "cp /a dir/. /home/xs",
    "$": "$",
    "a $ b $, 5$": "a $ b $, 5$",
    "$CM_EVIL": VARIABLES["CM_EVIL"],
}


@pytest.mark.parametrize(("value", "expected"), ESCAPED.items(), ids=ESCAPED)
def test_escapes_and_known_variables_mean_what_cms_double_quotes_make_of_them(
    value: str, expected: str, tmp_path: Path
) -> None:
    assert seen(value, tmp_path) == expected
    unescaped_quotes = value.replace(r"\"", "").count('"')
    assert unescaped_quotes == 0
    assert bash(f'CM_X="{value}"; printf %s "$CM_X"', tmp_path) == expected, "CM's own line"


AS_THEY_ARE = (
    "plain 'text' and \"quotes\"",
    "$(touch injected)",
    "$( touch injected )",
    '"$(touch injected)"',
    "'$(touch injected)'",
    "$(echo $(touch injected) \\$CM_DIR $HOME)",
    "`touch injected`",
    '"`touch injected`"',
    r"`echo \`touch injected\` $HOME`",
    "$((1 + $(touch injected)))",
    "$[1 + $(touch injected)]",
    "${CM_NONE:-$(touch injected)}",
    "${CM_NONE:=${CM_NONE:-`touch injected`}}",
    "${CM_DIR[$(touch injected)]}",
    "${!CM_EVIL}",
    "${CM_EVIL@P}",
    "${CM_DIR/a/b}",
    "${IFS}",
    "${ CM_DIR}",
    "$CM_NONE ${CM_NONE} $? $! $$ $0 $1 $@ $* $# $- $_x",
    "$'\\x24(touch injected)'",
    '$"touch injected"',
    "wow! !! !touch",
    "<(touch injected) >(touch injected)",
    "{a,b} ~ ~root * ?",
    "a; touch injected & touch injected | touch injected > injected",
    "one\ntouch injected\n",
    "$(touch injected",
    "`touch injected",
    "${CM_DIR",
    '"; touch injected; "',
    "'; touch injected; '",
    "\\",
    "a\\",
    "",
)


@pytest.mark.parametrize("value", AS_THEY_ARE)
def test_what_could_run_and_what_is_unknown_stays_text(value: str, tmp_path: Path) -> None:
    assert seen(value, tmp_path) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (r"\\$(touch injected)", r"\$(touch injected)"),
        (r"\\\\`touch injected`", r"\\`touch injected`"),
        (r"\$$(touch injected)", "$$(touch injected)"),
        ("$CM_EVIL$(touch injected)$CM_EVIL", f"{VARIABLES['CM_EVIL']}$(touch injected){VARIABLES['CM_EVIL']}"),
        ("$(x)$HOME`y`$HOME${z:-}$HOME", "$(x)/home/x`y`/home/x${z:-}/home/x"),
        ("'$HOME'", "'/home/x'"),
        ('"$HOME"\'', '"/home/x"\''),
    ],
)
def test_text_around_what_could_run_follows_the_rule(value: str, expected: str, tmp_path: Path) -> None:
    assert seen(value, tmp_path) == expected


@pytest.mark.parametrize("value", [*ESCAPED, *AS_THEY_ARE])
def test_recipes_of_a_repository_with_literal_values_see_them_as_they_are(value: str, tmp_path: Path) -> None:
    assert bash(f"printf %s {quoted(value, 'literal', VARIABLES)}", tmp_path) == value


def test_keys_are_exported_in_order_so_that_a_value_sees_the_keys_before_it() -> None:
    env = {
        "CM_C": "[$CM_B]",
        "CM_B": "[${CM_A}]",
        "CM_A": "a",
        "+CM_LIST": ["$CM_OLD/bin"],
        "CM_D": "$CM_E",
        "CM_E": "e",
    }
    script = "\n".join([*shell.export_lines({**env, "CM_OLD": "new"}, "cm"), 'echo "$CM_C $CM_LIST $CM_D"'])
    done = subprocess.run(["/bin/bash", "-c", script], env={"CM_OLD": "old"}, capture_output=True, text=True)
    assert done.stdout == "[[a]] old/bin \n"  # as in CM: what is exported later is not seen yet


def test_a_list_joins_its_items_by_the_same_rule_in_front_of_the_old_value() -> None:
    script = "\n".join([*shell.export_lines({"+PATH": ["$HOME/bin", r"\$x", "$(y)"]}, "cm"), 'printf %s "$PATH"'])
    done = subprocess.run(
        ["/bin/bash", "-c", script], env={"HOME": "/h", "PATH": "/bin"}, capture_output=True, text=True
    )
    assert done.stdout == "/h/bin:$x:$(y):/bin"


PLACES = {
    "env of the request": ({}, ""),
    "env of the recipe": ({"env": {}}, ""),
    "const": ({"const": {}}, ""),
    "list": ({}, "i['env'].update({'+' + key: [value, value] for key, value in PAYLOADS.items()})"),
    "hook": ({}, "i['env'].update(PAYLOADS)"),
    "state": ({}, "i['env'].update(PAYLOADS); i['state'].update(PAYLOADS)"),
    "tmp-run-env.out": ({}, ""),
}
PAYLOADS = {f"CM_PAYLOAD_{number}": value for number, value in enumerate(AS_THEY_ARE)}


@pytest.mark.parametrize("place", PLACES)
def test_nothing_runs_wherever_a_value_comes_from(place: str, home: TemporaryHome) -> None:
    meta, statement = PLACES[place]
    full: dict[str, Any] = dict.fromkeys(meta, PAYLOADS)
    lines = "".join(f"{key}={value.splitlines()[0] if value else ''}\n" for key, value in PAYLOADS.items())
    writes = f"cat > tmp-run-env.out <<'END'\n{lines}END\n" if place == "tmp-run-env.out" else "true\n"
    home.recipe("get-first", {**full, "new_env_keys": ["CM_PAYLOAD_*"], "new_state_keys": ["*"]}, run_sh=writes)
    home.recipe(
        "show-all",
        {**full, "deps": [{"tags": "get,first"}], "new_env_keys": ["CM_SEEN"]},
        customize=f"""
        PAYLOADS = {PAYLOADS!r}


        def preprocess(i):
            {statement or "pass"}
            return {{"return": 0}}
        """,
        run_sh="true",
    )
    answer = home.run("show,all", env=PAYLOADS if place == "env of the request" else {})
    assert answer["return"] == 0, answer
    assert sorted(path.name for path in home.work.rglob("*injected*")) == []
    assert sorted(path.name for path in home.folder.rglob("injected")) == []


@pytest.mark.parametrize(
    "value", ["$(touch injected)", "`touch injected`", "${IFS}$(touch injected)", "a'\"; touch injected"]
)
def test_nothing_runs_in_a_version_or_a_name(value: str, home: TemporaryHome) -> None:
    home.recipe(
        "get-tool",
        {"cache": True, "new_env_keys": ["CM_GOT_*"], "default_env": {"CM_GOT": "x"}},
        run_sh='printf "CM_GOT_VERSION=%s\\nCM_GOT_NAME=%s\\n" "$CM_VERSION" "$CM_NAME" > tmp-run-env.out',
    )
    answer = home.run("get,tool", version=value, name=value)
    assert answer["new_env"] == {"CM_GOT_VERSION": value, "CM_GOT_NAME": value}
    assert list(home.folder.rglob("injected")) == []


def test_whether_values_are_literal_is_up_to_the_repository_of_the_recipe(home: TemporaryHome) -> None:
    script = 'echo "{\\"seen\\": \\"$CM_TEXT\\"}" > tmp-run-state.json'
    home.recipe("show-text", {"new_state_keys": ["seen"]}, run_sh=script)
    words = ("--env.CM_TEXT=\\$CM_OTHER,$CM_KNOWN", "--env.CM_KNOWN=k")
    assert home.run_cm("show,text", *words).answer["new_state"] == {"seen": "$CM_OTHER,k"}
    home.write_cmr(values="literal")
    script = (
        'python3 -c \'import json, os; json.dump({"seen": os.environ["CM_TEXT"]}, open("tmp-run-state.json", "w"))\''
    )
    home.recipe("show-text", {"new_state_keys": ["seen"]}, run_sh=script)
    assert home.run_cm("show,text", *words).answer["new_state"] == {"seen": "\\$CM_OTHER,$CM_KNOWN"}


def test_a_benchmark_that_fails_behind_a_pipe_fails_as_in_cm(home: TemporaryHome) -> None:
    home.recipe(
        "benchmark-program",
        {"env": {"CM_RUN_CMD": r"false 2>&1 | tee console.out; echo \${PIPESTATUS[0]} > exitstatus"}},
        run_sh='eval "${CM_RUN_CMD}"\nexitstatus=$(cat exitstatus)\ntest "$exitstatus" -eq 0 || exit "$exitstatus"\n',
    )
    assert home.cm("run", "script", "--tags=benchmark,program", "--quiet").code == 2


def test_files_that_a_shell_sources_later_follow_the_rule_too(home: TemporaryHome) -> None:
    home.recipe("get-dir", {"env": {"CM_DIR": "$HOME/x$(touch injected)"}, "new_env_keys": ["CM_DIR"]})
    home.run("get,dir", save_env=True)
    done = subprocess.run(
        ["/bin/bash", "-c", '. ./tmp-env.sh; printf %s "$CM_DIR"'], cwd=home.work, capture_output=True, text=True
    )
    assert done.stdout == str(Path.home()) + "/x$(touch injected)"
    assert not (home.work / "injected").exists()
    assert shlex.quote("/x$(touch injected)") in (home.work / "tmp-env.sh").read_text(encoding="utf-8")
    assert json.dumps(str(Path.home())) not in (home.work / "tmp-env.sh").read_text(encoding="utf-8")


@pytest.mark.parametrize("inner", ["$(echo $(id) (x))", "${A:-{b}}", "`id`"])
def test_a_variable_behind_a_substitution_is_expanded(inner: str) -> None:
    assert quoted(f"{inner} and $CM_DIR/y", "cm", VARIABLES) == f"'{inner} and '" + '"${CM_DIR-}"/y'

"""Native scripts with real bash: what reaches them, what comes back, what is kept."""

import errno
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from recipe_engine.rules.errors import RequestError, ScriptFailed, ScriptNotFound
from recipe_engine.running import shell

AWKWARD = {
    "double quotes": 'say "hi"',
    "single quotes": "it's 'so'",
    "command substitution": "$(touch injected)",
    "backticks": "`touch injected`",
    "variable": "$HOME ${HOME}",
    "separator": "a; touch injected",
    "pipe and more": "a && touch injected | b > injected < c &",
    "newline": "one\ntwo\n\nfour",
    "tab and blanks": "  a\t b  ",
    "backslash": "C:\\path\\n \\",
    "unicode": "Grüße 世界 \u2028 \U0001f600",
    "glob": "* ? [a-z] ~",
    "history": "wow! !!",
    "comment": "# no comment",
    "option": "-n --help",
    "empty": "",
}


def call(tmp_path: Path, script: str, env: dict[str, Any] | None = None, **more: Any) -> shell.ScriptCall:
    folder = tmp_path / "work folder"
    folder.mkdir(exist_ok=True)
    path = tmp_path / "recipe folder" / "run.sh"
    path.parent.mkdir(exist_ok=True)
    path.write_text(script)
    fields: dict[str, Any] = {"state": {}, "log_path": tmp_path / "log.txt", **more}
    return shell.ScriptCall(label="get-x", script=path, folder=folder, env=env or {}, **fields)


@pytest.mark.parametrize("value", AWKWARD.values(), ids=AWKWARD.keys())
def test_a_value_reaches_the_script_as_it_is_and_is_never_executed(tmp_path: Path, value: str) -> None:
    request = call(tmp_path, 'printf %s "$CM_VALUE" > seen', {"CM_VALUE": value})
    shell.run_script(request)
    assert (request.folder / "seen").read_bytes().decode() == value
    assert not (request.folder / "injected").exists()


@pytest.mark.parametrize("value", AWKWARD.values(), ids=AWKWARD.keys())
def test_an_item_of_a_list_is_never_executed_either(tmp_path: Path, value: str) -> None:
    request = call(tmp_path, 'printf %s "$CM_LIST" > seen', {"+CM_LIST": ["first", value]})
    shell.run_script(request)
    assert (request.folder / "seen").read_bytes().decode() == f"first:{value}"
    assert not (request.folder / "injected").exists()


@pytest.mark.parametrize(
    ("key", "old", "expected"),
    [
        ("+CM_LIST", None, "a:b"),
        ("+CM_LIST", "", "a:b"),
        ("+CM_LIST", "old", "a:b:old"),
        ("+ CM_LIST", "old", "a b old"),
        ("+,CM_LIST", "old", "a,b,old"),
        ("+;CM_LIST", None, "a;b"),
        ("+ CM_LIST", "o  l*d", "a b o  l*d"),
        ("+$CM_LIST", "old", "a$b$old"),
        ("+`CM_LIST", "old", "a`b`old"),
        ('+"CM_LIST', "old", 'a"b"old'),
        ("+}CM_LIST", "old", "a}b}old"),
        ("+'CM_LIST", "$(x)", "a'b'$(x)"),
    ],
)
def test_a_list_key_is_joined_in_front_of_the_old_value(key: str, old: str | None, expected: str) -> None:
    script = shell.export_line(key, ["a", "b"]) + '\nprintf %s "$CM_LIST"'
    env = {"PATH": "/usr/bin:/bin"} | ({} if old is None else {"CM_LIST": old})
    assert subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True).stdout == expected


@pytest.mark.parametrize(
    "key", ["A-B", "1A", "A B", "A;touch injected", "$(touch injected)", "", "Ä", "+A-B", "+", "A\nB", "A\n", "+A\n"]
)
def test_a_key_that_no_shell_can_hold_is_left_out(key: str) -> None:
    assert shell.export_line(key, ["x"] if key.startswith("+") else "x") == ""


@pytest.mark.parametrize(
    ("value", "expected"), [(True, "True"), (None, ""), (7, "7"), (["a", "b c"], "['a', 'b c']"), ("", "")]
)
def test_values_that_are_no_texts_become_texts(value: Any, expected: str) -> None:
    script = shell.export_line("CM_X", value) + '\nprintf %s "$CM_X"'
    assert subprocess.run(["bash", "-c", script], capture_output=True, text=True).stdout == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("A=1\nB=2\n", {"A": "1", "B": "2"}),
        ("URL=http://x/?a=b&c=d==\n", {"URL": "http://x/?a=b&c=d=="}),
        ("A=1\nA=2\n", {"A": "2"}),
        ("  A =  padded  \n", {"A": "padded"}),
        ("\nno equals sign\n=no key\nA=\n", {"A": ""}),
        ("A=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
        ("A=one\u2028two\x0cthree\x85four\n", {"A": "one\u2028two\x0cthree\x85four"}),
        ("A=no newline at the end", {"A": "no newline at the end"}),
        ('A="quoted"\n', {"A": '"quoted"'}),
        ("", {}),
    ],
)
def test_the_env_file_is_read_line_by_line(tmp_path: Path, content: str, expected: dict[str, str]) -> None:
    (tmp_path / "tmp-run-env.out").write_bytes(content.encode())
    assert shell.read_env_file(tmp_path / "tmp-run-env.out") == expected


def test_no_env_file_gives_nothing(tmp_path: Path) -> None:
    assert shell.read_env_file(tmp_path / "none") == {}


def test_what_the_script_writes_comes_back(tmp_path: Path) -> None:
    script = """
    echo CM_B=two >> tmp-run-env.out
    echo '{"deep": {"b": 2}, "list": [2]}' > tmp-run-state.json
    """
    state = {"deep": {"a": 1}, "list": [1]}
    env, after = shell.run_script(call(tmp_path, script, {"CM_A": "one"}, state=state))
    assert env == {"CM_A": "one", "CM_B": "two"}
    assert after == {"deep": {"a": 1, "b": 2}, "list": [1, 2]}
    assert state == {"deep": {"a": 1}, "list": [1]}


def test_what_an_earlier_script_wrote_is_not_taken_again(tmp_path: Path) -> None:
    shell.run_script(call(tmp_path, "echo CM_OLD=1 > tmp-run-env.out; echo '{\"old\": 1}' > tmp-run-state.json"))
    assert shell.run_script(call(tmp_path, "true")) == ({}, {})


def test_a_folder_in_the_place_of_the_env_file_blocks_no_later_run(tmp_path: Path) -> None:
    shell.run_script(call(tmp_path, "mkdir -p tmp-run-env.out/deep"))
    env, _ = shell.run_script(call(tmp_path, "echo CM_NEW=1 > tmp-run-env.out"))
    assert env == {"CM_NEW": "1"}


def test_the_script_sees_the_whole_state(tmp_path: Path) -> None:
    request = call(tmp_path, "cp tmp-state.json seen.json", state={"a": {"b": [1, "zwei"]}})
    shell.run_script(request)
    assert json.loads((request.folder / "seen.json").read_text()) == {"a": {"b": [1, "zwei"]}}


def test_the_prefix_in_the_state_runs_first_and_in_the_same_shell(tmp_path: Path) -> None:
    state = {"script_prefix": ["FROM_PREFIX=yes"]}
    request = call(tmp_path, "echo CM_SEEN=$FROM_PREFIX > tmp-run-env.out", state=state)
    assert shell.run_script(request)[0] == {"CM_SEEN": "yes"}


def test_the_written_script_can_be_run_by_hand(tmp_path: Path) -> None:
    request = call(tmp_path, 'echo "$CM_X" >> seen', {"CM_X": 'it\'s "me"'})
    shell.run_script(request)
    subprocess.run(["bash", "./tmp-run.sh"], cwd=request.folder, check=True)
    assert (request.folder / "seen").read_text() == 'it\'s "me"\n' * 2


def test_output_is_shown_where_it_belongs_and_kept_in_the_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shell.run_script(call(tmp_path, "echo to-out; echo to-err >&2"))
    out, err = capfd.readouterr()
    assert (out, err) == ("to-out\n", "to-err\n")
    assert sorted((tmp_path / "log.txt").read_text().split()) == ["to-err", "to-out"]


def test_a_secret_reaches_the_script_but_no_file_and_no_output(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = """
    printf %s "$CM_GH_TOKEN" | sha256sum | cut -c1-64 > digest
    echo "the token is $CM_GH_TOKEN."
    printf %s "${CM_GH_TOKEN:0:9}"; sleep 0.2; echo "${CM_GH_TOKEN:9}"
    echo "again $CM_GH_TOKEN" >&2
    echo "CM_NEW=$CM_GH_TOKEN" >tmp-run-env.out
    echo "{\\"new\\": \\"$CM_GH_TOKEN\\"}" >tmp-run-state.json
    """
    secret = "ghp_0123456789abcdef"
    request = call(tmp_path, script, {"CM_GH_TOKEN": secret, "CM_OTHER": "x"})
    env, state = shell.run_script(request)
    assert env["CM_NEW"] == state["new"] == secret
    expected = subprocess.run(["sha256sum"], input=secret, capture_output=True, text=True).stdout.split()[0]
    assert (request.folder / "digest").read_text().strip() == expected
    shown = "".join(capfd.readouterr())
    assert "the token is ********." in shown
    texts = [shown, *(path.read_text() for path in tmp_path.rglob("*") if path.is_file())]
    assert not [text for text in texts if secret in text]


def test_a_secret_that_is_a_short_word_is_not_searched_in_the_output(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shell.run_script(call(tmp_path, "echo yes, done", {"CM_USE_TOKEN": "yes"}))
    assert capfd.readouterr().out == "yes, done\n"


def test_a_failure_tells_the_exit_the_last_lines_the_log_and_what_to_try(tmp_path: Path) -> None:
    request = call(tmp_path, "for i in $(seq 100); do echo line $i; done; echo why >&2; exit 3")
    with pytest.raises(ScriptFailed) as caught:
        shell.run_script(request)
    error = caught.value
    assert error.code == 2
    assert error.message == "get-x: run.sh failed with exit code 3"
    assert error.output == ("why",)
    assert error.output_title == "last lines of its standard error"
    assert error.log_path == str(tmp_path / "log.txt")
    assert error.command.startswith(f"cd '{request.folder}' && bash ./tmp-run.sh ")


def test_files_that_the_recipe_names_are_shown_when_its_script_fails(tmp_path: Path) -> None:
    request = call(tmp_path, "echo the reason > details.txt; exit 1", shown_if_error=("details.txt", "missing.txt"))
    with pytest.raises(ScriptFailed) as caught:
        shell.run_script(request)
    assert caught.value.notes == ("details.txt:", "  the reason")


@pytest.mark.parametrize(
    ("script", "text", "hint"),
    [
        ("kill -KILL $$", "was killed by SIGKILL", "memory"),
        ("bash -c 'kill -KILL $$'", "was killed by SIGKILL", "memory"),
        ("kill -SEGV $$", "was killed by SIGSEGV", "crashed on an invalid memory access"),
        ("exit 77", "failed with exit code 77", "see the lines above and the log"),
        ("no_such_command_at_all", "failed with exit code 127", "install the program no_such_command_at_all"),
    ],
)
def test_an_exit_status_is_decoded(tmp_path: Path, script: str, text: str, hint: str) -> None:
    with pytest.raises(ScriptFailed) as caught:
        shell.run_script(call(tmp_path, script))
    assert text in caught.value.message
    assert hint in caught.value.hint


FLAVORS = {"CM_HOST_OS_FLAVOR": "debian", "CM_HOST_OS_VERSION": "12", "CM_HOST_PLATFORM_FLAVOR": "x86_64"}


@pytest.mark.parametrize(
    ("present", "env", "chosen"),
    [
        (["run"], {}, "run"),
        (["run", "run-debian"], FLAVORS, "run-debian"),
        (["run", "run-debian"], {}, "run"),
        (["run", "run-ubuntu"], FLAVORS, "run"),
        (["run", "run-x86_64"], FLAVORS, "run-x86_64"),
        (["run-x86_64", "run-debian"], FLAVORS, "run-debian"),
        (["run-debian", "run-debian-12"], FLAVORS, "run-debian-12"),
        (["run-debian-12", "run-debian-x86_64"], FLAVORS, "run-debian-x86_64"),
        (["run-debian-x86_64", "run-debian-12-x86_64"], FLAVORS, "run-debian-12-x86_64"),
        (["run", "run-debian-12"], {**FLAVORS, "CM_HOST_OS_VERSION": ""}, "run"),
    ],
)
def test_the_most_special_script_for_the_host_is_chosen(
    tmp_path: Path, present: list[str], env: dict[str, str], chosen: str
) -> None:
    for name in present:
        (tmp_path / f"{name}.sh").touch()
    assert shell.find_script(tmp_path, "run", env) == tmp_path / f"{chosen}.sh"


def test_a_recipe_without_a_script_has_none(tmp_path: Path) -> None:
    assert shell.find_script(tmp_path, "run", FLAVORS) is None


def test_a_disk_that_fails_is_no_recipe_without_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run.sh").touch()

    def failing(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "stat", failing)
    with pytest.raises(OSError, match="Input/output"):
        shell.find_script(tmp_path, "run", {})


def test_a_name_that_is_too_long_is_that_of_no_script(tmp_path: Path) -> None:
    assert shell.find_script(tmp_path, "run", {"CM_HOST_OS_FLAVOR": "x" * 300}) is None


def test_a_script_asked_for_by_name_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "install.sh").touch()
    assert shell.find_script(tmp_path, "install", {}) == tmp_path / "install.sh"
    with pytest.raises(ScriptNotFound, match=r"'detect\.sh'\. It has: install\.sh") as caught:
        shell.find_script(tmp_path, "detect", {})
    assert caught.value.code == 16


def test_env_files_hold_no_secrets_and_can_be_sourced(tmp_path: Path) -> None:
    env = {"CM_A": "it's", "CM_B": "$(x)", "CM_HF_TOKEN": "s3cret"}
    shell.write_env_file(tmp_path / "env.sh", env, "literal", ["unset CM_B"])
    command = '. ./env.sh && printf %s "$CM_A|$CM_B|$CM_HF_TOKEN"'
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "it's|$(x)|"
    assert (tmp_path / "env.sh").read_text().splitlines()[:3] == ["#!/bin/bash", "", "unset CM_B"]


@pytest.mark.parametrize(("value", "problem"), [("a\0b", "a NUL character"), ("é\ud800", "half a character")])
def test_what_no_process_can_be_given_is_named(value: str, problem: str) -> None:
    with pytest.raises(RequestError, match=f"the value of the env key 'CM_X' contains {problem}, which cannot be"):
        shell.passable("CM_X", value)
    assert [shell.passable("CM_X", other) for other in ("é", 3, None)] == ["é", "3", ""]


@pytest.mark.parametrize(
    "state",
    [
        {"login": {"gh_token": "only-in-state-1"}},
        {"script_prefix": ["export CM_GH_TOKEN=only-in-state-2"]},
    ],
)
def test_a_secret_in_the_state_is_masked_in_the_output(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], state: dict[str, Any]
) -> None:
    """Each value is of this test alone: a process remembers what it has learned."""
    script = "grep -o 'only-in-state-[12]' tmp-state.json; echo \"${CM_GH_TOKEN:-only-in-state-1}\""
    shell.run_script(call(tmp_path, script, state=state))
    shown = "".join(capfd.readouterr()) + (tmp_path / "log.txt").read_text()
    assert "********" in shown and "only-in-state" not in shown

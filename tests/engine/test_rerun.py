"""Requests as lines for a shell: quoting, secrets, and the env that a step needs when it is run alone."""

import shlex
from typing import Any

import pytest
from builders import configured, dependency, parent, recipe, request
from recipe_engine.rules.deps import dependency_request
from recipe_engine.rules.model import Request, RunOptions
from recipe_engine.rules.rerun import (
    command_line,
    flag,
    flat,
    given_line,
    rerun_line,
)


@pytest.mark.parametrize(
    ("name", "value", "word"),
    [
        ("tags", "get,x", "--tags=get,x"),
        ("quiet", True, "--quiet"),
        ("quiet", False, "--quiet-"),
        ("j", True, "-j"),
        ("path", ["a", "b c"], "'--path,=a,b c'"),
        ("size", 3, "--size=3"),
        ("size", None, "--size="),
        ("env.CM_X", "it's $(x) `y`\n", "'--env.CM_X=it'\"'\"'s $(x) `y`\n'"),
    ],
)
def test_a_flag_is_one_word_for_a_shell(name: str, value: Any, word: str) -> None:
    assert flag(name, value) == word
    assert len(shlex.split(flag(name, value))) == 1


def test_secrets_are_left_out_and_named() -> None:
    line = command_line(["run", "my script"], [("a", "1"), ("hf_token", "hunter2")])
    assert line.text == "cm run 'my script' --a=1"
    assert line.left_out == ("--hf_token (a secret)",)


def test_nested_values_have_dotted_names() -> None:
    assert list(flat({"a": {"b": {"c": 1}, "d": 2}, "e": {}})) == [("a.b.c", 1), ("a.d", 2), ("e", {})]


def test_the_line_that_was_given_is_written_again_without_the_plumbing_of_cmind() -> None:
    inputs = {
        "action": "run", "automation": "script", "out": "con", "cmd": ["x"], "parsed_automation": [("script", "5b")],
        "tags": "get,x,_v", "quiet": True, "adr": {"python": {"name": "a b"}}, "version": "1.2", "size": "3",
        "add_deps_recursive": {"y": {"tags": "_z"}}, "artifacts": ["more words"], "artifact": "get x",
    }  # fmt: skip
    assert given_line(inputs).text == (
        "cm run script 'get x' 'more words' --tags=get,x,_v '--adr.python.name=a b' --quiet --size=3 --version=1.2 "
        "--add_deps_recursive.y.tags=_z"
    )


def rerun(asked: Request, *texts: str, **meta: Any) -> str:
    return rerun_line(asked, recipe(**meta), texts).text


def test_a_request_of_the_command_line_is_repeated_with_its_inputs() -> None:
    asked = request(
        "get,x,_v", {"size": "3", "env": {"CM_A": "b c"}, "version_min": "2", "tags": "get,x,_v", "out": "con"}
    )
    asked = asked._replace(env={"CM_A": "b c", "CM_QUIET": "yes"}, options=RunOptions(quiet=True))
    text = "cm run script --tags=get,x,_v --version_min=2 --size=3 --quiet '--env.CM_A=b c'"
    assert rerun(asked, "CM_A CM_QUIET") == text
    alone = asked._replace(query=request("").query, alias="get-x", inputs={}, env={}, version=request().version)
    assert rerun(alone) == "cm run script get-x --quiet"


def test_a_dependency_is_repeated_with_the_env_that_its_recipe_names_and_no_more() -> None:
    entry = dependency(
        tags="get,y,_v", size="7", version="2", env={"CM_Y_MODE": "fast"}, const={"CM_K": "k", "CM_J": "j"}
    )
    env = {
        "CM_DIR": "/a b",
        "CM_DIRECTORY": "/no",
        "CM_OTHER": "no",
        "CM_K": "k",
        "+PATH": ["/bin/a", "/bin/b"],
        "CM_Y_TOKEN": "s3cret",
    }
    asked = dependency_request(entry, parent(env=env), "deps")
    asked = asked._replace(recursive_overrides={"python": {"name": "mine"}}, state={"docker": {"x": 1}})
    line = rerun_line(asked, recipe(), ['cp "$CM_DIR"', "i['env']['CM_Y_MODE']; CM_Y_TOKEN; CM_K"])
    assert shlex.split(line.text)[3:] == [
        "--tags=get,y,_v", "--version=2", "--size=7", "--adr.python.name=mine", "--env.+PATH,=/bin/a,/bin/b",
        "--env.CM_DIR=/a b", "--env.CM_Y_MODE=fast", "--const.CM_K=k",
    ]  # fmt: skip
    assert line.left_out == ("--env.CM_Y_TOKEN (a secret)", "state docker")
    assert "s3cret" not in line.text


def test_what_the_host_is_like_is_left_out_where_the_recipe_finds_it_out_itself() -> None:
    asked = request("get,x", env={"CM_HOST_OS_TYPE": "linux", "+CM_HOST_PATHS": ["/lib"]})
    assert "--env.CM_HOST_OS_TYPE=linux" in rerun(asked, "CM_HOST_OS_TYPE")
    assert "CM_HOST_PATHS" not in rerun(asked, "CM_HOST_OS_TYPE")
    assert "--env.+CM_HOST_PATHS,=/lib" in rerun(asked, "CM_HOST_PATHS")
    assert "CM_HOST" not in rerun(asked, "CM_HOST_OS_TYPE", deps=[{"tags": "detect,os"}])


def test_a_flag_that_became_env_is_written_once() -> None:
    asked = configured({}, "get,x", {"input": "in put"}).request
    assert rerun(asked, "CM_INPUT") == "cm run script --tags=get,x '--input=in put'"

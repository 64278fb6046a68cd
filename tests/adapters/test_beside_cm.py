"""Ours beside a repository that brings an engine of its own with the same UIDs, as mlcommons@cm4mlops does."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import CHECKOUT, PATIENCE_S, Finished, TemporaryHome, copy_engine, write_recipe

OTHER_ENGINE = """
from cmind.automation import Automation

class CAutomation(Automation):
    def __init__(self, cmind, automation_file):
        super().__init__(cmind, __file__)

    def run(self, i):
        print("the other engine ran")
        return {"return": 0, "engine": "other"}

    def show(self, i):
        print("the other engine ran")
        return {"return": 0, "engine": "other"}
"""


@pytest.fixture
def other(home: TemporaryHome) -> Path:
    """A repository with script and cache automations of CM's UIDs and one recipe; not registered yet."""
    repo = home.folder / "other"
    for alias, uid in (("script", "5b4e0237da074764"), ("cache", "541d6f712a6b464e")):
        folder = repo / "automation" / alias
        folder.mkdir(parents=True)
        meta = {"alias": alias, "uid": uid, "automation_alias": "automation", "automation_uid": "bbeb15d8f0a944a4"}
        (folder / "_cm.json").write_text(json.dumps(meta))
        (folder / "module.py").write_text(OTHER_ENGINE)
    (repo / "cmr.yaml").write_text('alias: someone@other\nuid: "1123456789abcdef"\n', encoding="utf-8")
    write_recipe(repo, "other-recipe", {"new_env_keys": ["CM_OTHER"]}, run_sh='echo "CM_OTHER=1" >tmp-run-env.out')
    home.recipe("our-recipe", {"deps": [{"tags": "other,recipe"}], "new_env_keys": ["CM_OTHER"]})
    return repo


@pytest.fixture
def ours(home: TemporaryHome) -> Path:
    """This checkout's engine, without its recipes."""
    return copy_engine(home.folder / "ours")


def documented_commands() -> list[str]:
    """The blocks of commands in the section of docs/compat.md that this file tests."""
    text = (CHECKOUT / "docs" / "compat.md").read_text(encoding="utf-8")
    section = text.partition("## Together with CM's own recipes\n")[2].partition("\n## ")[0]
    return re.findall(r"```bash\n(.*?)```", section, re.DOTALL)


def execute(home: TemporaryHome, checkout: Path, commands: str, **env: str) -> None:
    """Runs a block of commands in a checkout, as a user would; each must succeed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(
        ["bash", "-euc", commands],
        cwd=checkout,
        env=home.process_env({**env, "PATH": path}),
        stdin=subprocess.DEVNULL,
        check=True,
        timeout=PATIENCE_S,
    )


def is_ours(done: Finished) -> bool:
    """Whether this engine ran both recipes: ours needs the one of the other repository."""
    assert done.code == 0, done.stderr + done.stdout
    assert "the other engine ran" not in done.stdout
    return bool(done.answer["new_env"] == {"CM_OTHER": "1"})


def test_the_other_engine_runs_when_it_was_registered_first(home: TemporaryHome, other: Path, ours: Path) -> None:
    home.register(other, ours, home.repo)
    assert "the other engine ran" in home.cm("run", "script", "--tags=our,recipe").stdout


@pytest.mark.parametrize("has_index", [True, False])
def test_the_documented_commands_make_recipes_of_a_repository_with_an_engine_run_here(
    home: TemporaryHome, other: Path, ours: Path, has_index: bool
) -> None:
    home.register(other, home.repo)
    if has_index:
        assert "the other engine ran" in home.cm("run", "script", "--tags=our,recipe").stdout
    commands = documented_commands()[0]
    assert len([line for line in commands.splitlines() if line.strip()]) <= 2
    execute(home, ours, commands)
    assert is_ours(home.run_cm("our,recipe"))
    assert home.run_cm("other,recipe").code == 0
    assert "the other engine ran" not in home.cm("show", "cache").stdout


def test_the_documented_command_makes_a_copied_script_folder_run_here(
    home: TemporaryHome, other: Path, ours: Path
) -> None:
    copied = home.folder / "copied"
    shutil.copytree(other / "script", copied / "script")
    home.register(ours, home.repo)
    (command,) = documented_commands()[1].strip().splitlines()
    execute(home, ours, command, RECIPES=str(copied))
    assert is_ours(home.run_cm("our,recipe"))
    found = home.cm("find", "script", "--tags=other,recipe").stdout.strip()
    assert found == str(copied / "script" / "other-recipe")


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize("words", [("run", "script", "--tags=our,recipe", "--quiet"), ("show", "cache")])
def test_which_engine_answers_is_never_a_surprise(
    home: TemporaryHome, other: Path, ours: Path, words: tuple[str, ...], has_index: bool, is_first: bool
) -> None:
    """The table of the section: with CM's index the first engine, without it a refusal; by name ours or the mend."""
    home.register(*((ours, other) if is_first else (other, ours)), home.repo)
    env = {} if has_index else {"CM_INDEX": "no"}
    plain = home.cm(*words, env=env)
    by_name = home.cm(words[0], "crowdperf:" + words[1], *words[2:], env=env)
    if not has_index:
        assert plain.code == 2
        assert "ambiguity because several automations" in plain.stdout + plain.stderr
    else:
        assert ("the other engine ran" in plain.stdout) is not is_first
    assert "the other engine ran" not in by_name.stdout
    assert by_name.code == (0 if is_first else 1), by_name.stderr + by_name.stdout
    if not is_first:
        assert by_name.stderr.count("cm use crowdperf:script") == 1
        assert str(other) in by_name.stderr


def test_one_command_makes_all_recipes_run_here(home: TemporaryHome, other: Path, ours: Path) -> None:
    home.register(other, ours, home.repo)
    home.cm("show", "repo")  # makes CM's index, with the other engine in it
    done = home.cm("use", "crowdperf:script")
    assert done.code == 0, done.stderr + done.stdout
    assert str(other) in done.stderr
    assert is_ours(home.run_cm("our,recipe"))
    assert home.cm("find", "script", "--tags=other,recipe").stdout.strip() == str(other / "script" / "other-recipe")
    assert home.cm("show", "cache").code == 0


def test_the_command_may_be_given_again_and_without_another_engine(
    home: TemporaryHome, other: Path, ours: Path
) -> None:
    home.register(home.repo, ours)
    for _ in range(2):
        assert home.cm("use", "crowdperf:script").code == 0
    assert json.loads((home.path / "repos.json").read_text()) == [str(ours), str(home.repo)]


@pytest.mark.parametrize("words", [("run", "crowdperf:script", "--tags=our,recipe"), ("show", "crowdperf:cache")])
def test_asked_for_by_name_behind_the_other_it_says_which_command_mends_it(
    home: TemporaryHome, other: Path, ours: Path, words: tuple[str, ...]
) -> None:
    home.register(other, ours, home.repo)
    done = home.cm(*words)
    assert done.code == 1
    assert str(other) in done.stderr
    assert "cm use crowdperf:script" in done.stderr
    assert "the other engine ran" not in done.stdout


def test_first_in_the_list_it_stays_first_when_another_engine_is_added(
    home: TemporaryHome, other: Path, ours: Path
) -> None:
    home.register(ours, home.repo)
    assert home.cm("import", "repo", f"--path={other}").code == 0
    assert json.loads((home.path / "repos.json").read_text())[-1] == str(other)
    assert is_ours(home.run_cm("our,recipe"))


def test_a_recipe_that_calls_cm_itself_stays_on_this_engine(home: TemporaryHome, other: Path, ours: Path) -> None:
    call = """
    def preprocess(i):
        asked = {"action": "run", "automation": "script", "tags": "other,recipe", "quiet": True}
        r = i["automation"].cmind.access(asked)
        i["env"]["CM_INNER"] = r.get("engine", "ours") + r["new_env"].get("CM_OTHER", "")
        return {"return": 0}
    """
    write_recipe(other, "calls-cm", {"new_env_keys": ["CM_INNER"]}, customize=call)
    home.register(ours, other, home.repo)
    done = home.run_cm("calls,cm")
    assert done.code == 0, done.stderr
    assert done.answer["new_env"] == {"CM_INNER": "ours1"}


def test_without_index_cmind_refuses_and_the_name_of_the_repository_helps(
    home: TemporaryHome, other: Path, ours: Path
) -> None:
    home.register(ours, other, home.repo)
    off = {"CM_INDEX": "no"}
    assert "ambiguity because several automations" in home.run_cm("our,recipe", env=off).stdout
    done = home.cm("run", "crowdperf:script", "--tags=our,recipe", "--quiet", "--out=json", env=off)
    assert is_ours(done)
    told = home.cm("use", "crowdperf:script", env=off)
    assert told.code == 1
    assert "CM_INDEX" in told.stderr


def test_a_repository_with_recipes_and_no_engine_just_works(home: TemporaryHome, other: Path, ours: Path) -> None:
    shutil.rmtree(other / "automation")
    home.register(other, ours, home.repo)
    assert is_ours(home.run_cm("our,recipe"))


def test_a_repository_in_front_of_a_recipes_name_picks_that_one(home: TemporaryHome, other: Path, ours: Path) -> None:
    for repo, value in ((other, "other"), (home.repo, "ours")):
        write_recipe(repo, "same-name", {"env": {"CM_FROM": value}, "new_env_keys": ["CM_FROM"]})
    home.register(ours, other, home.repo)
    for repo, value in (("someone@other", "other"), ("recipes", "ours")):
        done = home.cm("run", "script", f"{repo}:same-name", "--quiet", "--out=json")
        assert done.code == 0, done.stderr + done.stdout
        assert done.answer["new_env"] == {"CM_FROM": value}
    done = home.cm("run", "script", "recipes:other-recipe", "--quiet")
    assert done.code == 1
    assert "it is in: someone@other" in done.stderr


@pytest.mark.parametrize("words", [(), ("--quiet",)])
def test_a_recipe_gets_the_dependencies_of_its_own_repository(
    home: TemporaryHome, other: Path, ours: Path, words: tuple[str, ...]
) -> None:
    """As where its repository is the only one: nobody is asked, and nobody gets another repository's env keys."""
    for repo, value in ((other, "other"), (home.repo, "ours")):
        write_recipe(repo, "same-name", {"env": {"CM_FROM": value}, "new_env_keys": ["CM_FROM"]})
        asks = {"tags": ["asks", value], "deps": [{"tags": "same,name"}], "new_env_keys": ["CM_FROM"]}
        write_recipe(repo, f"asks-{value}", asks)
    home.register(ours, other, home.repo)
    for value in ("other", "ours"):
        done = home.cm("run", "script", f"--tags=asks,{value}", "--out=json", *words)
        assert done.code == 0, done.stderr + done.stdout
        assert done.answer["new_env"] == {"CM_FROM": value}
        why = home.cm("explain", "script", f"--tags=asks,{value}", "--step=same-name")
        assert "is not in the repository of the requesting recipe" in why.stdout, why.stdout + why.stderr


def test_two_copies_of_crowdperf_are_named_with_the_mend(home: TemporaryHome) -> None:
    copy = copy_engine(home.folder / "copy")
    home.register(copy_engine(home.folder / "first"), copy, home.repo)
    done = home.cm("run", "script", "--tags=our,recipe", "--quiet")
    assert done.code == 1
    assert str(copy) in done.stderr
    assert "repos.json" in done.stderr


def test_the_registration_of_a_checkout_puts_it_first(home: TemporaryHome, other: Path) -> None:
    home.register(other, home.repo)
    register = CHECKOUT / "src" / "crowdperf" / "call" / "cm_home.py"
    subprocess.run([sys.executable, str(register), str(home.path), str(CHECKOUT)], check=True)
    assert is_ours(home.run_cm("our,recipe"))


def test_a_python_package_that_cmind_puts_first_is_named(home: TemporaryHome, other: Path, ours: Path) -> None:
    packages = home.folder / "packages"
    packages.mkdir()
    other.rename(packages / "cmother")
    home.register(ours, home.repo)
    as_package = {"PYTHONPATH": str(packages)}
    (packages / "cmother" / "__init__.py").touch()
    done = home.cm("use", "crowdperf:script", env=as_package)
    assert done.code == 1
    assert "CM_CORE_SKIP_INTERNAL_REPOS" in done.stderr
    mended = {**as_package, "CM_CORE_SKIP_INTERNAL_REPOS": "yes"}
    assert home.cm("use", "crowdperf:script", env=mended).code == 0

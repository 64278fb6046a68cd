"""The packages of a repository (``python: src`` in its cmr.yaml): hooks and scripts of its recipes find their own."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome, uid_of, write_recipe
from recipe_engine.actions.adapter import Home
from recipe_engine.actions.run import run_action
from recipe_engine.disk.repos import RepoInfo
from recipe_engine.rules.errors import HookFailed, MetaError, ScriptFailed
from recipe_engine.running.shell import package_names

HOOK = """
from @PACKAGE@ import word

def preprocess(i):
    from @PACKAGE@.deep import late
    i["env"]["CM_WORDS"] = word.WORD + "," + late.WORD
    return {"return": 0}
"""
SCRIPT = 'echo "CM_IN_SCRIPT=$(python3 -c "import @PACKAGE@.word as w; print(w.WORD)")" > tmp-run-env.out\n'


def package_of(repo: Path, word: str, package: str) -> None:
    """Writes ``src/<package>`` with a module and a folder, which both hold a word."""
    deep = repo / "src" / package / "deep"
    deep.mkdir(parents=True, exist_ok=True)
    for folder in (deep, deep.parent):
        (folder / "__init__.py").touch()
    (deep.parent / "word.py").write_text(f"WORD = {word!r}\n")
    (deep / "late.py").write_text("from ..word import WORD as OTHER\nWORD = 'late-' + OTHER\n")


def recipe_of(repo: Path, alias: str, package: str, **meta: Any) -> Path:
    """A recipe whose hook and script import the package."""
    keys = {"new_env_keys": ["CM_WORDS", "CM_IN_SCRIPT"], **meta}
    hook, script = HOOK.replace("@PACKAGE@", package), SCRIPT.replace("@PACKAGE@", package)
    return write_recipe(repo, alias, keys, customize=hook, run_sh=script)


@pytest.fixture
def packed(home: TemporaryHome) -> TemporaryHome:
    """A home whose repository has the package ``inhouse``, and get-x, which imports it."""
    package_of(home.repo, "first", "inhouse")
    home.write_cmr(python="src")
    recipe_of(home.repo, "get-x", "inhouse")
    return home


def test_hooks_and_scripts_of_a_repository_import_its_packages(packed: TemporaryHome) -> None:
    first = list(sys.path)
    found = packed.run("get,x")["new_env"]
    assert found == {"CM_WORDS": "first,late-first", "CM_IN_SCRIPT": "first"}
    own = str(packed.repo / "src")
    assert sys.path.index(own) >= len([place for place in first if place in sys.path and not place.endswith("/src")])
    packed.run("get,x")
    assert sys.path.count(own) == 1


def test_the_command_does_the_same(packed: TemporaryHome) -> None:
    done = packed.run_cm("get,x", env={"PYTHONPATH": "/elsewhere"})
    assert done.answer["new_env"] == {"CM_WORDS": "first,late-first", "CM_IN_SCRIPT": "first"}, done.stderr


def test_a_script_finds_the_packages_behind_what_it_is_given(packed: TemporaryHome) -> None:
    write_recipe(
        packed.repo,
        "show-path",
        {"env": {"+PYTHONPATH": ["/given"]}, "new_env_keys": ["CM_FOUND"]},
        run_sh='echo "CM_FOUND=$PYTHONPATH" > tmp-run-env.out',
    )
    done = packed.run_cm("show,path", env={"PYTHONPATH": "/elsewhere"})
    assert done.answer["new_env"]["CM_FOUND"] == f"/given:/elsewhere:{packed.repo}/src"


def test_a_recipe_of_another_repository_gets_none_and_may_depend_on_one_that_has(
    packed: TemporaryHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    other = tmp_path / "other"
    write_recipe(
        other,
        "use-x",
        {"deps": [{"tags": "get,x"}], "new_env_keys": ["CM_*"]},
        run_sh='echo "CM_FOUND=${PYTHONPATH:-none}" > tmp-run-env.out',
    )
    (other / "cmr.yaml").write_text(f'alias: other\nuid: "{uid_of("other")}"\n')
    packed.register(packed.repo, other)
    repos = [*packed.engine_home.repos, RepoInfo(other, "other", uid_of("other"))]
    found = run_action(
        {"tags": "use,x", "quiet": True}, Home(repos, packed.path, packed.path / "repos" / "local"), None
    )
    assert found["new_env"]["CM_WORDS"] == "first,late-first"
    assert found["new_env"]["CM_FOUND"] == "none"


class Pair:
    """Two repositories with a package of the same name, each with its recipe; the second one depends on the first."""

    def __init__(self, folder: Path, package: str) -> None:
        self.path = folder / "home"
        self.repos = []
        for name, deps in (("first", []), ("second", [{"tags": "get,first"}]), ("third", [{"tags": "get,second"}])):
            repo = folder / name
            package_of(repo, name, package)
            recipe_of(repo, f"get-{name}", package, deps=deps)
            self.repos.append(RepoInfo(repo, name, uid_of(name), python="src"))

    def run(self, tags: str) -> dict[str, Any]:
        """What a recipe gives."""
        made = run_action(
            {"tags": tags, "quiet": True}, Home(self.repos, self.path, self.path / "repos" / "local"), None
        )
        found: dict[str, Any] = made["new_env"]
        return found


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """Repositories that all have the package ``twice``."""
    monkeypatch.chdir(tmp_path)
    return Pair(tmp_path, "twice")


def test_of_two_packages_of_one_name_each_hook_and_script_gets_its_own(pair: Pair) -> None:
    for name in ("first", "second", "first", "third", "second"):
        assert pair.run(f"get,{name}") == {"CM_WORDS": f"{name},late-{name}", "CM_IN_SCRIPT": name}


def test_a_repository_that_is_gone_by_now_has_no_packages(packed: TemporaryHome) -> None:
    packages = packed.repo / "src"
    assert package_names(str(packages)) == {"inhouse"}
    shutil.rmtree(packages)
    assert package_names(str(packages)) == set()


def test_a_hook_gets_its_own_package_back_after_it_ran_another_recipe(pair: Pair) -> None:
    hook = """
    from twice import word

    def preprocess(i):
        first = word.WORD
        i["env"]["CM_OTHER"] = i["automation"].cmind("get,first")["CM_WORDS"]
        from twice.deep import late
        from twice import word as again
        assert again is word
        i["env"]["CM_WORDS"] = first + "," + late.WORD
        return {"return": 0}
    """
    write_recipe(pair.repos[1].path, "call-first", {"new_env_keys": ["CM_WORDS", "CM_OTHER"]}, customize=hook)
    home = Home(pair.repos, pair.path, pair.path / "repos" / "local")
    found = run_action({"tags": "call,first", "quiet": True}, home, pair.run)["new_env"]
    assert found == {"CM_WORDS": "second,late-second", "CM_OTHER": "first,late-first"}


def test_a_package_of_another_repository_that_has_a_name_of_its_own_stays_importable(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    package_of(one, "one", "only_in_one")
    package_of(two, "two", "only_in_two")
    recipe_of(one, "get-one", "only_in_one")
    deps = [{"tags": "get,one"}]
    hook = "def preprocess(i):\n    from only_in_one import word\n    return {'return': 0, 'version': word.WORD}\n"
    write_recipe(two, "use-one", {"deps": deps, "cache": True}, customize=hook)
    repos = [RepoInfo(repo, repo.name, uid_of(repo.name), python="src") for repo in (one, two)]
    home = Home(repos, tmp_path / "home", tmp_path / "home" / "repos" / "local")
    made = run_action({"tags": "use,one", "quiet": True}, home, None)
    assert made["return"] == 0, made


def test_a_package_that_python_finds_elsewhere_first_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair, installed = Pair(tmp_path, "installed_too"), tmp_path / "site-packages"
    package_of(installed, "wrong", "installed_too")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(installed / "src"), *sys.path])
    with pytest.raises(HookFailed) as caught:
        pair.run("get,first")
    assert caught.value.message == (
        f"get-first: Python finds the package installed_too in {installed}/src, before that of the recipe's repository "
        f"in {tmp_path}/first/src"
    )
    assert caught.value.hint == "remove it with pip uninstall, or remove its folder from PYTHONPATH"


def test_a_package_that_is_a_link_to_the_one_that_python_finds_first_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So does the repository of an installed wheel have its packages."""
    pair, installed = Pair(tmp_path, "in_a_wheel"), tmp_path / "site-packages"
    installed.mkdir()
    (tmp_path / "first/src/in_a_wheel").rename(installed / "in_a_wheel")
    (tmp_path / "first/src/in_a_wheel").symlink_to(installed / "in_a_wheel")
    monkeypatch.setattr(sys, "path", [str(installed), *sys.path])
    monkeypatch.setenv("PYTHONPATH", str(installed))
    pair.run("get,first")  # raises where it is refused


def test_a_package_that_a_script_would_find_elsewhere_first_is_refused(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}/second/src")
    with pytest.raises(ScriptFailed, match=f"twice in {tmp_path}/second/src, before that .* in {tmp_path}/first/src$"):
        pair.run("get,first")


@pytest.mark.parametrize(
    "python", ["/tmp", "..", "src/../..", "src/../src", "", ".", 5, True, ["src"], "missing", "cmr.yaml", "way-out"]
)
def test_what_is_no_folder_of_the_repository_is_refused(packed: TemporaryHome, python: object) -> None:
    (packed.repo / "way-out").symlink_to(packed.work)
    packed.write_cmr(python=python)
    with pytest.raises(MetaError) as caught:
        packed.run("get,x")
    where = f"{packed.repo}/cmr.yaml: python: expected a folder inside the repository, found {python!r}"
    assert caught.value.message == where
    done = packed.run_cm("get,x")
    assert done.code == 1
    assert (done.stdout + done.stderr).count("expected a folder inside the repository") == 1, done
    assert "python: src" in done.stdout + done.stderr

"""The actions of ``cm ... script`` besides run, on the console."""

import json
from pathlib import Path

import pytest
from helpers import Finished, TemporaryHome


def folders(done: Finished) -> list[Path]:
    """The folders printed on stdout, without the remarks of cmind itself on its index."""
    return [Path(line) for line in done.stdout.splitlines() if line.startswith("/")]


@pytest.fixture
def filled(home: TemporaryHome) -> TemporaryHome:
    """A home with two recipes."""
    home.recipe(
        "get-x",
        {
            "input_description": {"size": {"desc": "how big", "choices": ["1", "2"]}},
            "input_mapping": {"size": "CM_SIZE"},
            "new_env_keys": ["CM_SIZE"],
            "tests": {"run_inputs": [{"size": "1"}, {"size": "bad"}]},
        },
        run_sh='test "$CM_SIZE" != bad',
    )
    home.recipe("get-y")
    return home


# --- help and version ---


@pytest.mark.parametrize(
    "words",
    [
        ("help", "script", "get-x"),
        ("run", "script", "get-x", "--help"),
        ("run", "script", "--tags=get,x", "-h"),
        ("run", "script", "get x", "--help"),
    ],
)
def test_help_of_a_recipe_is_printed_alone(filled: TemporaryHome, words: tuple[str, ...]) -> None:
    done = filled.cm(*words)
    assert done.code == 0, done.stderr
    assert done.stdout.startswith("get-x: get-x\n"), done.stdout
    assert "--size=  " in done.stdout
    assert "one of: 1, 2" in done.stdout
    assert "Python API" not in done.stdout


def test_help_of_a_recipe_is_one_json_object_for_programs(filled: TemporaryHome) -> None:
    answer = filled.cm("help", "script", "get-x", "--out=json").answer
    assert answer["recipe"]["inputs"][0]["choices"] == ["1", "2"]


def test_help_without_a_recipe_lists_the_actions(filled: TemporaryHome) -> None:
    for words in (("help", "script"), ("run", "script", "--help")):
        done = filled.cm(*words)
        assert done.code == 0
        assert "  plan       Show what a run would do" in done.stdout
        names = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")}
        assert {"run", "plan", "test", "doc", "native-run", "help", "find", "rm"} <= names
        assert {"record", "reproduce", "diff"} <= names
        assert not {"docker", "gui", "describe", "search", "delete"} & names


@pytest.mark.parametrize(
    ("words", "beginning"),
    [
        (("runs", "script", "--help"), "cm runs script [ID] [--last=N] [-v]\n"),
        (("help", "script", "runs"), "cm runs script [ID] [--last=N] [-v]\n"),
        (("find", "script", "-h"), "cm find script [NAME] "),
        (("plan", "script", "--tags=get,x", "--help"), "cm plan script --tags=TAGS "),
        (("gc", "cache", "--help"), "cm gc cache [--dry-run] "),
        (("help", "cache", "show"), "cm show cache [UID] "),
        (("rm", "cache", "--help"), "cm rm cache UID "),
        (("unpin", "cache", "--help"), "cm unpin cache "),
    ],
)
def test_each_action_prints_its_own_help_and_does_nothing(
    filled: TemporaryHome, words: tuple[str, ...], beginning: str
) -> None:
    done = filled.cm(*words)
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith(beginning)
    assert "Python API" not in done.stdout


def test_the_actions_of_the_cache_are_listed(filled: TemporaryHome) -> None:
    filled.cm("version", "core")
    done = filled.cm("help", "cache")
    assert done.stdout.startswith("cm ACTION cache [UID] [--tags=...]\n\n  explain Show what made an entry")
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_help_of_tags_that_fit_several_recipes_is_that_of_the_one_that_would_run(filled: TemporaryHome) -> None:
    filled.recipe("get-first", {"tags": ["get", "first"], "tags_help": "get first"})
    filled.recipe("get-first-too", {"tags": ["get", "first", "too"], "sort": -1})
    filled.cm("version", "core")
    assert filled.cm("run", "script", "--tags=get,first", "--help").stdout.startswith("get-first: ")
    asked = filled.cm("run", "script", "--tags=first", "--help")
    assert "get-first-too" in asked.stderr, "a run would ask, too"
    assert filled.cm("run", "script", "--tags=first", "--help", "--quiet").stdout.startswith("get-first-too: ")


def test_help_of_an_unknown_recipe_names_the_nearest(filled: TemporaryHome) -> None:
    done = filled.cm("help", "script", "get-z")
    assert done.code == 1
    assert "get-x" in done.stderr


def test_version_is_that_of_the_engine(home: TemporaryHome) -> None:
    done = home.cm("version", "script")
    assert done.code == 0
    assert done.stdout.splitlines()[-1].startswith("crowdperf ")


# --- -j ---


@pytest.mark.parametrize("flag", ["-j", "--json", "--out=json"])
def test_every_way_to_ask_for_json_gives_one_object(filled: TemporaryHome, flag: str) -> None:
    done = filled.cm("run", "script", "get-x", "--size=2", flag)
    assert done.code == 0
    assert done.answer["new_env"] == {"CM_SIZE": "2"}
    assert "get-x: done" in done.stderr
    failed = filled.cm("run", "script", "get-x", "--size=bad", flag)
    assert failed.code == failed.answer["return"] == 2


# --- test, doc, prepare, native-run ---


def test_the_tests_of_a_recipe_run_and_their_failure_is_the_exit_code(filled: TemporaryHome) -> None:
    assert filled.cm("test", "script", "get-x", "--test_input_index=1").code == 0
    done = filled.cm("test", "script", "get-x")
    assert done.code == 2
    assert "1 of 2 tests failed: get-x test 2" in done.stderr
    assert "Traceback" not in done.stderr


def test_pages_are_written_below_the_current_folder(filled: TemporaryHome) -> None:
    assert filled.cm("doc", "script", "get-x", "--output_dir=pages").code == 0
    assert (filled.work / "pages" / "get-x" / "README.md").is_file()


def test_prepare_and_native_run_are_there(filled: TemporaryHome) -> None:
    assert filled.cm("prepare", "script", "get-x", "--size=bad").code == 0
    done = filled.cm("native-run", "script", "--command=echo $A", "--env.A=x y")
    assert done.code == 0
    assert "x y" in done.stdout
    assert filled.cm("native-run", "script", "--command=exit 4").code == 2


@pytest.mark.parametrize("action", ["docker", "dockerfile", "gui"])
def test_an_action_that_is_not_there_is_refused_with_what_to_use(filled: TemporaryHome, action: str) -> None:
    done = filled.cm(action, "script", "get-x", "--out=json")
    assert done.code == 1
    assert f"cm {action} script" in done.answer["error"]
    assert "hint:" in done.answer["error"]
    assert "Traceback" not in done.stderr


def test_flags_for_containers_are_told_to_have_no_effect(filled: TemporaryHome) -> None:
    done = filled.cm("run", "script", "get-x", "--docker_it", "--docker_cm_repo=x")
    assert done.code == 0
    assert "--docker_it has no effect" in done.stderr
    assert "--docker_cm_repo has no effect" in done.stderr


def test_an_input_that_nobody_reads_is_named(filled: TemporaryHome) -> None:
    filled.recipe("get-w", customize='def preprocess(i):\n    i["input"].get("only_here")\n    return {"return": 0}\n')
    told = filled.cm("run", "script", "get-w", "--zzzzzz=1", "--only_here=2", "--quiett", "--size=3").stderr
    assert "unknown input --zzzzzz for recipe get-w, so it has no effect" in told
    assert "unknown input --quiett for recipe get-w, did you mean --quiet?" in told
    assert "only_here" not in told


# --- cmind's general actions ---


def test_recipes_are_found_by_pattern_and_repository(filled: TemporaryHome) -> None:
    x, y = filled.repo / "script" / "get-x", filled.repo / "script" / "get-y"
    assert folders(filled.cm("find", "script", "get-?", "-v")) == [x, y]
    assert folders(filled.cm("ls", "script", "recipes:get-x")) == [x]
    assert folders(filled.cm("search", "script", "recipes:get-*", "--tags=y")) == [y]
    assert folders(filled.cm("find", "script", "crowdperf:get-x")) == []
    assert folders(filled.cm("find", "script", "0123456789abcdef:*", "-v")) == [x, y]


def test_several_recipes_are_listed_a_line_each_and_one_by_its_folder(filled: TemporaryHome) -> None:
    filled.recipe("get-long", {"name": "Gets " + "much " * 30})
    *recipes, blank, total = filled.cm("find", "script", "recipes:get-*").stdout.splitlines()
    assert [line.split()[0] for line in recipes] == ["get-long", "get-x", "get-y"]
    assert recipes[0].startswith("get-long                      get,long: Gets much much ")
    assert (len(recipes[0]), recipes[0][-1], blank) == (100, "…", "")
    assert total.startswith("3 recipes. cm help script NAME")
    one = filled.cm("find", "script", "--tags=get,long")
    assert one.stdout == f"{filled.repo / 'script' / 'get-long'}\n"
    assert "get,long: Gets much" in one.stderr
    answer = filled.cm("find", "script", "--tags=get", "--out=json").answer
    assert sorted(answer) == ["recipes", "return"]  # and no objects of CM
    rows = answer["recipes"]
    assert {(row["alias"], row["tags"], row["repo"]) for row in rows} >= {("get-x", "get,x", "recipes")}


def test_a_search_that_finds_nothing_says_so_with_near_tags(filled: TemporaryHome) -> None:
    filled.recipe("get-plots", {"tags": ["get", "plots"]})
    filled.cm("version", "core")
    done = filled.cm("find", "script", "--tags=plot")
    assert (done.code, done.stdout) == (0, "")
    assert "no recipe has all the tags 'plot'" in done.stderr
    assert "close ones: plots" in done.stderr
    unnamed = filled.cm("find", "script", "get-q*")
    assert "no recipe is called 'get-q*'" in unnamed.stderr


def test_a_hook_gets_the_metadata_of_what_it_finds(filled: TemporaryHome) -> None:
    """cmind's own actions read meta and original_meta of each item of the list; it is loaded when it is looked at."""
    hook = """
        def preprocess(i):
            r = i["automation"].cmind.access({"action": "find", "automation": "script", "artifact": "get-x"})
            (found,) = r["list"]
            names = [meta["alias"] for meta in (found.meta, found.original_meta, found.repo_meta)]
            i["env"]["CM_FOUND"] = " ".join(names)
            return {"return": 0}
        """
    filled.recipe("ask", {"tags": ["ask"], "new_env_keys": ["CM_FOUND"]}, customize=hook)
    assert filled.run_cm("ask").answer["new_env"]["CM_FOUND"] == "get-x get-x recipes"


def test_a_recipe_is_loaded_copied_moved_and_removed(filled: TemporaryHome) -> None:
    root = filled.repo / "script"
    done = filled.cm("load", "script", "get-x")
    assert '"alias": "get-x"' in done.stdout
    assert filled.cm("cp", "script", "get-x", "recipes:get-copy").code == 0
    uids = {json.loads((root / alias / "_cm.json").read_text())["uid"] for alias in ("get-x", "get-copy")}
    assert len(uids) == 2
    assert filled.cm("mv", "script", "get-copy", "recipes:get-moved").code == 0
    assert not (root / "get-copy").exists()
    assert folders(filled.cm("find", "script", "get-moved")) == [root / "get-moved"]
    assert filled.cm("rm", "script", "get-moved", "-f").code == 0
    assert not (root / "get-moved").exists()
    assert (root / "get-x").exists()
    assert filled.cm("load", "script", "get-moved").code == 16


@pytest.mark.parametrize("words", [("get-x",), ("-f",), ("--tags=get",)])
def test_nothing_is_removed_by_accident(filled: TemporaryHome, words: tuple[str, ...]) -> None:
    done = filled.cm("rm", "script", *words)
    assert done.code == 1
    assert "hint:" in done.stderr
    assert "Traceback" not in done.stderr
    assert (filled.repo / "script" / "get-x").exists()


def test_a_recipe_is_not_removed_from_another_repository(filled: TemporaryHome) -> None:
    done = filled.cm("rm", "script", "crowdperf:get-x", "-f")
    assert done.code == 16
    assert (filled.repo / "script" / "get-x").exists()

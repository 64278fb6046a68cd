"""tools/without_room.py: each optional room can be deleted, and what stands against it is found."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from without_room import ROOMS, ROOT, VARIABLE, WORDS, Checkout, main, problems_of, remove_room, write_copy
from without_room_tests import Gone, facts_of, pruned_tests

GUARD = 'from crowdperf.kit.rooms import require_room\ndef plan(i):\n    require_room("web", "a", "b")\n'
FILES = {
    "src/crowdperf/kit/rooms.py": "def require_room(room, what, instead): ...\n",
    "src/crowdperf/kit/table.py": "X = 1\n",
    "src/crowdperf/store/__init__.py": "",
    "src/crowdperf/web/pages.py": "from crowdperf.store import x\n",
    "script/serve-it/_cm.yaml": "alias: serve-it\ntags: [serve, it]\ntags_help: serve it\n"
    "deps: [{tags: 'get,server'}]\n",
    "script/serve-it/customize.py": "from . import inner\n",
    "script/serve-it/inner.py": "def f():\n    from crowdperf.web import pages\n",
    "script/get-server/_cm.yaml": "alias: get-server\ntags: [get, server]\n",
    "script/export-it/_cm.yaml": "alias: export-it\ntags: [export, it]\n",
    "script/export-it/customize.py": GUARD,
    "script/export-it/run.sh": "python3 -m crowdperf.web.pages\n",
    "script/export-it/pages.py": "import crowdperf.web.pages\n",
    "script/show-it/_cm.yaml": "alias: show-it\ntags: [show, it]\n",
    "script/show-it/run.sh": "python3 -m crowdperf.web.pages\n",
    "script/show-it/customize.py": "",
    "tests/test_it.py": "from crowdperf.web import pages\nROW = 1\n"
    "def test_a():\n    pages.x\ndef test_b():\n    ROW\n",
    "tools/make_page.py": "def text(): load('serve-it')\ndef other(): ...\n",
    "tests/test_page.py": "import make_page\ndef test_a(): make_page.text()\ndef test_b(): make_page.other()\n",
    "tests/test_serve.py": "def test_a():\n    load('serve-it')\n",
    "README.md": "Serve: `cm run script --tags=serve,it`.\n\n- [web](src/crowdperf/web/)\n\nMore.\n",
}


def made(folder: Path, **more: str) -> Checkout:
    for name, text in {**FILES, **more}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return Checkout(folder)


@pytest.fixture(scope="module")
def checkout() -> Checkout:
    return Checkout()


@pytest.mark.parametrize("room", ROOMS)
def test_nothing_that_is_left_needs_an_optional_room(checkout: Checkout, room: str) -> None:
    if not checkout.below(f"src/crowdperf/{room}"):
        pytest.skip("it was deleted")
    removal = remove_room(checkout, room)
    assert problems_of(removal) == []
    assert not [name for name in removal.left if name.startswith(f"src/crowdperf/{room}/")]
    assert {"src/crowdperf/gate/gate.py", "script/run-mlperf-inference/customize.py"} <= set(removal.left)


@pytest.mark.full
@pytest.mark.parametrize("room", ROOMS)
def test_the_fast_tests_of_the_rest_pass_in_a_copy_without_the_room(room: str) -> None:
    assert main([room, "--run"]) == 0


def test_a_copy_has_the_links_to_folders(tmp_path: Path) -> None:
    made(tmp_path / "checkout")
    (tmp_path / "checkout" / "tests" / "latest").symlink_to("../src")
    write_copy(remove_room(Checkout(tmp_path / "checkout"), "web"), tmp_path / "copy")
    assert (tmp_path / "copy" / "tests" / "latest").readlink() == Path("../src")


def test_what_belongs_to_a_room_follows_from_imports_and_dependencies(tmp_path: Path) -> None:
    removal = remove_room(made(tmp_path / "checkout"), "web")
    assert removal.recipes == {
        "serve-it": "its hooks import it",
        "get-server": "only serve-it used it",
        "show-it": "run.sh needs it",
    }
    assert (removal.programs, removal.others) == ({"script/export-it/pages.py"}, {"tests/test_serve.py"})
    assert removal.changed == {
        "tests/test_it.py": "ROW = 1\ndef test_b():\n    ROW\n",
        "tools/make_page.py": "def other(): ...\n",
        "tests/test_page.py": "import make_page\ndef test_b(): make_page.other()\n",
        "README.md": "\n\n\n\nMore.\n",
    }
    assert problems_of(removal) == []
    write_copy(removal, tmp_path / "copy")
    assert (tmp_path / "copy" / "README.md").read_text(encoding="utf-8") == "\n\n\n\nMore.\n"
    assert not (tmp_path / "copy" / "src" / "crowdperf" / "web").exists()


TESTS_OF_A_REFUSAL = """
import subprocess, sys
import pytest
from crowdperf.kit.rooms import MissingRoom, require_room
def answer(room="gone"):
    try:
        require_room(room, "x with _tiny", "take y")
    except MissingRoom as error:
        return {"return": 1, "error": str(error)}
def run(**more):
    words = [sys.executable, "-c", "import test_it; sys = test_it.sys; sys.exit(test_it.answer()['error'])"]
    return subprocess.run(words, capture_output=True, text=True, **more)
def test_skipped_the_answer_is_the_refusal():
    assert answer() == {"return": 0, "rows": ["x" * 200] * 20}
def test_skipped_a_process_answers_it():
    assert run().stderr == ""
def test_skipped_a_process_that_fails_with_it():
    run(check=True)
def test_skipped_it_is_the_cause():
    try:
        require_room("gone", "x", "y")
    except MissingRoom as error:
        raise KeyError("rows") from error
@pytest.fixture
def made():
    require_room("gone", "x", "y")
def test_skipped_its_fixture_needs_the_room(made): ...
def test_passed_it_expects_the_refusal():
    assert answer()["return"] == 1
def test_failed_it_met_the_refusal_and_fails_with_something_else():
    answer()
    assert 1 == 2
def test_failed_it_only_prints_the_refusal():
    print(answer())
    assert 1 == 2
def test_failed_another_room_was_refused():
    assert answer("other") == {"return": 0}
def test_failed_a_text_like_it():
    assert 1 == 2, "this checkout of crowdperf has no room"
"""


def test_only_a_test_that_fails_with_the_refusal_of_the_room_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS_OF_A_REFUSAL, encoding="utf-8")
    paths = os.pathsep.join([*(str(ROOT / name) for name in ("tools", "src")), str(tmp_path)])
    words = [sys.executable, "-m", "pytest", *WORDS, "-p", "no:cacheprovider", "-rA", str(tmp_path)]
    found = {**os.environ, "PYTHONPATH": paths, VARIABLE: "gone"}
    done = subprocess.run(words, cwd=tmp_path, env=found, capture_output=True, text=True, check=False)
    assert "4 failed, 1 passed, 5 skipped" in done.stdout, done.stdout
    for outcome in ("FAILED", "PASSED"):
        for line in (line for line in done.stdout.splitlines() if line.startswith(f"{outcome} ")):
            assert f"::test_{outcome.lower()}_" in line


def test_a_room_goes_with_the_optional_rooms_built_on_it(tmp_path: Path) -> None:
    assert remove_room(made(tmp_path), "store").rooms == {"store", "web"}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        (
            "src/crowdperf/kit/table.py",
            "def f():\n    from crowdperf.web import pages\n",
            "src/crowdperf/kit/table.py imports crowdperf.web.pages",
        ),
        (
            "src/crowdperf/kit/table.py",
            "WORDS = ['-m', 'crowdperf.web.pages']\n",
            "src/crowdperf/kit/table.py runs crowdperf.web.pages",
        ),
        (
            "tools/kit.py",
            "import importlib\nimportlib.import_module('crowdperf.web.pages')\n",
            "tools/kit.py runs crowdperf.web.pages",
        ),
        (
            "script/export-it/_cm.yaml",
            "alias: export-it\ntags: [export, it]\nvariations: {a: {deps: [{tags: 'serve,it'}]}}\n",
            "script/export-it/_cm.yaml depends on serve,it",
        ),
        (
            "script/export-it/_cm.yaml",
            "alias: export-it\nvariations: {b: {library: [crowdperf.kit.table, crowdperf.web.pages]}}\n",
            "script/export-it/_cm.yaml: library names crowdperf.web.pages",
        ),
    ],
    ids=[
        "import in a function",
        "module behind -m",
        "module that a tool loads",
        "dependency of a variation",
        "library of a variation",
    ],
)
def test_what_stands_against_it_is_found(tmp_path: Path, name: str, text: str, problem: str) -> None:
    assert problem in problems_of(remove_room(made(tmp_path, **{name: text}), "web"))


def test_a_test_goes_with_the_helper_or_fixture_that_needs_the_room() -> None:
    texts = {
        "tests/conftest.py": "from crowdperf.web import pages\nimport pytest\ndef site(): return pages\n",
        "tests/helper.py": "from crowdperf.web import pages\ndef a(): return pages\ndef b(): return 1\n",
        "tests/test_a.py": "from helper import a, b\ndef test_1(): a()\ndef test_2(): b()\ndef test_3(site): ...\n",
    }
    gone = Gone(frozenset({"web"}), frozenset(), frozenset())
    assert pruned_tests(texts, lambda name: facts_of(ast.parse(texts[name])), gone) == {
        "tests/conftest.py": "import pytest\n",
        "tests/helper.py": "def b(): return 1\n",
        "tests/test_a.py": "from helper import b\ndef test_2(): b()\n",
    }

"""tools/changed_tests.py: which tests a change reaches, what the limit leaves out, and what the quick core has."""

import re
import subprocess
import sys
from pathlib import Path

import changed_tests
import pytest
from changed_tests import House, area, choose, quick_core, reachable, within
from helpers import CHECKOUT

TEXTS = {
    "src/crowdperf/__init__.py": "",
    "src/crowdperf/kit/__init__.py": "",
    "src/crowdperf/kit/numbers.py": "",
    "src/crowdperf/kit/tables.py": "def f():\n    from . import numbers",
    "src/crowdperf/kit/words.json": "",
    "src/crowdperf/gate/__init__.py": "",
    "src/crowdperf/gate/rules.py": "import crowdperf.kit.numbers\nopen('limits.json')",
    "src/crowdperf/gate/report.py": "",
    "src/crowdperf/gate/limits.json": "",
    "src/crowdperf/harness/__main__.py": "from crowdperf.kit.tables import f",
    "src/crowdperf/harness/backends/__init__.py": "",
    "src/crowdperf/harness/backends/paced/backend.py": "",
    "automation/recipe_engine/rules/query.py": "",
    "automation/script/module.py": "",
    "script/get-thing/_cm.yaml": "alias: get-thing\ntags:\n- get\n- thing\n- detect\n",
    "script/get-thing/customize.py": "from crowdperf.gate import rules",
    "script/run-thing/_cm.yaml": "alias: run-thing\ntags: [run, thing]\n",
    "script/run-thing/run.sh": "python -m crowdperf.harness",
    "tools/counting.py": "",
    "tools/other.sh": "",
    "docs/howto/one.md": "",
    "LICENSE": "",
    "notes/what.bin": "",
    "tests/conftest.py": "",
    "tests/support/helpers.py": "from recipe_engine.rules import query",
    "tests/test_rooms.py": "ROOT / 'src'",
    "tests/adapters/test_cm_run.py": "import helpers",
    "tests/engine/test_query.py": "from recipe_engine.rules.query import parse",
    "tests/engine/test_own.py": "from helpers import home",
    "tests/docs/test_pages.py": "",
    "tests/kit/test_numbers.py": "from crowdperf.kit import numbers",
    "tests/gate/trees.py": "from crowdperf.gate.rules import x",
    "tests/gate/test_gate.py": "from trees import x",
    "tests/gate/data/log.txt": "",
    "tests/recipes/conftest.py": "",
    "tests/recipes/test_get_thing.py": "ALIAS = 'get-thing'",
    "tests/recipes/test_call.py": "home.cm('--tags=get,thing,_cuda')",
    "tests/recipes/test_all.py": "from helpers import recipe_metas",
    "tests/recipes/test_with_numpy.py": "from harness_libraries import need\nrun('run,thing')",
    "tests/harness/test_paced.py": "options = ['--backend=paced']\nload('backends', 'paced')",
    "tests/harness/test_runs.py": "[python, '-m', 'crowdperf.harness']",
    "tests/tools/test_counting.py": "import counting",
    "tests/tools/test_other.py": "PROGRAM / 'other.sh'",
}
HOUSE = House(TEXTS)


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("tests/kit/test_numbers.py", {"kit/test_numbers"}),
        (
            "src/crowdperf/kit/numbers.py",
            {"kit/test_numbers", "gate/test_gate", "recipes/test_get_thing", "recipes/test_call",
             "recipes/test_with_numpy", "harness/test_runs", "test_rooms"},
        ),
        ("src/crowdperf/gate/report.py", {"test_rooms"}),
        (
            "src/crowdperf/gate/limits.json",
            {"gate/test_gate", "recipes/test_get_thing", "recipes/test_call", "test_rooms"},
        ),
        ("src/crowdperf/harness/backends/paced/backend.py", {"harness/test_paced", "test_rooms"}),
        (
            "src/crowdperf/harness/__main__.py",
            {"harness/test_runs", "recipes/test_with_numpy", "test_rooms"},
        ),
        ("script/get-thing/_cm.yaml", {"recipes/test_get_thing", "recipes/test_call", "recipes/test_all"}),
        ("script/run-thing/run.sh", {"recipes/test_with_numpy", "recipes/test_all"}),
        ("automation/recipe_engine/rules/query.py", {"engine/test_query", "adapters/test_cm_run"}),
        ("automation/script/module.py", {"adapters/test_cm_run"}),
        ("docs/howto/one.md", {"docs/test_pages"}),
        ("README.md", {"docs/test_pages"}),
        ("tools/counting.py", {"tools/test_counting"}),
        ("tools/other.sh", {"tools/test_other"}),
        ("tests/gate/trees.py", {"gate/test_gate"}),
        ("tests/gate/data/log.txt", {"gate/test_gate"}),
        (
            "tests/recipes/conftest.py",
            {"recipes/test_get_thing", "recipes/test_call", "recipes/test_all", "recipes/test_with_numpy"},
        ),
    ],
)  # fmt: skip
def test_what_a_changed_file_reaches(changed: str, tests: set[str]) -> None:
    reached, unseen = reachable(HOUSE, [changed])
    assert (set(reached), unseen) == ({f"tests/{test}.py" for test in tests}, [])


def test_a_deleted_module_reaches_those_who_still_import_it() -> None:
    texts = {path: text for path, text in TEXTS.items() if path != "src/crowdperf/kit/numbers.py"}
    house = House(texts, frozenset({"src/crowdperf/kit/numbers.py"}))
    reached, _ = reachable(house, house.gone)
    assert {"tests/kit/test_numbers.py", "tests/gate/test_gate.py"} <= set(reached)


def test_a_deleted_test_leaves_nothing_to_run() -> None:
    gone = "tests/kit/test_old.py"
    assert choose(House(TEXTS, frozenset({gone})), [gone], {}).everything == ""


@pytest.mark.parametrize(
    "changed",
    ["pyproject.toml", "test.sh", ".ci/run", "requirements.txt", "tests/requirements-harness.txt", "tests/conftest.py",
     "tests/support/helpers.py", "tools/prepare.sh", "cmr.yaml", "notes/what.bin"],
)  # fmt: skip
def test_what_cannot_be_told_means_everything(changed: str) -> None:
    choice = choose(HOUSE, ["docs/howto/one.md", changed], {})
    assert changed in choice.everything
    assert choice.tests == ()


def test_what_no_test_can_notice_is_named() -> None:
    choice = choose(HOUSE, ["LICENSE", "docs/howto/one.md"], {})
    assert (choice.tests, choice.unseen) == (("tests/docs/test_pages.py",), ("LICENSE",))


def test_the_packages_for_mypy_are_those_that_changed() -> None:
    changed = ["src/crowdperf/kit/numbers.py", "src/crowdperf/gate/limits.json", "automation/recipe_engine/x.py"]
    assert choose(HOUSE, changed, {}).packages == ("crowdperf.kit", "recipe_engine")


@pytest.mark.parametrize(
    ("limit_s", "chosen", "left_out"),
    [
        (100.0, "e/own e/near f/cheap e/far", ""),
        (16.0, "e/own e/near f/cheap", "e/far"),
        (11.5, "e/own f/cheap", "e/near e/far"),
        (1.0, "e/own", "e/near f/cheap e/far"),
    ],
)
def test_the_limit_keeps_what_changed_then_each_area_then_the_nearest(
    limit_s: float, chosen: str, left_out: str
) -> None:
    steps = {"e/own": 0, "e/near": 1, "e/far": 2, "f/cheap": 5}
    costs = {"e/own": 10.0, "e/near": 2.0, "e/far": 4.0, "f/cheap": 1.0}

    def path(short: str) -> str:
        folder, name = short.split("/")
        return f"tests/{folder}/test_{name}.py"

    found = within(
        {path(one): step for one, step in steps.items()}, {path(one): cost for one, cost in costs.items()}, limit_s
    )
    assert found == ([path(one) for one in chosen.split()], [path(one) for one in left_out.split()])


def test_the_quick_core_has_what_is_cheap_and_one_of_each_area() -> None:
    costs = {"tests/a/test_1.py": 0.5, "tests/a/test_2.py": 9.0, "tests/b/test_3.py": 7.0, "tests/b/test_4.py": 8.0}
    tests = [*costs, "tests/c/test_not_measured.py"]
    assert quick_core(tests, costs, 1.0) == ["tests/a/test_1.py", "tests/b/test_3.py"]


def test_the_quick_core_of_this_checkout_has_every_area_and_fits_its_limit() -> None:
    costs = changed_tests.read_costs(CHECKOUT)
    core = quick_core((path for path in costs if (CHECKOUT / path).is_file()), costs)
    assert set(changed_tests.AREAS) <= {area(test) for test in core}
    assert sum(costs[test] for test in core) <= changed_tests.QUICK_LIMIT_S
    page = (CHECKOUT / "docs" / "testing.md").read_text(encoding="utf-8")
    assert f"at most {changed_tests.QUICK_FILE_LIMIT_S:g} s of CPU time" in page
    assert f"{changed_tests.CHANGED_LIMIT_S:g} s of CPU time" in page


# --- with git ---


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of TEXTS with one commit."""
    for path, text in TEXTS.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")
    return tmp_path


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True)


def asked(folder: Path, *words: str) -> tuple[int, list[str], str]:
    program = [sys.executable, str(CHECKOUT / "tools" / "changed_tests.py"), *words, f"--checkout={folder}"]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_uncommitted_and_untracked_files_count_and_each_test_has_its_environment(checkout: Path) -> None:
    (checkout / "src/crowdperf/kit/tables.py").write_text("# another")
    (checkout / "tests/web").mkdir()
    (checkout / "tests/web/test_new.py").write_text("")
    code, lines, said = asked(checkout, "changed")
    assert code == 0, said
    assert set(lines) == {
        "harness tests/harness/test_runs.py", "harness tests/recipes/test_with_numpy.py", "mypy-plain crowdperf.kit",
        "plain tests/test_rooms.py", "plain tests/web/test_new.py",
    }  # fmt: skip
    assert "2 files differ from HEAD" in said and "left out, as" not in said


def test_what_the_limit_leaves_out_is_told(checkout: Path) -> None:
    (checkout / "tests/costs.json").write_text('{"tests/harness/test_runs.py": 500, "tests/test_rooms.py": 400}')
    git(checkout, "add", ".")
    (checkout / "src/crowdperf/kit/tables.py").unlink()
    code, lines, said = asked(checkout, "changed", "--base=HEAD")
    assert (code, "plain tests/test_rooms.py" in lines) == (0, False), said
    assert "left out, as" in said and "./test.sh runs them all" in said
    assert {"  tests/harness/test_runs.py", "  tests/test_rooms.py"} <= set(said.splitlines())


def test_everything_is_told_with_its_reason(checkout: Path) -> None:
    (checkout / "tests/conftest.py").write_text("# another")
    code, lines, said = asked(checkout, "changed")
    assert (code, lines) == (0, ["everything"])
    assert "everything is run: tests/conftest.py can change the outcome of any test" in said


def test_a_revision_that_is_not_there_is_refused(checkout: Path) -> None:
    code, lines, said = asked(checkout, "changed", "--base=nowhere")
    assert (code, lines) == (1, [])
    assert "nowhere" in said and "hint: ./test.sh --changed=HEAD" in said


def test_without_a_change_nothing_is_run(checkout: Path) -> None:
    assert asked(checkout, "changed")[:2] == (0, [])


def test_the_rooms_of_the_harness_environment_are_listed_once_and_test_sh_asks_for_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert changed_tests.main(["rooms"]) == 0
    rows = [line.split(" ") for line in capsys.readouterr().out.splitlines()]
    assert {"room", "folder", "file"} == {kind for kind, _ in rows}
    for kind, name in rows:
        assert (CHECKOUT / (f"src/crowdperf/{name}" if kind == "room" else name)).exists()
    needing = {"tests/curves/test_tokens.py", "tests/recipes/test_get_ml_model_resnet50.py"}
    assert needing < {name for kind, name in rows if kind == "file"}
    text = (CHECKOUT / "test.sh").read_text(encoding="utf-8")
    assert "tools/changed_tests.py rooms" in text and not re.search(r"=\([^)]*\bstandins\b", text)

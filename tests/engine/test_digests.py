"""The digest of a recipe holds exactly the files that it uses of its repository's packages."""

from __future__ import annotations

import ast
import json
import multiprocessing
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers import CHECKOUT, TemporaryHome, uid_of
from recipe_engine.actions.cache_report import verify_action
from recipe_engine.disk import packages
from recipe_engine.disk.digests import TICK_NS, recipe_digest
from recipe_engine.disk.packages import Library, imports_of, words_of
from recipe_engine.provenance.lock import lock_action
from recipe_engine.provenance.lockfile import LockMismatch
from recipe_engine.rules.errors import MetaError, NotFound
from syntax import import_statements

RUN_BY_NAME = r"""["']-m["'],\s*["']([A-Za-z_][\w.]*)["']"""


def imports_by_parsing(text: str) -> set[str]:
    """What ``imports_of`` must find but for modules that are run by name, by Python's own parser."""
    names: set[str] = set()
    for node in import_statements(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        else:
            start = "." * node.level + (node.module or "")
            dot = "" if start.endswith(".") else "."
            names |= {start if alias.name == "*" else f"{start}{dot}{alias.name}" for alias in node.names}
    return names


def test_what_a_file_imports_is_what_pythons_parser_finds_in_every_file_of_this_repository() -> None:
    places = [CHECKOUT / name for name in ("automation", "benchmarks", "script", "src", "tests", "tools")]
    differing, n_files = {}, 0
    for path in (path for place in places for path in place.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        ran = set(re.findall(RUN_BY_NAME, text))
        expected = imports_by_parsing(text) | ran | {f"{name}.__main__" for name in ran}
        n_files += 1
        if set(imports_of(text)) != expected:
            differing[path] = set(imports_of(text)) ^ expected
    assert differing == {}
    assert n_files > 500


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import a.b\n", ["a.b"]),
        ("import a.b as c, d\n", ["a.b", "d"]),
        ("from a.b import c\n", ["a.b.c"]),
        ("from a import (\n    b,  # why )\n    c as d,\n)\n", ["a.b", "a.c"]),
        ("from a import b, \\\n    c\n", ["a.b", "a.c"]),
        ("from a import *\n", ["a"]),
        ("from . import x\n", [".x"]),
        ("from .import x\n", [".x"]),
        ("from ..y import z\n", ["..y.z"]),
        ("from .. import *\n", [".."]),
        ("def f():\n    from a import b\n    return b\n", ["a.b"]),
        ("if TYPE_CHECKING:\n\timport a\n", ["a"]),
        ("try: import a; import b\nexcept ImportError: import c\n", ["a", "b", "c"]),
        ("class A: from a import b\n", ["a.b"]),
        ("raise X() \\\n    from error\n", []),
        ("text = '''\nimport a\n'''\n", []),
        ('"""Says:\n\nfrom a import b\n"""\nimport c\n', ["c"]),
        ("x = r'\\\\' # '\nimport a\n", ["a"]),
        ("x = 'it\\'s'\nimport a\n", ["a"]),
        ("# import a\n", []),
        ("x = '#'; import a\n", ["a"]),
        ("x = {1: important}\nfromage = 1\nimport_all = 2\n", []),
        ("words = [python, '-m', 'a.b', '--x']\n", ["a.b", "a.b.__main__"]),
        ("", []),
    ],
)
def test_the_names_that_a_text_imports(text: str, names: list[str]) -> None:
    assert imports_of(text) == names


def test_the_words_of_a_script_that_may_be_modules() -> None:
    script = 'python3 -m pkg.tool --x\n"$PYTHON" -I -m "other"\necho from pkg.deep.words > tmp-ver.out\n'
    found = words_of(script)
    assert {"pkg.tool", "pkg.tool.__main__", "other", "other.__main__", "pkg.deep.words"} <= set(found)
    assert "echo" not in found


# --- which files are used ---

FILES = {
    "src/pkg/__init__.py": "",
    "src/pkg/files.py": "import os\nfrom .numbers import whole\n",
    "src/pkg/numbers.py": "whole = int\n",
    "src/pkg/other.py": "",
    "src/pkg/deep/__init__.py": "from . import first\n",
    "src/pkg/deep/first.py": "from .. import other\n",
    "src/pkg/deep/second.py": "def f():\n    from ..files import whole\n",
    "src/pkg/tool/__init__.py": "",
    "src/pkg/tool/__main__.py": "from pkg.deep.second import f\n",
    "src/pkg/data/__init__.py": "",
    "src/pkg/data/table.py": "",
    "src/pkg/data/table.csv": "a,b\n",
    "src/pkg/data/README.md": "",
    "src/pkg/data/lists/one.txt": "1\n",
    "src/pkg/data/code/inner.py": "",
    "src/pkg/data/code/inner.txt": "",
    "src/pkg/backends/__init__.py": "",
    "src/pkg/backends/one/__init__.py": "from .engine import run\n",
    "src/pkg/backends/one/engine.py": "from ...numbers import whole\n",
    "src/pkg/backends/one/kernel.cl": "",
    "src/pkg/backends/two.py": "",
    "src/alone.py": "import pkg.numbers\n",
    "src/spaced/inner.py": "",
}


def write_files(root: Path) -> None:
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with packages."""
    write_files(tmp_path)
    return tmp_path


def library(root: Path, maker: str = "m") -> Library:
    """What a new process knows of the packages."""
    return Library(root, str(root / "src"), root / "index" / "library.txt", maker)


def recipe(root: Path, alias: str = "get-x", **files: str) -> Path:
    """The folder of a recipe with these Python files; ``run_sh`` is its script."""
    folder = root / "script" / alias
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / ("run.sh" if name == "run_sh" else f"{name}.py")).write_text(text)
    return folder


def age() -> None:
    """Waits until what was written has another time than what comes."""
    time.sleep(2 * TICK_NS / 1e9)


TOP, NUMBERS = "src/pkg/__init__.py", "src/pkg/numbers.py"
WHOLE = [TOP, "src/pkg/files.py", NUMBERS]
DEEP = [TOP, "src/pkg/deep/__init__.py", "src/pkg/deep/first.py", "src/pkg/other.py"]
SECOND = [*DEEP, *WHOLE, "src/pkg/deep/second.py"]
TOOL = [*SECOND, "src/pkg/tool/__init__.py", "src/pkg/tool/__main__.py"]
DATA = [TOP, *(f"src/pkg/data/{name}" for name in ("__init__.py", "lists/one.txt", "table.csv", "table.py"))]


@pytest.mark.parametrize(
    ("files", "used"),
    [
        ({}, []),
        ({"customize": "import json, os.path\n"}, []),
        ({"customize": "from pkg import files\n"}, WHOLE),
        ({"customize": "from pkg.files import whole\n"}, WHOLE),
        ({"customize": "import pkg.files as f\n"}, WHOLE),
        ({"customize": "import pkg\n"}, [TOP]),
        ({"customize": "from pkg import nothing\n"}, [TOP]),
        ({"customize": "from . import other\n", "other": "from pkg.numbers import (\n    whole,\n)\n"}, [TOP, NUMBERS]),
        ({"customize": "def f():\n    import pkg.deep.second\n"}, SECOND),
        ({"customize": "from pkg.data.table import rows\n"}, DATA),
        ({"run_sh": 'python3 -m pkg.tool "$X"\n'}, TOOL),
        ({"customize": "words = [python, '-m', 'pkg.tool']\n"}, TOOL),
        ({"run_sh": "python3 -c 'import pkg.numbers'\n"}, [TOP, NUMBERS]),
        ({"customize": "import alone\n"}, ["src/alone.py", TOP, NUMBERS]),
        ({"customize": "import spaced.inner\n"}, ["src/spaced/inner.py"]),
        ({"customize": "name = 'pkg.backends.one'\n"}, []),
    ],
)
def test_a_recipe_uses_what_it_imports_followed_from_file_to_file(
    root: Path, files: dict[str, str], used: list[str]
) -> None:
    assert list(library(root).used(recipe(root, **files)).paths) == sorted(set(used))


def test_a_module_that_is_loaded_by_name_is_declared_and_a_package_is_all_that_lies_in_it(root: Path) -> None:
    folder, found = recipe(root, customize="import pkg.files\n"), library(root)
    own = [f"src/pkg/backends/{name}" for name in ("__init__.py", "one/__init__.py", "one/engine.py", "one/kernel.cl")]
    assert list(found.used(folder, ["pkg.backends.one"]).paths) == sorted([*WHOLE, *own])
    assert list(found.used(folder, ["pkg.backends.two"]).paths) == sorted([*WHOLE, own[0], "src/pkg/backends/two.py"])
    assert found.used(folder).paths == tuple(WHOLE)
    assert len({found.used(folder, names).digest for names in ([], ["pkg.backends.one"], ["pkg.backends.two"])}) == 3


def test_a_star_stands_for_everything_that_has_the_rest(root: Path) -> None:
    folder, name = recipe(root), "pkg.backends.*.record"
    for alias in ("one", "three"):
        age()
        (root / f"src/pkg/backends/{alias}").mkdir(exist_ok=True)
        (root / f"src/pkg/backends/{alias}/record.py").write_text("import pkg.other\n" if alias == "three" else "")
        found = library(root).used(folder, [name])
    records = [f"src/pkg/backends/{path}" for path in ("one/record.py", "three/record.py", "one/__init__.py")]
    data = "src/pkg/backends/one/kernel.cl"
    assert set(found.paths) == {TOP, *records, data, "src/pkg/backends/__init__.py", "src/pkg/other.py",
                                "src/pkg/backends/one/engine.py", NUMBERS}  # fmt: skip
    library(root).check(name)
    with pytest.raises(MetaError, match=r"src has no module 'pkg\.backends\.\*\.table'"):
        library(root).check("pkg.backends.*.table")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("pkg.backends.twoo", "the nearest are: pkg.backends.two"),
        ("pkg.numbers.whole", "known are: "),
        ("pkgs", "the nearest are: pkg"),
        ("pkg.", "the nearest are: pkg"),
        ("", "known are: "),
        ("../pkg", ""),
    ],
)
def test_a_declared_module_that_is_missing_is_refused_with_the_nearest(root: Path, name: str, hint: str) -> None:
    with pytest.raises(MetaError) as caught:
        library(root).used(recipe(root), [name])
    assert caught.value.message == f"library: src has no module {name!r}"
    assert hint in caught.value.hint


def test_only_a_change_of_a_used_file_changes_the_digest(root: Path) -> None:
    folder = recipe(root, customize="from pkg.files import whole, extra\n")
    for path, text, is_change in [
        (NUMBERS, "whole = str\n", True),
        (NUMBERS, "whole = str\n", False),
        ("src/pkg/other.py", "x = 1\n", False),
        ("src/pkg/deep/second.py", "", False),
        (NUMBERS, "from . import other\nwhole = str\n", True),
        ("src/pkg/other.py", "x = 2\n", True),
        ("src/pkg/other.py", "x = 3\n", True),  # of the same size
        ("src/pkg/files/__init__.py", "from ..numbers import whole\n", True),  # comes before files.py
        ("src/pkg/files/extra.py", "", True),  # what was a name is a module now
        ("src/pkg/page.md", "", False),
        ("src/pkg/files/words.txt", "", True),
    ]:
        before = library(root).used(folder).digest
        age()
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
        after = library(root).used(folder).digest
        assert (before != after) is is_change, (path, text)
        assert after == library(root).used(folder).digest == Library(root, str(root / "src")).used(folder).digest


def test_an_import_that_is_new_in_a_recipe_counts(root: Path) -> None:
    folder = recipe(root, customize="import pkg.other\n")
    first = library(root).used(folder)
    age()
    recipe(root, beside="import alone\n")
    assert set(library(root).used(folder).paths) - set(first.paths) == {"src/alone.py", NUMBERS}


# --- the file that keeps it ---


def test_what_is_known_is_not_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, read = recipe(root, customize="import pkg.files\n"), []
    age()
    first = library(root).used(folder)
    plain = packages.read_regular

    def noting(path: Any) -> bytes:
        read.append(str(path))
        return plain(path)

    monkeypatch.setattr(packages, "read_regular", noting)
    assert library(root).used(folder) == first
    assert read == []
    (root / NUMBERS).write_text("whole = float\n")
    age()
    assert library(root).used(folder) != first
    assert [path for path in read if path.endswith(".py")] == [str(root / NUMBERS)]


def test_what_was_just_written_is_not_trusted(root: Path) -> None:
    folder, seen = recipe(root, customize="import pkg.numbers\n"), set()
    for word in "abcdefgh":  # as fast as it goes, each of the same size
        (root / NUMBERS).write_text(f"{word} = 1\n")
        seen.add(library(root).used(folder).digest)
    assert len(seen) == 8


@pytest.mark.parametrize("damage", ["empty", "cut", "line", "facts", "maker", "folder", "fifo", "text"])
def test_a_damaged_file_costs_time_only(root: Path, damage: str) -> None:
    folder = recipe(root, customize="import pkg.files\n")
    age()
    first = library(root).used(folder)
    file = root / "index" / ("library.facts" if damage == "facts" else "library.txt")
    content = file.read_bytes()
    (root / "src" / "pkg" / "other.py").write_text("x = 1\n")  # the packages are looked through again
    if damage in ("folder", "fifo"):
        file.unlink()
        file.mkdir() if damage == "folder" else os.mkfifo(file)
    else:
        at = content.index(b"src/pkg/numbers") if damage == "line" else content.rindex(b"src/pkg/numbers")
        flipped = content[:at] + b"X" + content[at + 1 :]
        damaged = {"empty": b"", "cut": content[: len(content) // 2], "text": b"nothing\n", "maker": content}
        file.write_bytes(damaged.get(damage, flipped))
    assert library(root, "new" if damage == "maker" else "m").used(folder) == first


def test_a_home_that_cannot_be_written_costs_time_only(root: Path) -> None:
    folder = recipe(root, customize="import pkg.files\n")
    (root / "index").write_text("in the way\n")
    assert library(root).used(folder) == library(root).used(folder)


def look_often(root: str, aliases: Sequence[str], queue: Any) -> None:
    found = {alias: library(Path(root)).used(Path(root, "script", alias)).digest for _ in range(8) for alias in aliases}
    queue.put(found)


def test_processes_that_write_at_the_same_time_find_the_same(root: Path) -> None:
    modules = ["pkg.files", "pkg.other", "pkg.deep.second", "alone"]
    aliases = [f"get-{number}" for number in range(len(modules))]
    for alias, module in zip(aliases, modules, strict=True):
        recipe(root, alias, customize=f"import {module}\n")
    age()
    expected = {alias: Library(root, str(root / "src")).used(root / "script" / alias).digest for alias in aliases}
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    processes = [context.Process(target=look_often, args=(str(root), aliases[::step], queue)) for step in (1, -1, 1)]
    for process in processes:
        process.start()
    found = [queue.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(60)
    assert found == [expected] * 3


def test_a_recipe_that_is_gone_leaves_the_file(root: Path) -> None:
    first, second = recipe(root, "get-old", customize="import alone\n"), recipe(root, customize="import alone\n")
    library(root).used(first)
    (first / "customize.py").unlink()
    first.rmdir()
    library(root).used(second)
    content = (root / "index" / "library.txt").read_bytes()
    assert b'\n["script/get-x"]\t' in content
    assert b'\n["script/get-old"]\t' not in content


# --- as a user sees it ---

HOOK = "from pkg import files\n\n\ndef preprocess(i):\n    return {'return': 0}\n"
NOTE = "built by another version of this recipe"


@pytest.fixture
def packed(home: TemporaryHome) -> TemporaryHome:
    """A home with get-model, which is kept and uses the package, and has two backends as variations."""
    write_files(home.repo)
    home.write_cmr(python="src")
    one = {"group": "backend", "default": True, "library": ["pkg.backends.one", "pkg.data.table"]}
    two = {"group": "backend", "library": "pkg.backends.two"}
    home.recipe("get-model", {"cache": True, "variations": {"one": one, "two": two}}, customize=HOOK)
    return home


def notes(home: TemporaryHome, tags: str) -> str:
    """What is said of an entry that is reused."""
    home.run(tags)
    return "".join(line for line in home.story if "reused" in line)


def test_an_entry_says_that_a_used_file_of_the_packages_has_changed(packed: TemporaryHome) -> None:
    for tags in ("get,model", "get,model,_two"):
        packed.run(tags)
        assert NOTE not in notes(packed, tags)
    for path, is_for_one, is_for_two in [
        ("src/pkg/backends/one/engine.py", True, False),
        ("src/pkg/other.py", False, False),
        ("src/pkg/backends/two.py", False, True),
        (NUMBERS, True, True),
    ]:
        content = (packed.repo / path).read_text()
        (packed.repo / path).write_text(content + "# a comment\n")
        assert (NOTE in notes(packed, "get,model")) is is_for_one, path
        assert (NOTE in notes(packed, "get,model,_two")) is is_for_two, path
        (packed.repo / path).write_text(content)
        assert NOTE not in notes(packed, "get,model") + notes(packed, "get,model,_two")


def test_the_note_names_the_file_that_is_newer_than_the_entry(packed: TemporaryHome) -> None:
    packed.run("get,model")
    path = packed.repo / NUMBERS
    path.write_text("# new\n")
    os.utime(path, (time.time() + 60,) * 2)
    assert f", {NOTE} ({NUMBERS} is newer), --renew rebuilds it" in notes(packed, "get,model")


def test_a_recipe_that_imports_nothing_of_the_packages_has_the_digest_of_its_own_files(packed: TemporaryHome) -> None:
    folder = packed.recipe("get-plain", {"cache": True})
    packed.run("get,plain")
    assert next(iter(packed.open_store().entries_of(uid_of("get-plain")))).record.recipe_digest == recipe_digest(folder)


def test_a_declared_module_that_is_missing_ends_the_run(packed: TemporaryHome) -> None:
    packed.recipe("get-odd", {"cache": True, "library": ["pkg.fils"]})
    with pytest.raises(MetaError) as caught:
        packed.run("get,odd")
    assert caught.value.message == f"{packed.repo}/script/get-odd/_cm.json: library: src has no module 'pkg.fils'"
    assert caught.value.hint == "the nearest are: pkg.files, pkg.tool"
    packed.write_cmr()
    with pytest.raises(MetaError, match=r"get-odd/_cm\.json: library: .*/cmr\.yaml has no 'python' folder"):
        packed.run("get,odd")


@pytest.mark.parametrize("value", [5, {"a": 1}, [["a"]]])
def test_a_library_that_is_no_list_of_texts_is_refused(packed: TemporaryHome, value: object) -> None:
    packed.recipe("get-odd", {"cache": True, "library": value})
    with pytest.raises(NotFound, match=r"get-odd/_cm\.json: library(\[0\])?: expected a (list|text), found"):
        packed.run("get,odd")


# --- locks, records, resumed runs, verified entries ---

IN_LOCK = f"recipes:{NUMBERS}"


@pytest.fixture
def locked(packed: TemporaryHome) -> Path:
    """The lockfile of get-model, which is in the cache."""
    packed.run("get,model")
    path = packed.work / "crowdperf.lock"
    lock_action({"tags": "get,model", "quiet": True, "file": str(path)}, packed.engine_home)
    return path


def test_a_lockfile_holds_the_used_files_and_a_changed_one_is_named(packed: TemporaryHome, locked: Path) -> None:
    library = json.loads(locked.read_text())["library"]
    expected = [*WHOLE, *DATA, *(path for path in FILES if "/backends/" in path and not path.endswith("two.py"))]
    assert sorted(library) == sorted({f"recipes:{path}" for path in expected})
    packed.run("get,model", frozen=str(locked))
    (packed.repo / "src/pkg/backends/two.py").write_text("# another backend\n")
    packed.run("get,model", frozen=str(locked))
    (packed.repo / NUMBERS).write_text("# changed\n")
    with pytest.raises(LockMismatch, match=f"get-model uses {IN_LOCK}, which differs from .*: the digest is") as caught:
        packed.run("get,model", frozen=str(locked))
    assert library[IN_LOCK] in caught.value.message


def test_a_file_that_the_lockfile_lacks_is_refused_when_frozen(packed: TemporaryHome, locked: Path) -> None:
    row = json.loads(locked.read_text())
    del row["library"][IN_LOCK]
    locked.write_text(json.dumps(row))
    with pytest.raises(LockMismatch, match=f"does not list {IN_LOCK}, which get-model uses, so --frozen refuses it"):
        packed.run("get,model", frozen=str(locked))
    packed.run("get,model", locked=str(locked))


def test_a_lockfile_from_before_says_once_what_it_cannot_compare(
    packed: TemporaryHome, locked: Path, caplog: pytest.LogCaptureFixture
) -> None:
    row = json.loads(locked.read_text())
    del row["library"]
    locked.write_text(json.dumps(row))
    (packed.repo / NUMBERS).write_text("# changed\n")
    packed.run("get,model", frozen=str(locked))
    assert caplog.text.count("has no digests of the packages that recipes use") == 1


def test_verifying_an_entry_finds_a_changed_file_of_the_packages(packed: TemporaryHome) -> None:
    packed.run("get,model")
    assert verify_action({}, packed.engine_home)["return"] == 0
    (packed.repo / NUMBERS).write_text("# changed\n")
    (row,) = verify_action({}, packed.engine_home)["entries"]
    assert "its recipe get-model has changed since" in json.dumps(row)


def test_a_run_whose_packages_changed_is_not_resumed_unasked(packed: TemporaryHome) -> None:
    packed.recipe("get-odd", customize=HOOK, run_sh='[ -e "$CM_TMP_CURRENT_PATH/go" ]')
    assert packed.run_cm("get,odd").code == 2
    (packed.work / "go").touch()
    content = (packed.repo / NUMBERS).read_text()
    (packed.repo / NUMBERS).write_text("whole = float\n")
    refused = packed.cm("resume", "script", "--out=json")
    assert "used other recipe versions: the packages that get-odd uses have changed" in refused.answer["error"]
    (packed.repo / NUMBERS).write_text(content)
    assert packed.cm("resume", "script", "--out=json").code == 0

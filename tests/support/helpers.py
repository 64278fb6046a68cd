"""A CM home and a repository of recipes made for one test, with `cm` as a process and the engine inside this one.

A test writes its recipes with ``home.recipe`` and runs them with ``home.cm`` (a real ``cm`` process: the console,
signals, crashes) or with ``home.run`` (the same engine without the process: everything else, because it is quicker).
"""

import contextlib
import dataclasses
import functools
import hashlib
import io
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from recipe_engine.actions.adapter import Home
from recipe_engine.actions.run import run_action
from recipe_engine.disk.metadata import read_meta
from recipe_engine.disk.repos import RepoInfo
from recipe_engine.disk.store import Store
from recipe_engine.rules.env import ValueRule

CHECKOUT = Path(__file__).resolve().parents[2]
PATIENCE_S = 240.0
"""How long a test waits for something that must happen, before it fails; nothing is ever judged by its speed."""


@dataclasses.dataclass(frozen=True)
class Finished:
    """How a ``cm`` process ended: its exit code and what it wrote."""

    code: int
    stdout: str
    stderr: str

    @property
    def answer(self) -> dict[str, Any]:
        """The one JSON object on standard output; fails when there is anything else."""
        value = json.loads(self.stdout)
        assert isinstance(value, dict)
        return value


def with_python_path(*names: str) -> dict[str, str]:
    """The environment of a process that imports from these folders of the checkout."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(str(CHECKOUT / name) for name in names)}


def shell_wait(condition: str) -> str:
    """Shell code that waits until a condition holds, a minute at most: a test that is killed leaves no loop behind."""
    return f"for turn in $(seq 3000); do {condition} && break; sleep 0.02; done"


def uid_of(alias: str) -> str:
    """A recipe UID (16 hex digits, one of them a letter) that follows from the alias."""
    return "a" + hashlib.sha256(alias.encode()).hexdigest()[:15]


def write_recipe(
    root: Path,
    alias: str,
    meta: Mapping[str, Any] | None = None,
    *,
    customize: str = "",
    run_sh: str = "",
    files: Mapping[str, str] | None = None,
) -> Path:
    """Writes ``<root>/script/<alias>/`` and returns it; its tags are the alias cut at dashes unless ``meta`` says more.

    ``files`` maps further names in the folder to their texts; all texts may be indented.
    """
    folder = root / "script" / alias
    folder.mkdir(parents=True, exist_ok=True)
    full = {
        "alias": alias,
        "automation_alias": "script",
        "automation_uid": "5b4e0237da074764",
        "tags": alias.split("-"),
        "uid": uid_of(alias),
        **(meta or {}),
    }
    texts = {"_cm.json": json.dumps(full, indent=1), "customize.py": customize, "run.sh": run_sh, **(files or {})}
    for name, text in texts.items():
        if text:
            (folder / name).write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return folder


def checkout_home(folder: Path) -> Home:
    """An empty CM home in a folder with the recipes of this checkout, described as its cmr.yaml does."""
    repo = RepoInfo(CHECKOUT, "crowdperf", "0123456789abcdef", "literal", has_strict_inputs=True, python="src")
    return Home([repo], folder, folder / "repos" / "local")


@functools.cache
def recipe_metas() -> tuple[dict[str, Any], ...]:
    """The metadata of every recipe of this checkout, by the names of their folders; not to be changed."""
    return tuple(read_meta(path.parent).values for path in sorted(CHECKOUT.glob("script/*/_cm.yaml")))


def unpack(archive: Path, folder: Path) -> None:
    """Unpacks a tar archive of this project, also where Python is older than the filters of ``tarfile`` (3.11.4)."""
    with tarfile.open(archive) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(folder)


def wait_until(is_true: Callable[[], Any], what: str) -> Any:
    """Waits for a condition and returns its value; fails the test when it does not come true in ``PATIENCE_S``."""
    end_s = time.monotonic() + PATIENCE_S
    while True:
        value = is_true()
        if value:
            return value
        if time.monotonic() > end_s:
            pytest.fail(f"waited {PATIENCE_S:.0f} s in vain for: {what}")
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def copy_engine(folder: Path) -> Path:
    """Makes a repository of this checkout's engine, without its recipes: cmind reads those for a second each time that
    it makes its index.
    """
    shutil.copytree(CHECKOUT / "automation", folder / "automation")
    shutil.copy(CHECKOUT / "cmr.yaml", folder)
    (folder / "src").mkdir()
    return folder


@functools.cache
def checkout_indexes() -> Mapping[str, bytes]:
    """The files that ``cm`` writes into a home when it has read this checkout for the first time, by their paths."""
    with tempfile.TemporaryDirectory() as folder:
        home = TemporaryHome(Path(folder))
        home.is_indexed = True
        found = home.cm("find", "script", "--tags=detect,os")
        assert found.code == 0, found.stderr
        places = [home.path / "index.json", *home.path.glob("recipe-index/*")]
        texts = {str(place.relative_to(home.path)): place.read_bytes() for place in places}
    return {name: text for name, text in texts.items() if str(CHECKOUT / "script").encode() in text}


def write_indexes(home: Path) -> None:
    """Writes ``checkout_indexes`` into a CM home: reading the checkout takes ``cm`` longer than what most tests do."""
    for name, content in checkout_indexes().items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_bytes(content)


class Terminal(io.StringIO):
    """Stands in for ``sys.stdin`` with a user at a terminal who types these lines."""

    def isatty(self) -> bool:
        """Answers yes."""
        return True


class Listener(logging.Handler):
    """Collects the lines that are logged."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self.lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps one line."""
        self.lines.append(record.getMessage())


class TemporaryHome:
    """A CM home with this checkout and one repository of recipes, all below one temporary folder.

    ``work`` is the folder where recipes are run, ``store`` the cache, ``story`` the lines that the last ``run`` told.
    The first ``cm`` finds the indexes of this checkout, unless the test sets ``is_indexed`` before.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "home"
        self.repo = folder / "recipes"
        self.work = folder / "work"
        self.store = self.path / "repos" / "local" / "cache"
        self.story: list[str] = []
        self.min_shown_s = 0.0  # so that a story has every step, however fast
        self._children: list[subprocess.Popen[bytes]] = []
        for place in (self.path, self.repo / "script", self.work):
            place.mkdir(parents=True)
        self.values: ValueRule = "cm"
        self.has_strict_inputs = False
        self.python: object = None
        self.write_cmr()
        self.register(CHECKOUT, self.repo)

    def write_cmr(self, values: ValueRule = "cm", *, inputs: str = "cm", python: object = None) -> None:
        """Describes the repository of the test's recipes; ``values`` is how their scripts see env values, and with the
        ``inputs`` "strict" an input that they do not declare is an error. ``python`` names the folder of its packages.
        """
        self.python = python
        self.values = values
        self.has_strict_inputs = inputs == "strict"
        lines = ["alias: recipes", 'uid: "0123456789abcdef"', f"values: {values}", f"inputs: {inputs}"]
        lines += [] if python is None else [f"python: {json.dumps(python)}"]
        (self.repo / "cmr.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def register(self, *repos: Path) -> None:
        """Makes these the registered repositories, in this order."""
        (self.path / "repos.json").write_text(json.dumps([str(repo) for repo in repos]), encoding="utf-8")
        (self.path / "index.json").unlink(missing_ok=True)
        self.is_indexed = CHECKOUT not in repos

    def recipe(self, alias: str, meta: Mapping[str, Any] | None = None, **texts: Any) -> Path:
        """``write_recipe`` into this home's repository."""
        return write_recipe(self.repo, alias, meta, **texts)

    # --- in this process ---

    @property
    def engine_home(self) -> Home:
        """This home as the engine sees it."""
        repo = RepoInfo(self.repo, "recipes", "0123456789abcdef", self.values, self.has_strict_inputs, self.python)
        return Home([repo], self.path, self.path / "repos" / "local")

    def run(self, tags: str, *, cmind: Any = None, **i: Any) -> dict[str, Any]:
        """Runs a recipe with the engine of this process in ``work``; CM's answer. Raises RecipeError."""
        self.story.clear()
        listener = Listener(self.story)
        before = os.getcwd()
        os.chdir(self.work)
        logger = logging.getLogger("recipe_engine")
        logger.addHandler(listener)
        level = logger.level
        logger.setLevel(logging.INFO)
        try:
            with patch("recipe_engine.running.step.MIN_SHOWN_S", self.min_shown_s):
                return run_action({"tags": tags, "quiet": True, **i}, self.engine_home, cmind)
        finally:
            logger.setLevel(level)
            logger.removeHandler(listener)
            assert os.getcwd() == str(self.work), "a run must end in the folder where it began"
            os.chdir(before)

    def entries(self, alias: str = "") -> list[dict[str, Any]]:
        """The ``_cm.json`` of every cache entry (of one recipe), with its folder as ``path``."""
        found = []
        for path in sorted(self.store.glob("*/_cm.json")):
            meta = {**json.loads(path.read_text(encoding="utf-8")), "path": path.parent}
            if alias in ("", meta["associated_script_artifact"].partition(",")[0]):
                found.append(meta)
        return found

    def entry(self, alias: str) -> Path:
        """The folder of the only finished entry of a recipe."""
        finished = [meta["path"] for meta in self.entries(alias) if "tmp" not in meta["tags"]]
        assert len(finished) == 1, f"{alias} has the finished entries {finished}"
        return finished[0]

    def open_store(self) -> Store:
        """The cache, read anew."""
        return Store(self.store)

    # --- as a process ---

    def process_env(self, env: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of a ``cm`` process of this home: that of the tests, without what would change the story."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("CM_", "CROWDPERF_", "GH_"))}
        return {**kept, "CM_REPOS": str(self.path), "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}

    def start(self, *words: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Any:
        """Starts ``cm`` with these words; it is killed with its group when the test ends. Its output is kept."""
        if not self.is_indexed:
            self.is_indexed = True
            write_indexes(self.path)
        child = subprocess.Popen(
            cm_command(words),
            cwd=cwd or self.work,
            env=self.process_env(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._children.append(child)
        return child

    def cm(self, *words: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Finished:
        """Runs ``cm`` to its end."""
        return finish(self.start(*words, env=env, cwd=cwd))

    def run_cm(self, tags: str, *words: str, **options: Any) -> Finished:
        """Runs a recipe with ``cm run script --tags=... --quiet --out=json``."""
        return self.cm("run", "script", f"--tags={tags}", "--quiet", "--out=json", *words, **options)

    def start_run(self, tags: str, *words: str, **options: Any) -> Any:
        """Starts what ``run_cm`` runs."""
        return self.start("run", "script", f"--tags={tags}", "--quiet", "--out=json", *words, **options)

    def close(self) -> None:
        """Ends every process that the test left running."""
        for child in self._children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def cm_command(words: Sequence[str]) -> list[str]:
    """The command line of the ``cm`` that is installed beside the Python of the tests. Fails without one."""
    installed = Path(sys.executable).parent / "cm"
    if not installed.exists():
        pytest.fail(f"{installed} does not exist: run this test with .venv-test/bin/python", pytrace=False)
    return [str(installed), *words]


def run_to_end(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Finished:
    """How a command without a terminal ended, which has ``cm`` in it; fails when that reports an internal error."""
    done = subprocess.run(
        command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert "internal error" not in done.stdout + done.stderr
    return Finished(done.returncode, done.stdout, done.stderr)


def finish(child: Any) -> Finished:
    """Waits for a process started with ``TemporaryHome.start``."""
    out, err = child.communicate(timeout=PATIENCE_S)
    return Finished(child.returncode, out.decode(), err.decode())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TemporaryHome]:
    """An empty CM home with this checkout and a repository for the test's recipes."""
    for key in list(os.environ):
        if key.startswith(("CROWDPERF_", "GH_TOKEN")):
            monkeypatch.delenv(key)
    made = TemporaryHome(tmp_path)
    yield made
    made.close()


@pytest.fixture
def elsewhere(home: TemporaryHome, tmp_path: Path) -> Iterator[TemporaryHome]:
    """An empty home with the same recipes: another machine."""
    other = TemporaryHome(tmp_path / "elsewhere")
    other.repo = home.repo
    other.register(CHECKOUT, home.repo)
    yield other
    other.close()


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A CM home with the recipes of this checkout and an empty cache."""
    return checkout_home(tmp_path_factory.mktemp("ours"))

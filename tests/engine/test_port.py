"""The port between steps and the world: a plan acts nowhere."""

import inspect
import os
import sys
from typing import Any, Protocol

import pytest
from helpers import TemporaryHome
from recipe_engine.actions.run import new_engine, parse_request
from recipe_engine.disk.files import working_folder
from recipe_engine.disk.repos import RecipeSource
from recipe_engine.disk.store import Store
from recipe_engine.planning.plan_action import make_plan
from recipe_engine.planning.planned import PlannedEffects
from recipe_engine.planning.planned_store import PlannedStore
from recipe_engine.running.effects import Effects, Entries, RealEffects

READING = frozenset(["entries_of", "find", "problem", "load"])
"""What a plan may ask of the real cache."""
READS = frozenset(
    [
        *("builtins.id", "compile", "exec", "import", "marshal.loads", "object.__getattr__", "sys._getframe"),
        *("glob.glob", "os.listdir", "os.scandir", "os.walk"),
    ]
)
"""Audit events (docs.python.org, "Audit events table") of what only reads; all others count as acts."""
seen: list[str] = []
_is_watching = False


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if not _is_watching or event in READS:
        return
    flags = arguments[2] if event == "open" and len(arguments) > 2 else os.O_CREAT
    if not isinstance(flags, int) or flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
        seen.append(f"{event} {arguments!r}")


@pytest.fixture
def acts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What this process does to the world while the test sets ``_is_watching``; a hook cannot be taken away again."""
    if "recipe_engine_test_port" not in sys.modules:
        sys.modules["recipe_engine_test_port"] = sys.modules[__name__]
        sys.addaudithook(_watch)
    seen.clear()
    return seen


def pipeline(home: TemporaryHome) -> None:
    """Recipes with everything that has an effect: hooks, scripts, files to remove, folders, an env file, an entry."""
    acting = "import os\ndef preprocess(i):\n    os.mkdir('made')\n    return {'return': 0}\npostprocess = preprocess\n"
    home.recipe("get-tool", {"cache": True, "clean_files": ["x.txt"]}, run_sh="touch x.txt\n", customize=acting)
    home.recipe("get-kept", {"cache": True}, run_sh="true\n")
    checked = home.recipe("get-checked", {"cache": True}, run_sh="true\n")
    (checked / "validate_cache.sh").write_text("exit 1\n", encoding="utf-8")
    tags = ["get,tool", "get,kept", "get,checked"]
    home.recipe("use-all", {"deps": [{"tags": tag} for tag in tags], "clean_output_files": ["y.txt"]}, customize=acting)
    for name in ("get,kept", "get,checked"):
        home.run(name)
    (home.work / "y.txt").write_text("kept", encoding="utf-8")


class Refusing(RealEffects):
    """A port that refuses everything but to read the cache."""

    def __init__(self, source: RecipeSource, store: Store, cmind: Any) -> None:
        super().__init__(source, store, cmind)
        self.entries = _ReadOnly(store)  # type: ignore[assignment]


class _ReadOnly:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.root = store.root

    def __getattr__(self, name: str) -> Any:
        assert name in READING, f"a plan called {name} of the real cache"
        return getattr(self._store, name)


def refused(name: str) -> Any:
    def method(*_: Any, **__: Any) -> None:
        raise AssertionError(f"a plan called {name} of the real effects")

    return method


for _name, _ in inspect.getmembers(Effects, inspect.isfunction):
    if not _name.startswith("_"):
        setattr(Refusing, _name, refused(_name))


def test_a_plan_goes_through_when_the_real_port_refuses_everything(home: TemporaryHome) -> None:
    pipeline(home)
    with working_folder(home.work):
        request = parse_request({"tags": "use,all", "outdirname": "out", "save_env": True})
        plan = make_plan(new_engine(home.engine_home, None, Refusing), request)
    labels = [step.label for _, step in plan.root.walk()]
    assert labels == ["use-all", "get-tool", "get-kept", "get-checked"]


def test_while_planning_nothing_is_written_started_locked_or_connected(home: TemporaryHome, acts: list[str]) -> None:
    global _is_watching
    pipeline(home)
    with working_folder(home.work):
        engine = new_engine(home.engine_home, None)
        engine.source.index.by_tags(["use"], ())  # the index is brought up to date first, and may be written
        engine.store.entries_of("")
        request = parse_request({"tags": "use,all", "outdirname": "out", "save_env": True})
        _is_watching = True
        try:
            make_plan(engine, request)
            assert acts == []
            with pytest.raises(FileNotFoundError):
                (home.work / "nowhere" / "file").write_text("")
        finally:
            _is_watching = False
    assert [act.split()[0] for act in acts] == ["open"], "the hook sees what it is for"


@pytest.mark.parametrize(("port", "planned"), [(Effects, PlannedEffects), (Entries, PlannedStore)])
def test_a_plan_has_an_answer_of_its_own_to_every_method_of_the_port(port: type[Protocol], planned: type) -> None:
    names = {name for name, _ in inspect.getmembers(port, inspect.isfunction) if not name.startswith("_")}
    assert len(names) >= 9
    assert names <= set(vars(planned)), "inherited from something that acts"

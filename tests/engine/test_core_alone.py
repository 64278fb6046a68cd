"""A run needs nothing of plan, explain, provenance and audit.

Each can be deleted: its package, the package's name in ``recipe_engine/__init__.py`` and below, and its tests. Explain
and provenance are built on plan and go with it.
"""

import re
import subprocess
import sys
from pathlib import Path

import recipe_engine
from helpers import with_python_path
from recipe_engine.actions.adapter import loaded

FEATURES = (*("planning", "explaining", "provenance", "auditing", "documents.needs", "documents.console_text"),)
"""Plan, explain, provenance (lock, record, reproduce, diff) and audit."""
RUN_WITHOUT = """
import sys
from pathlib import Path


class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.removeprefix("recipe_engine.").startswith(tuple(sys.argv[2].split(","))):
            raise ImportError(f"the core needs {name}")


sys.meta_path.insert(0, Refusing())
from helpers import TemporaryHome

home = TemporaryHome(Path(sys.argv[1]))
home.recipe("get-tool", {"cache": True, "new_env_keys": ["TOOL"]}, run_sh="echo TOOL=here > tmp-run-env.out")
home.recipe("use-tool", {"deps": [{"tags": "get,tool"}], "new_env_keys": ["TOOL"]})
for status in ("made", "reused"):
    print(home.run("use,tool")["new_env"]["TOOL"])
"""


def run_without(tmp_path: Path, *blocked: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", RUN_WITHOUT, str(tmp_path), ",".join(blocked)]
    return subprocess.run(words, env=with_python_path("tests/support", "automation"), capture_output=True, text=True)


def test_a_recipe_is_made_and_reused_without_plan_explain_provenance_and_audit(tmp_path: Path) -> None:
    done = run_without(tmp_path, *FEATURES)
    assert done.stdout.split() == ["here", "here"], done.stderr
    assert "the core needs recipe_engine.disk.store" in run_without(tmp_path, "disk.store").stderr


def test_every_feature_that_the_core_does_without_exists() -> None:
    folder = Path(recipe_engine.__file__).parent
    missing = [name for name in FEATURES if not list(folder.glob(name.replace(".", "/") + "*"))]
    assert missing == []


def test_every_function_that_is_loaded_by_its_name_exists() -> None:
    folder = Path(recipe_engine.__file__).parent
    texts = [path.read_text(encoding="utf-8") for path in (*folder.glob("*/*.py"), *folder.parent.glob("*/module.py"))]
    names = {name for text in texts for name in re.findall(r"(?:answer\(self\.cmind, i, |loaded\()\"([\w.]+)\"", text)}
    assert {"run.run_action", "adapter.use_action"} <= names
    is_there = {name: name.count(".") == 1 or (folder / name.partition(".")[0]).is_dir() for name in names}
    assert [name for name in sorted(names) if is_there[name] and not callable(loaded(name))] == []

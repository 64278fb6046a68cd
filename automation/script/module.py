"""cmind's door to the engine: the actions of ``cm ... script``. Each is one call; all else is in recipe_engine."""

import importlib.util
import sys
from pathlib import Path

from cmind.automation import Automation

# --- the same lines in every adapter (a test compares them) ---
ENGINE = Path(__file__).resolve().parent.parent / "recipe_engine"
if "recipe_engine" not in sys.modules:
    _spec = importlib.util.spec_from_file_location(
        "recipe_engine", ENGINE / "__init__.py", submodule_search_locations=[str(ENGINE)]
    )
    sys.modules["recipe_engine"] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules["recipe_engine"])
if Path(sys.modules["recipe_engine"].__file__).parent != ENGINE:
    raise ImportError(
        f"two copies of crowdperf are registered: {ENGINE} and {sys.modules['recipe_engine'].__file__}; "
        "remove one with: cm rm repo crowdperf"
    )
# --- end of the same lines ---

from recipe_engine.cm_home import home_of  # noqa: E402
from recipe_engine.report import answer_cm  # noqa: E402
from recipe_engine.run import run_action, search_action  # noqa: E402


class CAutomation(Automation):
    """Actions of ``cm ... script``."""

    def __init__(self, cmind, automation_file):
        super().__init__(cmind, __file__)

    def run(self, i):
        """Run a recipe: cm run script --tags=get,python3 [flags]; README.md lists the flags."""
        return answer_cm(lambda i: run_action(i, home_of(self.cmind), self.cmind), i, self.cmind)

    def use(self, i):
        """Run all recipes on this engine, beside another one too: cm use crowdperf:script."""
        from recipe_engine.beside import use_action

        return answer_cm(lambda i: use_action(i, self.cmind), i, self.cmind)

    def plan(self, i):
        """Tell what a run would do, and do none of it: cm plan script --tags=get,python3 [--graph=mermaid|dot|html]."""
        from recipe_engine.plan_action import plan_action

        return answer_cm(lambda i: plan_action(i, home_of(self.cmind)), i, self.cmind)

    def search(self, i):
        """Find recipes by tags or name and print their folders."""
        return answer_cm(self._search, i, self.cmind)

    def _search(self, i):
        if i.get("parsed_automation", [("", "")])[0][1] != self.meta["uid"]:
            return super().search(i)
        paths = search_action(i, home_of(self.cmind))
        if i.get("out") == "con":
            print("\n".join(str(path) for path in paths))
        return {"return": 0, "list": [self._artifact(path) for path in paths]}

    def _artifact(self, path):
        from cmind.artifact import Artifact

        artifact = Artifact(cmind=self.cmind, path=str(path))
        artifact.load()
        return artifact

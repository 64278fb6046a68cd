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

from recipe_engine.actions.cm_home import home_of, loaded_artifact  # noqa: E402
from recipe_engine.actions.report import answer_cm  # noqa: E402
from recipe_engine.actions.run import run_action, search_action  # noqa: E402


class CAutomation(Automation):
    """Actions of ``cm ... script``."""

    def __init__(self, cmind, automation_file):
        super().__init__(cmind, __file__)

    def run(self, i):
        """Run a recipe: cm run script --tags=get,python3 [flags]; README.md lists the flags."""
        if i.get("help") or i.get("h"):
            return self.describe(i)
        return answer_cm(lambda i: run_action(i, home_of(self.cmind), self.cmind), i, self.cmind)

    def use(self, i):
        """Run all recipes on this engine, beside another one too: cm use crowdperf:script."""
        from recipe_engine.actions.beside import use_action

        return answer_cm(lambda i: use_action(i, self.cmind), i, self.cmind)

    def plan(self, i):
        """Tell what a run would do, and do none of it: cm plan script --tags=get,python3 [--graph=mermaid|dot|html]."""
        from recipe_engine.actions.plan_action import plan_action

        return answer_cm(lambda i: plan_action(i, home_of(self.cmind)), i, self.cmind)

    def explain(self, i):
        """Tell why a step of a run would be what it is: cm explain script --tags=... [--step=NAME] [--env=KEY,KEY]."""
        from recipe_engine.actions.explain_action import explain_action

        return answer_cm(lambda i: explain_action(i, home_of(self.cmind)), i, self.cmind)

    def add(self, i):
        """Write a new recipe from a template: cm add script [repo:]alias --tags=.. [--template=plain|tool|file]."""
        from recipe_engine.actions.scaffold import add_action

        return answer_cm(lambda i: add_action(i, home_of(self.cmind)), i, self.cmind)

    def audit(self, i):
        """Look over recipes without running them: cm audit script [[repo:]alias] [--tags=..] [--level=info]."""
        from recipe_engine.actions.audit import audit_action

        return answer_cm(lambda i: audit_action(i, home_of(self.cmind)), i, self.cmind)

    def lock(self, i):
        """Write down what a run uses, so that another uses the same: cm lock script --tags=... > crowdperf.lock."""
        from recipe_engine.actions.lock_action import lock_action

        return answer_cm(lambda i: lock_action(i, home_of(self.cmind)), i, self.cmind)

    def runs(self, i):
        """List the runs that were made, or show the steps of one: cm runs script [id]."""
        from recipe_engine.actions.resume import runs_action

        return answer_cm(lambda i: runs_action(i, home_of(self.cmind)), i, self.cmind)

    def resume(self, i):
        """Go on with a run that did not end well: cm resume script [id] [--force]."""
        from recipe_engine.actions.resume import resume_action

        return answer_cm(lambda i: resume_action(i, home_of(self.cmind), self.cmind), i, self.cmind)

    def record(self, i):
        """Write down how a result is made again, for recipes that make one: cm record script --folder=... --name=..."""
        from recipe_engine.actions.record_action import record_action

        return answer_cm(lambda i: record_action(i, home_of(self.cmind)), i, self.cmind)

    def reproduce(self, i):
        """Make a result again from its folder and compare: cm reproduce script RESULT [--check_only|--plan]."""
        from recipe_engine.actions.reproduce import reproduce_action

        return answer_cm(lambda i: reproduce_action(i, home_of(self.cmind), self.cmind), i, self.cmind)

    def diff(self, i):
        """Tell what differs between two results: cm diff script A B [--tolerance=PERCENT] [--exit_code]."""
        from recipe_engine.actions.results import diff_action

        return answer_cm(diff_action, i, self.cmind)

    def describe(self, i):
        """Tell how to call a recipe: cm help script RECIPE, cm run script --tags=... --help."""
        from recipe_engine.actions.script_actions import help_action

        return answer_cm(lambda i: help_action(i, home_of(self.cmind)), i, self.cmind)

    def version(self, i):
        """Print the version of this engine."""
        from recipe_engine.actions.script_actions import version_action

        return answer_cm(version_action, i, self.cmind)

    def prepare(self, i):
        """Run the dependencies of a recipe and not the recipe itself: cm prepare script --tags=..."""
        from recipe_engine.actions.script_actions import prepare_action

        return answer_cm(lambda i: prepare_action(i, home_of(self.cmind), self.cmind), i, self.cmind)

    def native_run(self, i):
        """Run a command with an env: cm native-run script --command=... [--env.KEY=VALUE]."""
        from recipe_engine.actions.script_actions import native_run_action

        return answer_cm(native_run_action, i, self.cmind)

    def test(self, i):
        """Run the tests that a recipe names: cm test script RECIPE [--test_input_index=N|N+] [--test_input_id=ID]."""
        from recipe_engine.actions.script_actions import test_action

        return answer_cm(lambda i: test_action(i, home_of(self.cmind), self.cmind.access), i, self.cmind)

    def doc(self, i):
        """Write a page for each recipe from its metadata: cm doc script [--tags=...] [--output_dir=FOLDER]."""
        from recipe_engine.actions.script_actions import doc_action

        return answer_cm(lambda i: doc_action(i, home_of(self.cmind)), i, self.cmind)

    def docker(self, i):
        """Not there: says what to use in place of cm docker script."""
        from recipe_engine.actions.script_actions import unsupported_action

        return answer_cm(unsupported_action, i, self.cmind)

    def dockerfile(self, i):
        """Not there: says what to use in place of cm dockerfile script."""
        return self.docker(i)

    def gui(self, i):
        """Not there: says what to use in place of cm gui script."""
        return self.docker(i)

    def delete(self, i):
        """Remove recipes: cm rm script [REPO:]NAME [-f]."""
        return answer_cm(self._delete, i, self.cmind)

    def _delete(self, i):
        from recipe_engine.actions.script_actions import check_removal

        check_removal(i)
        return super().delete(i)

    def search(self, i):
        """Find recipes by tags or name and print their folders."""
        return answer_cm(self._search, i, self.cmind)

    def _search(self, i):
        if i.get("parsed_automation", [("", "")])[0][1] != self.meta["uid"]:
            return super().search(i)
        from cmind.artifact import Artifact

        home = home_of(self.cmind)
        paths = search_action(i, home)
        if i.get("out") == "con":
            for path in paths:
                print(path)
        recipes = [Artifact(cmind=self.cmind, path=str(path)) for path in paths]
        return {"return": 0, "list": [loaded_artifact(recipe, home) for recipe in recipes]}

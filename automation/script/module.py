"""The actions of ``cm ... script``, as cmind calls them. Each is one call into recipe_engine."""

import importlib.util
import sys
from pathlib import Path

from cmind.automation import Automation

# --- the same lines in every adapter (a test compares them) ---
ENGINE = Path(__file__).resolve().parent.parent / "recipe_engine"
if "recipe_engine" not in sys.modules:
    _spec = importlib.util.spec_from_file_location("recipe_engine", ENGINE / "__init__.py")
    sys.modules["recipe_engine"] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules["recipe_engine"])
if Path(sys.modules["recipe_engine"].__file__).parent != ENGINE:
    raise ImportError(
        f"two copies of crowdperf are registered: {ENGINE} and {sys.modules['recipe_engine'].__file__}. "
        "Remove one with: cm rm repo crowdperf"
    )
# --- end of the same lines ---

from recipe_engine.actions.adapter import answer, answer_cm, found_artifacts, home_of  # noqa: E402


class CAutomation(Automation):
    """Actions of ``cm ... script``; cmind and ``cm help script`` show their docstrings."""

    def __init__(self, cmind, automation_file):
        super().__init__(cmind, __file__)

    def run(self, i):
        """Run a recipe: cm run script --tags=get,python3 [flags]; docs/reference/command-line.md lists the flags."""
        if i.get("help") or i.get("h"):
            return self.describe(i)
        return answer(self.cmind, i, "run.run_action", "home", "cmind")

    def use(self, i):
        """Run all recipes on this engine, even if another one is registered: cm use crowdperf:script."""
        return answer(self.cmind, i, "adapter.use_action", "cmind")

    def plan(self, i):
        """Show what a run would do, without doing it: cm plan script --tags=get,python3 [--graph=mermaid|dot|html]."""
        return answer(self.cmind, i, "planning.plan_action.plan_action", "home")

    def explain(self, i):
        """Show why a step of a run is what it is: cm explain script --tags=... [--step=NAME] [--env=KEY,KEY]."""
        return answer(self.cmind, i, "explaining.explain.explain_action", "home")

    def add(self, i):
        """Write a new recipe: cm add script [repo:]alias --tags=.. [--template=plain|tool|file|benchmark]."""
        return answer(self.cmind, i, "scaffold.add_action", "home")

    def audit(self, i):
        """Check recipes without running them: cm audit script [[repo:]alias] [--tags=..] [--level=info]."""
        return answer(self.cmind, i, "auditing.audit.audit_action", "home")

    def lock(self, i):
        """Record what a run uses, so that another run uses the same: cm lock script --tags=... > crowdperf.lock."""
        return answer(self.cmind, i, "provenance.lock.lock_action", "home")

    def runs(self, i):
        """List past runs, or show the steps of one: cm runs script [id] [--last=N]."""
        return answer(self.cmind, i, "journals.runs_action", "home")

    def resume(self, i):
        """Resume a run that failed or was interrupted: cm resume script [id] [--force]."""
        return answer(self.cmind, i, "journals.resume_action", "home", "cmind")

    def record(self, i):
        """Record how a result can be reproduced; for recipes that make one: cm record script --folder=... --name=..."""
        return answer(self.cmind, i, "provenance.record.record_action", "home")

    def reproduce(self, i):
        """Reproduce a result from its folder and compare: cm reproduce script RESULT [--check_only|--plan]."""
        return answer(self.cmind, i, "provenance.reproduce.reproduce_action", "home", "cmind")

    def diff(self, i):
        """Compare two results: cm diff script A B [--max_slowdown=PERCENT] [--tolerance=PERCENT] [-v]."""
        return answer(self.cmind, i, "provenance.diff.diff_action")

    def describe(self, i):
        """Show how to call a recipe or an action: cm help script RECIPE, cm run script --tags=... --help."""
        return answer(self.cmind, i, "help.help_action", "home", type(self))

    def version(self, i):
        """Print the version of this engine."""
        return answer(self.cmind, i, "script_actions.version_action")

    def prepare(self, i):
        """Run the dependencies of a recipe, not the recipe itself: cm prepare script --tags=..."""
        return answer(self.cmind, i, "script_actions.prepare_action", "home", "cmind")

    def native_run(self, i):
        """Run a command with an env: cm native-run script --command=... [--env.KEY=VALUE]."""
        return answer(self.cmind, i, "script_actions.native_run_action")

    def test(self, i):
        """Run the tests of a recipe: cm test script RECIPE [--test_input_index=N|N+] [--test_input_id=ID]."""
        return answer(self.cmind, i, "script_actions.test_action", "home", "cmind")

    def doc(self, i):
        """Write a page for each recipe from its metadata: cm doc script [--tags=...] [--output_dir=FOLDER]."""
        return answer(self.cmind, i, "script_actions.doc_action", "home")

    def docker(self, i):
        """Not available: prints what to use instead of cm docker script."""
        return answer(self.cmind, i, "script_actions.unsupported_action")

    def dockerfile(self, i):
        """Not available: prints what to use instead of cm dockerfile script."""
        return self.docker(i)

    def gui(self, i):
        """Not available: prints what to use instead of cm gui script."""
        return self.docker(i)

    def delete(self, i):
        """Remove recipes: cm rm script [REPO:]NAME [-f]."""
        return answer_cm(self._delete, i, self.cmind)

    def _delete(self, i):
        from recipe_engine.actions.script_actions import check_removal

        check_removal(i)
        return super().delete(i)

    def search(self, i):
        """Find recipes by tags or name, one line each: cm find script [NAME] [--tags=get,python3] [-v]."""
        return answer_cm(self._search, i, self.cmind)

    def _search(self, i):
        if i.get("parsed_automation", [("", "")])[0][1] != self.meta["uid"]:
            return super().search(i)
        from cmind.artifact import Artifact
        from recipe_engine.actions.help import search_action

        paths, recipes = search_action(i, home_of(self.cmind))
        found = found_artifacts(self.cmind, Artifact, paths)
        return {**found, "recipes": recipes} if i.get("out") else found

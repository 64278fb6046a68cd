"""The actions of ``cm ... cache``, as cmind calls them. Each is one call into recipe_engine."""

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
    """Actions of ``cm ... cache``."""

    def __init__(self, cmind, automation_file):
        super().__init__(cmind, __file__)

    def show(self, i):
        """Show entries: a table, or all that is known of one: cm show cache [UID] [--tags=get,python3] [--env] [-v]."""
        return answer(self.cmind, i, "cache_report.show_action", "home")

    def describe(self, i):
        """Show how to call an action: cm help cache [ACTION], cm gc cache --help."""
        return answer(self.cmind, i, "help.help_action", "home", type(self))

    def explain(self, i):
        """Show what made an entry, whether it is intact, what needs it and how to reach it: cm explain cache [UID]."""
        return answer(self.cmind, i, "explaining.explain.explain_cache_action", "home")

    def search(self, i):
        """Find entries and print their folders: cm find cache --tags=get,python3."""
        return answer_cm(self._search, i, self.cmind)

    def delete(self, i):
        """Remove entries: cm rm cache --tags=get,python3 -f."""
        return answer(self.cmind, i, "cache_actions.remove_action", "home")

    def verify(self, i):
        """Compare entries with what their recipes made: cm verify cache [UID] [--tags=..] [--skip=recipe]."""
        return answer(self.cmind, i, "cache_report.verify_action", "home")

    def gc(self, i):
        """Remove what is no longer needed: cm gc cache --dry-run [--max-size=20GB] [--older-than=30d] [-f]."""
        return answer(self.cmind, i, "cache_actions.gc_action", "home")

    def pin(self, i):
        """Protect entries and what they need from cm gc cache: cm pin cache UID, or --tags=..."""
        return answer(self.cmind, i, "cache_actions.pin_action", "home", True)

    def unpin(self, i):
        """Undo cm pin cache."""
        return answer(self.cmind, i, "cache_actions.pin_action", "home", False)

    def _search(self, i):
        from cmind.artifact import Artifact
        from recipe_engine.actions.cache_actions import search_entries

        paths = [entry.path for entry in search_entries(i, home_of(self.cmind))]
        return found_artifacts(self.cmind, Artifact, paths)

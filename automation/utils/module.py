"""The actions of ``cm ... utils``, as cmind calls them. Each is one call into recipe_engine."""

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

from recipe_engine.actions.adapter import answer  # noqa: E402


class CAutomation(Automation):
    """Actions of ``cm ... utils``."""

    def __init__(self, cmind, automation_file):
        super().__init__(cmind, __file__)

    def compare_versions(self, i):
        """Print which of two versions is newer: cm compare_versions utils --version1=1.9 --version2=1.10."""
        return answer(self.cmind, i, "utils_actions.compare_versions")

    def download_file(self, i):
        """Download one file: --url=URL [--path=FOLDER] [--filename=NAME] [--md5sum=...] [--sha256sum=...]."""
        return answer(self.cmind, i, "utils_actions.download_file")

    def get_host_os_info(self, i):
        """Print the kind of system, its bits, and how scripts are started on it."""
        return answer(self.cmind, i, "utils_actions.get_host_os_info")

    def system(self, i):
        """Run a command line and collect its output: --cmd=... [--path=FOLDER]."""
        return answer(self.cmind, i, "utils_actions.system")

    def unzip_file(self, i):
        """Unpack an archive: --filename=FILE [--path=FOLDER] [--strip_folders=N]."""
        return answer(self.cmind, i, "utils_actions.unzip_file")

    def load_cfg(self, i):
        """Load the configuration files of cfg artifacts: --tags=... or a name."""
        return answer(self.cmind, i, "utils_actions.load_cfg", "home")

    def select_cfg(self, i):
        """Choose one configuration file of cfg artifacts: --tags=... [--alias=NAME] [--uid=UID]."""
        return answer(self.cmind, i, "utils_actions.select_cfg", "home")

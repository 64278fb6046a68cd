"""cmind's door to the engine: the actions of ``cm ... utils``. Each is one call; all else is in recipe_engine."""

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

from recipe_engine.actions import utils_actions as actions  # noqa: E402
from recipe_engine.actions.cm_home import home_of  # noqa: E402
from recipe_engine.actions.report import answer_cm  # noqa: E402


class CAutomation(Automation):
    """Actions of ``cm ... utils``."""

    def __init__(self, cmind, automation_file):
        super().__init__(cmind, __file__)

    def compare_versions(self, i):
        """Tell which of two versions is newer: cm compare_versions utils --version1=1.9 --version2=1.10."""
        return answer_cm(actions.compare_versions, i, self.cmind)

    def copy_to_clipboard(self, i):
        """Put --string into the clipboard of the desktop."""
        return answer_cm(actions.copy_to_clipboard, i, self.cmind)

    def create_toc_from_md(self, i):
        """Write a table of contents of a Markdown file: --input=FILE.md [--output=FILE]."""
        return answer_cm(actions.create_toc_from_md, i, self.cmind)

    def detect_tags_in_artifact(self, i):
        """Take the tags out of a first word with blanks, in the given input."""
        return answer_cm(actions.detect_tags_in_artifact, i, self.cmind)

    def dos2unix(self, i):
        """Write a text file with the line ends of Unix: --input=FILE [--output=FILE]."""
        return answer_cm(actions.dos2unix, i, self.cmind)

    def download_file(self, i):
        """Download one file: --url=URL [--path=FOLDER] [--filename=NAME] [--md5sum=...] [--sha256sum=...]."""
        return answer_cm(actions.download_file, i, self.cmind)

    def generate_secret(self, i):
        """Print a fresh random secret."""
        return answer_cm(actions.generate_secret, i, self.cmind)

    def get_host_os_info(self, i):
        """Tell the kind of system, its bits, and how scripts are started on it."""
        return answer_cm(actions.get_host_os_info, i, self.cmind)

    def json2yaml(self, i):
        """Write a JSON file as YAML: --input=FILE.json [--output=FILE.yaml]."""
        return answer_cm(actions.json2yaml, i, self.cmind)

    def list_files_recursively(self, i):
        """Print the files below the current folder, with commas between."""
        return answer_cm(actions.list_files_recursively, i, self.cmind)

    def print_json(self, i):
        """Print a JSON file: --file=FILE."""
        return answer_cm(actions.print_json, i, self.cmind)

    def print_yaml(self, i):
        """Print a YAML file as JSON: --file=FILE."""
        return answer_cm(actions.print_yaml, i, self.cmind)

    def prune_input(self, i):
        """Drop the keys of an input that belong to cmind."""
        return answer_cm(actions.prune_input, i, self.cmind)

    def replace_string_in_file(self, i):
        """Replace a text in a file: --input=FILE --string=OLD --replacement=NEW [--output=FILE]."""
        return answer_cm(actions.replace_string_in_file, i, self.cmind)

    def sort_json(self, i):
        """Sort the keys of a JSON file: --input=FILE [--output=FILE]."""
        return answer_cm(actions.sort_json, i, self.cmind)

    def system(self, i):
        """Run a command line and collect its output: --cmd=... [--path=FOLDER]."""
        return answer_cm(actions.system, i, self.cmind)

    def uid(self, i):
        """Print a fresh UID for an artifact."""
        return answer_cm(actions.uid, i, self.cmind)

    def unzip_file(self, i):
        """Unpack an archive: --filename=FILE [--path=FOLDER] [--strip_folders=N]."""
        return answer_cm(actions.unzip_file, i, self.cmind)

    def yaml2json(self, i):
        """Write a YAML file as JSON: --input=FILE.yaml [--output=FILE.json]."""
        return answer_cm(actions.yaml2json, i, self.cmind)

    def load_cfg(self, i):
        """Load the configuration files of cfg artifacts: --tags=... or a name."""
        from recipe_engine.actions import cfg_files

        return answer_cm(lambda i: cfg_files.load_cfg(i, home_of(self.cmind)), i, self.cmind)

    def select_cfg(self, i):
        """Choose one configuration file of cfg artifacts: --tags=... [--alias=NAME] [--uid=UID]."""
        from recipe_engine.actions import cfg_files

        return answer_cm(lambda i: cfg_files.select_cfg(i, home_of(self.cmind)), i, self.cmind)

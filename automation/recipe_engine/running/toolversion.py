"""Which crowdperf this is: the version of ``src/crowdperf``, and the commit of the checkout that this file belongs to.

Never the commit of the folder that the user is in, nor that of a repository around an unpacked copy: only a ``.git`` of
the checkout itself counts. Without one, or without git, the version stands alone.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..disk.files import read_json
from ..disk.repos import CHECKOUT
from .process import answer_of

WHAT_RUNS = ("automation", "script", "src", "tools", "cm", "run.sh", "cmr.yaml", "pyproject.toml", "requirements.txt")
"""What of a checkout a result depends on: notes and results that lie next to it do not make it another one."""
BUILT_FROM = "built-from.json"
"""In a wheel and in an sdist, written by setup.py: the commit of the files, and whether some differed from it."""
PACKAGE = "src/crowdperf/__init__.py"
"""The file with ``__version__``, read as text because the engine imports nothing of ``src``."""
SHORT = 12
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")
"""Set in hooks of git, for the user's own repository."""


@dataclass(frozen=True)
class ToolVersion:
    """version: "1.2.3", "unknown" without src/crowdperf. commit: 40 hex digits, "" where nothing says it.
    is_modified: whether files that run differ from the commit; None without one."""

    version: str
    commit: str
    is_modified: bool | None

    @property
    def text(self) -> str:
        """``1.2.3+g3f0019cd1a2b.modified``, as PEP 440 writes a local version."""
        parts = [f"g{self.commit[:SHORT]}"] if self.commit else []
        return "+".join((self.version, ".".join([*parts, *(["modified"] if self.is_modified else [])]))).rstrip("+")

    def record(self) -> dict[str, str | bool | None]:
        """For JSON files: the key ``crowdperf`` of environment.json and record.json."""
        return {"version": self.version, "commit": self.commit, "is_modified": self.is_modified}


def project_version(checkout: Path) -> str:
    """The version of the package ``crowdperf`` in a checkout, ``unknown`` without one."""
    path = checkout / PACKAGE
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    found = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    return found.group(1) if found else "unknown"


@lru_cache(maxsize=4)
def tool_version(checkout: Path = CHECKOUT) -> ToolVersion:
    """Asks git, once in a process: two calls of about 10 ms, so for the end of runs and ``--version`` alone."""
    version = project_version(checkout)
    if not (checkout / ".git").exists():
        built = read_json(checkout / BUILT_FROM) or {}
        return ToolVersion(version, str(built.get("commit", "")), built.get("is_modified"))
    commit = _git(checkout, "rev-parse", "--verify", "HEAD")
    if not re.fullmatch(r"[0-9a-f]{40,64}", commit):
        return ToolVersion(version, "", None)
    return ToolVersion(version, commit, bool(_git(checkout, "status", "--porcelain", "--", *WHAT_RUNS)))


def _git(checkout: Path, *words: str) -> str:
    without = [word for name in _ELSEWHERE for word in ("-u", name)]
    git = ["git", "--no-optional-locks", "-c", "safe.directory=*", "-C", str(checkout)]
    return answer_of(["env", *without, *git, *words])

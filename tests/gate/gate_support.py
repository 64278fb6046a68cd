"""For tests of the gate: the good trees, made once, and changed copies of them."""

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tree_builder import LOG_ROUND, build, copy_of

from crowdperf.gate import gate
from crowdperf.gate.rulebook import Severity
from crowdperf.gate.views import Options


class Trees:
    """The good trees, and a folder for copies; what was read once is remembered, because only one file differs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count()
        for division in ("open", "closed"):
            build(folder / division, division)

    @contextmanager
    def changed(self, tree: str, change: Callable[[Path], object] | None = None) -> Iterator[Path]:
        """A copy of a good tree with a change, for the length of a block."""
        root = copy_of(self.folder / tree, self.folder / f"copy-{next(self._numbers)}")
        if change is not None:
            change(root)
        yield root
        shutil.rmtree(root)


def verdict(root: Path, round_name: str = LOG_ROUND, **options: object) -> gate.Verdict:
    """The gate's verdict."""
    return gate.check(root, round_name, Options(**options))


def refusing_rules(found: gate.Verdict) -> set[str]:
    """The rules with a finding that refuses."""
    return {finding.rule for finding in found.findings if finding.severity is Severity.ERROR}

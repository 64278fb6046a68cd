"""For tests of the gate: the good trees, made once, and changed copies of them."""

import functools
import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tree_builder import LOG_ROUND, build, copy_of

from crowdperf.gate import gate, run_fingerprint
from crowdperf.gate.log_view import log_view
from crowdperf.gate.rulebook import Severity
from crowdperf.gate.views import Options
from crowdperf.kit import privacy


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


@pytest.fixture(scope="session")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trees]:
    """The good trees."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_fingerprint, "log_view", functools.lru_cache(maxsize=200)(log_view))
        for name in ("_all_spans", "_places"):
            patch.setattr(privacy, name, functools.lru_cache(maxsize=500)(getattr(privacy, name)))
        yield Trees(tmp_path_factory.mktemp("trees"))


def verdict(root: Path, round_name: str = LOG_ROUND, **options: object) -> gate.Verdict:
    """The gate's verdict."""
    return gate.check(root, round_name, Options(**options))


def refusing_rules(found: gate.Verdict) -> set[str]:
    """The rules with a finding that refuses."""
    return {finding.rule for finding in found.findings if finding.severity is Severity.ERROR}

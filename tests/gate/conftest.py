"""The good trees, for every test of the gate."""

import functools
from collections.abc import Iterator

import pytest
from gate_support import Trees

from crowdperf.gate import run_fingerprint
from crowdperf.gate.log_view import log_view
from crowdperf.kit import privacy


@pytest.fixture(scope="session")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trees]:
    """The good trees."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_fingerprint, "log_view", functools.lru_cache(maxsize=200)(log_view))
        for name in ("_all_spans", "_places"):
            patch.setattr(privacy, name, functools.lru_cache(maxsize=500)(getattr(privacy, name)))
        yield Trees(tmp_path_factory.mktemp("trees"))

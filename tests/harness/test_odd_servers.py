"""Odd servers: each gives the right figure, or none and the reason (odd_servers.py has the table)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from odd_servers import COUNT, RIGHT, ROWS, Odd, measured, table, write_model
from stub_openai import running_stub

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "odd-servers.md"
MIN_ROWS = 60


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_stub() as (_, found):
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize("odd", [odd for _, odd in ROWS], ids=[f"{kind}: {odd.name}" for kind, odd in ROWS])
def test_an_odd_server_gives_the_right_figure_or_none_and_the_reason(url: str, folder: Path, odd: Odd) -> None:
    found = measured(url, folder, odd)
    assert found.outcome == odd.outcome, found
    assert odd.words in found.reason and odd.says in found.notes, found
    if odd.outcome == RIGHT:
        assert found.tokens == (odd.tokens,) * COUNT
        assert bool(odd.says) == bool(found.notes), found.notes


def test_the_page_shows_the_table_and_it_is_long_enough() -> None:
    rows = table(ROWS)
    assert len(ROWS) >= MIN_ROWS and len({odd.name for _, odd in ROWS}) == len(ROWS)
    command = "PYTHONPATH=src:tests/support python3 tests/harness/odd_servers.py"
    assert "\n".join(rows) in PAGE.read_text(encoding="utf-8"), f"{command} prints the table"

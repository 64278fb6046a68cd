"""docs/reference/benchmarks/ and the tables of docs/howto/rules.md: what they must hold, and what is refused.

That they are what the tool makes of the records is a test in tests/rules/test_records.py.
"""

import re
from pathlib import Path

import benchmark_page
import pytest
import rules_tables

from crowdperf.rules.benchmarks import BENCHMARKS, RECORDS
from crowdperf.rules.rounds import rounds_of, rules_in

ROOT = Path(__file__).resolve().parents[2]

PAGES = ROOT / "docs" / "reference" / "benchmarks"
RULES = (ROOT / "docs" / "howto" / "rules.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", RECORDS)
def test_a_page_has_every_heading_and_words_of_its_own(folder: str) -> None:
    text = (PAGES / f"{RECORDS[folder].name}.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == list(benchmark_page.HEADINGS)
    words = benchmark_page.words_of(folder)
    assert {"Dataset", "Model", "Optimizations"} <= set(words)
    assert all(one in text for one in words.values())


def test_there_is_no_page_of_a_benchmark_that_is_gone() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == {record.name for record in RECORDS.values()}


@pytest.mark.parametrize("text", ["words before\n## Model\nx\n", "## Modell\nx\n", "## Model\nx\n\n## Dataset\ny\n"])
def test_a_page_with_other_sections_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "benchmarks" / "mine").mkdir(parents=True)
    (tmp_path / "benchmarks" / "mine" / "page.md").write_text(text, encoding="utf-8")
    monkeypatch.setattr(benchmark_page, "BENCHMARKS", tmp_path / "benchmarks")
    with pytest.raises(ValueError, match="allowed, in this order: Dataset, Model"):
        benchmark_page.words_of("mine")


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_rules_page_has_the_numbers_of_each_benchmark(name: str) -> None:
    rules = rules_in(name, rounds_of(name)[-1])
    row = next(line for line in RULES.splitlines() if line.startswith(f"| `{name}` | {rounds_of(name)[-1]} | "))
    assert f"| {rules.dataset_count:,} | " in row
    assert all(f"{one.metric} {round(one.target, 4):,}" in row for one in rules.targets)


def test_a_rules_page_without_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="it must have"):
        rules_tables.rules_page(RULES.replace("<!-- table: lengths -->", ""))

"""The page of the rules lists them all, in their words, and the numbers that the edition has."""

import re
from pathlib import Path

import crowdperf.endpoints.rules
from crowdperf.curves.official import CHECKER_VERSION
from crowdperf.endpoints.edition import read_edition
from crowdperf.endpoints.findings import TITLES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "endpoints-rules.md"


def test_the_page_has_each_rule_in_its_words():
    assert crowdperf.endpoints.rules.check_tree is not None  # its import enters all rules
    rows = dict(re.findall(r"^\| (E\d+) \| (.+?) \|", PAGE.read_text(encoding="utf-8"), re.M))
    assert rows == TITLES
    assert list(rows) == [f"E{number}" for number in range(20)]


def test_the_page_has_the_numbers_of_the_edition():
    text, edition = PAGE.read_text(encoding="utf-8"), read_edition()
    assert f"1 to 32 | {edition.floor_s(32, is_agentic=False):g} s" in text
    assert f"above | {edition.floor_s(33, is_agentic=False):,g} s, of agentic" in text
    assert f"models {edition.floor_s(33, is_agentic=True):,g} s" in text
    assert text.count(CHECKER_VERSION) == 2
    assert edition.read_on in text

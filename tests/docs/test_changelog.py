"""CHANGELOG.md is in the form of Keep a Changelog, and fragments have the names that towncrier collects."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFIG = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("[tool.towncrier]")[2]
KINDS = dict(re.findall(r'directory = "(\w+)", name = "(\w+)"', CONFIG))
FRAGMENT = re.compile(rf"(?:\+[a-z0-9-]+|\d+)\.(?:{'|'.join(KINDS)})(?:\.\d+)?\.md")


def test_fragments_have_a_kind_that_is_collected() -> None:
    assert list(KINDS) == ["breaking", "added", "changed", "fixed", "removed", "security"]
    names = {path.name for path in (ROOT / "changelog.d").iterdir()} - {"README.md"}
    assert [name for name in names if not FRAGMENT.fullmatch(name)] == []


@pytest.mark.parametrize("name", ["36.added.md", "+gpu-kit.fixed.md", "36.fixed.2.md"])
def test_names_that_are_collected(name: str) -> None:
    assert FRAGMENT.fullmatch(name)


@pytest.mark.parametrize("name", ["36.feature.md", "gpu-kit.fixed.md", "36.md", "36.fixed.txt"])
def test_names_that_are_not(name: str) -> None:
    assert not FRAGMENT.fullmatch(name)


def test_releases_are_dated_and_sections_are_of_known_kinds() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    start = re.findall(r'start_string = "(.+)\\n"', CONFIG)
    assert [text.count(one) for one in start] == [1]
    first, *releases = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert first == "Unreleased" or re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", first)
    done = [one for one in releases if not one.startswith("Unreleased")]
    assert [one for one in done if not re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", one)] == []
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= set(KINDS.values())

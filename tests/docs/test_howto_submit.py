"""docs/howto/submit.md: each command names recipes, variations and inputs that there are."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from recipe_engine.rules.flags import FLAGS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "howto" / "submit.md").read_text(encoding="utf-8")
COMMANDS = [shlex.split(line[2:]) for line in PAGE.splitlines() if line.startswith("$ cm run script")]
ELSEWHERE = {"device", "backend", "implementation", "adr.python.name", "name", "tar_file"}
"""Inputs of the tutorial that a recipe may also pass on without naming them."""


def recipes() -> list[dict[str, Any]]:
    return [yaml.safe_load(path.read_text(encoding="utf-8")) for path in ROOT.glob("script/*/_cm.yaml")]


def tags_of(words: list[str]) -> list[str]:
    given = next((word.removeprefix("--tags=") for word in words if word.startswith("--tags=")), "")
    return given.split(",") if given else words[3].split()


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[3:4])[:60])
def test_a_command_names_what_there_is(words: list[str]) -> None:
    tags = tags_of(words)
    plain = {tag for tag in tags if not tag.startswith("_")}
    variations = {tag[1:] for tag in tags if tag.startswith("_")}
    fitting = [recipe for recipe in recipes() if plain <= {*recipe["tags"], recipe["alias"]}]
    named = [recipe for recipe in fitting if variations <= set(recipe.get("variations") or {})]
    assert named, f"no recipe for {tags}"
    flags = [word[2:].partition("=")[0].replace("-", "_") for word in words if word.startswith("--")]
    for recipe in named:
        known = {*(recipe.get("input_mapping") or {}), *FLAGS, *ELSEWHERE, "tags", "out", "version"}
        assert [flag for flag in flags if flag not in known] == [], recipe["alias"]


def test_the_page_goes_the_whole_way() -> None:
    places = [
        PAGE.find(text)
        for text in (
            "pip install cmind",
            "_find-performance",
            "_accuracy-only",
            "_performance-only",
            "_populate-readme",
            "generate,inference,submission",
            "check,mlperf,submission",
            "report,mlperf,submission",
            "push,github",
            "--push\n",
        )
    ]
    assert places == sorted(places) and places[0] > 0


def test_the_words_of_refusals_are_those_of_the_recipes() -> None:
    source = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("push-mlperf-inference-results-to-github", "get-mlperf-results-lib/mlperf_results")
        for path in (ROOT / "script" / folder).glob("*.py")
    )
    table = PAGE.partition("### When it refuses")[2]
    quoted = re.findall(r"^\| ((?:`[^`]+`[, ]*)+)", table, re.MULTILINE)
    words = [word for row in quoted for word in re.findall(r"`([^`]+)`", row)]
    assert len(words) >= 6
    assert [word for word in words if word not in source] == []

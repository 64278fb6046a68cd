"""Every action of the adapters has a help text, which fits a screen and begins with its call."""

import json
import re

import pytest
from helpers import CHECKOUT
from recipe_engine.actions.action_help import ACTION_HELP, COMMON_NAMES, flags_of, known_flags

UNAVAILABLE = {"docker", "dockerfile", "gui"}


@pytest.mark.parametrize("automation", ["script", "cache"])
def test_each_action_has_a_help_text_and_asks_cmind_to_leave_it_to_us(automation: str) -> None:
    folder = CHECKOUT / "automation" / automation
    defined = set(re.findall(r"^    def ([a-z]\w*)\(self, i\)", (folder / "module.py").read_text(), re.MULTILINE))
    meta = json.loads((folder / "_cm.json").read_text())
    assert set(meta["actions_with_help"]) == defined
    names = {COMMON_NAMES.get(name, name.replace("_", "-")) for name in defined - UNAVAILABLE}
    described = {name for place, name in ACTION_HELP if place == automation}
    assert names - described == ({"help"} if automation == "cache" else set())
    assert described <= names


@pytest.mark.parametrize("place", ACTION_HELP, ids="-".join)
def test_a_help_text_begins_with_the_call_and_fits(place: tuple[str, str]) -> None:
    (automation, name), text = place, ACTION_HELP[place]
    assert re.match(rf"cm {name} (crowdperf:)?{automation}\b", text)
    assert max(map(len, text.splitlines())) <= 100
    assert text.splitlines()[1].startswith("  "), "what it does"


def test_the_flags_of_an_action_are_those_that_its_text_names() -> None:
    assert flags_of("cache", "gc") == ["--dry-run", "--max-size", "--older-than"]
    assert "--last" in flags_of("script", "runs")
    assert flags_of("script", "no-such") == []
    assert known_flags("cache", "gc") == {"dry_run", "max_size", "older_than", "f", "force"}
    assert known_flags("script", "no-such") is known_flags("script", "plan") is None


def test_each_helper_of_recipes_has_its_flags() -> None:
    text = (CHECKOUT / "automation" / "utils" / "module.py").read_text()
    defined = re.findall(r"^    def ([a-z]\w*)\(self, i\)", text, re.MULTILINE)
    assert defined and [name for name in defined if known_flags("utils", name) is None] == []

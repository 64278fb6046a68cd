"""What another CM engine did with the recipes of ``fixture_recipes.py``, this engine does too."""

import argparse
import json
import sys
from pathlib import Path

import pytest
from compare_goldens import check
from fixture_recipes import CASES, commands, write_recipes

GOLDENS = Path(__file__).with_name("goldens")


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipes(tmp_path_factory.mktemp("recorded"))


@pytest.mark.parametrize("name", CASES)
def test_a_run_gives_what_the_recorded_engine_gave(name: str, recipes: Path) -> None:
    golden = json.loads((GOLDENS / f"{name}.json").read_text(encoding="utf-8"))
    assert [*golden["setup_commands"], golden["command"]] == commands(name), "record it again: record_goldens.py"
    options = argparse.Namespace(
        recipes=recipes,
        goldens=GOLDENS,
        fixtures=recipes / "fixtures",
        environment=Path(sys.prefix),
        plans=False,
        deep=None,
        show=False,
    )
    assert check(name, options) == []

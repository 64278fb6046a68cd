"""Compares docs/howto/when-a-run-fails.md with what `cm` says when such a run fails."""

import re
from pathlib import Path

from helpers import TemporaryHome
from recipe_engine.rules.errors import RecipeError

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "howto" / "when-a-run-fails.md").read_text(encoding="utf-8")
EXAMPLE = re.search(r"<!-- example: begin -->\n```console\n(.*?)```\n<!-- example: end -->", PAGE, re.DOTALL)


def plain(text: str, home: TemporaryHome) -> list[str]:
    """The lines of a failure without what differs from run to run: entry names, run ids, folders."""
    text = text.replace(str(home.store.parents[2]), "~/CM").replace(str(home.repo), "~/recipes")
    text = re.sub(r"\b[0-9a-f]{16}\b", "<entry>", text)
    text = re.sub(r"\b\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{4}\b", "<id>", text)
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def test_the_example_is_what_a_failing_run_says(home: TemporaryHome) -> None:
    assert EXAMPLE is not None
    home.recipe("get-sample", {"cache": True}, run_sh='cp "$CM_SAMPLE_FROM" sample.txt')
    meta = {"deps": [{"tags": "get,sample"}], "input_mapping": {"from": "CM_SAMPLE_FROM"}}
    home.recipe("build-report", meta)
    command, _, shown = EXAMPLE[1].partition("\n")
    failed = home.cm(*command.removeprefix("$ cm ").split())
    assert failed.code == 2
    assert plain(failed.stderr, home) == plain(shown, home)


def test_the_table_names_the_lines_of_an_error_in_their_order() -> None:
    rows = re.findall(r"^\| (?:the |`)(\w+(?: \w+)?)`? \|", PAGE, re.MULTILINE)
    assert rows == ["first", "chain", "command", "memory", "last lines", "log", "hint", "again", "step alone", "resume"]
    error = RecipeError("it failed", hint="h", trace=("a",), log_path="l")
    error.command, error.notes, error.output, error.output_title = "c", ("memory: m",), ("o",), "last lines"
    error.rerun, error.given, error.shows_step, error.run_id = "r", "g", True, "i"
    labels = [
        line.strip().partition(":")[0] for line in error.describe().splitlines()[1:] if not line.startswith("    ")
    ]
    assert labels == rows[1:]

"""docs/howto/submit.md has every step, and quotes the refusals of the recipes; test_pages.py checks its commands."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "howto" / "submit.md").read_text(encoding="utf-8")


def test_the_page_goes_the_whole_way() -> None:
    beginning = PAGE.index("## 1. ")
    places = [
        PAGE.find(text, beginning)
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
        for folder in ("script/push-mlperf-inference-results-to-github", "src/crowdperf/kit", "src/crowdperf/logs")
        for path in (ROOT / folder).glob("*.py")
    )
    table = PAGE.partition("### When it refuses")[2].partition("\n## ")[0]
    quoted = re.findall(r"^\| ((?:`[^`]+`[, ]*)+)", table, re.MULTILINE)
    words = [word for row in quoted for word in re.findall(r"`([^`]+)`", row)]
    assert len(words) >= 6
    assert [word for word in words if word not in source] == []

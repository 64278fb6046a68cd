"""CNN/DailyMail 3.0.0 as MLPerf's GPT-J takes it: cnn_eval.json, as download_cnndm.py of language/gpt-j writes it.

    [{"instruction": "Summarize the following news article:", "input": "(CNN) The ...", "output": "A said b .\\n..."}]

The official list has the 13,368 articles of the validation part, in the data set's order.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.harness.base.dataset import SamplesOfFile, read_facts
from crowdperf.harness.base.errors import HarnessError

ARTICLES_FILE = "cnn_eval.json"
_KEYS = ("instruction", "input", "output")
_HINT = "rebuild the data set: cm run script --tags=get,dataset,cnndm --renew"


@dataclass(frozen=True, slots=True)
class Article:
    """One task: what to do, the article, and the summary that people wrote."""

    instruction: str
    text: str
    summary: str


class CnnDmDataset(SamplesOfFile[Article]):
    """The articles (the official ones are 60 MB)."""

    @property
    def summaries(self) -> tuple[str, ...]:
        return tuple(article.summary for article in self.samples)

    def problems(self) -> list[str]:
        """Return what opening does not look at: articles that cannot be scored."""
        empty = [number for number, article in enumerate(self.samples) if not (article.text and article.summary)]
        return [f"{len(empty)} articles have no text or summary, the first is number {empty[0]}"] if empty else []


def _article(entry: Any) -> Article:
    values = [entry[key] for key in _KEYS]
    if not all(isinstance(value, str) for value in values):
        raise TypeError(f"{', '.join(_KEYS)} must be texts")
    return Article(*values)


def open_dataset(folder: Path, name: str = ARTICLES_FILE) -> CnnDmDataset:
    """Return the articles of `folder`/`name`; raises HarnessError naming the first entry that cannot be used."""
    path = folder / name
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise HarnessError(f"cannot read {path}: {error}", _HINT) from error
    if not isinstance(entries, list) or not entries:
        raise HarnessError(f"{path} contains no list of articles", _HINT)
    articles = []
    for number, entry in enumerate(entries):
        try:
            articles.append(_article(entry))
        except (KeyError, TypeError) as error:
            raise HarnessError(f"{path}: entry {number} cannot be used: {error!r}", _HINT) from error
    return CnnDmDataset(path, tuple(articles), read_facts(folder))

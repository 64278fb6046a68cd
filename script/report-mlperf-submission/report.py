"""Puts one report together: which results belong to it, its title, its parts. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crowdperf.kit.html_page import bullets, document, folded, text
from crowdperf.logs.result_rows import Results, Row
from crowdperf.rules.names import counted

from . import sections
from .evidence import EvidenceList
from .rownames import Names

LABEL_PLACE = '<p class="label">{}</p>'


@dataclass(frozen=True, slots=True)
class Submission:
    """The results of one submitter in one division; of a results folder: its style (valid_results), or nothing."""

    division: str
    submitter: str
    rows: tuple[Row, ...]

    @property
    def file_name(self) -> str:
        """The report's file, without anything that a file name may not have."""
        words = [part for part in ("report", self.division, self.submitter) if part]
        safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in "-".join(words))
        return f"{safe}.html"

    @property
    def title(self) -> str:
        """What the report is of."""
        if self.submitter:
            return f"MLPerf Inference results of {self.submitter}, {self.division} division"
        return " ".join(["MLPerf Inference results", *([f"({self.division})"] if self.division else [])])


@dataclass(frozen=True, slots=True)
class Extras:
    """What lies elsewhere: load.json by the SHA-256 of a detail log, origins of system facts by system and key."""

    loads: Mapping[str, Mapping[str, Any]]
    origins: Mapping[str, Mapping[str, str]]


def submissions(results: Results) -> tuple[Submission, ...]:
    """The submissions that the rows belong to."""
    grouped: dict[tuple[str, str], list[Row]] = {}
    for row in results.rows:
        words = row.group.split("/")
        key = (words[-3], words[-2]) if len(words) >= 3 else (row.group, "")
        grouped.setdefault(key, []).append(row)
    return tuple(Submission(*key, tuple(rows)) for key, rows in sorted(grouped.items()))


def summary(rows: Sequence[Row]) -> str:
    """One sentence that says how many results there are and how good they are."""
    runs = [facts for row in rows for facts in row.performance]
    valid = sum(facts.is_valid is True for facts in runs)
    judged = [score.is_passed for row in rows for facts in row.accuracy for score in facts.scores]
    known, missed = sum(passed is not None for passed in judged), judged.count(False)
    systems = len({row.system for row in rows})
    words = f"{len(rows)} result{'' if len(rows) == 1 else 's'} on {systems} system{'' if systems == 1 else 's'}"
    words += f": LoadGen calls {valid} of {len(runs)} performance runs VALID; "
    words += f"{missed} of {known} accuracy targets missed." if known else "there is no accuracy target."
    return f"<p>{text(words)}</p>"


def render(submission: Submission, extras: Extras, left_out: Sequence[str]) -> str:
    """The page of one submission."""
    rows, places, names = submission.rows, EvidenceList(), Names(submission.rows)
    labels = sections.label_words(rows, names)
    page = [f"<h1>{text(submission.title)}</h1>", *(LABEL_PLACE.format(text(words)) for words in labels), summary(rows)]
    systems: dict[str, list[Row]] = {}
    for row in rows:
        systems.setdefault(row.system, []).append(row)
    for name, own in systems.items():
        page += [f"<h2>{text(name)}</h2>", sections.results_table(own, names, places), sections.reasons(own, names)]
    page.append(sections.backends_compared(rows, names))
    page += sections.answers(rows, names)
    page += ["<h2>Latencies</h2>", sections.latencies(rows, names, places)]
    page += ["<h2>Compared with published results of the same system</h2>", sections.published(rows, names)]
    page += ["<h2>Memory and load during the runs</h2>", sections.loads(rows, names, extras.loads)]
    for name, own in systems.items():
        words = "Environment" if len(systems) == 1 else f"Environment of {name}"
        page += [f"<h2>{text(words)}</h2>", sections.environment(own, names, extras.origins.get(name, {}))]
    page += [
        "<h2>Where each number stands</h2>",
        '<p class="quiet">The links in the columns "Log" lead to these lines. A file with another SHA-256 is not the'
        " one that was read.</p>",
        places.tables(),
    ]
    if left_out:
        page.append(folded(f"{counted(len(left_out), 'folder')} with logs not shown", bullets(left_out)))
    page += [LABEL_PLACE.format(text(words)) for words in labels[:1]]
    return document(": ".join([submission.title, *labels[:1]]), page)

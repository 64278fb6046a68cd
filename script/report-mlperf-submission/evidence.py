"""Remembers where figures come from: each one links to the file, the line and the SHA-256 of the log it stands in."""

from crowdperf.kit.html_page import Html, table, text
from crowdperf.logs.run_facts import Evidence


class EvidenceList:
    """Collects the places that the figures of a page point to, in the order of their use."""

    def __init__(self) -> None:
        self._numbers: dict[Evidence, int] = {}
        self._meanings: dict[Evidence, tuple[str, str]] = {}

    def link(self, words: str, meaning: str, evidence: Evidence, shown: str) -> Html:
        """A link, `shown`, to the place of the number ``words``; ``meaning`` says there what it is."""
        number = self._numbers.setdefault(evidence, len(self._numbers) + 1)
        self._meanings.setdefault(evidence, (words, meaning))
        return Html(f'<a href="#log-{number}">{text(shown)}</a>')

    def tables(self) -> str:
        """For each file its SHA-256 and the lines that were read from it."""
        files: dict[tuple[str, str], list[Evidence]] = {}
        for found in self._numbers:
            files.setdefault((found.file, found.sha256), []).append(found)
        parts = []
        for (file, sha256), places in sorted(files.items()):
            parts.append(f"<h3>{text(file)}</h3>\n<p>SHA-256 <code>{text(sha256)}</code></p>")
            rows = [self._row(found) for found in sorted(places, key=lambda found: found.line)]
            parts.append(table(("Line", "Number", "Meaning"), rows, numbers=(1,)))
        return "\n".join(parts)

    def _row(self, found: Evidence) -> tuple[Html, str, str]:
        words, meaning = self._meanings[found]
        return Html(f'<span id="log-{self._numbers[found]}">{found.line or "?"}</span>'), words, meaning

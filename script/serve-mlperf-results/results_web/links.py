"""Where each page is: as a server has it, and as files that a browser opens from a disk."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, urlencode

from .queries import TableQuery

_ROUND = re.compile(r"v\d{1,2}\.\d{1,2}")


def round_url(kind: str, round_name: str) -> str:
    """The repository in which MLCommons publishes the round of a published result; "" for any other.

    Form: mlcommons/inference_results_v6.1 and mlcommons/inference_results_v5.1 at GitHub, whose files have the rows'
    Location (read 2026-11-23). Not every Location names a folder that is there, so the row itself is not linked.
    """
    is_there = kind == "published" and _ROUND.fullmatch(round_name)
    return f"https://github.com/mlcommons/inference_results_{round_name}" if is_there else ""


def _safe(word: str) -> str:
    return word if word.isascii() and word.isalnum() else quote(word, safe="", errors="replace")


class Links(Protocol):
    """The addresses that pages link to; "" where there is no such page."""

    def home(self) -> str: ...
    def about(self) -> str: ...
    def style(self) -> str: ...
    def table(self, query: TableQuery) -> str: ...
    def result(self, result_id: str) -> str: ...
    def result_json(self, result_id: str) -> str: ...
    def file(self, result_id: str, name: str) -> str: ...
    def configuration(self, key: str) -> str: ...
    def configuration_json(self, key: str) -> str: ...
    def system(self, key: str) -> str: ...
    def signer(self, key_id: str) -> str: ...
    def curve(self, result_id: str, others: Sequence[str] = ()) -> str: ...
    def compare(self, result_ids: Sequence[str]) -> str: ...


class ServerLinks:
    """The addresses of a server at the root of its host."""

    def home(self) -> str:
        """The table."""
        return "/"

    def about(self) -> str:
        """What the labels mean."""
        return "/about"

    def style(self) -> str:
        """The style of all pages."""
        return "/style.css"

    def table(self, query: TableQuery) -> str:
        """The table for a query."""
        return f"/?{query.address()}"

    def result(self, result_id: str) -> str:
        """The page of a result, which never changes its address."""
        return f"/r/{_safe(result_id)}"

    def result_json(self, result_id: str) -> str:
        """A result as JSON."""
        return f"/api/v1/results/{_safe(result_id)}.json"

    def file(self, result_id: str, name: str) -> str:
        """A file of a result."""
        return f"/r/{_safe(result_id)}/files/{quote(name, errors='replace')}"

    def configuration(self, key: str) -> str:
        """All results of a configuration."""
        return f"/c/{_safe(key)}"

    def configuration_json(self, key: str) -> str:
        """A configuration as JSON."""
        return f"/api/v1/configurations/{_safe(key)}.json"

    def system(self, key: str) -> str:
        """All results of a system."""
        return f"/system/{_safe(key)}"

    def signer(self, key_id: str) -> str:
        """All results that a key signed."""
        return f"/signer/{_safe(key_id)}"

    def curve(self, result_id: str, others: Sequence[str] = ()) -> str:
        """A curve, with others over it."""
        words = urlencode([("with", other) for other in others])
        return f"/curve/{_safe(result_id)}" + (f"?{words}" if words else "")

    def compare(self, result_ids: Sequence[str]) -> str:
        """A comparison of two to four results."""
        return "/compare?" + urlencode(list(zip("abcd", result_ids, strict=False)))


@dataclass(frozen=True, slots=True)
class FileLinks:
    """The addresses of pages that are files; `up` leads from the page to the top folder: "" or "../"."""

    up: str

    def home(self) -> str:
        """The table."""
        return f"{self.up}index.html"

    def about(self) -> str:
        """What the labels mean."""
        return f"{self.up}about.html"

    def style(self) -> str:
        """The style of all pages."""
        return f"{self.up}style.css"

    def table(self, query: TableQuery) -> str:
        """There is no other table: files cannot search."""
        return ""

    def result(self, result_id: str) -> str:
        """The page of a result."""
        return f"{self.up}r/{_safe(result_id)}.html"

    def result_json(self, result_id: str) -> str:
        """A result as JSON."""
        return f"{self.up}r/{_safe(result_id)}.json"

    def file(self, result_id: str, name: str) -> str:
        """Files of results are not written."""
        return ""

    def configuration(self, key: str) -> str:
        """All results of a configuration."""
        return f"{self.up}c/{_safe(key)}.html"

    def configuration_json(self, key: str) -> str:
        """A configuration as JSON."""
        return f"{self.up}c/{_safe(key)}.json"

    def system(self, key: str) -> str:
        """All results of a system."""
        return f"{self.up}system/{_safe(key)}.html"

    def signer(self, key_id: str) -> str:
        """All results that a key signed."""
        return f"{self.up}signer/{_safe(key_id)}.html"

    def curve(self, result_id: str, others: Sequence[str] = ()) -> str:
        """A curve; laying curves over each other needs a server."""
        return "" if others else f"{self.up}curve/{_safe(result_id)}.html"

    def compare(self, result_ids: Sequence[str]) -> str:
        """Comparing needs a server."""
        return ""

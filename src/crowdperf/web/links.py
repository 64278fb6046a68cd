"""Where each page is: as a server has it, and as files that a browser opens from a disk."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from crowdperf.web.queries import TableQuery

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


@dataclass(frozen=True, slots=True)
class Links:
    """The addresses that pages link to; "" where there is no such page. site_name: what stands above all pages.

    up: from a page that is a file to the top folder, "" or "../"; None where a server has the pages at the root of its
    host. Files of results are not written there, and searching, comparing and laying curves over each other need one.
    """

    up: str | None = None
    site_name: str = ""

    def home(self) -> str:
        """The table."""
        return "/" if self.up is None else f"{self.up}index.html"

    def about(self) -> str:
        """What the labels mean."""
        return "/about" if self.up is None else f"{self.up}about.html"

    def style(self) -> str:
        """The style of all pages."""
        return "/style.css" if self.up is None else f"{self.up}style.css"

    def table(self, query: TableQuery) -> str:
        """The table for a query."""
        return f"/?{query.address()}" if self.up is None else ""

    def result(self, result_id: str) -> str:
        """The page of a result, which never changes its address."""
        return f"/r/{_safe(result_id)}" if self.up is None else f"{self.up}r/{_safe(result_id)}.html"

    def result_json(self, result_id: str) -> str:
        """A result as JSON."""
        word = _safe(result_id)
        return f"/api/v1/results/{word}.json" if self.up is None else f"{self.up}r/{word}.json"

    def file(self, result_id: str, name: str) -> str:
        """A file of a result."""
        return f"/r/{_safe(result_id)}/files/{quote(name, errors='replace')}" if self.up is None else ""

    def configuration(self, key: str) -> str:
        """All results of a configuration."""
        return f"/c/{_safe(key)}" if self.up is None else f"{self.up}c/{_safe(key)}.html"

    def configuration_json(self, key: str) -> str:
        """A configuration as JSON."""
        return f"/api/v1/configurations/{_safe(key)}.json" if self.up is None else f"{self.up}c/{_safe(key)}.json"

    def system(self, key: str) -> str:
        """All results of a system."""
        return f"/system/{_safe(key)}" if self.up is None else f"{self.up}system/{_safe(key)}.html"

    def signer(self, key_id: str) -> str:
        """All results that a key signed."""
        return f"/signer/{_safe(key_id)}" if self.up is None else f"{self.up}signer/{_safe(key_id)}.html"

    def curve(self, result_id: str, others: Sequence[str] = (), per: str = "") -> str:
        """A curve, with others over it. per: "accelerator" for rates per accelerator."""
        if self.up is not None:
            return "" if others or per else f"{self.up}curve/{_safe(result_id)}.html"
        words = urlencode([*(("with", other) for other in others), *([("per", per)] if per else [])])
        return f"/curve/{_safe(result_id)}" + (f"?{words}" if words else "")

    def compare(self, result_ids: Sequence[str]) -> str:
        """A comparison of two to four results."""
        return "/compare?" + urlencode(list(zip("abcd", result_ids, strict=False))) if self.up is None else ""


LINK = Links()
"""Those of the server."""

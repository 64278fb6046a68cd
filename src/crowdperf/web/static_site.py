"""Writes the pages as files that a browser opens from a disk: no server, no search, the same content.

    index.html, index-2.html ...   all results, the newest first; b/NAME.html: those of one benchmark
    r/ID.html, r/ID.json           c/KEY.html, c/KEY.json    system/KEY.html    signer/KEY.html    curve/ID.html
    about.html, style.css, results.csv, results.json

What is hidden or withdrawn is left out. The folder appears whole or not at all, in the place of one that was written
before.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from crowdperf.store.query import Filter, Row
from crowdperf.store.schema import StoreError
from crowdperf.store.store import Store
from crowdperf.web import api, pages
from crowdperf.web.home_chart import home_chart
from crowdperf.web.links import Links
from crowdperf.web.queries import TableQuery
from crowdperf.web.render import page, style
from crowdperf.web.result_page import result_page
from crowdperf.web.tables import table_of

MARK: Final = "results.json"
"""A folder that has it, and index.html, was written by this module and may be replaced by it."""
PAGE_ROWS: Final = 500
MAX_ROWS: Final = 100_000


class SiteError(Exception):
    """The pages cannot be written there; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Written:
    """How many files were written, and of how many results."""

    files: int
    results: int


def name_of_benchmark(benchmark: str) -> str:
    """A file's name for a benchmark: letters, digits, dots and hyphens of its own name, 100 at most."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", benchmark).strip("._")[:100] or "unnamed"


def _table(link: Links, rows: Sequence[Row], **values: object) -> str:
    given: dict[str, object] = {
        "here": "home",
        "newest": None,
        "newest_href": "",
        "table_heading": "Results",
        "chart": None,
        "form": None,
        "chips": (),
        "groups": (),
        "rows": table_of(rows, link),
        "caption": "Results, the newest first",
        "downloads": (),
        "first_href": "",
        "next_href": "",
        "lead": pages.LEAD,
        **values,
    }
    return page("home", link, **given)


def _index_name(place: int) -> str:
    return "index.html" if place == 0 else f"index-{place + 1}.html"


def _tables(store: Store, site_name: str, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    top, below = Links("", site_name), Links("../", site_name)
    benchmarks: dict[str, list[Row]] = {}
    for row in rows:
        benchmarks.setdefault(row.benchmark, []).append(row)
    names = {benchmark: name_of_benchmark(benchmark) for benchmark in sorted(benchmarks)}
    groups = [(f"{name} ({len(benchmarks[name]):,})", f"b/{file}.html") for name, file in names.items()]
    parts = [rows[start : start + PAGE_ROWS] for start in range(0, len(rows), PAGE_ROWS)] or [()]
    for place, part in enumerate(parts):
        yield (
            _index_name(place),
            _table(
                top,
                part,
                title=site_name,
                heading=site_name,
                groups=groups,
                chart=None if place else home_chart(store, top, TableQuery(), rows[: pages.MAX_OF_CHART]),
                count=f"{len(rows):,} results",
                downloads=[("CSV", "results.csv"), ("JSON", "results.json")],
                first_href="index.html" if place else "",
                next_href=_index_name(place + 1) if place + 1 < len(parts) else "",
            ),
        )
    for file in dict.fromkeys(names.values()):
        found = [row for benchmark, name in names.items() if name == file for row in benchmarks[benchmark]]
        words = found[0].benchmark
        yield (
            f"b/{file}.html",
            _table(
                below,
                found,
                title=words,
                heading=words,
                count=f"{len(found):,} results",
                chart=home_chart(store, below, TableQuery(), found[: pages.MAX_OF_CHART]),
            ),
        )


def _pages(store: Store, site_name: str, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    top, below = Links("", site_name), Links("../", site_name)
    yield from _tables(store, site_name, rows)
    for row in rows:
        one = store.result(row.id)
        yield f"r/{row.id}.html", result_page(store, below, one)
        yield f"r/{row.id}.json", api.json_text(api.result_with_place(one, below)).decode()
        if one.result.curve:
            yield f"curve/{row.id}.html", pages.curve_page(store, below, [one])
    for key in dict.fromkeys(row.key for row in rows):
        yield f"c/{key}.html", pages.configuration_page(store, below, key) or ""
        found = api.configuration_object(store, key, below)
        yield f"c/{key}.json", api.json_text(found).decode()
    for key in dict.fromkeys(row.system_key for row in rows):
        yield f"system/{key}.html", pages.system_page(store, below, key) or ""
    for key in dict.fromkeys(row.signer for row in rows if row.signer):
        yield f"signer/{key}.html", pages.signer_page(store, below, key) or ""
    yield "about.html", pages.about_page(top)
    yield "style.css", style()
    yield "results.csv", api.csv_text([rows], top).decode()
    yield MARK, api.json_text(api.results_object(rows, len(rows), "", top)).decode()


def write_site(store: Store, output: Path, site_name: str) -> Written:
    """Write all pages to a folder that is new, empty, or has the pages of before. Raises SiteError, OSError."""
    output = output.absolute()
    if output.is_symlink() or (output.exists() and not output.is_dir()):
        raise SiteError(f"--output={output} is not a folder\nhint: name a new one")
    is_ours = (output / MARK).is_file() and (output / "index.html").is_file()
    if output.is_dir() and any(output.iterdir()) and not is_ours:
        raise SiteError(f"--output={output} has other files in it\nhint: name a new folder, or an empty one")
    unfinished, before = (output.with_name(f".{output.name}.{os.getpid()}.{word}") for word in ("part", "old"))
    rows = store.find(Filter(), limit=MAX_ROWS).rows
    count = 0
    try:
        for name, text in _pages(store, site_name, rows):
            path = unfinished / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
            count += 1
        if output.exists():
            output.rename(before)
        unfinished.rename(output)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        if not output.exists() and before.exists():
            before.rename(output)
        shutil.rmtree(before, ignore_errors=True)
    return Written(count, len(rows))


def main(words: Sequence[str]) -> int:
    """Write the pages of a database: DATABASE OUTPUT NAME; 0, or 1 where that cannot be."""
    database, output, name = words
    try:
        with Store.open(Path(database), read_only=True) as store:
            written = write_site(store, Path(output), name)
    except (StoreError, SiteError, OSError) as error:
        print(f"export-mlperf-results: {error}", file=sys.stderr)
        return 1
    print(f"{written.files:,} files of {written.results:,} results: {Path(output) / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The API that reads: tables as JSON and CSV with the filters of the pages, one result, one configuration.

Every object has `format`, the number of this form; what is not published carries "unofficial" in words.
"""

import dataclasses
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from crowdperf.kit.csv_cells import guarded
from crowdperf.kit.html_page import plain
from crowdperf.store.model import Result
from crowdperf.store.query import Row
from crowdperf.store.result_json import result_object
from crowdperf.store.store import Store, Withdrawn
from crowdperf.web.collector import collector_of
from crowdperf.web.guard import tagged
from crowdperf.web.links import LINK, Links
from crowdperf.web.pages import filter_of, row_batches, rows_of, rows_of_query
from crowdperf.web.queries import TableQuery, query_of
from crowdperf.web.tables import COLUMNS, SORTS

FORMAT: Final = 1
MAX_ROWS_JSON: Final = 1_000
MAX_ROWS_CSV: Final = 100_000
NOT_IN_CSV: Final = frozenset(("state", "key", "system_key", "higher_is_better", "alias", "valid", "labels", "settings",
                                "score", "ttft_p99_ms", "tpot_p99_ms"))  # fmt: skip


def row_object(row: Row, link: Links) -> dict[str, Any]:
    """A row of the table as a JSON object."""
    found: dict[str, Any] = row._asdict()
    return {
        **found,
        "labels": list(row.labels),
        "url": link.result(row.id),
        "configuration": link.configuration(row.key),
    }


def results_object(rows: Sequence[Row], total: int, next_key: str, link: Links) -> dict[str, Any]:
    """A page of the table as a JSON object; `next` is what `after` is for the next page."""
    return {
        "format": FORMAT,
        "total": total,
        "results": [row_object(row, link) for row in rows],
        "next": next_key or None,
    }


def result_with_place(one: Result, link: Links) -> dict[str, Any]:
    """A whole result as a JSON object; files by digest, with the address of those that are kept."""
    signer = None
    if one.signer is not None:
        signer = {"key_id": one.signer.key_id, "alias": one.signer.alias, "public_key": one.signer.public_key.hex()}
    return {
        "format": FORMAT,
        "id": one.id,
        "url": link.result(one.id),
        "configuration_key": one.key,
        "system_key": one.system_key,
        "added_utc": one.added_utc,
        "source": dataclasses.asdict(one.source),
        "signer": signer,
        "result": result_object(one.result),
    }


def configuration_object(store: Store, key: str, link: Links) -> dict[str, Any] | None:
    """A configuration with its results as a JSON object; None where no result is shown."""
    rows = rows_of(store, "key", key)
    configuration = store.configuration(key) if rows else None
    if configuration is None:
        return None
    return {
        "format": FORMAT,
        "key": key,
        "configuration": dataclasses.asdict(configuration),
        "results": [row_object(row, link) for row in rows],
    }


def json_text(content: object) -> bytes:
    """JSON as it is given out: ASCII, so that no half of a surrogate pair can break it."""
    return (json.dumps(content, indent=1, ensure_ascii=True) + "\n").encode("ascii")


class _Cells(dict[str, str]):
    """Texts as cells, each made once: most texts of a table are in many of its rows."""

    def __missing__(self, text: str) -> str:
        cell = guarded(plain(text))
        if _SPECIAL.search(cell):
            cell = '"' + cell.replace('"', '""') + '"'
        self[text] = cell
        return cell


_SPECIAL: Final = re.compile(r'[",\r\n]')
_AS_IT_IS: Final = tuple(name for name in Row._fields if name not in NOT_IN_CSV)
_SAFE: Final = frozenset(("id", "accelerator_count", "nodes", "value"))
"""What has no character that means something in a table: ids are made here, the others are numbers."""
CSV_HEADINGS: Final = (*_AS_IT_IS, "valid", "better", "labels", "url")
_VERDICTS: Final = {True: "VALID", False: "INVALID", None: ""}
_BETTER: Final = {True: "higher", False: "lower"}


def csv_text(batches: Iterable[Sequence[Row]], link: Links) -> bytes:
    """Rows as CSV; a cell that a spreadsheet would calculate has an apostrophe before it."""
    cells, parts = _Cells(), [",".join(CSV_HEADINGS)]
    for rows in batches:
        columns = dict(zip(Row._fields, zip(*rows, strict=True), strict=bool(rows)))
        texts: list[Iterable[str]] = [
            map(str if name in _SAFE else cells.__getitem__, columns.get(name, ())) for name in _AS_IT_IS
        ]
        texts += [
            map(_VERDICTS.__getitem__, columns.get("valid", ())),
            map(_BETTER.__getitem__, columns.get("higher_is_better", ())),
            map(cells.__getitem__, map("; ".join, columns.get("labels", ()))),
            map(link.result, columns.get("id", ())),
        ]
        parts += map(",".join, zip(*texts, strict=True))
    return "\n".join((*parts, "")).encode("utf-8", "backslashreplace")


def query_asked(request: Request) -> TableQuery:
    """What the address of a request asks of the table."""
    return query_of(request.query_params.multi_items(), tuple(COLUMNS), SORTS)


async def results_json(request: Request) -> Response:
    """The table as JSON; `limit` rows a page, 100 without it."""
    query, text = query_asked(request), request.query_params.get("limit", "")
    limit = min(max(int(text), 1), MAX_ROWS_JSON) if text.isascii() and text.isdigit() and len(text) < 9 else 100

    def made(store: Store) -> dict[str, Any]:
        found = rows_of_query(store, query, limit)
        return results_object(found.rows, store.facets(filter_of(query)).total, found.next_key, LINK)

    return tagged(request, json_text(await collector_of(request).database.read(made)), "application/json")


async def results_csv(request: Request) -> Response:
    """All rows that fit as CSV."""
    query = query_asked(request)

    def made(store: Store) -> bytes:
        return csv_text(row_batches(store, query, MAX_ROWS_CSV), LINK)

    answer = tagged(request, await collector_of(request).database.read(made), "text/csv; charset=utf-8")
    answer.headers["Content-Disposition"] = 'attachment; filename="results.csv"'
    return answer


async def result_json(request: Request) -> Response:
    """A whole result as JSON; 410 for one that is not shown any more."""
    result_id = request.path_params["id"]
    try:
        one = await collector_of(request).database.find(
            lambda store: store.result(result_id), "this result does not exist"
        )
    except Withdrawn as gone:
        raise HTTPException(410, f"withdrawn by its sender on {gone.time_utc}") from None
    if one.state != "shown":
        raise HTTPException(410, "hidden by a moderator")
    return tagged(request, json_text(result_with_place(one, LINK)), "application/json")


async def configuration_json(request: Request) -> Response:
    """A configuration with its results as JSON."""
    key = request.path_params["key"]
    words = "this configuration does not exist"
    found = await collector_of(request).database.find(lambda store: configuration_object(store, key, LINK), words)
    return tagged(request, json_text(found), "application/json")


def problem_answer(problems: Sequence[Any]) -> JSONResponse:
    """Why something is refused, each with rule, file, what was found and what is expected."""
    return JSONResponse({"problems": [dataclasses.asdict(one) for one in problems]}, status_code=422)


def routes() -> list[Route]:
    """What is read as data."""
    return [
        Route("/api/v1/results.json", results_json),
        Route("/api/v1/results.csv", results_csv),
        Route("/api/v1/results/{id}.json", result_json),
        Route("/api/v1/configurations/{key}.json", configuration_json),
    ]

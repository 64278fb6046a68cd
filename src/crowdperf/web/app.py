"""The server: which address gives which page, and what is answered where something is missing or goes wrong."""

import contextlib
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from crowdperf.store.model import Result
from crowdperf.store.store import NoSuchResult, Store, Withdrawn
from crowdperf.web import api, moderation, pages, uploads
from crowdperf.web.access import Tokens
from crowdperf.web.collector import Collector, collector_of
from crowdperf.web.compare_page import compare_page
from crowdperf.web.comparison import MOST
from crowdperf.web.database import Database
from crowdperf.web.guard import HEADERS, HostNames, SecurityHeaders, tagged
from crowdperf.web.links import Links
from crowdperf.web.render import page, style
from crowdperf.web.result_page import result_page
from crowdperf.web.settings import Settings

HTML = "text/html; charset=utf-8"


def html(request: Request, text: str, status: int = 200) -> Response:
    """A page as an answer."""
    return tagged(request, text.encode("utf-8", "backslashreplace"), HTML, status)


async def home(request: Request) -> Response:
    """The table."""
    collector = collector_of(request)
    query = api.query_asked(request)
    return html(request, await collector.database.read(lambda store: pages.table_page(store, collector.link, query)))


async def result(request: Request) -> Response:
    """A result; 410 with the reason for one that was withdrawn or hidden."""
    collector, result_id = collector_of(request), request.path_params["id"]

    def made(store: Store) -> tuple[str, int]:
        try:
            one = store.result(result_id)
        except Withdrawn as gone:
            return gone_page(collector.link, result_id, WITHDRAWN, gone.reason), 410
        if one.state != "shown":
            hidden = [action.reason for action in store.actions(result_id=result_id) if action.what in ("hide", "free")]
            return gone_page(collector.link, result_id, HIDDEN, *hidden[:1]), 410
        return result_page(store, collector.link, one), 200

    return html(request, *await collector.database.find(made))


HIDDEN = "This result is hidden: a moderator hid it, or blocked the key that signed it."
WITHDRAWN = "The submitter withdrew this result: its values and files were deleted."


def gone_page(link: Links, result_id: str, words: str, reason: str = "") -> str:
    """What stands where a result was."""
    lines = [words, *([f"Reason: {reason}"] if reason else [])]
    lines.append(f"Its address stays reserved: {result_id} is never reused for another result.")
    return page("message", link, title="Not shown", heading="Not shown", paragraphs=lines)


async def result_file(request: Request) -> Response:
    """A file of a result, always as a download of unknown kind."""
    collector = collector_of(request)
    result_id, name = request.path_params["id"], request.path_params["name"]

    def body(store: Store) -> bytes | None:
        return store.file(result_id, name) if shown_results(store, [result_id]) else None

    answer = tagged(request, await collector.database.find(body), "application/octet-stream")
    safe = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "_" for letter in name)
    answer.headers["Content-Disposition"] = f'attachment; filename="{safe[-120:]}"'
    return answer


def keyed(function: Callable[[Store, Links, str], str | None]) -> Callable[..., object]:
    """An endpoint for a page that has a key in its address."""

    async def endpoint(request: Request) -> Response:
        collector, key = collector_of(request), request.path_params["key"]
        return html(request, await collector.database.find(lambda store: function(store, collector.link, key)))

    return endpoint


def shown_results(store: Store, ids: Sequence[str]) -> list[Result]:
    """Those of the results that are there and shown, each once, at most as many as are compared."""
    found = []
    for one in list(dict.fromkeys(ids))[: 2 * MOST]:
        with contextlib.suppress(NoSuchResult, Withdrawn):
            found.append(store.result(one))
    return [one for one in found if one.state == "shown"][:MOST]


async def curve(request: Request) -> Response:
    """A curve, with others over it."""
    collector = collector_of(request)
    ids = [request.path_params["id"], *request.query_params.getlist("with")]
    per = "accelerator" if request.query_params.get("per") == "accelerator" else ""

    def made(store: Store) -> str | None:
        results = [one for one in shown_results(store, ids) if one.result.curve]
        is_there = bool(results) and results[0].id == ids[0]
        return pages.curve_page(store, collector.link, results, per) if is_there else None

    return html(request, await collector.database.find(made))


async def compare(request: Request) -> Response:
    """Two to four results beside each other; asked with a=, b= ... or with id= several times."""
    collector = collector_of(request)
    words = request.query_params.multi_items()
    ids = [value.strip()[:64] for name, value in words if name in ("a", "b", "c", "d", "id") and value.strip()]

    def made(store: Store) -> str:
        results = shown_results(store, ids)
        there = {one.id for one in results}
        missing = [one for one in dict.fromkeys(ids) if one not in there][:MOST] if len(there) < MOST else []
        return compare_page(store, collector.link, results, missing)

    return html(request, await collector.database.read(made))


async def about(request: Request) -> Response:
    """What the labels mean."""
    return html(request, pages.about_page(collector_of(request).link))


async def stylesheet(request: Request) -> Response:
    """The style of all pages."""
    return tagged(request, style().encode(), "text/css; charset=utf-8")


async def health(request: Request) -> Response:
    """Whether the server and its database answer."""
    await collector_of(request).database.read(lambda store: store.find(limit=1))
    return JSONResponse({"status": "ok"})


MESSAGES = {
    404: ("Not found", "Page not found. Addresses of results do not change. Check the end of the link you followed."),
    405: ("Not allowed", "This address accepts another kind of request."),
    503: ("Not now", "The collector cannot do that at the moment. Try again later."),
}


async def error_answer(request: Request, error: Exception) -> Response:
    """An error as a page, or as JSON below /api."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = error.detail if isinstance(error, HTTPException) else ""
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else dict(HEADERS)  # 500: behind the guard
    heading, words = MESSAGES.get(status, (f"Error {status}", ""))
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": detail or heading}, status_code=status, headers=headers)
    lines = [line for line in (words, "" if status in MESSAGES else detail) if line]
    text = page("message", collector_of(request).link, title=heading, heading=heading,
                paragraphs=lines or ["Something went wrong on this server. Go back to the previous page."])  # fmt: skip
    return Response(text, status_code=status, media_type=HTML, headers=headers)


_BUSY = re.compile(r"locked|busy|is full|disk I/O|unable to open|readonly")


async def busy_answer(request: Request, error: Exception) -> Response:
    """503 where the database cannot be used now: another process writes to it, or the disk is full; else 500."""
    if not _BUSY.search(str(error)):
        raise error
    return await error_answer(request, HTTPException(503, f"try again later: {error}", {"Retry-After": "30"}))


def create_app(settings: Settings, tokens: Tokens | None, on_start: Callable[[], object] = lambda: None) -> Starlette:
    """The server for a database, which is made where it is missing. Raises StoreError."""
    database = Database(settings.database, read_only=settings.read_only)
    collector = Collector(settings, tokens, database)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        on_start()
        yield
        collector.checker.close()
        database.close()

    routes = [
        Route("/", home),
        Route("/r/{id}", result),
        Route("/r/{id}/files/{name:path}", result_file),
        Route("/c/{key}", keyed(pages.configuration_page)),
        Route("/system/{key}", keyed(pages.system_page)),
        Route("/signer/{key}", keyed(pages.signer_page)),
        Route("/curve/{id}", curve),
        Route("/compare", compare),
        Route("/about", about),
        Route("/style.css", stylesheet),
        Route("/healthz", health),
        *api.routes(),
    ]
    if not settings.read_only:
        routes += uploads.routes()
        if tokens is not None:
            routes += moderation.routes()
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(SecurityHeaders, origin=settings.origin), Middleware(HostNames, names=settings.names)],
        exception_handlers={HTTPException: error_answer, sqlite3.OperationalError: busy_answer, 500: error_answer},
    )
    app.state.collector = collector
    return app

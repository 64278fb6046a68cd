"""The page of moderators: opened with a token, then a pass in each form; no cookies, so no other site can act here."""

import time
from typing import Final, get_args

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from crowdperf.store.query import Filter
from crowdperf.store.store import OF_A_KEY, NoSuchResult, SameLog, Store, What, Withdrawn
from crowdperf.web.access import MODERATION
from crowdperf.web.collector import collector_of
from crowdperf.web.formats import minute
from crowdperf.web.links import Links
from crowdperf.web.render import page
from crowdperf.web.request_body import form_of
from crowdperf.web.tables import table_of

CHOICES: Final[dict[What, str]] = {
    "hide": "Hide a result (its log stays its key's)",
    "free": "Hide a copy of another's run, and let the owner send it with another key",
    "unhide": "Show a result again",
    "note": "Note on a result",
    "know": "Trust a key: its results are no longer from a new contributor",
    "block": "Block a key: hide its results and accept no more",
    "unblock": "Unblock a key",
}
LONGEST_REASON: Final = 500
NEWEST: Final = 50
assert set(CHOICES) < set(get_args(What))


def moderation_page(store: Store | None, link: Links, given: str, told: str = "") -> str:
    """The page; without a store it asks for the token. given: the pass of its forms."""
    wanted = Filter(chosen={"kind": ("crowd",)}, states=("shown", "hidden"))
    rows = store.find(wanted, limit=NEWEST).rows if store else ()
    actions = store.actions(limit=NEWEST) if store else ()
    return page(
        "moderation",
        link,
        title="Moderation",
        told=told,
        choices=list(CHOICES.items()),
        rows=table_of(rows, link, columns=("value", "system", "submitter", "labels", "made")),
        actions=[
            (minute(action.time_utc), action.what, action.result_id or action.signer, action.reason)
            for action in actions
        ],
        **{"pass": given},
    )


def _check_site(request: Request) -> None:
    """Refuses what another site's page sends. Raises HTTPException."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    if site not in ("same-origin", "none"):
        raise HTTPException(403, "this form was sent from another site")


async def ask(request: Request) -> Response:
    """The page that asks for the token."""
    collector = collector_of(request)
    return _answer(moderation_page(None, collector.link, ""))


def _answer(text: str, status: int = 200) -> Response:
    headers = {"Cache-Control": "no-store"}
    return Response(text.encode("utf-8", "backslashreplace"), status, headers, "text/html; charset=utf-8")


async def enter(request: Request) -> Response:
    """The page with its forms for who gives the token."""
    collector = collector_of(request)
    _check_site(request)
    fields = await form_of(request)
    if collector.tokens is None or not collector.tokens.allows(MODERATION, fields.get("token", "").strip()):
        address = collector.address_word(request)
        if wait_s := collector.moderation_guesses.wait_s(address):
            raise HTTPException(429, "too many wrong tokens", {"Retry-After": str(round(wait_s) + 1)})
        collector.moderation_guesses.count(address)
        return _answer(moderation_page(None, collector.link, "", "This is not the token of moderation."), 401)
    link, given = collector.link, collector.passes.make(time.time())
    return _answer(await collector.database.read(lambda store: moderation_page(store, link, given)))


def done(store: Store, what: What, target: str, reason: str) -> str:
    """Act, and say what was done or why it could not be."""
    place = {"signer": target} if what in OF_A_KEY else {"result_id": target}
    try:
        store.act(what, actor="moderator", reason=reason, **place)
    except NoSuchResult:
        return f"Result not found: {target}."
    except Withdrawn:
        return f"Result {target} was withdrawn."
    except SameLog as error:
        return f"Result {target} stays hidden: its log was sent with another key since, as {error.result_id}."
    except LookupError:
        return f"No key {target} has sent a result."
    return f"Done: {what} {target}."


async def act(request: Request) -> Response:
    """One action, with its reason."""
    collector = collector_of(request)
    _check_site(request)
    fields = await form_of(request)
    given = fields.get("pass", "")
    if not collector.passes.is_good(given, time.time()):
        told = "The form was not opened with the token, or longer than 15 minutes ago. Open it again."
        return _answer(moderation_page(None, collector.link, "", told), 403)
    what = next((name for name in CHOICES if name == fields.get("what")), None)
    target, reason = fields.get("target", "").strip(), fields.get("reason", "").strip()[:LONGEST_REASON]
    link = collector.link
    if what is None or not target or not reason:
        told, status = "An action needs a result or key, and a reason.", 400
    else:
        chosen = what
        told, status = await collector.database.write(lambda store: done(store, chosen, target, reason)), 200
    return _answer(await collector.database.read(lambda store: moderation_page(store, link, given, told)), status)


def routes() -> list[Route]:
    """The pages of moderators."""
    return [
        Route("/moderation", ask, methods=["GET"]),
        Route("/moderation", enter, methods=["POST"]),
        Route("/moderation/act", act, methods=["POST"]),
    ]

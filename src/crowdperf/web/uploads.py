"""Takes bundles and withdrawals: checked in steps, the cheap ones first, and kept whole or not at all.

Answers: 201 kept, 200 it was kept before, 400 broken off, 401 no token, 403 blocked key or another's result, 408 too
slow, 409 the run is kept with other content, 410 it was withdrawn, 413 too long, 415 another kind of file, 422 what
does not fit, 429 too many, 503 no room or no time now.
"""

import asyncio
import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from crowdperf.store.archive import Limits
from crowdperf.store.bundle import ReadBundle
from crowdperf.store.model import NewResult, Problem, Source
from crowdperf.store.refusal import BundleRefused
from crowdperf.store.share import SAME_LOG
from crowdperf.store.signatures import Withdrawal, read_withdrawal
from crowdperf.store.store import Conflict, NoSuchResult, SameLog, Store, Withdrawn
from crowdperf.web.access import UPLOAD
from crowdperf.web.api import problem_answer
from crowdperf.web.bundle_checks import CLOCK_FACTOR, CheckBusy, OverLimit
from crowdperf.web.collector import Collector, collector_of
from crowdperf.web.links import LINK
from crowdperf.web.request_body import body_of

KINDS: Final = frozenset(("application/gzip", "application/x-gzip", "application/octet-stream"))
LONGEST_WITHDRAWAL: Final = 16_384
MAX_WAITING: Final = 40
HELD: Final = "hidden until a moderator approves it: the key is new here"


def _retry(status: int, words: str, wait_s: float) -> HTTPException:
    return HTTPException(status, words, {"Retry-After": str(max(1, round(wait_s)))})


def check_token(collector: Collector, request: Request) -> None:
    """Raises HTTPException: 401 without the token of uploads, 429 for who guesses; the right token always passes."""
    if not collector.settings.needs_upload_token:
        return
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    tokens = collector.tokens
    if scheme.lower() != "bearer" or tokens is None or not tokens.allows(UPLOAD, given.strip()):
        address = collector.address_word(request)
        if wait_s := collector.guesses.wait_s(address):
            raise _retry(429, "too many wrong tokens", wait_s)
        collector.guesses.count(address)
        raise HTTPException(401, "the token of uploads is missing or wrong", {"WWW-Authenticate": "Bearer"})


@dataclasses.dataclass(frozen=True, slots=True)
class StoredUpload:
    """An upload that is in the database: its results' ids, and whether any is new."""

    ids: tuple[str, ...]
    is_new: bool


def keep(store: Store, bundle: ReadBundle, results: tuple[NewResult, ...], *, hold_new: bool) -> StoredUpload:
    """Keep all results of a bundle or none. Raises PermissionError, and as Store.add."""
    known = store.signer(bundle.signer.key_id)
    if known is not None and known.trust == "blocked":
        raise PermissionError("this key is blocked")
    source = Source(kind="bundle", name=bundle.manifest.run_id, digest=bundle.digest)
    with store.transaction():
        added = [store.add(new, source, bundle.signer) for new in results]
        if hold_new and (known is None or known.trust != "known"):
            for one in added:
                if one.is_new:
                    store.act("hide", actor="collector", reason=HELD, result_id=one.id)
    return StoredUpload(tuple(one.id for one in added), any(one.is_new for one in added))


def kept_object(kept: StoredUpload, results: tuple[NewResult, ...]) -> dict[str, Any]:
    """What the sender of a bundle is told."""
    rows = [
        {"id": one, "url": LINK.result(one), "labels": list(new.labels), "verification": new.verification}
        for one, new in zip(kept.ids, results, strict=True)
    ]
    return {**rows[0], "results": rows}


async def upload(request: Request) -> Response:
    """Takes a bundle."""
    collector = collector_of(request)
    check_token(collector, request)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() not in KINDS:
        raise HTTPException(415, f"allowed: {', '.join(sorted(KINDS))}")
    address = collector.address_word(request)
    if wait_s := collector.senders.wait_s(address):
        raise _retry(429, "too many uploads from this address", wait_s)
    if collector.is_full:
        raise _retry(503, "the collector has no room on its disk", 3_600)
    collector.senders.count(address)
    body = await body_of(request, collector.settings.max_body_bytes, collector.settings.body_timeout_s)
    if collector.waiting >= MAX_WAITING:
        raise _retry(503, "too many uploads are being checked", 10)
    collector.waiting += 1
    try:
        async with collector.checking:
            return await _checked_and_kept(collector, body)
    finally:
        collector.waiting -= 1


async def _checked_and_kept(collector: Collector, body: bytes) -> Response:
    limits = Limits(body_bytes=collector.settings.max_body_bytes)
    try:
        bundle, results = await asyncio.wait_for(
            collector.database.work(lambda: collector.reader(body, limits)),
            2 * CLOCK_FACTOR * collector.settings.verification_timeout_s,
        )
    except BundleRefused as refused:
        return problem_answer(refused.problems)
    except OverLimit as over:
        raise _retry(429, "too many bundles of this key", over.wait_s) from None
    except (CheckBusy, asyncio.TimeoutError):
        raise _retry(503, "the check did not end: the collector is busy", 30) from None
    key_id = bundle.signer.key_id
    if wait_s := collector.bundles.wait_s(key_id):
        raise _retry(429, "too many bundles of this key", wait_s)
    collector.bundles.count(key_id)
    hold_new = collector.settings.hold_new
    try:
        kept = await collector.database.write(lambda store: keep(store, bundle, results, hold_new=hold_new))
    except PermissionError as error:
        raise HTTPException(403, str(error)) from None
    except Conflict as conflict:
        told = {"error": str(conflict), "id": conflict.result_id, "url": LINK.result(conflict.result_id)}
        told |= {"reason": SAME_LOG} if isinstance(conflict, SameLog) else {}
        return JSONResponse(told, status_code=409)
    except Withdrawn as gone:
        raise HTTPException(410, str(gone)) from None
    except ValueError as error:
        found = Problem(rule="FORM", file="", found=str(error), expected="numbers and texts that can be kept")
        return problem_answer([found])
    return JSONResponse(kept_object(kept, results), status_code=201 if kept.is_new else 200)


def withdraw_own(store: Store, wanted: Withdrawal) -> None:
    """Withdraw a result for the key that signed it. Raises NoSuchResult, Withdrawn, PermissionError."""
    one = store.result(wanted.result_id)
    if one.signer is None or one.signer.key_id != wanted.signer.key_id:
        raise PermissionError("another key signed this result")
    store.withdraw(wanted.result_id, actor=f"key {wanted.signer.key_id}", reason="withdrawn by its sender")


async def withdraw(request: Request) -> Response:
    """Withdraws a result; the body is signed by the key that signed the result."""
    collector = collector_of(request)
    body = await body_of(request, LONGEST_WITHDRAWAL, collector.settings.body_timeout_s)
    try:
        wanted = await collector.database.work(lambda: read_withdrawal(body))
    except BundleRefused as refused:
        return problem_answer(refused.problems)
    if wanted.result_id != request.path_params["id"]:
        raise HTTPException(403, "the signature is for another result")
    try:
        await collector.database.write(lambda store: withdraw_own(store, wanted))
    except NoSuchResult:
        raise HTTPException(404, "this result does not exist") from None
    except PermissionError as error:
        raise HTTPException(403, str(error)) from None
    except Withdrawn as gone:
        raise HTTPException(409, str(gone)) from None
    told: Mapping[str, object] = {"id": wanted.result_id, "state": "withdrawn"}
    return JSONResponse(told)


def routes() -> list[Route]:
    """What is written by volunteers."""
    return [
        Route("/api/v1/bundles", upload, methods=["POST"]),
        Route("/api/v1/results/{id}", withdraw, methods=["DELETE"]),
    ]

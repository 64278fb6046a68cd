"""Reads the body of a request within a number of bytes and seconds, whatever its headers say."""

import asyncio
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

LONGEST_FORM = 16_384
FORM_TIMEOUT_S = 10.0


async def body_of(request: Request, most_bytes: int, most_s: float) -> bytes:
    """The body. Raises HTTPException: 413 where it is longer, 408 where it takes longer, 400 where it breaks off."""
    announced = request.headers.get("content-length", "")
    if announced.isascii() and announced.isdigit() and (len(announced) > 15 or int(announced) > most_bytes):
        raise HTTPException(413, f"the body has {announced} bytes; allowed: {most_bytes}")
    try:
        return await asyncio.wait_for(_counted(request, most_bytes), most_s)
    except asyncio.TimeoutError:
        raise HTTPException(408, f"the body did not arrive within {most_s:g} s", {"Connection": "close"}) from None
    except ClientDisconnect:
        raise HTTPException(400, "the body broke off") from None


async def _counted(request: Request, most_bytes: int) -> bytes:
    found = bytearray()
    async for block in request.stream():
        found += block
        if len(found) > most_bytes:
            raise HTTPException(413, f"the body has more than {most_bytes} bytes", {"Connection": "close"})
    return bytes(found)


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form, the last of each name. Raises HTTPException: 415 for another kind of body."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "allowed: application/x-www-form-urlencoded")
    body = await body_of(request, LONGEST_FORM, FORM_TIMEOUT_S)
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=20))
    except ValueError:
        raise HTTPException(400, "the form cannot be read") from None

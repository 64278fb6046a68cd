"""What stands before every answer: security headers, on errors, too, and the entity tag of what is given out.

Headers after the OWASP Secure Headers Project's list, with the policy of a site that runs no script at all.
"""

import hashlib
import re
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


class SecurityHeaders:
    """ASGI middleware: HEADERS on every answer, and `Access-Control-Allow-Origin` on the API where one is allowed."""

    def __init__(self, app: ASGIApp, origin: str = "") -> None:
        self._app, self._origin = app, origin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and add the headers to its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                if "cache-control" not in headers:
                    headers["Cache-Control"] = "no-cache"
                if self._origin and scope["path"].startswith("/api/"):
                    headers["Access-Control-Allow-Origin"] = self._origin
                    headers.add_vary_header("Origin")
                else:
                    headers["Cross-Origin-Resource-Policy"] = "same-origin"
            await send(message)

        await self._app(scope, receive, send_guarded)


def tagged(request: Request, body: bytes, media_type: str, status: int = 200) -> Response:
    """The answer with its entity tag; without a body (304) where the asker has that already."""
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    if status == 200 and tag in (word.strip() for word in request.headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers={"ETag": tag})
    return Response(body, status_code=status, media_type=media_type, headers={"ETag": tag})


class HostNames:
    """ASGI middleware: 421 for a request to another name than these, whatever its port; without names all pass.

    A page of another site can let its own name stand for this machine's address, and would read what the browser gets.
    The port says nothing about that, and `ssh -L` changes it.
    """

    def __init__(self, app: ASGIApp, names: frozenset[str]) -> None:
        self._app, self._names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
        if scope["type"] == "http" and self._names:
            given = [value for name, value in scope["headers"] if name == b"host"]
            name = given[0].decode("latin-1").lower() if len(given) == 1 else ""
            name = _PORT.sub("", name).removesuffix(".")
            if name not in self._names:
                told = "this collector has another name: set the public name with --public_name\n"
                await Response(told, status_code=421, media_type="text/plain")(scope, receive, send)
                return
        await self._app(scope, receive, send)


_PORT: Final = re.compile(r":\d*$")

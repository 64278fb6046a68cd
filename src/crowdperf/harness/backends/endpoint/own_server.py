"""Servers that a backend starts for the time of a run, on a free port of 127.0.0.1, and asks as any endpoint."""

import http.client
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from crowdperf.harness.backends.endpoint.engine import EndpointEngine
from crowdperf.harness.backends.endpoint.engine import open_engine as open_endpoint
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.supervised_server import HOST, KeptServer, ask, plain_environment
from crowdperf.harness.text.engine import EngineRequest, Listener, Request
from crowdperf.harness.text.request import Endpoint
from crowdperf.logs.run_log import Json

MODEL = "model"
"""The model name that requests use, so that they do not contain the path of the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A server to start. name: as messages call it. environment: in addition to this process's own. remedy: the
    suggested alternative if it does not start. ready_s: time limit for loading packages and model. versions: of
    components that do not report their own."""

    name: str
    port: int
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    remedy: str
    ready_s: float
    versions: Mapping[str, str] = field(default_factory=dict)


def reason(log_text: str) -> str:
    """Return why a server ended: its last line that names an error, else its last line."""
    lines = [line.strip() for line in log_text.splitlines() if line.strip()]
    errors = [line for line in lines if "Error: " in line or line.startswith("api_server.py: error")]
    return (errors or lines or ["it printed no output"])[-1][:600]


class OwnServer(KeptServer):
    """A started server."""

    def __init__(self, order: Order) -> None:
        self.order, self.port = order, order.port
        super().__init__(order.command, {**plain_environment(), **order.environment}, order.log)

    def wait_ready(self) -> None:
        """Wait until it answers. Raises HarnessError with the server's reason, or after the time limit."""
        end_s = time.monotonic() + self.order.ready_s
        while self.is_alive and time.monotonic() < end_s:
            if self._answers():
                return
            time.sleep(0.2)
        what = f"was not ready within {self.order.ready_s:g} s" if self.is_alive else "ended before it was ready"
        hint = f"its log: {self.log}. {self.order.remedy}"
        raise HarnessError(f"{self.order.name} {what}: {reason(self.log_text())}", hint)

    def _answers(self) -> bool:
        try:
            return ask(self.port, "/v1/models")[0] == 200
        except (OSError, http.client.HTTPException, ValueError):
            return False


class OwnServerEngine:
    """The client of a server that ends with it."""

    def __init__(self, server: OwnServer, client: EndpointEngine, settings: Mapping[str, Json]) -> None:
        self._server, self._client, self._settings = server, client, settings

    @property
    def server(self) -> Mapping[str, object]:
        """The input of the watch of the server's metrics."""
        return self._client.server

    def start(self, listener: Listener) -> None:
        self._client.start(listener)

    def submit(self, requests: Sequence[Request]) -> None:
        self._client.submit(requests)

    def record(self) -> Mapping[str, Json]:
        """Return the client's settings and the server's, without the port, which is meaningless after the run."""
        client = {name: one for name, one in self._client.record().items() if name not in ("endpoint", "has_key")}
        return {**client, **self._settings}

    def versions(self) -> Mapping[str, str]:
        return {**self._client.versions(), **self._server.order.versions}

    def close(self) -> None:
        try:
            self._client.close()
        finally:
            self._server.stop()


def open_own_server(order: Order, request: EngineRequest, settings: Mapping[str, Json]) -> OwnServerEngine:
    """Return the client of a started and probed server. Raises HarnessError with the reason if it does not start."""
    server = OwnServer(order)
    try:
        server.wait_ready()
        has_chats_only = any(one.tokens is None and one.text is None for one in request.probes)
        api = "chat" if has_chats_only else "completions"
        endpoint = Endpoint(url=f"http://{HOST}:{server.port}/v1", model=MODEL, api=api)
        text = replace(request.text, endpoint=endpoint, kv_cache_bytes=None)
        client = open_endpoint(replace(request, text=text))
    except BaseException:
        server.stop()
        raise
    return OwnServerEngine(server, client, settings)

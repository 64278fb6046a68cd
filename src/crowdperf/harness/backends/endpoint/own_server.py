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
"""The model name that requests use, so that they do not hold the path of the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A server to start. name: as messages call it. environment: beside this process's own. remedy: what else there is
    where it does not start. ready_s: how long it may load packages and model. versions: of what does not
    say its own."""

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
        """Wait until it answers; raises HarnessError with the server's reason, or when it takes too long."""
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

    def start(self, listener: Listener) -> None:
        """Start the client; `listener` gets the answers."""
        self._client.start(listener)

    def submit(self, requests: Sequence[Request]) -> None:
        """Take requests; the server batches them."""
        self._client.submit(requests)

    def record(self) -> Mapping[str, Json]:
        """Return the client's settings and the server's; the port means nothing once the run is over."""
        client = {name: one for name, one in self._client.record().items() if name not in ("endpoint", "has_key")}
        return {**client, **self._settings}

    def versions(self) -> Mapping[str, str]:
        """Return the versions of both."""
        return {**self._client.versions(), **self._server.order.versions}

    def close(self) -> None:
        """End what is in flight, and the server."""
        try:
            self._client.close()
        finally:
            self._server.stop()


def open_own_server(order: Order, request: EngineRequest, settings: Mapping[str, Json]) -> OwnServerEngine:
    """Return the client of a started and probed server; raises HarnessError saying why there is none."""
    server = OwnServer(order)
    try:
        server.wait_ready()
        endpoint = Endpoint(url=f"http://{HOST}:{server.port}/v1", model=MODEL, api="completions")
        text = replace(request.text, endpoint=endpoint, kv_cache_bytes=None)
        client = open_endpoint(replace(request, text=text))
    except BaseException:
        server.stop()
        raise
    return OwnServerEngine(server, client, settings)

"""A program that takes tritonserver's arguments and answers what the harness asks for over HTTP: for tests of how a
server is started and ended. FAKE_TRITON in its environment says what goes wrong.

    hang       it never gets ready, and ignores SIGTERM
    broken     it ends with code 1, after an error of the kind that Triton logs
    taken      the port is in use, at the first start (a file beside the log says that there was one)
    other      another server answers on its port
"""

import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

OPTIONS = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:] if "=" in word)
PREFIX = OPTIONS["backend-config"].partition("shm-region-prefix-name=")[2]
WRONG = os.environ.get("FAKE_TRITON", "")


class Handler(BaseHTTPRequestHandler):
    """Ready at once; its name is the one that it was given."""

    def do_GET(self) -> None:
        name = "somebody" if WRONG == "other" else OPTIONS["id"]
        stats = {"model_stats": [{"name": "m", "inference_count": 3, "execution_count": 1}]}
        answers = {"/v2/health/ready": None, "/v2": {"name": name}, "/v2/models/m/versions/1/stats": stats}
        body = b"" if answers.get(self.path) is None else json.dumps(answers[self.path]).encode()
        self.send_response(200 if self.path in answers else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


def main() -> int:
    Path(f"/dev/shm/{PREFIX}region").write_bytes(b"x")
    model = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])  # as the stub of a model
    print(f"model process {model.pid}", flush=True)
    if WRONG == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(300)
    if WRONG == "broken":
        print('E1123 04:00:00.0 7 server.cc:241] "CudaDriverHelper has not been initialized."', flush=True)
        print("E1123 04:00:00.0 7 model.cc:1] \"failed to load 'm' version 1: no such file\"", flush=True)
        return 1
    marker = Path(os.environ.get("FAKE_TRITON_MARKER", "/nonexistent"))
    if WRONG == "taken" and not marker.exists():
        marker.touch()
        print(f"Unavailable - Socket '127.0.0.1:{OPTIONS['http-port']}' already in use", flush=True)
        return 1
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    HTTPServer(("127.0.0.1", int(OPTIONS["http-port"])), Handler).serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())

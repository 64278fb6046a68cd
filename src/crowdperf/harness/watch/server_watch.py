"""Watches the measured server's own reports while a test runs: a child process asks, this one only reads what it
wrote, after the test."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import crowdperf
from crowdperf.call.server_metrics import summary
from crowdperf.logs.run_log import Json

_START_S, _LOOK_S = 5.0, 0.01
_END_S = 2.0
_LARGEST_BYTES = 32 << 20
"""Of the child's lines: two days of one line a second."""


class ServerWatch:
    """The child process from the start to the end of a `with` block; `record()` then has its findings. server: what it
    gets as input, None without a server. Whatever goes wrong in it is not an error of the run. The block begins when
    the child has started, which takes 0.2 s of CPU time that the first requests would have to share."""

    def __init__(self, server: Mapping[str, Any] | None) -> None:
        self._server = server
        self._child: subprocess.Popen[bytes] | None = None
        self._written: IO[bytes] | None = None
        self._lines: list[str] = []

    def __enter__(self) -> ServerWatch:
        if self._server is None:
            return self
        environment = {**os.environ, "PYTHONPATH": str(Path(crowdperf.__file__).parents[1])}
        command = [sys.executable, "-m", "crowdperf.call.server_metrics"]
        with contextlib.suppress(OSError):
            self._written = tempfile.TemporaryFile()
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=self._written, stderr=subprocess.DEVNULL, env=environment
            )
            assert self._child.stdin is not None
            self._child.stdin.write(json.dumps(dict(self._server)).encode())
            self._child.stdin.close()
            end_s = time.monotonic() + _START_S
            while not os.fstat(self._written.fileno()).st_size and self._child.poll() is None:
                if time.monotonic() > end_s:
                    break
                time.sleep(_LOOK_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child is not None:
            self._child.terminate()
            try:
                self._child.wait(_END_S)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        if self._written is not None:
            self._written.seek(0)
            self._lines = self._written.read(_LARGEST_BYTES).decode(errors="replace").splitlines()
            self._written.close()

    def record(self) -> Json:
        """Return the key `server` of `text` in result.json, None without a server."""
        return None if self._server is None else summary(self._lines)

"""Drives an installed Chromium without a window, over two pipes: opens a page at a size and in a colour scheme, asks it
questions, takes pictures. Standard library only.

Protocol: Chrome DevTools Protocol with --remote-debugging-pipe: the browser reads JSON texts, each with a zero byte,
from file descriptor 3 and writes its own to 4 (https://chromedevtools.github.io/devtools-protocol/, read November
2026). What is asked works under any Content-Security-Policy, because the page itself runs no script.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

BROWSERS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
BROWSER_VARIABLE = "CROWDPERF_BROWSER"
ANSWER_TIMEOUT_S = 60
HINT = "no Chromium is installed (looked for: {}); as root: apt-get install -y chromium-headless-shell"


def find_browser() -> str | None:
    """The program in CROWDPERF_BROWSER, or the first known one on PATH."""
    chosen = os.environ.get(BROWSER_VARIABLE)
    return shutil.which(chosen) if chosen else next(filter(None, map(shutil.which, BROWSERS)), None)


class BrowserError(Exception):
    """The browser ended, did not answer in time, or said that it cannot do what was asked."""


@dataclass
class Page:
    """What an opened page is like: `problems` are errors and warnings of its console and things it failed to load."""

    inner_width: int
    scroll_width: int
    problems: list[str] = field(default_factory=list)


class Browser:
    """A running browser with one tab; a context manager."""

    def __init__(self, program: str) -> None:
        self._profile = tempfile.mkdtemp(prefix="crowdperf-browser-")
        from_us, self._to_browser = os.pipe()
        self._from_browser, to_us = os.pipe()

        def wire() -> None:  # in the child: descriptors 3 and 4 are the pipes, whatever numbers they had
            first, second = os.dup(from_us), os.dup(to_us)
            os.dup2(first, 3)
            os.dup2(second, 4)

        arguments = [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--remote-debugging-pipe", f"--user-data-dir={self._profile}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=wire, close_fds=False,
        )  # fmt: skip
        os.close(from_us)
        os.close(to_us)
        self._number = 0
        self._buffer = b""
        self._events: list[dict[str, Any]] = []
        self._session = ""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        """The browser itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the browser and removes its profile."""
        os.close(self._to_browser)
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._from_browser)
        shutil.rmtree(self._profile, ignore_errors=True)

    def _receive(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from_browser], [], [], max(end - time.monotonic(), 0))
            block = os.read(self._from_browser, 1 << 16) if ready else b""
            if not block:
                raise BrowserError("the browser ended" if ready else f"no answer in {ANSWER_TIMEOUT_S} s")
            self._buffer += block
        message, _, self._buffer = self._buffer.partition(b"\0")
        found = json.loads(message)
        assert isinstance(found, dict)
        return found

    def _call(self, method: str, **parameters: object) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to_browser, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + ANSWER_TIMEOUT_S
        while True:
            answer = self._receive(end)
            if answer.get("id") != self._number:
                self._events.append(answer)
            elif "error" in answer:
                raise BrowserError(f"{method}: {answer['error']['message']}")
            else:
                return dict(answer["result"])

    def _await_event(self, method: str) -> None:
        end = time.monotonic() + ANSWER_TIMEOUT_S
        while not any(event.get("method") == method for event in self._events):
            self._events.append(self._receive(end))

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression}: {answer['exceptionDetails']['text']}")
        return answer["result"].get("value")

    def open(self, file: Path, width: int, *, is_dark: bool = False) -> Page:
        """Opens a file in a window of this width and waits until it is drawn."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self._events.clear()
        answer = self._call("Page.navigate", url=file.resolve().as_uri())
        if "errorText" in answer:
            raise BrowserError(f"{file} cannot be opened: {answer['errorText']}")
        self._await_event("Page.loadEventFired")
        sizes = self.ask("[window.innerWidth, document.documentElement.scrollWidth]")
        return Page(*sizes, problems=self._problems())

    def _problems(self) -> list[str]:
        found = []
        for event in self._events:
            parameters = event.get("params", {})
            if event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
            elif event.get("method") in ("Runtime.exceptionThrown", "Network.loadingFailed"):
                found.append(json.dumps(parameters))
            elif event.get("method") == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                if not url.startswith(("file:", "data:")):
                    found.append(f"the page asked for {url}")
        return found

    def save_picture(self, file: Path) -> None:
        """The whole page, down to its end, as PNG."""
        answer = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(answer["data"]))

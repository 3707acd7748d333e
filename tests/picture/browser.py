"""Browser: headless Chromium, driven through a pipe with the Chrome DevTools Protocol."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

MOST_SECONDS = 60


class Browser:
    """One page in headless Chromium.

    Args:
        write_end, read_end: descriptors of the pipes to and from the browser.

    Attributes:
        events: messages that the page sent by itself: requests, exceptions, log entries.
    """

    def __init__(self, write_end: int, read_end: int) -> None:
        self._write_end, self._read_end = write_end, read_end
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol, and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next_message()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self.events.append(answer)

    def _next_message(self) -> Any:
        end = time.monotonic() + MOST_SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read_end], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            data = os.read(self._read_end, 1 << 16)
            assert data, "the browser has ended"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def show(self, url: str, width: int, scheme: str) -> None:
        """Open a page in a window of a width, on a light or a dark system."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next_message())

    def value(self, expression: str) -> Any:
        """Return the value of an expression in JavaScript."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key, and let it go."""
        code = {"Tab": 9, "ArrowRight": 39, "ArrowLeft": 37, " ": 32, "Enter": 13}[key]
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def screenshot(self) -> bytes:
        """Return the whole page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def named_events(self, name: str) -> list[dict[str, Any]]:
        """Return the parameters of events with a name."""
        return [event["params"] for event in self.events if event.get("method") == name]


@contextmanager
def opened_browser() -> Iterator[Browser]:
    """Start Chromium for a ``with`` block. The test is skipped without it."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("needs Chromium (Debian: apt-get install chromium)")
    to_browser, from_browser = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        # the protocol wants the descriptors 3 and 4
        shell = f'exec "$0" "$@" 3<&{to_browser[0]} 4>&{from_browser[1]}'
        command = ["bash", "-c", shell, program, *options, "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        process = subprocess.Popen(
            command, pass_fds=(to_browser[0], from_browser[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser[0])
        os.close(from_browser[1])
        try:
            yield Browser(to_browser[1], from_browser[0])
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(to_browser[1])
            os.close(from_browser[0])

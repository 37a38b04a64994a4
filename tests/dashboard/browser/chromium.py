"""
A real browser: Debian's chromium without a window, told what to do by the DevTools protocol.

It needs no driver and no package besides the browser: the protocol is JSON over a WebSocket.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
import tempfile
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from aiohttp import ClientSession, ClientTimeout

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import ClientWebSocketResponse

# Far more than anything takes; what is waited for and does not come is told by then.
PATIENCE_SECONDS = 30.0
_FLAGS = (
    *("--headless", "--no-sandbox", "--no-first-run", "--disable-extensions"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--hide-scrollbars", "--mute-audio", "--disable-gpu"),
    *("--remote-debugging-port=0", "--remote-debugging-address=127.0.0.1"),
)
# An expression that holds, or the time is over; looked at with every frame.
_WAIT = """new Promise((resolve, reject) => {
  const end = performance.now() + %d;
  const look = () => {
    let found;
    try { found = (%s); } catch (error) { found = null; }
    if (found) resolve(typeof found === "object" ? true : found);
    else if (performance.now() > end) reject(new Error("does not come"));
    else setTimeout(look, 15);
  };
  look();
})"""
_KEYS = {
    "Enter": ("Enter", 13, "\r"),
    "Escape": ("Escape", 27, ""),
    "Tab": ("Tab", 9, ""),
    "ArrowLeft": ("ArrowLeft", 37, ""),
    "ArrowUp": ("ArrowUp", 38, ""),
    "ArrowRight": ("ArrowRight", 39, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
}


class BrowserError(AssertionError):
    """The page did not do what was asked for."""


class Tab:
    """One page, in a context of its own: no cookies or storage of others."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self._socket = socket
        self._session = ""
        self._number = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        # What the page said on its console or raised: there should be nothing.
        self.complaints: list[str] = []

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        number = self._number
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        await self._socket.send_json(message)
        return await asyncio.wait_for(answer, PATIENCE_SECONDS * 2)

    async def attach(self) -> None:
        """Until then it speaks to the browser, from then on to its page."""
        target = await self.call("Target.createTarget", url="about:blank")
        found = await self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = found["sessionId"]

    async def read(self) -> None:
        """Hands answers to who waits for them, until the browser goes."""
        async for frame in self._socket:
            message = json.loads(frame.data)
            waiting = self._answers.pop(message.get("id", 0), None)
            if waiting is not None and not waiting.done():
                if "error" in message:
                    waiting.set_exception(BrowserError(str(message["error"])))
                else:
                    waiting.set_result(message["result"])
            self._complain(message)

    def _complain(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"])[:2000])
        if message.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self._note(parameters["entry"]["text"])

    def _note(self, text: str) -> None:
        # An interface of the machine that came or went, as one does when chromium starts.
        if "ERR_NETWORK_CHANGED" not in text:
            self.complaints.append(text)

    async def open(self, address: str) -> None:
        await self.call("Page.navigate", url=address)

    async def js(self, expression: str) -> Any:
        """The value of an expression in the page, awaited."""
        answer = await self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            text = details.get("exception", {}).get("description") or details["text"]
            raise BrowserError(f"{expression}\n{text}")
        return answer["result"].get("value")

    async def until(self, expression: str) -> Any:
        """Waits for an expression to hold; its value."""
        try:
            return await self.js(_WAIT % (PATIENCE_SECONDS * 1000, expression))
        except BrowserError as error:
            # A page that loads itself anew ends what is awaited in it.
            if "navigated" in str(error):
                return await self.until(expression)
            text = await self.js("document.body?.innerText")
            raise BrowserError(f"never came: {expression}\nthe page says:\n{text}") from None

    async def has(self, text: str, within: str = "body") -> None:
        """Waits for a text to be seen."""
        place = f"document.querySelector({json.dumps(within)})"
        await self.until(f"{place}.innerText.includes({json.dumps(text)})")

    async def click(self, selector: str) -> None:
        await self.until(f"document.querySelector({json.dumps(selector)})")
        await self.js(f"document.querySelector({json.dumps(selector)}).click()")

    async def press(self, key: str) -> None:
        """A key, as a keyboard sends it."""
        name, code, text = _KEYS.get(key, (key, ord(key[0]), key))
        common = {"key": name, "windowsVirtualKeyCode": code}
        down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
        await self.call("Input.dispatchKeyEvent", **down, **common)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    async def type(self, text: str) -> None:
        await self.call("Input.insertText", text=text)

    async def go(self, route: str) -> None:
        """To another view, as a deep link does."""
        await self.js(f"location.hash = {json.dumps(route)}")

    async def size(self, width: int, height: int) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    async def scheme(self, scheme: str) -> None:
        """Dark or light, as the system would say."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        await self.call("Emulation.setEmulatedMedia", features=[feature])

    async def screenshot(self) -> bytes:
        """What is to be seen, as PNG."""
        answer = await self.call("Page.captureScreenshot", format="png")
        return base64.b64decode(answer["data"])


@asynccontextmanager
async def opened() -> AsyncIterator[Tab]:
    """A browser for the length of a block, with one tab."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program, "requirements.ensure() sees to it"
    with tempfile.TemporaryDirectory(prefix="dryrack-browser-", ignore_cleanup_errors=True) as home:
        process = await asyncio.create_subprocess_exec(
            *(program, *_FLAGS, f"--user-data-dir={home}", "about:blank"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None, "it is a pipe"
        try:
            address = await asyncio.wait_for(_address(process.stderr), 3 * PATIENCE_SECONDS)
            draining = asyncio.create_task(process.stderr.read())
            async with _connected(address) as tab:
                yield tab
        finally:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), PATIENCE_SECONDS)
            except TimeoutError:
                process.kill()
                await process.wait()
        await draining


async def _address(said: asyncio.StreamReader) -> str:
    """Where it listens, which it says when it does."""
    lines = []
    async for line in said:
        lines.append(line.decode(errors="replace"))
        _, mark, address = lines[-1].partition("DevTools listening on ")
        if mark:
            return address.strip()
    raise BrowserError(f"chromium does not start:\n{''.join(lines)}")


@asynccontextmanager
async def _connected(address: str) -> AsyncIterator[Tab]:
    async with (
        ClientSession(timeout=ClientTimeout(total=None)) as http,
        http.ws_connect(address, max_msg_size=0) as socket,
    ):
        tab = Tab(socket)
        # No task group: who closes the browser may be another task than who opened it.
        reading = asyncio.create_task(tab.read())
        try:
            await tab.attach()
            for domain in ("Page", "Runtime", "Log"):
                await tab.call(f"{domain}.enable")
            yield tab
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading

"""
The channels of `kubectl exec` and `kubectl attach`, over WebSockets and over SPDY.

A session has the streams stdin, stdout, stderr, the result, and the size of the terminal. The two
protocols carry them differently; `RemoteCommand` is what both offer to the program that runs.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dryrack.apiserver.http import spdy, websocket
from dryrack.kinds.raw import Raw

WEBSOCKET_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
SPDY_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, RESULT, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
_CHANNELS = {"stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "error": RESULT, "resize": RESIZE}


class Listener(Protocol):
    """Receives what the client sends."""

    def receive_input(self, data: bytes) -> None: ...

    def end_input(self) -> None: ...

    def resize(self, width: int, height: int) -> None: ...

    def disconnect(self) -> None: ...


@dataclass(frozen=True, slots=True)
class RemoteOptions:
    """The streams that a client asked for."""

    command: Sequence[str]
    has_stdin: bool
    has_stdout: bool
    has_stderr: bool
    has_terminal: bool

    @property
    def channels(self) -> tuple[int, ...]:
        """The channels that a client opens; the terminal merges both outputs."""
        wanted = {
            STDIN: self.has_stdin,
            STDOUT: self.has_stdout,
            STDERR: self.has_stderr and not self.has_terminal,
            RESULT: True,
            RESIZE: self.has_terminal,
        }
        return tuple(channel for channel, is_wanted in wanted.items() if is_wanted)


class Session(Protocol):
    """A connection that carries a remote command."""

    def receive(self, data: bytes) -> None:
        """Take bytes of the client."""
        ...

    def write(self, channel: int, data: bytes) -> None:
        """Send output."""
        ...

    def finish(self, status: Raw) -> None:
        """Send the result, and end the session."""
        ...


class WebSocketSession:
    """Channels as binary messages, whose first byte is the channel."""

    def __init__(
        self,
        options: RemoteOptions,
        listener: Listener,
        send: Callable[[bytes], None],
        *,
        message_bytes_max: int,
    ) -> None:
        self._listener = listener
        self._socket = websocket.ServerSocket(
            send, listener.disconnect, bytes_max=message_bytes_max
        )
        self._send = send
        # An empty message tells the client that the command is connected.
        self.write(STDOUT if options.has_stdout else RESULT, b"", is_greeting=True)

    def receive(self, data: bytes) -> None:
        for message in self._socket.receive(data):
            channel = message.payload[:1]
            content = message.payload[1:]
            if channel == bytes((STDIN,)):
                self._listener.receive_input(content)
            elif channel == bytes((RESIZE,)):
                _resize(self._listener, content)
            elif message.payload == bytes((CLOSE, STDIN)):
                self._listener.end_input()

    def write(self, channel: int, data: bytes, *, is_greeting: bool = False) -> None:
        if data or is_greeting:
            payload = bytes((channel,)) + data
            self._send(self._socket.frames(websocket.Opcode.BINARY, [payload]))

    def finish(self, status: Raw) -> None:
        self.write(RESULT, json.dumps(status).encode())
        self._socket.close()


@dataclass(slots=True)
class SpdySession:
    """Channels as SPDY streams, which the client opens and names by a header."""

    options: RemoteOptions
    listener: Listener
    send: Callable[[bytes], None]
    started: Callable[[], None]
    _reader: spdy.SpdyReader = field(default_factory=spdy.SpdyReader)
    _writer: spdy.SpdyWriter = field(default_factory=spdy.SpdyWriter)
    _streams: dict[int, int] = field(default_factory=dict)
    """Channels by stream."""

    def receive(self, data: bytes) -> None:
        try:
            for frame in self._reader.read(data):
                self._handle(frame)
        except spdy.SpdyError:
            self.listener.disconnect()

    def _handle(self, frame: spdy.Frame) -> None:
        match frame:
            case spdy.StreamOpened(stream, headers):
                channel = _CHANNELS.get(_header(headers, "streamtype"))
                self.send(self._writer.reply(stream))
                if channel is not None:
                    self._streams[stream] = channel
                if set(self.options.channels) <= set(self._streams.values()):
                    self.started()
            case spdy.StreamData(stream, content, is_last):
                channel = self._streams.get(stream)
                if content:
                    self.send(self._writer.grant(stream, len(content)))
                if channel == STDIN:
                    if content:
                        self.listener.receive_input(content)
                    if is_last:
                        self.listener.end_input()
                elif channel == RESIZE and content:
                    _resize(self.listener, content)
            case spdy.StreamReset(stream):
                if self._streams.get(stream) == STDIN:
                    self.listener.end_input()
            case spdy.Pinged(number):
                self.send(self._writer.ping(number))
            case spdy.GoneAway():
                pass

    def write(self, channel: int, data: bytes) -> None:
        stream = self._stream(channel)
        if stream is not None and data:
            self.send(self._writer.data(stream, data))

    def finish(self, status: Raw) -> None:
        self.write(RESULT, json.dumps(status).encode())
        for stream in self._streams:
            self.send(self._writer.data(stream, b"", is_last=True))
        self.send(self._writer.go_away())

    def _stream(self, channel: int) -> int | None:
        return next((key for key, value in self._streams.items() if value == channel), None)


def choose_protocol(offered: Sequence[str], known: Sequence[str]) -> str | None:
    """Return the first protocol of the client that the server knows."""
    return next((each for each in offered if each in known), None)


def result_status(code: int) -> Raw:
    """Return the Status that tells a client the exit code of its command."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def _header(headers: Mapping[str, str], name: str) -> str:
    return next((value for key, value in headers.items() if key.lower() == name), "").lower()


def _resize(listener: Listener, content: bytes) -> None:
    try:
        size = json.loads(content)
        listener.resize(int(size["Width"]), int(size["Height"]))
    except (ValueError, KeyError, TypeError):
        return

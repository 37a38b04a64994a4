"""
`pods/exec` and `pods/attach`: a client talks to a process in a container.

The process runs in virtual time. A session lets it run whenever something can have changed: input
has arrived, or the time has come at which the process goes on.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import Subject, bad_request, internal_error, not_found
from dryrack.apiserver.decode.review_bodies import admit_posted
from dryrack.apiserver.http import websocket
from dryrack.apiserver.http.queries import truth_of
from dryrack.apiserver.http.remote_command import (
    SPDY_PROTOCOLS,
    STDERR,
    STDOUT,
    WEBSOCKET_PROTOCOLS,
    RemoteOptions,
    Session,
    SpdySession,
    WebSocketSession,
    choose_protocol,
    result_status,
)
from dryrack.apiserver.strategies.pods.container_choice import choose_container, status_of_container
from dryrack.base.limits import WEBSOCKET_MESSAGE_BYTES_MAX
from dryrack.client.transport import Response
from dryrack.kinds.paths import get
from dryrack.shell.process import KILLED, Process
from dryrack.shell.streams import Pipe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dryrack.apiserver.extension_points import Answer, Call
    from dryrack.apiserver.strategies.pods.container_choice import Terminals
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw

_SPDY = "spdy/3.1"
_STREAM_PROTOCOL = "x-stream-protocol-version"
# A session looks at its process at least so often: other containers can write files.
_WAIT_SECONDS_MAX = 1.0
_INTERRUPT, _END_OF_INPUT, _ERASE = b"\x03", b"\x04", (b"\x7f", b"\x08")


class RemoteCommands:
    """Handles `pods/exec` and `pods/attach`."""

    def __init__(self, containers: Terminals, clock: Timekeeper) -> None:
        self._containers = containers
        self._clock = clock

    async def execute(self, call: Call) -> Answer:
        """Run a command in a container."""
        options = _options_of(call)
        admit(call)
        pod, container = self._running_container(call)
        if not options.command:
            raise bad_request("you must specify at least 1 command for the container")
        now = self._clock.now()
        source = Pipe()
        source.is_complete = not options.has_stdin
        process = self._containers.command(pod, container, options.command, at=now, source=source)
        process.is_terminal = options.has_terminal
        return self._upgrade(call, options, _Remote(process, source, ends_with_client=True), pod)

    async def attach(self, call: Call) -> Answer:
        """Connect a client to the program of a container."""
        options = _options_of(call)
        admit(call)
        pod, container = self._running_container(call)
        attached = self._containers.attach(pod, container, self._clock.now())
        if attached is None:
            # Nothing is known of the program; its output is empty, and it takes no input.
            attached = Process(self._clock.now()), Pipe()
        process, source = attached
        specs = get(pod, "spec.containers", ())
        spec: Raw = next((each for each in specs if each["name"] == container), {})
        remote = _Remote(
            process,
            source,
            ends_with_client=False,
            keeps_input=bool(spec.get("stdin")) and not spec.get("stdinOnce"),
            written=len(process.output),
        )
        return self._upgrade(call, options, remote, pod)

    def _running_container(self, call: Call) -> tuple[Raw, str]:
        target = call.target
        pod = call.server.lookup.get("pods", target.namespace, target.name)
        if pod is None:
            raise not_found(Subject("", "pods"), target.name)
        phase = get(pod, "status.phase", "")
        if phase in ("Succeeded", "Failed"):
            doing = "exec into" if target.subresource == "exec" else "attach to"
            raise bad_request(
                f"cannot {doing} a container in a completed pod; current phase is {phase}"
            )
        container = choose_container(pod, call.parameter("container"))
        if not get(pod, "spec.nodeName"):
            raise bad_request(f"pod {target.name} does not have a host assigned")
        if "running" not in get(status_of_container(pod, container), "state", {}):
            raise internal_error(
                f'unable to upgrade connection: container not found ("{container}")'
            )
        return pod, container

    def _upgrade(self, call: Call, options: RemoteOptions, remote: _Remote, pod: Raw) -> Response:
        connection = RemoteConnection(
            options,
            remote,
            self._clock,
            run_containers=lambda now: self._containers.run(pod, now),
            notice=lambda: self._containers.notice(pod),
        )
        headers = {key.lower(): value for key, value in call.request.headers.items()}
        answer = connection.accept(headers)
        return Response(101, answer, b"", connection)


class _Remote:
    """A process with the input that a client writes to."""

    def __init__(
        self,
        process: Process,
        source: Pipe,
        *,
        ends_with_client: bool,
        keeps_input: bool = False,
        written: int = 0,
    ) -> None:
        self.process = process
        self.source = source
        self.ends_with_client = ends_with_client
        self.keeps_input = keeps_input
        """True if the input stays open for the next client; then the end of it detaches."""
        self.written = written
        """How many chunks of the output the client does not get, or has got."""


class RemoteConnection:
    """A connection that carries a remote command after its HTTP upgrade."""

    def __init__(
        self,
        options: RemoteOptions,
        remote: _Remote,
        clock: Timekeeper,
        *,
        run_containers: Callable[[float], None],
        notice: Callable[[], None],
    ) -> None:
        self._options = options
        self._remote = remote
        self._clock = clock
        self._run_containers = run_containers
        self._notice = notice
        self._changed = asyncio.Event()
        self._started = asyncio.Event()
        self._is_lost = False
        self._is_detached = False
        self._is_spdy = False
        self._line = bytearray()
        self._session: Session

    def accept(self, headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """Return the headers that open the connection, or raise if the client cannot use it."""
        if headers.get("upgrade", "").lower() == _SPDY:
            self._is_spdy = True
            offered = headers.get(_STREAM_PROTOCOL, "")
            chosen = choose_protocol(_split(offered), SPDY_PROTOCOLS) or SPDY_PROTOCOLS[-1]
            return (("upgrade", "SPDY/3.1"), ("connection", "Upgrade"), (_STREAM_PROTOCOL, chosen))
        if not websocket.is_requested(headers):
            raise bad_request("you must specify an upgrade: use a WebSocket, or SPDY/3.1")
        protocols = websocket.protocols_of(headers)
        protocol = choose_protocol(protocols, WEBSOCKET_PROTOCOLS)
        if protocol is None:
            known = ", ".join(WEBSOCKET_PROTOCOLS)
            raise bad_request(f"unable to upgrade: offer one of the subprotocols {known}")
        return (
            ("upgrade", "websocket"),
            ("connection", "Upgrade"),
            ("sec-websocket-accept", websocket.accept_key(headers.get("sec-websocket-key", ""))),
            (websocket.PROTOCOL_HEADER, protocol),
        )

    def connect(self, write: Callable[[bytes], None]) -> None:
        """Take the connection: `write` sends bytes to the client."""
        if self._is_spdy:
            self._session = SpdySession(self._options, self, write, self._started.set)
            return
        self._session = WebSocketSession(
            self._options, self, write, message_bytes_max=WEBSOCKET_MESSAGE_BYTES_MAX
        )
        self._started.set()

    def receive(self, data: bytes) -> None:
        """Take bytes of the client."""
        self._session.receive(data)

    async def run(self) -> None:
        """Carry the output to the client until the process or the connection ends."""
        await self._started.wait()
        process = self._remote.process
        while not self._is_lost:
            self._changed.clear()
            now = self._clock.now()
            self._run_containers(now)
            process.run(now)
            self._notice()
            self._send_output()
            if process.exit_code is not None:
                self._session.finish(result_status(process.exit_code))
                return
            if self._is_detached:
                self._session.finish(result_status(0))
                return
            await self._wait(min(process.wakes_at - now, _WAIT_SECONDS_MAX))
        if self._remote.ends_with_client:
            process.kill(KILLED)

    async def _wait(self, seconds: float) -> None:
        timer = self._clock.call_at(self._clock.now() + max(0.0, seconds), self._changed.set)
        try:
            await self._changed.wait()
        finally:
            timer.cancel()

    def _send_output(self) -> None:
        process = self._remote.process
        for chunk in process.output[self._remote.written :]:
            if self._options.has_terminal:
                self._session.write(STDOUT, chunk.data.replace(b"\n", b"\r\n"))
            elif chunk.descriptor == 2 and self._options.has_stderr:
                self._session.write(STDERR, chunk.data)
            elif chunk.descriptor == 1 and self._options.has_stdout:
                self._session.write(STDOUT, chunk.data)
        self._remote.written = len(process.output)

    # What the client sends

    def receive_input(self, data: bytes) -> None:
        if not self._options.has_terminal:
            self._write_input(data)
        else:
            for number in range(len(data)):
                self._type(data[number : number + 1])
        self._changed.set()

    def _type(self, character: bytes) -> None:
        """Edit the line that a person types, as a terminal does."""
        if character == b"\r" or character == b"\n":
            self._session.write(STDOUT, b"\r\n")
            self._write_input(bytes(self._line) + b"\n")
            self._line.clear()
        elif character == _INTERRUPT:
            self._session.write(STDOUT, b"^C\r\n")
            self._line.clear()
            self._remote.process.interrupt()
        elif character == _END_OF_INPUT and not self._line:
            self._remote.source.is_complete = True
        elif character in _ERASE:
            if self._line:
                del self._line[-1:]
                self._session.write(STDOUT, b"\b \b")
        elif character >= b" " or character == b"\t":
            self._line += character
            self._session.write(STDOUT, character)

    def _write_input(self, data: bytes) -> None:
        source = self._remote.source
        if not source.is_complete and not source.is_broken:
            source.write(data)

    def end_input(self) -> None:
        if self._remote.keeps_input:
            self._is_detached = True
        else:
            self._remote.source.is_complete = True
        self._changed.set()

    def resize(self, width: int, height: int) -> None:
        """Nothing that dryrack runs depends on the size of the terminal."""

    def disconnect(self) -> None:
        self._is_lost = True
        self._started.set()
        self._changed.set()


def _options_of(call: Call) -> RemoteOptions:
    is_given = {
        name: truth_of(call.parameters, name) for name in ("stdin", "stdout", "stderr", "tty")
    }
    return RemoteOptions(
        tuple(call.parameters.get("command", ())),
        has_stdin=is_given["stdin"],
        has_stdout=is_given["stdout"],
        has_stderr=is_given["stderr"],
        has_terminal=is_given["tty"],
    )


def admit(call: Call) -> None:
    """Ask the admission policies and webhooks, which can forbid a connection."""
    target = call.target
    kind = target.resource.subresources[target.subresource].kind
    options: Raw = {"kind": kind, "apiVersion": "v1"}
    streams = ("stdin", "stdout", "stderr", "tty")
    options |= {name: True for name in streams if truth_of(call.parameters, name)}
    if container := call.parameter("container"):
        options["container"] = container
    if command := call.parameters.get("command"):
        options["command"] = list(command)
    admit_posted(call, options)


def _split(offered: str) -> list[str]:
    return [each.strip() for each in offered.split(",") if each.strip()]

"""`pods/log`: the output of a container, all at once or as it comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import Subject, bad_request, invalid, not_found
from dryrack.apiserver.http.queries import integer_of, truth_of
from dryrack.apiserver.strategies.pods.container_choice import choose_container, status_of_container
from dryrack.client.timekeeping import seconds_of, sleep, timestamp
from dryrack.client.transport import Response
from dryrack.kinds.paths import get
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.problems import invalid as invalid_value

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from dryrack.apiserver.extension_points import Answer, Call
    from dryrack.apiserver.strategies.pods.container_choice import Logs
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem
    from dryrack.shell.process import Chunk

_OPTIONS = Subject("", "PodLogOptions")
_HEADERS = (("content-type", "text/plain"),)
# A reader that follows looks at the pod so often: its container can end at any time.
_FOLLOW_SECONDS = 0.5


class LogReader:
    """Handles GET …/log."""

    def __init__(self, logs: Logs, clock: Timekeeper) -> None:
        self._logs = logs
        self._clock = clock

    async def read(self, call: Call) -> Answer:
        target = call.target
        problems = tuple(_find_problems(call))
        if problems:
            raise invalid(_OPTIONS, target.name, problems)
        pod = call.server.lookup.get("pods", target.namespace, target.name)
        if pod is None:
            raise not_found(Subject("", "pods"), target.name)
        container = choose_container(pod, call.parameter("container"))
        if not get(pod, "spec.nodeName"):
            return Response(200, _HEADERS, b"")
        is_previous = truth_of(call.parameters, "previous")
        _check_state(pod, container, is_previous=is_previous)
        if truth_of(call.parameters, "follow") and not is_previous:
            return Response(200, _HEADERS, _Following(self._follow(call, pod, container)))
        chunks = self._logs.log(pod, container, is_previous=is_previous, now=self._clock.now())
        return Response(200, _HEADERS, _select(chunks, call, self._clock.now()))

    async def _follow(self, call: Call, pod: Raw, container: str) -> AsyncIterator[bytes]:
        """Yield the output until the container ends, or the pod is gone."""
        uid = pod["metadata"]["uid"]
        restarts = status_of_container(pod, container).get("restartCount")
        written: int | None = None
        while True:
            now = self._clock.now()
            chunks = self._logs.log(pod, container, is_previous=False, now=now)
            if written is None:
                yield _select(chunks, call, now)
            elif len(chunks) > written:
                yield _lines(chunks[written:], call)
            written = len(chunks)
            current = call.server.lookup.get("pods", call.target.namespace, call.target.name)
            if current is None or current["metadata"]["uid"] != uid:
                return
            status = status_of_container(current, container)
            if status.get("restartCount") != restarts or "running" not in get(status, "state", {}):
                if current is pod:
                    return
                # What the container wrote at its end comes with its last state.
                pod = current if status.get("restartCount") == restarts else pod
                last = self._logs.log(pod, container, is_previous=False, now=self._clock.now())
                yield _lines(last[written:], call)
                return
            pod = current
            await sleep(self._clock, _FOLLOW_SECONDS)


class _Following:
    """A stream of text."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks

    def __aiter__(self) -> _Following:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._chunks)

    async def aclose(self) -> None:
        await self._chunks.aclose()  # type: ignore[attr-defined]


def _find_problems(call: Call) -> Iterator[FieldProblem]:
    tail = integer_of(call.parameters, "tailLines")
    if tail is not None and tail < 0:
        yield invalid_value("tailLines", tail, "must be greater than or equal to 0")
    limit = integer_of(call.parameters, "limitBytes")
    if limit is not None and limit < 1:
        yield invalid_value("limitBytes", limit, "must be greater than 0")
    since = integer_of(call.parameters, "sinceSeconds")
    if since is not None and since < 1:
        yield invalid_value("sinceSeconds", since, "must be greater than 0")


def _check_state(pod: Raw, container: str, *, is_previous: bool) -> None:
    """Raise what a kubelet answers if there is no log."""
    status = status_of_container(pod, container)
    name = pod["metadata"]["name"]
    where = f"container {quoted(container)} in pod {quoted(name)}"
    if is_previous:
        if not get(status, "lastState.terminated"):
            raise bad_request(f"previous terminated {where} not found")
        return
    state = get(status, "state", {})
    if ("waiting" in state or not state) and not status.get("lastState"):
        reason = get(state, "waiting.reason") or "ContainerCreating"
        raise bad_request(f"{where} is waiting to start: {reason}")


def _select(chunks: Sequence[Chunk], call: Call, now: float) -> bytes:
    """Return the part of the output that the request asks for."""
    since = integer_of(call.parameters, "sinceSeconds")
    begin = None if since is None else now - since
    if since_time := call.parameter("sinceTime"):
        begin = seconds_of(since_time)
    if begin is not None:
        chunks = [each for each in chunks if each.at >= begin]
    text = _lines(chunks, call)
    tail = integer_of(call.parameters, "tailLines")
    if tail is not None and tail >= 0:
        text = b"".join(text.splitlines(keepends=True)[-tail:] if tail else ())
    limit = integer_of(call.parameters, "limitBytes")
    return text if limit is None else text[:limit]


def _lines(chunks: Sequence[Chunk], call: Call) -> bytes:
    if not truth_of(call.parameters, "timestamps"):
        return b"".join(each.data for each in chunks)
    lines: list[bytes] = []
    is_begun = False
    for each in chunks:
        for line in each.data.splitlines(keepends=True):
            # A line that was written in pieces has the time of its first one.
            prefix = b"" if is_begun else f"{timestamp(each.at)} ".encode()
            lines.append(prefix + line)
            is_begun = not line.endswith(b"\n")
    return b"".join(lines)

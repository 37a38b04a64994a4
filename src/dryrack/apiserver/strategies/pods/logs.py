"""The log of a container, as text. What is in it others know: `Logs` is where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dryrack.apiserver.answer.status import Subject, bad_request, invalid, not_found
from dryrack.apiserver.http.queries import integer_of, truth_of
from dryrack.client.transport import Response
from dryrack.kinds.paths import get, spec_of, status_of
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.problems import invalid as invalid_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.apiserver.extension_points import Answer, Call
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_OPTIONS = Subject("", "PodLogOptions")
_HEADERS = (("content-type", "text/plain"),)


class Logs(Protocol):
    """Answer with the log of an existing container."""

    def __call__(self, pod: Raw, container: str) -> str: ...


class LogReader:
    """GET …/log."""

    def __init__(self, logs: Logs) -> None:
        self._logs = logs

    async def read(self, call: Call) -> Answer:
        target = call.target
        problems = tuple(_problems(call))
        if problems:
            raise invalid(_OPTIONS, target.name, problems)
        pod = call.server.lookup.get("pods", target.namespace, target.name)
        if pod is None:
            raise not_found(Subject("", "pods"), target.name)
        container = _container(pod, call.parameter("container"))
        if not get(pod, "spec.nodeName"):
            return Response(200, _HEADERS, b"")
        _check_state(pod, container, is_previous=truth_of(call.parameters, "previous"))
        return Response(200, _HEADERS, _cut(self._logs(pod, container), call).encode())


def _problems(call: Call) -> Iterator[FieldProblem]:
    tail = integer_of(call.parameters, "tailLines")
    if tail is not None and tail < 0:
        yield invalid_value("tailLines", tail, "must be greater than or equal to 0")
    limit = integer_of(call.parameters, "limitBytes")
    if limit is not None and limit < 1:
        yield invalid_value("limitBytes", limit, "must be greater than 0")
    since = integer_of(call.parameters, "sinceSeconds")
    if since is not None and since < 1:
        yield invalid_value("sinceSeconds", since, "must be greater than 0")


def _container(pod: Raw, wanted: str) -> str:
    """The container that is meant; one needs no name if it is alone."""
    spec = spec_of(pod)
    name = pod["metadata"]["name"]
    regular, first, later = (
        [each["name"] for each in spec.get(key) or ()]
        for key in ("containers", "initContainers", "ephemeralContainers")
    )
    if wanted:
        if wanted not in (*regular, *first, *later):
            raise bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(regular) == 1:
        return str(regular[0])
    message = f"a container name must be specified for pod {name}, choose one of: "
    message += f"[{' '.join(regular)}]"
    if first:
        message += f" or one of the init containers: [{' '.join(first)}]"
    if later:
        message += f" or one of the ephemeral containers: [{' '.join(later)}]"
    raise bad_request(message)


def _check_state(pod: Raw, container: str, *, is_previous: bool) -> None:
    """Raise if a kubelet would refuse the request."""
    told = _status(pod, container)
    name = pod["metadata"]["name"]
    where = f"container {quoted(container)} in pod {quoted(name)}"
    if is_previous:
        if not get(told, "lastState.terminated"):
            raise bad_request(f"previous terminated {where} not found")
        return
    state = get(told, "state", {})
    if ("waiting" in state or not state) and not told.get("lastState"):
        reason = get(state, "waiting.reason") or "ContainerCreating"
        raise bad_request(f"{where} is waiting to start: {reason}")


def _status(pod: Raw, container: str) -> Raw:
    status = status_of(pod)
    told = [
        each
        for key in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
        for each in status.get(key) or ()
    ]
    return next((each for each in told if each.get("name") == container), {})


def _cut(text: str, call: Call) -> str:
    """The part that is asked for."""
    tail = integer_of(call.parameters, "tailLines")
    if tail is not None:
        text = "".join(text.splitlines(keepends=True)[-tail:] if tail else ())
    limit = integer_of(call.parameters, "limitBytes")
    return text if limit is None else text.encode()[:limit].decode("utf-8", "ignore")

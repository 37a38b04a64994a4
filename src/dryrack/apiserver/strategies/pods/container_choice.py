"""The containers of pods, as logs, `exec` and `attach` use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dryrack.apiserver.answer.status import bad_request
from dryrack.kinds.paths import get, spec_of, status_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.shell.process import Chunk, Process
    from dryrack.shell.streams import Pipe


class Logs(Protocol):
    """Returns the output of a container that has started."""

    def log(self, pod: Raw, name: str, *, is_previous: bool, now: float) -> Sequence[Chunk]: ...


class Terminals(Protocol):
    """Runs commands in containers, and connects clients to their programs."""

    def run(self, pod: Raw, now: float) -> None: ...

    def notice(self, pod: Raw) -> None: ...

    def command(
        self, pod: Raw, name: str, words: Sequence[str], *, at: float, source: Pipe
    ) -> Process: ...

    def attach(self, pod: Raw, name: str, now: float) -> tuple[Process, Pipe] | None: ...


def choose_container(pod: Raw, name: str) -> str:
    """Return the container that a request names; a request needs no name if there is only one."""
    spec = spec_of(pod)
    pod_name = pod["metadata"]["name"]
    regular, first, later = (
        [each["name"] for each in get(spec, key, ())]
        for key in ("containers", "initContainers", "ephemeralContainers")
    )
    if name:
        if name not in (*regular, *first, *later):
            raise bad_request(f"container {name} is not valid for pod {pod_name}")
        return name
    if len(regular) == 1:
        return str(regular[0])
    message = f"a container name must be specified for pod {pod_name}, choose one of: "
    message += f"[{' '.join(regular)}]"
    if first:
        message += f" or one of the init containers: [{' '.join(first)}]"
    if later:
        message += f" or one of the ephemeral containers: [{' '.join(later)}]"
    raise bad_request(message)


def status_of_container(pod: Raw, name: str) -> Raw:
    """Return the status of a container of any kind, or {}."""
    for key in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for each in status_of(pod).get(key) or ():
            if each.get("name") == name:
                found: Raw = each
                return found
    return {}

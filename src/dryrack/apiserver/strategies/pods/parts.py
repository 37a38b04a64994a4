"""
The subresources of pods that have a handler.

Each handler is loaded with its first request. Pods on virtual nodes have no network, so
`portforward` and `proxy` are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dryrack.apiserver.answer.status import not_implemented
from dryrack.apiserver.strategies.pods.container_choice import Logs, Terminals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.apiserver.extension_points import Answer, Call
    from dryrack.apiserver.registry import Handler
    from dryrack.client.timekeeping import Timekeeper


class Containers(Logs, Terminals, Protocol):
    """Runs the containers of virtual nodes, and keeps their output."""


def pod_handlers(
    containers: Containers, clock: Timekeeper
) -> Mapping[tuple[str, str], Mapping[str, Handler]]:
    """Return the handlers by resource and part, and then by verb."""

    async def read(call: Call) -> Answer:
        from dryrack.apiserver.strategies.pods.logs import LogReader

        return await LogReader(containers, clock).read(call)

    async def execute(call: Call) -> Answer:
        from dryrack.apiserver.strategies.pods.remote_commands import RemoteCommands

        return await RemoteCommands(containers, clock).execute(call)

    async def attach(call: Call) -> Answer:
        from dryrack.apiserver.strategies.pods.remote_commands import RemoteCommands

        return await RemoteCommands(containers, clock).attach(call)

    proxied = dict.fromkeys(("create", "delete", "get", "patch", "update"), _no_proxy)
    return {
        ("bindings", ""): {"create": _bind},
        ("pods", "binding"): {"create": _bind},
        ("pods", "eviction"): {"create": _evict},
        ("pods", "log"): {"get": read},
        ("pods", "attach"): {"create": attach, "get": attach},
        ("pods", "exec"): {"create": execute, "get": execute},
        ("pods", "portforward"): {"create": _no_port, "get": _no_port},
        **{(kind, "proxy"): proxied for kind in ("nodes", "pods", "services")},
    }


async def _bind(call: Call) -> Answer:
    from dryrack.apiserver.strategies.pods.binding import bind

    return await bind(call)


async def _evict(call: Call) -> Answer:
    from dryrack.apiserver.strategies.pods.eviction import evict

    return await evict(call)


async def _no_port(call: Call) -> Answer:
    from dryrack.apiserver.strategies.pods.remote_commands import admit

    admit(call)
    raise not_implemented("port-forward is not supported: pods on virtual nodes have no open ports")


async def _no_proxy(call: Call) -> Answer:
    raise not_implemented("proxy is not supported: pods on virtual nodes have no open ports")

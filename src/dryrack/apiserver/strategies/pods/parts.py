"""
The subresources of pods.

No containers run, so attach, exec and port-forward are refused. Handlers are loaded with the
first request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import not_implemented

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.apiserver.extension_points import Answer, Call
    from dryrack.apiserver.registry import Handler
    from dryrack.apiserver.strategies.pods.logs import Logs
    from dryrack.kinds.raw import Raw

# What of a query is about the streams of a process.
_STREAMS = ("stdin", "stdout", "stderr", "tty")


def pod_handlers(logs: Logs) -> Mapping[tuple[str, str], Mapping[str, Handler]]:
    """By resource and part, and then by verb."""

    async def read(call: Call) -> Answer:
        from dryrack.apiserver.strategies.pods.logs import LogReader

        return await LogReader(logs).read(call)

    refused = {"create": _no_process, "get": _no_process}
    proxied = dict.fromkeys(("create", "delete", "get", "patch", "update"), _no_proxy)
    return {
        ("bindings", ""): {"create": _bind},
        ("pods", "binding"): {"create": _bind},
        ("pods", "eviction"): {"create": _evict},
        ("pods", "log"): {"get": read},
        ("pods", "attach"): refused,
        ("pods", "exec"): refused,
        ("pods", "portforward"): {"create": _no_port, "get": _no_port},
        **{(kind, "proxy"): proxied for kind in ("nodes", "pods", "services")},
    }


async def _bind(call: Call) -> Answer:
    from dryrack.apiserver.strategies.pods.binding import bind

    return await bind(call)


async def _evict(call: Call) -> Answer:
    from dryrack.apiserver.strategies.pods.eviction import evict

    return await evict(call)


async def _no_process(call: Call) -> Answer:
    _approve(call)
    part = call.target.subresource
    raise not_implemented(f"{part} is not supported: pods on virtual nodes have no processes")


async def _no_port(call: Call) -> Answer:
    _approve(call)
    raise not_implemented("port-forward is not supported: pods on virtual nodes have no open ports")


def _approve(call: Call) -> None:
    """A policy may forbid what could not be done anyway; that is what its author wants to see."""
    from dryrack.apiserver.decode.review_bodies import admit_posted
    from dryrack.apiserver.http.queries import truth_of

    target = call.target
    given = call.parameters
    kind = target.resource.subresources[target.subresource].kind
    options: Raw = {"kind": kind, "apiVersion": "v1"}
    options |= {name: truth_of(given, name) for name in _STREAMS if truth_of(given, name)}
    options |= {name: given[name][0] for name in ("container",) if name in given}
    options |= {name: list(given[name]) for name in ("command",) if name in given}
    admit_posted(call, options)


async def _no_proxy(call: Call) -> Answer:
    raise not_implemented("proxy is not supported: pods on virtual nodes have no open ports")

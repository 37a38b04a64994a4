"""The parts of workloads that have a path of their own; what answers is loaded when asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.registry import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.apiserver.extension_points import Answer, Call
    from dryrack.apiserver.registry import Handler


def workload_handlers() -> Mapping[tuple[str, str], Mapping[str, Handler]]:
    """By resource and part, and then by verb."""
    found = {verb: _handler(verb) for verb in ("get", "update", "patch")}
    return {
        (kind.storage, part.name): found
        for kind in KINDS
        for part in kind.parts
        if part.name == "scale"
    }


def _handler(verb: str) -> Handler:
    async def answer(call: Call) -> Answer:
        from dryrack.apiserver.verbs.scale import WORKLOAD_SCALE

        found: Answer = await getattr(WORKLOAD_SCALE, verb)(call)
        return found

    return answer

"""The parts of workloads that have a path of their own; what answers is loaded when asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.apiserver.calls import Answer, Call
    from dryrack.apiserver.registry import Handler

_SCALED = ("deployments.apps", "replicasets.apps", "replicationcontrollers", "statefulsets.apps")


def handlers() -> Mapping[tuple[str, str], Mapping[str, Handler]]:
    """By resource and part, and then by verb."""
    found = {"get": _scale, "update": _rescale, "patch": _patch_scale}
    return {(resource, "scale"): found for resource in _SCALED}


async def _scale(call: Call) -> Answer:
    from dryrack.apiserver.strategies.workloads import scale

    return await scale.get(call)


async def _rescale(call: Call) -> Answer:
    from dryrack.apiserver.strategies.workloads import scale

    return await scale.update(call)


async def _patch_scale(call: Call) -> Answer:
    from dryrack.apiserver.strategies.workloads import scale

    return await scale.patch(call)

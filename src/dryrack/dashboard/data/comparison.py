"""The differences between two moments: pods, claims, gangs, nodes, and devices."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from dryrack.dashboard.data.fleet import Summaries

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dryrack.dashboard.data.fleet import DeviceRow, PoolRow
    from dryrack.dashboard.history import PastState

Document = dict[str, Any]
# The number of names for each kind.
_NAMES_MAX = 500


def compare(old: PastState, new: PastState) -> Document:
    """Return what differs in the second state; "" stands for an object that does not exist."""
    return {
        "from": _moment(old),
        "to": _moment(new),
        "pods": _differences(old.pods, new.pods, _pod_text),
        "claims": _differences(old.claims, new.claims, _claim_text),
        "gangs": _differences(_gangs(old), _gangs(new), _gang_text),
        "nodes": _differences(old.nodes, new.nodes, _node_text),
        "devices": _devices(old, new),
    }


def _moment(state: PastState) -> Document:
    summaries = Summaries()
    for row in state.pools.values():
        summaries.change(None, row)
    return {"revision": state.revision, "time": state.time, "states": summaries.states()}


def _differences(
    old: Mapping[str, Document], new: Mapping[str, Document], text: Callable[[Document], str]
) -> Document:
    """Return the objects whose texts differ, by name, and how many of them are left out."""
    changed = []
    for name in sorted(old.keys() | new.keys()):
        was = text(old[name]) if name in old else ""
        now = text(new[name]) if name in new else ""
        if was != now:
            changed.append({"name": name, "was": was, "now": now})
    return _limit(changed)


def _limit(changed: Sequence[Document]) -> Document:
    return {
        "changed": list(changed[:_NAMES_MAX]),
        "omitted": max(0, len(changed) - _NAMES_MAX),
    }


def _pod_text(pod: Document) -> str:
    where = f" on {pod['node']}" if pod["node"] else ""
    return f"{pod['phase']}{where}{', deleting' if pod['deleting'] else ''}"


def _claim_text(claim: Document) -> str:
    devices = ", ".join(claim["devices"])
    return f"{claim['state']}: {devices}" if devices else str(claim["state"])


def _gangs(state: PastState) -> dict[str, Document]:
    rows = (each for gangs in state.gangs.values() for each in gangs)
    return {f"{each['namespace']}/{each['name']}": each for each in rows}


def _gang_text(gang: Document) -> str:
    members = len(gang["placed"]) + len(gang["waiting"])
    return f"{gang['status']}: {len(gang['placed'])} of {members} bound"


def _node_text(node: Document) -> str:
    ready = "ready" if node["ready"] else "not ready"
    return f"{ready}, cordoned" if node["cordoned"] else ready


def _devices(old: PastState, new: PastState) -> Document:
    """Return the devices whose state or place differs, and their numbers by model."""
    changed = []
    counts: Counter[tuple[str, str, str]] = Counter()
    for key in sorted(old.pools.keys() | new.pools.keys()):
        before, after = _by_name(old.pools.get(key)), _by_name(new.pools.get(key))
        for name in sorted({**before, **after}):
            was, now = before.get(name), after.get(name)
            device = now or was
            assert device is not None, "the device is in one of the pools"
            texts = _device_text(was), _device_text(now)
            if texts[0] != texts[1]:
                counts[device.model or key[0], *texts] += 1
                changed.append(
                    {
                        "name": "/".join((*key, name)),
                        "node": device.node,
                        "model": device.model,
                        "was": texts[0],
                        "now": texts[1],
                    }
                )
    return {
        **_limit(changed),
        "counts": [
            {"model": model, "was": was, "now": now, "count": count}
            for (model, was, now), count in sorted(counts.items())
        ],
    }


def _by_name(pool: PoolRow | None) -> Mapping[str, DeviceRow]:
    return {} if pool is None else {each.name: each for each in pool.devices}


def _device_text(device: DeviceRow | None) -> str:
    if device is None:
        return ""
    return f"{device.state} {device.level}%" if device.level > 0 else device.state

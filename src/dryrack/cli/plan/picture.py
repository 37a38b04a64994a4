"""Print a plan for people: its nodes with their devices filled, the cost, and the proof."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from dryrack.cli.output import many, paint, print_line, print_table, say, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_COLUMNS = ("NODE", "TYPE", "PODS", "DEVICES", "LEFT")
_FULL = "■"
_EMPTY = "□"
# A picture with more devices is a number.
_DEVICES_DRAWN_MAX = 16
_PODS_NAMED_MAX = 3
_NOT_DEVICES = ("cpu", "memory", "pods")
_PLACEMENTS = {
    "any": "the scheduler places all pods on these nodes by itself",
    "pinned": "pin each pod to its node: left to itself, the scheduler does not place all pods",
    "joint": "place the pods of a node together, as a gang: one by one, not all get devices",
}


def print_plan(document: Mapping[str, Any]) -> None:
    """Print the table of the nodes, then what is known about the cost."""
    rows = [*map(_row, document["nodes"]), *map(_row, document["existing"])]
    if rows:
        print_table(_COLUMNS, rows)
        print_line()
    for line in _summary(document):
        print_line(shown(line))
    reasons: dict[str, list[str]] = {}
    for each in document["unplaceable"]:
        reasons.setdefault(each["why"], []).append(each["pod"])
    for why, pods in reasons.items():
        more = f" and {many(len(pods) - 1, 'pod')} like it" if len(pods) > 1 else ""
        verb = "are" if more else "is"
        say(
            f"\n{paint(shown(f'pod {pods[0]}'), 'bold')}{more} {verb} not in the plan: {shown(why)}"
        )


def _row(node: Mapping[str, Any]) -> tuple[str, ...]:
    used = Counter(each["driver"] for each in node["devices"])
    left = node["left"]
    drivers = sorted({name for name in left if name not in _NOT_DEVICES} | set(used))
    pictures = [
        f"{driver} {_picture(used[driver], int(left.get(driver, 0)))}"
        for driver in drivers
        if used[driver]
    ]
    rest = ", ".join(f"{name} {left[name]}" for name in _NOT_DEVICES[:2] if name in left)
    return (
        node.get("name") or node["node"],
        " in ".join(filter(None, (node.get("instanceType", "exists"), node.get("zone")))),
        _names(node["pods"]),
        ", ".join(pictures) or "-",
        rest or "-",
    )


def _picture(used: int, free: int) -> str:
    if used + free > _DEVICES_DRAWN_MAX:
        return f"{used} of {used + free}"
    return _FULL * used + _EMPTY * free


def _names(pods: Sequence[str]) -> str:
    named = ", ".join(each.rpartition("/")[2] for each in pods[:_PODS_NAMED_MAX])
    more = len(pods) - _PODS_NAMED_MAX
    return f"{named}, +{more}" if more > 0 else named


def _summary(document: Mapping[str, Any]) -> list[str]:
    nodes = document["nodes"]
    types = Counter(each["instanceType"] for each in nodes)
    types_text = ", ".join(f"{number} × {name}" for name, number in types.items())
    cost = document["cost"]
    price = "at an unknown price" if cost is None else f"{cost:,.2f} USD an hour"
    is_by_nodes = document["objective"] == "nodes"
    lines = [f"add {many(len(nodes), 'node')} ({types_text}), {price}" if nodes else "add no node"]
    if nodes:
        proof = document["proof"]
        best = "no plan is better" if document["optimal"] else "a better plan may exist"
        bound = document["bound"]
        limit = f"{bound:,.2f} nodes" if is_by_nodes else f"{bound:,.2f} USD an hour"
        lines.append(f"{best}: {proof}; the lower bound is {limit}")
    if nodes or document["existing"]:
        lines.append(_PLACEMENTS[document["placement"]])
    fewer = document["oneFewer"]
    if fewer is not None:
        nodes = many(fewer["nodes"], "node") + " fewer" if fewer["nodes"] > 0 else "cheaper"
        saves = "" if is_by_nodes else f" ({fewer['saves']:,.2f} USD an hour)"
        lines.append(f"{nodes}{saves} if: {fewer['change']}")
    if document["prices"] is not None:
        date, source = document["prices"]["date"], document["prices"]["source"]
        lines.append(f"prices of {date}: {source}")
    return lines

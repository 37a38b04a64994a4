"""The delays of gangs on the time axis: from the first member to enough members on nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.client.timekeeping import seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Document = dict[str, Any]
# The time axis shows this number of gangs, and of members of one gang.
_GANGS_MAX = 200
_MEMBERS_MAX = 256


def gang_delays(
    gangs: Iterable[Document], pods: Iterable[tuple[str, Document]], since: str
) -> tuple[list[Document], int]:
    """
    Return the gangs with their members and delays, the newest first, and the number of older ones.

    `gangs` and `pods` are all known versions, the latest first, of those that exist and of those
    that were deleted. A pod that was created again with its old name is another member. Gangs that
    were complete before `since` are left out.
    """
    latest: dict[tuple[str, str], Document] = {}
    for each in gangs:
        latest.setdefault((each["namespace"], each["name"]), each)
    members: dict[tuple[str, str], dict[tuple[str, str], Document]] = {}
    for name, row in pods:
        if row["gang"]:
            own = members.setdefault((row["namespace"], row["gang"]), {})
            known = own.setdefault((name, row["created"]), row)
            # The last version of a pod may be one that was bound, or one from before.
            if row["scheduled"] and not known["scheduled"]:
                own[name, row["created"]] = row
    documents = [
        _delay(latest[key], tuple(own.values())) for key, own in members.items() if key in latest
    ]
    shown = [each for each in documents if not each["placed"] or each["placed"] >= since]
    shown.sort(key=lambda each: (each["created"], each["namespace"], each["name"]), reverse=True)
    return shown[:_GANGS_MAX], max(0, len(shown) - _GANGS_MAX)


def _delay(gang: Document, pods: Sequence[Document]) -> Document:
    """Return when the gang began and was placed; empty times and no delay are unknown."""
    created = min((each["created"] for each in pods if each["created"]), default="")
    scheduled = sorted(each["scheduled"] for each in pods if each["scheduled"])
    number = gang["minCount"] or len(pods)
    placed = scheduled[number - 1] if 0 < number <= len(scheduled) else ""
    ordered = sorted(pods, key=lambda each: (each["created"], each["name"]))
    return {
        "namespace": gang["namespace"],
        "name": gang["name"],
        "minCount": number,
        "status": gang["status"],
        "created": created,
        "placed": placed,
        "delaySeconds": seconds_of(placed) - seconds_of(created) if placed and created else None,
        "members": [
            {"name": each["name"], "created": each["created"], "scheduled": each["scheduled"]}
            for each in ordered[:_MEMBERS_MAX]
        ],
        "membersOmitted": max(0, len(pods) - _MEMBERS_MAX),
    }

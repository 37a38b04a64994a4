"""
Small problems in which what was tried in vain decides, by the rules of 1.36.

Lists under constraints, several devices of a request that must differ, claims that can pass
their limit of results, and selectors that fail on some devices. A plain search can still walk
through most of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.allocation.builders import DRIVER, claim, counters, pool, way

if TYPE_CHECKING:
    from random import Random

    from dryrack.kinds.resource import ResourceClaim, ResourceSlice

LINKS = ("a", "b", "c", "d")
# The last fails on devices without the attribute.
SELECTORS = (
    "",
    "",
    "",
    f'device.attributes["{DRIVER}"].?numa.orValue(0) == 0',
    f'device.attributes["{DRIVER}"].numa == 1',
)
# Beside a few others these pass the limit of 32 results.
MANY = (28, 29, 30, 31, 32)


def slippery(chance: Random) -> tuple[list[ResourceSlice], list[ResourceClaim]]:
    """Slices and claims."""
    looks = [_look(chance) for _ in range(chance.randint(2, 4))]
    offered: list[Any] = []
    while len(offered) < chance.randint(4, 7):
        offered += [chance.choice(looks) for _ in range(chance.choice((1, 1, 2)))]
    named = [{"name": f"gpu-{number}", **each} for number, each in enumerate(offered)]
    claims = [_claim(chance, f"claim-{n}") for n in range(chance.choice((1, 1, 2)))]
    return pool(named, sets=[counters(parts=chance.randint(2, 5))]), claims


def _look(chance: Random) -> Any:
    links = chance.sample(LINKS, chance.choice((1, 1, 2, 2, 3)))
    attributes: dict[str, Any] = {
        "links": {"strings": links} if chance.random() < 0.7 else {"string": links[0]},
        "numa": {"int": chance.randint(0, 1)},
        "slot": {"int": chance.randint(0, 2)},
    }
    kept = {name: each for name, each in attributes.items() if chance.random() < 0.93}
    look: dict[str, Any] = {"attributes": kept}
    if chance.random() < 0.15:
        drawn = {"counterSet": "gpu", "counters": {"parts": {"value": "1"}}}
        look["consumesCounters"] = [drawn]
    if chance.random() < 0.15:
        memory = {"value": "3", "requestPolicy": {"default": "1"}}
        look |= {"allowMultipleAllocations": True, "capacity": {"memory": memory}}
    return look


def _claim(chance: Random, name: str) -> ResourceClaim:
    limited = chance.random() < 0.3
    requests = [_request(chance, f"r{n}", limited=limited) for n in range(chance.randint(1, 3))]
    rules = [
        {
            chance.choice(("matchAttribute", "distinctAttribute")): f"{DRIVER}/{attribute}",
            "requests": [each["name"] for each in requests if chance.random() < 0.35],
        }
        for attribute in chance.choices(("links", "links", "slot"), k=chance.choice((0, 1, 2, 2)))
    ]
    return claim(*requests, name=name, constraints=rules)


def _request(chance: Random, name: str, *, limited: bool) -> Any:
    if chance.random() < 0.6 and not limited:
        return {"name": name, "exactly": _ask(chance)}
    ways = [_ask(chance) for _ in range(chance.randint(1, 2))]
    if limited and chance.random() < 0.7:
        many = way(chance.choice(MANY), select=chance.choice(SELECTORS))
        ways.insert(chance.randint(0, len(ways)), many)
    return {"name": name, "firstAvailable": [{"name": f"s{n}", **w} for n, w in enumerate(ways)]}


def _ask(chance: Random) -> Any:
    ask = way(chance.choice((1, 1, 2, 2, 3)), select=chance.choice(SELECTORS))
    return {**ask, "allocationMode": "All", "count": 0} if chance.random() < 0.05 else ask

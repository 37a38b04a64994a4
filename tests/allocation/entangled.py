"""
Small problems in which everything depends on everything, drawn at random.

Partitioned devices on several GPUs that look alike, shared ones among them; requests for some,
for all, with alternatives and with admin access; constraints across them; selectors that fail
on some devices. A plain search can still walk through most of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.allocation.builders import DRIVER, claim, counters, device, pool, way

if TYPE_CHECKING:
    from random import Random

    from dryrack.kinds.resource import ResourceClaim, ResourceSlice

SIZES = (1, 2, 3)
# The last two fail on devices without the attribute.
SELECTORS = (
    "",
    "",
    *(f'device.attributes["{DRIVER}"].size == {size}' for size in SIZES),
    f'device.attributes["{DRIVER}"].?value.orValue(0) == 1',
    f'device.attributes["{DRIVER}"].value == 0',
    f'device.attributes["{DRIVER}"].gpu >= 0',
)
OVER_THE_LIMIT = (29, 30, 31, 32)


def entangled(chance: Random) -> tuple[list[ResourceSlice], list[ResourceClaim]]:
    """Slices and claims."""
    gpus = range(chance.randint(1, 3))
    offered = [part for gpu in gpus for part in _parts(chance, gpu)]
    offered += [device(f"whole-{n}", more=_shared(chance), size=1) for n in range(2)]
    chance.shuffle(offered)
    sets = [counters(f"gpu-{gpu}", parts=chance.choice((4, 4, 5))) for gpu in gpus]
    claims = [_claim(chance, f"claim-{n}") for n in range(chance.randint(1, 2))]
    return pool(offered, sets=sets), claims


def _parts(chance: Random, gpu: int) -> list[Any]:
    return [
        device(
            f"gpu-{gpu}-{size}-{number}",
            more={**_drawn(gpu, size), **_shared(chance)},
            size=size,
            **_sometimes(chance, gpu=gpu, value=chance.randint(0, 1)),
        )
        for size in SIZES
        for number in range(chance.randint(0, 2))
    ]


def _drawn(gpu: int, size: int) -> Any:
    drawn = {"counterSet": f"gpu-{gpu}", "counters": {"parts": {"value": str(size)}}}
    return {"consumesCounters": [drawn]}


def _shared(chance: Random) -> Any:
    if chance.random() < 0.8:
        return {}
    memory = {"value": str(chance.choice((2, 4))), "requestPolicy": {"default": "1"}}
    return {"allowMultipleAllocations": True, "capacity": {"memory": memory}}


def _sometimes(chance: Random, **attributes: int) -> dict[str, int]:
    return {name: each for name, each in attributes.items() if chance.random() < 0.9}


def _claim(chance: Random, name: str) -> ResourceClaim:
    requests = [_request(chance, f"r{n}") for n in range(chance.randint(1, 4))]
    rules = [
        {
            chance.choice(("matchAttribute", "distinctAttribute")): f"{DRIVER}/{attribute}",
            "requests": [each["name"] for each in requests if chance.random() < 0.4],
        }
        for attribute in chance.choices(("gpu", "value", "size"), k=chance.choice((0, 0, 1, 2)))
    ]
    return claim(*requests, name=name, constraints=rules)


def _request(chance: Random, name: str) -> Any:
    if chance.random() < 0.8:
        admin = {"adminAccess": True} if chance.random() < 0.1 else {}
        return {"name": name, "exactly": {**_ask(chance), **admin}}
    ways = [_ask(chance) for _ in range(chance.randint(1, 3))]
    if chance.random() < 0.3:
        ways.insert(0, way(chance.choice(OVER_THE_LIMIT)))
    return {"name": name, "firstAvailable": [{"name": f"s{n}", **w} for n, w in enumerate(ways)]}


def _ask(chance: Random) -> Any:
    ask = way(chance.choice((1, 1, 2, 3)), select=chance.choice(SELECTORS))
    if chance.random() < 0.1:
        return {**ask, "allocationMode": "All", "count": 0}
    if chance.random() < 0.15:
        return {**ask, "capacity": {"requests": {"memory": str(chance.randint(1, 2))}}}
    return ask

"""Random devices: attributes of every type, foreign domains, capacities, bad values."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tests.cel import generate_literals as literals

if TYPE_CHECKING:
    from random import Random

DRIVERS = ("gpu.example.com", "dra.example.com", "d")
DOMAINS = (*DRIVERS, "other.example.com", "resource.kubernetes.io")
NAMES = ("model", "index", "healthy", "version", "names", "memory", "pcieRoot", "x")

# The type that a name usually has; a selector's author knows it, most of the time.
USUAL = {
    "model": "string",
    "index": "int",
    "healthy": "bool",
    "version": "version",
    "pcieRoot": "string",
}
KINDS = ("string", "int", "bool", "version")


def random_device(chance: Random, *, lists: bool) -> dict[str, Any]:
    """
    Driver, attributes, capacity and allowMultipleAllocations, as a case names them.

    Names are sorted, as an API server hands them out. It matters if one is there twice, with
    and without the driver's domain: Go begins anywhere in a map but then goes on in order.
    """
    device: dict[str, Any] = {"driver": chance.choice(DRIVERS)}
    if attributes := {_name(chance): None for _ in range(chance.choice((0, 1, 1, 2, 3, 5)))}:
        drawn = {name: _attribute(chance, name, lists) for name in attributes}
        device["attributes"] = dict(sorted(drawn.items(), key=itemgetter(0)))
    if capacity := {_name(chance): None for _ in range(chance.choice((0, 1, 1, 2)))}:
        device["capacity"] = {name: {"value": _quantity(chance)} for name in sorted(capacity)}
    if chance.random() < 0.3:
        device["allowMultipleAllocations"] = chance.random() < 0.5
    return device


def _name(chance: Random) -> str:
    name = chance.choice(NAMES)
    return f"{chance.choice(DOMAINS)}/{name}" if chance.random() < 0.35 else name


def _attribute(chance: Random, name: str, lists: bool) -> dict[str, Any]:
    kind = USUAL.get(name.rpartition("/")[2], "string")
    if chance.random() < 0.25:
        kind = chance.choice(KINDS)
    in_list = name.endswith("names") if lists else chance.random() < 0.005
    if not in_list:
        return {kind: _value(chance, kind)}
    return {f"{kind}s": [_value(chance, kind) for _ in range(chance.randint(1, 4))]}


def _value(chance: Random, kind: str) -> Any:
    match kind:
        case "int":
            return chance.choice((0, 1, 2, 3, 7, 42, 80, -1, 2**63 - 1, -(2**63)))
        case "bool":
            return chance.random() < 0.6
        case "version":
            versions = literals.VERSIONS
            return chance.choice(versions.bad if chance.random() < 0.01 else versions.good)
        case _:
            if chance.random() < 0.3:
                return literals.POOLS[chance.choice(tuple(literals.POOLS))].choose(chance)
            return chance.choice(literals.WORDS)


def _quantity(chance: Random) -> str:
    # Only what can be decoded: an object with a bad quantity never reaches an expression. And
    # nothing beyond 64 bits: upstream's `add` and `sub` change such a quantity itself, so that
    # its answers depend on what was asked before.
    return chance.choice(
        ("0", "1", "1Ki", "1Mi", "1Gi", "40Gi", "80Gi", "1500m", "-1", "1E", "1e3")
    )

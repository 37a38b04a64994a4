"""DeviceTaintRules that a virtual cluster creates for faults of devices of other drivers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dryrack.client.client import Selection
from dryrack.client.discovery import newest_version
from dryrack.client.endpoints import TAINT_RULES
from dryrack.client.errors import ForbiddenError, NotFoundError
from dryrack.hardware import FAULT_LABEL

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw

_RULES = Selection(labels=f"{FAULT_LABEL}=device")
# The controller of a virtual cluster writes a rule within milliseconds.
_LOOK_SECONDS = 0.1
_LOOKS_MAX = 20


async def find_tainted_drivers(client: Client, drivers: Collection[str]) -> frozenset[str]:
    """Return which of these drivers have devices that rules of faults taint; wait for the rules."""
    found: frozenset[str] = frozenset()
    for _ in range(_LOOKS_MAX):
        rules = await _rules(client) if drivers else ()
        found = frozenset(each["spec"]["deviceSelector"]["driver"] for each in rules)
        if found.issuperset(drivers):
            break
        await asyncio.sleep(_LOOK_SECONDS)
    return found


async def delete_rules(client: Client) -> Sequence[Raw]:
    """Delete all rules of faults; return them."""
    rules = await _rules(client)
    endpoint = await newest_version(client, TAINT_RULES)
    for each in rules:
        try:
            await client.delete(endpoint, each["metadata"]["name"])
        except NotFoundError:
            continue
    return rules


async def _rules(client: Client) -> Sequence[Raw]:
    try:
        return (await client.list(await newest_version(client, TAINT_RULES), _RULES)).items
    except (ForbiddenError, NotFoundError):
        return ()

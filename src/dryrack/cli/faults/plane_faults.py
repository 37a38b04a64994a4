"""
Faults of the API and of engines, as entries of the ConfigMap that a control plane follows.

Words are those of scenarios, read by the same code, so that what a plane would not understand is
refused here.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from dryrack.base.ages import human
from dryrack.base.text import hint
from dryrack.cli.files import UsageError
from dryrack.client.endpoints import CONFIG_MAPS
from dryrack.client.errors import NotFoundError
from dryrack.client.timekeeping import seconds_of
from dryrack.cluster.faults import (
    CONFIG_MAP,
    FaultWordsError,
    entry_of,
    injection_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.client.client import Client

OK = "ok"
# What of a plane can die, and what else can be told to meet faults.
_ENGINES = ("controllers", "plugin", "scheduler")


@dataclass(frozen=True, slots=True)
class PlaneFault:
    """An entry of the ConfigMap; without a value the fault is over."""

    key: str
    value: str | None

    @staticmethod
    def of(kind: str, words: Sequence[str], seconds: float | None, now: float) -> PlaneFault:
        """What people say, with how long it lasts."""
        *subject, last = words
        _check_engines(kind, words)
        if last == OK:
            named = [each.removeprefix("engine=") for each in subject]
            return PlaneFault(".".join((kind, *named)), None)
        text = " ".join((kind, *words))
        try:
            return PlaneFault(*entry_of(injection_of(text, seconds), text, now))
        except FaultWordsError as error:
            raise UsageError(str(error)) from None


def _check_engines(kind: str, words: Sequence[str]) -> None:
    """A plane would take a name that it does not know, and say so in its log alone."""
    said = [each.removeprefix("engine=") for each in words if each.startswith("engine=")]
    for name in [*words[:1], *said] if kind == "engine" else said:
        if not any(fnmatchcase(each, name) for each in _ENGINES):
            raise UsageError(f"no engine {name!r}; {hint(name, _ENGINES)}")


async def entries(client: Client) -> Mapping[str, str]:
    """All entries, also those whose time has passed."""
    namespace, name = CONFIG_MAP
    try:
        return (await client.get(CONFIG_MAPS, name, namespace)).get("data") or {}
    except NotFoundError:
        return {}


async def clear_all(client: Client) -> Sequence[str]:
    """Ends all of them, and tells which."""
    found = await entries(client)
    if found:
        namespace, name = CONFIG_MAP
        await client.delete(CONFIG_MAPS, name, namespace=namespace)
    return tuple(found)


def cells(value: str, now: float) -> tuple[str, ...]:
    """An entry as a row of the table of faults."""
    words, has_end, until = value.partition(" until ")
    left = seconds_of(until) - now if has_end else None
    ends = "-" if left is None else f"in {human(left)}" if left > 0 else "over"
    return "-", "-", words, ends


async def tell(client: Client, fault: PlaneFault) -> list[Any]:
    """Writes the entry; the ConfigMap is made with the first of them."""
    patch = {"data": {fault.key: fault.value}}
    namespace, name = CONFIG_MAP
    try:
        await client.patch(CONFIG_MAPS, name, patch, namespace=namespace)
    except NotFoundError:
        if fault.value is not None:
            metadata = {"name": name, "namespace": namespace}
            data = {fault.key: fault.value}
            await client.create(CONFIG_MAPS, {"metadata": metadata, "data": data})
    return []

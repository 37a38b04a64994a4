"""
Faults of the API and of components, as entries of the ConfigMap that a control plane reads.

The syntax is that of scenarios and the code is the same, so the command rejects each fault that
the control plane cannot read.
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
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.client.client import Client

OK = "ok"
# The components that can crash or meet faults.
_ENGINES = ("controllers", "plugin", "scheduler")


@dataclass(frozen=True, slots=True)
class PlaneFault:
    """An entry of the ConfigMap; without a value the fault is over."""

    key: str
    value: str | None

    @staticmethod
    def of(kind: str, words: Sequence[str], seconds: float | None, now: float) -> PlaneFault:
        """Return the entry for the words of the command line and a duration."""
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
    """Raise `UsageError` for an unknown component, which the control plane would only log."""
    said = [each.removeprefix("engine=") for each in words if each.startswith("engine=")]
    for name in [*words[:1], *said] if kind == "engine" else said:
        if not any(fnmatchcase(each, name) for each in _ENGINES):
            raise UsageError(f"unknown component {name!r}; {hint(name, _ENGINES)}")


async def entries(client: Client) -> Mapping[str, str]:
    """Return all entries, including those that have ended."""
    namespace, name = CONFIG_MAP
    try:
        return get(await client.get(CONFIG_MAPS, name, namespace), "data", {})
    except NotFoundError:
        return {}


async def clear_all(client: Client) -> Sequence[str]:
    """End all of the faults and return their keys."""
    faults = await entries(client)
    if faults:
        namespace, name = CONFIG_MAP
        await client.delete(CONFIG_MAPS, name, namespace=namespace)
    return tuple(faults)


def cells(value: str, now: float) -> tuple[str, ...]:
    """Return an entry as a row of the table of faults."""
    words, has_end, until = value.partition(" until ")
    left = seconds_of(until) - now if has_end else None
    ends = "-" if left is None else f"in {human(left)}" if left > 0 else "over"
    return "-", "-", words, ends


async def tell(client: Client, fault: PlaneFault) -> list[Any]:
    """Write the entry; create the ConfigMap if it does not exist."""
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

"""What a step shows when it has ended: objects of some kinds, or lines, for a face to print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.client.endpoints import CLAIMS, EVENTS, NODES, PODS, SLICES
from dryrack.scenario.references import Reference, as_text, name_in, values_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.raw import Raw
    from dryrack.scenario.expectations import Sight

_KINDS: Mapping[str, Sequence[Endpoint]] = {
    "claims": (CLAIMS, PODS),
    "devices": (SLICES, CLAIMS),
    "events": (EVENTS,),
    "gangs": (PODS,),
    "nodes": (NODES,),
    "pods": (PODS,),
    "slices": (SLICES,),
}


@dataclass(frozen=True, slots=True)
class Exhibit:
    """What is shown; `at` is the scenario's time."""

    what: str
    at: float
    objects: Mapping[Endpoint, Sequence[Raw]]
    lines: tuple[str, ...] = ()


async def exhibit_of(wanted: Any, sight: Sight, at: float) -> Exhibit:
    """Reads what is to be shown."""
    if isinstance(wanted, str):
        kinds = _KINDS[wanted]
        return Exhibit(wanted, at, {kind: await sight.list(kind) for kind in kinds})
    if "log" in wanted:
        lines = await _log_lines(wanted["log"], wanted.get("container", ""), sight)
        return Exhibit("log", at, {}, tuple(lines))
    lines = await _object_lines(wanted["object"], wanted.get("fields") or (), sight)
    return Exhibit("object", at, {}, tuple(lines))


async def _matching(text: str, sight: Sight) -> list[Raw]:
    reference = Reference.parse(text)
    assert reference is not None, "a scenario that was read names objects as it must"
    endpoint = await sight.endpoint(reference)
    found = [] if endpoint is None else await sight.list(endpoint)
    return [obj for obj in found if reference.fits(obj)]


async def _log_lines(text: str, container: str, sight: Sight) -> list[str]:
    lines: list[str] = []
    for pod in await _matching(text, sight):
        names = [each["name"] for each in pod["spec"]["containers"]]
        for name in names if not container else [container]:
            lines.append(f"{name_in(pod)} {name}:")
            lines += (f"  {line}" for line in (await sight.log(pod, name)).splitlines())
    return lines


async def _object_lines(text: str, fields: Sequence[str], sight: Sight) -> list[str]:
    lines: list[str] = []
    for obj in await _matching(text, sight):
        lines.append(f"{name_in(obj)}:")
        for path in fields:
            for value in values_at(obj, path):
                lines += _field_lines(path, value)
    return lines


def _field_lines(path: str, value: Any) -> list[str]:
    """A value below its path, as `kubectl describe` would have it."""
    import yaml

    if not isinstance(value, dict | list):
        return [f"  {path}: {as_text(value)}"]
    text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=200)
    return [f"  {path}:", *(f"    {line}" for line in text.splitlines())]

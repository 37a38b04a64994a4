"""The output that a step of a scenario shows: objects of some kinds, or lines."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from dryrack.client.endpoints import CLAIMS, EVENTS, NODES, PODS, SLICES
from dryrack.client.errors import NotFoundError
from dryrack.cluster import GROUP_KINDS
from dryrack.kinds.paths import get
from dryrack.scenario.references import Reference, as_text, name_in, values_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.raw import Raw
    from dryrack.scenario.world import ClusterReader

_KINDS: Mapping[str, Sequence[Endpoint]] = {
    "claims": (CLAIMS, PODS),
    "devices": (SLICES, CLAIMS, NODES),
    "events": (EVENTS,),
    "gangs": (PODS, *GROUP_KINDS),
    "nodes": (NODES,),
    "pods": (PODS,),
    "slices": (SLICES,),
}


@dataclass(frozen=True, slots=True)
class StepOutput:
    """Objects or lines to print; `now` is the time of the world's clock."""

    what: str
    now: float
    objects: Mapping[Endpoint, Sequence[Raw]]
    lines: tuple[str, ...] = ()


async def read_output(wanted: Any, reader: ClusterReader, now: float) -> StepOutput:
    """Read what a step shows."""
    if isinstance(wanted, str):
        return StepOutput(wanted, now, {kind: await _all(kind, reader) for kind in _KINDS[wanted]})
    if "log" in wanted:
        return StepOutput("log", now, {}, tuple(await _log_lines(wanted, reader)))
    text = wanted["object"]
    fields = get(wanted, "fields", ())
    lines: list[str] = []
    for obj in await _find_matching(text, reader):
        lines.append(f"{name_in(obj)}:")
        for path in fields:
            values = values_at(obj, path)
            lines += _field_lines(path, values[0] if len(values) == 1 else values)
    return StepOutput("object", now, {}, tuple(lines))


async def _all(kind: Endpoint, reader: ClusterReader) -> Sequence[Raw]:
    try:
        return await reader.list(kind)
    except NotFoundError:
        # Not every cluster serves groups of pods.
        return ()


async def _find_matching(text: str, reader: ClusterReader) -> list[Raw]:
    reference = Reference.parse(text)
    assert reference is not None, "a scenario that was read names objects as it must"
    endpoint = await reader.endpoint(reference)
    found = [] if endpoint is None else await reader.list(endpoint)
    return [obj for obj in found if reference.fits(obj)]


async def _log_lines(wanted: Mapping[str, str], reader: ClusterReader) -> list[str]:
    lines: list[str] = []
    pattern = f"*{wanted.get('has', '')}*"
    container = wanted.get("container")
    for pod in await _find_matching(wanted["log"], reader):
        for name in [each["name"] for each in pod["spec"]["containers"]]:
            if container in (None, name):
                lines.append(f"{name_in(pod)} {name}:")
                logged = (await reader.log(pod, name)).splitlines()
                lines += (f"  {line}" for line in logged if fnmatchcase(line, pattern))
    return lines


def _field_lines(path: str, value: Any) -> list[str]:
    """Return the lines of a field, like `kubectl describe`."""
    import yaml

    if not isinstance(value, dict | list):
        return [f"  {path}: {as_text(value)}"]
    text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=200)
    return [f"  {path}:", *(f"    {line}" for line in text.splitlines())]

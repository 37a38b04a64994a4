"""
Check expectations against a cluster, and report what does not hold.

A `ClusterReader` shows the cluster at one moment: it reads each list once.
"""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from dryrack.base.text import listed
from dryrack.client.endpoints import CLAIMS, EVENTS, NODES, SLICES
from dryrack.kinds.paths import get, status_of
from dryrack.scenario.references import (
    Reference,
    as_text,
    fit_all,
    holds,
    name_in,
    values_at,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.scenario.model import EventExpectation, Expectation
    from dryrack.scenario.world import ClusterReader

ALL_NODES = "all nodes"
SOME_NODES = "some nodes"
_NOTHING = "nothing"
# Of objects with the same problem, these are enough.
_SHOWN_MAX = 3


def describe(each: Expectation) -> str:
    """Return the expectation as a sentence."""
    if each.object:
        fields = ", ".join(
            f"{path} {_describe_value(value)}" for path, value in each.fields.items()
        )
        count = "" if each.count is None else f"{each.count} × "
        text = f"{count}{each.object}{': ' if fields else ''}{fields}"
    elif each.devices:
        text = "; ".join(f"{pod} has {_list(wanted)}" for pod, wanted in each.devices.items())
    elif each.published:
        text = "; ".join(f"{node} has {_offer(wanted)}" for node, wanted in each.published.items())
    elif each.log is not None:
        text = f"log of {each.log.of} has {listed(each.log.has)}"
    elif each.event is not None:
        text = f"event {each.event.reason} of {each.event.of} {each.event.says}".strip()
    else:
        text = f"{each.gone} does not exist"
    return f"{text}, for {each.lasting}" if each.lasting else text


async def find_failures(each: Expectation, reader: ClusterReader) -> list[str]:
    """Return a sentence for each part of the expectation that does not hold."""
    if each.object:
        return await _objects(each, reader)
    if each.devices:
        return await _devices(each.devices, reader)
    if each.published:
        slices = await reader.list(SLICES)
        return list(_check_published(each.published, slices, await reader.list(NODES)))
    if each.log is not None:
        expected = each.log
        pods = await _find_matching(expected.of, reader)
        if not pods:
            return [f"{expected.of}: not found"]
        wrong: list[str] = []
        for pod in pods:
            container = expected.container or pod["spec"]["containers"][0]["name"]
            lines = (await reader.log(pod, container)).splitlines()
            wrong += (
                f"log of {name_in(pod)} {container}: no line has {pattern!r}"
                for pattern in expected.has
                if not any(fnmatchcase(line, f"*{pattern}*") for line in lines)
            )
        return wrong
    if each.event is not None:
        return await _event(each.event, reader)
    there = await _find_matching(each.gone, reader)
    return _first_few([f"{name_in(obj)} exists" for obj in there])


async def _find_matching(text: str, reader: ClusterReader) -> list[Raw]:
    reference = Reference.parse(text)
    assert reference is not None, "a scenario that was read names objects as it must"
    endpoint = await reader.endpoint(reference)
    if endpoint is None:
        return []
    return [obj for obj in await reader.list(endpoint) if reference.fits(obj)]


async def _objects(each: Expectation, reader: ClusterReader) -> list[str]:
    found = await _find_matching(each.object, reader)
    fitting = [obj for obj in found if not _wrong(obj, each.fields)]
    if each.count is not None:
        if len(fitting) == each.count:
            return []
        wrong = [what for obj in found for what in _wrong(obj, each.fields)]
        return [f"{each.object}: {len(fitting)}, not {each.count}", *_first_few(wrong)]
    if not found:
        return [f"{each.object}: not found"]
    return _first_few([what for obj in found for what in _wrong(obj, each.fields)])


def _first_few(messages: Sequence[str]) -> list[str]:
    """Return the first messages, and how many more there are."""
    more = len(messages) - _SHOWN_MAX
    return [*messages[:_SHOWN_MAX], *([f"and {more} more"] if more > 0 else [])]


def _wrong(obj: Raw, fields: Mapping[str, Any]) -> list[str]:
    wrong: list[str] = []
    for path, wanted in fields.items():
        values = values_at(obj, path)
        if not holds(values, wanted):
            got = ", ".join(as_text(value) for value in values) or "absent"
            wrong.append(f"{name_in(obj)}: {path} is {got}, not {_describe_value(wanted)}")
    return wrong


def _describe_value(value: Any) -> str:
    return "absent" if value is None else as_text(value)


async def _devices(expected: Mapping[str, Sequence[str]], reader: ClusterReader) -> list[str]:
    held = devices_by_pod(await reader.list(CLAIMS))
    wrong: list[str] = []
    for text, wanted in expected.items():
        pods = await _find_matching(text, reader)
        if not pods:
            wrong.append(f"{text}: not found")
        for pod in pods:
            found = held.get(name_in(pod), ())
            if not fit_all(found, wanted):
                wrong.append(f"{name_in(pod)} has {_list(found)}, not {_list(wanted)}")
    return wrong


def devices_by_pod(claims: Iterable[Raw]) -> dict[str, list[str]]:
    """Return the devices of each pod, by `Pod/namespace/name`."""
    found: dict[str, list[str]] = {}
    for claim in claims:
        status = status_of(claim)
        results = get(get(status, "allocation", {}).get("devices", {}), "results", ())
        devices = [f"{each['driver']}/{each['pool']}/{each['device']}" for each in results]
        for user in get(status, "reservedFor", ()):
            if user.get("resource") == "pods":
                name = f"Pod/{claim['metadata']['namespace']}/{user['name']}"
                found.setdefault(name, []).extend(devices)
    return found


def published_by_place(slices: Iterable[Raw]) -> dict[str, list[str]]:
    """Return the published devices by node, or by the other place of a pool."""
    found: dict[str, list[str]] = {}
    for each in slices:
        spec = each["spec"]
        place = spec.get("nodeName") or (ALL_NODES if spec.get("allNodes") else SOME_NODES)
        pool = f"{spec['driver']}/{spec['pool']['name']}"
        devices = [f"{pool}/{device['name']}" for device in get(spec, "devices", ())]
        found.setdefault(place, []).extend(devices)
    return found


def _check_published(
    expected: Mapping[str, Any], slices: Iterable[Raw], nodes: Iterable[Raw]
) -> Iterator[str]:
    there = published_by_place(slices)
    names = [node["metadata"]["name"] for node in nodes]
    for pattern, wanted in expected.items():
        places = [name for name in names if fnmatchcase(name, pattern)] or [pattern]
        for place in places:
            found = there.get(place, [])
            if isinstance(wanted, dict):
                counts = Counter(device.partition("/")[0] for device in found)
                fits = counts == {driver: count for driver, count in wanted.items() if count}
                shown = _offer(dict(counts))
            else:
                fits = fit_all(found, wanted)
                shown = _list(found)
            if not fits:
                yield f"{place} has {shown}, not {_offer(wanted)}"


async def _event(expected: EventExpectation, reader: ClusterReader) -> list[str]:
    reference = Reference.parse(expected.of)
    assert reference is not None, "a scenario that was read names objects as it must"
    about = [
        event
        for event in await reader.list(EVENTS)
        if event["involvedObject"].get("kind") == reference.kind and reference.fits(_subject(event))
    ]
    for event in about:
        says = event.get("message") or ""
        if fnmatchcase(event.get("reason") or "", expected.reason) and expected.says in says:
            return []
    said = dict.fromkeys(f"{each.get('reason')}: {each.get('message')}" for each in about)
    instead = "; ".join(_first_few(list(said))) or "none"
    what = f"{expected.reason} {expected.says!r}" if expected.says else expected.reason
    return [f"{expected.of}: no event {what}; found: {instead}"]


def _subject(event: Raw) -> Raw:
    about = event["involvedObject"]
    return {"metadata": {"namespace": about.get("namespace", ""), "name": about.get("name", "")}}


def _list(names: Sequence[str]) -> str:
    return listed(names) or _NOTHING


def _offer(wanted: Any) -> str:
    if isinstance(wanted, dict):
        return ", ".join(f"{count} of {driver}" for driver, count in wanted.items()) or _NOTHING
    return _list(wanted)

"""
Find problems of a scenario that its types do not show: times, names, cycles, limits.

Each problem has the line and the field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.base.durations import seconds_in
from dryrack.base.limits import (
    SCENARIO_NODES_MAX,
    SCENARIO_OBJECTS_MAX,
    SCENARIO_SECONDS_MAX,
    SCENARIO_STEPS_MAX,
)
from dryrack.base.text import hint
from dryrack.cluster.faults import FaultWordsError, read_healing, read_injection
from dryrack.kinds.paths import get
from dryrack.kinds.registry import KINDS
from dryrack.kinds.releases import Release, ReleaseError
from dryrack.kinds.shape import Path, described, render
from dryrack.kinds.text.source_positions import parse_path
from dryrack.kubeletplugin import DevicesError, read_devices
from dryrack.scenario.model import PATCH_TYPES
from dryrack.scenario.references import Reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dryrack.kinds.documents import Document, Problem
    from dryrack.scenario.model import Expectation, Fleet, PatchOf, Scenario, Step

ACTIONS = ("apply", "delete", "evict", "scale", "patch", "fail", "heal", "wait")
SUBJECTS = ("object", "devices", "published", "log", "event", "gone")
EXHIBITS = ("claims", "devices", "events", "gangs", "nodes", "pods", "slices")
_EXHIBITS = {"log": ("container", "has"), "object": ("fields",)}
_BUILT_IN = frozenset(kind.kind for kind in KINDS)
_FILE_ENDINGS = (".yaml", ".yml", ".json")
NO_OBJECT = "an object without its name or kind"
NAME_IT = "write apiVersion, kind and metadata.name"
_REFERENCE = "write KIND/NAME or KIND/NAMESPACE/NAME, as in Pod/default/web-*"


def is_file(entry: Any) -> bool:
    """Return whether an entry of `apply`, `delete` or `objects` is the name of a file."""
    return isinstance(entry, str) and (
        entry.endswith(_FILE_ENDINGS) or Reference.parse(entry) is None
    )


def problems_of(document: Document, scenario: Scenario) -> Iterator[Problem]:
    """Return all problems, each with its place."""
    for path, message, fix in _all(scenario):
        yield document.problem(path, f"{render(path)}: {message}", fix)


def _all(scenario: Scenario) -> Iterator[tuple[Path, str, str]]:
    yield from _limit(scenario)
    if scenario.release:
        try:
            Release.parse(scenario.release)
        except ReleaseError as error:
            what, _, fix = str(error).partition("; ")
            yield ("release",), what, fix
    yield from _fleet(scenario.fleet)
    yield from _objects(("objects",), scenario.objects)
    yield from _faults(("faults",), scenario.faults, read_injection)
    if len(scenario.steps) > SCENARIO_STEPS_MAX:
        limit = f"the limit SCENARIO_STEPS_MAX is {SCENARIO_STEPS_MAX}"
        yield ("steps",), f"{len(scenario.steps)} steps; {limit}", "split it into two scenarios"
    if not scenario.steps:
        yield ("steps",), "the list is empty", "add steps with an action and expected results"
    for index, step in enumerate(scenario.steps):
        yield from _step(("steps", index), step, seconds_in(scenario.limit))
    yield from _order(scenario.steps)


def _limit(scenario: Scenario) -> Iterator[tuple[Path, str, str]]:
    yield from _duration(("limit",), scenario.limit)
    if (seconds_in(scenario.limit) or 0) > SCENARIO_SECONDS_MAX:
        days = int(SCENARIO_SECONDS_MAX // 86_400)
        limit = f"the limit SCENARIO_SECONDS_MAX is {days} days"
        yield ("limit",), f"{scenario.limit}; {limit}", "use a shorter time"


def _fleet(fleet: Fleet) -> Iterator[tuple[Path, str, str]]:
    total = 0
    names = dict[str, int]()
    for index, group in enumerate(fleet.nodes):
        place: Path = ("fleet", "nodes", index)
        if group.count is not None and group.count < 1:
            yield (*place, "count"), f"{group.count} nodes", "write 1 or more"
            continue
        total += group.count or 1
        if total > SCENARIO_NODES_MAX:
            limit = f"the limit SCENARIO_NODES_MAX is {SCENARIO_NODES_MAX}"
            yield (*place, "count"), f"the scenario has {total} nodes; {limit}", "use fewer nodes"
            return
        repeated = [name for name in group.names if name in names]
        if repeated:
            first = names[repeated[0]]
            message = f"fleet.nodes[{first}] already creates node {repeated[0]}"
            yield (*place, "name"), message, "use another name"
        names |= dict.fromkeys(group.names, index)
    yield from _devices(fleet)
    yield from _profiles(fleet)


def _devices(fleet: Fleet) -> Iterator[tuple[Path, str, str]]:
    from dryrack.cluster import load_catalogue

    for index in range(len(fleet.devices)):
        try:
            read_devices(fleet.devices[: index + 1], catalogue=load_catalogue)
        except DevicesError as error:
            message = str(error).removeprefix("--devices ")
            yield ("fleet", "devices", index), message, ""
            return


def _profiles(fleet: Fleet) -> Iterator[tuple[Path, str, str]]:
    if not any(group.profile for group in fleet.nodes):
        return
    from dryrack.cluster import load_catalogue

    known = load_catalogue().instance_types
    for index, group in enumerate(fleet.nodes):
        if group.profile and group.profile not in known:
            from difflib import get_close_matches

            near = get_close_matches(group.profile, list(known), n=1)
            meant = f"did you mean {near[0]!r}? " if near else ""
            message = f"unknown instance type {group.profile!r}"
            place: Path = ("fleet", "nodes", index, "profile")
            yield place, message, f"{meant}see: dryrack hardware list"


def _step(place: Path, step: Step, limit: float | None) -> Iterator[tuple[Path, str, str]]:
    for field in ("at", "delay", "wait"):
        text = getattr(step, field)
        if text:
            yield from _duration((*place, field), text)
        if text and limit and (seconds_in(text) or 0) > limit:
            yield (
                (*place, field),
                f"{text} is after the end of the scenario",
                "increase limit",
            )
    if step.at and step.after:
        yield (*place, "after"), "at and after are both set", "remove one of the two"
    if step.at and step.delay:
        yield (*place, "delay"), "delay needs after, but the step has at", "remove delay"
    actions = [name for name in ACTIONS if getattr(step, name) not in ((), None, "")]
    if len(actions) > 1:
        fix = "write one step for each action"
        yield (
            (*place, actions[1]),
            f"a step has one action, and this one already has {actions[0]}",
            fix,
        )
    if not (actions or step.expect or step.show):
        choice = ", ".join((*ACTIONS, "expect"))
        yield place, "the step does nothing", f"add one of {choice}"
    yield from _objects((*place, "apply"), step.apply)
    yield from _objects((*place, "delete"), step.delete, references=True)
    for index, pod in enumerate(step.evict):
        yield from _reference((*place, "evict", index), pod, kind="Pod")
    yield from _faults((*place, "fail"), step.fail, read_injection)
    yield from _faults((*place, "heal"), step.heal, read_healing)
    if step.scale is not None:
        yield from _reference((*place, "scale", "object"), step.scale.object)
        if step.scale.replicas < 0:
            yield (*place, "scale", "replicas"), f"{step.scale.replicas}", "write 0 or more"
    if step.patch is not None:
        yield from _patch((*place, "patch"), step.patch)
    for index, each in enumerate(step.expect):
        yield from _expectation((*place, "expect", index), each)
    for index, output in enumerate(step.show):
        yield from _check_show((*place, "show", index), output)


def _patch(place: Path, each: PatchOf) -> Iterator[tuple[Path, str, str]]:
    yield from _reference((*place, "object"), each.object)
    body = (*place, "patch")
    if each.type not in PATCH_TYPES:
        yield (*place, "type"), f"unknown patch type {each.type!r}", hint(each.type, PATCH_TYPES)
        return
    if each.type == "json":
        if not isinstance(each.patch, list) or not all(isinstance(it, dict) for it in each.patch):
            fix = "write a list, as in [{op: replace, path: /spec/replicas, value: 2}]"
            yield body, f"expected a list of operations, got {described(each.patch)}", fix
        return
    if not isinstance(each.patch, dict):
        fix = "write the fields to change, as in {status: {…}}"
        yield body, f"expected a mapping, got {described(each.patch)}", fix
        return
    reference = Reference.parse(each.object)
    is_built_in = reference is not None and reference.kind in _BUILT_IN
    if is_built_in and not each.subresource and set(each.patch) == {"status"}:
        # The API server would ignore it.
        fix = "add subresource: status"
        yield place, f"the status of {each.object} is a subresource", fix
    if each.subresource == "status" and "status" not in each.patch:
        yield body, "the patch of a status has no status", "write {status: {…}}"


def _faults(
    place: Path, words: tuple[str, ...], read: Callable[[str], object]
) -> Iterator[tuple[Path, str, str]]:
    for index, each in enumerate(words):
        try:
            read(each)
        except FaultWordsError as error:
            yield (*place, index), str(error), ""


def _expectation(place: Path, each: Expectation) -> Iterator[tuple[Path, str, str]]:
    subjects = [name for name in SUBJECTS if getattr(each, name) not in ("", {}, None)]
    if len(subjects) != 1:
        said = f"has {' and '.join(subjects)}" if subjects else "has no subject"
        yield place, f"{said}; an expectation has one subject", f"use one of {', '.join(SUBJECTS)}"
    if (each.fields or each.count is not None) and not each.object:
        field = "fields" if each.fields else "count"
        yield (*place, field), f"{field} needs an object", "add object: KIND/[NAMESPACE/]NAME"
    for path in each.fields:
        if not parse_path(path) or path.count("[") != path.count("]"):
            fix = "use a path such as status.conditions[type=Ready].status"
            yield (*place, "fields", path), f"{path!r} is not a path", fix
    if each.count is not None and each.count < 0:
        yield (*place, "count"), f"{each.count} objects", "write 0 or more"
    yield from _subject(place, each)
    yield from _duration((*place, "within"), each.within)
    if each.lasting:
        yield from _duration((*place, "lasting"), each.lasting)


def _subject(place: Path, each: Expectation) -> Iterator[tuple[Path, str, str]]:
    for field in ("object", "gone"):
        if getattr(each, field):
            yield from _reference((*place, field), getattr(each, field))
    for pod in each.devices:
        yield from _reference((*place, "devices", pod), pod, kind="Pod")
    if each.log is not None:
        yield from _reference((*place, "log", "of"), each.log.of, kind="Pod")
    if each.event is not None:
        yield from _reference((*place, "event", "of"), each.event.of)
    for node, wanted in each.published.items():
        yield from _check_published((*place, "published", node), wanted)


def _check_published(place: Path, wanted: Any) -> Iterator[tuple[Path, str, str]]:
    fix = "write {DRIVER: COUNT}, or a list of DRIVER/POOL/DEVICE patterns"
    if isinstance(wanted, dict):
        good = all(type(each) is int for each in wanted.values())
    else:
        good = isinstance(wanted, list) and all(isinstance(each, str) for each in wanted)
    if not good:
        yield place, f"expected counts or patterns, got {described(wanted)}", fix


def _check_show(place: Path, output: Any) -> Iterator[tuple[Path, str, str]]:
    if isinstance(output, str):
        if output not in EXHIBITS:
            yield place, f"unknown output {output!r}", hint(output, EXHIBITS)
        return
    keys = set(output) if isinstance(output, dict) else set()
    if not any({subject} <= keys <= {subject, *more} for subject, more in _EXHIBITS.items()):
        fix = "write one of " + ", ".join(EXHIBITS) + ", {log: Pod/…} or {object: KIND/…}"
        yield place, f"unknown output: {described(output)}", fix
        return
    subject = "log" if "log" in output else "object"
    yield from _reference((*place, subject), output[subject], kind="Pod" * (subject == "log"))


def _reference(place: Path, text: Any, *, kind: str = "") -> Iterator[tuple[Path, str, str]]:
    found = Reference.parse(text) if isinstance(text, str) else None
    if found is None:
        yield place, f"{text!r} is not a reference to an object", _REFERENCE
    elif kind and found.kind != kind:
        yield place, f"{text!r} is not a {kind}", f"write {kind}/[NAMESPACE/]NAME"


def _objects(
    place: Path, entries: tuple[Any, ...], *, references: bool = False
) -> Iterator[tuple[Path, str, str]]:
    for index, each in enumerate(entries):
        if isinstance(each, dict) and "repeat" in each:
            yield from _check_repeated((*place, index), each)
        elif isinstance(each, dict):
            yield from _object((*place, index), each)
        elif not isinstance(each, str):
            fix = "write the name of a file, or an object"
            yield (*place, index), f"expected a file or an object, got {described(each)}", fix
        elif not references and not is_file(each):
            yield (
                (*place, index),
                f"{each!r} is a reference to an object",
                "write the name of a file, or the whole object",
            )


def _object(place: Path, each: Any) -> Iterator[tuple[Path, str, str]]:
    if not is_object(each):
        yield place, NO_OBJECT, NAME_IT


def is_object(each: Any) -> bool:
    """Return whether a mapping names the object that it is."""
    metadata = each.get("metadata") if isinstance(each, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("namespace", ""), str):
        return False
    words = (each.get("apiVersion"), each.get("kind"), metadata.get("name"))
    return all(word and isinstance(word, str) for word in words)


def _check_repeated(place: Path, each: dict[str, Any]) -> Iterator[tuple[Path, str, str]]:
    count = each["repeat"]
    if type(count) is not int or not 1 <= count <= SCENARIO_OBJECTS_MAX:
        limit = f"the limit SCENARIO_OBJECTS_MAX is {SCENARIO_OBJECTS_MAX}"
        yield (*place, "repeat"), f"{count!r} times; {limit}", "use a number from 1 to the limit"
    unknown = sorted(each.keys() - {"repeat", "object"})
    if unknown:
        yield (*place, unknown[0]), "unknown field", "use only repeat and object"
    yield from _object((*place, "object"), each.get("object"))
    if "$n" not in str(get(each, "object.metadata.name")):
        fix = "add $n, the number of the copy, to metadata.name"
        yield (*place, "object"), "all copies would have the same name", fix


def _duration(place: Path, text: str) -> Iterator[tuple[Path, str, str]]:
    if seconds_in(text) is None:
        yield place, f"{text!r} is not a duration", "use a duration such as 30s or 1m30s"


def _order(steps: tuple[Step, ...]) -> Iterator[tuple[Path, str, str]]:
    """Yield problems of `after`: unknown names, and steps that wait for each other."""
    places: dict[str, int] = {}
    for index, step in enumerate(steps):
        if step.id and step.id in places:
            message = f"steps[{places[step.id]}] has the same id {step.id!r}"
            yield ("steps", index, "id"), message, "use another id"
        elif step.id:
            places[step.id] = index
    for index, step in enumerate(steps):
        if step.after and step.after not in places:
            message = f"no step has the id {step.after!r}"
            yield ("steps", index, "after"), message, hint(step.after, places)
    yield from _cycles(steps, places)


def _cycles(steps: tuple[Step, ...], places: dict[str, int]) -> Iterator[tuple[Path, str, str]]:
    ends: set[int] = set()
    for index in range(len(steps)):
        trail: list[int] = []
        at: int | None = index
        while at is not None and at not in ends and at not in trail:
            trail.append(at)
            at = before(steps, places, at)
        if at is not None and at in trail:
            circle = [*trail[trail.index(at) :], at]
            names = " after ".join(steps[each].id or f"steps[{each}]" for each in circle)
            message = f"a cycle: {names}"
            yield ("steps", min(circle), "after"), message, "let one of them begin at a time"
        ends.update(trail)


def before(steps: tuple[Step, ...], places: dict[str, int], index: int) -> int | None:
    """Return the index of the step that another step follows; None if it begins by itself."""
    step = steps[index]
    if step.at or (index == 0 and not step.after):
        return None
    return places.get(step.after) if step.after else index - 1

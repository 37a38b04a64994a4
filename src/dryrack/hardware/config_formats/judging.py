"""
Whether the API would take what was read.

Slices are judged by the API's own rules, with stand-ins for what only the publisher knows. What
the rules say of a field is told at the place where the person wrote it. Some things the API takes
and no scheduler can use: two devices of one name in a pool, counters that are not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from dryrack.hardware.config_formats.fixes import fix_of
from dryrack.hardware.config_formats.report import Topic
from dryrack.hardware.config_formats.written import refused_at, resolved, steps_of
from dryrack.hardware.inventory import EveryNode, PerDevice, SelectedNodes, ThisNode
from dryrack.hardware.names import suggestion
from dryrack.kinds.decode import to_builtins
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.resource import ResourcePool, ResourceSlice, ResourceSliceSpec
from dryrack.kinds.validation import Reason
from dryrack.kinds.validation.device_rules import validate
from dryrack.kinds.validation.gates import drop_disabled
from dryrack.kinds.validation.names import device_label
from dryrack.kinds.validation.slices import COUNTER_SETS_MAX, DEVICES_MAX_WITH_ADVANCED_FEATURES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.hardware.config_formats.fields import Given
    from dryrack.hardware.config_formats.pieces import Entry, Piece
    from dryrack.hardware.config_formats.report import Report
    from dryrack.hardware.inventory import Reach
    from dryrack.kinds.resource import CounterSet
    from dryrack.kinds.shape import Path
    from dryrack.kinds.validation import FieldProblem

T = TypeVar("T")


def judge(given: Given, piece: Piece, report: Report) -> None:
    """Everything that the API has against the slices that this becomes."""
    for steps, problem in _verdict(piece):
        report.refuse(refused_at(given, steps, problem), problem.message, fix_of(problem))
    for entry in piece.entries:
        _judge_count(entry, report)
        _judge_terms(entry, report)
    _remark_gates(given, piece, report)


def _verdict(piece: Piece) -> Iterator[tuple[Path, FieldProblem]]:
    for first, chunk in _chunks(piece.entries, DEVICES_MAX_WITH_ADVANCED_FEATURES):
        spec = _spec(piece.batch.reach)
        devices = tuple(entry.device for entry in chunk)
        for problem in _problems(replace(spec, devices=devices)):
            steps = steps_of(problem.field)[1:]
            if steps[:1] == ("devices",) and len(steps) > 1:
                entry = chunk[int(steps[1])]
                yield ("devices", entry.template.given.path[-1], *steps[2:]), problem
            elif first == 0:
                yield steps, problem
    for first, chunk_of_sets in _chunks(piece.counters, COUNTER_SETS_MAX):
        sets = tuple(each for _, each in chunk_of_sets)
        for problem in _problems(replace(_spec(EveryNode()), shared_counters=sets)):
            steps = steps_of(problem.field)[1:]
            yield (steps[0], first + int(steps[1]), *steps[2:]), problem


def _problems(spec: ResourceSliceSpec) -> Iterator[FieldProblem]:
    for problem in validate(ResourceSlice(metadata=ObjectMeta(name="slice"), spec=spec)):
        # Names are compared in the whole pool, with the devices that a count makes.
        if not (problem.reason is Reason.DUPLICATE and problem.field.count(".") == 1):
            yield problem


def _spec(reach: Reach) -> ResourceSliceSpec:
    pool = ResourcePool(name="pool", generation=1, resource_slice_count=1)
    spec = ResourceSliceSpec(driver="driver.example.com", pool=pool)
    match reach:
        case ThisNode():
            return replace(spec, node_name="node")
        case EveryNode():
            return replace(spec, all_nodes=True)
        case SelectedNodes(selector=selector):
            return replace(spec, node_selector=selector)
        case PerDevice():
            return replace(spec, per_device_node_selection=True)


def _chunks(values: Sequence[T], size: int) -> Iterator[tuple[int, Sequence[T]]]:
    for first in range(0, len(values), size):
        yield first, values[first : first + size]


def _judge_count(entry: Entry, report: Report) -> None:
    count = entry.template.count
    if count is None or any(device_label("", entry.device.name)):
        return
    for problem in device_label("", f"{entry.device.name}-{count - 1}"):
        path = resolved(entry.template.given, ("name",))
        report.refuse(path, f"with its number: {problem.message}", "shorten the name")


def _judge_terms(entry: Entry, report: Report) -> None:
    selector = entry.device.node_selector
    if selector is not None and len(selector.node_selector_terms) > 1:
        report.remark(
            Topic.PUBLISHER,
            resolved(entry.template.given, ("nodeSelector", "nodeSelectorTerms")),
            "the API accepts several terms here, but no scheduler allocates such a device",
            "keep one term",
        )


def _remark_gates(given: Given, piece: Piece, report: Report) -> None:
    for _, chunk in _chunks(piece.entries, DEVICES_MAX_WITH_ADVANCED_FEATURES):
        devices = tuple(entry.device for entry in chunk)
        spec = replace(_spec(EveryNode()), devices=devices)
        for field in drop_disabled(to_builtins(ResourceSlice(spec=spec))).fields:
            steps = steps_of(field)[1:]
            entry = chunk[int(steps[1])]
            path = resolved(given, ("devices", entry.template.given.path[-1], *steps[2:]))
            what = "needs a feature gate that Kubernetes 1.36 disables by default"
            report.remark(Topic.PUBLISHER, path, what, "remove it, or enable the feature gate")


def judge_together(pieces: Sequence[Piece], report: Report) -> None:
    """What is only seen of all slices of a document that go into one pool."""
    pools: dict[tuple[Any, ...], list[Piece]] = {}
    for piece in pieces:
        key = (piece.batch.driver, piece.batch.pool, isinstance(piece.batch.reach, ThisNode))
        pools.setdefault(key, []).append(piece)
    for together in pools.values():
        sets = {each.name: each for piece in together for _, each in piece.counters}
        for piece in together:
            for entry in piece.entries:
                _judge_counters(entry, sets, report)


def _judge_counters(entry: Entry, sets: dict[str, CounterSet], report: Report) -> None:
    for index, consumption in enumerate(entry.device.consumes_counters):
        at: Path = ("consumesCounters", index)
        known = sets.get(consumption.counter_set)
        if known is None:
            path = resolved(entry.template.given, (*at, "counterSet"))
            what = f"the pool has no counter set {consumption.counter_set!r}"
            fix = suggestion(consumption.counter_set, sets) or "define it in sharedCounters"
            report.refuse(path, what, fix)
            continue
        for name in consumption.counters:
            if name not in known.counters:
                path = resolved(entry.template.given, (*at, "counters", name))
                what = f"counter set {known.name!r} has no counter {name!r}"
                fix = suggestion(name, known.counters) or "add it to the set in sharedCounters"
                report.refuse(path, what, fix)


def judge_names(pieces: Sequence[Piece], report: Report) -> None:
    """Two devices or counter sets of one name, in the slices of one origin."""
    devices: dict[tuple[Any, ...], Path] = {}
    sets: dict[tuple[Any, ...], Path] = {}
    for piece in pieces:
        batch = piece.batch
        pool = (batch.driver, batch.pool, isinstance(batch.reach, ThisNode))
        for entry in piece.entries:
            path = resolved(entry.template.given, ("name",))
            _judge_names(devices, [(pool, name) for name in entry.names()], path, report)
        for given, each in piece.counters:
            path = resolved(given, ("name",))
            _judge_names(sets, [(pool, each.name)], path, report)


def _judge_names(
    seen: dict[tuple[Any, ...], Path],
    keys: Sequence[tuple[Any, str]],
    path: Path,
    report: Report,
) -> None:
    for key in keys:
        if key in seen and key[1]:
            what = f"two entries of the pool are named {key[1]!r}"
            report.refuse(path, what, "give each entry a different name")
            return
        seen[key] = path

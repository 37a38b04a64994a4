"""
Validation of parsed slices by the API's rules.

Slices are validated with placeholders for fields that only the publisher knows. A problem is
reported at the path that the person wrote. Some slices that the API accepts cannot be used by a
scheduler: two devices of one name in a pool, counters that do not exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from dryrack.hardware.config_formats.remedies import find_remedy
from dryrack.hardware.config_formats.report import Topic
from dryrack.hardware.config_formats.source_paths import find_path, find_refused_path
from dryrack.hardware.inventory import EveryNode, PerDevice, SelectedNodes, ThisNode
from dryrack.hardware.names import suggestion
from dryrack.kinds.decode import to_builtins
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.resource import ResourcePool, ResourceSlice, ResourceSliceSpec
from dryrack.kinds.text.source_positions import parse_path
from dryrack.kinds.validation import Reason
from dryrack.kinds.validation.device_rules import validate
from dryrack.kinds.validation.gates import drop_disabled
from dryrack.kinds.validation.names import device_label
from dryrack.kinds.validation.slices import COUNTER_SETS_MAX, DEVICES_MAX_WITH_ADVANCED_FEATURES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.hardware.config_formats.fields import SourceValue
    from dryrack.hardware.config_formats.parsed_slices import DeviceEntry, ParsedSlice
    from dryrack.hardware.config_formats.report import Report
    from dryrack.hardware.inventory import Reach
    from dryrack.kinds.resource import CounterSet
    from dryrack.kinds.shape import Path
    from dryrack.kinds.validation import FieldProblem

T = TypeVar("T")


def validate_slice(source: SourceValue, parsed: ParsedSlice, report: Report) -> None:
    """Report everything for which the API refuses the slices that are published from this one."""
    for steps, problem in _find_problems(parsed):
        path = find_refused_path(source, steps, problem)
        report.refuse(path, problem.message, find_remedy(problem))
    for entry in parsed.entries:
        count = entry.template.count
        if count is not None and not any(device_label("", entry.device.name)):
            for problem in device_label("", f"{entry.device.name}-{count - 1}"):
                path = find_path(entry.template.source, ("name",))
                report.refuse(path, f"with its number: {problem.message}", "shorten the name")
        selector = entry.device.node_selector
        if selector is not None and len(selector.node_selector_terms) > 1:
            report.remark(
                Topic.PUBLISHER,
                find_path(entry.template.source, ("nodeSelector", "nodeSelectorTerms")),
                "the API accepts several terms here, but no scheduler allocates such a device",
                "keep one term",
            )
    _remark_gates(source, parsed, report)


def _find_problems(parsed: ParsedSlice) -> Iterator[tuple[Path, FieldProblem]]:
    for first, chunk in _split(parsed.entries, DEVICES_MAX_WITH_ADVANCED_FEATURES):
        devices = tuple(entry.device for entry in chunk)
        spec = replace(_placeholder_spec(parsed.batch.reach), devices=devices)
        for steps, problem in _validate_spec(spec):
            if steps[:1] == ("devices",) and len(steps) > 1:
                entry = chunk[int(steps[1])]
                yield ("devices", entry.template.source.path[-1], *steps[2:]), problem
            elif first == 0:
                yield steps, problem
    for first, sets in _split(parsed.counters, COUNTER_SETS_MAX):
        shared_counters = tuple(each for _, each in sets)
        spec = replace(_placeholder_spec(EveryNode()), shared_counters=shared_counters)
        for steps, problem in _validate_spec(spec):
            yield (steps[0], first + int(steps[1]), *steps[2:]), problem


def _validate_spec(spec: ResourceSliceSpec) -> Iterator[tuple[Path, FieldProblem]]:
    """Yield the problems of a slice, each with its path in the spec."""
    for problem in validate(ResourceSlice(metadata=ObjectMeta(name="slice"), spec=spec)):
        # Names are compared in the whole pool, with all devices that a count creates.
        if not (problem.reason is Reason.DUPLICATE and problem.field.count(".") == 1):
            yield parse_path(problem.field)[1:], problem


def _placeholder_spec(reach: Reach) -> ResourceSliceSpec:
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


def _split(values: Sequence[T], size: int) -> Iterator[tuple[int, Sequence[T]]]:
    for first in range(0, len(values), size):
        yield first, values[first : first + size]


def _remark_gates(source: SourceValue, parsed: ParsedSlice, report: Report) -> None:
    for _, chunk in _split(parsed.entries, DEVICES_MAX_WITH_ADVANCED_FEATURES):
        devices = tuple(entry.device for entry in chunk)
        spec = replace(_placeholder_spec(EveryNode()), devices=devices)
        for field in drop_disabled(to_builtins(ResourceSlice(spec=spec))).fields:
            steps = parse_path(field)[1:]
            entry = chunk[int(steps[1])]
            path = find_path(source, ("devices", entry.template.source.path[-1], *steps[2:]))
            what = "needs a feature gate that is off by default"
            report.remark(Topic.PUBLISHER, path, what, "remove it, or enable the feature gate")


def validate_counters(slices: Sequence[ParsedSlice], report: Report) -> None:
    """Refuse devices that draw on counters that no slice of their pool has."""
    pools: dict[tuple[Any, ...], list[ParsedSlice]] = {}
    for parsed in slices:
        pools.setdefault(_pool_key(parsed), []).append(parsed)
    for pool in pools.values():
        sets = {each.name: each for parsed in pool for _, each in parsed.counters}
        for parsed in pool:
            for entry in parsed.entries:
                _check_counters(entry, sets, report)


def _check_counters(entry: DeviceEntry, sets: dict[str, CounterSet], report: Report) -> None:
    for index, consumption in enumerate(entry.device.consumes_counters):
        steps: Path = ("consumesCounters", index)
        counter_set = sets.get(consumption.counter_set)
        if counter_set is None:
            path = find_path(entry.template.source, (*steps, "counterSet"))
            what = f"the pool has no counter set {consumption.counter_set!r}"
            fix = suggestion(consumption.counter_set, sets) or "define it in sharedCounters"
            report.refuse(path, what, fix)
            continue
        for name in consumption.counters:
            if name not in counter_set.counters:
                path = find_path(entry.template.source, (*steps, "counters", name))
                what = f"counter set {counter_set.name!r} has no counter {name!r}"
                near = suggestion(name, counter_set.counters)
                report.refuse(path, what, near or "add it to the set in sharedCounters")


def validate_names(slices: Sequence[ParsedSlice], report: Report) -> None:
    """Refuse two devices or counter sets of one name in the slices of one origin."""
    devices: dict[tuple[Any, ...], Path] = {}
    sets: dict[tuple[Any, ...], Path] = {}
    for parsed in slices:
        pool = _pool_key(parsed)
        for entry in parsed.entries:
            path = find_path(entry.template.source, ("name",))
            _check_names(devices, [(pool, name) for name in entry.names()], path, report)
        for source, each in parsed.counters:
            _check_names(sets, [(pool, each.name)], find_path(source, ("name",)), report)


def _pool_key(parsed: ParsedSlice) -> tuple[Any, ...]:
    return parsed.batch.driver, parsed.batch.pool, isinstance(parsed.batch.reach, ThisNode)


def _check_names(
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

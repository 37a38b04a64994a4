"""
DR5xx: claims that cannot be allocated, and parts of claims that have no effect.

A finding that depends on missing files is a warning: the class or the devices may already be in
the cluster.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from dryrack.hardware.names import quoted, suggestion
from dryrack.kinds.selectors import tolerates_device_taint
from dryrack.linter.asks import RESULTS_MAX, asks_of, least_devices
from dryrack.linter.finding import Problem, Severity
from dryrack.linter.known_classes import KNOWN_CLASSES
from dryrack.linter.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.resource import (
        DeviceTaint,
        OpaqueDeviceConfiguration,
    )
    from dryrack.linter.asks import Ask
    from dryrack.linter.finding import Path
    from dryrack.linter.world import Entry, World

RULES = Registry()

# From this on two names differ by a slip of the pen.
_SLIP = 0.9


@RULES.rule(
    "DR501",
    "class-unknown",
    Severity.WARNING,
    summary="A request uses a device class that is not in the files.",
)
def class_unknown(world: World) -> Iterator[Problem]:
    """
    A pod whose claim uses a class that does not exist is unschedulable, even if only an
    alternative that is not needed uses the class. The files do not need the classes that a known
    driver installs. If the files have no classes and no slices, the cluster has them, and the rule
    reports only probable misspellings of known classes.
    """
    for ask in world.asks:
        name = ask.details.device_class_name
        if not name or name in world.class_of or name in KNOWN_CLASSES:
            continue
        if world.classes or world.slices:
            fix = suggestion(name, {*world.class_of, *KNOWN_CLASSES}) or "add the DeviceClass"
        else:
            # Without classes in the files, only a misspelled well-known class is reported.
            near = difflib.get_close_matches(name, KNOWN_CLASSES, n=1, cutoff=_SLIP)
            fix = f"did you mean {near[0]!r}?" if near else ""
        if fix:
            yield Problem(
                ask.claim.entry,
                (*ask.path, "deviceClassName"),
                f"request {ask.name!r} uses class {name!r}, which is not in the files",
                fix,
            )


@RULES.rule(
    "DR503",
    "too-many-for-one-claim",
    Severity.ERROR,
    summary="A claim requests more than 32 devices, the maximum of a claim.",
)
def too_many_for_one_claim(world: World) -> Iterator[Problem]:
    """The API server accepts the claim, but the scheduler can never allocate it."""
    for claim in world.claims:
        least = least_devices(claim)
        if least > RESULTS_MAX:
            yield Problem(
                claim.entry,
                (*claim.path, "devices", "requests"),
                f"the claim requests at least {least} devices, but a claim can have"
                f" at most {RESULTS_MAX}",
                "split it into several claims",
            )


def _configs(world: World) -> Iterator[tuple[Entry[object], Path, OpaqueDeviceConfiguration]]:
    for entry in world.classes:
        for index, config in enumerate(entry.value.spec.config):
            if config.opaque is not None:
                yield entry, ("spec", "config", index), config.opaque
    for claim in world.claims:
        for index, each in enumerate(claim.spec.devices.config):
            if each.opaque is not None:
                yield claim.entry, (*claim.path, "devices", "config", index), each.opaque


@RULES.rule(
    "DR507",
    "config-without-driver",
    Severity.WARNING,
    summary="A configuration is for a driver that has no slice in the files.",
)
def config_without_driver(world: World) -> Iterator[Problem]:
    """Each driver reads only its own configuration and ignores all others."""
    for entry, path, opaque in _configs(world):
        if world.drivers and opaque.driver not in world.drivers:
            yield Problem(
                entry,
                (*path, "opaque", "driver"),
                f"driver {opaque.driver!r} has no slice, so no driver reads this configuration",
                suggestion(opaque.driver, world.drivers) or f"use one of: {quoted(world.drivers)}",
            )


def _taints(world: World) -> tuple[DeviceTaint, ...]:
    on_devices = (taint for placed in world.devices for taint in placed.device.taints)
    by_rules = (entry.value.spec.taint for entry in world.taint_rules)
    unique = {(each.key, each.value, each.effect): each for each in (*on_devices, *by_rules)}
    return tuple(unique.values())


@RULES.rule(
    "DR510",
    "toleration-without-taint",
    Severity.INFO,
    summary="A toleration tolerates no taint in the files.",
)
def toleration_without_taint(world: World) -> Iterator[Problem]:
    """The toleration can be for a future taint, or its key or value is misspelled."""
    taints = _taints(world)
    for ask in world.asks:
        for index, toleration in enumerate(ask.details.tolerations):
            if world.devices and not any(
                tolerates_device_taint(toleration, taint) for taint in taints
            ):
                yield Problem(
                    ask.claim.entry,
                    (*ask.path, "tolerations", index),
                    f"no device in the files has a taint with key {toleration.key!r} that the"
                    " request tolerates",
                    suggestion(toleration.key, {taint.key for taint in taints})
                    or "remove it, unless the taint is added later",
                )


@RULES.rule(
    "DR512",
    "alternative-never-reached",
    Severity.WARNING,
    summary="An alternative requests at least as much as an earlier one, so it is never used.",
)
def alternative_never_reached(world: World) -> Iterator[Problem]:
    """
    The scheduler tries alternatives in order. An alternative that requests at least as many of the
    same devices cannot fit if the earlier one does not fit. Put the preferred alternative first
    and the fallback last.
    """
    for claim in world.claims:
        earlier: list[Ask] = []
        for ask in asks_of(claim):
            first = next((each for each in earlier if _fits_whenever(each, ask)), None)
            earlier.append(ask)
            if first is not None:
                yield Problem(
                    claim.entry,
                    ask.path,
                    f"alternative {ask.name!r} is never used: the earlier alternative"
                    f" {first.name!r} does not request more",
                    "put the larger alternative first",
                )


def _fits_whenever(first: Ask, second: Ask) -> bool:
    """Return whether `first`, an alternative of the same request, fits if `second` fits."""
    if not first.is_alternative or first.request != second.request:
        return False
    a = first.details
    b = second.details
    return (a.device_class_name, a.selectors, a.capacity, a.tolerations, a.allocation_mode) == (
        b.device_class_name,
        b.selectors,
        b.capacity,
        b.tolerations,
        b.allocation_mode,
    ) and first.count <= second.count

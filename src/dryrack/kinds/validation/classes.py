"""DeviceClasses and DeviceTaintRules."""

from collections.abc import Iterator
from dataclasses import replace

from dryrack.kinds.resource import (
    DeviceClass,
    DeviceClassConfiguration,
    DeviceClassSpec,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
)
from dryrack.kinds.validation.meta import (
    LONG_NAME_AS_MADE,
    SUBDOMAIN,
    conditions,
    metadata,
    metadata_change,
)
from dryrack.kinds.validation.names import device_label, driver_name, label_key, pool_name
from dryrack.kinds.validation.parts import (
    Expressions,
    Judging,
    configuration,
    device_selectors,
    items,
    taint,
)
from dryrack.kinds.validation.problems import FieldProblem, invalid, too_many

CONFIG_MAX = 32
RULE_CONDITIONS_MAX = 8

# The prefix under which a quota counts a resource.
_QUOTA_PREFIX = "requests."


def created(obj: DeviceClass, judging: Judging) -> Iterator[FieldProblem]:
    yield from metadata(
        obj.metadata, LONG_NAME_AS_MADE, namespaced=False, behaviour=judging.behaviour
    )
    yield from _spec(obj.spec, None, judging.expressions)


def updated(obj: DeviceClass, old: DeviceClass, judging: Judging) -> Iterator[FieldProblem]:
    yield from metadata(
        obj.metadata, LONG_NAME_AS_MADE, namespaced=False, behaviour=judging.behaviour
    )
    yield from metadata_change(obj.metadata, old.metadata, judging.behaviour)
    yield from _spec(obj.spec, old.spec, judging.expressions)


def _spec(
    spec: DeviceClassSpec, old: DeviceClassSpec | None, expressions: Expressions
) -> Iterator[FieldProblem]:
    """Check a spec; unchanged selectors and configuration are checked less strictly."""
    same_selectors = old is not None and spec.selectors == old.selectors
    same_config = old is not None and spec.config == old.config

    def config(at: str, given: DeviceClassConfiguration) -> Iterator[FieldProblem]:
        return configuration(at, given.opaque, stored=same_config)

    yield from device_selectors(
        "spec.selectors", spec.selectors, replace(expressions, stored=same_selectors)
    )
    yield from items("spec.config", spec.config, config, count_max=CONFIG_MAX)
    name = spec.extended_resource_name
    if name is not None and not is_extended_resource(name):
        detail = "must be a valid extended resource name"
        yield invalid("spec.extendedResourceName", name, detail, fix="write '<your domain>/<name>'")


def is_extended_resource(name: str) -> bool:
    """Return whether the name is that of an extended resource, which containers can request."""
    native = "/" not in name or "kubernetes.io/" in name
    if native or name.startswith(_QUOTA_PREFIX):
        return False
    return not label_key(f"{_QUOTA_PREFIX}{name}")


def rule_created(obj: DeviceTaintRule, judging: Judging) -> Iterator[FieldProblem]:
    yield from metadata(obj.metadata, SUBDOMAIN, namespaced=False, behaviour=judging.behaviour)
    yield from _rule(obj.spec, None)


def rule_updated(
    obj: DeviceTaintRule, old: DeviceTaintRule, judging: Judging
) -> Iterator[FieldProblem]:
    yield from metadata_change(obj.metadata, old.metadata, judging.behaviour)
    yield from _rule(obj.spec, old.spec)


def rule_status_updated(
    obj: DeviceTaintRule, old: DeviceTaintRule, judging: Judging
) -> Iterator[FieldProblem]:
    yield from metadata_change(obj.metadata, old.metadata, judging.behaviour)
    given = obj.status.conditions
    yield from conditions("status.conditions", given, judging.behaviour)
    if len(given) > RULE_CONDITIONS_MAX:
        yield too_many("status.conditions", len(given), RULE_CONDITIONS_MAX)


def _rule(spec: DeviceTaintRuleSpec, old: DeviceTaintRuleSpec | None) -> Iterator[FieldProblem]:
    if spec.device_selector is not None:
        yield from _selector("spec.deviceSelector", spec.device_selector)
    yield from taint("spec.taint", spec.taint, old.taint if old else None)


def _selector(field: str, selector: DeviceTaintSelector) -> Iterator[FieldProblem]:
    if selector.driver is not None:
        yield from driver_name(f"{field}.driver", selector.driver)
    if selector.pool is not None:
        yield from pool_name(f"{field}.pool", selector.pool)
    if selector.device is not None:
        yield from device_label(f"{field}.device", selector.device)

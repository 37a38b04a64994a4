"""StatefulSets and DaemonSets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get, spec_of, status_of
from dryrack.kinds.rules.checks import non_negative, one_of, selector_problems
from dryrack.kinds.rules.int_or_percent import at_most_all, count_or_percentage, is_zero
from dryrack.kinds.rules.json_edit import map_items, set_defaults, set_missing, with_value
from dryrack.kinds.rules.namespaces import LABEL
from dryrack.kinds.rules.volume_claims import claim_problems
from dryrack.kinds.rules.workloads.templates import (
    WorkloadRules,
    endless,
    is_selector,
    metadata_problems,
    mismatch,
    selector_needed,
    template_problems,
)
from dryrack.kinds.validation.names import checked, label
from dryrack.kinds.validation.problems import (
    FieldProblem,
    Reason,
    Token,
    invalid,
    required,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_ROLLING = "RollingUpdate"


class StatefulSetRules(WorkloadRules):
    """StatefulSet."""

    def __init__(self) -> None:
        super().__init__(LABEL)

    def defaults(self, spec: Raw) -> Raw:
        made = set_defaults(
            spec,
            {"podManagementPolicy": "OrderedReady", "replicas": 1, "revisionHistoryLimit": 10},
        )
        retention = set_defaults(
            get(spec, "persistentVolumeClaimRetentionPolicy", {}),
            {"whenDeleted": "Retain", "whenScaled": "Retain"},
        )
        made = {
            **made,
            "updateStrategy": self._strategy(get(spec, "updateStrategy", {})),
            "persistentVolumeClaimRetentionPolicy": retention,
        }
        return map_items(made, "volumeClaimTemplates", _claim)

    def _strategy(self, given: Raw) -> Raw:
        if not given.get("type"):
            given = {**given, "type": _ROLLING, "rollingUpdate": get(given, "rollingUpdate", {})}
        if given["type"] != _ROLLING or given.get("rollingUpdate") is None:
            return given
        defaults: Raw = {"partition": 0}
        if self.features.is_on("MaxUnavailableStatefulSet"):
            defaults["maxUnavailable"] = 1
        return {**given, "rollingUpdate": set_defaults(given["rollingUpdate"], defaults)}

    def spec_problems(self, spec: Raw) -> Iterator[FieldProblem]:
        yield from _stateful_policies(spec)
        retention = get(spec, "persistentVolumeClaimRetentionPolicy", {})
        for key in ("whenDeleted", "whenScaled"):
            at = f"spec.persistentVolumeClaimRetentionPolicy.{key}"
            yield from one_of(at, retention.get(key) or "", ("Retain", "Delete"))
        for position, claim in enumerate(get(spec, "volumeClaimTemplates", ())):
            at = f"spec.volumeClaimTemplates[{position}].spec"
            yield from claim_problems(at, spec_of(claim))
        for key in ("replicas", "minReadySeconds"):
            yield from non_negative(f"spec.{key}", spec.get(key))
        start = get(spec, "ordinals.start")
        yield from non_negative("spec.ordinals.start", start)
        if spec.get("serviceName"):
            yield from checked("spec.serviceName", spec["serviceName"], label)
        yield from selector_needed(spec, "statefulset")
        if is_selector(spec.get("selector")):
            yield from mismatch(spec)
            yield from template_problems(_with_claims(spec))
            # The real server reports these problems twice.
            yield from metadata_problems(spec)
        else:
            yield invalid("spec.selector", spec.get("selector"), "")
        yield from endless(spec, "StatefulSet")


def _claim(given: Raw) -> Raw:
    """Return a claim template as a complete object, with its kind and phase."""
    made = {**given, "kind": "PersistentVolumeClaim", "apiVersion": "v1"}
    made["spec"] = set_defaults(spec_of(given), {"volumeMode": "Filesystem"})
    made["status"] = set_defaults(status_of(given), {"phase": "Pending"})
    return made


def _with_claims(spec: Raw) -> Raw:
    """Return the spec with the volumes that the controller adds, without the names that it sets."""
    template = get(spec, "template", {})
    pod = with_value(with_value(spec_of(template), "subdomain", None), "hostname", None)
    templates = get(spec, "volumeClaimTemplates", ())
    claims = dict.fromkeys(get(each, "metadata.name") for each in templates)
    added = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    others = [volume for volume in get(pod, "volumes", ()) if volume.get("name") not in claims]
    pod = with_value(pod, "volumes", [*added, *others] or None)
    return {**spec, "template": {**template, "spec": pod}}


def _stateful_policies(spec: Raw) -> Iterator[FieldProblem]:
    policy = spec.get("podManagementPolicy") or ""
    if policy not in ("OrderedReady", "Parallel"):
        detail = "must be 'OrderedReady' or 'Parallel'"
        yield invalid("spec.podManagementPolicy", Token(policy), detail)
    strategy = get(spec, "updateStrategy", {})
    kind = strategy.get("type")
    rolling = strategy.get("rollingUpdate")
    if kind == "OnDelete" and rolling is not None:
        detail = f"only allowed for updateStrategy '{_ROLLING}'"
        yield invalid("spec.updateStrategy.rollingUpdate", rolling, detail)
    elif kind == _ROLLING:
        at = "spec.updateStrategy.rollingUpdate.partition"
        yield from non_negative(at, (rolling or {}).get("partition"))
    elif kind != "OnDelete":
        yield invalid("spec.updateStrategy", strategy, f"must be '{_ROLLING}' or 'OnDelete'")


class DaemonSetRules(WorkloadRules):
    """DaemonSet."""

    def default(self, obj: Raw) -> Raw:
        # The real server also sets the deprecated counter of templates, an annotation.
        annotations = get(obj["metadata"], "annotations", {})
        annotations = {
            **annotations,
            TEMPLATE_GENERATION: annotations.get(TEMPLATE_GENERATION) or "0",
        }
        counted = {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}
        return super().default(counted)

    def defaults(self, spec: Raw) -> Raw:
        made = set_defaults(spec, {"revisionHistoryLimit": 10})
        return {**made, "updateStrategy": _daemon_strategy(get(spec, "updateStrategy", {}))}

    def spec_problems(self, spec: Raw) -> Iterator[FieldProblem]:
        selector = spec.get("selector")
        yield from selector_problems("spec.selector", selector)
        yield from mismatch(spec)
        if selector is not None and not any(selector.values()):
            yield invalid("spec.selector", selector, "empty selector is invalid for daemonset")
        yield from template_problems(spec)
        yield from endless(spec, "DaemonSet")
        yield from non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
        yield from _daemon_problems(get(spec, "updateStrategy", {}))
        yield from non_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))


def _daemon_strategy(given: Raw) -> Raw:
    made = set_defaults(given, {"type": _ROLLING})
    if made["type"] != _ROLLING:
        return made
    rolling = set_missing(get(made, "rollingUpdate", {}), {"maxUnavailable": 1, "maxSurge": 0})
    return {**made, "rollingUpdate": rolling}


def _daemon_problems(given: Raw) -> Iterator[FieldProblem]:
    at = "spec.updateStrategy"
    kind = given.get("type")
    rolling = given.get("rollingUpdate")
    if kind == "OnDelete":
        return
    if kind != _ROLLING:
        known = 'supported values: "RollingUpdate", "OnDelete"'
        yield FieldProblem(Reason.NOT_SUPPORTED, at, given, known)
        return
    missing = (rolling or {}).get("maxUnavailable", 0)
    surge = (rolling or {}).get("maxSurge", 0)
    at = f"{at}.rollingUpdate"
    for name, value in (("maxUnavailable", missing), ("maxSurge", surge)):
        yield from count_or_percentage(f"{at}.{name}", value)
    for name, value in (("maxUnavailable", missing), ("maxSurge", surge)):
        yield from at_most_all(f"{at}.{name}", value)
    if not is_zero(missing) and not is_zero(surge):
        detail = "may not be set when maxUnavailable is non-zero"
        yield invalid(f"{at}.maxSurge", surge, detail)
    if is_zero(missing) and is_zero(surge):
        yield required(f"{at}.maxUnavailable", "cannot be 0 when maxSurge is 0")

"""StorageClasses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.rules.checks import qualified_name
from dryrack.kinds.rules.json_edit import set_missing
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.validation.problems import (
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_DEFAULTS = {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
_RECLAIM_POLICIES = ("Delete", "Retain")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_PARAMETERS_MAX = 512
_PARAMETER_BYTES_MAX = 256 * 2**10


class StorageClassRules(KindRules):
    """StorageClass."""

    def __init__(self) -> None:
        super().__init__(namespaced=False)

    def default(self, obj: Raw) -> Raw:
        return set_missing(obj, _DEFAULTS)

    def problems(self, obj: Raw) -> Iterator[FieldProblem]:
        provisioner = obj.get("provisioner") or ""
        if provisioner:
            yield from qualified_name("provisioner", provisioner.lower())
        else:
            yield required("provisioner")
        yield from _parameters("parameters", get(obj, "parameters", {}))
        if obj.get("reclaimPolicy") not in (None, "", *_RECLAIM_POLICIES):
            yield not_supported("reclaimPolicy", obj["reclaimPolicy"], _RECLAIM_POLICIES)
        mode = obj.get("volumeBindingMode")
        if mode is not None and mode not in _BINDING_MODES:
            yield not_supported("volumeBindingMode", mode, _BINDING_MODES)
        yield from _topologies("allowedTopologies", get(obj, "allowedTopologies", ()))


def _parameters(at: str, given: Raw) -> Iterator[FieldProblem]:
    if len(given) > _PARAMETERS_MAX:
        yield too_long(at, _PARAMETERS_MAX)
        return
    if "" in given:
        yield invalid(at, "", "field can not be empty.")
    if sum(len(f"{key}{value}".encode()) for key, value in given.items()) > _PARAMETER_BYTES_MAX:
        yield too_long(at, _PARAMETER_BYTES_MAX)


def _topologies(at: str, given: Sequence[Raw]) -> Iterator[FieldProblem]:
    seen: list[dict[str, set[str]]] = []
    for position, term in enumerate(given):
        expressions = f"{at}[{position}].matchLabelExpressions"
        values: dict[str, set[str]] = {}
        for number, each in enumerate(get(term, "matchLabelExpressions", ())):
            key = each.get("key") or ""
            yield from _requirement(f"{expressions}[{number}]", key, get(each, "values", ()))
            if key in values:
                yield duplicate(f"{expressions}[{number}].key", key)
            values[key] = set(get(each, "values", ()))
        if values in seen:
            yield duplicate(expressions, "")
        seen.append(values)


def _requirement(at: str, key: str, values: Sequence[str]) -> Iterator[FieldProblem]:
    if not values:
        yield required(f"{at}.values")
    for position, value in enumerate(values):
        if value in values[:position]:
            yield duplicate(f"{at}.values[{position}]", value)
    yield from qualified_name(f"{at}.key", key)

"""Limit ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.quota_usage.amounts import ONE, Amounts, parse_amounts
from dryrack.kinds.rules import checks
from dryrack.kinds.rules.json_edit import map_items, update_at
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.rules.pods import resource_amounts as amounts
from dryrack.kinds.validation.names import label_key
from dryrack.kinds.validation.problems import Token, duplicate, forbidden, invalid, required

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_TYPES = ("Container", "PersistentVolumeClaim", "Pod")


class LimitRangeRules(KindRules):
    """LimitRange: a maximum is the default limit, and a default limit the default request."""

    def __init__(self) -> None:
        super().__init__(namespaced=True)

    def default(self, obj: Raw) -> Raw:
        return update_at(obj, "spec", lambda spec: map_items(spec, "limits", _set_limit_defaults))

    def problems(self, obj: Raw) -> Iterator[FieldProblem]:
        given = get(obj, "spec.limits", ())
        seen: set[str] = set()
        for position, limit in enumerate(given):
            at = f"spec.limits[{position}]"
            kind = limit.get("type") or ""
            yield from _type(f"{at}.type", kind)
            if kind in seen:
                yield duplicate(f"{at}.type", Token(kind))
            seen.add(kind)
            for part in ("max", "min"):
                yield from _resource_names(f"{at}.{part}", kind, limit.get(part))
            for part in ("default", "defaultRequest"):
                if kind != "Pod":
                    yield from _resource_names(f"{at}.{part}", kind, limit.get(part))
                elif limit.get(part):
                    yield forbidden(f"{at}.{part}", "may not be specified when `type` is 'Pod'")
            bounds = [limit.get(part) or {} for part in ("max", "min")]
            if kind == "PersistentVolumeClaim" and not any("storage" in each for each in bounds):
                detail = (
                    "either minimum or maximum storage value is required, but neither was provided"
                )
                yield required(f"{at}.limits", detail)
            yield from _resource_names(
                f"{at}.maxLimitRequestRatio", kind, limit.get("maxLimitRequestRatio")
            )
            yield from _relations(at, limit)


def _set_limit_defaults(limit: Raw) -> Raw:
    if limit.get("type") != "Container":
        return limit
    default = {**get(limit, "max", {}), **get(limit, "default", {})}
    request = {**get(limit, "min", {}), **default, **get(limit, "defaultRequest", {})}
    made = {
        "default": dict(sorted(default.items())),
        "defaultRequest": dict(sorted(request.items())),
    }
    return {**limit, **{key: value for key, value in made.items() if value}}


def _type(at: str, kind: str) -> Iterator[FieldProblem]:
    complaints = [invalid(at, Token(kind), each) for each in label_key(kind)]
    yield from complaints
    if not complaints and "/" not in kind and kind not in _TYPES:
        yield invalid(at, Token(kind), "must be a standard limit type or fully qualified")


def _resource_names(at: str, kind: str, given: Raw | None) -> Iterator[FieldProblem]:
    checker = (
        amounts.container_resource_name if kind in ("Container", "Pod") else amounts.resource_name
    )
    for name in sorted(given or {}):
        yield from checker(f"{at}[{name}]", name)


def _relations(at: str, limit: Raw) -> Iterator[FieldProblem]:
    parts = {
        part: parse_amounts(limit.get(part)) for part in ("min", "max", "maxLimitRequestRatio")
    }
    plain = limit.get("type") != "Pod"
    parts |= {
        part: parse_amounts(limit.get(part) if plain else None)
        for part in ("default", "defaultRequest")
    }
    for name in sorted({name for amounts_of in parts.values() for name in amounts_of}):
        yield from _order_problems(at, name, parts)
        yield from _ratio(at, name, parts)
        default = parts["default"].get(name)
        request = parts["defaultRequest"].get(name)
        is_shared = checks.is_native(name) and not name.startswith("hugepages-")
        if not is_shared and default is not None and request is not None and default != request:
            detail = f"default value {default} must equal to defaultRequest value {request}"
            yield invalid(f"{at}.defaultRequest[{name}]", request, f"{detail} in {name}")


# The smaller value and its name, the larger value and its name, the field, the shown value.
_ORDER = (
    ("min", "min value", "max", "max value", "min", "min"),
    (
        "min",
        "min value",
        "defaultRequest",
        "default request value",
        "defaultRequest",
        "defaultRequest",
    ),
    (
        "defaultRequest",
        "default request value",
        "max",
        "max value",
        "defaultRequest",
        "defaultRequest",
    ),
    (
        "defaultRequest",
        "default request value",
        "default",
        "default limit value",
        "defaultRequest",
        "defaultRequest",
    ),
    ("min", "min value", "default", "default value", "default", "min"),
    ("default", "default value", "max", "max value", "default", "max"),
)


def _order_problems(at: str, name: str, parts: dict[str, Amounts]) -> Iterator[FieldProblem]:
    for low, called, high, than, field, shown in _ORDER:
        smaller = parts[low].get(name)
        larger = parts[high].get(name)
        if smaller is not None and larger is not None and smaller > larger:
            detail = f"{called} {smaller} is greater than {than} {larger}"
            yield invalid(f"{at}.{field}[{name}]", parts[shown][name], detail)


def _ratio(at: str, name: str, parts: dict[str, Amounts]) -> Iterator[FieldProblem]:
    ratio = parts["maxLimitRequestRatio"].get(name)
    if ratio is None:
        return
    path = f"{at}.maxLimitRequestRatio[{name}]"
    if ratio < ONE:
        yield invalid(path, ratio, f"ratio {ratio} is less than 1")
    low = parts["min"].get(name)
    high = parts["max"].get(name)
    if low is None or high is None or low.sign <= 0:
        return
    most = high.milli_value() / low.milli_value()
    if (ratio.milli_value() / 1000) > most:
        yield invalid(path, ratio, f"ratio {ratio} is greater than max/min = {most:f}")

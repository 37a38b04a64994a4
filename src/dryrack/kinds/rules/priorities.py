"""Priority classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.rules.checks import one_of
from dryrack.kinds.rules.json_edit import set_missing
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.problems import forbidden

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_USERS_MAX = 1_000_000_000
SYSTEM_PRIORITIES = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}


class PriorityClassRules(KindRules):
    """PriorityClass."""

    def __init__(self) -> None:
        super().__init__(namespaced=False)

    def default(self, obj: Raw) -> Raw:
        return set_missing(obj, {"preemptionPolicy": "PreemptLowerPriority"})

    def problems(self, obj: Raw) -> Iterator[FieldProblem]:
        name = obj["metadata"].get("name") or ""
        value = obj.get("value", 0)
        if name.startswith("system-"):
            if SYSTEM_PRIORITIES.get(name) != value or obj.get("globalDefault"):
                detail = (
                    "priority class names with 'system-' prefix are reserved for system use only. "
                    f"error: {_not_the_system(name)}"
                )
                yield forbidden("metadata.name", detail)
        elif value > _USERS_MAX:
            detail = f"maximum allowed value of a user defined priority is {_USERS_MAX}"
            yield forbidden("value", detail)
        policies = ("PreemptLowerPriority", "Never")
        yield from one_of("preemptionPolicy", obj.get("preemptionPolicy") or "", policies)


def _not_the_system(name: str) -> str:
    if name not in SYSTEM_PRIORITIES:
        return f"{name} is not a known system priority class"
    return f"value of {quoted(name)} PriorityClass must be {SYSTEM_PRIORITIES[name]}"

"""Priority classes: a number by a name, fixed once given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.answer.status import Subject, forbidden
from dryrack.apiserver.strategies.checks import one_of
from dryrack.apiserver.strategies.copies import completed
from dryrack.apiserver.strategies.pods.admission import PRIORITY_CLASSES
from dryrack.apiserver.strategies.validated_as_new import WholeStrategy
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.problems import Token, invalid
from dryrack.kinds.validation.problems import forbidden as forbidden_field

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_USERS_MAX = 1_000_000_000
_SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_SUBJECT = Subject("scheduling.k8s.io", "priorityclasses")


class PriorityClassStrategy(WholeStrategy):
    """One of them may be for all pods that name none."""

    counts_generations = True

    def __init__(self) -> None:
        super().__init__(namespaced=False)

    def default(self, obj: Raw, write: Write) -> Raw:
        return completed(obj, {"preemptionPolicy": "PreemptLowerPriority"})

    def admit(self, obj: Raw, old: Raw | None, write: Write) -> Raw:
        if not obj.get("globalDefault"):
            return obj
        name = obj["metadata"].get("name") or ""
        for other in write.lookup.list(PRIORITY_CLASSES, None):
            taken = other["metadata"]["name"]
            if other.get("globalDefault") and (old is None or taken != name):
                detail = f"PriorityClass {taken} is already marked as default. "
                raise forbidden(_SUBJECT, name, f"{detail}Only one default can exist")
        return obj

    def desired(self, obj: Raw) -> Any:
        """No generation counts anything after the first: a class has no spec."""
        return None

    def problems(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        return list(_problems(obj))

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        if obj.get("value", 0) != old.get("value", 0):
            yield forbidden_field("value", "may not be changed in an update.")
        policy = obj.get("preemptionPolicy")
        if policy != old.get("preemptionPolicy"):
            yield invalid("preemptionPolicy", Token(policy or ""), "field is immutable")


def _problems(obj: Raw) -> Iterator[FieldProblem]:
    name, value = obj["metadata"].get("name") or "", obj.get("value", 0)
    if name.startswith("system-"):
        if _SYSTEM.get(name) != value or obj.get("globalDefault"):
            detail = (
                "priority class names with 'system-' prefix are reserved for system use only. "
                f"error: {_not_the_system(name)}"
            )
            yield forbidden_field("metadata.name", detail)
    elif value > _USERS_MAX:
        detail = f"maximum allowed value of a user defined priority is {_USERS_MAX}"
        yield forbidden_field("value", detail)
    policies = ("PreemptLowerPriority", "Never")
    yield from one_of("preemptionPolicy", obj.get("preemptionPolicy") or "", policies)


def _not_the_system(name: str) -> str:
    if name not in _SYSTEM:
        return f"{name} is not a known system priority class"
    return f"value of {quoted(name)} PriorityClass must be {_SYSTEM[name]}"

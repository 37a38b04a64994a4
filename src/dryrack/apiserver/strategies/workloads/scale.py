"""How many pods a workload wants, as a part of its own that all workloads have alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.scaling import Scaling, scale_from
from dryrack.apiserver.status import Subject, invalid
from dryrack.apiserver.strategies.checks import NON_NEGATIVE
from dryrack.kinds.validation.problems import invalid as invalid_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.apiserver.status import StatusError

Raw = dict[str, Any]

_SCALE = Subject("autoscaling", "Scale")


class _Workload:
    """The scale of a workload."""

    path: Sequence[str] = ("spec", "replicas")
    is_one_by_uid = True

    def shown(self, obj: Raw) -> Raw:
        return self.scale_of(obj)

    def scale_of(self, obj: Raw) -> Raw:
        spec = obj.get("spec") or {}
        status: Raw = {"replicas": (obj.get("status") or {}).get("replicas", 0)}
        selector = spec.get("selector") or {}
        if obj.get("kind") == "ReplicationController":
            # Older than selectors with operators.
            selector = {"matchLabels": selector}
        if selector:
            status["selector"] = _selector_text(selector)
        return scale_from(obj, spec.get("replicas", 0), status)

    def rescaled(self, obj: Raw, scale: Raw) -> Raw:
        """The workload, at the revision that the client has seen, if it says which."""
        given, meta = scale.get("metadata") or {}, dict(obj["metadata"])
        replicas = (scale.get("spec") or {}).get("replicas", 0)
        if replicas < 0:
            problem = invalid_value("spec.replicas", replicas, NON_NEGATIVE)
            raise invalid(_SCALE, meta["name"], (problem,))
        meta.pop("resourceVersion", None)
        meta |= {key: given[key] for key in ("resourceVersion", "uid") if given.get(key)}
        return {**obj, "metadata": meta, "spec": {**obj["spec"], "replicas": replicas}}

    def misread(self, error: StatusError) -> StatusError:
        return error

    def inapplicable(self, old: Raw, made: Raw | StatusError) -> StatusError | None:
        return None


_SCALING = Scaling(_Workload())
get, update, patch = _SCALING.get, _SCALING.update, _SCALING.patch


def _selector_text(selector: Raw) -> str:
    """As it is written in queries, its terms in the order of their keys."""
    terms = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    terms += [
        (each.get("key") or "", _term(each)) for each in selector.get("matchExpressions") or ()
    ]
    return ",".join(text for _, text in sorted(terms))


def _term(given: Raw) -> str:
    key, values = given.get("key") or "", ",".join(sorted(given.get("values") or ()))
    match given.get("operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return key
        case _:
            return f"!{key}"

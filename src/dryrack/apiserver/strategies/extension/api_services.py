"""
API services: which server answers for a version of a group.

The versions that this server has are its own. One that names a service would be answered by
another program, to which nothing is forwarded here; it is kept, and not available.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategies.validated_as_new import ValidatedAsNewStrategy
from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.rules.json_edit import set_missing, update_at
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.problems import invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_REMOTE = "dryrack does not forward requests to other API servers"


class _Rules(KindRules):
    """An API service is called after what it is for."""

    def default(self, obj: Raw) -> Raw:
        return update_at(obj, "spec.service", lambda service: set_missing(service, {"port": 443}))

    def problems(self, obj: Raw) -> Sequence[FieldProblem]:
        spec = spec_of(obj)
        name = obj["metadata"].get("name") or ""
        expected = f"{spec.get('version', '')}.{spec.get('group', '')}"
        if name == expected:
            return ()
        detail = f'must be `spec.version+"."+spec.group`: {quoted(expected)}'
        return (invalid("metadata.name", name, detail),)


class ApiServiceStrategy(ValidatedAsNewStrategy):
    """Its status is known when it is written: there is nothing to wait for."""

    def __init__(self) -> None:
        super().__init__(_Rules(namespaced=False, has_status=True))

    def approve(self, obj: Raw, old: Raw | None, write: Write) -> None:
        if not write.subresource and get(obj, "spec.service"):
            write.warn(f"{_REMOTE}: an APIService with a service is never available")

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        made = super().prepare_create(obj, write)
        return {**made, "status": {"conditions": [_available(obj, write.now)]}}


def _available(obj: Raw, now: str) -> Raw:
    is_local = not get(obj, "spec.service")
    return {
        "type": "Available",
        "status": "True" if is_local else "False",
        "lastTransitionTime": now,
        "reason": "Local" if is_local else "FailedDiscoveryCheck",
        "message": "Local APIServices are always available" if is_local else _REMOTE,
    }

"""
CertificateSigningRequests. Only the status of a request changes.

The subresource `approval` alone writes the conditions Approved and Denied; `status` writes the
certificate and other conditions. No component of dryrack signs certificates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import forbidden as refused
from dryrack.apiserver.authorization.attributes import Attributes
from dryrack.apiserver.strategy import Strategy, keep_status, status_and_metadata
from dryrack.kinds.paths import get, spec_of, status_of
from dryrack.kinds.rules.json_edit import with_value
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.meta import Naming
from dryrack.kinds.validation.problems import (
    Token,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.apiserver.authorization import Authorization
    from dryrack.apiserver.registry import Resource
    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

GROUP = "certificates.k8s.io"
_DECISIONS = ("Approved", "Denied")
_FINAL = (*_DECISIONS, "Failed")
_WHERE = "status.conditions"


class CertificateRequestStrategy(Strategy):
    """A request is as it was made; its status says what came of it."""

    selectable_fields = ("spec.signerName",)

    def __init__(self) -> None:
        anything = Naming(lambda _: (), lambda _: ())
        super().__init__(KindRules(namespaced=False, has_status=True, naming=anything))

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        """Overwrite username, uid, groups and extra with those of the caller."""
        user = write.user
        made = super().prepare_create(obj, write)
        asker = {
            "username": user.name,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": {key: list(values) for key, values in user.extra.items()},
        }
        spec = spec_of(made)
        for key, value in asker.items():
            spec = with_value(spec, key, value or None)
        return {**made, "spec": spec}

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        if not write.subresource:
            return {**keep_status(obj, old), "spec": spec_of(old)}
        conditions = _conditions(obj)
        before = _conditions(old)
        status = status_of(obj)
        if write.subresource == "approval":
            status = status_of(old)
        else:
            conditions = _with_decisions(conditions, before)
        timed = [_with_times(each, before, write.now) for each in conditions]
        made = {**obj, "status": with_value(status, "conditions", timed or None)}
        return status_and_metadata(made, old)

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        found = [*_condition_problems(_conditions(obj), _conditions(old))]
        for kind in _FINAL:
            now = _of(kind, _conditions(obj))
            before = _of(kind, _conditions(old))
            if len(now) < len(before):
                message = f"updates may not remove a condition of type {quoted(kind)}"
                found.append(forbidden(_WHERE, message))
            elif kind in _DECISIONS and write.subresource != "approval" and now != before:
                message = f"updates may not add a condition of type {quoted(kind)}"
                found.append(forbidden(_WHERE, message))
        certificate, known = (get(each, "status.certificate") or "" for each in (obj, old))
        if known and certificate != known:
            message = "updates may not modify existing certificate content"
            found.append(forbidden("status.certificate", message))
        return found


def _conditions(obj: Raw) -> list[Raw]:
    found: list[Raw] = get(obj, "status.conditions", [])
    return found


def _of(kind: str, conditions: list[Raw]) -> list[Raw]:
    return [each for each in conditions if each.get("type") == kind]


def _with_decisions(conditions: list[Raw], before: list[Raw]) -> list[Raw]:
    """The conditions with those decisions as they are stored of which there are as many."""
    made = list(conditions)
    for kind in _DECISIONS:
        known = _of(kind, before)
        if len(_of(kind, made)) == len(known):
            stored = iter(known)
            made = [next(stored) if each.get("type") == kind else each for each in made]
    return made


def _with_times(condition: Raw, before: list[Raw], now: str) -> Raw:
    """Return the condition with the times of its last update and last status change."""
    same = (
        each["lastTransitionTime"]
        for each in _of(condition.get("type") or "", before)
        if each.get("status") == condition.get("status") and each.get("lastTransitionTime")
    )
    updated = condition.get("lastUpdateTime") or now
    changed = condition.get("lastTransitionTime") or next(same, now)
    return {**condition, "lastUpdateTime": updated, "lastTransitionTime": changed}


def _condition_problems(conditions: list[Raw], before: list[Raw]) -> Iterator[FieldProblem]:
    """Yield the problems of conditions; some that are stored already are accepted."""
    known = [each.get("type") or "" for each in before]
    seen = set[str]()
    for position, each in enumerate(conditions):
        at = f"{_WHERE}[{position}]"
        kind = each.get("type") or ""
        if not kind and "" not in known:
            yield required(f"{at}.type")
        allowed = ("True",) if kind in _FINAL else ("False", "True", "Unknown")
        status = each.get("status") or ""
        if not status:
            yield required(f"{at}.status")
        elif status not in allowed:
            yield not_supported(f"{at}.status", status, allowed)
        contrary = kind in _DECISIONS and seen.intersection(_DECISIONS).difference((kind,))
        if contrary and not set(known).issuperset(_DECISIONS):
            message = "Approved and Denied conditions are mutually exclusive"
            yield invalid(_WHERE, Token(kind), message)
        if kind in seen and len(set(known)) == len(known):
            yield duplicate(f"{at}.type", kind)
        seen.add(kind)


def confirm_approval(
    authorization: Authorization, resource: Resource, request: Raw, write: Write
) -> None:
    """Raises a `StatusError` if the writer may not approve for the signer of a request."""
    signer = get(request, "spec.signerName") or ""
    for name in (signer, f"{signer.partition('/')[0]}/*"):
        asked = Attributes(write.user, "approve", group=GROUP, resource="signers", name=name)
        if authorization.allows(asked):
            return
    detail = f"user not permitted to approve requests with signerName {quoted(signer)}"
    raise refused(resource.as_resource, request["metadata"]["name"], detail)

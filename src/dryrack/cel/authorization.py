"""
The authorizer as a value: questions about rights, asked step by step.

    authorizer.group('apps').resource('deployments').namespace('a').check('create').allowed()

Only admission policies have one. Their evaluation brings the function that decides a question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

_TYPES = "kubernetes.authorization"


@dataclass(frozen=True, slots=True)
class Question:
    """A question about rights. `account` is a service account, or "" for the requesting user."""

    account: str = ""
    verb: str = ""
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer, and why, as far as the authorizer says."""

    allowed: bool
    reason: str


Decide = Callable[[Question], Decision]


@dataclass(frozen=True, slots=True)
class _Asking:
    """A question that is not complete yet, and who will decide it."""

    decide: Decide
    question: Question = Question()


class Authorizer(_Asking):
    """The start of every question."""

    __slots__ = ()


class PathCheck(_Asking):
    """About a path that is no resource."""

    __slots__ = ()


class GroupCheck(_Asking):
    """About a group, and not yet about what in it."""

    __slots__ = ()


class ResourceCheck(_Asking):
    """About a resource."""

    __slots__ = ()


TYPE_NAMES: dict[type, str] = {
    each: f"{_TYPES}.{each.__name__}"
    for each in (Authorizer, PathCheck, GroupCheck, ResourceCheck, Decision)
}
GO_NAMES: dict[type, str] = {
    each: f"library.{each.__name__[0].lower()}{each.__name__[1:]}Val" for each in TYPE_NAMES
}


def _path(asking: Authorizer, path: str) -> PathCheck:
    return PathCheck(asking.decide, replace(asking.question, path=path))


def _group(asking: Authorizer, group: str) -> GroupCheck:
    return GroupCheck(asking.decide, replace(asking.question, group=group))


def _account(asking: Authorizer, namespace: str, name: str) -> Authorizer:
    account = f"system:serviceaccount:{namespace}:{name}"
    return Authorizer(asking.decide, replace(asking.question, account=account))


def _resource(asking: GroupCheck, resource: str) -> ResourceCheck:
    return ResourceCheck(asking.decide, replace(asking.question, resource=resource))


def _narrow_by(part: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    def narrowed(asking: ResourceCheck, value: str) -> ResourceCheck:
        return ResourceCheck(asking.decide, replace(asking.question, **{part: value}))

    return narrowed


def _ignore_selector(asking: ResourceCheck, _selector: str) -> ResourceCheck:
    """Roles know no selectors: what is allowed is allowed for all."""
    return asking


def _check(asking: PathCheck | ResourceCheck, verb: str) -> Decision:
    return asking.decide(replace(asking.question, verb=verb))


OVERLOADS: dict[str, Callable[..., Any]] = {
    "authorizer_path": _path,
    "authorizer_group": _group,
    "authorizer_serviceaccount": _account,
    "authorizer_fieldselector": _ignore_selector,
    "authorizer_labelselector": _ignore_selector,
    "groupcheck_resource": _resource,
    "resourcecheck_subresource": _narrow_by("subresource"),
    "resourcecheck_namespace": _narrow_by("namespace"),
    "resourcecheck_name": _narrow_by("name"),
    "resourcecheck_check": _check,
    "pathcheck_check": _check,
    "decision_allowed": lambda decision: decision.allowed,
    "decision_reason": lambda decision: decision.reason,
    "decision_errored": lambda _decision: False,
    "decision_error": lambda _decision: "",
}

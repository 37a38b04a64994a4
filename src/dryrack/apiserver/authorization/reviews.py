"""
Access reviews: whether a user may make a request, and which requests a user may make.

A review is answered with its status set; it is not stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import Subject, bad_request, invalid
from dryrack.apiserver.authorization.attributes import Attributes
from dryrack.apiserver.decode.review_bodies import read_posted, with_review_status
from dryrack.apiserver.extension_points import Reply
from dryrack.client.transport import User
from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.validation import FieldProblem
from dryrack.kinds.validation.problems import Reason

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from dryrack.apiserver.authorization import Authorization
    from dryrack.apiserver.authorization.rbac import Rule
    from dryrack.apiserver.extension_points import Answer, Call
    from dryrack.kinds.raw import Raw

_GROUP = "authorization.k8s.io"


def access_review_handlers(
    authorization: Authorization,
) -> dict[tuple[str, str], Mapping[str, Callable[[Call], Awaitable[Answer]]]]:
    """Return the handlers by resource and subresource."""
    questions = AccessQuestions(authorization)
    answers = {
        "selfsubjectaccessreviews": questions.may_i,
        "subjectaccessreviews": questions.may_they,
        "localsubjectaccessreviews": questions.may_they_here,
        "selfsubjectrulesreviews": questions.what_may_i,
    }
    return {(f"{plural}.{_GROUP}", ""): {"create": each} for plural, each in answers.items()}


class AccessQuestions:
    """Answers reviews with the decisions of the authorizer."""

    def __init__(self, authorization: Authorization) -> None:
        self._authorization = authorization

    async def may_i(self, call: Call) -> Answer:
        obj = read_posted(call)
        _check(call, _problems(spec_of(obj)))
        return self._review(call, obj, call.request.user)

    async def may_they(self, call: Call) -> Answer:
        obj = read_posted(call)
        spec = spec_of(obj)
        _check(call, [*_problems(spec), *_missing_subject(spec)])
        return self._review(call, obj, _subject(spec))

    async def may_they_here(self, call: Call) -> Answer:
        obj = read_posted(call)
        spec = spec_of(obj)
        _check(call, [*_problems(spec), *_missing_subject(spec), *_wrong_namespace(spec, call)])
        return self._review(call, obj, _subject(spec))

    def _review(self, call: Call, obj: Raw, user: User) -> Answer:
        asked = _attributes(obj["spec"], user)
        status: Raw = {"allowed": self._authorization.allows(asked)}
        reason = self._authorization.reason(asked)
        if reason:
            status["reason"] = reason
        return Reply(with_review_status(call, obj, status), 201)

    async def what_may_i(self, call: Call) -> Answer:
        obj = read_posted(call)
        namespace = get(obj, "spec.namespace")
        if not namespace:
            raise bad_request("no namespace on request")
        rules = self._authorization.rules(call.request.user, namespace)
        status = {
            "resourceRules": [_resource_rule(rule) for rule in rules if rule.resources],
            "nonResourceRules": [
                {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.paths)}
                for rule in rules
                if rule.paths
            ],
            "incomplete": False,
        }
        answer = {**obj, "metadata": {}, "spec": {}, "status": status}
        return Reply(answer, 201)


def _attributes(spec: Raw, user: User) -> Attributes:
    path = spec.get("nonResourceAttributes")
    if path is not None:
        return Attributes(user, path.get("verb", ""), path=path.get("path", ""))
    asked = spec["resourceAttributes"]
    keys = ("group", "resource", "subresource", "namespace", "name")
    return Attributes(user, asked.get("verb", ""), **{key: asked.get(key, "") for key in keys})


def _subject(spec: Raw) -> User:
    extra = {key.lower(): tuple(values) for key, values in get(spec, "extra", {}).items()}
    groups = tuple(get(spec, "groups", ()))
    return User(spec.get("user", ""), groups, spec.get("uid", ""), extra)


def _check(call: Call, problems: list[FieldProblem]) -> None:
    if problems:
        raise invalid(Subject(_GROUP, call.target.resource.kind), "", problems)


def _problems(spec: Raw) -> list[FieldProblem]:
    resource = spec.get("resourceAttributes")
    path = spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        problem = "cannot be specified in combination with resourceAttributes"
        return [FieldProblem(Reason.INVALID, "spec.nonResourceAttributes", path, problem)]
    if resource is None and path is None:
        problem = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [FieldProblem(Reason.INVALID, "spec.resourceAttributes", None, problem)]
    return []


def _missing_subject(spec: Raw) -> list[FieldProblem]:
    if spec.get("user") or spec.get("groups"):
        return []
    problem = "at least one of user or group must be specified"
    return [FieldProblem(Reason.INVALID, "spec.user", spec.get("user", ""), problem)]


def _wrong_namespace(spec: Raw, call: Call) -> list[FieldProblem]:
    resource = spec.get("resourceAttributes")
    path = spec.get("nonResourceAttributes")
    found: list[FieldProblem] = []
    if resource is not None and resource.get("namespace", "") != call.target.namespace:
        where = "spec.resourceAttributes.namespace"
        given = resource.get("namespace", "")
        found.append(FieldProblem(Reason.INVALID, where, given, "must match metadata.namespace"))
    if path is not None:
        problem = "disallowed on this kind of request"
        found.append(FieldProblem(Reason.INVALID, "spec.nonResourceAttributes", path, problem))
    return found


def _resource_rule(rule: Rule) -> Raw:
    found = {
        "verbs": list(rule.verbs),
        "apiGroups": list(rule.groups),
        "resources": list(rule.resources),
    }
    return found | ({"resourceNames": list(rule.names)} if rule.names else {})

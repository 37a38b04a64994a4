"""The variables of an admission policy's expressions, such as `request` and `object`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.authorization.attributes import Attributes
from dryrack.cel.authorization import Authorizer, Decision, Question, ResourceCheck
from dryrack.client.transport import User
from dryrack.extension.policies import AUTHORIZER, REQUEST_RESOURCE
from dryrack.kinds.paths import spec_of, status_of

if TYPE_CHECKING:
    from dryrack.apiserver.authorization import Authorization
    from dryrack.apiserver.policies.match_rules import Attempt
    from dryrack.apiserver.registry import Resource
    from dryrack.cel.authorization import Decide
    from dryrack.kinds.raw import Raw

_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
_METADATA = (
    *("name", "generateName", "namespace", "uid", "resourceVersion", "generation"),
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
    *("labels", "annotations", "finalizers"),
)


def variables_of(
    attempt: Attempt, matched: Resource, params: Raw | None, authorization: Authorization
) -> Raw:
    """Return all variables but the policy's own, with the objects in the matched version."""
    authorizer = Authorizer(_decider(attempt.write.user, authorization))
    new, old = objects_in_version(attempt, matched)
    return {
        AUTHORIZER: authorizer,
        REQUEST_RESOURCE: ResourceCheck(
            authorizer.decide,
            (
                Question(
                    group=attempt.resource.group,
                    resource=attempt.resource.plural,
                    subresource=attempt.write.subresource,
                    namespace=attempt.namespace,
                    name=attempt.requested_name,
                )
            ),
        ),
        "object": new,
        "oldObject": old,
        "request": admission_request(attempt, matched),
        "namespaceObject": _namespace(attempt.namespace_object()),
        "params": params,
    }


def _decider(user: User, authorization: Authorization) -> Decide:
    def decide(question: Question) -> Decision:
        who = _account(question.account) if question.account else user
        asked = Attributes(
            who,
            question.verb,
            group=question.group,
            resource=question.resource,
            subresource=question.subresource,
            namespace=question.namespace,
            name=question.name,
            path=question.path,
        )
        return Decision(authorization.allows(asked), authorization.reason(asked))

    return decide


def _account(name: str) -> User:
    namespace = name.split(":")[2]
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return User(name, groups)


def objects_in_version(attempt: Attempt, matched: Resource) -> tuple[Raw | None, Raw | None]:
    """Return the new and the old object; a Scale is the same in all versions of its resource."""
    served = attempt.resource
    wanted = attempt.resource if attempt.is_about_part else matched
    return in_version(served, wanted, attempt.new), in_version(served, wanted, attempt.old)


def in_version(served: Resource, wanted: Resource, obj: Raw | None) -> Raw | None:
    """Return an object in another version of its resource."""
    if obj is None or served is wanted:
        return obj
    return wanted.strategy.from_storage(served.strategy.to_storage(obj))


def admission_request(attempt: Attempt, matched: Resource) -> Raw:
    """
    Return an AdmissionRequest without its objects.

    Empty fields are left out, as by the real server.
    """
    asked = attempt.resource
    write = attempt.write
    given = {
        "kind": _kind(matched.spoken(write.subresource)),
        "resource": _resource(matched),
        "subResource": write.subresource,
        "requestKind": _kind(asked.spoken(write.subresource)),
        "requestResource": _resource(asked),
        "requestSubResource": write.subresource,
        "name": attempt.requested_name,
        "namespace": attempt.namespace,
        "operation": attempt.operation,
        "userInfo": _user(write.user),
    }
    filled = {key: value for key, value in given.items() if value != ""}
    options = {} if attempt.operation == "CONNECT" else {"options": _options(attempt)}
    return {**filled, "dryRun": write.dry_run, **options}


def _kind(resource: Resource) -> Raw:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _resource(resource: Resource) -> Raw:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def _user(user: User) -> Raw:
    given = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in given.items() if value}


def _options(attempt: Attempt) -> Raw:
    options: Raw = {"kind": _OPTIONS[attempt.operation], "apiVersion": "meta.k8s.io/v1"}
    if attempt.write.dry_run:
        options["dryRun"] = ["All"]
    if attempt.write.field_manager:
        options["fieldManager"] = attempt.write.field_manager
    return options


def _namespace(found: Raw | None) -> Raw | None:
    if found is None:
        return None
    meta = {key: value for key, value in found["metadata"].items() if key in _METADATA}
    return {"metadata": meta, "spec": spec_of(found), "status": status_of(found)}

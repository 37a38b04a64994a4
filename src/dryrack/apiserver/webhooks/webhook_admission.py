"""
Admission webhooks, called about writes and deletions.

A webhook is called at its `url`, or at the address in an annotation of its Service. A Service
without the annotation has only virtual pods, which do not answer: such a webhook is skipped, and
its registration causes a warning. A webhook is called once for a write, whatever its
reinvocationPolicy. Webhooks are not called about admission configurations.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from dryrack.apiserver.answer.status import (
    Status,
    StatusError,
    bad_request,
    forbidden,
    internal_error,
)
from dryrack.apiserver.ownership.patching import JSON_PATCH, PatchProblem, apply_patch
from dryrack.apiserver.policies.match_rules import match_resource
from dryrack.apiserver.policies.policy_decisions import match_conditions_hold
from dryrack.apiserver.policies.policy_variables import (
    admission_request,
    in_version,
    objects_in_version,
    variables_of,
)
from dryrack.apiserver.webhooks.admission_reviews import (
    VERSIONS,
    ReviewRequest,
    ReviewResponse,
    Unanswered,
    endpoint_of,
)
from dryrack.cel import Err
from dryrack.extension.policies import PolicyCompiler
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.apiserver.authorization import Authorization
    from dryrack.apiserver.extension_points import Shapes
    from dryrack.apiserver.policies.match_rules import Attempt
    from dryrack.apiserver.registry import Registry, Resource
    from dryrack.kinds.raw import Raw

GROUP = "admissionregistration.k8s.io"
MUTATING = f"mutatingwebhookconfigurations.{GROUP}"
VALIDATING = f"validatingwebhookconfigurations.{GROUP}"
_WITHOUT_EFFECTS = ("None", "NoneOnDryRun")
_BAD_REQUEST = 400
# HTTP has no status above this.
_STATUS_MAX = 599


class WebhookAdmission:
    """Calls webhooks about writes."""

    def __init__(self, registry: Registry, authorization: Authorization, shapes: Shapes) -> None:
        self._registry = registry
        self._authorization = authorization
        self._shapes = shapes

    def mutate(self, attempt: Attempt) -> Raw | None:
        """Return the new object after all mutating webhooks; raise if one of them denies it."""
        for webhook in _webhooks(MUTATING, attempt):
            matched = self._match(webhook, attempt)
            if matched is None:
                continue
            verdict = _verdict(webhook, attempt, matched, mutates=True)
            if verdict is not None and verdict.patch:
                attempt = replace(
                    attempt, new=self._apply_patch(webhook, attempt, matched, verdict)
                )
        return attempt.new

    def validate(self, attempt: Attempt) -> None:
        """Raise a `StatusError` if a validating webhook denies the write."""
        for webhook in _webhooks(VALIDATING, attempt):
            matched = self._match(webhook, attempt)
            if matched is not None:
                _verdict(webhook, attempt, matched, mutates=False)

    def _match(self, webhook: Raw, attempt: Attempt) -> Resource | None:
        """Return the resource in the version that the webhook matches, or None."""
        rules = {**webhook, "resourceRules": webhook.get("rules")}
        versions = [
            each for each in self._registry.all() if each.storage == attempt.resource.storage
        ]
        matched = match_resource(rules, attempt, versions) if rules["resourceRules"] else None
        if matched is None or not webhook.get("matchConditions"):
            return matched
        program = PolicyCompiler({"matchConditions": webhook["matchConditions"]}).compile()
        holds = match_conditions_hold(
            program, variables_of(attempt, matched, None, self._authorization)
        )
        if isinstance(holds, Err):
            if webhook.get("failurePolicy") == "Ignore":
                return None
            raise forbidden(attempt.resource.as_resource, attempt.requested_name, holds.message)
        return matched if holds else None

    def _apply_patch(
        self, webhook: Raw, attempt: Attempt, matched: Resource, verdict: ReviewResponse
    ) -> Raw:
        new, _ = objects_in_version(attempt, matched)
        if new is None:
            raise internal_error(
                f'admission webhook "{webhook["name"]}" attempted to modify the object, which is '
                "not supported for this operation"
            )
        result = apply_patch(new, verdict.patch, content_type=JSON_PATCH, schema=None)
        if isinstance(result, PatchProblem):
            raise internal_error(result.message)
        spoken = matched.spoken(attempt.write.subresource)
        conformed = self._shapes.conform(spoken, result.object)
        if conformed.mismatch:
            raise internal_error(conformed.mismatch)
        if attempt.is_about_part:
            return conformed.object
        changed = matched.strategy.default(conformed.object, attempt.write)
        back = in_version(matched, attempt.resource, changed)
        assert back is not None, "an object stays one"
        return back


def _webhooks(kind: str, attempt: Attempt) -> Iterator[Raw]:
    """Yield the webhooks that have an address, by the names of their configurations."""
    if attempt.resource.group == GROUP or attempt.write.reviews is None:
        return
    configurations = attempt.write.lookup.list(kind, None)
    for configuration in sorted(configurations, key=lambda each: str(each["metadata"]["name"])):
        for webhook in get(configuration, "webhooks", ()):
            if endpoint_of(webhook["clientConfig"], attempt.write.lookup) is not None:
                yield webhook


def _verdict(
    webhook: Raw, attempt: Attempt, matched: Resource, *, mutates: bool
) -> ReviewResponse | None:
    """Return the verdict of the webhook, or None if its failure is ignored."""
    if attempt.write.dry_run and webhook.get("sideEffects") not in _WITHOUT_EFFECTS:
        raise bad_request(f'admission webhook "{webhook["name"]}" does not support dry run')
    reviews = attempt.write.reviews
    assert reviews is not None, "a webhook exists"
    answer = reviews.answer(_question(webhook, attempt, matched, mutates=mutates))
    match answer:
        case Unanswered():
            if webhook.get("failurePolicy") == "Ignore":
                return None
            raise internal_error(f'failed calling webhook "{webhook["name"]}": {answer.reason}')
        case ReviewResponse():
            for each in answer.warnings:
                attempt.write.warn(each)
            if not answer.is_allowed:
                raise _denial(webhook["name"], answer.status)
            return answer
        case _:
            assert_never(answer)


def _question(webhook: Raw, attempt: Attempt, matched: Resource, *, mutates: bool) -> ReviewRequest:
    config = webhook["clientConfig"]
    place = endpoint_of(config, attempt.write.lookup)
    assert place is not None, "a webhook without a place is skipped"
    offered = get(webhook, "admissionReviewVersions", ())
    version = next((each for each in offered if each in VERSIONS), "v1")
    new, old = objects_in_version(attempt, matched)
    request = {**admission_request(attempt, matched), "object": new, "oldObject": old}
    return ReviewRequest(
        url=place[0],
        server_name=place[1],
        authority=base64.b64decode(config.get("caBundle") or ""),
        timeout_seconds=webhook.get("timeoutSeconds") or 10,
        version=version,
        request=request,
        mutates=mutates,
    )


def _denial(name: str, status: Raw) -> StatusError:
    """Return the status in an answer, with the name of the webhook before its message."""
    why = status.get("message") or status.get("reason")
    message = f'admission webhook "{name}" denied the request'
    message += f": {why}" if why else " without explanation"
    code = status.get("code") or 0
    if not _BAD_REQUEST <= code <= _STATUS_MAX:
        code = _BAD_REQUEST
    return StatusError(Status(code, status.get("reason") or "", message, status.get("details")))

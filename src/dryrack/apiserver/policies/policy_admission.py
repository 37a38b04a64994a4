"""
Validating admission policies, enforced on writes and deletions.

A policy has the rules, and a binding selects the writes. The first denial ends the request; a
binding with `Warn` adds a header; `Audit` has no effect, because there is no audit log. Admission
configurations are not checked by policies: a bad policy could not be removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import Status, StatusError, forbidden
from dryrack.apiserver.policies.match_rules import match_resource
from dryrack.apiserver.policies.policy_decisions import Denial, denials
from dryrack.apiserver.policies.policy_variables import variables_of
from dryrack.extension.policies import PolicyCompiler
from dryrack.kinds.decode import decode
from dryrack.kinds.meta import LabelSelector
from dryrack.kinds.paths import get
from dryrack.kinds.selectors import matches_labels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.apiserver.authorization import Authorization
    from dryrack.apiserver.policies.match_rules import Attempt
    from dryrack.apiserver.registry import Registry, Resource
    from dryrack.extension.policies import CompiledPolicy
    from dryrack.kinds.raw import Raw

GROUP = "admissionregistration.k8s.io"
POLICIES = f"validatingadmissionpolicies.{GROUP}"
BINDINGS = f"validatingadmissionpolicybindings.{GROUP}"
_CODES = {"Forbidden": 403, "Invalid": 422, "RequestEntityTooLarge": 413}


class ConfigurationError(Exception):
    """A binding that is not valid; the text is the real server's."""


class PolicyAdmission:
    """Checks writes against the policies that are bound."""

    def __init__(self, registry: Registry, authorization: Authorization) -> None:
        self._registry = registry
        self._authorization = authorization
        # By name: the uid and generation of a policy, and what it compiles to.
        self._compiled: dict[str, tuple[tuple[str, int], CompiledPolicy]] = {}

    def check(self, attempt: Attempt) -> None:
        """Raise a `StatusError` if a policy denies the write."""
        if attempt.resource.group == GROUP:
            return
        bindings: dict[str, list[Raw]] = {}
        for each in attempt.write.lookup.list(BINDINGS, None):
            bindings.setdefault(each["spec"].get("policyName") or "", []).append(each)
        resources = self._registry.all()
        versions = [each for each in resources if each.storage == attempt.resource.storage]
        for name in sorted(bindings):
            policy = attempt.write.lookup.get(POLICIES, "", name)
            if policy is None:
                continue
            constraints = get(policy["spec"], "matchConstraints", {})
            matched = match_resource(constraints, attempt, versions)
            if matched is None:
                continue
            for binding in bindings[name]:
                scope = get(binding["spec"], "matchResources", {})
                if match_resource(scope, attempt, versions) is not None:
                    for denial in self._find_denials(policy, binding, attempt, matched):
                        _act(policy, binding, denial, attempt)

    def _find_denials(
        self, policy: Raw, binding: Raw, attempt: Attempt, matched: Resource
    ) -> Iterator[Denial]:
        spec = policy["spec"]
        ignores_failures = spec.get("failurePolicy") == "Ignore"
        try:
            parameters = list(policy_parameters(self._registry, spec, binding["spec"], attempt))
        except ConfigurationError as error:
            if not ignores_failures:
                # A broken binding denies the write, also without the action Deny.
                denial = Denial(f"failed to configure binding: {error}")
                raise _refusal(policy, binding, denial, attempt) from None
            return
        meta = policy["metadata"]
        state = (meta.get("uid") or "", meta.get("generation") or 0)
        compiled = self._compiled.get(meta["name"])
        if compiled is None or compiled[0] != state:
            compiled = (state, PolicyCompiler(spec, meta["name"]).compile())
            self._compiled[meta["name"]] = compiled
        for params in parameters:
            values = variables_of(attempt, matched, params, self._authorization)
            yield from denials(compiled[1], values, ignores_failures=ignores_failures)


def policy_parameters(
    registry: Registry, spec: Raw, bound: Raw, attempt: Attempt
) -> Iterator[Raw | None]:
    """Yield the objects with which a policy is parametrized; it is evaluated with each of them."""
    kind = spec.get("paramKind")
    reference = bound.get("paramRef")
    if kind is None or reference is None:
        yield None
        return
    resource = registry.by_kind(kind["apiVersion"], kind["kind"])
    if resource is None:
        shown = f"{kind['apiVersion']}, Kind={kind['kind']}"
        raise ConfigurationError(f"paramKind kind `{shown}` not known")
    objects = list(_find_parameters(resource, reference, attempt))
    if not objects and reference.get("parameterNotFoundAction") == "Deny":
        raise ConfigurationError(
            "no params found for policy binding with `Deny` parameterNotFoundAction"
        )
    yield from objects


def _find_parameters(resource: Resource, reference: Raw, attempt: Attempt) -> Iterator[Raw]:
    namespace = reference.get("namespace") or ""
    if namespace and not resource.namespaced:
        raise ConfigurationError(
            "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
        )
    if resource.namespaced:
        namespace = namespace or attempt.namespace
        if not namespace:
            raise ConfigurationError(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped "
                "resources"
            )
    name = reference.get("name")
    selector = decode(get(reference, "selector", {}), LabelSelector)
    for obj in attempt.write.lookup.list(resource.storage, namespace or None):
        meta = obj["metadata"]
        if name:
            is_selected = meta["name"] == name
        else:
            is_selected = matches_labels(selector, get(meta, "labels", {}))
        if is_selected:
            is_served = obj["apiVersion"] == resource.api_version
            yield obj if is_served else resource.strategy.from_storage(obj)


def _act(policy: Raw, binding: Raw, denial: Denial, attempt: Attempt) -> None:
    actions = get(binding["spec"], "validationActions", ())
    if "Deny" in actions:
        raise _refusal(policy, binding, denial, attempt)
    if "Warn" in actions:
        attempt.write.warn(
            f"Validation failed for ValidatingAdmissionPolicy '{policy['metadata']['name']}' "
            f"with binding '{binding['metadata']['name']}': {denial.message}"
        )


def _refusal(policy: Raw, binding: Raw, denial: Denial, attempt: Attempt) -> StatusError:
    message = (
        f"ValidatingAdmissionPolicy '{policy['metadata']['name']}' with binding "
        f"'{binding['metadata']['name']}' denied request: {denial.message}"
    )
    status = forbidden(attempt.resource.as_resource, attempt.name, message).status
    details = {**(status.details or {}), "causes": [{"message": message}]}
    code = _CODES[denial.reason]
    return StatusError(Status(code, denial.reason, status.message, details))

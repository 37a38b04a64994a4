"""
Mutating admission policies, applied to creates and updates.

A policy says how an object changes and a binding where. Policies apply in the order of their names,
and each one sees the object as those before it leave it. Policies with the reinvocation policy
`IfNeeded` apply once more after everything else has changed the object.

Configurations of admission are never changed by policies: a bad one could not be taken back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.answer.status import Status, StatusError, forbidden, internal_error
from dryrack.apiserver.ownership.patching import json_patch
from dryrack.apiserver.ownership.patching.problems import PatchError
from dryrack.apiserver.ownership.server_side_apply.atoms import atom_of
from dryrack.apiserver.ownership.server_side_apply.merging import merge
from dryrack.apiserver.ownership.server_side_apply.typed import TypeViolationError, check
from dryrack.apiserver.policies.match_rules import match_resource
from dryrack.apiserver.policies.policy_admission import (
    GROUP,
    ConfigurationError,
    policy_parameters,
)
from dryrack.apiserver.policies.policy_decisions import evaluate_mutation, match_conditions_hold
from dryrack.apiserver.policies.policy_variables import (
    in_version,
    objects_in_version,
    variables_of,
)
from dryrack.cel import Err
from dryrack.cel.patch_types import NoJsonError, ObjectValue, json_of, misplaced_types
from dryrack.extension.policies import PolicyCompiler
from dryrack.kinds.paths import get, metadata_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.apiserver.authorization import Authorization
    from dryrack.apiserver.extension_points import Shapes
    from dryrack.apiserver.field_adapters import SchemaSource
    from dryrack.apiserver.ownership.server_side_apply.atoms import Atom
    from dryrack.apiserver.policies.match_rules import Attempt
    from dryrack.apiserver.registry import Registry, Resource
    from dryrack.cel.patch_types import JsonPatchValue
    from dryrack.extension.policies import CompiledPolicy, Mutation
    from dryrack.kinds.raw import Raw

POLICIES = f"mutatingadmissionpolicies.{GROUP}"
BINDINGS = f"mutatingadmissionpolicybindings.{GROUP}"

Invocation = tuple[str, str, str, str]
"""A policy, a binding, and the namespace and name of the parameters."""


Problem = tuple[str, str]
"""Why a policy cannot be applied, and the reason in the Status."""


class MutationError(Exception):
    """A mutation that cannot be made; the text is the real server's."""


class PolicyMutation:
    """Changes objects as bound policies say."""

    def __init__(
        self,
        registry: Registry,
        authorization: Authorization,
        shapes: Shapes,
        schemas: SchemaSource,
    ) -> None:
        self._registry = registry
        self._authorization = authorization
        self._shapes = shapes
        self._schemas = schemas
        # By name: the uid and generation of a policy, and what it compiles to.
        self._compiled: dict[str, tuple[tuple[str, int], CompiledPolicy]] = {}

    def mutate(
        self, attempt: Attempt, only: frozenset[Invocation] | None = None
    ) -> tuple[Attempt, frozenset[Invocation]]:
        """
        Return the attempt with the object as policies leave it, and which to invoke again.

        `only` limits a second round to the invocations that the first one returned. Raises a
        `StatusError` if a policy that must not fail does.
        """
        again: set[Invocation] = set()
        problems: list[Problem] = []
        if attempt.new is None or attempt.operation == "CONNECT" or attempt.resource.group == GROUP:
            return attempt, frozenset()
        for policy, binding in _bound_policies(attempt):
            matched = self._match(policy, binding, attempt)
            if matched is None:
                continue
            found: list[Problem] = []
            for params in self._parameters(policy, binding, attempt, found):
                meta = metadata_of(params or {})
                key = (
                    _name(policy),
                    _name(binding),
                    meta.get("namespace") or "",
                    meta.get("name") or "",
                )
                if only is None or key in only:
                    changed = self._invoke(policy, params, attempt, matched, found)
                    if changed is not None and policy["spec"]["reinvocationPolicy"] == "IfNeeded":
                        again.add(key)
                    attempt = changed or attempt
            if policy["spec"].get("failurePolicy") != "Ignore":
                names = f"policy '{_name(policy)}' with binding '{_name(binding)}'"
                problems += [(f"{names} denied request: {told}", why) for told, why in found]
        if problems:
            raise _refusal(problems, attempt)
        return attempt, frozenset(again)

    def _match(self, policy: Raw, binding: Raw, attempt: Attempt) -> Resource | None:
        """Return the resource as which a policy and a binding are about the write."""
        found = self._registry.all()
        versions = [each for each in found if each.storage == attempt.resource.storage]
        matched = match_resource(get(policy["spec"], "matchConstraints", {}), attempt, versions)
        scope = get(binding["spec"], "matchResources", {})
        return matched if matched and match_resource(scope, attempt, versions) else None

    def _parameters(
        self, policy: Raw, binding: Raw, attempt: Attempt, problems: list[Problem]
    ) -> list[Raw | None]:
        try:
            return list(policy_parameters(self._registry, policy["spec"], binding["spec"], attempt))
        except ConfigurationError as error:
            problems.append((f"failed to configure binding: {error}", "Forbidden"))
            return []

    def _invoke(
        self,
        policy: Raw,
        params: Raw | None,
        attempt: Attempt,
        matched: Resource,
        problems: list[Problem],
    ) -> Attempt | None:
        """Return the attempt after all mutations of a policy; None if it is not about the write."""
        meta = policy["metadata"]
        state = (meta.get("uid") or "", meta.get("generation") or 0)
        known = self._compiled.get(meta["name"])
        if known is None or known[0] != state:
            known = (state, PolicyCompiler(policy["spec"], meta["name"]).compile())
            self._compiled[meta["name"]] = known
        program = known[1]
        values = variables_of(attempt, matched, params, self._authorization)
        holds = match_conditions_hold(program, values)
        if isinstance(holds, Err):
            problems.append((holds.message, "Invalid"))
            return None
        if not holds:
            return None
        for mutation in program.mutations:
            # Variables are evaluated again, because the object is another one now.
            values = variables_of(attempt, matched, params, self._authorization)
            found = evaluate_mutation(program, mutation, values)
            try:
                if isinstance(found, Err):
                    raise MutationError(found.message)
                attempt = self._apply_mutation(mutation, found, attempt, matched)
            except MutationError as error:
                problems.append((str(error), "Invalid"))
        return attempt

    def _apply_mutation(
        self, mutation: Mutation, value: Any, attempt: Attempt, matched: Resource
    ) -> Attempt:
        new, _ = objects_in_version(attempt, matched)
        assert new is not None, "deletions are not mutated"
        spoken = matched.spoken(attempt.write.subresource)
        if mutation.patch_type == "JSONPatch":
            made = _apply_json_patch(new, value)
            conformed = self._shapes.conform(spoken, made)
            if conformed.strict:
                raise internal_error(f"strict decoding error: {', '.join(conformed.strict)}")
        else:
            made = _merge_configuration(atom_of(self._schemas.of(spoken)), new, value)
            conformed = self._shapes.conform(spoken, made)
        if conformed.mismatch:
            raise internal_error(conformed.mismatch)
        if attempt.is_about_part:
            return replace(attempt, new=conformed.object)
        changed = matched.strategy.default(conformed.object, attempt.write)
        return replace(attempt, new=in_version(matched, attempt.resource, changed))


def _bound_policies(attempt: Attempt) -> Iterator[tuple[Raw, Raw]]:
    """Yield each policy that exists with each of its bindings, in the order of their names."""
    lookup = attempt.write.lookup
    found = lookup.list(BINDINGS, None)
    for binding in sorted(found, key=lambda each: (each["spec"]["policyName"], _name(each))):
        policy = lookup.get(POLICIES, "", binding["spec"]["policyName"])
        if policy is not None:
            yield policy, binding


def _name(obj: Raw) -> str:
    return str(obj["metadata"]["name"])


def _apply_json_patch(new: Raw, patches: list[JsonPatchValue]) -> Raw:
    """Return an object with the operations of an expression applied."""
    try:
        wanted, _ = json_patch.read_operations([_operation(each) for each in patches])
        made: Raw = json_patch.apply(new, wanted)
    except NoJsonError as error:
        told = "JSONPath valueExpression evaluated to a type that could not marshal to JSON"
        raise MutationError(f"{told}: {error}") from None
    except PatchError as error:
        told = str(error)
        if told.endswith("test failed"):
            # A patch whose test fails is not applied, and nothing is wrong with that.
            return new
        raise MutationError(f"JSONPath: {told}") from None
    if not isinstance(made, dict):
        raise MutationError("JSONPath: the patched value is not an object")
    return made


def _operation(patch: JsonPatchValue) -> Raw:
    operation: Raw = {"op": patch.op, "path": patch.path}
    if patch.origin:
        operation["from"] = patch.origin
    for value in patch.value:
        if isinstance(value, ObjectValue) and (problems := list(misplaced_types(value))):
            raise MutationError("type mismatch: " + "\n".join(problems))
        operation["value"] = json_of(value)
    return operation


def _merge_configuration(atom: Atom, new: Raw, value: ObjectValue) -> Raw:
    """Return an object with an apply configuration merged into it."""
    if problems := list(misplaced_types(value)):
        raise MutationError("type mismatch: " + "\n".join(problems))
    try:
        patch: Raw = json_of(value)
    except NoJsonError as error:
        raise MutationError(f"invalid return type: {error}") from None
    patch |= {key: new[key] for key in ("apiVersion", "kind") if key in new}
    try:
        told = "failed to convert patch object to typed object"
        check(atom, patch, allow_duplicates=False)
        if atomics := list(_atomics(atom, patch)):
            found = ", ".join(atomics)
            raise MutationError(
                "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, "
                f"maps or structs: {found}"
            )
        told = "failed to convert original object to typed object"
        check(atom, new, allow_duplicates=False)
    except TypeViolationError as error:
        raise MutationError(f"error applying patch: {told}: {error}") from None
    made: Raw = merge(atom, new, patch)
    return made


def _atomics(atom: Atom, value: Any, path: str = "") -> Iterator[str]:
    """Yield the places of a patch whose value would replace all that is there."""
    if isinstance(value, dict) and atom.map is not None:
        if atom.map.atomic:
            yield path
        for name, inner in value.items():
            child = atom.map.child(name) if atom.map.has_field(name) else None
            if child is not None:
                yield from _atomics(child, inner, f"{path}.{name}")
    elif isinstance(value, list) and atom.list is not None:
        if not atom.list.associative:
            yield path
        for index, item in enumerate(value):
            yield from _atomics(atom.list.element, item, f"{path}[{index}]")


def _refusal(problems: list[Problem], attempt: Attempt) -> StatusError:
    """Return a refusal with the message and reason of the first problem, whose code is 403."""
    status = forbidden(attempt.resource.as_resource, attempt.name, "").status
    message, reason = problems[0]
    details = {**(status.details or {}), "causes": [{"message": told} for told, _ in problems]}
    return StatusError(Status(status.code, reason, message, details))

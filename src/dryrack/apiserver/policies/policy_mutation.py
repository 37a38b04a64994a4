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
"""The message about a policy that cannot be applied, and the reason in the Status."""


class MutationError(Exception):
    """A mutation that cannot be made; the text is the real server's."""


class PolicyMutation:
    """Changes objects by the mutations of bound policies."""

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
        resources = self._registry.all()
        versions = [each for each in resources if each.storage == attempt.resource.storage]
        for policy, binding in _bound_policies(attempt):
            spec = policy["spec"]
            matched = match_resource(get(spec, "matchConstraints", {}), attempt, versions)
            scope = get(binding["spec"], "matchResources", {})
            if matched is None or match_resource(scope, attempt, versions) is None:
                continue
            failures: list[Problem] = []
            parameters: list[Raw | None] = []
            try:
                parameters = list(policy_parameters(self._registry, spec, binding["spec"], attempt))
            except ConfigurationError as error:
                failures.append((f"failed to configure binding: {error}", "Forbidden"))
            for params in parameters:
                meta = metadata_of(params or {})
                place = (meta.get("namespace") or "", meta.get("name") or "")
                key = (_name(policy), _name(binding), *place)
                if only is None or key in only:
                    changed = self._invoke(policy, params, attempt, matched, failures)
                    if changed is not None and spec["reinvocationPolicy"] == "IfNeeded":
                        again.add(key)
                    attempt = changed or attempt
            if spec.get("failurePolicy") != "Ignore":
                names = f"policy '{_name(policy)}' with binding '{_name(binding)}'"
                problems += [(f"{names} denied request: {text}", why) for text, why in failures]
        if problems:
            # The message and reason are those of the first problem; the code is 403.
            status = forbidden(attempt.resource.as_resource, attempt.name, "").status
            message, reason = problems[0]
            causes = [{"message": text} for text, _ in problems]
            details = {**(status.details or {}), "causes": causes}
            raise StatusError(Status(status.code, reason, message, details))
        return attempt, frozenset(again)

    def _invoke(
        self,
        policy: Raw,
        params: Raw | None,
        attempt: Attempt,
        matched: Resource,
        problems: list[Problem],
    ) -> Attempt | None:
        """Return the attempt after all mutations of a policy; None if the policy does not match."""
        meta = policy["metadata"]
        state = (meta.get("uid") or "", meta.get("generation") or 0)
        compiled = self._compiled.get(meta["name"])
        if compiled is None or compiled[0] != state:
            compiled = (state, PolicyCompiler(policy["spec"], meta["name"]).compile())
            self._compiled[meta["name"]] = compiled
        program = compiled[1]
        values = variables_of(attempt, matched, params, self._authorization)
        holds = match_conditions_hold(program, values)
        if isinstance(holds, Err):
            problems.append((holds.message, "Invalid"))
            return None
        if not holds:
            return None
        for mutation in program.mutations:
            # Variables are evaluated again, because the object has changed.
            values = variables_of(attempt, matched, params, self._authorization)
            value = evaluate_mutation(program, mutation, values)
            try:
                if isinstance(value, Err):
                    raise MutationError(value.message)
                attempt = self._apply_mutation(mutation, value, attempt, matched)
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
            patched = _apply_json_patch(new, value)
            conformed = self._shapes.conform(spoken, patched)
            if conformed.strict:
                raise internal_error(f"strict decoding error: {', '.join(conformed.strict)}")
        else:
            patched = _merge_configuration(atom_of(self._schemas.of(spoken)), new, value)
            conformed = self._shapes.conform(spoken, patched)
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

"""
The strategy of definitions: defaults, validation and deletion.

The server writes the accepted names of a definition into its status. A definition is never removed
at once, because its objects are deleted first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import bad_request
from dryrack.apiserver.strategy import Strategy, Write, keep_status, object_meta, status_only
from dryrack.apiserver.webhooks.admission_reviews import ADDRESS, endpoint_of
from dryrack.extension.definitions import DefinitionError, DefinitionRules, problems_of_definition
from dryrack.kinds.paths import get, status_of
from dryrack.kinds.validation.meta import common_metadata_change, metadata_change
from dryrack.kinds.validation.problems import FieldProblem, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


class DefinitionStrategy(Strategy):
    """The strategy of CustomResourceDefinitions."""

    updates_unconditionally = False

    def __init__(self) -> None:
        super().__init__(DefinitionRules())

    def default(self, obj: Raw, write: Write) -> Raw:
        try:
            return self.rules.default(obj)
        except DefinitionError as error:
            raise bad_request(str(error)) from error

    def approve(self, obj: Raw, old: Raw | None, write: Write) -> None:
        conversion = get(obj["spec"], "conversion", {})
        if write.subresource or conversion.get("strategy") != "Webhook":
            return
        config = conversion["webhook"]["clientConfig"]
        if endpoint_of(config, write.lookup) is None:
            service = config["service"]
            write.warn(
                "spec.conversion.webhook: no program runs in the pods of the Service "
                f"{service['namespace']}/{service['name']}, and objects whose fields differ "
                "between versions are refused; run the webhook elsewhere, and annotate the "
                f"Service with {ADDRESS}=HOST:PORT"
            )

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        stored = obj["status"].get("storedVersions")
        names = {"plural": "", "kind": ""}
        status = {"conditions": None, "acceptedNames": names, "storedVersions": stored}
        meta = {**obj["metadata"], "generation": 1}
        return {**obj, "metadata": meta, "status": status}

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        if write.subresource == "status":
            return status_only(obj, old)
        new = keep_status(obj, old)
        # Versions that were the stored one are recorded, because objects may be left in them.
        status: Raw = dict(status_of(new))
        stored = list(get(status, "storedVersions", ()))
        for version in get(new, "spec.versions", ()):
            if version.get("storage") and version.get("name") not in stored:
                stored.append(version["name"])
        new["status"] = {**status, "storedVersions": stored}
        if new.get("spec") == old.get("spec"):
            return new
        generation = (old["metadata"].get("generation") or 0) + 1
        return {**new, "metadata": {**new["metadata"], "generation": generation}}

    def validate_update(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        meta = object_meta(obj)
        before = object_meta(old)
        found = [
            *common_metadata_change(meta, before, namespaced=False, behaviour=self.rules.behaviour),
            *metadata_change(meta, before, self.rules.behaviour),
        ]
        if write.subresource == "status":
            return found
        return [*found, *problems_of_definition(obj), *_find_immutable_changes(obj, old)]

    def prepare_delete(self, obj: Raw, write: Write) -> Raw:
        meta = dict(obj["metadata"])
        finalizers = get(meta, "finalizers", [])
        if CLEANUP not in finalizers:
            finalizers = [*finalizers, CLEANUP]
            # Unlike for other kinds, the mark is no change of the generation.
            meta["generation"] = (meta.get("generation") or 2) - 1
        condition = {
            "type": "Terminating",
            "status": "True",
            "lastTransitionTime": write.now,
            "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; "
            "CustomResource deletion will begin soon",
        }
        status = with_condition(status_of(obj), condition)
        return {**obj, "metadata": {**meta, "finalizers": finalizers}, "status": status}

    def is_held(self, obj: Raw) -> bool:
        return "deletionTimestamp" not in obj["metadata"]


def _find_immutable_changes(obj: Raw, old: Raw) -> Iterator[FieldProblem]:
    paths = ["spec.group", "spec.names.plural"]
    if condition_of(old, "Established").get("status") == "True":
        paths = ["spec.scope", "spec.names.kind", *paths]
    for path in paths:
        value = get(obj, path) or ""
        if value != (get(old, path) or ""):
            yield invalid(path, value, "field is immutable")


def condition_of(definition: Raw, kind: str) -> Raw:
    """Return a condition by its type, or {}."""
    conditions = get(definition, "status.conditions", ())
    return next((each for each in conditions if each.get("type") == kind), {})


def with_condition(status: Raw, condition: Raw) -> Raw:
    """Return a status with a condition, whose time changes only with its status."""
    conditions = list(get(status, "conditions", ()))
    for index, each in enumerate(conditions):
        if each.get("type") == condition["type"]:
            same = each.get("status") == condition["status"]
            since = each["lastTransitionTime"] if same else condition["lastTransitionTime"]
            conditions[index] = {**condition, "lastTransitionTime": since}
            return {**status, "conditions": conditions}
    return {**status, "conditions": [*conditions, condition]}

"""Definitions by themselves: their defaults, and what is wrong with a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.extension.definitions.definition_problems import name_problem, problems_of_definition
from dryrack.extension.definitions.reading import read_definition
from dryrack.kinds.paths import get, spec_of, status_of
from dryrack.kinds.rules.json_edit import set_missing, update_at
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.validation.meta import Naming, common_metadata, metadata
from dryrack.kinds.validation.names import path_segment
from dryrack.kinds.validation.problems import FieldProblem, invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.meta import ObjectMeta
    from dryrack.kinds.raw import Raw

# The name follows from the contents, and is judged together with them.
_NAMING = Naming(path_segment, None)


class DefinitionRules(KindRules):
    """CustomResourceDefinitions; `default` raises a `DefinitionError` for a schema of no sense."""

    def __init__(self) -> None:
        super().__init__(namespaced=False, naming=_NAMING, has_status=True)

    def default(self, obj: Raw) -> Raw:
        obj = read_definition(obj)
        spec = spec_of(obj)
        filled = {
            **spec,
            "names": _names(get(spec, "names", {})),
            "conversion": _conversion(spec.get("conversion")),
        }
        return {**obj, "spec": filled, "status": _status(obj, filled)}

    def as_new(self, obj: Raw) -> Raw:
        return {**obj, "status": {"storedVersions": obj["status"].get("storedVersions")}}

    def new_problems(self, obj: Raw, meta: ObjectMeta) -> Sequence[FieldProblem]:
        named = name_problem(obj)
        found = [
            *metadata(meta, self.naming, namespaced=False),
            *((invalid("metadata.name", meta.name, named),) if named else ()),
            *problems_of_definition(obj),
        ]
        return found or tuple(common_metadata(meta, namespaced=False))


def _conversion(conversion: Raw | None) -> Raw:
    if not conversion:
        return {"strategy": "None"}
    return update_at(
        conversion, "webhook.clientConfig.service", lambda one: set_missing(one, {"port": 443})
    )


def _names(names: Raw) -> Raw:
    kind = names.get("kind") or ""
    filled = dict(names)
    if not names.get("singular") and kind:
        filled["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        filled["listKind"] = f"{kind}List"
    return filled


def _status(obj: Raw, spec: Raw) -> Raw:
    status: Raw = dict(status_of(obj))
    if not status.get("storedVersions"):
        stored = [v.get("name") for v in get(spec, "versions", ()) if v.get("storage")][:1]
        if stored:
            status["storedVersions"] = stored
    return status

"""Service accounts, roles and their bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategies.validated_as_new import ValidatedAsNewStrategy
from dryrack.kinds.rules.accounts import RoleBindingRules, RoleRules
from dryrack.kinds.rules.json_edit import map_items, null_if_empty
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.validation.problems import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem


class ServiceAccountStrategy(ValidatedAsNewStrategy):
    """Service accounts. Only the names of referenced secrets are stored."""

    def __init__(self) -> None:
        super().__init__(KindRules(namespaced=True))

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        return map_items(obj, "secrets", _name_only)

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        return map_items(obj, "secrets", _name_only)


def _name_only(secret: Raw) -> Raw:
    return {"name": secret["name"]} if secret.get("name") else {}


class RoleStrategy(ValidatedAsNewStrategy):
    """Roles, of a namespace or of the cluster."""

    creates_on_update = True

    def __init__(self, *, namespaced: bool) -> None:
        super().__init__(RoleRules(namespaced=namespaced))

    def to_storage(self, obj: Raw) -> Raw:
        return null_if_empty(obj, "rules")


class RoleBindingStrategy(ValidatedAsNewStrategy):
    """Bindings of roles to users, groups and service accounts."""

    creates_on_update = True

    def __init__(self, *, namespaced: bool) -> None:
        super().__init__(RoleBindingRules(namespaced=namespaced))

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        if obj.get("roleRef") != old.get("roleRef"):
            yield invalid("roleRef", obj.get("roleRef"), "cannot change roleRef")

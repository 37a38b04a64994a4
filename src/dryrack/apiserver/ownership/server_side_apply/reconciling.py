"""
Owners under a schema that has changed.

The schema of a custom resource may come to say that a list or a map is one value, after some
have come to own parts of it. Then whoever owned a part owns the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.ownership.server_side_apply.fieldsets import SELF

if TYPE_CHECKING:
    from dryrack.apiserver.ownership.server_side_apply.atoms import Atom
    from dryrack.apiserver.ownership.server_side_apply.fieldsets import FieldSet


def reconciled(atom: Atom, fields: FieldSet) -> FieldSet:
    """The set as the schema has it now; the same one if nothing is to be changed."""
    made = {element: _node(atom, element, node) for element, node in fields.items()}
    is_same = all(made[element] is node for element, node in fields.items())
    return fields if is_same else made


def _node(atom: Atom, element: str, node: FieldSet) -> FieldSet:
    child = None if element == SELF else _at(atom, element)
    if child is None or not node:
        return node
    return {} if _is_one_value(child) else reconciled(child, node)


def _at(atom: Atom, element: str) -> Atom | None:
    if element.startswith("f:"):
        return None if atom.map is None else atom.map.child(element[2:])
    return None if atom.list is None else atom.list.element


def _is_one_value(atom: Atom) -> bool:
    """What has no schema of its own is taken as it was."""
    if atom.map is not None:
        return atom.map.atomic and atom.map.schema is not None
    return atom.list is not None and not atom.scalar and not atom.list.associative

"""
Namespaces.

`spec.finalizers` keeps a deleted namespace until the controller that empties it removes them with
the subresource `finalize`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategy import Strategy, keep_status, status_and_metadata
from dryrack.kinds.paths import get, status_of
from dryrack.kinds.rules.json_edit import with_value
from dryrack.kinds.rules.namespaces import (
    FINALIZER,
    NamespaceRules,
    finalizer_problems,
    with_name_label,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem


class NamespaceStrategy(Strategy):
    """Namespaces, from creation to finalization."""

    selectable_fields = ("status.phase",)
    field_refusal = "field label not supported: {label}"

    def __init__(self) -> None:
        super().__init__(NamespaceRules())

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        made = with_name_label(obj)
        finalizers = get(made, "spec.finalizers", [])
        if FINALIZER not in finalizers:
            finalizers = [*finalizers, FINALIZER]
        return {**made, "spec": {"finalizers": finalizers}, "status": {"phase": "Active"}}

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        if write.subresource == "status":
            return status_and_metadata(obj, old)
        kept = keep_status(obj, old)
        return (
            kept if write.subresource == "finalize" else with_value(kept, "spec", old.get("spec"))
        )

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        if write.subresource != "finalize":
            return ()
        given = get(obj, "spec.finalizers", ())
        return [
            problem
            for position, name in enumerate(given)
            for problem in finalizer_problems(f"spec.finalizers[{position}]", name)
        ]

    def prepare_delete(self, obj: Raw, write: Write) -> Raw:
        return {**obj, "status": {**status_of(obj), "phase": "Terminating"}}

    def is_held(self, obj: Raw) -> bool:
        return bool(get(obj, "spec.finalizers"))

"""
Would the API server take this object?

`validate` answers with everything it would have against a create, or against an update of `old`:
the same reasons, fields and messages as in the causes of its `Status`, for Kubernetes 1.36 with
default gates. Whether a document has the right types at all is asked before, by `decode`; of
those only times are left to ask here, and one that is none is the whole answer, with the reason
`TYPE_INVALID`: the server would refuse to read such an object (400), not to accept it (422).
Permissions and admission plugins are not part of the answer. Expressions are checked by whoever
can compile them; without a checker only their length is.

    problems = validate(resource_slice)
    problems = validate(claim, expressions=checker)
    problems = validate(allocated, old=claim, subresource="status")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.problems import FieldProblem, Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.kinds.core import Pod
    from dryrack.kinds.validation.parts import ExpressionChecker
    from dryrack.kinds.validation.writes import Validated

__all__ = ["FieldProblem", "Reason", "validate", "warnings"]


def validate(
    obj: Validated | Pod,
    *,
    old: Validated | None = None,
    subresource: str = "",
    expressions: ExpressionChecker | None = None,
    namespace_labels: Mapping[str, str] | None = None,
    document: Mapping[str, Any] | None = None,
) -> tuple[FieldProblem, ...]:
    """
    All problems, in the server's order; entries of maps in the order of their keys.

    Of a pod only what it says about claims is looked at. An update can name one problem of
    metadata twice, as the server does. `namespace_labels` are those of the object's namespace,
    if they are known: admin access depends on one of them. `document` is what the object was
    decoded from, if it is at hand; the server tells an empty list from none in a few places.
    """
    # Problems are spoken of in many places that validate nothing, and need not wait for this.
    from dryrack.kinds.core import Pod
    from dryrack.kinds.validation.emptiness import empty_lists
    from dryrack.kinds.validation.parts import Expressions
    from dryrack.kinds.validation.pods import pod_claims
    from dryrack.kinds.validation.times import malformed_times
    from dryrack.kinds.validation.writes import Given, created, updated

    if isinstance(obj, Pod):
        return tuple(pod_claims(obj))
    unreadable = tuple(malformed_times(obj))
    if unreadable:
        return unreadable
    given = Given(Expressions(expressions), namespace_labels)
    if old is None:
        problems = created(obj, given)
    else:
        problems = updated(obj, old, given, subresource=subresource)
    return (*problems, *empty_lists(obj, document or {}))


def warnings(obj: Validated) -> tuple[str, ...]:
    """What the server accepts but warns of."""
    from dryrack.kinds.resource import ResourceSlice

    if isinstance(obj, ResourceSlice) and obj.spec.driver != obj.spec.driver.lower():
        shown = quoted(obj.spec.driver)
        return (
            f"spec.driver: driver names should be lowercase; {shown} contains uppercase characters",
        )
    return ()

"""
Warnings about the input files of a command.

Invalid objects, misspelled fields and duplicate objects change the result of `dryrack allocate`
in a way that the reader does not expect, so the command prints the first of them. `dryrack lint`
prints all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds import shape
from dryrack.kinds.convert import misplaced
from dryrack.kinds.core import Namespace, Pod
from dryrack.kinds.migrations import misplaced_in, moved
from dryrack.kinds.releases import FIELD_GATES
from dryrack.kinds.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from dryrack.kinds.text.source_positions import parse_path
from dryrack.kinds.validation import Reason
from dryrack.kinds.validation.device_rules import validate
from dryrack.kinds.validation.pods import pod_claims

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dryrack.kinds.catalog import Typed
    from dryrack.kinds.documents import Problem
    from dryrack.kinds.releases import FeatureSet
    from dryrack.kinds.validation import FieldProblem

# Kinds of which every field is known.
_WHOLE = (Pod, DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice)


def unknown_fields(objects: Iterable[Typed], gates: Mapping[str, bool]) -> Iterator[Problem]:
    """Yield the fields that a release with these feature gates does not have."""
    for each in objects:
        if isinstance(each.object, _WHOLE):
            unknown = shape.unknown(each.raw, shape.of(type(each.object)))
            for path in (*unknown, *misplaced(each.document.raw)):
                gate = FIELD_GATES.get(str(path[-1]), "")
                if gate in gates:
                    if not gates[gate]:
                        message = f"{shape.render(path)}: its feature gate {gate} is off"
                        fix = f"add --feature-gates={gate}=true, or remove the field"
                        yield each.document.problem(path, message, fix)
                    continue
                message = f"{shape.render(path)}: unknown field; dryrack ignores it"
                yield each.document.problem(path, message, moved(path, each.document.api_version))


def refusals(objects: Sequence[Typed], features: FeatureSet) -> Iterator[Problem]:
    """Yield the problems for which an API server with these features rejects the objects."""
    from dryrack.cel.admission import SelectorChecker

    compiler = SelectorChecker(features)
    labels = {
        each.object.metadata.name: each.object.metadata.labels
        for each in objects
        if isinstance(each.object, Namespace)
    }
    for each in objects:
        if not isinstance(each.object, _WHOLE):
            continue
        # A claim that comes from a cluster was accepted there. All others are created in the
        # namespaces of the files; one that is not in the files has no labels.
        namespace = each.object.metadata.namespace or "default"
        known_labels = None if each.document.uid else labels.get(namespace, {})
        problems: Iterable[FieldProblem]
        if isinstance(each.object, Pod):
            problems = pod_claims(each.object)
        else:
            problems = validate(
                each.object,
                checker=compiler,
                namespace_labels=known_labels,
                document=each.raw,
                features=features,
            )
        for problem in problems:
            first, *_ = problem.message.splitlines()
            yield each.document.problem(
                problem.field,
                f"the API server would reject this: {problem.field}: {first}",
                misplaced_in(each.document.raw, parse_path(problem.field))
                or _admin_fix(problem, namespace),
            )


def _admin_fix(problem: FieldProblem, namespace: str) -> str:
    if problem.reason is not Reason.FORBIDDEN or not problem.field.endswith(".adminAccess"):
        return ""
    return f"add Namespace {namespace} with this label to the files"

"""
From files to typed objects, for the commands that reckon with them.

All problems of all files are told at once, each with its line. Kinds that Kubernetes has but
allocation does not look at are passed over with a word, because people keep whole applications
in one file; a kind that nobody knows is a mistake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.cli.files import ContentError, read_sources
from dryrack.cli.output import say
from dryrack.kinds.catalog import Typed, typed
from dryrack.kinds.documents import Document, Problem, read

if TYPE_CHECKING:
    from collections.abc import Sequence

# The built-in kinds that can stand beside claims in a file without taking part.
BYSTANDERS = frozenset(
    {
        *("Service", "ServiceAccount", "Secret", "Endpoints", "EndpointSlice", "Event", "Lease"),
        *("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"),
        *("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "NetworkPolicy", "Ingress"),
        *("PersistentVolume", "PersistentVolumeClaim", "StorageClass", "PriorityClass"),
        *("PodDisruptionBudget", "HorizontalPodAutoscaler", "LimitRange", "ResourceQuota"),
        *("CustomResourceDefinition", "PodTemplate", "ReplicationController", "RuntimeClass"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
    }
)


def load(names: Sequence[str]) -> tuple[Typed, ...]:
    """The objects in the files, in file order; `ContentError` with all that is wrong."""
    objects: list[Typed] = []
    problems: list[Problem] = []
    for source in read_sources(names):
        reading = read(source.content, source.name)
        problems += reading.problems
        for document in reading.documents:
            found = () if _is_bystander(document) else typed(document)
            if isinstance(found, Typed):
                objects.append(found)
            else:
                problems += found
    if problems:
        raise ContentError("\n".join(str(problem) for problem in problems))
    return tuple(objects)


def _is_bystander(document: Document) -> bool:
    if document.kind not in BYSTANDERS or not document.api_version:
        return False
    say(f"{document.file}:{document.line}: {document.kind} {document.name} takes no part; ignored")
    return True

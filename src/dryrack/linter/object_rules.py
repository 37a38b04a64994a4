"""
Problems for which an API server of the release refuses objects.

Objects are decoded, completed with defaults and validated as if they were created in an empty
cluster. What depends on the cluster, such as admission and names that are taken, is left out.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from dryrack.cel.admission import SelectorChecker
from dryrack.extension.definitions import DefinitionError, DefinitionRules
from dryrack.extension.policies import (
    MutatingPolicyBindingRules,
    MutatingPolicyRules,
    PolicyBindingRules,
    PolicyRules,
)
from dryrack.kinds.catalog import CURRENT, Unknown, model_of
from dryrack.kinds.convert import to_v1
from dryrack.kinds.decode import DecodeError
from dryrack.kinds.releases import DEFAULT_RELEASE, FeatureSet, Release
from dryrack.kinds.rules.accounts import RoleBindingRules, RoleRules
from dryrack.kinds.rules.budgets import BudgetRules
from dryrack.kinds.rules.configuration import ConfigMapRules, SecretRules
from dryrack.kinds.rules.gangs import PodGroupRules, WorkloadObjectRules
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.rules.leases import LeaseRules
from dryrack.kinds.rules.limit_ranges import LimitRangeRules
from dryrack.kinds.rules.namespaces import NamespaceRules
from dryrack.kinds.rules.nodes import NodeRules
from dryrack.kinds.rules.persistent_volumes import VolumeRules
from dryrack.kinds.rules.pods.pod_rules import PodRules
from dryrack.kinds.rules.priorities import PriorityClassRules
from dryrack.kinds.rules.quotas import QuotaRules
from dryrack.kinds.rules.services.service_rules import ServiceRules
from dryrack.kinds.rules.storage_classes import StorageClassRules
from dryrack.kinds.rules.volume_claims import VolumeClaimRules
from dryrack.kinds.rules.workloads.cron_jobs import CronJobRules
from dryrack.kinds.rules.workloads.jobs import JobRules
from dryrack.kinds.rules.workloads.replicated import (
    DeploymentRules,
    ReplicaSetRules,
    ReplicationControllerRules,
)
from dryrack.kinds.rules.workloads.sets import DaemonSetRules, StatefulSetRules
from dryrack.kinds.schemas.strict_decode import Conformed
from dryrack.kinds.shape import render
from dryrack.kinds.validation.device_rules import DeviceRules, empty_list_problems
from dryrack.kinds.validation.problems import OMITTED, FieldProblem, Reason
from dryrack.linter.decoding import built_in_schema, decode_document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.kinds.documents import Document

_RBAC = "rbac.authorization.k8s.io/v1"
_ADMISSION = "admissionregistration.k8s.io/v1"


@cache
def _rules(release: Release) -> dict[tuple[str, str], KindRules]:
    rules: dict[tuple[str, str], KindRules] = {
        ("v1", "ConfigMap"): ConfigMapRules(),
        ("v1", "LimitRange"): LimitRangeRules(),
        ("v1", "Namespace"): NamespaceRules(),
        ("v1", "Node"): NodeRules(),
        ("v1", "PersistentVolume"): VolumeRules(),
        ("v1", "PersistentVolumeClaim"): VolumeClaimRules(),
        ("v1", "Pod"): PodRules(),
        ("v1", "ReplicationController"): ReplicationControllerRules(),
        ("v1", "ResourceQuota"): QuotaRules(),
        ("v1", "Secret"): SecretRules(),
        ("v1", "Service"): ServiceRules(),
        ("v1", "ServiceAccount"): KindRules(namespaced=True),
        ("apps/v1", "DaemonSet"): DaemonSetRules(),
        ("apps/v1", "Deployment"): DeploymentRules(),
        ("apps/v1", "ReplicaSet"): ReplicaSetRules(),
        ("apps/v1", "StatefulSet"): StatefulSetRules(),
        ("batch/v1", "CronJob"): CronJobRules(),
        ("batch/v1", "Job"): JobRules(),
        ("coordination.k8s.io/v1", "Lease"): LeaseRules(),
        ("policy/v1", "PodDisruptionBudget"): BudgetRules(),
        ("scheduling.k8s.io/v1", "PriorityClass"): PriorityClassRules(),
        ("scheduling.k8s.io/v1alpha2", "PodGroup"): PodGroupRules(),
        ("scheduling.k8s.io/v1alpha2", "Workload"): WorkloadObjectRules(),
        ("storage.k8s.io/v1", "StorageClass"): StorageClassRules(),
        (_RBAC, "ClusterRole"): RoleRules(namespaced=False),
        (_RBAC, "ClusterRoleBinding"): RoleBindingRules(namespaced=False),
        (_RBAC, "Role"): RoleRules(namespaced=True),
        (_RBAC, "RoleBinding"): RoleBindingRules(namespaced=True),
        (_ADMISSION, "MutatingAdmissionPolicy"): MutatingPolicyRules(),
        (_ADMISSION, "MutatingAdmissionPolicyBinding"): MutatingPolicyBindingRules(),
        (_ADMISSION, "ValidatingAdmissionPolicy"): PolicyRules(),
        (_ADMISSION, "ValidatingAdmissionPolicyBinding"): PolicyBindingRules(),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): DefinitionRules(),
    }
    for (api_version, kind), each in rules.items():
        each.follow(FeatureSet(release), api_version.rpartition("/")[0], kind)
    return rules


def has_rules(document: Document) -> bool:
    """Return whether the document is of a kind that `object_problems` judges."""
    return _rules_of(document, None, DEFAULT_RELEASE) is not None


def _rules_of(
    document: Document, namespace_labels: Mapping[str, str] | None, release: Release
) -> KindRules | None:
    """Return the rules of a document's kind, in a namespace with the labels (None: unknown)."""
    model = model_of(document.api_version, document.kind)
    if document.kind in CURRENT and not isinstance(model, Unknown):
        features = FeatureSet(release)
        return DeviceRules(document.kind, SelectorChecker(features), namespace_labels, features)
    return _rules(release).get((document.api_version, document.kind))


def object_problems(
    document: Document,
    namespace_labels: Mapping[str, str] | None = None,
    decoded: Conformed | None = None,
    release: Release = DEFAULT_RELEASE,
) -> tuple[FieldProblem, ...] | None:
    """
    Return what is wrong with an object; None if no rules judge its kind.

    `decoded` is the document as the server decodes it, if it has been decoded already.
    """
    rules = _rules_of(document, namespace_labels, release)
    if rules is None:
        return None
    if decoded is None:
        schema = built_in_schema(document, release)
        # Without a schema it is a version that the release does not have.
        decoded = decode_document(document, schema) if schema else Conformed(document.raw)
    if decoded.mismatch:
        return (mismatch_problem(decoded),)
    try:
        problems = rules.creation_problems(decoded.object, document.namespace)
        return (*problems, *empty_list_problems(to_v1(document.raw)))
    except DefinitionError as error:
        return (_type_problem("spec.versions", str(error)),)
    except DecodeError:
        # The values of the wrong type are reported with the document.
        return ()


def mismatch_problem(conformed: Conformed) -> FieldProblem:
    """Return what the decoder says about a value of the wrong type, at its place."""
    return _type_problem(render(conformed.mismatch_path), conformed.mismatch)


def _type_problem(field: str, sentence: str) -> FieldProblem:
    return FieldProblem(
        Reason.TYPE_INVALID, field, OMITTED, sentence, fix="write what the field expects"
    )

"""
What an API server would have against objects of the kinds that stand beside claims.

Slices, claims, templates, classes and taint rules are judged by `kinds.validation`. All other
kinds with rules of their own are judged here: decoded, completed with defaults and validated, as
if they were created in an empty cluster. What depends on what a cluster has, admission and names
and addresses that are taken, is left out.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from dryrack.extension.definitions import DefinitionError, DefinitionRules
from dryrack.extension.policies import (
    MutatingPolicyBindingRules,
    MutatingPolicyRules,
    PolicyBindingRules,
    PolicyRules,
)
from dryrack.kinds.decode import decode
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.paths import metadata_of
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
from dryrack.kinds.rules.workloads.replicated import DeploymentRules, ReplicaSetRules
from dryrack.kinds.rules.workloads.sets import DaemonSetRules, StatefulSetRules
from dryrack.kinds.shape import render
from dryrack.kinds.validation.problems import OMITTED, FieldProblem, Reason, required
from dryrack.linter.decoding import built_in_schema, decode_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.documents import Document
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.schemas.strict_decode import Conformed

_RBAC = "rbac.authorization.k8s.io/v1"
_ADMISSION = "admissionregistration.k8s.io/v1"
# Nothing that is judged here depends on what a server makes up.
_UID = "00000000-0000-4000-8000-000000000000"
_NOW = "2026-01-01T00:00:00Z"


@cache
def _rules() -> dict[tuple[str, str], KindRules]:
    return {
        ("v1", "ConfigMap"): ConfigMapRules(),
        ("v1", "LimitRange"): LimitRangeRules(),
        ("v1", "Namespace"): NamespaceRules(),
        ("v1", "Node"): NodeRules(),
        ("v1", "PersistentVolume"): VolumeRules(),
        ("v1", "PersistentVolumeClaim"): VolumeClaimRules(),
        ("v1", "Pod"): PodRules(),
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


def has_rules(document: Document) -> bool:
    """Return whether the document is of a kind that `object_problems` judges."""
    return (document.api_version, document.kind) in _rules()


def object_problems(document: Document) -> tuple[FieldProblem, ...] | None:
    """What is wrong with an object; None if it is of a kind that others judge."""
    rules = _rules().get((document.api_version, document.kind))
    schema = built_in_schema(document) if rules else None
    if rules is None or schema is None:
        return None
    conformed = decode_document(document, schema)
    if conformed.mismatch:
        return (mistyped(conformed),)
    try:
        return tuple(_judged(rules, conformed.object, document.namespace or "default"))
    except DefinitionError as error:
        return (_type_problem("spec.versions", str(error)),)


def mistyped(conformed: Conformed) -> FieldProblem:
    """Return what the decoder says about a value of the wrong type, at its place."""
    return _type_problem(render(conformed.mismatch_path), conformed.mismatch)


def _type_problem(field: str, sentence: str) -> FieldProblem:
    return FieldProblem(
        Reason.TYPE_INVALID, field, OMITTED, sentence, fix="write what the field expects"
    )


def _judged(rules: KindRules, obj: Raw, namespace: str) -> Sequence[FieldProblem]:
    new = rules.as_new(rules.default({**obj, "metadata": _completed(obj, rules, namespace)}))
    problems = rules.new_problems(new, decode(new["metadata"], ObjectMeta))
    if not new["metadata"].get("name") and not problems:
        return (required("metadata.name", "name or generateName is required"),)
    return problems


def _completed(obj: Raw, rules: KindRules, namespace: str) -> Raw:
    """The metadata with what a server makes up; a dump has its own, and labels made of it."""
    given = metadata_of(obj)
    meta = {**given, "uid": given.get("uid") or _UID, "creationTimestamp": _NOW}
    if rules.namespaced:
        meta["namespace"] = namespace
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = f"{meta['generateName']}x"
    return meta

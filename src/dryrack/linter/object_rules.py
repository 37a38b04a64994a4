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
from dryrack.extension.policies import PolicyBindingRules, PolicyRules
from dryrack.kinds.decode import decode
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.rules.accounts import RoleBindingRules, RoleRules
from dryrack.kinds.rules.budgets import BudgetRules
from dryrack.kinds.rules.configuration import ConfigMapRules, SecretRules
from dryrack.kinds.rules.gangs import PodGroupRules, WorkloadObjectRules
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.rules.leases import LeaseRules
from dryrack.kinds.rules.limit_ranges import LimitRangeRules
from dryrack.kinds.rules.namespaces import NamespaceRules
from dryrack.kinds.rules.nodes import NodeRules
from dryrack.kinds.rules.pods.pod_rules import PodRules
from dryrack.kinds.rules.priorities import PriorityClassRules
from dryrack.kinds.rules.quotas import QuotaRules
from dryrack.kinds.rules.services.service_rules import ServiceRules
from dryrack.kinds.rules.workloads.cron_jobs import CronJobRules
from dryrack.kinds.rules.workloads.jobs import JobRules
from dryrack.kinds.rules.workloads.replicated import DeploymentRules, ReplicaSetRules
from dryrack.kinds.rules.workloads.sets import DaemonSetRules, StatefulSetRules
from dryrack.kinds.schemas import schema_of
from dryrack.kinds.schemas.strict_decode import conform
from dryrack.kinds.shape import render
from dryrack.kinds.validation.problems import OMITTED, FieldProblem, Reason, required

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.documents import Document
    from dryrack.kinds.raw import Raw

_RBAC = "rbac.authorization.k8s.io/v1"
_ADMISSION = "admissionregistration.k8s.io/v1"
# Nothing that is judged here depends on what a server makes up.
_UID, _NOW = "00000000-0000-4000-8000-000000000000", "2026-01-01T00:00:00Z"


@cache
def _rules() -> dict[tuple[str, str], KindRules]:
    return {
        ("v1", "ConfigMap"): ConfigMapRules(),
        ("v1", "LimitRange"): LimitRangeRules(),
        ("v1", "Namespace"): NamespaceRules(),
        ("v1", "Node"): NodeRules(),
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
        (_RBAC, "ClusterRole"): RoleRules(namespaced=False),
        (_RBAC, "ClusterRoleBinding"): RoleBindingRules(namespaced=False),
        (_RBAC, "Role"): RoleRules(namespaced=True),
        (_RBAC, "RoleBinding"): RoleBindingRules(namespaced=True),
        (_ADMISSION, "ValidatingAdmissionPolicy"): PolicyRules(),
        (_ADMISSION, "ValidatingAdmissionPolicyBinding"): PolicyBindingRules(),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): DefinitionRules(),
    }


def object_problems(document: Document) -> tuple[FieldProblem, ...] | None:
    """What is wrong with an object; None if it is of a kind that others judge."""
    rules = _rules().get((document.api_version, document.kind))
    group, _, version = document.api_version.rpartition("/")
    schema = schema_of(group, version, document.kind) if rules else None
    if rules is None or schema is None:
        return None
    conformed = conform(schema, document.raw)
    if conformed.mismatch:
        return (_mistyped(render(conformed.mismatch_path), conformed.mismatch),)
    try:
        return tuple(_judged(rules, conformed.object, document.namespace or "default"))
    except DefinitionError as error:
        return (_mistyped("spec.versions", str(error)),)


def _mistyped(field: str, sentence: str) -> FieldProblem:
    """The decoder's words, at the place that they speak of."""
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
    given = obj.get("metadata") or {}
    meta = {**given, "uid": given.get("uid") or _UID, "creationTimestamp": _NOW}
    if rules.namespaced:
        meta["namespace"] = namespace
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = f"{meta['generateName']}x"
    return meta

"""Pod templates in kinds that dryrack does not know: which there are, and for how many pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dryrack.kinds.documents import unwritten
from dryrack.kinds.expansion.embedded_templates import embedded_templates, is_custom_workload
from dryrack.kinds.expansion.workload_pods import PODS_MAX, Made, WorkloadPods
from dryrack.kinds.shape import render

if TYPE_CHECKING:
    from dryrack.kinds.documents import Document

CLAIMS = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}
POD = {"containers": [{"name": "c", "image": "i"}], **CLAIMS}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
JOB = {"spec": {"parallelism": 3, "completions": 2, "template": TEMPLATE}}


def document(kind: str, spec: Any, group: str = "example.com", **metadata: Any) -> Document:
    raw = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "w", **metadata}}
    return unwritten({**raw, "spec": spec}, "f.yaml")


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        (
            "JobSet",
            {"replicatedJobs": [{"name": "a", "replicas": 4, "template": JOB}]},
            {"spec.replicatedJobs[0].template.spec.template": 8},
        ),
        (
            "MPIJob",
            {
                "mpiReplicaSpecs": {
                    "Launcher": {"template": TEMPLATE},
                    "Worker": {"replicas": 3, "template": TEMPLATE},
                }
            },
            {
                "spec.mpiReplicaSpecs.Launcher.template": 1,
                "spec.mpiReplicaSpecs.Worker.template": 3,
            },
        ),
        (
            "LeaderWorkerSet",
            {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": TEMPLATE}},
            {"spec.leaderWorkerTemplate.workerTemplate": 8},
        ),
        (
            "LeaderWorkerSet",
            {
                "replicas": 2,
                "leaderWorkerTemplate": {
                    "size": 4,
                    "leaderTemplate": TEMPLATE,
                    "workerTemplate": TEMPLATE,
                },
            },
            {
                "spec.leaderWorkerTemplate.leaderTemplate": 2,
                "spec.leaderWorkerTemplate.workerTemplate": 6,
            },
        ),
        (
            "RayJob",
            {
                "rayClusterSpec": {
                    "headGroupSpec": {"template": TEMPLATE},
                    "workerGroupSpecs": [
                        {"groupName": "gpus", "replicas": 2, "numOfHosts": 2, "template": TEMPLATE}
                    ],
                }
            },
            {
                "spec.rayClusterSpec.headGroupSpec.template": 1,
                "spec.rayClusterSpec.workerGroupSpecs[0].template": 4,
            },
        ),
        (
            "PodCliqueSet",
            {
                "replicas": 2,
                "template": {
                    "cliques": [
                        {"name": "lead", "spec": {"replicas": 1, "podSpec": POD}},
                        {"name": "work", "spec": {"replicas": 3, "podSpec": POD}},
                    ],
                    "podCliqueScalingGroups": [{"cliqueNames": ["work"], "replicas": 2}],
                },
            },
            {
                "spec.template.cliques[0].spec.podSpec": 2,
                "spec.template.cliques[1].spec.podSpec": 12,
            },
        ),
        (
            "DynamoGraphDeployment",
            {
                "services": {
                    "Decode": {
                        "replicas": 2,
                        "multinode": {"nodeCount": 2},
                        "extraPodSpec": {"mainContainer": {"image": "i"}, **CLAIMS},
                    }
                }
            },
            {"spec.services.Decode.extraPodSpec": 4},
        ),
        ("VirtualMachineInstance", {"domain": {}, **CLAIMS}, {"spec": 1}),
        (
            "VirtualMachine",
            {"template": {"spec": {"domain": {}, **CLAIMS}}},
            {"spec.template": 1},
        ),
        (
            "Workload",
            {"podSets": [{"name": "main", "count": 3, "template": TEMPLATE}]},
            {"spec.podSets[0].template": 3},
        ),
        # A gang of three whose tasks say how many pods each has.
        (
            "Job",
            {"minAvailable": 3, "tasks": [{"name": "t", "replicas": 3, "template": TEMPLATE}]},
            {"spec.tasks[0].template": 3},
        ),
        ("Rollout", {"minAvailable": 2, "template": TEMPLATE}, {"spec.template": 2}),
        ("InferenceService", {"predictor": {"minReplicas": 2, **POD}}, {"spec.predictor": 2}),
        ("Rollout", {"replicas": 0, "template": TEMPLATE}, {"spec.template": 0}),
        # Containers that are changes of other pods', and things that only look like templates.
        ("Prometheus", {"containers": [{"name": "c", "image": "i"}]}, {}),
        ("Policy", {"template": {"spec": {"containers": []}}, "resourceClaims": ["x"]}, {}),
    ],
)
def test_templates_are_found_by_their_form(kind: str, spec: Any, expected: dict[str, int]) -> None:
    """The path of each template, and the product of the counts around it."""
    found = embedded_templates(document(kind, spec))

    assert {render(each.path): each.count for each in found} == expected
    assert is_custom_workload(document(kind, spec)) == bool(expected)


def test_pods_are_named_after_the_part_that_they_are_for() -> None:
    """A note says which object and path each pod came from."""
    spec = {
        "mpiReplicaSpecs": {
            "Launcher": {"template": TEMPLATE},
            "Worker": {"replicas": 2, "template": TEMPLATE},
        }
    }
    workload = document("MPIJob", spec, namespace="team")
    launcher, workers = WorkloadPods([workload], ()).of_custom(workload)
    assert isinstance(launcher, Made)
    assert isinstance(workers, Made)

    assert [each.name for each in workers.pods] == ["w-worker-0", "w-worker-1"]
    assert workers.pods[0].namespace == "team"
    assert workers.pods[0].raw["metadata"]["labels"] == {"a": "b"}
    assert launcher.note == "MPIJob/w, spec.mpiReplicaSpecs.Launcher.template: 1 pod, w-launcher-0"
    assert workers.note == (
        "MPIJob/w, spec.mpiReplicaSpecs.Worker.template: 2 pods, w-worker-0 and w-worker-1"
    )


def test_pods_of_a_dump_are_not_made_again() -> None:
    """A JobSet that has its pods in the files, through its Jobs, makes no others."""
    spec = {"replicatedJobs": [{"name": "a", "replicas": 1, "template": JOB}]}
    jobset = document("JobSet", spec)
    owner = {"kind": "JobSet", "name": "w", "controller": True}
    job = unwritten(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "w-a-0", "ownerReferences": [owner]},
            **JOB,
        },
        "f.yaml",
    )
    owner = {"kind": "Job", "name": "w-a-0", "controller": True}
    pod = unwritten(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "ownerReferences": [owner]},
            "spec": POD,
        },
        "f.yaml",
    )
    pods = WorkloadPods([jobset, job, pod], ())
    [made] = pods.of_custom(jobset)
    of_job = pods.of(job)
    assert isinstance(made, Made)
    assert isinstance(of_job, Made)

    assert (made.pods, made.are_present) == ((), True)
    assert (of_job.pods, of_job.note) == ((), "its pods are those of JobSet w")


def test_a_count_that_is_a_slip_is_a_problem() -> None:
    """No cluster has that many pods."""
    workload = document("Rollout", {"replicas": PODS_MAX + 1, "template": TEMPLATE})
    [problem] = WorkloadPods([workload], ()).of_custom(workload)

    assert "150001 pods" in str(problem)


def test_scenarios_are_not_workloads() -> None:
    """dryrack's own kinds have manifests within them, which only a run of the scenario makes."""
    assert not is_custom_workload(document("Scenario", {"template": TEMPLATE}, "dryrack.dev"))


KEYS = st.sampled_from(
    (
        *("spec", "template", "containers", "resourceClaims", "replicas", "cliques", "name"),
        *("podCliqueScalingGroups", "cliqueNames", "size", "workerTemplate", "multinode"),
        *("metadata", "mainContainer", "resources", "resourceClaimName", "image", "completions"),
    )
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(("", "a")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
@settings(max_examples=200)
def test_no_value_breaks_the_search(spec: Any) -> None:
    """The templates of any object are listed, and their pods are created or refused."""
    workload = document("Anything", spec)
    made = WorkloadPods([workload], ()).of_custom(workload)

    assert len(made) == len(embedded_templates(workload))

"""Admission and preemption treat the pods of files as on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.allocation.builders import Counting
from tests.cli.explain_builders import pod, template

from dryrack.kinds.documents import unwritten
from dryrack.placement import Settings, World, explain_pod, what_if_files
from dryrack.placement.whatif.manifests import manifests

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw
    from dryrack.placement import PodExplanation, WhatIf

GPUS = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices"


def fleet(nodes: int = 1, gpus: int = 8) -> list[Raw]:
    """Return nodes with GPUs of their own, and the class that selects them."""
    objects: list[Raw] = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "gpu.nvidia.com"},
        },
        *(template(name, count) for name, count in (("one", 1), ("four", 4), ("eight", 8))),
    ]
    for name in [f"node-{number}" for number in range(1, nodes + 1)]:
        amounts = {"cpu": "8", "memory": "32Gi", "pods": "20"}
        objects.append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name},
                "status": {"allocatable": amounts},
            }
        )
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"gpu-{number}"} for number in range(gpus)]
        spec = {"driver": "gpu.nvidia.com", "nodeName": name, "pool": pool, "devices": devices}
        objects.append(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": name},
                "spec": spec,
            }
        )
    return objects


def priority_class(name: str, value: int, **more: Any) -> Raw:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value, **more}


def quota(**hard: str) -> Raw:
    named = {name.replace("devices", GPUS): amount for name, amount in hard.items()}
    kind = {"apiVersion": "v1", "kind": "ResourceQuota"}
    return {**kind, "metadata": {"name": "team"}, "spec": {"hard": named}}


def limit_range(**limit: Any) -> Raw:
    kind = {"apiVersion": "v1", "kind": "LimitRange"}
    spec = {"limits": [{"type": "Container", **limit}]}
    return {**kind, "metadata": {"name": "sizes"}, "spec": spec}


def job(name: str, count: int, uses: str) -> Raw:
    spec = {**pod(name, uses)["spec"], "restartPolicy": "Never"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"parallelism": count, "completions": count, "template": {"spec": spec}},
    }


def world(*objects: Raw) -> World:
    found = manifests(unwritten(each, "files") for each in objects)
    assert not found.problems
    return World.of([each.object for each in found.objects])


def settings() -> Settings:
    return Settings(chance=Counting())


def allocated(*objects: Raw) -> WhatIf:
    return what_if_files(world(*objects), settings)


def explained(name: str, *objects: Raw) -> PodExplanation:
    return explain_pod(world(*objects), f"default/{name}", settings())


URGENT = priority_class("urgent", 1000)


def test_a_pod_of_higher_priority_preempts_one_that_came_before() -> None:
    """The victim is named, and has neither node nor devices any more."""
    files = (*fleet(), URGENT, pod("a", "eight"), pod("b", "eight", priorityClassName="urgent"))

    outcome = allocated(*files)

    assert outcome.nodes == {"default/b": "node-1"}
    assert [each.message for each in outcome.preemptions] == [
        "pod default/b fits on node node-1 after preempting pod default/a (priority 0)"
    ]
    assert outcome.waiting == {"default/a": "it is preempted by pod default/b"}
    assert [each.claim for each in outcome.given] == ["default/b-gpu"]
    assert explained("b", *files).preempted == "pod default/a (priority 0)"
    assert explained("a", *files).cause == (
        "pod default/b, which has a higher priority, preempts it on node node-1"
    )


def test_a_gang_that_is_preempted_does_not_fit() -> None:
    """Its verdict follows the victims: no member keeps a node."""
    labels = {
        "pod-group.scheduling.sigs.k8s.io/name": "g",
        "pod-group.scheduling.sigs.k8s.io/min-available": "2",
    }
    members = [pod("m-0", "four"), pod("m-1", "four")]
    for member in members:
        member["metadata"]["labels"] = labels
    files = (*fleet(), URGENT, *members, pod("b", "eight", priorityClassName="urgent"))

    outcome = allocated(*files)

    assert outcome.nodes == {"default/b": "node-1"}
    (gang,) = outcome.gangs
    assert (gang.nodes, gang.message) == ({}, "it is preempted by pod default/b")


def test_a_pod_whose_class_never_preempts_waits() -> None:
    """Its explanation says so."""
    never = priority_class("patient", 1000, preemptionPolicy="Never")
    files = (*fleet(), never, pod("a", "eight"), pod("b", "eight", priorityClassName="patient"))

    assert allocated(*files).nodes == {"default/a": "node-1"}
    assert explained("b", *files).cause.endswith(
        "it does not preempt pod default/a (priority 0): its preemptionPolicy is Never"
    )


def test_the_default_priority_class_counts_for_pods_that_name_none() -> None:
    """Both pods have the same priority, so that neither makes way."""
    default = priority_class("usual", 1000, globalDefault=True)
    files = (*fleet(), URGENT, default, pod("a", "eight"))

    outcome = allocated(*files, pod("b", "eight", priorityClassName="urgent"))

    assert outcome.nodes == {"default/a": "node-1"}


def test_a_victim_that_its_workload_creates_again_goes_elsewhere() -> None:
    """The pod of the Job finds another node; a pod without a controller would be gone."""
    important = pod("b", "eight", priorityClassName="urgent")
    narrow = {**important["spec"], "nodeSelector": {"kubernetes.io/hostname": "node-1"}}
    nodes = fleet(2)
    for each in nodes:
        if each["kind"] == "Node":
            each["metadata"]["labels"] = {"kubernetes.io/hostname": each["metadata"]["name"]}

    outcome = allocated(*nodes, URGENT, job("small", 1, "one"), {**important, "spec": narrow})

    assert outcome.nodes == {"default/b": "node-1", "default/small-0": "node-2"}
    assert not outcome.refused


def test_a_budget_protects_its_pods_where_others_can_go() -> None:
    """The victim of two pods with equal priorities is the one without a budget."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}},
    }
    pods = (pod("a", "four", labels={"app": "kept"}), pod("b", "four", labels={"app": "other"}))

    outcome = allocated(
        *fleet(), URGENT, budget, *pods, pod("c", "four", priorityClassName="urgent")
    )

    assert outcome.preemptors == {"default/b": "pod default/c"}


def test_a_claim_over_quota_is_refused_and_the_pod_waits() -> None:
    """As on a cluster, the pod exists; the claim controller cannot create its claim."""
    files = (*fleet(2), quota(devices="6"), pod("a", "four"), pod("b", "four"))

    outcome = allocated(*files)
    story = explained("b", *files)

    assert outcome.nodes == {"default/a": "node-1"}
    assert [each.claim for each in outcome.refused] == ["default/b-gpu"]
    assert story.cause == (
        f"exceeded quota: ResourceQuota team allows 6 of {GPUS}, 4 are used, and the pod requests 4"
    )
    assert story.helps == (
        f"raise {GPUS} in ResourceQuota team from 6 to 8",
        "lower the count of request gpu from 4 to 2",
    )


def test_a_raised_quota_is_proposed_only_if_the_pod_fits_then() -> None:
    """If no node is free, neither change helps."""
    story = explained("b", *fleet(), quota(devices="9"), pod("a", "eight"), pod("b", "eight"))

    assert story.cause.startswith("exceeded quota: ")
    assert story.helps == ()


def test_pods_over_quota_are_not_created() -> None:
    """The third pod of three is refused, and the others are placed."""
    files = (*fleet(), quota(pods="2"), job("small", 3, "one"))

    outcome = allocated(*files)

    assert outcome.nodes.keys() == {"default/small-0", "default/small-1"}
    assert list(outcome.rejected) == ["default/small-2"]
    assert explained("small-2", *files).is_refused


def test_what_a_cluster_has_stored_counts_and_is_not_refused() -> None:
    """Pods of a dump were admitted, even where a quota was lowered later."""
    stored = pod("a", cpu="4")
    stored["metadata"]["uid"] = "1"
    limit = quota(**{"requests.cpu": "2"})

    outcome = allocated(*fleet(), limit, stored, pod("b", cpu="1"))

    assert outcome.nodes == {"default/a": "node-1"}
    assert "used: requests.cpu=4" in outcome.rejected["default/b"]


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"max": {"cpu": "2"}}, "maximum cpu usage per Container is 2, but limit is 4"),
        ({"default": {"cpu": "1"}}, "must be less than or equal to cpu limit of 1"),
    ],
)
def test_a_pod_that_does_not_keep_to_a_limit_range_is_refused(limits: Raw, why: str) -> None:
    """The message is that of the API server."""
    large = pod("a", cpu="4")
    if "max" in limits:
        large["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "4"}

    assert why in allocated(*fleet(), limit_range(**limits), large).rejected["default/a"]


def test_a_limit_range_gives_requests_to_containers_without_any() -> None:
    """Two pods of five CPUs each do not share a node of eight."""
    sizes = limit_range(defaultRequest={"cpu": "5"}, default={"cpu": "5"})

    outcome = allocated(*fleet(), sizes, pod("a", "one"), pod("b", "one"))

    assert outcome.nodes == {"default/a": "node-1"}
    assert "Insufficient cpu" in outcome.waiting["default/b"]


def test_a_container_with_a_limit_alone_requests_it() -> None:
    """The API server sets the request, so that a pod of 16 CPUs does not fit on a node of 8."""
    large = pod("a", "one")
    large["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "16"}

    assert allocated(*fleet(), large).waiting.keys() == {"default/a"}


def test_a_priority_class_that_does_not_exist_is_named() -> None:
    """The remedy names the most similar class."""
    story = explained("a", *fleet(), URGENT, pod("a", "one", priorityClassName="urgnt"))

    assert story.is_refused
    assert story.cause == "no PriorityClass with name urgnt was found"
    assert story.helps == ("add PriorityClass 'urgnt'; did you mean 'urgent'?",)


def test_the_classes_of_the_system_exist_in_files() -> None:
    """Every cluster has them."""
    critical = pod("b", "eight", priorityClassName="system-node-critical")

    assert allocated(*fleet(), pod("a", "eight"), critical).nodes == {"default/b": "node-1"}


def test_a_quota_that_cannot_be_read_is_a_problem_of_its_file() -> None:
    """It says where, and no pod is tried without it."""
    found = manifests([unwritten({**quota(), "spec": {"hard": {"pods": "many"}}}, "files")])

    assert ["spec.hard.pods" in str(each) for each in found.problems] == [True]


def test_files_without_nodes_name_no_node() -> None:
    """Neither a pod nor a claim is said to fit on a node that nobody has."""
    classes = [each for each in fleet() if each["kind"] not in ("Node", "ResourceSlice")]
    files = (*classes, pod("a", "one"), pod("b"))

    outcome = allocated(*files)
    story = explained("a", *files)

    assert not outcome.nodes
    assert [each.node for refused in outcome.refused for each in refused.nodes] == [""]
    assert (story.chosen, explained("b", *files).chosen) == ("", "")
    assert story.cause == (
        "the files have no nodes; add Nodes or ResourceSlices, or use --instance-type"
    )


def test_a_pod_is_not_proposed_to_preempt_its_own_workload() -> None:
    """Another pod of the Job would wait instead; two more devices help, however many nodes."""
    names = [template("two", 2)]

    story = explained("small-56", *fleet(14), *names, job("small", 60, "two"))

    assert not [each for each in story.helps if "priority" in each]
    assert "add 2 devices like gpu.nvidia.com/node-1/gpu-0" in story.helps

"""Gangs in every dialect come to one value, and what is wrong with one says how to mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dryrack.kinds.catalog import model_of
from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode
from dryrack.placement.gangs.dialects import (
    Dialect,
    Flaw,
    Gang,
    GangKey,
    Membership,
    definitions,
    gang_of,
    membership,
)

if TYPE_CHECKING:
    from dryrack.kinds.meta import KubernetesObject

KUBENEXUS = "pod-group.scheduling.kubenexus.io"
SIGS = "pod-group.scheduling.sigs.k8s.io"
TRAINING = GangKey(Dialect.LABELS, "ml", "training")


def pod(name: str = "p", labels: dict[str, str] | None = None, **spec: Any) -> Pod:
    metadata = {"name": name, "namespace": "ml", "labels": labels or {}}
    return decode({"metadata": metadata, "spec": spec}, Pod)


def labels(minimum: str, prefix: str = KUBENEXUS, name: str = "training") -> dict[str, str]:
    return {f"{prefix}/name": name, f"{prefix}/min-available": minimum}


def group(api_version: str, kind: str = "PodGroup", **spec: Any) -> KubernetesObject:
    model = model_of(api_version, kind)
    assert isinstance(model, type)
    metadata = {"name": "training", "namespace": "ml", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return decode({"metadata": metadata, "spec": spec}, model)


def gang(pods: list[Pod], *objects: KubernetesObject) -> Gang | Flaw:
    said = membership(pods[0])
    assert isinstance(said, Membership)
    return gang_of(said.key, pods, {d.key: d for each in objects for d in definitions(each)})


@pytest.mark.parametrize("prefix", [KUBENEXUS, SIGS])
def test_two_labels_make_a_gang(prefix: str) -> None:
    """Both prefixes name the same gang, so that pods of either are in it together."""
    assert membership(pod(labels=labels("3", prefix))) == Membership(TRAINING, 3)


@pytest.mark.parametrize("prefix", [KUBENEXUS, SIGS])
@pytest.mark.parametrize("missing", ["name", "min-available"])
def test_one_label_makes_no_gang(prefix: str, missing: str) -> None:
    """As in kubenexus, a pod that lacks one of the two is by itself."""
    kept = {
        key: value for key, value in labels("3", prefix).items() if key != f"{prefix}/{missing}"
    }

    assert membership(pod(labels=kept)) is None


def test_a_minimum_of_one_makes_no_gang() -> None:
    """One pod needs no other."""
    assert membership(pod(labels=labels("1"))) is None


@pytest.mark.parametrize(
    ("minimum", "problem"),
    [("three", "is not a whole number"), ("1_0", "is not a whole number"), ("0", "is less than 1")],
)
def test_a_malformed_minimum_is_told_with_the_label_and_the_fix(minimum: str, problem: str) -> None:
    """The pod hears which label is wrong, what it says, and what to write."""
    said = membership(pod(labels=labels(minimum)))

    assert isinstance(said, Flaw)
    assert said.message == (
        f"pod ml/p, label {KUBENEXUS}/min-available: {minimum!r} {problem}; "
        'set the number of pods that must run together, for example "3"'
    )


def test_both_prefixes_may_name_one_gang_and_kubenexus_decides() -> None:
    """Pods that carry both for the sake of older schedulers are in one gang."""
    both = labels("3") | labels("2", SIGS)

    assert membership(pod(labels=both)) == Membership(TRAINING, 3)


def test_a_pod_in_two_gangs_is_told_both() -> None:
    """Which of them counts is not for us to guess."""
    other = {"podGroupName": "other"}
    said = membership(pod(labels=labels("3"), schedulingGroup=other))

    assert said == Flaw(
        "pod ml/p is in 2 gangs: pod group ml/training and PodGroup ml/other", "keep only one"
    )


def test_members_that_disagree_on_the_minimum_are_told_who_says_what() -> None:
    """No number is picked; each is told with a pod that says it."""
    said = gang([pod("a", labels("3")), pod("b", labels("3")), pod("c", labels("2"))])

    assert said == Flaw(
        "pod group ml/training: its pods have different values of min-available: "
        "2 (ml/c), 3 (ml/a)",
        "use one value for all",
    )


def test_a_gang_is_as_important_as_its_least_important_member() -> None:
    """So that none of them pushes aside what it may not."""
    made = gang([pod("a", labels("2"), priority=5), pod("b", labels("2"), priority=3)])

    assert isinstance(made, Gang)
    assert (made.priority, made.min_count) == (3, 2)


def test_a_gang_with_too_few_pods_says_how_many_are_missing() -> None:
    """The words of kubenexus, and what to do."""
    made = gang([pod("a", labels("3"))])

    assert isinstance(made, Gang)
    assert made.too_few == (
        "pod group ml/training has 1 pod, needs at least 3; create 2 more, or lower the minimum"
    )


def test_a_coscheduling_group_is_named_by_its_label() -> None:
    """The minimum and the timeout are those of the PodGroup."""
    members = [pod(labels={"scheduling.x-k8s.io/pod-group": "training"})]
    made = gang(
        members, group("scheduling.x-k8s.io/v1alpha1", minMember=4, scheduleTimeoutSeconds=30)
    )

    assert isinstance(made, Gang)
    assert (made.min_count, made.timeout_seconds) == (4, 30)
    assert made.created == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("version", "mode"),
    [("v1alpha2", "PodGroup"), ("v1beta1", {"all": {}}), ("v1alpha3", {"all": {}})],
)
def test_a_native_group_is_named_in_the_spec(version: str, mode: object) -> None:
    """Each release that has PodGroups comes to the same gang."""
    members = [pod(schedulingGroup={"podGroupName": "training"}, priority=1)]
    made = gang(
        members,
        group(
            f"scheduling.k8s.io/{version}",
            schedulingPolicy={"gang": {"minCount": 4}},
            schedulingConstraints={"topology": [{"key": "rack"}]},
            resourceClaims=[{"name": "fabric", "resourceClaimName": "f"}],
            disruptionMode=mode,
            priority=7,
        ),
    )

    assert isinstance(made, Gang)
    assert (made.min_count, made.priority, made.topology_key) == (4, 7, "rack")
    assert made.disrupted_whole
    assert [each.resource_claim_name for each in made.claims] == ["f"]


def test_a_basic_policy_needs_one_pod() -> None:
    """Its pods are placed one by one."""
    members = [pod(schedulingGroup={"podGroupName": "training"})]
    made = gang(members, group("scheduling.k8s.io/v1alpha2", schedulingPolicy={"basic": {}}))

    assert isinstance(made, Gang)
    assert made.min_count == 1


def test_replicas_of_a_group_in_a_workload_are_gangs_of_their_own() -> None:
    """They share a definition, and no members."""
    workload = group(
        "scheduling.k8s.io/v1alpha1",
        "Workload",
        podGroups=[
            {"name": "leader", "policy": {"basic": {}}},
            {"name": "workers", "policy": {"gang": {"minCount": 2}}},
        ],
    )
    ref = {"name": "training", "podGroup": "workers"}
    first = pod(workloadRef={**ref, "podGroupReplicaKey": "0"})
    second = pod(workloadRef={**ref, "podGroupReplicaKey": "1"})

    one = gang([first], workload)
    other = gang([second], workload)

    assert isinstance(one, Gang)
    assert isinstance(other, Gang)
    assert one.key != other.key
    assert one.min_count == other.min_count == 2
    assert str(one.key) == "Workload ml/training, group workers, replica 0"


@pytest.mark.parametrize(
    ("member", "what"),
    [
        (pod(schedulingGroup={"podGroupName": "t"}), "PodGroup ml/t"),
        (pod(labels={"scheduling.x-k8s.io/pod-group": "t"}), "PodGroup.scheduling.x-k8s.io ml/t"),
        (pod(workloadRef={"name": "t", "podGroup": "g"}), "Workload ml/t, group g"),
    ],
)
def test_a_group_that_is_not_there_is_named(member: Pod, what: str) -> None:
    """The pod waits for it, and says for what."""
    assert gang([member]) == Flaw(f"{what} does not exist", "create it, or remove the pods from it")


@pytest.mark.parametrize(
    ("made", "member", "fact"),
    [
        (
            group("scheduling.x-k8s.io/v1alpha1", minMember=0),
            pod(labels={"scheduling.x-k8s.io/pod-group": "training"}),
            "PodGroup.scheduling.x-k8s.io ml/training, spec.minMember: 0 is less than 1",
        ),
        (
            group("scheduling.k8s.io/v1alpha2", schedulingPolicy={"gang": {"minCount": 0}}),
            pod(schedulingGroup={"podGroupName": "training"}),
            "PodGroup ml/training, spec.schedulingPolicy.gang.minCount: 0 is less than 1",
        ),
        (
            group("scheduling.k8s.io/v1alpha2"),
            pod(schedulingGroup={"podGroupName": "training"}),
            "PodGroup ml/training, spec.schedulingPolicy: is empty",
        ),
    ],
)
def test_a_group_that_makes_no_sense_is_told(
    made: KubernetesObject, member: Pod, fact: str
) -> None:
    """A server that validates would not take these; files may say them."""
    said = gang([member], made)

    assert isinstance(said, Flaw)
    assert said.fact == fact

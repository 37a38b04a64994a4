"""The pods that workloads in files will make: how many, of which names, on which nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dryrack.kinds.documents import read
from dryrack.kinds.expansion.workload_pods import PODS_MAX, Made, WorkloadPods, with_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.documents import Document, Problem

TEMPLATE = "template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c}]}}"


def workload(kind: str, spec: str, name: str = "w", **metadata: str) -> str:
    version = "batch/v1" if kind.endswith("Job") else "apps/v1"
    more = "".join(f", {key}: {value}" for key, value in metadata.items())
    meta = f"{{name: {name}{more}}}" if name else f"{{{more[2:]}}}"
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {meta}\nspec: {{{spec}}}\n"


def documents(*texts: str) -> Sequence[Document]:
    return read("---\n".join(texts), "f.yaml").documents


def made(*texts: str, nodes: Sequence[Any] = (), of: int = 0) -> Made | tuple[Problem, ...]:
    found = documents(*texts)
    return WorkloadPods(found, nodes).of(found[of])


def names(of: Made | tuple[Problem, ...]) -> list[str]:
    assert isinstance(of, Made)
    return [pod.name for pod in of.pods]


def node(name: str, *taints: str, **labels: str) -> Any:
    spec = {"taints": [{"key": key, "effect": "NoSchedule"} for key in taints]}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (workload("Deployment", f"replicas: 3, {TEMPLATE}"), ["w-0", "w-1", "w-2"]),
        (workload("Deployment", TEMPLATE), ["w-0"]),
        (workload("ReplicaSet", f"replicas: 0, {TEMPLATE}"), []),
        (workload("StatefulSet", f"replicas: 2, {TEMPLATE}"), ["w-0", "w-1"]),
        (workload("StatefulSet", f"ordinals: {{start: 5}}, {TEMPLATE}"), ["w-5"]),
        (workload("Job", TEMPLATE), ["w-0"]),
        (workload("Job", f"parallelism: 2, completions: 9, {TEMPLATE}"), ["w-0", "w-1"]),
        (workload("Job", f"parallelism: 9, completions: 2, {TEMPLATE}"), ["w-0", "w-1"]),
        (workload("Job", f"parallelism: 2, {TEMPLATE}"), ["w-0", "w-1"]),
        (workload("Job", TEMPLATE, "", generateName="train-"), ["train-0"]),
        (
            workload("CronJob", f"jobTemplate: {{spec: {{parallelism: 2, {TEMPLATE}}}}}"),
            ["w-0", "w-1"],
        ),
        (f"apiVersion: v1\nkind: PodTemplate\nmetadata: {{name: w}}\n{TEMPLATE}\n", ["w"]),
    ],
)
def test_a_workload_makes_as_many_pods_as_run_at_once(text: str, expected: Sequence[str]) -> None:
    """Pods are numbered, so that messages can name one."""
    assert names(made(text)) == expected


def test_a_pod_has_what_its_template_says_and_stands_where_it_stands() -> None:
    """Namespace and labels, and for each of its parts the line of the template's."""
    text = workload("Deployment", f"replicas: 1,\n {TEMPLATE}", namespace="team")
    found = made(text)
    assert isinstance(found, Made)
    [pod] = found.pods

    assert (pod.kind, pod.api_version, pod.namespace) == ("Pod", "v1", "team")
    assert pod.raw["metadata"]["labels"] == {"app": "a"}
    assert pod.place("spec.containers[0].name") == documents(text)[0].place(
        "spec.template.spec.containers[0].name"
    )


def test_a_daemon_set_has_a_pod_on_every_node_that_it_is_for() -> None:
    """Named after the node and tied to it; taints and selectors keep it off others."""
    template = "template: {spec: {nodeSelector: {gpu: 'yes'}, containers: [{name: c}]}}"
    nodes = [
        node("a", gpu="yes"),
        node("b"),
        node("c", "mine", gpu="yes"),
        node("d", "node.kubernetes.io/unschedulable", gpu="yes"),
    ]
    found = made(workload("DaemonSet", template), nodes=nodes)

    assert names(found) == ["w-a", "w-d"]
    assert isinstance(found, Made)
    required = found.pods[0].raw["spec"]["affinity"]["nodeAffinity"]
    [term] = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchFields"][0]["values"] == ["a"]


def test_what_a_dump_has_already_is_not_made_again() -> None:
    """A Deployment with its ReplicaSet and one of its two pods makes the other one."""
    owner = "ownerReferences: [{controller: true, kind: %s, name: %s}]"
    replicas = workload("ReplicaSet", f"replicas: 2, {TEMPLATE}", "w-5d")
    replicas = replicas.replace("{name: w-5d}", "{name: w-5d, " + owner % ("Deployment", "w") + "}")
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: w-0, " + owner % ("ReplicaSet", "w-5d") + "}\n"
    )
    ended = pod.replace("w-0", "w-old") + "status: {phase: Failed}\n"
    files = (workload("Deployment", f"replicas: 2, {TEMPLATE}"), replicas, pod, ended)

    assert names(made(*files)) == ["w-1"]
    of_replicas = made(*files, of=1)
    assert of_replicas == Made((), "its pods are those of Deployment w", are_present=True)


def test_a_job_that_is_over_makes_no_pods() -> None:
    """One that has some successes needs only the rest."""
    job = workload("Job", f"parallelism: 4, completions: 5, {TEMPLATE}")

    assert names(made(job + "status: {conditions: [{type: Complete, status: 'True'}]}\n")) == []
    assert names(made(job + "status: {succeeded: 3}\n")) == ["w-0", "w-1"]


def test_two_workloads_never_make_pods_of_one_name() -> None:
    """As when two jobs are made from one beginning of a name."""
    job = workload("Job", TEMPLATE, "", generateName="train-")
    found = documents(job, job)
    pods = WorkloadPods(found, ())

    assert [names(pods.of(each)) for each in found] == [["train-0"], ["train-1"]]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            f"replicas: '3', {TEMPLATE}",
            'spec.replicas: expected a 32-bit integer, got the string "3"',
        ),
        (f"replicas: -1, {TEMPLATE}", f"spec.replicas: -1 is not between 0 and {PODS_MAX}"),
        (f"replicas: 10000000, {TEMPLATE}", f"is not between 0 and {PODS_MAX}"),
        ("template: 5", "spec.template: expected an object, got the number 5"),
        ("template: {spec: []}", "spec.template.spec: expected an object, got a list"),
    ],
)
def test_what_keeps_a_workload_from_making_pods_is_told_with_its_line(
    spec: str, message: str
) -> None:
    """No number of pods that no cluster has is made."""
    found = made(workload("Deployment", spec))
    assert isinstance(found, tuple)

    assert [str(each).startswith("f.yaml:4: ") for each in found] == [True]
    assert message in str(found[0])


def test_a_pod_with_the_beginning_of_a_name_gets_one() -> None:
    """As a server does, but always the same."""
    [pod] = documents("apiVersion: v1\nkind: Pod\nmetadata: {generateName: p-}\n")

    assert with_name(pod).name == "p-0"


def test_why_there_are_so_many_pods_is_told() -> None:
    """A Job has the pods that run in parallel, even if it is suspended."""
    job = workload("Job", f"suspend: true, parallelism: 2, completions: 3, {TEMPLATE}")
    found = made(job)
    assert isinstance(found, Made)

    assert found.note == (
        "tried as 2 pods, w-0 and w-1; 2 of 3 run at once; it is suspended; dryrack tries it as "
        "if it ran"
    )

"""Behaviour of kinds that no recording covers."""

from __future__ import annotations

import asyncio
import copy
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from tests.apiserver.replay import CountingChance

from dryrack.apiserver.runtime_config import EVERYTHING
from dryrack.apiserver.strategies import strategy_of
from dryrack.apiserver.strategies.pods.qos_class import quality
from dryrack.apiserver.strategy import Write
from dryrack.client.endpoints import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    Endpoint,
)
from dryrack.client.errors import ApiError
from dryrack.client.timekeeping import VirtualClock
from dryrack.client.transport import ADMIN
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.kinds.registry import builtin_kinds
from dryrack.kinds.releases import DEFAULT_RELEASE, Release
from dryrack.kinds.rules.pods.pod_defaults import pull_policy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.registry import Kind


BUDGETS = Endpoint("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
PRIORITIES = Endpoint(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", is_namespaced=False
)
GROUPS = Endpoint("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup")
WORKLOADS = Endpoint("scheduling.k8s.io", "v1alpha2", "workloads", "Workload")
NEW_EVENTS = Endpoint("events.k8s.io", "v1", "events", "Event")
OLD_EVENTS = Endpoint("", "v1", "events", "Event")


def run(scenario: Callable[[Client], Awaitable[None]], release: Release = DEFAULT_RELEASE) -> None:
    """A scenario with a client of a cluster without engines."""

    async def whole() -> None:
        options = ControlPlaneOptions(
            clock=VirtualClock(),
            chance=CountingChance(),
            runtime_config=EVERYTHING,
            release=release,
        )
        async with embedded(options, engines=()) as cluster:
            await scenario(cluster.client)

    asyncio.run(whole())


async def refusal(asked: Awaitable[object]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await asked
    return caught.value


def named(name: str, **more: Any) -> Raw:
    return {"metadata": {"name": name, "namespace": "default"}, **more}


def pod(name: str, **spec: Any) -> Raw:
    return named(name, spec={"containers": [{"name": "c", "image": "i"}], **spec})


def workload(name: str, image: str = "i", **spec: Any) -> Raw:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }
    return named(
        name, spec={"selector": {"matchLabels": {"app": name}}, "template": template, **spec}
    )


async def running(client: Client, name: str, **labels: str) -> Raw:
    """A pod that is bound and says that it runs."""
    made = pod(name)
    made["metadata"]["labels"] = labels
    await client.create(PODS, made)
    binding = named(name, kind="Binding", apiVersion="v1", target={"kind": "Node", "name": "n"})
    await client.create(PODS, binding, subresource="binding")
    current = await client.get(PODS, name, "default")
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    status = {
        **current["status"],
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [
            {"name": "c", "state": state, "ready": True, "image": "i", "imageID": "i"}
        ],
    }
    return await client.update(PODS, {**current, "status": status}, subresource="status")


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("i", "Always"),
        ("i:latest", "Always"),
        ("i:1", "IfNotPresent"),
        ("example.com:5000/a/b", "Always"),
        ("example.com:5000/a/b:1", "IfNotPresent"),
        (f"i@sha256:{'0' * 64}", "IfNotPresent"),
        (f"i:latest@sha256:{'0' * 64}", "Always"),
        ("Not An Image", "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_an_image_is_pulled_again_if_its_tag_may_have_moved(image: str, policy: str) -> None:
    """The tag latest, said or meant, is pulled always; what cannot be read is not."""
    assert pull_policy(image) == policy


def _resources(requests: Raw, limits: Raw) -> Raw:
    return {"resources": {"requests": requests, "limits": limits}}


BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([{}], "BestEffort"),
        ([_resources({"example.com/gpu": "1"}, {"example.com/gpu": "1"})], "BestEffort"),
        ([_resources({"cpu": "0"}, {})], "BestEffort"),
        ([_resources(BOTH, BOTH)], "Guaranteed"),
        ([_resources({"cpu": "1000m", "memory": "1024Mi"}, BOTH)], "Guaranteed"),
        ([_resources(BOTH, BOTH), {}], "Burstable"),
        ([_resources({"cpu": "1"}, {})], "Burstable"),
        ([_resources({"cpu": "1"}, {"cpu": "1"})], "Burstable"),
    ],
)
def test_the_quality_of_service_follows_from_what_containers_ask_for(
    containers: list[Raw], expected: str
) -> None:
    """Guaranteed needs equal limits of cpu and memory everywhere; nothing at all is best effort."""
    assert quality({"containers": containers}) == expected


def test_a_pod_without_a_class_gets_the_one_for_all() -> None:
    """A global default lends its name, its value and its policy; there is only one."""

    async def scenario(client: Client) -> None:
        made = {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True}
        await client.create(PRIORITIES, made | {"preemptionPolicy": "Never"})
        spec = (await client.create(PODS, pod("p")))["spec"]
        shown = spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]
        assert shown == ("usual", 7, "Never")
        again = {"metadata": {"name": "other"}, "value": 8, "globalDefault": True}
        error = await refusal(client.create(PRIORITIES, again))
        assert "PriorityClass usual is already marked as default" in str(error)

    run(scenario)


def test_a_bound_pod_knows_where_its_node_is() -> None:
    """Zone and region of the node become labels of the pod; other labels do not."""

    async def scenario(client: Client) -> None:
        labels = {
            "topology.kubernetes.io/zone": "z",
            "topology.kubernetes.io/region": "r",
            "rack": "7",
        }
        await client.create(NODES, {"metadata": {"name": "n", "labels": labels}})
        bound = await running(client, "p")
        assert bound["metadata"]["labels"] == {
            "topology.kubernetes.io/zone": "z",
            "topology.kubernetes.io/region": "r",
        }

    run(scenario)


def test_a_status_keeps_what_older_kubelets_do_not_know() -> None:
    """The generation that a status or a condition is about stays if it is left out."""

    async def scenario(client: Client) -> None:
        current = await running(client, "p")
        ready = {"type": "Ready", "status": "True", "observedGeneration": 1}
        status = {**current["status"], "observedGeneration": 1, "conditions": [ready]}
        current = await client.update(PODS, {**current, "status": status}, subresource="status")
        less = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
        kept = await client.update(PODS, {**current, "status": less}, subresource="status")
        assert (kept["status"]["observedGeneration"], kept["status"]["qosClass"]) == (
            1,
            "BestEffort",
        )
        assert [each["observedGeneration"] for each in kept["status"]["conditions"]] == [1]

    run(scenario)


def test_an_eviction_asks_the_budget() -> None:
    """An eviction is too early before the budget has a status, and refused at zero disruptions."""

    async def scenario(client: Client) -> None:
        await running(client, "p", app="x")
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
        budget = await client.create(BUDGETS, named("b", spec=spec))
        eviction = named("p", apiVersion="policy/v1", kind="Eviction")

        error = await refusal(client.create(PODS, eviction, subresource="eviction"))
        assert (error.code, "still being processed" in str(error.status)) == (429, True)
        counted = {"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1}
        status = {**counted, "disruptionsAllowed": 0, "expectedPods": 1}
        budget = await client.update(BUDGETS, {**budget, "status": status}, subresource="status")
        error = await refusal(client.create(PODS, eviction, subresource="eviction"))
        assert "needs 1 healthy pods and has 1 currently" in str(error.status)

        status["disruptionsAllowed"] = 1
        await client.update(BUDGETS, {**budget, "status": status}, subresource="status")
        await client.create(PODS, eviction, subresource="eviction")
        evicted = await client.get(PODS, "p", "default")
        assert "deletionTimestamp" in evicted["metadata"]
        assert "DisruptionTarget" in [each["type"] for each in evicted["status"]["conditions"]]
        left = (await client.get(BUDGETS, "b", "default"))["status"]
        assert (left["disruptionsAllowed"], list(left["disruptedPods"])) == (0, ["p"])

    run(scenario)


def test_a_log_is_for_a_container_that_runs() -> None:
    """Unbound: nothing; waiting: refused; running: its text, cut as asked; before: none."""

    async def scenario(client: Client) -> None:
        await running(client, "p")
        text = await client.text(PODS, "p", namespace="default", subresource="log")
        assert text == "# simulated: image i, no process runs\n"
        await client.create(PODS, pod("unbound"))
        text = await client.text(PODS, "unbound", namespace="default", subresource="log")
        assert text == ""
        await client.create(PODS, pod("waiting", nodeName="n"))
        asked = client.text(PODS, "waiting", namespace="default", subresource="log")
        assert 'container "c" in pod "waiting" is waiting to start' in str(await refusal(asked))

    run(scenario)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("pods/p/portforward", "port-forward is not supported"),
        ("pods/p/proxy/index.html", "proxy is not supported"),
        ("services/s/proxy", "proxy is not supported"),
    ],
)
def test_what_needs_a_running_program_is_refused_with_the_reason(path: str, said: str) -> None:
    """Containers do not run, and the answer says so."""

    async def scenario(client: Client) -> None:
        with pytest.raises(ApiError, match=said) as refused:
            await client.get_path(f"/api/v1/namespaces/default/{path}")
        assert refused.value.code == 501

    run(scenario)


def test_a_namespace_stays_until_it_is_finalized() -> None:
    """A deletion marks it, nothing new gets in, and the last finalizer lets it go."""

    async def scenario(client: Client) -> None:
        await client.create(NAMESPACES, {"metadata": {"name": "team"}})
        await client.delete(NAMESPACES, "team")
        ending = await client.get(NAMESPACES, "team")
        assert ending["status"]["phase"] == "Terminating"
        done = {**ending, "spec": {"finalizers": []}}
        kept = await client.update(NAMESPACES, done)
        assert kept["spec"]["finalizers"] == ["kubernetes"]
        await client.update(NAMESPACES, {**kept, "spec": {}}, subresource="finalize")
        assert (await refusal(client.get(NAMESPACES, "team"))).reason == "NotFound"

    run(scenario)


def test_generations_count_changes_of_the_spec() -> None:
    """Labels and status count nothing; of a deployment annotations do."""

    async def scenario(client: Client) -> None:
        made = await client.create(DEPLOYMENTS, workload("d"))
        made["metadata"]["labels"] = {"a": "b"}
        made = await client.update(DEPLOYMENTS, made)
        assert made["metadata"]["generation"] == 1
        made["spec"]["replicas"] = 3
        made = await client.update(DEPLOYMENTS, made)
        made["metadata"]["annotations"] = {"a": "b"}
        made = await client.update(DEPLOYMENTS, made)
        assert made["metadata"]["generation"] == 3
        status = {**made, "status": {"replicas": 3}}
        made = await client.update(DEPLOYMENTS, status, subresource="status")
        assert made["metadata"]["generation"] == 3

    run(scenario)


def test_a_daemon_set_counts_its_templates() -> None:
    """The old generation counter is an annotation that clients cannot write."""
    counter = "deprecated.daemonset.template.generation"

    async def scenario(client: Client) -> None:
        made = await client.create(DAEMON_SETS, workload("d"))
        assert made["metadata"]["annotations"] == {counter: "1"}
        made["metadata"]["annotations"] = {counter: "9"}
        made = await client.update(DAEMON_SETS, made)
        assert made["metadata"]["annotations"] == {counter: "1"}
        made["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
        made = await client.update(DAEMON_SETS, made)
        assert made["metadata"]["annotations"] == {counter: "2"}

    run(scenario)


def test_a_scale_writes_the_workload_at_the_revision_that_was_seen() -> None:
    """A scale update scales the deployment; an old revision is a conflict."""

    async def scenario(client: Client) -> None:
        await client.create(DEPLOYMENTS, workload("d"))
        path = DEPLOYMENTS.path("default", "d", "scale")
        scale = await client.get_path(path)
        scale["spec"]["replicas"] = 4
        answer = await client.update(DEPLOYMENTS, scale, subresource="scale")
        assert answer["spec"] == {"replicas": 4}
        stored = await client.get(DEPLOYMENTS, "d", "default")
        assert (stored["spec"]["replicas"], stored["metadata"]["generation"]) == (4, 2)
        parts = [each.get("subresource") for each in stored["metadata"]["managedFields"]]
        assert parts == [None, "scale"]
        error = await refusal(client.update(DEPLOYMENTS, scale, subresource="scale"))
        assert error.reason == "Conflict"

    run(scenario)


def test_an_applied_scale_owns_the_number_and_nothing_else() -> None:
    """An apply of another number is a conflict that names the owner; force takes ownership."""

    async def scenario(client: Client) -> None:
        await client.create(DEPLOYMENTS, workload("d", replicas=2))
        nothing = named("d", apiVersion="autoscaling/v1", kind="Scale", spec={"replicas": 0})
        apply = partial(client.apply, DEPLOYMENTS, nothing, manager="s", subresource="scale")
        error = await refusal(apply())
        assert (error.reason, ".spec.replicas" in str(error)) == ("Conflict", True)
        assert (await apply(force=True))["spec"] == {}
        stored = await client.get(DEPLOYMENTS, "d", "default")
        owned = {each["manager"]: each["fieldsV1"] for each in stored["metadata"]["managedFields"]}
        assert stored["spec"]["replicas"] == 0
        assert owned["s"] == {"f:spec": {"f:replicas": {}}}

    run(scenario)


def test_a_job_that_is_deleted_leaves_its_pods() -> None:
    """A deletion of a Job without a policy orphans its pods, as older clients expect."""

    async def scenario(client: Client) -> None:
        job = workload("j")
        job["spec"].pop("selector")
        job["spec"]["template"]["spec"]["restartPolicy"] = "Never"
        await client.create(JOBS, job)
        await client.delete(JOBS, "j", namespace="default")
        left = await client.get(JOBS, "j", "default")
        assert left["metadata"]["finalizers"] == ["orphan"]

    run(scenario)


def test_a_job_that_waits_can_be_moved_and_nothing_else() -> None:
    """While it is suspended its pods can be sent elsewhere; what they run stays."""

    async def scenario(client: Client) -> None:
        job = workload("j")
        job["spec"].pop("selector")
        job["spec"]["suspend"] = True
        job["spec"]["template"]["spec"]["restartPolicy"] = "Never"
        made = await client.create(JOBS, job)
        made["spec"]["template"]["spec"]["nodeSelector"] = {"zone": "a"}
        made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
        made = await client.update(JOBS, made)
        assert made["metadata"]["generation"] == 2
        made["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
        error = await refusal(client.update(JOBS, made))
        fields = [cause["field"] for cause in error.status["details"]["causes"]]
        assert fields == ["spec.template.spec"]
        assert "changed: spec.template.spec.containers[0].image" in str(error)

    run(scenario)


def test_a_change_of_a_fixed_field_is_refused_with_its_path() -> None:
    """Most fields of a pod are immutable; the message names the changed fields."""

    async def scenario(client: Client) -> None:
        made = await client.create(PODS, pod("p", nodeSelector={"a": "b"}))
        made["spec"]["nodeSelector"] = {"a": "c"}
        made["spec"]["containers"][0] |= {"command": ["sh"], "image": "other"}
        error = await refusal(client.update(PODS, made))
        assert error.code == 422
        assert "changed: spec.containers[0].command, spec.nodeSelector.a" in str(error)

    run(scenario)


@pytest.mark.parametrize(
    ("containers", "said"),
    [
        ([], "containers may not be added, removed, renamed or reordered on resize"),
        ([{"name": "d"}], "containers may not be added, removed, renamed or reordered on resize"),
        ([{"name": "c"}], "resource requests cannot be removed"),
        ([{"name": "c"}], "Pod QOS Class may not change as a result of resizing"),
        ([{"name": "c", "resizePolicy": []}], "only cpu and memory resources are mutable"),
        (
            [{"name": "c", "resources": {"requests": {"cpu": "1", "example.com/gpu": "1"}}}],
            "only cpu and memory resources are mutable",
        ),
        (
            [{"name": "c", "resources": {"requests": {"cpu": "9"}}}],
            "node didn't have enough allocatable resources: cpu, requested: 9, allocatable: 8",
        ),
    ],
)
def test_a_resize_is_of_cpu_and_memory_within_the_node(containers: list[Raw], said: str) -> None:
    """It changes amounts of containers that are there, to what their node has at most."""

    async def scenario(client: Client) -> None:
        allocatable = {"cpu": "8", "memory": "1Gi", "pods": "10"}
        await client.create(
            NODES, {"metadata": {"name": "n"}, "status": {"allocatable": allocatable}}
        )
        policy = [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]
        asking = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        made = await client.create(
            PODS, pod("p", nodeName="n", containers=[{**asking, "resizePolicy": policy}])
        )
        sent = [{"image": "i", "resizePolicy": policy, **each} for each in containers]
        made["spec"]["containers"] = sent
        error = await refusal(client.update(PODS, made, subresource="resize"))
        assert said in str(error)

    run(scenario)


def test_a_debug_container_stays_as_it_is() -> None:
    """Ephemeral containers cannot change or be removed; more can be added."""

    async def scenario(client: Client) -> None:
        made = await client.create(PODS, pod("p"))
        made["spec"]["ephemeralContainers"] = [{"name": "d", "image": "d"}]
        made = await client.update(PODS, made, subresource="ephemeralcontainers")
        for then in ([], [{"name": "d", "image": "e"}]):
            spec = {**made["spec"], "ephemeralContainers": then}
            error = await refusal(
                client.update(PODS, {**made, "spec": spec}, subresource="ephemeralcontainers")
            )
            assert 'ephemeral containers "d" may not be changed or removed' in str(error)
        made["spec"]["ephemeralContainers"].append({"name": "e", "image": "e"})
        made = await client.update(PODS, made, subresource="ephemeralcontainers")
        assert [each["name"] for each in made["spec"]["ephemeralContainers"]] == ["d", "e"]

    run(scenario)


def test_a_gated_pod_is_only_narrowed() -> None:
    """The node selection of a gated pod can only become narrower."""

    async def scenario(client: Client) -> None:
        gates = [{"name": "example.com/wait"}]
        made = await client.create(PODS, pod("p", schedulingGates=gates, nodeSelector={"a": "b"}))
        made["spec"]["nodeSelector"] = {"a": "b", "c": "d"}
        made = await client.update(PODS, made)
        made["spec"]["nodeSelector"] = {"c": "d"}
        error = await refusal(client.update(PODS, made))
        assert "only additions to spec.nodeSelector are allowed" in str(error)

    run(scenario)


def test_both_kinds_of_events_are_one() -> None:
    """An event of either kind is read, listed and deleted as the other."""

    async def scenario(client: Client) -> None:
        about = {"kind": "Pod", "namespace": "default", "name": "p"}
        await client.create(OLD_EVENTS, named("e", involvedObject=about, message="so", count=2))
        new = await client.get(NEW_EVENTS, "e", "default")
        assert (new["regarding"], new["note"], new["deprecatedCount"]) == (about, "so", 2)
        assert [each["kind"] for each in (await client.list(NEW_EVENTS)).items] == ["Event"]
        await client.delete(NEW_EVENTS, "e", namespace="default")
        assert (await client.list(OLD_EVENTS)).items == ()

    run(scenario)


def test_how_a_group_is_scheduled_is_said_once() -> None:
    """Exactly one policy, at least one pod, and no change of mind; workloads are alike."""

    async def scenario(client: Client) -> None:
        policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
        made = await client.create(GROUPS, named("g", spec=policy))
        assert made["spec"]["disruptionMode"] == "Pod"
        made["spec"]["schedulingPolicy"]["gang"]["minCount"] = 3
        error = await refusal(client.update(GROUPS, made))
        assert "spec.schedulingPolicy: Invalid value: null: field is immutable" in str(error)
        both = {"schedulingPolicy": {"basic": {}, "gang": {"minCount": -1}}}
        error = await refusal(client.create(GROUPS, named("h", spec=both)))
        assert "must specify exactly one of: `basic`, `gang`" in str(error)
        assert "must be greater than or equal to 1" in str(error)
        error = await refusal(client.create(WORKLOADS, named("w", spec={})))
        assert "spec.podGroupTemplates: Required value" in str(error)

    run(scenario, Release.V1_36)


class _Nothing:
    """A cluster with nothing in it."""

    def get(self, resource: str, namespace: str, name: str) -> Raw | None:
        return None

    def list(self, resource: str, namespace: str | None) -> tuple[Raw, ...]:
        return ()


def _write(subresource: str = "") -> Write:
    return Write(
        now="2026-01-01T00:00:00Z",
        user=ADMIN,
        namespace="default",
        subresource=subresource,
        dry_run=False,
        chance=CountingChance(),
        lookup=_Nothing(),
        warn=lambda _: None,
    )


SAMPLES: dict[str, Raw] = {
    "Pod": pod("x", volumes=[{"name": "v", "configMap": {"name": "c"}}]),
    "Deployment": workload("x"),
    "ReplicaSet": workload("x"),
    "StatefulSet": workload("x"),
    "DaemonSet": workload("x"),
    "Job": workload("x"),
    "Node": named("x", spec={"podCIDR": "10.0.0.0/24"}, status={"capacity": {"cpu": "1"}}),
    "Namespace": named("x"),
    "Secret": named("x", stringData={"a": "b"}),
    "ConfigMap": named("x", data={"a": "b"}),
    "PodGroup": named("x", spec={"schedulingPolicy": {"basic": {}}}),
    "RoleBinding": named("x", roleRef={"kind": "Role", "name": "r"}, subjects=[{"kind": "User"}]),
}


@pytest.mark.parametrize(
    "kind",
    [each for each in builtin_kinds(DEFAULT_RELEASE) if each.kind in SAMPLES],
    ids=lambda kind: kind.storage,
)
def test_what_a_strategy_is_given_is_never_changed(kind: Any) -> None:
    """Objects are shared by the store and every watcher: each step answers with a copy."""
    strategy = strategy_of(kind)
    sample = copy.deepcopy(SAMPLES[kind.kind])
    sample["metadata"]["uid"] = "u"
    for step in (
        lambda obj: strategy.default(obj, _write()),
        lambda obj: strategy.admit(obj, None, _write()),
        lambda obj: strategy.prepare_create(obj, _write()),
        lambda obj: strategy.prepare_update({**obj, "status": {}}, obj, _write("status")),
        lambda obj: strategy.prepare_delete(obj, _write()),
        strategy.to_storage,
    ):
        before = copy.deepcopy(sample)
        made = step(sample)
        strategy.validate_create(made, _write())
        assert sample == before
        sample = made


@pytest.mark.parametrize(
    "kind", builtin_kinds(DEFAULT_RELEASE), ids=lambda kind: f"{kind.api_version}/{kind.kind}"
)
def test_a_strategy_has_the_scope_and_the_status_of_its_kind(kind: Kind) -> None:
    """The rules of a kind and its row in the registry agree."""
    strategy = strategy_of(kind)
    assert (strategy.namespaced, strategy.has_status) == (kind.namespaced, kind.has_status)

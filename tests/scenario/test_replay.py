"""Clusters recorded as scenarios: what is in them, what comes of them again, and what differs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.cli.dumps import CLASS, claim, pod, pod_spec

from dryrack.base.errors import ContentError
from dryrack.cli.output import yaml_text
from dryrack.cluster.rights import MANIFESTS
from dryrack.scenario import (
    EmbeddedRun,
    Outcome,
    PodPlacement,
    anonymous,
    compare,
    read_scenario,
    record,
    run_in_virtual_time,
    with_fleet,
    with_objects,
)
from dryrack.scenario.fuzzing.random_worlds import random_scenario
from dryrack.scenario.model import Fleet, NodeGroup
from dryrack.testing import Cluster, Setup

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw
    from dryrack.scenario.replay.recording import Recording
    from dryrack.store import Key, Record

KINDS = (
    *("nodes", "pods", "resourceclaims", "resourceclaimtemplates", "resourceslices"),
    *("deviceclasses", "namespaces", "priorityclasses"),
)
GPU = {"deviceClassName": "gpu.nvidia.com"}
GANG = "pod-group.scheduling.sigs.k8s.io"


def objects_of(cluster: Cluster, *more: str) -> list[Raw]:
    return [each for kind in (*KINDS, *more) for each in cluster.list(kind)]


def replayed(scenario: Raw) -> Outcome:
    """What comes of a recording, as a file."""
    loaded = read_scenario(yaml_text(scenario), "recorded.yaml", name="recorded", folder=Path())
    outcome = run_in_virtual_time(loaded, EmbeddedRun())
    assert outcome.held, outcome.failures
    return outcome


def recorded(*wanted: Raw, **fleet: Any) -> tuple[Recording, dict[str, tuple[str, int]]]:
    """A cluster with these objects, and where its pods are and with how many devices."""
    with Cluster() as cluster:
        cluster.add_nodes(devices="fake:4", **({"count": 2} | fleet))
        for each in wanted:
            cluster.apply(each)
            cluster.advance("1m")
        placed = {
            f"{each['metadata']['namespace']}/{each['metadata']['name']}": each["spec"]["nodeName"]
            for each in cluster.list("pods")
            if each["spec"].get("nodeName")
        }
        there = {name: (node, len(_devices(cluster, name))) for name, node in placed.items()}
        return record(objects_of(cluster)), there


def _devices(cluster: Cluster, pod: str) -> tuple[str, ...]:
    return cluster.expect_scheduled(f"pod/{pod}").devices


def summary(outcome: Outcome) -> dict[str, tuple[str, int]]:
    return {each.pod: (each.node, len(each.devices)) for each in outcome.placements if each.node}


def test_a_replay_comes_to_what_the_cluster_came_to() -> None:
    """The same nodes and as many devices, for pods with claims by name and by template."""
    recording, there = recorded(
        claim("two", 2, "ResourceClaimTemplate"),
        claim("four", 4),
        pod("first", resourceClaimName="four"),
        pod("second", resourceClaimTemplateName="two"),
        pod("third", resourceClaimTemplateName="two"),
        pod("fourth", resourceClaimTemplateName="two"),
    )
    outcome = replayed(recording.scenario)
    (waiting,) = [each for each in outcome.placements if not each.node]

    assert recording.notes == ()
    assert len(there) == 3
    assert summary(outcome) == there
    assert waiting.pod == "default/fourth"
    assert "cannot allocate all claims" in waiting.message


def test_devices_that_a_publisher_made_are_there_again() -> None:
    """The publisher of a replay leaves the recorded slices of another publisher alone."""
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one"},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": GPU}]}}},
    }
    with Cluster() as cluster:
        cluster.add_nodes("p5.48xlarge", count=1)
        cluster.apply([template, pod("p", resourceClaimTemplateName="one")])
        cluster.expect_scheduled("p", devices=1)
        dump = objects_of(cluster)
    labels = [each["metadata"].get("labels") for each in dump if each["kind"] == "ResourceSlice"]
    outcome = replayed(record(dump).scenario)

    assert all("kwok.x-k8s.io/managed-by" in each for each in labels)
    assert labels
    assert summary(outcome) == {"default/p": ("node-1", 1)}


@pytest.mark.parametrize(
    ("seed", "faults"),
    [
        *((1000 + number, 2) for number in range(6)),
        # Gangs of which members have gone.
        *((50403, 12), (50417, 12)),
        # A pod of a DaemonSet preempted another pod of the recording.
        (50408, 12),
        # Devices that were tainted while pods had them.
        *((61016, 10), (61023, 10)),
    ],
)
def test_replays_of_random_worlds_place_the_same_pods(seed: int, faults: int) -> None:
    """Whatever people ran: pods with a node get one again, and pods that wait still wait."""
    loaded = load(random_scenario(seed, faults=faults))
    store: dict[Key, Raw] = {}
    most: dict[Key, Raw] = {}

    def write(entry: Record, _at: float) -> None:
        nonlocal most
        if entry.json is None:
            store.pop(entry.key, None)
        else:
            store[entry.key] = json.loads(entry.json)
        if entry.key.resource == "pods" and _running(store) >= _running(most):
            most = dict(store)

    run_in_virtual_time(loaded, EmbeddedRun(seed=seed, on_write=write, skips_missing=True))
    scenario = record(most.values()).scenario
    outcome = run_in_virtual_time(load(scenario), EmbeddedRun())

    assert outcome.held, outcome.failures
    assert outcome.fidelity is not None
    assert outcome.fidelity.placed_then == outcome.fidelity.placed_now == _running(most)


def _running(objects: dict[Key, Raw]) -> int:
    """Return how many pods have a node and are not ending."""
    pods = [each for key, each in objects.items() if key.resource == "pods"]
    return sum(
        each["status"].get("phase") == "Running" and "deletionTimestamp" not in each["metadata"]
        for each in pods
    )


def test_a_pod_that_waited_longer_does_not_take_the_devices_of_another() -> None:
    """Pods come when they got their nodes, and those without one come last."""
    with Cluster() as cluster:
        cluster.add_nodes(devices="fake:4")
        cluster.apply([claim("three", 3, "ResourceClaimTemplate"), claim("four", 4)])
        cluster.apply(pod("gone", resourceClaimTemplateName="three"))
        cluster.advance("1m")
        cluster.apply(pod("large", resourceClaimName="four"))
        cluster.advance("1m")
        cluster.apply(claim("one", 1, "ResourceClaimTemplate"))
        cluster.apply(pod("small", resourceClaimTemplateName="one"))
        cluster.advance("1m")
        cluster.delete("pod", "gone")
        cluster.advance("1m")
        scenario = record(objects_of(cluster)).scenario

    assert scenario["recorded"] == [
        {"pod": "default/large"},
        {"pod": "default/small", "node": "node-1", "devices": 1},
    ]
    assert summary(replayed(scenario)) == {"default/small": ("node-1", 1)}


def test_a_pod_without_a_claim_template_does_not_overtake_one_with() -> None:
    """Pods of one second come one after the other, in the order of their last writes."""
    with Cluster() as cluster:
        cluster.add_nodes(devices="fake:4")
        cluster.apply([claim("three", 3, "ResourceClaimTemplate"), claim("two", 2)])
        cluster.apply(pod("first", resourceClaimTemplateName="three"))
        cluster.expect_scheduled("first")
        dump = objects_of(cluster)
    # A second pod of the same second that cannot fit: the recording says that it had a node.
    taken = next(each for each in dump if each["kind"] == "Pod")
    second = pod("second", resourceClaimName="two")
    second["metadata"] |= {
        **{key: taken["metadata"][key] for key in ("creationTimestamp", "namespace")},
        "resourceVersion": "999999",
    }
    second["spec"]["nodeName"] = "node-1"
    second["status"] = taken["status"]
    loaded = load(record([*dump, second, claim("two", 2)]).scenario)
    outcome = run_in_virtual_time(loaded, EmbeddedRun())

    assert summary(outcome) == {"default/first": ("node-1", 3)}
    assert not outcome.held
    (failure,) = outcome.failures
    lost = "scheduled in the recording, not scheduled now: default/second: 0/1 nodes"
    assert failure.startswith(lost)


@pytest.mark.parametrize("hides", [False, True])
def test_pods_stay_on_a_node_that_takes_no_further_pods(hides: bool) -> None:
    """A node that was cordoned, tainted or lost after its pods came becomes so after them."""
    taint = {"key": "maintenance", "value": "now", "effect": "NoSchedule"}
    with Cluster() as cluster:
        cluster.add_nodes(count=3, devices="fake:4")
        cluster.apply(claim("four", 4, "ResourceClaimTemplate"))
        cluster.apply([pod(f"p{each}", resourceClaimTemplateName="four") for each in range(3)])
        cluster.expect_scheduled("p*", devices=4)
        cluster.apply(pod("late", resourceClaimTemplateName="four"))
        cluster.advance("1m")
        dump = objects_of(cluster)
    cordoned, tainted, lost = [each for each in dump if each["kind"] == "Node"]
    cordoned["spec"]["unschedulable"] = True
    tainted["spec"]["taints"] = [taint]
    lost["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    scenario = record(dump).scenario
    if hides:
        scenario = anonymous(scenario)
    outcome = replayed(scenario)

    assert outcome.fidelity is not None
    assert (outcome.fidelity.placed_then, outcome.fidelity.placed_now) == (3, 3)
    fails = [step["fail"] for step in scenario["steps"] if "fail" in step]
    assert fails == [[f"node {'node-3' if not hides else fails[0][0].split()[1]} ready=false"]]
    smaller = with_fleet(load(scenario), Fleet(nodes=(NodeGroup(name="node-1"),)))
    assert not any(step.fail for step in smaller.scenario.steps)


def test_a_device_that_was_tainted_while_a_pod_had_it_is_tainted_after_the_pod() -> None:
    """The pod gets the device again, and a later pod does not."""
    with Cluster() as cluster:
        cluster.add_nodes(count=1, devices="fake:1")
        cluster.apply([claim("one", 1, "ResourceClaimTemplate")])
        cluster.apply(pod("early", resourceClaimTemplateName="one"))
        cluster.expect_scheduled("early", devices=1)
        cluster.apply(pod("late", resourceClaimTemplateName="one"))
        cluster.advance("1m")
        dump = objects_of(cluster)
    (published,) = [each for each in dump if each["kind"] == "ResourceSlice"]
    published["spec"]["devices"][0]["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
    scenario = record(dump).scenario

    (step,) = [each for each in scenario["steps"] if "ResourceSlice" in each["title"]]
    assert step["apply"][0]["spec"] == published["spec"]
    assert summary(replayed(scenario)) == {"default/early": ("node-1", 1)}


def _node(name: str, *, unschedulable: bool) -> Raw:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    return {**node, "spec": {"unschedulable": unschedulable}}


def test_pods_of_a_recording_do_not_preempt_each_other() -> None:
    """A pod with a higher priority comes first; a node that is cordoned now takes pods before."""
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 1000,
    }
    tied = pod("tied", resourceClaimTemplateName="four")
    tied["spec"] |= {
        "priorityClassName": "urgent",
        "nodeSelector": {"kubernetes.io/hostname": "node-1"},
    }
    with Cluster() as cluster:
        cluster.add_nodes(count=2, devices="fake:4")
        cluster.apply([claim("four", 4, "ResourceClaimTemplate"), urgent])
        cluster.apply(_node("node-1", unschedulable=True))
        cluster.apply(pod("usual", resourceClaimTemplateName="four"))
        cluster.expect_scheduled("usual", devices=4)
        cluster.advance("1m")
        cluster.apply(_node("node-1", unschedulable=False))
        cluster.apply(tied)
        cluster.expect_scheduled("tied", devices=4)
        dump = objects_of(cluster)
    for each in dump:
        if each["kind"] == "Node":
            each["spec"]["unschedulable"] = True

    assert summary(replayed(record(dump).scenario)) == {
        "default/tied": ("node-1", 4),
        "default/usual": ("node-2", 4),
    }


def _member(name: str, dialect: str) -> Raw:
    member = pod(name, resourceClaimTemplateName="one")
    if dialect == "labels":
        labels = {f"{GANG}/name": "trio", f"{GANG}/min-available": "3"}
    else:
        labels = {"scheduling.x-k8s.io/pod-group": "trio"}
    member["metadata"]["labels"] = labels
    return member


@pytest.mark.parametrize("dialect", ["labels", "PodGroup"])
@pytest.mark.parametrize("left", [1, 2])
def test_a_gang_runs_again_without_the_members_that_have_gone(dialect: str, left: int) -> None:
    """A gang that starts needs its minimum, so the recording lowers it, and says that."""
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "trio", "namespace": "default"},
        "spec": {"minMember": 3},
    }
    with Cluster() as cluster:
        cluster.add_nodes(count=1, devices="fake:4")
        cluster.apply(claim("one", 1, "ResourceClaimTemplate"))
        if dialect == "PodGroup":
            cluster.apply(MANIFESTS / "podgroups.yaml")
            cluster.apply(group)
        cluster.apply([_member(f"m{each}", dialect) for each in range(3)])
        cluster.expect_scheduled("m*", devices=1)
        for number in range(left, 3):
            cluster.delete("pod", f"m{number}")
        cluster.advance("1m")
        dump = [*objects_of(cluster), *([group] if dialect == "PodGroup" else [])]
    recording = record(dump)

    assert len(summary(replayed(recording.scenario))) == left
    (note,) = recording.notes
    assert note.endswith("fewer than its minimum: recorded with this minimum")
    assert len(summary(replayed(anonymous(recording.scenario)))) == left


def test_classes_that_a_dump_lacks_are_made_of_what_they_gave_to_pods() -> None:
    """Priority, overhead, and a template that is another now."""
    runtime = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "sandbox"},
        "handler": "sandbox",
        "overhead": {"podFixed": {"cpu": "250m"}},
    }
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 100}
    asking = pod("p", resourceClaimTemplateName="two")
    asking["spec"] |= {"runtimeClassName": "sandbox", "priorityClassName": "high"}
    with Cluster() as cluster:
        cluster.add_nodes(devices="fake:4")
        cluster.apply([runtime, {**priority, "metadata": {"name": "high"}}])
        cluster.apply([claim("two", 2, "ResourceClaimTemplate"), asking])
        cluster.expect_scheduled("p", devices=2)
        dump = [each for each in objects_of(cluster) if each["kind"] != "PriorityClass"]
    template = next(each for each in dump if each["kind"] == "ResourceClaimTemplate")
    template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 3
    elsewhere = {**template, "metadata": {"name": "unused", "namespace": "nobody"}}

    assert summary(replayed(record([*dump, elsewhere]).scenario)) == {"default/p": ("node-1", 2)}


def test_rules_come_after_the_pods_that_were_there_before_them() -> None:
    """A DeviceTaintRule that was added later leaves earlier pods their devices."""
    rule = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "later", "creationTimestamp": "2999-01-01T00:00:00Z"},
        "spec": {
            "deviceSelector": {"pool": "node-1"},
            "taint": {"key": "broken", "effect": "NoSchedule"},
        },
    }
    with Cluster() as cluster:
        cluster.add_nodes(count=1, devices="fake:4")
        cluster.apply([claim("four", 4), pod("p", resourceClaimName="four")])
        cluster.expect_scheduled("p", devices=4)
        dump = objects_of(cluster)
    scenario = record([*dump, rule]).scenario

    assert [each["kind"] for each in scenario["steps"][1]["apply"]] == ["DeviceTaintRule"]
    assert summary(replayed(scenario)) == {"default/p": ("node-1", 4)}


def test_pods_come_in_their_order_with_the_time_between_them_cut_short() -> None:
    """A minute is ten seconds; pods of one second come together."""
    recording, _ = recorded(pod("b", resourceClaimName="none"), pod("a", resourceClaimName="none"))
    steps = recording.scenario["steps"]

    assert [step.get("at") for step in steps] == ["10s", "20s", None]
    assert [step["apply"][0]["metadata"]["name"] for step in steps[:2]] == ["b", "a"]


SECRETS = ("hush", "registry.corp", "--password", "annotated", "keytab", "opaque-parameter")


def telling() -> list[Raw]:
    """Objects that say what nobody else should read."""
    config = {"opaque": {"driver": "fake.resource.3-shake.com", "parameters": {"k": SECRETS[5]}}}
    claimed = claim("one", 1)
    claimed["spec"]["devices"]["config"] = [config]
    spoken = pod("talker", resourceClaimName="one")
    spoken["metadata"]["annotations"] = {"note": "annotated"}
    spoken["spec"]["volumes"] = [{"name": "v", "secret": {"secretName": "keytab"}}]
    spoken["spec"]["containers"][0] |= {
        "image": "registry.corp/app",
        "args": ["--password", "hush"],
        "env": [{"name": "TOKEN", "value": "hush"}],
    }
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    return [{**secret, "stringData": {"token": "hush"}}, claimed, spoken]


def test_only_what_a_scheduler_looks_at_is_recorded() -> None:
    """No Secret, environment, argument, image, annotation, volume or parameter, ever."""
    with Cluster() as cluster:
        cluster.add_nodes(devices="fake:4")
        cluster.apply(telling())
        cluster.expect_scheduled("talker", devices=1)
        dump = objects_of(cluster, "secrets", "configmaps", "events")
    assert all(each in yaml.safe_dump(dump) for each in SECRETS[:-1])
    text = yaml.safe_dump(record(dump).scenario)

    assert [each for each in SECRETS if each in text] == []
    assert "managedFields" not in text
    assert "resourceVersion" not in text


def test_a_dump_without_templates_has_the_claims_that_were_made() -> None:
    """As `kubectl get nodes,resourceslices,deviceclasses,resourceclaims,pods` prints it."""
    with Cluster() as cluster:
        cluster.add_nodes(devices="fake:4")
        cluster.apply([claim("two", 2, "ResourceClaimTemplate")])
        cluster.apply(pod("p", resourceClaimTemplateName="two"))
        cluster.expect_scheduled("p")
        dump = [each for each in objects_of(cluster) if each["kind"] != "ResourceClaimTemplate"]
    scenario = record(dump).scenario

    assert "resourceClaimTemplateName" not in yaml.safe_dump(scenario)
    assert summary(replayed(scenario)) == {"default/p": ("node-1", 2)}


def company() -> list[Raw]:
    """Objects that are named after people and projects."""
    labels = {
        "corp.example/project": "moonshot",
        f"{GANG}/name": "moonshot-gang",
        f"{GANG}/min-available": "2",
    }
    members = [pod(f"moonshot-{each}", resourceClaimTemplateName="moonshot") for each in "ab"]
    for each in members:
        each["metadata"] |= {"namespace": "team-moonshot", "labels": labels}
        each["spec"] |= {
            "nodeSelector": {"corp.example/rack": "basement"},
            "tolerations": [{"key": "corp.example/owner", "value": "alice", "operator": "Equal"}],
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "labelSelector": {"matchLabels": {"corp.example/project": "moonshot"}},
                            "topologyKey": "kubernetes.io/hostname",
                        }
                    ]
                }
            },
        }
        each["spec"]["containers"][0]["name"] = "moonshot-main"
        each["spec"]["priorityClassName"] = "moonshot-first"
    template = claim("moonshot", 2, "ResourceClaimTemplate")
    template["metadata"]["namespace"] = "team-moonshot"
    own_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "moonshot-cards"},
        "spec": {"selectors": [{"cel": {"expression": 'device.driver != "alice"'}}]},
    }
    exactly = template["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    exactly["deviceClassName"] = "moonshot-cards"
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 100}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-moonshot"}},
        {**priority, "metadata": {"name": "moonshot-first"}},
        own_class,
        template,
        *members,
    ]


def test_an_anonymous_recording_says_the_same_in_other_names() -> None:
    """Names, keys and values of labels are gone; selectors, gangs and tolerations still fit."""
    with Cluster() as cluster:
        cluster.add_nodes(
            name="basement",
            count=3,
            devices="fake:4",
            labels={"corp.example/rack": "basement"},
            taints=["corp.example/owner=alice:NoSchedule"],
        )
        cluster.apply(company())
        cluster.expect_scheduled("team-moonshot/moonshot-*", devices=2)
        scenario = record(objects_of(cluster)).scenario
    hidden = anonymous(scenario, keeps=frozenset({CLASS}))
    text = yaml.safe_dump(hidden)
    outcome = replayed(hidden)

    named = ("moonshot", "alice", "basement", "corp.example", "team")
    assert [each for each in named if each in text] == []
    assert all(each in yaml.safe_dump(scenario) for each in named)
    assert "min-available: '2'" in text
    assert [(each.node != "", len(each.devices)) for each in outcome.placements] == [(True, 2)] * 2
    assert len({each.node for each in outcome.placements}) == 2
    assert len(summary(replayed(scenario))) == 2


def test_an_anonymous_selector_asks_for_the_same_devices() -> None:
    """Of what it says only identifiers are changed, whatever else has the name of an attribute."""
    uuid = {"string": "GPU-1"}
    device = {"name": "d", "attributes": {"model": {"string": "A100"}, "uuid": uuid}}
    cel = "device.driver == 'x.example' && device.attributes['x.example'].model == 'A100'"
    asked = {"cel": {"expression": f"{cel} && device.attributes['x.example'].uuid == 'GPU-1'"}}
    common = {"apiVersion": "resource.k8s.io/v1", "metadata": {"name": "x.example"}}
    scenario: Raw = {
        "fleet": {"nodes": [{"name": "n", "labels": {"model": "A100"}}]},
        "objects": [
            {**common, "kind": "DeviceClass", "spec": {"selectors": [asked]}},
            {
                **common,
                "kind": "ResourceSlice",
                "spec": {"driver": "x.example", "devices": [device]},
            },
        ],
        "steps": [],
    }
    device_class, resource_slice = anonymous(scenario)["objects"]
    (hidden,) = resource_slice["spec"]["devices"]

    assert hidden["attributes"]["uuid"] == {"string": "identifier-1"}
    assert device_class["metadata"]["name"] == "class-1"
    assert device_class["spec"]["selectors"][0]["cel"]["expression"] == (
        f"{cel} && device.attributes['x.example'].uuid == 'identifier-1'"
    )


def test_gangs_of_pod_groups_are_recorded_with_their_kind() -> None:
    """Custom PodGroups bring their definition; native ones are served though they are off."""
    native = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "pair"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    pods = [pod(f"p{each}", resourceClaimTemplateName="three") for each in (1, 2, 3)]
    for each in pods:
        each["spec"]["schedulingGroup"] = {"podGroupName": "pair"}
    setup = Setup(
        runtime_config="scheduling.k8s.io/v1beta1=true", feature_gates="GenericWorkload=true"
    )
    with Cluster(setup) as cluster:
        cluster.add_nodes(count=2, devices="fake:4")
        cluster.apply([claim("three", 3, "ResourceClaimTemplate"), native, *pods[:2]])
        cluster.expect_scheduled("gang/pair", devices=3)
        dump = objects_of(cluster, "podgroups")
    custom = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "other", "namespace": "default"},
        "spec": {"minMember": 2},
    }
    scenario = record([*dump, custom]).scenario

    assert scenario["objects"][0] == "podgroups.yaml"
    assert len(summary(replayed(scenario))) == 2
    assert len(summary(replayed(anonymous(scenario)))) == 2


def test_nodes_that_are_not_ready_are_so_again() -> None:
    """As a fault that lasts; what a cluster says of a node's state is not its taint."""
    with Cluster() as cluster:
        cluster.add_nodes(count=2, devices="fake:4")
        cluster.apply([claim("one", 1), pod("p", resourceClaimName="one")])
        dump = objects_of(cluster)
    for each in dump:
        if each["kind"] == "Node" and each["metadata"]["name"] == "node-1":
            each["spec"] = {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "X"}]}
            each["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    scenario = record(dump).scenario

    assert scenario["faults"] == ["node node-1 ready=false"]
    assert "taints" not in scenario["fleet"]["nodes"][0]
    assert summary(replayed(scenario)) == {"default/p": ("node-2", 1)}


def test_a_node_that_is_cordoned_takes_no_pods_again() -> None:
    """Also under another name; on a fleet without it nothing is left of it."""
    cordon = {"apiVersion": "v1", "kind": "Node", "spec": {"unschedulable": True}}
    recording, there = recorded(
        {**cordon, "metadata": {"name": "node-1"}},
        claim("one", 1),
        pod("p", resourceClaimName="one"),
    )
    outcomes = [replayed(recording.scenario), replayed(anonymous(recording.scenario))]
    without = with_fleet(load(recording.scenario), Fleet(nodes=(NodeGroup(name="node-2"),)))

    assert there == {"default/p": ("node-2", 1)}
    assert [each.placements[0].node for each in outcomes] == ["node-2", "node-2"]
    assert summary(run_in_virtual_time(without, EmbeddedRun())) == there


def test_what_has_ended_is_left_out_and_that_is_said() -> None:
    """Also a cluster in which nothing is left to run is told."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    ended = pod("ended", resourceClaimName="x") | {"status": {"phase": "Succeeded"}}
    alive = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alive"}, "spec": pod_spec()}

    assert record([node, ended, alive]).notes == ("1 pod left out: ended, or ending",)
    with pytest.raises(ContentError, match="no Pods; dump with: "):
        record([node, ended])
    with pytest.raises(ContentError, match="no Nodes; dump with: "):
        record([alive])


def load(scenario: Raw) -> Any:
    return read_scenario(yaml_text(scenario), "r.yaml", name="r", folder=Path())


def test_another_object_stands_in_the_place_of_its_namesake() -> None:
    """In objects and in steps; one without a namesake is there from the start."""
    recording, _ = recorded(claim("one", 1), pod("p", resourceClaimName="one"))
    extra = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "extra"}}
    other = pod("p", resourceClaimName="one") | {"metadata": {"name": "p", "labels": {"new": "1"}}}
    loaded = with_objects(load(recording.scenario), [claim("one", 3), extra, other])
    outcome = run_in_virtual_time(loaded, EmbeddedRun())

    assert extra in loaded.scenario.objects
    assert loaded.scenario.steps[0].apply == (other,)
    assert summary(outcome) == {"default/p": ("node-1", 3)}


def test_on_another_fleet_the_slices_of_nodes_that_are_gone_go() -> None:
    """A fleet that brings devices brings all of them."""
    recording, _ = recorded(claim("one", 1), pod("p", resourceClaimName="one"))
    loaded = load(recording.scenario)
    smaller = with_fleet(loaded, Fleet(nodes=(NodeGroup(name="node-2"),)))
    other = with_fleet(loaded, Fleet(nodes=(NodeGroup(name="new"),), devices=("fake:1",)))

    assert summary(run_in_virtual_time(smaller, EmbeddedRun())) == {"default/p": ("node-2", 1)}
    assert summary(run_in_virtual_time(other, EmbeddedRun())) == {"default/p": ("new", 1)}


def test_on_another_fleet_the_pods_and_faults_of_nodes_that_are_gone_go() -> None:
    """A DaemonSet's pods are for their nodes alone, and a node that is gone cannot fail."""
    daemons = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    }
    recording, there = recorded(claim("one", 1), daemons, pod("p", resourceClaimName="one"))
    scenario = {**recording.scenario, "faults": ["node node-1 ready=false"]}
    kept = with_fleet(load(scenario), Fleet(nodes=(NodeGroup(name="node-2"),)))
    outcome = run_in_virtual_time(kept, EmbeddedRun())

    assert len(there) == 3
    assert outcome.held, outcome.failures
    assert kept.scenario.faults == ()
    assert [each.node for each in outcome.placements] == ["node-2"] * 2
    machines = Fleet(nodes=(NodeGroup(name="node-2", profile="g5.48xlarge"),))
    objects = with_fleet(load(scenario), machines).scenario.objects
    assert "ResourceSlice" not in {each["kind"] for each in objects}


def test_differences_are_told_by_pod_the_gravest_first() -> None:
    """Elsewhere, later, not at all; a second more or less is nothing."""
    before = [
        PodPlacement(pod="a", node="n1", waited=5, devices=("d0",)),
        PodPlacement(pod="b", node="n1"),
        PodPlacement(pod="c", node="n1", devices=("d0",)),
        PodPlacement(pod="d"),
        PodPlacement(pod="e", node="n1"),
        PodPlacement(pod="f", node="n1"),
        PodPlacement(pod="g", node="n1", waited=9),
    ]
    after = [
        PodPlacement(pod="a", node="n1", waited=6, devices=("d0",)),
        PodPlacement(pod="b", node="n2", waited=30),
        PodPlacement(pod="c", node="n1", devices=("d1",)),
        PodPlacement(pod="d", node="n2"),
        PodPlacement(pod="e", message="0/2 nodes"),
        PodPlacement(pod="g", node="n1"),
        PodPlacement(pod="h", node="n1"),
    ]
    comparison = compare(before, after)
    told = {each.pod: [str(what) for what in each.what] for each in comparison.differences}

    assert told == {
        "e": ["not at all"],
        "d": ["now placed"],
        "b": ["elsewhere", "later"],
        "c": ["other devices"],
        "g": ["sooner"],
        "f": ["absent"],
        "h": ["new"],
    }
    assert list(told) == ["e", "d", "b", "c", "g", "f", "h"]
    assert comparison.pods == 8
    assert compare(before, before).differences == ()
    documents = [each.document() for each in after]
    assert [PodPlacement.of_document(each) for each in documents] == after


def test_pods_of_a_workload_are_compared_by_their_number() -> None:
    """Their names are chance."""
    workload = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job"},
        "spec": {
            "parallelism": 2,
            "completions": 2,
            "template": {
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
            },
        },
    }
    scenario = {
        "apiVersion": "dryrack.dev/v1alpha1",
        "kind": "Scenario",
        "fleet": {"nodes": [{"name": "n"}]},
        "steps": [{"apply": [workload]}, {"wait": "2s"}],
    }
    outcomes = [run_in_virtual_time(load(scenario), EmbeddedRun(seed=each)) for each in (1, 2)]

    assert [each.pod for each in outcomes[0].placements] == ["default/job#1", "default/job#2"]
    assert compare(outcomes[0].placements, outcomes[1].placements).differences == ()

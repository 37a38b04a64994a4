"""The cluster of a test, without pytest around it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from dryrack.errors import ContentError, DryrackError
from dryrack.testing import Cluster, ExpectationError, Setup
from dryrack.testing.expectation import ScheduledPod as OnNode
from dryrack.testing.expectation import Target, Wanted, missing_words, seconds_of
from dryrack.testing.node_fleet import node_names

if TYPE_CHECKING:
    from pathlib import Path

CLASS = "fake.3-shake.com"
DRIVER = "fake.resource.3-shake.com"


def claim(name: str, count: int) -> dict[str, object]:
    exactly = {"deviceClassName": CLASS, "count": count}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }


def pod(name: str, *claims: str, **spec: object) -> dict[str, object]:
    entries = [{"name": each, "resourceClaimName": each} for each in claims]
    uses = {"resources": {"claims": [{"name": each} for each in claims]}} if claims else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i", **uses}], **spec}
        | ({"resourceClaims": entries} if claims else {}),
    }


def test_nodes_that_come_later_bring_devices_of_other_kinds() -> None:
    """Engines start again for them, and what there was goes on."""
    with Cluster() as cluster:
        assert cluster.add_nodes(name="small", count=2, devices="fake:2") == ("small-1", "small-2")
        cluster.apply([claim("two", 2), pod("first", "two")])
        cluster.expect_scheduled("first", on="small-*", devices=2)

        cluster.add_nodes(name="large", devices="fake:8", labels={"size": "large"})
        cluster.add_nodes("g5.48xlarge", name="rented")
        cluster.apply([claim("eight", 8), pod("second", "eight")])

        found = cluster.expect_scheduled("second", on="large", devices=[f"{DRIVER}/large/*"] * 8)
        assert found.node == "large"
        counts = {
            (each["spec"]["nodeName"], each["spec"]["driver"]): len(each["spec"]["devices"])
            for each in cluster.list("resourceslices")
        }
        assert counts["small-1", DRIVER] == 2
        assert counts["large", DRIVER] == 8
        assert counts["rented", "gpu.nvidia.com"] == 8
        assert "FAKE_DEVICE_0=" in cluster.logs("first")


def test_two_shares_of_a_device_count_as_two() -> None:
    """A pod that names one claim twice has its devices once."""
    capacity = {"memory": {"value": "8Gi", "requestPolicy": {"default": "1Gi"}}}
    device = {"name": "card", "allowMultipleAllocations": True, "capacity": capacity}
    published = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "shared"},
        "spec": {
            "driver": "shared.example.com",
            "nodeName": "node-1",
            "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
            "devices": [device],
        },
    }
    exactly = {
        "deviceClassName": "shared",
        "selectors": [{"cel": {"expression": "device.driver == 'shared.example.com'"}}],
        "capacity": {"requests": {"memory": "2Gi"}},
    }
    common = {"apiVersion": "resource.k8s.io/v1"}
    asking = {
        **common,
        "kind": "ResourceClaim",
        "metadata": {"name": "halves"},
        "spec": {"devices": {"requests": [{"name": n, "exactly": exactly} for n in ("a", "b")]}},
    }
    device_class = {**common, "kind": "DeviceClass", "metadata": {"name": "shared"}, "spec": {}}
    twice = [{"name": name, "resourceClaimName": "halves"} for name in ("one", "same")]
    with Cluster() as cluster:
        cluster.add_nodes(count=1)
        cluster.apply([published, device_class, asking, pod("p", resourceClaims=twice)])

        found = cluster.expect_scheduled("p", devices=2)

        assert found.pods[0].devices == ("shared.example.com/node-1/card",) * 2
        assert found.devices == ("shared.example.com/node-1/card",)


def test_a_pod_that_waits_for_a_missing_claim_is_pending_because_of_it() -> None:
    """Though no scheduler says anything to it, as with kube-scheduler."""
    with Cluster() as cluster:
        cluster.add_nodes(count=1, devices="fake:1")
        cluster.apply(pod("p", "none"))

        words = cluster.expect_pending("p", because='resourceclaim "none" not found')

        assert "create it" in words
        assert "conditions" not in cluster.get("pods", "p")["status"]
        cluster.apply(claim("none", 1))
        cluster.expect_scheduled("p", devices=1)


def test_an_hour_passes_in_a_moment() -> None:
    """The clock of the cluster is its own."""
    with Cluster() as cluster:
        cluster.add_nodes()
        before = cluster.clock.now()
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "short"},
            "spec": {
                "ttlSecondsAfterFinished": 1800,
                "template": {
                    "metadata": {"annotations": {"dryrack.dev/run-seconds": "60"}},
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{"name": "c", "image": "i"}],
                    },
                },
            },
        }
        cluster.apply(job)
        cluster.expect_scheduled("short-*")
        cluster.clock.advance("10m")
        assert cluster.get("job", "short")["status"]["succeeded"] == 1
        cluster.clock.advance(3600)

        assert cluster.list("jobs") == []
        assert cluster.clock.now() - before >= 4200


def test_what_is_applied_twice_is_changed() -> None:
    """As with kubectl: fields that are no longer said go."""
    with Cluster() as cluster:
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
        cluster.apply({**config, "data": {"a": "1", "b": "2"}})
        (stored,) = cluster.apply({**config, "data": {"a": "3"}})

        assert stored["data"] == {"a": "3"}
        assert cluster.get("configmaps", "c")["data"] == {"a": "3"}
        cluster.delete("cm", "c")
        assert [each["metadata"]["name"] for each in cluster.list("cm", "default")] != ["c"]


def test_taints_and_sizes_of_nodes_count() -> None:
    """A node is what the test says it is."""
    with Cluster() as cluster:
        cluster.add_nodes(name="tainted", taints=["team=a:NoSchedule"])
        cluster.add_nodes(name="tiny", capacity={"cpu": "1"})
        asks = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": 2}}}]}
        cluster.apply(pod("large", **asks))

        cluster.expect_pending("large", because=["Insufficient cpu", "untolerated taint"])
        tolerations = [{"key": "team", "value": "a"}]
        cluster.apply(pod("tolerant", **asks, tolerations=tolerations))
        assert cluster.expect_scheduled("tolerant").node == "tainted"


def test_a_gang_waits_as_a_whole() -> None:
    """Named as a gang, or by one of its pods; it is explained as a gang."""
    labels = {
        "pod-group.scheduling.sigs.k8s.io/name": "pair",
        "pod-group.scheduling.sigs.k8s.io/min-available": "2",
    }
    pods = [pod(f"member-{each}", f"claim-{each}") for each in (1, 2)]
    for each in pods:
        each["metadata"] |= {"labels": labels}  # type: ignore[operator] # a dictionary
    with Cluster() as cluster:
        cluster.add_nodes(devices="fake:4")
        cluster.apply([claim("claim-1", 3), claim("claim-2", 3), *pods])

        for target in ("gang/pair", "pair", "member-1", "member-*"):
            told = cluster.expect_pending(target, because="1 of 2 pods fit")
            assert "pod group default/pair" in told
        with pytest.raises(ExpectationError, match=r"gang default/pair: not scheduled after 5 s"):
            cluster.expect_scheduled("gang/pair", within="5s")
        cluster.add_nodes(devices="fake:4")
        assert len(cluster.expect_scheduled("gang/pair", devices=3).nodes) == 2


def test_wrong_places_and_devices_are_told() -> None:
    """With what the pod has, and why it is there."""
    with Cluster() as cluster:
        cluster.add_nodes(devices="fake:4")
        cluster.apply([claim("two", 2), pod("p", "two")])

        with pytest.raises(ExpectationError, match=r"is on node node-1, expected rack-\*"):
            cluster.expect_scheduled("p", on="rack-*")
        with pytest.raises(ExpectationError, match="has 2 devices, expected 3: fake"):
            cluster.expect_scheduled("p", devices=3)
        with pytest.raises(ExpectationError, match=r"default/q not found"):
            cluster.expect_scheduled("q", within=1)


def test_mistakes_are_told_with_what_would_be_right(tmp_path: Path) -> None:
    """By file and line, name and remedy."""
    file = tmp_path / "wrong.yaml"
    file.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containrs: []\n")
    with Cluster(folders=[tmp_path]) as cluster:
        with pytest.raises(DryrackError, match=r"wrong.yaml:5: Pod p has no field 'containrs'"):
            cluster.apply("wrong.yaml")
        with pytest.raises(ContentError, match=r"absent.yaml: no such file in .*; check the path"):
            cluster.apply("absent.yaml")
        with pytest.raises(ContentError, match=r"profile p5.48xlrge: .*p5.48xlarge"):
            cluster.add_nodes("p5.48xlrge")
        with pytest.raises(ContentError, match=r"has devices of dra\.cpu already"):
            cluster.add_nodes("p5.48xlarge", devices="catalogue:p5.48xlarge")
        with pytest.raises(ContentError, match="taint 'team': KEY=VALUE:EFFECT"):
            cluster.add_nodes(taints=["team"])
        with pytest.raises(ContentError, match="kind 'pdos': unknown"):
            cluster.list("pdos")
        with pytest.raises(ContentError, match="'soon': must be a number of seconds"):
            cluster.advance("soon")


def test_a_failing_engine_fails_the_test() -> None:
    """A cluster that has quietly lost an engine would let tests pass or fail for no reason."""
    cluster = Cluster(Setup(without=("gravity",)))
    with pytest.raises(DryrackError, match="unknown component 'gravity'"), cluster:
        cluster.add_nodes()


def test_faults_are_brought_about_and_healed() -> None:
    """Of devices and nodes, of the API and of engines, also of those that started again."""
    with Cluster() as cluster:
        cluster.add_nodes(devices="fake:2")
        cluster.fail("device node-1/fake-0 lost", "api conflicts=0.3")
        cluster.apply([claim("two", 2), pod("p", "two")])
        cluster.expect_pending("p", because="1 of 1 is available")
        cluster.add_nodes(devices="fake:1", name="other")
        cluster.fail("engine scheduler crash for 1m")
        cluster.heal("device")
        cluster.advance("30s")
        assert cluster.pending() == ["default/p"]
        cluster.heal()
        assert cluster.expect_scheduled("p", devices=2).node == "node-1"

        with pytest.raises(DryrackError, match="unknown fault 'nod'; did you mean 'node'"):
            cluster.fail("nod node-1 ready=false")
        with pytest.raises(DryrackError, match="no node 'node-9'; did you mean"):
            cluster.fail("node node-9 ready=false")


def test_two_clusters_never_meet() -> None:
    """Also with the same seed, one inside the other."""
    with Cluster() as one, Cluster() as other:
        one.add_nodes(count=2)
        other.add_nodes()

        assert (len(one.list("nodes")), len(other.list("nodes"))) == (2, 1)


@pytest.mark.parametrize(
    ("said", "target"),
    [
        ("p", Target("", "default", "p")),
        ("team/p-*", Target("", "team", "p-*")),
        ("pod/p", Target("pod", "default", "p")),
        ("Gang/team/g", Target("gang", "team", "g")),
        (pod("p"), Target("pod", "default", "p")),
    ],
)
def test_targets_are_named_as_kubectl_names_them(
    said: str | dict[str, object], target: Target
) -> None:
    """Kind and namespace before the name, where they are needed."""
    assert Target.of(said) == target


@pytest.mark.parametrize("said", ["", "a/b/c/d", "pod/", {"kind": "Node", "metadata": {}}])
def test_what_is_no_target_is_refused(said: str | dict[str, object]) -> None:
    """Before anything waits."""
    with pytest.raises(ContentError):
        Target.of(said)


def test_devices_are_matched_in_any_order_each_once() -> None:
    """A pattern that fits several devices does not take the one that another needs."""
    on_node = OnNode("default", "p", "n", ("d/n/gpu-0", "d/n/gpu-1"))

    assert Wanted.of("", ["d/n/*", "*/gpu-0"]).problem(on_node) == ""
    assert Wanted.of("", "d/n/*").problem(on_node) != ""
    assert Wanted.of("", ["*/gpu-0", "*/gpu-0"]).problem(on_node) != ""
    assert Wanted.of(("m", "n"), 2).problem(on_node) == ""
    assert Wanted.of("", []).problem(on_node) != ""


def test_words_are_found_across_lines_and_by_patterns() -> None:
    """Missing ones are told."""
    text = "needs 9 devices,\n   and 8 of 8 are available"

    assert missing_words("Devices, and 8", text) == []
    assert missing_words([re.compile(r"\d+ of \d+"), "tainted"], text) == ["tainted"]


def test_names_go_on_where_those_that_are_there_end() -> None:
    """One node without a number has just the name."""
    assert node_names("", None, ["node-1", "node-2"]) == ("node-3",)
    assert node_names("rack", 2, ["rack-7", "rack-x"]) == ("rack-8", "rack-9")
    assert node_names("rack", None, ["rack"]) == ("rack",)
    with pytest.raises(ContentError):
        node_names("rack", 0, [])
    assert seconds_of("1m30s") == seconds_of(90)


@pytest.mark.parametrize(
    ("metadata", "answer"),
    [
        (None, "name or generateName is required"),
        ("x", "cannot unmarshal string into Go struct field ConfigMap.metadata"),
        ({}, "name or generateName is required"),
        ({"name": True}, "cannot unmarshal bool into Go struct field ObjectMeta.metadata.name"),
        ({"name": "a", "namespace": ["x"]}, "field ObjectMeta.metadata.namespace of type string"),
    ],
)
def test_malformed_metadata_gets_the_answer_of_the_api_server(
    metadata: object, answer: str
) -> None:
    """YAML reads `name: y` as a boolean; the answer says so, and nothing is stored."""
    with Cluster() as cluster:
        with pytest.raises(DryrackError, match=re.escape(answer)):
            cluster.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}])

        names = [each["metadata"]["name"] for each in cluster.list("configmaps", "default")]
        assert names == []


def test_a_pod_over_quota_is_pending_because_of_the_quota() -> None:
    """Its claim cannot be created, so that no scheduler reports anything about it."""
    hard = {f"{CLASS}.deviceclass.resource.k8s.io/devices": "1"}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team"},
        "spec": {"hard": hard},
    }
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "two"},
        "spec": {"spec": claim("two", 2)["spec"]},
    }
    with Cluster() as cluster:
        cluster.add_nodes(name="n", devices="fake:4")
        entry = {"name": "gpu", "resourceClaimTemplateName": "two"}
        cluster.apply([quota, template, pod("p", resourceClaims=[entry])])

        words = cluster.expect_pending("p", because="quota")

    assert "raise " in words

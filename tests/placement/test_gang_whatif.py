"""Gangs in files are placed whole or not at all, by the code that the scheduler runs."""

from __future__ import annotations

from dataclasses import replace

from msgspec.structs import replace as changed
from tests.placement.whatif_builders import SLICES as FLEET
from tests.placement.whatif_builders import claim, places, reckon, settings, world

from dryrack.allocation import Code
from dryrack.cli.allocate import verdict
from dryrack.placement import explain_claim, explain_gang_claims, explain_nodes, what_if

ONE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, count: 1}}]}}}
---
"""
GROUP = """
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: training}
spec:
  schedulingPolicy: {gang: {minCount: MINIMUM}}
  resourceClaims: [{name: fabric, resourceClaimTemplateName: one}]
---
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: NAME}
status: {allocatable: {cpu: "10", memory: 1Ti, pods: "110"}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: NAME}
spec:
  driver: gpu.example.com
  nodeName: NAME
  pool: {name: NAME, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}, {name: gpu-2}]
---
"""


def labelled(name: str, minimum: str) -> str:
    """A pod of a gang that wants one device."""
    prefix = "pod-group.scheduling.kubenexus.io"
    return f"""
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  labels: {{{prefix}/name: training, {prefix}/min-available: "{minimum}"}}
spec:
  containers: [{{name: c, image: i}}]
  resourceClaims: [{{name: gpu, resourceClaimTemplateName: one}}]
---
"""


def native(name: str, entry: str) -> str:
    """A pod of the PodGroup."""
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  schedulingGroup: {{podGroupName: training}}
  containers: [{{name: c, image: i}}]
  resourceClaims: [{{name: {entry}, resourceClaimTemplateName: one}}]
---
"""


def gang_of(number: int, minimum: str) -> str:
    return ONE + "".join(labelled(f"p{i}", minimum) for i in range(number))


def test_a_gang_that_fits_has_all_its_devices() -> None:
    """Four devices can be had, and four pods want one each."""
    outcome = reckon(gang_of(4, "4"))

    assert len(places(outcome)) == 4
    (gang,) = outcome.gangs
    assert (gang.gang, gang.message, len(gang.nodes)) == ("pod group default/training", "", 4)


def test_a_gang_that_does_not_fit_takes_nothing() -> None:
    """The claim after it finds all devices free."""
    outcome = reckon(gang_of(5, "5") + claim("after", 3))

    assert places(outcome) == {"default/after": ["two/gpu-0", "two/gpu-1", "two/gpu-2"]}
    (gang,) = outcome.gangs
    assert gang.message.startswith("pod group default/training: 4 of 5 pods fit; pod default/p4")
    assert outcome.waiting == {f"default/p{i}": gang.message for i in range(5)}


def test_those_that_would_fit_are_told_for_whom_they_wait() -> None:
    """Only the one that finds nothing is told about nodes."""
    outcome = reckon(gang_of(5, "5"))
    told = {
        each.claim: [r for node in each.nodes for r in node.reasons] for each in outcome.refused
    }

    assert {reason.code for reason in told["default/p0-gpu"]} == {Code.GANG}
    assert told["default/p0-gpu"][0].remedy == "see pod default/p4"
    assert Code.NOT_ENOUGH in {reason.code for reason in told["default/p4-gpu"]}


def test_a_gang_is_placed_when_its_first_pod_has_its_turn() -> None:
    """A claim between its members comes after all of them."""
    first, *others = [labelled(f"p{i}", "4") for i in range(4)]
    outcome = reckon(ONE + first + claim("between") + "".join(others))

    assert [each.claim for each in outcome.refused] == ["default/between"]


def test_a_claim_of_the_group_is_made_once() -> None:
    """Members that have the entry of the group share its claim, and others have their own."""
    group = GROUP.replace("MINIMUM", "3")
    pods = native("p0", "fabric") + native("p1", "fabric") + native("p2", "own")
    outcome = reckon(ONE + group + pods)

    assert sorted(places(outcome)) == ["default/p2-own", "default/training-fabric"]
    assert outcome.nodes["default/p0"] == outcome.nodes["default/p1"]


def test_a_group_that_is_not_there_is_told() -> None:
    """Its pods wait for it, and say so."""
    outcome = reckon(ONE + native("p0", "own"))

    message = "PodGroup default/training does not exist; create it, or remove the pods from it"
    assert outcome.waiting == {"default/p0": message}
    assert [each.claim for each in outcome.refused] == ["default/p0-own"]


def test_a_malformed_label_keeps_one_pod_alone_from_running() -> None:
    """The gang does without it, if it can."""
    outcome = reckon(gang_of(2, "2") + labelled("broken", "two"))

    assert sorted(places(outcome)) == ["default/p0-gpu", "default/p1-gpu"]
    assert list(outcome.waiting) == ["default/broken"]
    assert "'two' is not a whole number" in outcome.waiting["default/broken"]


def test_explain_tells_what_would_make_the_whole_gang_fit() -> None:
    """The change was tried: with it, all five are placed."""
    story = explain_claim(world(FLEET + gang_of(5, "5")), "p4-gpu", settings())

    assert story.helps[0] == "remove the taint sick:NoSchedule from gpu.example.com/one/gpu-1"
    assert story.given is None


def test_programs_read_where_each_pod_goes() -> None:
    """Gangs are in the document where there are any."""
    outcome = reckon(gang_of(3, "3"))

    assert "gangs" not in reckon(claim("alone")).document()
    assert outcome.document()["gangs"] == [
        {
            "gang": "pod group default/training",
            "fits": True,
            "message": "",
            "pods": [{"pod": pod, "node": node} for pod, node in outcome.nodes.items()],
        }
    ]


def test_a_search_that_stops_at_its_limit_is_unknown_everywhere() -> None:
    """Neither the claims nor the gang are said not to fit, for people and for programs."""
    classes = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\n---"
    nodes = "".join(NODE.replace("NAME", f"n{i}") for i in range(6))
    requests = [4000 + 13 * i for i in range(11)] + [9000]
    pods = "".join(
        labelled(f"p{i:02}", "12").replace(
            "image: i", f"image: i, resources: {{requests: {{cpu: {amount}m}}}}"
        )
        for i, amount in enumerate(requests)
    )
    given = world(classes + ONE + nodes + pods)

    outcome = what_if(given, settings())

    (gang,) = outcome.gangs
    assert gang.fits is None
    assert gang.document()["fits"] is None
    assert "unknown whether it fits" in gang.message
    assert "not fit whole" not in str(outcome.document())
    told = [explain_nodes(each.nodes) for each in outcome.refused]
    assert {verdict(nodes) for nodes in told} == {"unknown whether it fits", "waits for its gang"}


def test_a_member_without_claims_is_unknown_with_its_gang() -> None:
    """The pod that the search left over is not said to fit nowhere."""
    nodes = "".join(NODE.replace("NAME", f"n{i}") for i in range(6))
    requests = [4000 + 13 * i for i in range(11)] + [9000]
    pods = "".join(
        labelled(f"p{i:02}", "12").replace(
            "image: i", f"image: i, resources: {{requests: {{cpu: {amount}m}}}}"
        )
        for i, amount in enumerate(requests)
    )
    objects = world(nodes + pods)
    bare = tuple(changed(e, spec=changed(e.spec, resource_claims=())) for e in objects.pods)
    given = replace(objects, parties=bare)

    (gang,) = what_if(given, settings()).gangs
    (story,) = explain_gang_claims(given, gang, settings)

    assert gang.is_unknown
    assert verdict(story.nodes) == "unknown whether it fits"

"""Files full of objects: who gets what, and who does not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.placement.whatif_builders import SLICES, claim, places, reckon, settings, world

from dryrack.allocation import Code
from dryrack.base.errors import DryrackError
from dryrack.placement import explain_claim, what_if
from dryrack.placement.whatif.what_if import SIZE_ASSUMED

TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: pair}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, count: 2}}]}}}
---
"""


def pod(name: str, claims: str, more: str = "") -> str:
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  containers: [{{name: c, image: i}}]
  resourceClaims: [{claims}]
  {more}
---
"""


def test_loose_claims_are_served_in_file_order() -> None:
    """Devices of one claim are not available to the next."""
    outcome = reckon(claim("b") + claim("a") + claim("c", 3))

    assert places(outcome) == {"default/b": ["one/gpu-0"], "default/a": ["two/gpu-0"]}
    assert [each.claim for each in outcome.refused] == ["default/c"]


def test_claims_of_a_pod_are_on_one_node() -> None:
    """One node would have the first claim, but only the other has both."""
    text = (
        claim("x")
        + claim("z")
        + pod("p", "{name: x, resourceClaimName: x}, {name: z, resourceClaimName: z}")
    )
    outcome = reckon(text)

    assert {each.node for each in outcome.given} == {"two"}
    assert places(outcome) == {"default/x": ["two/gpu-0"], "default/z": ["two/gpu-1"]}


def test_a_template_makes_a_claim_for_each_pod() -> None:
    """The claim is named after the pod and its entry."""
    wanted = "{name: gpus, resourceClaimTemplateName: pair}"
    outcome = reckon(TEMPLATE + pod("p", wanted) + pod("q", wanted))

    assert places(outcome) == {"default/p-gpus": ["two/gpu-0", "two/gpu-1"]}
    assert [each.claim for each in outcome.refused] == ["default/q-gpus"]


def test_allocated_claims_keep_what_they_have() -> None:
    """A status that says so takes the device away from others."""
    status = """
status:
  allocation:
    devices: {results: [{request: r, driver: gpu.example.com, pool: one, device: gpu-0}]}
"""
    outcome = reckon(claim("had", more=status) + claim("new"))

    assert places(outcome) == {"default/new": ["two/gpu-0"]}


def test_pods_that_share_a_claim_share_its_node() -> None:
    """The second pod brings a claim of its own, and goes where the shared one is."""
    first = pod("p", "{name: s, resourceClaimName: shared}")
    second = pod("q", "{name: s, resourceClaimName: shared}, {name: o, resourceClaimName: own}")
    outcome = reckon(claim("shared") + claim("own") + first + second)

    assert places(outcome) == {"default/shared": ["one/gpu-0"]}
    [refused] = outcome.refused
    assert [(n.node, n.reasons[0].code) for n in refused.nodes] == [
        ("one", Code.NOT_ENOUGH),
        ("two", Code.NODE),
    ]


@pytest.mark.parametrize("more", ["nodeName: two", "nodeSelector: {zone: b}"])
def test_a_pod_is_kept_off_nodes(more: str) -> None:
    """Claims are not allocated on nodes that refuse their pod."""
    both = """
apiVersion: v1
kind: Node
metadata: {name: one, labels: {zone: a}}
---
apiVersion: v1
kind: Node
metadata: {name: two, labels: {zone: b}}
---
"""
    outcome = reckon(both + claim("x") + pod("p", "{name: x, resourceClaimName: x}", more))

    assert [each.node for each in outcome.given] == ["two"]


@pytest.mark.parametrize("spec", ["taints: [{key: k, effect: NoSchedule}]", "unschedulable: true"])
def test_tainted_and_cordoned_nodes_are_not_for_pods(spec: str) -> None:
    """A loose claim has no pod that could be kept off."""
    only = f"apiVersion: v1\nkind: Node\nmetadata: {{name: one}}\nspec: {{{spec}}}\n---\n"
    text = only + claim("x") + pod("p", "{name: x, resourceClaimName: x}") + claim("loose")
    outcome = reckon(text)

    assert places(outcome) == {"default/loose": ["one/gpu-0"]}
    assert outcome.refused[0].nodes[0].reasons[0].code is Code.NODE


def test_taint_rules_act_as_taints() -> None:
    """A rule for a whole pool keeps everybody from it."""
    rule = """
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: drain}
spec: {deviceSelector: {pool: two}, taint: {key: drain, effect: NoExecute}}
---
"""
    outcome = reckon(rule + claim("a") + claim("b"))

    assert places(outcome) == {"default/a": ["one/gpu-0"]}


def test_an_error_stops_a_party_on_all_nodes() -> None:
    """Kubernetes does not look further once a selector failed somewhere."""
    text = claim("x").replace("count: 1", "selectors: [{cel: {expression: device.nothing}}]")
    outcome = reckon(text + claim("fine"))

    [refused] = outcome.refused
    assert [(n.node, [r.code for r in n.reasons]) for n in refused.nodes] == [("one", [Code.ERROR])]
    assert "default/fine" in places(outcome)


def test_what_a_pod_refers_to_must_be_there() -> None:
    """A claim that nobody has is told, and not waited for."""
    outcome = reckon(pod("p", "{name: x, resourceClaimName: nobody}"))

    [refused] = outcome.refused
    assert refused.claim == "default/nobody"
    assert refused.nodes[0].reasons[0].code is Code.NOT_FOUND


def test_assumed_nodes_are_mentioned() -> None:
    """If there are no Nodes, those that slices name are assumed, with a note."""
    [note] = reckon("").notes
    named = "assuming the nodes of the ResourceSlices and checking only devices: one, two"

    assert note == f"no Node objects found; {named}"


def test_one_node_can_be_asked_for() -> None:
    """Only that node counts; one that is not there is a mistake."""
    assert places(reckon(claim("x"), node="two")) == {"default/x": ["two/gpu-0"]}
    with pytest.raises(DryrackError, match="node 'tow' not found; use one of: one, two"):
        reckon(claim("x"), node="tow")


def test_the_document_has_the_shape_that_programs_read() -> None:
    """Allocations and reasons under the keys that are documented."""
    document = reckon(claim("x", 3) + claim("z", 3)).document()

    [allocation] = document["allocations"]
    assert (allocation["claim"], allocation["node"]) == ("default/x", "two")
    assert [r["device"] for r in allocation["allocation"]["devices"]["results"]] == [
        "gpu-0",
        "gpu-1",
        "gpu-2",
    ]
    [unsatisfied] = document["unsatisfied"]
    assert unsatisfied["claim"] == "default/z"
    assert unsatisfied["nodes"][0]["reasons"][-1] == {
        "request": "r",
        "device": "gpu.example.com/one/gpu-1",
        "reason": "tainted",
        "message": "tainted sick:NoSchedule; tolerate the taint, or remove it",
    }


def explained(text: str, name: str = "x") -> Any:
    return explain_claim(world(SLICES + text), name, settings())


def test_a_claim_that_fits_is_explained_by_what_it_is_given() -> None:
    """There is nothing to explain but the devices."""
    explanation = explained(claim("x"))

    assert explanation.given is not None
    assert (explanation.nodes, explanation.helps) == ((), ())


def test_the_nearest_miss_comes_first() -> None:
    """Four devices: node two lacks one, node one lacks three."""
    explanation = explained(claim("x", 4))

    assert [(story.node, story.lacking) for story in explanation.nodes] == [("two", 1), ("one", 3)]


def test_a_node_without_such_devices_is_further_away_than_one_whose_are_taken() -> None:
    """Each lacks one; a node that never had one is not what the claim just missed."""
    select = """spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}"""
    text = SLICES.replace("{name: gpu}\n", f"{{name: gpu}}\n{select}\n").replace(
        "driver: gpu.example.com\n  nodeName: one", "driver: nic.example.com\n  nodeName: one"
    )
    explanation = explain_claim(world(text + claim("other", 3) + claim("x")), "x", settings())

    assert [(story.node, story.lacking) for story in explanation.nodes] == [("two", 1), ("one", 1)]


def test_nodes_without_such_devices_are_alike() -> None:
    """However many devices of other kinds each has."""
    select = """spec: {selectors: [{cel: {expression: 'device.driver == "fpga.example.com"'}}]}"""
    text = SLICES.replace("{name: gpu}\n", f"{{name: gpu}}\n{select}\n")
    explanation = explain_claim(world(text + claim("x")), "x", settings())

    assert [(story.node, story.alike) for story in explanation.nodes] == [("one", ("two",))]


def test_help_is_looked_for_where_such_devices_are() -> None:
    """However many nodes without any there are, what stands in the way on the others is tried."""
    nodes = "".join(
        f"{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}}}\n---\n"
        for name in ("cpu-1", "cpu-2", "cpu-3", "cpu-4", "two")
    )
    explanation = explained(nodes + claim("other", 3) + claim("x"))

    assert "free the devices of claim default/other" in explanation.helps


def test_devices_with_the_same_reason_are_told_together() -> None:
    """Three devices that another claim has are one obstacle."""
    explanation = explained(claim("other", 3) + claim("x", 3))

    [busy] = [
        each
        for story in explanation.nodes
        for each in story.obstacles
        if each.code is Code.IN_USE and len(each.devices) == 3
    ]
    assert busy.fact == "in use by claim default/other"


@pytest.mark.parametrize(
    ("text", "helps"),
    [
        (
            claim("other", 3) + claim("x", 2),
            "remove the taint sick:NoSchedule from gpu.example.com/one/gpu-1",
        ),
        (claim("other", 3) + claim("x", 3), "free the devices of claim default/other"),
        (claim("x", 4), "add a device like gpu.example.com/two/gpu-0"),
        (claim("x", 4), "lower the count of request r from 4 to 3"),
        (
            claim("x").replace("count: 1", "selectors: [{cel: {expression: 'false'}}]"),
            "remove the selector of request r: false",
        ),
    ],
)
def test_what_is_proposed_was_tried_and_helps(text: str, helps: str) -> None:
    """The smallest change is found, and it makes the claim fit."""
    assert helps in explained(text).helps


def test_nothing_is_proposed_that_does_not_help() -> None:
    """A claim for 30 devices is not helped by one more."""
    assert "add a device like gpu.example.com/two/gpu-0" not in explained(claim("x", 30)).helps


def test_a_claim_that_is_not_there_is_a_mistake() -> None:
    """The name that was probably meant is told."""
    with pytest.raises(DryrackError, match="'trian' not found; did you mean 'default/train'"):
        explained(claim("train"), "trian")


CLASS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {extendedResourceName: example.com/gpu}
---
"""
OFFERED = CLASS + SLICES.partition("---\n")[2]
EXTENDED = """
apiVersion: v1
kind: Pod
metadata: {name: plain}
spec:
  containers:
  - {name: c, resources: {requests: {example.com/gpu: 3}, limits: {example.com/gpu: 3}}}
---
"""


def test_extended_resources_are_counted_as_devices_of_their_class() -> None:
    """Three are on one node alone; a claim after it finds them taken."""
    outcome = what_if(world(OFFERED + EXTENDED + EXTENDED.replace("plain", "b")), settings())

    [given] = outcome.given
    assert (given.claim, given.node) == ("default/plain-extended-resources", "two")
    assert len(given.allocation.devices.results) == 3
    assert [each.claim for each in outcome.refused] == ["default/b-extended-resources"]


def owning(name: str, **own: str) -> str:
    """A node of the usual size that a device plugin gave these resources."""
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"} | {
        f"example.com/{k}": v for k, v in own.items()
    }
    size = ", ".join(f"{key}: '{value}'" for key, value in amounts.items())
    metadata = f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n"
    return f"{metadata}status: {{allocatable: {{{size}}}}}\n---\n"


def test_a_node_gives_what_it_has_of_its_own_and_no_devices() -> None:
    """A device plugin's are counted as any amount: the second pod finds too few of them."""
    pods = EXTENDED + EXTENDED.replace("plain", "b")
    outcome = what_if(world(OFFERED + owning("two", gpu="4") + pods), settings())

    assert outcome.nodes == {"default/plain": "two"}
    assert outcome.given == ()
    assert outcome.waiting["default/b"].startswith(
        "0/1 nodes are available: 1 Insufficient example.com/gpu."
    )


def test_a_node_gives_devices_for_what_it_has_none_of() -> None:
    """The node provides one of two resources, and the claim is for the other."""
    nic = CLASS.replace("gpu", "nic")
    both = EXTENDED.replace("example.com/gpu: 3", "example.com/gpu: 3, example.com/nic: 2")
    outcome = what_if(world(OFFERED + nic + owning("two", nic="2") + both), settings())

    [given] = outcome.given
    requests = {each.request for each in given.allocation.devices.results}
    assert requests == {"container-0-request-0"}
    assert outcome.nodes == {"default/plain": "two"}


def sized_node(name: str, spec: str = "{}", **allocatable: str) -> str:
    pairs = {"cpu": "4", "memory": "8Gi", "pods": "10", "ephemeral-storage": "1Gi", **allocatable}
    size = ", ".join(f"{key}: '{value}'" for key, value in pairs.items())
    return f"""
apiVersion: v1
kind: Node
metadata: {{name: {name}}}
spec: {spec}
status: {{allocatable: {{{size}}}}}
---
"""


def heavy_pod(name: str, cpu: str, claims: str = "", more: str = "") -> str:
    container = f"[{{name: c, image: i, resources: {{requests: {{cpu: '{cpu}'}}}}}}]"
    return pod(name, claims, more).replace("[{name: c, image: i}]", container)


def test_pods_without_claims_take_their_share_of_a_node() -> None:
    """Too little CPU is left for the pod with the claim, and the message has the amounts."""
    text = sized_node("one") + heavy_pod("plain", "3") + claim("x")
    outcome = reckon(text + heavy_pod("p", "2", "{name: x, resourceClaimName: x}"))

    [refused] = outcome.refused
    [reason] = refused.nodes[0].reasons
    assert (reason.claim, reason.code) == ("default/x", Code.NODE)
    assert reason.fact == "the pod requests 2 of cpu; the node has 1 of 4 left"
    assert outcome.nodes == {"default/plain": "one"}


def test_a_pod_without_claims_that_fits_nowhere_is_a_note() -> None:
    """The answer is about claims; what else waits is said beside it, as the scheduler says it."""
    outcome = reckon(sized_node("one") + heavy_pod("plain", "64"))

    said = "0/1 nodes are available: 1 Insufficient cpu."
    assert outcome.notes == (f"pod default/plain is pending: {said}",)
    assert (outcome.given, outcome.refused) == ((), ())


def test_of_many_pods_that_wait_the_first_are_told() -> None:
    """A deployment without claims that does not fit is not a page of notes."""
    pods = "".join(heavy_pod(f"plain-{number}", "64") for number in range(8))
    *told, rest = reckon(sized_node("one") + pods).notes

    assert len(told) == 5
    assert rest == "3 more pods are pending"


def test_a_claim_that_another_pod_gets_is_not_refused() -> None:
    """The first pod that shares it is too large and waits, which is a note; so says explain."""
    shared = "{name: x, resourceClaimName: x}"
    pods = heavy_pod("large", "64", shared) + heavy_pod("small", "1", shared)
    text = sized_node("one") + claim("x") + pods
    outcome = reckon(text)

    assert places(outcome) == {"default/x": ["one/gpu-0"]}
    assert outcome.refused == ()
    assert [note.partition(":")[0] for note in outcome.notes] == ["pod default/large is pending"]
    assert explained(text).given is not None


def test_bound_pods_occupy_their_node_from_the_start() -> None:
    """One that comes later in the file has its CPU before those that have yet to be placed."""
    bound = heavy_pod("bound", "3", more="nodeName: one")
    text = sized_node("one") + heavy_pod("p", "2", "{name: x, resourceClaimName: x}") + claim("x")

    assert places(reckon(text)) == {"default/x": ["one/gpu-0"]}
    assert places(reckon(text + bound)) == {}
    ended = bound.replace("---", "status: {phase: Succeeded}\n---")
    assert places(reckon(text + ended)) == {"default/x": ["one/gpu-0"]}


def test_a_bound_pod_is_given_devices_on_its_node_whatever_the_node_says() -> None:
    """It is there already: neither a cordon nor its own CPU is in its way."""
    text = sized_node("one", "{unschedulable: true}", pods="1") + sized_node("two") + claim("x")
    bound = heavy_pod("p", "4", "{name: x, resourceClaimName: x}", "nodeName: one")

    assert places(reckon(text + bound)) == {"default/x": ["one/gpu-0"]}


def test_nodes_of_unknown_size_are_asked_for_devices_alone() -> None:
    """The CPU of these nodes is unknown."""
    outcome = reckon(claim("x") + heavy_pod("p", "640", "{name: x, resourceClaimName: x}"))

    assert places(outcome) == {"default/x": ["one/gpu-0"]}


def test_a_node_that_does_not_say_its_size_has_that_of_a_virtual_node() -> None:
    """As it would on a plane; and it is said."""
    silent = "apiVersion: v1\nkind: Node\nmetadata: {name: one}\n---\n" + claim("x")
    wanted = "{name: x, resourceClaimName: x}"

    fitting, large = (reckon(silent + heavy_pod("p", cpu, wanted)) for cpu in ("32", "33"))
    assert places(fitting) == {"default/x": ["one/gpu-0"]}
    assert places(large) == {}
    assert fitting.notes == (f"{SIZE_ASSUMED}: one",)


def test_ports_of_the_host_are_given_once() -> None:
    """The second pod finds the port taken, and the reason says which."""
    wanted = "{name: NAME, resourceClaimName: NAME}"
    text = sized_node("two") + claim("x") + claim("z")
    for name in "xz":
        made = pod(f"pod-{name}", wanted.replace("NAME", name))
        ports = "{name: c, image: i, ports: [{containerPort: 1, hostPort: 80}]}"
        text += made.replace("{name: c, image: i}", ports)
    outcome = reckon(text)

    assert places(outcome) == {"default/x": ["two/gpu-0"]}
    [refused] = outcome.refused
    assert refused.nodes[0].reasons[0].fact == "another pod has port 80/TCP of the node"

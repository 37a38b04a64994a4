"""Files and a cluster have one decider: a what-if places every pod as the scheduler does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.allocation.builders import Counting
from tests.scheduler.messages import refusal_in

from dryrack.client.endpoints import CLAIMS, CLASSES, NODES, PODS, SLICES, TEMPLATES
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.kinds.catalog import Typed, typed
from dryrack.kinds.documents import Document
from dryrack.kinds.raw import Raw
from dryrack.kinds.text.source_positions import Tree, spot
from dryrack.placement import Settings, World, what_if

if TYPE_CHECKING:
    from dryrack.client.client import Client
    from dryrack.client.endpoints import Endpoint


DRIVER = "gpu.example.com"
V1 = "resource.k8s.io/v1"
# Until all nodes are ready, and until a pod is bound or known to wait.
NODES_READY_SECONDS = 60
POD_SETTLED_SECONDS = 5
ANY = {"operator": "Exists"}
CORDON = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}
WISH = {"weight": 10, "podAffinityTerm": TERM}
TOGETHER = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [WISH]}}
SOFT = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", **TERM}
SPREAD = {"topologySpreadConstraints": [SOFT]}
EVEN = {"topologySpreadConstraints": [SOFT | {"whenUnsatisfiable": "DoNotSchedule"}]}
NEAR = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}
NOWHERE = "0/1 nodes are available: 1"
# A claim of a template, with its random ending.
GENERATED = re.compile(r"(pod-\d-c\d)-[a-z0-9]{5}\b")
LARGE = f"device.attributes['{DRIVER}'].size == 'large'"


@dataclass(frozen=True, slots=True)
class Answer:
    """The node of a pod and the devices of its entries; or the message of a pending pod."""

    node: str
    devices: tuple[tuple[str, tuple[str, ...]], ...] = ()
    message: str = ""


Case = list[tuple["Endpoint", Raw]]


def node(name: str, *, spec: Raw | None = None, zone: str = "x", **allocatable: str) -> Raw:
    metadata = {"name": name, "labels": {"zone": zone}, "annotations": {"kwok.x-k8s.io/node": ""}}
    made = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec or {}}
    return {**made, "status": {"allocatable": allocatable}} if allocatable else made


def slice_(name: str, sizes: list[str], place: Raw) -> Raw:
    devices = [
        {"name": f"gpu-{number}", "attributes": {"size": {"string": size}}}
        for number, size in enumerate(sizes)
    ]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "devices": devices, **place}
    return {"apiVersion": V1, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def asking(count: int, select: str = "") -> Raw:
    selectors = [{"cel": {"expression": select}}] if select else []
    exactly = {"deviceClassName": "gpu", "count": count, "selectors": selectors}
    return {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}


def pod(number: int, sources: list[str], container: Raw | None = None, **spec: Any) -> Raw:
    """Each source is the name of a template, or of a claim that is shared."""
    entries = []
    for place, source in enumerate(sources):
        kind = "resourceClaimName" if source.startswith("shared") else "resourceClaimTemplateName"
        entries.append({"name": f"c{place}", kind: source})
    containers = [{"name": "c", "image": "i", **(container or {})}]
    metadata = {"name": f"pod-{number}", "namespace": "default"}
    made = {"containers": containers, "resourceClaims": entries, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": made}


TEMPLATE_SPECS = {"one": asking(1), "two": asking(2), "large": asking(1, LARGE)}


def case(nodes: list[Raw], slices: list[Raw], pods: list[Raw]) -> Case:
    """All objects, with the templates there are and the claims that pods share."""
    gpu = {"apiVersion": V1, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
    sources = [entry for each in pods for entry in each["spec"]["resourceClaims"]]
    shared = sorted({e["resourceClaimName"] for e in sources if "resourceClaimName" in e})
    found: Case = [(NODES, each) for each in nodes]
    found += [(SLICES, each) for each in slices]
    found.append((CLASSES, gpu))
    for name, spec in TEMPLATE_SPECS.items():
        metadata = {"name": name, "namespace": "default"}
        kind = {"apiVersion": V1, "kind": "ResourceClaimTemplate"}
        found.append((TEMPLATES, {**kind, "metadata": metadata, "spec": {"spec": spec}}))
    for name in shared:
        metadata = {"name": name, "namespace": "default"}
        kind = {"apiVersion": V1, "kind": "ResourceClaim"}
        found.append((CLAIMS, {**kind, "metadata": metadata, "spec": asking(1)}))
    return found + [(PODS, each) for each in pods]


def by_files(objects: Case) -> dict[str, Answer]:
    """Return the answer of the what-if for each pod."""
    found = [typed(Document("f", raw, Tree(spot(1, 1)))) for _, raw in objects]
    bag = [each.object for each in found if isinstance(each, Typed)]
    assert len(bag) == len(objects), found
    outcome = what_if(World.of(bag), Settings(chance=Counting()))
    devices = {each.claim: _devices(each.allocation.devices.results) for each in outcome.given}
    answers = {}
    for _, raw in objects:
        if raw["kind"] == "Pod":
            name = raw["metadata"]["name"]
            where = outcome.nodes.get(f"default/{name}", raw["spec"].get("nodeName", ""))
            named = {
                entry["name"]: entry.get("resourceClaimName", f"{name}-{entry['name']}")
                for entry in raw["spec"]["resourceClaims"]
            }
            had = [(entry, devices[f"default/{each}"]) for entry, each in named.items() if where]
            answers[name] = Answer(
                where, tuple(had), refusal_in(outcome.waiting.get(f"default/{name}", ""))
            )
    return answers


def _devices(results: Any) -> tuple[str, ...]:
    return tuple(f"{each.pool}/{each.device}" for each in results)


def by_cluster(objects: Case) -> dict[str, Answer]:
    """Return the outcome for each pod on a control plane, one after the other."""

    async def run() -> dict[str, Answer]:
        clock = VirtualClock()
        async with embedded(ControlPlaneOptions(clock=clock)) as cluster:
            for endpoint, raw in objects:
                if endpoint is not PODS:
                    await _create(cluster.client, endpoint, raw)
            await clock.advance(NODES_READY_SECONDS)
            names = [raw["metadata"]["name"] for endpoint, raw in objects if endpoint is PODS]
            for endpoint, raw in objects:
                if endpoint is PODS:
                    await _create(cluster.client, endpoint, raw)
                    await clock.advance(POD_SETTLED_SECONDS)
            return {name: await _answer(cluster.client, name) for name in names}

    return run_virtual(run())


async def _create(client: Client, endpoint: Endpoint, raw: Raw) -> None:
    made = await client.create(endpoint, raw)
    if endpoint is NODES and "status" in raw:
        await client.update(NODES, {**made, "status": raw["status"]}, subresource="status")


async def _answer(client: Client, name: str) -> Answer:
    raw = await client.get(PODS, name, namespace="default")
    where = raw["spec"].get("nodeName", "")
    if not where:
        [condition] = [each for each in raw["status"]["conditions"] if each["status"] == "False"]
        return Answer("", (), GENERATED.sub(r"\1", refusal_in(condition["message"])))
    told = {
        each["name"]: each["resourceClaimName"]
        for each in raw["status"].get("resourceClaimStatuses", ())
    }
    had = []
    for entry in raw["spec"].get("resourceClaims", ()):
        claim = entry.get("resourceClaimName") or told[entry["name"]]
        found = await client.get(CLAIMS, claim, namespace="default")
        results = found["status"]["allocation"]["devices"]["results"]
        had.append((entry["name"], tuple(f"{e['pool']}/{e['device']}" for e in results)))
    return Answer(where, tuple(had))


def agreed(objects: Case) -> dict[str, Answer]:
    """The answer of both."""
    files = by_files(objects)
    cluster = by_cluster(objects)

    assert files == cluster
    return files


@st.composite
def _nodes(draw: st.DrawFn) -> list[Raw]:
    made = []
    for name in draw(st.permutations(["a", "b", "c", "d"]))[: draw(st.integers(1, 4))]:
        spec: Raw = {}
        if draw(st.integers(0, 4)) == 0:
            effect = draw(st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]))
            spec["taints"] = [{"key": "k", "value": "v", "effect": effect}]
        if draw(st.integers(0, 4)) == 0:
            spec["unschedulable"] = True
        size = draw(st.sampled_from([{"cpu": "1"}, {"cpu": "4", "pods": "2"}, {}]))
        made.append(node(name, spec=spec, zone=draw(st.sampled_from("xy")), **size))
    return made


@st.composite
def _slices(draw: st.DrawFn, nodes: list[str]) -> list[Raw]:
    sizes = st.lists(st.sampled_from(["small", "large"]), max_size=3)
    made = [slice_(f"on-{name}", draw(sizes), {"nodeName": name}) for name in nodes]
    if draw(st.integers(0, 3)) == 0:
        made.append(slice_("everywhere", draw(sizes), {"allNodes": True}))
    return made


@st.composite
def _pods(draw: st.DrawFn, number: int) -> Raw:
    sources = [*TEMPLATE_SPECS, "shared-0", "shared-1"]
    claims = draw(st.lists(st.sampled_from(sources), max_size=2, unique=True))
    container: Raw = {"resources": {}}
    cpu = draw(st.sampled_from(["", "500m", "1", "2", "64"]))
    if cpu:
        container["resources"]["requests"] = {"cpu": cpu}
    if draw(st.integers(0, 3)) == 0:
        container["ports"] = [{"containerPort": 80, "hostPort": draw(st.sampled_from([80, 81]))}]
    spec: Raw = {}
    tolerations = draw(st.sampled_from([[], [], [ANY], [CORDON], [{"key": "k", **ANY}]]))
    if tolerations:
        spec["tolerations"] = tolerations
    if draw(st.integers(0, 4)) == 0:
        spec["nodeSelector"] = {"zone": draw(st.sampled_from("xyz"))}
    if draw(st.integers(0, 4)) == 0:
        zones = {"key": "zone", "operator": "In", "values": ["y", "z"]}
        required = {"nodeSelectorTerms": [{"matchExpressions": [zones]}]}
        affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
        spec["affinity"] = {"nodeAffinity": affinity}
    asks = [{"affinity": each} for each in (APART, TOGETHER, NEAR)]
    spec |= draw(st.sampled_from([{}, {}, *asks, SPREAD, EVEN]))
    made = pod(number, claims, container, **spec)
    made["metadata"]["labels"] = {"app": draw(st.sampled_from("ab"))}
    return made


def _make_gang(pods: list[Raw]) -> list[Raw]:
    """They are placed all together, or none of them."""
    prefix = "pod-group.scheduling.kubenexus.io"
    for each in pods:
        labels = {f"{prefix}/name": "g", f"{prefix}/min-available": str(len(pods))}
        each["metadata"].setdefault("labels", {}).update(labels)
    return pods


@st.composite
def cases(draw: st.DrawFn) -> Case:
    nodes = draw(_nodes())
    slices = draw(_slices([each["metadata"]["name"] for each in nodes]))
    pods = [draw(_pods(number)) for number in range(draw(st.integers(1, 7)))]
    if len(pods) > 1 and draw(st.booleans()):
        # Those that come last; in between, others would have to wait until it is whole.
        _make_gang(pods[-draw(st.integers(2, len(pods))) :])
    if draw(st.integers(0, 2)) == 0:
        cpu = {"resources": {"requests": {"cpu": "1"}}}
        # It tolerates what would drive it out again.
        there = {"nodeName": nodes[0]["metadata"]["name"], "tolerations": [ANY]}
        pods.insert(0, pod(len(pods), [], cpu, **there))
    return case(nodes, slices, pods)


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    # A plane takes a second; the first failure is told as it is.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    print_blob=True,
)
@given(cases())
def test_files_and_a_cluster_give_every_pod_the_same(objects: Case) -> None:
    """Nodes, devices, pending pods and their messages are the same."""
    agreed(objects)


def test_a_pod_that_tolerates_everything_goes_to_a_cordoned_node() -> None:
    """A toleration without a key is one of the cordon, too."""
    nodes = [node("a", spec={"unschedulable": True})]
    objects = case(
        nodes,
        [slice_("s", ["small"], {"nodeName": "a"})],
        [
            pod(0, ["one"]),
            pod(1, ["one"], tolerations=[ANY]),
        ],
    )

    assert agreed(objects) == {
        "pod-0": Answer("", message=f"{NOWHERE} node(s) were unschedulable"),
        "pod-1": Answer("a", (("c0", ("s/gpu-0",)),)),
    }


def test_a_pod_that_requests_more_than_a_node_has_waits() -> None:
    """Its devices stay free for the next."""
    cpu = {"resources": {"requests": {"cpu": "64"}}}
    slices = [slice_("s", ["small"], {"nodeName": "a"})]
    objects = case([node("a", cpu="1")], slices, [pod(0, ["one"], cpu), pod(1, ["one"])])

    assert agreed(objects) == {
        "pod-0": Answer("", message=f"{NOWHERE} Insufficient cpu"),
        "pod-1": Answer("a", (("c0", ("s/gpu-0",)),)),
    }


def test_nodes_come_by_pods_and_name_and_not_as_they_are_written() -> None:
    """The first pod goes to the first by name, the next to the node that has none."""
    slices = [slice_(name, ["small", "small"], {"nodeName": name}) for name in "ba"]
    objects = case([node("b"), node("a")], slices, [pod(0, ["one"]), pod(1, ["one"])])

    assert agreed(objects) == {
        "pod-0": Answer("a", (("c0", ("a/gpu-0",)),)),
        "pod-1": Answer("b", (("c0", ("b/gpu-0",)),)),
    }


def test_a_bound_pod_has_its_place_before_others() -> None:
    """It counts among the pods of its node, and has its CPU."""
    slices = [slice_(name, ["small"], {"nodeName": name}) for name in "ab"]
    cpu = {"resources": {"requests": {"cpu": "1"}}}
    pods = [pod(0, [], cpu, nodeName="a"), pod(1, ["one"]), pod(2, ["one"], cpu)]
    objects = case([node("a", cpu="1"), node("b", cpu="1")], slices, pods)
    answers = agreed(objects)

    assert [answers[f"pod-{number}"].node for number in range(3)] == ["a", "b", ""]


def gang_pods(first: int, sources: list[list[str]]) -> list[Raw]:
    """Pods that belong together."""
    return _make_gang([pod(first + number, each) for number, each in enumerate(sources)])


GPUS = [
    slice_("a", ["small", "large"], {"nodeName": "a"}),
    slice_("b", ["small"], {"nodeName": "b"}),
]


def test_a_gang_is_placed_alike() -> None:
    """A pod before it, the gang, and one after it, which finds nothing."""
    pods = [pod(0, ["large"]), *gang_pods(1, [["one"], ["one"]]), pod(3, ["one"])]

    answers = agreed(case([node("a"), node("b")], GPUS, pods))

    assert [bool(answers[f"pod-{i}"].node) for i in range(4)] == [True, True, True, False]


def test_a_gang_that_only_fits_jointly_is_placed_alike() -> None:
    """The first would take the large device, which the second needs."""
    pods = gang_pods(0, [["two"], ["large"], ["one"]])
    slices = [
        slice_("a", ["large", "small", "small"], {"nodeName": "a"}),
        slice_("b", ["small"], {"nodeName": "b"}),
    ]

    answers = agreed(case([node("a"), node("b")], slices, pods))

    assert all(answer.node for answer in answers.values())


def test_a_gang_is_refused_alike() -> None:
    """Every member says the same in files and on a plane, and the next pod has all devices."""
    pods = [*gang_pods(0, [["one"]] * 4), pod(4, ["two"])]

    answers = agreed(case([node("a"), node("b")], GPUS, pods))

    assert answers["pod-0"].message.startswith("pod group default/g: 3 of 4 pods fit; pod default/")
    assert answers["pod-4"].node == "a"


def close_gang(size: int) -> list[Raw]:
    """Return a gang whose pods have to be in one zone, with a device each."""
    pods = _make_gang([pod(number, ["one"], affinity=NEAR) for number in range(size)])
    for each in pods:
        each["metadata"]["labels"]["app"] = "a"
    return pods


def zones(**sizes: int) -> tuple[list[Raw], list[Raw]]:
    """Return so many nodes of each zone, and a device for each node."""
    names = {f"{zone}{number}": zone for zone, size in sizes.items() for number in range(size)}
    slices = [slice_(name, ["small"], {"nodeName": name}) for name in names]
    return [node(name, zone=zone) for name, zone in names.items()], slices


def test_a_gang_that_has_to_be_in_one_zone_is_refused_alike() -> None:
    """Each zone has room for two of three pods; no pod opens a second zone."""
    answers = agreed(case(*zones(x=2, y=2), close_gang(3)))

    assert {answer.node for answer in answers.values()} == {""}
    assert "2 of 3 pods fit" in answers["pod-0"].message


def test_a_gang_that_has_to_be_in_one_zone_is_placed_alike() -> None:
    """The first pod by itself would go to a zone that is too small."""
    answers = agreed(case(*zones(x=2, y=3), close_gang(3)))

    assert {answer.node for answer in answers.values()} == {"y0", "y1", "y2"}

"""The examples do what their pages say, on the embedded control plane."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.client.planes import CountedChance
from tests.docs import console
from tests.examples import expectations
from tests.examples.expectations import Container, Seen, Step, place, problems

from dryrack.apiserver.runtime_config import RuntimeConfig
from dryrack.client.client import Selection
from dryrack.client.endpoints import CLAIMS, EVENTS, NODES, PODS, TAINT_RULES_V1
from dryrack.client.errors import NotFoundError
from dryrack.client.timekeeping import VirtualClock
from dryrack.client.transport import ADMIN, Request
from dryrack.cluster.assembly import EngineOptions, node_plugins
from dryrack.cluster.catalogue import load_catalogue
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.cluster.initial_objects import (
    add_device_classes,
    add_nodes,
    add_objects,
    apply_objects,
)
from dryrack.cluster.rights import POD_GROUPS, definitions
from dryrack.hardware import DEVICE_FAULT
from dryrack.kinds import documents
from dryrack.kubeletplugin import VirtualDrivers, device_classes, read_devices

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.examples.expectations import Example

    from dryrack.client.client import Client
    from dryrack.cluster.embedded import EmbeddedCluster
    from dryrack.kinds.raw import Raw

EXAMPLES = expectations.names()
# One screen of a laptop.
PAGE_LINES_MAX = 60
DEFINED_BY: dict[str, Callable[[], str]] = {
    "publish": definitions,
    "schedule": partial(definitions, POD_GROUPS),
}
_KINDS = {"pod": PODS, "resourceclaim": CLAIMS, "devicetaintrule": TAINT_RULES_V1}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_page_of_an_example_has_the_commands_that_are_tested(name: str) -> None:
    """The page uses the tested options and files in the same order, and shows the clean-up."""
    example = expectations.read(name)
    page = (example.directory / "README.md").read_text()
    commands = [each.command for each in console.examples(example.directory / "README.md")]
    apply = f"kubectl apply -f {name}/"
    files = [each.removeprefix(apply) for each in commands if each.startswith(apply)]
    crds = [each for each in commands if " --print-crds | kubectl apply -f -" in each]

    assert commands[:2] == [example.up, f"dryrack examples copy {name}"]
    assert commands[-1] == "dryrack down"
    assert files == [step.apply.removeprefix("./") for step in example.steps if step.apply]
    assert [each.split()[1] for each in crds] == example.definitions.split()
    assert "\n## Clean up\n" in page
    assert ("\n## On a real node\n" in page) == example.real_node
    assert [gate for gate in example.feature_gates if f"`{gate}`" not in page] == []
    assert len(page.splitlines()) <= PAGE_LINES_MAX


def test_what_is_not_as_an_example_says_is_noticed() -> None:
    """The comparison itself can fail, in each of its parts."""
    step = Step(
        pods={"a": "Running"},
        waiting={"b": "no room"},
        unbound=("c",),
        gone=("a",),
        events=("ready",),
        containers={"a/x": Container(2, {"GPU_DEVICE_0": "gpu-1"}, ("^hello$",))},
        same=(("a/x", "a/y"),),
        different=(("a/x", "a/z"),),
        phases={"Running": 1},
        health={"a": "Healthy"},
    )
    pod = {"spec": {"nodeName": "n"}, "status": {"phase": "Pending"}}
    log = "export GPU_DEVICE_0='gpu-0'\nexport GPU_DEVICE_0_MEMORY='8Gi'\n"
    seen = Seen({"a": pod, "b": pod, "c": pod}, {"a/x": log, "a/z": log}, ["Pending"])

    assert len(problems(step, seen)) == 12


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.virtual_time
async def test_an_example_holds_on_the_embedded_plane(name: str) -> None:
    """Step by step: pods, what their containers have, who shares with whom, and who waits."""
    example = expectations.read(name)
    catalogue = load_catalogue()
    kinds = read_devices(example.devices, [], lambda: catalogue)
    machine = catalogue.instance_types.get(example.instance_type)
    clock = VirtualClock()
    drivers = VirtualDrivers(kinds)
    options = ControlPlaneOptions(
        clock=clock,
        chance=CountedChance(),
        drivers=drivers,
        runtime_config=RuntimeConfig(example.runtime_config),
        feature_gates=dict.fromkeys(example.feature_gates, True),
    )

    engines = EngineOptions(
        catalogue=catalogue if machine else None,
        drivers=drivers,
        plugins=node_plugins(drivers),
    )
    async with embedded(options, engines=engines) as cluster:
        classes = catalogue.device_classes.values() if machine else device_classes(kinds)
        await add_device_classes(cluster.client, classes)
        await add_nodes(cluster.client, example.nodes, machine)
        if example.definitions:
            text = DEFINED_BY[example.definitions]()
            await add_objects(cluster.plane, documents.read(text, "definitions").documents)
        await clock.advance(2)
        for step in example.steps:
            await _do(example, step, cluster)
            await clock.advance(60)
            assert problems(step, await _look(example, step, cluster)) == []


async def _do(example: Example, step: Step, cluster: EmbeddedCluster) -> None:
    for path in example.manifests(step):
        read = documents.read(path.read_text(), path.name).documents
        await apply_objects(cluster.plane, read, "test")
    if step.fault:
        faults = {f"{DEVICE_FAULT}{name}": fault or None for name, fault in step.fault.items()}
        await cluster.client.patch(NODES, "node-1", {"metadata": {"annotations": faults}})
    kind, _, name = (step.delete or step.patch).partition("/")
    endpoint = _KINDS.get(kind, PODS)
    namespace = example.namespace if endpoint.is_namespaced else ""
    if step.delete:
        await cluster.client.delete(endpoint, name, namespace=namespace)
    if step.patch:
        change = yaml.safe_load((example.directory / step.file).read_text())
        await cluster.client.patch(
            endpoint, name, change, namespace=namespace, subresource="status"
        )


async def _look(example: Example, step: Step, cluster: EmbeddedCluster) -> Seen:
    client = cluster.client
    logs = {name: await _log(cluster, name, example.namespace) for name in step.containers}
    asked = (*step.pods, *step.waiting, *step.unbound, *step.gone, *step.health)
    every = (await client.list(PODS, Selection(namespace=example.namespace))).items
    events = [
        each["message"]
        for namespace in example.namespaces
        for each in (await client.list(EVENTS, Selection(namespace=namespace))).items
    ]
    phases = [pod["status"]["phase"] for pod in every]
    return Seen(await _pods(client, asked, example.namespace), logs, phases, events)


async def _pods(client: Client, asked: Sequence[str], usual: str) -> dict[str, Raw]:
    found = {}
    for name in asked:
        namespace, pod = place(name, 1, usual)
        try:
            found[name] = await client.get(PODS, pod, namespace)
        except NotFoundError:
            continue
    return found


async def _log(cluster: EmbeddedCluster, name: str, usual: str) -> str:
    namespace, pod, container = place(name, 2, usual)
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log"
    request = Request("GET", path, f"container={container}", {}, b"", ADMIN)
    response = await cluster.transport.send(request)
    assert isinstance(response.body, bytes)
    return response.body.decode()

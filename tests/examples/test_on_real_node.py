"""
Run the examples on a real node: kube-scheduler, kubelet, containerd and runc.

All of them on one cluster; those with the same devices follow each other with the same plugin.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import pytest
from tests.examples import expectations
from tests.examples.expectations import Seen, Step, place, problems
from tests.kubeletplugin.real_node import RealNode
from tests.publisher.real_publisher import until
from tests.realcluster.cluster import Parts
from tests.realcluster.controlplane import Options
from tests.realcluster.releases import RELEASE

from dryrack.hardware import DEVICE_FAULT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.examples.expectations import Example
    from tests.realcluster.fixtures import StartModuleCluster
    from tests.realcluster.processes import Identity

    from dryrack.kinds.raw import Raw

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

EXAMPLES = sorted(
    (each for each in map(expectations.read, expectations.names()) if each.real_node),
    key=lambda each: each.devices,
)


class ExampleNode:
    """A real node that has the devices of the example at hand."""

    def __init__(self, real: RealNode) -> None:
        self.real = real
        self._devices: Sequence[str] = ()
        self._plugin: Identity | None = None

    def offer(self, devices: Sequence[str]) -> None:
        """Starts the plugin with these devices, if it has others; all that was prepared is gone."""
        if devices == self._devices:
            return
        if self._plugin is not None:
            until(lambda: self.real.specs() == [])
            self.real.stop(self._plugin)
            self.real.kubectl("delete", "resourceslices", "--all")
        # The usual directory of the files is that of the machine.
        files = f"file:1,directory={self.real.files}"
        self._plugin = self.real.start(*(files if each == "file" else each for each in devices))
        self._devices = devices

    def do(self, example: Example, step: Step) -> None:
        file = example.directory / (step.apply or step.file)
        namespace = ("-n", example.namespace)
        kind, _, name = (step.delete or step.patch).partition("/")
        if step.apply:
            self.real.kubectl("apply", "-f", str(file))
        if step.delete:
            self.real.kubectl("delete", kind, name, *namespace, "--wait=false")
        for device, fault in step.fault.items():
            key = f"{DEVICE_FAULT}{device}"
            value = f"{key}={fault}" if fault else f"{key}-"
            self.real.kubectl("annotate", "node", self.real.node.name, value)
        if step.patch:
            change = file.read_text().replace("node-1", self.real.node.name)
            how = ("--subresource=status", "--type=merge", "--patch", change)
            self.real.kubectl("patch", kind, name, *namespace, *how)

    def look(self, example: Example, step: Step) -> Seen:
        kubectl = self.real.cluster.plane.kubectl
        pods: dict[str, Raw] = {}
        for name in (*step.pods, *step.waiting, *step.unbound, *step.gone, *step.health):
            namespace, pod = place(name, 1, example.namespace)
            done = kubectl("get", "pod", "-n", namespace, pod, "-o", "json", "--ignore-not-found")
            pods |= {name: json.loads(done.stdout)} if done.stdout else {}
        logs = {}
        for name in step.containers:
            namespace, pod, container = place(name, 2, example.namespace)
            logs[name] = kubectl("logs", "-n", namespace, pod, "-c", container).stdout
        path = "jsonpath={range .items[*]}{.message}{'\\n'}{end}"
        events = kubectl("get", "events", "-n", example.namespace, "-o", path).stdout.splitlines()
        path = "jsonpath={range .items[*]}{.status.phase}{'\\n'}{end}"
        every = kubectl("get", "pods", "-n", example.namespace, "-o", path).stdout.split()
        return Seen(pods, logs, every, events if step.events else ())

    def settle(self, example: Example, step: Step) -> list[str]:
        """Wait until the node is idle; return the problems."""
        found: list[str] = []

        def holds() -> bool:
            found[:] = problems(step, self.look(example, step))
            return not found

        with contextlib.suppress(AssertionError):
            until(holds)
        return found

    def remove(self, example: Example) -> None:
        for step in example.steps:
            if step.apply:
                file = str(example.directory / step.apply)
                self.real.kubectl("delete", "-f", file, "--ignore-not-found", "--wait=false")


def _applies(example: Example) -> bool:
    return RELEASE.knows(example.feature_gates) and RELEASE.has(example.objects)


@pytest.fixture(scope="module")
def node(start_module_cluster: StartModuleCluster) -> ExampleNode:
    """One cluster, with all that an example needs and Kubernetes has switched off."""
    examples = [each for each in EXAMPLES if _applies(each)]
    gates = {gate: True for each in examples for gate in each.feature_gates}
    versions = {version: on for each in examples for version, on in each.runtime_config.items()}
    options = Options(feature_gates=gates, runtime_config=versions)
    return ExampleNode(RealNode(start_module_cluster(options, Parts(node=True))))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.name)
def test_an_example_holds_on_a_real_node(example: Example, node: ExampleNode) -> None:
    """Step by step; what containers have, they say themselves."""
    if not _applies(example):
        pytest.skip(f"Kubernetes {RELEASE.minor} lacks a gate or a kind of the example")
    node.offer(example.devices)
    try:
        for step in example.steps:
            node.do(example, step)
            assert node.settle(example, step) == []
    finally:
        node.remove(example)


def test_nothing_is_left_of_the_examples(node: ExampleNode) -> None:
    """When their pods are gone, so are the files of their claims."""
    until(lambda: node.real.specs() == [])

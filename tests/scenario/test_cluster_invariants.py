"""Invariants on somebody's cluster: what a scenario brought is looked at, and nothing of others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from dryrack.client.endpoints import CLAIMS, SLICES
from dryrack.client.kubeconfig import load
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster import ControlPlaneOptions, SeededChance, SystemClock
from dryrack.cluster.embedded import embedded
from dryrack.cluster.faults import FaultInjector
from dryrack.scenario import ClusterRun, read_scenario, run_on_cluster
from dryrack.scenario.checkers import check
from dryrack.scenario.embedded_faults import InjectedFaults
from dryrack.scenario.invariants import cluster_checks
from dryrack.scenario.invariants.cluster_checks import ClusterInvariants, ScenarioScope
from dryrack.scenario.invariants.violations import Invariant, Violation
from dryrack.scenario.journal import Journal
from dryrack.testing import Cluster

if TYPE_CHECKING:
    from pathlib import Path

    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw

DRIVER = "gpu.example.com"
TWICE = (
    f"no device is allocated twice: device {DRIVER}/worker/gpu-0: "
    "is allocated to claims default/a, default/b"
)


async def give(client: Client, namespace: str, name: str) -> str:
    """A claim that has a device which others may have as well; its UID."""
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}
    metadata = {"name": name, "namespace": namespace}
    spec = {"devices": {"requests": [request]}}
    made = await client.create(CLAIMS, {"metadata": metadata, "spec": spec})
    result = {"request": "gpu", "driver": DRIVER, "pool": "worker", "device": "gpu-0"}
    status = {"allocation": {"devices": {"results": [result]}}}
    written = await client.update(CLAIMS, made | {"status": status}, subresource="status")
    return str(written["metadata"]["uid"])


async def publish_half(client: Client, node: str) -> None:
    """One of two slices of a pool, on a node that there is not."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 2}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": [{"name": "gpu-0"}]}
    await client.create(SLICES, {"metadata": {"name": node}, "spec": spec})


def looked_at(*givings: tuple[str, str], is_older: bool = False) -> tuple[str, str]:
    """What is wrong after a step and at rest, with those claims; older ones are no scenario's."""

    async def scene() -> tuple[str, str]:
        clock = VirtualClock()
        async with embedded(ControlPlaneOptions(clock=clock), engines=()) as cluster:
            uids = [await give(cluster.client, *each) for each in givings]
            strangers = frozenset(uids if is_older else ())
            await publish_half(cluster.client, "theirs")
            await publish_half(cluster.client, "ours")
            injector = FaultInjector(cluster.client, clock, SeededChance())
            faults = InjectedFaults(injector, Journal(clock), skips_missing=True)
            await faults.begin("node ours ready=false for 1s")
            scope = ScenarioScope(frozenset({"default"}), frozenset({"ours"}), strangers)
            checks = ClusterInvariants(cluster.client, clock, faults, scope)
            step = asyncio.ensure_future(checks.after_step())
            await clock.advance_until(step.done)
            rest = asyncio.ensure_future(checks.at_rest())
            await clock.advance_until(rest.done)
            return step.result(), rest.result()

    return run_virtual(scene())


def test_a_device_that_two_claims_of_a_scenario_have_is_told_of_after_a_step() -> None:
    """And at rest also what is leaked, and half a pool of its nodes; nothing of other nodes."""
    step, rest = looked_at(("default", "a"), ("default", "b"))
    assert step == TWICE
    assert {*rest.splitlines()} == {
        TWICE,
        "nothing is leaked: claim default/a: is allocated, but not reserved for any pod",
        "nothing is leaked: claim default/b: is allocated, but not reserved for any pod",
        "nothing is leaked: slice ours: belongs to node ours, which no longer exists",
        f"pools are complete: pool {DRIVER}/ours: generation 1 has 1 slices of 2",
    }


@pytest.mark.parametrize(
    ("namespace", "is_older"), [("kube-public", False), ("default", True)], ids=["other", "older"]
)
def test_what_others_have_is_no_violation(namespace: str, is_older: bool) -> None:
    """Whether it is in another namespace, or was there before the scenario began."""
    step, rest = looked_at((namespace, "a"), (namespace, "b"), is_older=is_older)
    assert step == ""
    assert "claim" not in rest


SCENARIO = """
apiVersion: dryrack.dev/v1alpha1
kind: Scenario
fleet: {devices: ["gpu:1"], nodes: [{name: worker, count: 2}]}
objects:
- apiVersion: resource.k8s.io/v1
  kind: ResourceClaimTemplate
  metadata: {name: one}
  spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
steps:
- fail: [node worker-2 ready=false for 100ms]
  expect: [{published: {"worker-*": {gpu.example.com: 1}}}]
- apply:
  - apiVersion: v1
    kind: Pod
    metadata: {name: trainer}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: trainer, resources: {claims: [{name: gpu}]}}]
      resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]
  expect: [{object: Pod/trainer, fields: {status.phase: Running}}]
"""


def failures(folder: Path) -> tuple[str, ...]:
    """Of a scenario on a plane that it knows by its kubeconfig alone."""
    loaded = read_scenario(SCENARIO, "scenario.yaml", name="trial", folder=folder)
    with Cluster(kubeconfig_in=folder) as cluster:
        assert cluster.kubeconfig is not None
        connection = load([cluster.kubeconfig], SystemClock())
        return run_on_cluster(loaded, ClusterRun(connection=connection)).failures


def test_a_scenario_on_a_cluster_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It failed and is well again; its objects are looked at after steps, and at rest."""
    looks: list[tuple[set[str], bool]] = []

    def listening(objects: list[tuple[str, Raw]], *, at_rest: bool) -> tuple[Violation, ...]:
        looks.append(({each["metadata"]["name"] for _, each in objects}, at_rest))
        return check(objects, at_rest=at_rest)

    monkeypatch.setattr(cluster_checks, "check", listening)
    assert failures(tmp_path) == ()
    assert {at_rest for _, at_rest in looks} == {False, True}
    assert {"trainer", "worker-1", "worker-2"} <= looks[-1][0]


def test_a_step_after_which_something_is_wrong_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what is wrong, once it has been so for some seconds; here a checker always says so."""
    wrong = Violation(Invariant.WHOLE_GANGS, "gang", "1 of 2 are bound")
    monkeypatch.setattr(cluster_checks, "check", lambda *_, **__: (wrong,))
    assert failures(tmp_path) == (f"step: {wrong}",)

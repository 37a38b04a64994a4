"""Services of the type LoadBalancer on an embedded cluster in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dryrack.client.client import Selection
from dryrack.client.endpoints import EVENTS, SERVICES
from dryrack.controllers.loadbalancers import ADDRESSES

if TYPE_CHECKING:
    from tests.stage import Stage

    from dryrack.kinds.raw import Raw


def service(name: str, **spec: Any) -> Raw:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]} | spec,
    }


async def address_of(stage: Stage, name: str) -> str | None:
    status = (await stage.client.get(SERVICES, name, "default"))["status"]["loadBalancer"]
    if "ingress" not in status:
        return None
    [ingress] = status["ingress"]
    assert ingress["ipMode"] == "VIP"
    return str(ingress["ip"])


async def test_every_load_balancer_has_an_address_of_its_own(stage: Stage) -> None:
    """Free addresses are used again, and nothing is written without a change."""
    await stage.create(SERVICES, service("a"), service("b"))
    await stage.create(SERVICES, service("other", loadBalancerClass="example.com/other"))
    await stage.create(SERVICES, service("chosen", loadBalancerIP="203.0.113.77"))
    await stage.advance(1)
    assert {await address_of(stage, name) for name in "ab"} == {"203.0.113.1", "203.0.113.2"}
    assert await address_of(stage, "other") is None
    assert await address_of(stage, "chosen") == "203.0.113.77"
    events = (await stage.client.list(EVENTS, Selection(namespace="default"))).items
    assert {each["reason"] for each in events if each["involvedObject"]["name"] == "a"} == {
        "EnsuringLoadBalancer",
        "EnsuredLoadBalancer",
    }
    revision = stage.store.revision
    await stage.advance(600)
    assert not stage.store.events("services", after=revision)

    first = await address_of(stage, "a")
    await stage.client.delete(SERVICES, "a", namespace="default")
    await stage.create(SERVICES, service("c"))
    await stage.advance(1)
    assert await address_of(stage, "c") == first


async def test_the_address_is_removed_with_the_type(stage: Stage) -> None:
    """A Service that is no load balancer any more has no address; it can become one again."""
    await stage.create(SERVICES, service("a"))
    await stage.advance(1)
    for kind, expected in (("ClusterIP", None), ("LoadBalancer", "203.0.113.1")):
        patch = {"spec": {"type": kind}}
        await stage.client.patch(SERVICES, "a", patch, namespace="default")
        await stage.advance(1)
        assert await address_of(stage, "a") == expected


async def test_a_service_waits_for_a_free_address(stage: Stage) -> None:
    """An event says that all addresses are in use; the next free one is given at once."""
    services = [service(f"s{number:03}") for number in range(len(ADDRESSES))]
    await stage.create(SERVICES, *services)
    await stage.advance(5)
    await stage.create(SERVICES, service("waits"))
    await stage.advance(5)
    events = (await stage.client.list(EVENTS, Selection(namespace="default"))).items
    [event] = [each for each in events if each["involvedObject"]["name"] == "waits"]

    assert await address_of(stage, "waits") is None
    assert (event["reason"], event["type"]) == ("SyncLoadBalancerFailed", "Warning")
    await stage.client.delete(SERVICES, "s007", namespace="default")
    await stage.advance(1)
    assert await address_of(stage, "waits") is not None


@pytest.mark.stage(without=("loadbalancers",))
async def test_the_engine_can_be_left_out(stage: Stage) -> None:
    """Without the engine a Service waits for a load balancer of the user, as on bare metal."""
    await stage.create(SERVICES, service("a"))
    await stage.advance(5)

    assert await address_of(stage, "a") is None

"""Metrics of reconcilers, queues and clients, as Prometheus reads them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.base import exposition
from tests.client.planes import config_map, refusal, site

from dryrack.base.metrics import Registry
from dryrack.client.client import Client
from dryrack.client.endpoints import CONFIG_MAPS
from dryrack.client.errors import ApiError, NotFoundError, TransportError
from dryrack.client.informer import Informers
from dryrack.client.metering import MeteredTransport
from dryrack.client.supervision import Supervisor
from dryrack.client.timekeeping import settle, sleep
from dryrack.client.transport import Request
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import NOTHING, EngineContext, Plan

if TYPE_CHECKING:
    from dryrack.client.transport import Response


def test_a_loop_counts_what_came_of_its_keys() -> None:
    """Results, errors, times, retries and waits, by the controller's name; all by the clock."""

    async def play() -> str:
        at = site()
        registry = Registry()
        informers = Informers(at.client, clock=at.clock, chance=at.chance)
        context = EngineContext(at.client, informers, at.clock, at.chance, metrics=registry)
        failures = [NotFoundError({"code": 404, "message": "no"}), RuntimeError("a bug")]

        class Some(Reconciler[str]):
            async def decide(self, key: str) -> Plan:
                if key == "slow":
                    await sleep(at.clock, 0.2)
                if key == "bad" and failures:
                    raise failures.pop()
                return Plan(again_seconds=1000.0) if key == "later" else NOTHING

        reconciler = Some(context, "some", workers=1)
        for key in ("slow", "slow", "bad", "later"):
            reconciler.queue.add(key)
        assert exposition.value(registry.render(), "workqueue_depth", **_queue()) == 3
        supervised = Supervisor(at.clock).run("some", reconciler.run)
        running = asyncio.create_task(supervised, name="reconciler")
        await settle()
        active = "controller_runtime_active_workers"
        assert exposition.value(registry.render(), active, controller="some") == 1
        await at.clock.advance(5)
        running.cancel()
        return registry.render()

    text = asyncio.run(play())
    results = {
        result: exposition.value(
            text, "controller_runtime_reconcile_total", controller="some", result=result
        )
        for result in ("success", "error", "requeue_after")
    }

    assert results == {"success": 2, "error": 2, "requeue_after": 1}
    took = "controller_runtime_reconcile_time_seconds"
    for name, expected in (
        ("controller_runtime_reconcile_errors_total", 2),
        ("controller_runtime_active_workers", 0),
        ("controller_runtime_max_concurrent_reconciles", 1),
        (f"{took}_count", 5),
    ):
        assert exposition.value(text, name, controller="some") == expected
    assert round(exposition.value(text, f"{took}_sum", controller="some"), 6) == 0.2
    assert exposition.value(text, f"{took}_bucket", controller="some", le="0.15") == 4
    assert exposition.value(text, "workqueue_adds_total", **_queue()) == 5
    assert exposition.value(text, "workqueue_retries_total", **_queue()) == 2
    waits = "workqueue_queue_duration_seconds_bucket"
    assert exposition.value(text, waits, le="0.1", **_queue()) == 3
    assert exposition.value(text, waits, le="1", **_queue()) == 5


def _queue() -> dict[str, str]:
    return {"name": "some", "controller": "some"}


def test_requests_are_counted_by_code_and_method() -> None:
    """Answers by their status, and those that never came as errors."""

    class Nowhere:
        async def send(self, request: Request) -> Response:
            raise TransportError("nobody there")

    async def play() -> str:
        at = site()
        registry = Registry()
        client = Client(MeteredTransport(at.road, registry))
        await client.create(CONFIG_MAPS, config_map("a"))
        await client.get(CONFIG_MAPS, "a", "default")
        at.road.refuse = lambda request: refusal(500, "InternalError")
        for broken in (client, Client(MeteredTransport(Nowhere(), registry))):
            try:
                await broken.get(CONFIG_MAPS, "a", "default")
            except (ApiError, TransportError):
                continue
        return registry.render()

    samples = exposition.read(asyncio.run(play()))["rest_client_requests_total"].samples
    found = {tuple(value for _, value in pairs): count for (_, pairs), count in samples.items()}

    assert found == {
        ("201", "POST"): 1,
        ("200", "GET"): 1,
        ("500", "GET"): 1,
        ("<error>", "GET"): 1,
    }


def test_the_embedded_server_speaks_the_same_text() -> None:
    """`/metrics` of the API server passes the same strict reader, and counts what is stored."""

    async def play() -> tuple[str | None, bytes]:
        at = site()
        await at.client.create(CONFIG_MAPS, config_map("a"))
        response = await at.road.send(Request("GET", "/metrics"))
        assert isinstance(response.body, bytes)
        return response.header("content-type"), response.body

    kind, body = asyncio.run(play())

    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    text = body.decode()
    assert exposition.value(text, "apiserver_storage_objects", resource="configmaps") >= 1
    assert exposition.read(text)["kubernetes_build_info"].kind == "gauge"

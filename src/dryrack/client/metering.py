"""
The metrics of clients and work queues, with the names of client-go and controller-runtime.

A metric that means the same has the same name, so that dashboards for controllers work. Without a
registry nothing is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.client.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Sized

    from dryrack.base.metrics import Registry
    from dryrack.client.transport import Request, Response, Transport

# The bounds of controller-runtime: from ten nanoseconds up to a quarter of an hour.
QUEUE_BOUNDS = tuple(float(f"1e{exponent}") for exponent in range(-8, 4))
_QUEUE = ("name", "controller")


class QueueMeter:
    """Counts the keys of the queue of one controller."""

    def __init__(self, registry: Registry, name: str, queue: Sized) -> None:
        depth = registry.reading("workqueue_depth", "Keys in the queue.", _QUEUE)
        depth.read_from(lambda: {(name, name): len(queue)})
        added = registry.counter(
            "workqueue_adds_total",
            "Keys added to the queue, without keys that were in it already.",
            _QUEUE,
        )
        retried = registry.counter(
            "workqueue_retries_total", "Keys added to the queue again after a failure.", _QUEUE
        )
        held_back = registry.counter(
            "dryrack_workqueue_held_back_total",
            "Keys that were delayed because they returned to the queue too often.",
            _QUEUE,
        )
        waited = registry.histogram(
            "workqueue_queue_duration_seconds",
            "Time that a key is in the queue.",
            _QUEUE,
            bounds=QUEUE_BOUNDS,
        )
        self._added = added.of(name, name)
        self._retried = retried.of(name, name)
        self._held_back = held_back.of(name, name)
        self._waited = waited.of(name, name)

    def count_add(self) -> None:
        self._added.add()

    def count_take(self, waited_seconds: float) -> None:
        self._waited.observe(waited_seconds)

    def count_retry(self) -> None:
        self._retried.add()

    def count_held_back(self) -> None:
        self._held_back.add()


class MeteredTransport:
    """Counts requests by status code and method."""

    def __init__(self, to: Transport, registry: Registry) -> None:
        self._to = to
        self._requests = registry.counter(
            "rest_client_requests_total",
            "Requests to the API server, by status code and method.",
            ("code", "method"),
        )

    async def send(self, request: Request) -> Response:
        try:
            response = await self._to.send(request)
        except TransportError:
            # The label value of client-go for requests without an answer.
            self._requests.of("<error>", request.method).add()
            raise
        self._requests.of(str(response.status), request.method).add()
        return response

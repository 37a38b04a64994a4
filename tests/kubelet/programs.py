"""A driver program that answers as a test says: real drivers answer correctly."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc

from dryrack.kubelet.health import HEALTH_SERVICES
from dryrack.kubelet.instance import SERVICES
from dryrack.kubeletapi import REGISTRATION, message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

    from dryrack.kinds.raw import Raw

DRIVER = "gpu.example.com"


@dataclass
class Program:
    """An instance of a driver, with the calls that it got and the answer to the next ones."""

    directory: Path
    uid: str = ""
    kind: str = "DRAPlugin"
    versions: Sequence[str] = tuple(SERVICES)
    endpoint: str = ""
    calls: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    statuses: list[tuple[bool, str]] = field(default_factory=list)
    answer: Callable[[Any, Any], None] | None = None
    # Bytes in place of the answers of a method.
    garbage: dict[str, bytes] = field(default_factory=dict)
    # What a method waits for.
    before: dict[str, Callable[[], Awaitable[object]]] = field(default_factory=dict)
    # The reports of each health stream, which ends after them; None keeps it open.
    reports: Callable[[], Sequence[Sequence[Raw] | None]] | None = None

    @property
    def dra(self) -> Path:
        return self.directory / "plugins" / f"dra{self.uid}.sock"

    @property
    def registration(self) -> Path:
        return self.directory / "plugins_registry" / f"{DRIVER}{self.uid}-reg.sock"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        servers = []
        for path, handlers in (
            (
                self.dra,
                [
                    *(self._dra(each) for each in SERVICES.values()),
                    *(self._health(each) for each in HEALTH_SERVICES.values()),
                ],
            ),
            (self.registration, [self._registration()]),
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            server = grpc.aio.server()
            server.add_generic_rpc_handlers(tuple(handlers))
            server.add_insecure_port(f"unix:{path}")
            await server.start()
            servers.append(server)
        try:
            yield
        finally:
            self.registration.unlink(missing_ok=True)
            for server in servers:
                await server.stop(None)
            self.dra.unlink(missing_ok=True)

    def _registration(self) -> grpc.GenericRpcHandler:
        async def info(_: Any, __: Any) -> Any:
            return message(REGISTRATION, "PluginInfo")(
                type=self.kind,
                name=DRIVER,
                endpoint=self.endpoint or str(self.dra),
                supported_versions=self.versions,
            )

        async def status(request: Any, _: Any) -> Any:
            self.statuses.append((request.plugin_registered, request.error))
            return message(REGISTRATION, "RegistrationStatusResponse")()

        return grpc.method_handlers_generic_handler(
            f"{REGISTRATION}.Registration",
            {
                "GetInfo": _unary(
                    message(REGISTRATION, "InfoRequest"), info, self.garbage.get("GetInfo")
                ),
                "NotifyRegistrationStatus": _unary(
                    message(REGISTRATION, "RegistrationStatus"), status
                ),
            },
        )

    def _dra(self, package: str) -> grpc.GenericRpcHandler:
        def method(name: str) -> Any:
            async def handle(request: Any, context: Any) -> Any:
                self.calls.append((name, tuple(each.uid for each in request.claims)))
                if name in self.before:
                    await self.before[name]()
                response = message(package, f"{name}Response")()
                for each in request.claims:
                    response.claims[each.uid].SetInParent()
                if self.answer is not None:
                    self.answer(request, response)
                return response

            return _unary(message(package, f"{name}Request"), handle, self.garbage.get(name))

        names = ("NodePrepareResources", "NodeUnprepareResources")
        return grpc.method_handlers_generic_handler(
            f"{package}.DRAPlugin", {name: method(name) for name in names}
        )

    def _health(self, package: str) -> grpc.GenericRpcHandler:
        async def watch(_: Any, context: Any) -> AsyncIterator[Any]:
            self.calls.append((f"{package}.NodeWatchResources", ()))
            if self.reports is None:
                await context.abort(grpc.StatusCode.UNIMPLEMENTED, "no health")
            assert self.reports is not None
            for report in self.reports():
                if report is None:
                    await asyncio.Event().wait()
                response = message(package, "NodeWatchResourcesResponse")()
                for each in report or ():
                    response.devices.add(**each)
                yield response

        handler: Any = grpc.unary_stream_rpc_method_handler(
            watch,
            request_deserializer=message(package, "NodeWatchResourcesRequest").FromString,
            response_serializer=lambda each: each.SerializeToString(),
        )
        return grpc.method_handlers_generic_handler(
            f"{package}.DRAResourceHealth", {"NodeWatchResources": handler}
        )


def _unary(request: Any, handle: Any, garbage: bytes | None = None) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        handle,
        request_deserializer=request.FromString,
        response_serializer=lambda each: garbage or each.SerializeToString(),
    )


def short_directory() -> Iterator[Path]:
    """Yield a directory whose path leaves room for the name of a socket."""
    with tempfile.TemporaryDirectory(prefix="dryrack-") as directory:
        yield Path(directory)


def claim(name: str = "one", uid: str = "", *, driver: str = DRIVER, **result: Any) -> Raw:
    """Return a claim that has a device of a driver."""
    device = {"request": "gpu", "driver": driver, "pool": "node-1", "device": "gpu-0", **result}
    return {
        "metadata": {"namespace": "team", "name": name, "uid": uid or f"uid-{name}"},
        "status": {"allocation": {"devices": {"results": [device]}}},
    }


def report(device: str, health: int, **more: Any) -> Raw:
    """Return an entry of a health report: 1 is healthy, 2 is unhealthy."""
    return {"device": {"pool_name": "node-1", "device_name": device}, "health": health, **more}


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; fail after ten seconds."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 (programs of others report nothing)
            await asyncio.sleep(0.01)

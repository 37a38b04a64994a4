"""
The plugin on its sockets: registration with the kubelet, DRA and health, each in two versions.

The DRA socket is created before the registration socket, because the kubelet calls as soon as it
sees the latter; and it is removed last. Only the user of the process may use them.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf.message import DecodeError

from dryrack.base.errors import DryrackError
from dryrack.hardware import NO_FAULTS
from dryrack.kubeletapi import (
    DRA_V1,
    DRA_V1BETA1,
    DRA_VERSIONS,
    HEALTH_V1,
    HEALTH_V1ALPHA1,
    HEALTH_VERSIONS,
    REGISTRATION,
    message,
)
from dryrack.kubeletplugin.device_health import HealthStreams
from dryrack.kubeletplugin.node_faults import failure, until_answered
from dryrack.kubeletplugin.plugin import ClaimReference

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from pathlib import Path

    from dryrack.kubeletplugin.node_faults import FaultSource
    from dryrack.kubeletplugin.plugin import NodePlugin

_logger = logging.getLogger(__name__)

# The kernel refuses longer paths of sockets.
SOCKET_PATH_BYTES_MAX = 107
# The time for a call that is under way when the plugin stops; the kubelet waits 45 s.
_GRACE_SECONDS = 10.0


class SocketError(DryrackError):
    """A socket cannot be served."""


@dataclass(frozen=True, slots=True)
class Sockets:
    """The sockets on which the kubelet calls a plugin."""

    dra: Path
    registration: Path

    @staticmethod
    def of(kubelet: Path, driver: str, uid: str = "") -> Sockets:
        """
        Return the usual sockets, below the kubelet's directory.

        With the UID of a pod, they belong to one of several instances. If a path is too long for
        the kernel, a digest replaces the UID, or for the registration both names.
        """
        own = kubelet / "plugins" / driver
        registry = kubelet / "plugins_registry"
        if not uid:
            return Sockets(own / "dra.sock", registry / f"{driver}-reg.sock")
        names = (
            f"{driver}-{uid}-reg.sock",
            f"{driver}-{_digest(uid, 8)}-reg.sock",
            f"dra-{_digest(chr(0).join((driver, uid)), 16)}-reg.sock",
        )
        own_names = (f"dra-{uid}.sock", f"dra-{_digest(uid, 6)}.sock")
        return Sockets(_first_fitting(own, own_names), _first_fitting(registry, names))

    def remove(self) -> None:
        """Remove sockets of a killed process, which the kubelet would try forever."""
        self.registration.unlink(missing_ok=True)
        self.dra.unlink(missing_ok=True)


@asynccontextmanager
async def serving_kubelet(
    plugin: NodePlugin, sockets: Sockets, faults: FaultSource | None = None
) -> AsyncIterator[None]:
    """
    Serve during a block; the kubelet unregisters the plugin when it ends.

    With a source of faults, the plugin simulates them and reports the health of devices.
    """
    dra = grpc.aio.server()
    registration = grpc.aio.server()
    dra.add_generic_rpc_handlers(
        tuple(_dra_service(plugin, package, faults) for package in (DRA_V1, DRA_V1BETA1))
    )
    streams = None if faults is None else HealthStreams(plugin.kind, plugin.node, faults)
    if streams is not None:
        dra.add_generic_rpc_handlers(
            tuple(streams.service(package) for package in (HEALTH_V1, HEALTH_V1ALPHA1))
        )
    versions = DRA_VERSIONS if faults is None else (*DRA_VERSIONS, *HEALTH_VERSIONS)
    registration.add_generic_rpc_handlers((_registration_service(plugin, sockets, versions),))
    try:
        for server, path in ((dra, sockets.dra), (registration, sockets.registration)):
            _bind(server, path)
            await server.start()
        yield
    finally:
        sockets.registration.unlink(missing_ok=True)
        await registration.stop(None)
        if streams is not None:
            streams.end()
        await dra.stop(_GRACE_SECONDS)
        sockets.dra.unlink(missing_ok=True)


def _digest(text: str, size: int) -> str:
    digest = hashlib.sha256(text.encode()).digest()[:size]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _first_fitting(directory: Path, names: Sequence[str]) -> Path:
    """Return the first path that is short enough, or the last one."""
    paths = [directory / each for each in names]
    return next(filter(_fits, paths), paths[-1])


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX


def _bind(server: grpc.aio.Server, path: Path) -> None:
    if not _fits(path):
        raise SocketError(
            f"socket {path}: longer than {SOCKET_PATH_BYTES_MAX} bytes; use a shorter --kubelet-dir"
        )
    path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    # The socket is created with these permissions, so other users can never connect.
    before = os.umask(0o177)
    try:
        server.add_insecure_port(f"unix:{path}")
    except RuntimeError:
        raise SocketError(f"socket {path}: cannot create it; make the directory writable") from None
    finally:
        os.umask(before)


def _registration_service(
    plugin: NodePlugin, sockets: Sockets, versions: Sequence[str]
) -> grpc.GenericRpcHandler:
    info = message(REGISTRATION, "PluginInfo")(
        type="DRAPlugin",
        name=plugin.kind.driver,
        endpoint=str(sockets.dra),
        supported_versions=versions,
    )

    async def get_info(_: Any) -> Any:
        return info

    async def log_registration(status: Any) -> Any:
        plugin.has_met_kubelet = True
        extra = {"driver": plugin.kind.driver, "reason": status.error}
        if status.plugin_registered:
            _logger.info("registered with the kubelet", extra=extra)
        else:
            _logger.error("the kubelet refused the plugin", extra=extra)
        return message(REGISTRATION, "RegistrationStatusResponse")()

    return grpc.method_handlers_generic_handler(
        f"{REGISTRATION}.Registration",
        {
            "GetInfo": _unary(message(REGISTRATION, "InfoRequest"), get_info),
            "NotifyRegistrationStatus": _unary(
                message(REGISTRATION, "RegistrationStatus"), log_registration
            ),
        },
    )


def _dra_service(
    plugin: NodePlugin, package: str, faults: FaultSource | None
) -> grpc.GenericRpcHandler:
    service = _DraService(plugin, package, faults)
    return grpc.method_handlers_generic_handler(
        f"{package}.DRAPlugin",
        {
            "NodePrepareResources": _unary(
                message(package, "NodePrepareResourcesRequest"), service.prepare
            ),
            "NodeUnprepareResources": _unary(
                message(package, "NodeUnprepareResourcesRequest"), service.unprepare
            ),
        },
    )


class _DraService:
    """The DRA service in one version."""

    def __init__(self, plugin: NodePlugin, package: str, faults: FaultSource | None) -> None:
        self._plugin = plugin
        self._package = package
        self._faults = faults

    async def prepare(self, request: Any) -> Any:
        response = message(self._package, "NodePrepareResourcesResponse")()
        claims = _references(request)
        for claim in await self._failing_claims(claims):
            claims.remove(claim)
            response.claims[claim.uid].error = self._refusal()
        answers = await self._plugin.prepare(claims)
        for uid, answer in answers.items():
            entry = response.claims[uid]
            if isinstance(answer, DryrackError):
                entry.error = str(answer)
                continue
            for device in answer:
                made = entry.devices.add(
                    request_names=device.requests,
                    pool_name=device.pool,
                    device_name=device.device,
                    cdi_device_ids=device.cdi_ids,
                )
                if device.share_id is not None and self._package == DRA_V1:
                    made.share_id = device.share_id
        return response

    async def _failing_claims(self, claims: Sequence[ClaimReference]) -> list[ClaimReference]:
        """Return the claims whose preparation a fault fails; not those that are prepared."""
        if self._faults is None or not claims:
            return []
        await until_answered(self._faults)
        if not self._refusal():
            return []
        prepared = {each.uid for each in self._plugin.records}
        return [claim for claim in claims if claim.uid not in prepared]

    def _refusal(self) -> str:
        current = NO_FAULTS if self._faults is None else self._faults.current()
        if current.is_driver_gone:
            return f"driver {self._plugin.kind.driver}: the fault annotation driver=gone is set"
        return failure(current.prepare, self._plugin.node)

    async def unprepare(self, request: Any) -> Any:
        response = message(self._package, "NodeUnprepareResourcesResponse")()
        answers = await self._plugin.unprepare(_references(request))
        for uid, error in answers.items():
            response.claims[uid].error = "" if error is None else str(error)
        return response


def _references(request: Any) -> list[ClaimReference]:
    return [ClaimReference(each.namespace, each.name, each.uid) for each in request.claims]


def _unary(request: Any, answer: Callable[[Any], Awaitable[Any]]) -> Any:
    # Read here and not by gRPC, which would log a traceback for a mistake of the caller.
    async def handle(data: bytes, context: Any) -> Any:
        try:
            asked = request.FromString(data)
        except DecodeError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        return await answer(asked)

    return grpc.unary_unary_rpc_method_handler(
        handle, response_serializer=lambda message: message.SerializeToString()
    )

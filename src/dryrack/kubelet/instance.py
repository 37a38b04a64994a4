"""
One registered instance of a driver, and the calls of the kubelet to it.

Texts of errors are those of the kubelet, because authors of drivers search for them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import grpc

from dryrack.base.errors import DryrackError
from dryrack.kubeletapi import DRA_V1, DRA_V1BETA1, message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The timeouts of the kubelet.
CALL_SECONDS_MAX = 45.0
# The services that the kubelet knows, and the packages of their messages.
SERVICES = {"v1.DRAPlugin": DRA_V1, "v1beta1.DRAPlugin": DRA_V1BETA1}
# Names of status codes that are not the words of grpc.StatusCode with capitals.
_CODES = {"CANCELLED": "Canceled", "OK": "OK"}

# The error for bytes that are not the message, for which the library returns None.
UNREADABLE = (
    "rpc error: code = Internal desc = grpc: failed to unmarshal the received message: proto: "
    "cannot parse invalid wire-format data"
)


class CallError(DryrackError):
    """A call to a driver failed; the text is that of the kubelet."""


@dataclass(frozen=True, slots=True)
class ClaimReference:
    """A claim as the kubelet names it in a call."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class PreparedDevice:
    """A device in the answer of a driver; no requests means all of the claim."""

    pool: str
    device: str
    requests: tuple[str, ...] = ()
    cdi_ids: tuple[str, ...] = ()
    share_id: str = ""


@dataclass(slots=True, eq=False)
class Instance:
    """A connection to an instance of a driver, which is made when it is first needed."""

    driver: str
    endpoint: str
    service: str
    # The service of its health reports; "" for none.
    health_service: str = ""
    connected: asyncio.Event = field(default_factory=asyncio.Event)
    channel: grpc.aio.Channel = field(init=False)

    def __post_init__(self) -> None:
        self.channel = grpc.aio.insecure_channel(f"unix:{self.endpoint}")

    @property
    def is_connected(self) -> bool:
        return self.connected.is_set()

    async def prepare(
        self, claims: Sequence[ClaimReference]
    ) -> Mapping[str, tuple[PreparedDevice, ...]]:
        """Prepare claims; return their devices by UID, or raise `CallError`."""
        names = {each.uid: each.name for each in claims}
        prepared: dict[str, tuple[PreparedDevice, ...]] = {}
        for uid, result in (await self.prepare_each(claims)).items():
            if uid not in names:
                raise CallError(f"NodePrepareResources returned result for unknown claim UID {uid}")
            if isinstance(result, str):
                raise CallError(
                    f"NodePrepareResources failed for ResourceClaim {names[uid]}: {result}"
                )
            prepared[uid] = result
        _check_complete("NodePrepareResources", len(claims) - len(prepared))
        return prepared

    async def prepare_each(
        self, claims: Sequence[ClaimReference]
    ) -> Mapping[str, tuple[PreparedDevice, ...] | str]:
        """Prepare claims; return the devices or the error by UID, as the driver sent them."""
        answer = await self._call("NodePrepareResources", claims)
        return {
            uid: result.error
            or tuple(
                PreparedDevice(
                    each.pool_name,
                    each.device_name,
                    tuple(each.request_names),
                    tuple(each.cdi_device_ids),
                    getattr(each, "share_id", ""),
                )
                for each in result.devices
            )
            for uid, result in answer.claims.items()
        }

    async def unprepare(self, claims: Sequence[ClaimReference]) -> None:
        """Unprepare claims, or raise `CallError`."""
        answer = await self._call("NodeUnprepareResources", claims)
        names = {each.uid: each.name for each in claims}
        for uid, result in answer.claims.items():
            if uid not in names:
                raise CallError(
                    f"NodeUnprepareResources returned result for unknown claim UID {uid}"
                )
            if result.error:
                raise CallError(
                    f"NodeUnprepareResources failed for ResourceClaim {names[uid]}: {result.error}"
                )
        _check_complete("NodeUnprepareResources", len(claims) - len(answer.claims))

    async def _call(self, method: str, claims: Sequence[ClaimReference]) -> Any:
        package = SERVICES[self.service]
        request = message(package, f"{method}Request")()
        for each in claims:
            request.claims.add(namespace=each.namespace, name=each.name, uid=each.uid)
        call: Any = self.channel.unary_unary(
            f"/{package}.DRAPlugin/{method}",
            request_serializer=lambda it: it.SerializeToString(),
            response_deserializer=message(package, f"{method}Response").FromString,
        )
        try:
            answer = await call(request, timeout=CALL_SECONDS_MAX)
        except grpc.aio.AioRpcError as error:
            raise CallError(f"{method}: {text_of(error)}") from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # The driver unregistered meanwhile, which closes its channel.
            raise CallError(
                f"{method}: rpc error: code = Canceled desc = the driver was unregistered"
            ) from None
        if answer is None:
            raise CallError(f"{method}: {UNREADABLE}")
        return answer


def _check_complete(method: str, skipped: int) -> None:
    if skipped:
        raise CallError(f"{method} skipped {skipped} ResourceClaims")


def text_of(error: grpc.aio.AioRpcError) -> str:
    """Return an error of gRPC as programs in Go print it."""
    name = error.code().name
    code = _CODES.get(name) or "".join(word.capitalize() for word in name.split("_"))
    return f"rpc error: code = {code} desc = {error.details() or ''}"

"""
A throw-away kubelet plugin: registers, and answers every prepare call with one CDI device.

It proves that the test bed's kubelet and containerd serve claims; dryrack's own plugin is
another thing. The messages are described here field by field, because generated code would tie
the tests to one version of the gRPC library.
"""

from __future__ import annotations

import threading
from concurrent import futures
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

if TYPE_CHECKING:
    from pathlib import Path

_Field = descriptor_pb2.FieldDescriptorProto
_DRA = "k8s.io.kubelet.pkg.apis.dra.v1"
_REGISTRATION = "pluginregistration"
# The kubelet watches its directory of sockets and calls within a second or so.
REGISTRATION_SECONDS_MAX = 60.0

# Message → fields, in the order of their numbers from 1; a leading * means repeated.
_MESSAGES = {
    _REGISTRATION: {
        "InfoRequest": (),
        "PluginInfo": ("type", "name", "endpoint", "*supported_versions"),
        "RegistrationStatus": ("plugin_registered:bool", "error"),
        "RegistrationStatusResponse": (),
    },
    _DRA: {
        "Claim": ("namespace", "uid", "name"),
        "Device": ("*request_names", "pool_name", "device_name", "*cdi_device_ids"),
        "NodePrepareResourcesRequest": ("*claims:Claim",),
        "NodePrepareResourceResponse": ("*devices:Device", "error"),
        "PrepareEntry": ("key", "value:NodePrepareResourceResponse"),
        "NodePrepareResourcesResponse": ("*claims:PrepareEntry",),
        "NodeUnprepareResourceResponse": ("error",),
        "UnprepareEntry": ("key", "value:NodeUnprepareResourceResponse"),
        "NodeUnprepareResourcesResponse": ("*claims:UnprepareEntry",),
    },
}


def _messages(package: str) -> dict[str, Any]:
    # A map on the wire is a repeated entry of key and value, so entries are described as such.
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{package}.proto", package=package, syntax="proto3"
    )
    for name, fields in _MESSAGES[package].items():
        message = file.message_type.add(name=name)
        for number, text in enumerate(fields, start=1):
            message.field.append(_field(package, number, text))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
        for name in _MESSAGES[package]
    }


def _field(package: str, number: int, text: str) -> descriptor_pb2.FieldDescriptorProto:
    name, _, kind = text.lstrip("*").partition(":")
    made = _Field(name=name, number=number)
    made.label = _Field.LABEL_REPEATED if text.startswith("*") else _Field.LABEL_OPTIONAL
    if kind in ("", "bool"):
        made.type = _Field.TYPE_BOOL if kind else _Field.TYPE_STRING
    else:
        made.type = _Field.TYPE_MESSAGE
        made.type_name = f".{package}.{kind}"
    return made


@dataclass(slots=True)
class ThrowAwayPlugin:
    """Serves one driver on one node until it is closed."""

    driver: str
    kubelet: Path
    pool: str
    device: str
    cdi_id: str
    prepared: list[str] = field(default_factory=list)
    unprepared: list[str] = field(default_factory=list)
    registered: threading.Event = field(default_factory=threading.Event)
    _server: grpc.Server | None = None

    def __enter__(self) -> ThrowAwayPlugin:
        endpoint = self.kubelet / "plugins" / f"{self.driver}.sock"
        registration = self.kubelet / "plugins_registry" / f"{self.driver}-reg.sock"
        endpoint.parent.mkdir(parents=True, exist_ok=True)
        self._server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
        self._server.add_generic_rpc_handlers((self._dra(), self._registration(endpoint)))
        self._server.add_insecure_port(f"unix://{endpoint}")
        self._server.add_insecure_port(f"unix://{registration}")
        self._server.start()
        assert self.registered.wait(REGISTRATION_SECONDS_MAX), "the kubelet did not register it"
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None, "entered before it is left"
        self._server.stop(grace=None).wait()

    def _registration(self, endpoint: Path) -> grpc.GenericRpcHandler:
        messages = _messages(_REGISTRATION)
        info = messages["PluginInfo"](
            type="DRAPlugin",
            name=self.driver,
            endpoint=str(endpoint),
            supported_versions=["v1.DRAPlugin"],
        )
        done = messages["RegistrationStatusResponse"]()

        def notified(request: Any, _: Any) -> Any:
            self.registered.set()
            return done

        return grpc.method_handlers_generic_handler(
            f"{_REGISTRATION}.Registration",
            {
                "GetInfo": _unary(messages["InfoRequest"], lambda request, _: info),
                "NotifyRegistrationStatus": _unary(messages["RegistrationStatus"], notified),
            },
        )

    def _dra(self) -> grpc.GenericRpcHandler:
        messages = _messages(_DRA)
        request = messages["NodePrepareResourcesRequest"]
        return grpc.method_handlers_generic_handler(
            f"{_DRA}.DRAPlugin",
            {
                "NodePrepareResources": _unary(request, lambda r, _: self._prepare(messages, r)),
                "NodeUnprepareResources": _unary(
                    request, lambda r, _: self._unprepare(messages, r)
                ),
            },
        )

    def _prepare(self, messages: dict[str, Any], request: Any) -> Any:
        answer = messages["NodePrepareResourcesResponse"]()
        for claim in request.claims:
            self.prepared.append(claim.uid)
            entry = answer.claims.add(key=claim.uid)
            entry.value.devices.add(
                pool_name=self.pool, device_name=self.device, cdi_device_ids=[self.cdi_id]
            )
        return answer

    def _unprepare(self, messages: dict[str, Any], request: Any) -> Any:
        answer = messages["NodeUnprepareResourcesResponse"]()
        for claim in request.claims:
            self.unprepared.append(claim.uid)
            answer.claims.add(key=claim.uid).value.SetInParent()
        return answer


def _unary(request: Any, answer: Any) -> grpc.RpcMethodHandler[Any, Any]:
    return grpc.unary_unary_rpc_method_handler(
        answer,
        request_deserializer=request.FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )

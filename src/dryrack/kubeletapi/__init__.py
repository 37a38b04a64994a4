"""
The kubelet's gRPC messages, from a compiled descriptor set.

`kubelet.pb` is what protoc makes of the `.proto` files beside it:

    protoc --descriptor_set_out=kubelet.pb registration.proto dra_v1.proto dra_v1beta1.proto \\
        health_v1.proto health_v1alpha1.proto

Generated code would tie dryrack to one version of the protobuf library; a descriptor set is read
by all of them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

REGISTRATION = "pluginregistration"
DRA_V1 = "k8s.io.kubelet.pkg.apis.dra.v1"
DRA_V1BETA1 = "k8s.io.kubelet.pkg.apis.dra.v1beta1"
HEALTH_V1 = "v1"
HEALTH_V1ALPHA1 = "v1alpha1"
# The kubelet takes the first of each that it knows; for health that is v1alpha1 up to 1.36.
DRA_VERSIONS = ("v1.DRAPlugin", "v1beta1.DRAPlugin")
HEALTH_VERSIONS = ("v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth")


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    text = (Path(__file__).parent / "kubelet.pb").read_bytes()
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(text).file:
        pool.Add(file)
    return pool


@cache
def message(package: str, name: str) -> Any:
    """The class of a message."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{package}.{name}"))

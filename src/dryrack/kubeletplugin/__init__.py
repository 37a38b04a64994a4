"""The kubelet plugin: publish the devices of a node, and prepare and unprepare claims."""

from typing import TYPE_CHECKING

from dryrack.base.lazy import exports

if TYPE_CHECKING:
    from dryrack.kubeletplugin.allocation_state import (
        STATE_NAMESPACE,
        states_of_node,
        states_of_virtual_nodes,
    )
    from dryrack.kubeletplugin.checkpoint import read_checkpoints
    from dryrack.kubeletplugin.claim_status import ClaimStatuses
    from dryrack.kubeletplugin.device_kind import (
        AllocatedDevice,
        ContainerEdits,
        DeviceKind,
        DevicesError,
        HostLine,
        KindOptions,
        Mount,
        PartitionableKind,
        PrepareError,
        PreparingClaim,
    )
    from dryrack.kubeletplugin.device_metadata import claim_uid
    from dryrack.kubeletplugin.devices_file import (
        DevicesFileError,
        devices_documents,
        is_node_devices,
    )
    from dryrack.kubeletplugin.health_check import serving_health
    from dryrack.kubeletplugin.kinds.fake import FakeKind
    from dryrack.kubeletplugin.node_devices_format import format_of, rewrite
    from dryrack.kubeletplugin.node_faults import NodeFaultWatch
    from dryrack.kubeletplugin.plugin import ClaimReference, Directories, NodePlugin
    from dryrack.kubeletplugin.plugin_metrics import fatal_errors
    from dryrack.kubeletplugin.registry import read_devices
    from dryrack.kubeletplugin.serving import Sockets, serving_kubelet
    from dryrack.kubeletplugin.slices import (
        PLUGIN_LABEL,
        SlicePublisher,
        device_classes,
        node_slices,
    )
    from dryrack.kubeletplugin.virtual import (
        ContainerInjection,
        DriverRecords,
        VirtualDrivers,
        VirtualNodeSlices,
    )
else:
    __getattr__ = exports(
        __name__,
        {
            "allocation_state": ("STATE_NAMESPACE states_of_node states_of_virtual_nodes"),
            "checkpoint": "read_checkpoints",
            "claim_status": "ClaimStatuses",
            "device_kind": (
                "AllocatedDevice ContainerEdits DeviceKind DevicesError HostLine KindOptions "
                "Mount PartitionableKind PrepareError PreparingClaim"
            ),
            "device_metadata": "claim_uid",
            "devices_file": "DevicesFileError devices_documents is_node_devices",
            "health_check": "serving_health",
            "kinds.fake": "FakeKind",
            "node_devices_format": "format_of rewrite",
            "node_faults": "NodeFaultWatch",
            "plugin": "ClaimReference Directories NodePlugin",
            "plugin_metrics": "fatal_errors",
            "registry": "read_devices",
            "serving": "Sockets serving_kubelet",
            "slices": "PLUGIN_LABEL SlicePublisher device_classes node_slices",
            "virtual": "ContainerInjection DriverRecords VirtualDrivers VirtualNodeSlices",
        },
    )

__all__ = [
    "PLUGIN_LABEL",
    "STATE_NAMESPACE",
    "AllocatedDevice",
    "ClaimReference",
    "ClaimStatuses",
    "ContainerEdits",
    "ContainerInjection",
    "DeviceKind",
    "DevicesError",
    "DevicesFileError",
    "Directories",
    "DriverRecords",
    "FakeKind",
    "HostLine",
    "KindOptions",
    "Mount",
    "NodeFaultWatch",
    "NodePlugin",
    "PartitionableKind",
    "PrepareError",
    "PreparingClaim",
    "SlicePublisher",
    "Sockets",
    "VirtualDrivers",
    "VirtualNodeSlices",
    "claim_uid",
    "device_classes",
    "devices_documents",
    "fatal_errors",
    "format_of",
    "is_node_devices",
    "node_slices",
    "read_checkpoints",
    "read_devices",
    "rewrite",
    "serving_health",
    "serving_kubelet",
    "states_of_node",
    "states_of_virtual_nodes",
]

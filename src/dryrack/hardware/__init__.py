"""The devices of nodes: their sources, their pools and slices, and their faults."""

from typing import TYPE_CHECKING

from dryrack.base.lazy import exports

if TYPE_CHECKING:
    from dryrack.hardware.faults import (
        DEVICE_FAULT,
        FAULT_LABEL,
        FAULT_NODE,
        KUBELET_RESTART,
        LOST_TAINT,
        NO_FAULTS,
        NODE_FAULT,
        NODE_FAULT_PARTS,
        UNHEALTHY_TAINT,
        DeviceFault,
        FaultError,
        Health,
        NodeFaults,
        PrepareFault,
        PrepareMode,
        add_expiry,
        device_annotation,
        fault_lines,
        faults_of,
        node_annotation,
        read_device_faults,
        read_node_fault,
    )
    from dryrack.hardware.inventory import (
        Assignment,
        Batch,
        Inventory,
        Origin,
        Overlay,
        Pool,
        Section,
        Source,
        SourceKind,
        ThisNode,
    )
    from dryrack.hardware.matching import Matched, Matcher, pools_of
    from dryrack.hardware.node_terms import EVERY_NODE, INSTANCE_TYPE, of_labels
    from dryrack.hardware.overlay_capacity import find_capacity_mismatches
    from dryrack.hardware.slicing import (
        MANAGED_BY,
        MANAGER,
        SOURCE,
        is_managed_slice,
        node_owner,
        slices_of,
        source_label,
    )
else:
    __getattr__ = exports(
        __name__,
        {
            "faults": (
                "DEVICE_FAULT FAULT_LABEL FAULT_NODE KUBELET_RESTART LOST_TAINT NODE_FAULT "
                "NODE_FAULT_PARTS NO_FAULTS UNHEALTHY_TAINT DeviceFault FaultError Health "
                "NodeFaults PrepareFault PrepareMode add_expiry device_annotation fault_lines "
                "faults_of node_annotation read_device_faults read_node_fault"
            ),
            "inventory": (
                "Assignment Batch Inventory Origin Overlay Pool Section Source SourceKind ThisNode"
            ),
            "matching": "Matched Matcher pools_of",
            "node_terms": "EVERY_NODE INSTANCE_TYPE of_labels",
            "overlay_capacity": "find_capacity_mismatches",
            "slicing": (
                "MANAGED_BY MANAGER SOURCE is_managed_slice node_owner slices_of source_label"
            ),
        },
    )

__all__ = [
    "DEVICE_FAULT",
    "EVERY_NODE",
    "FAULT_LABEL",
    "FAULT_NODE",
    "INSTANCE_TYPE",
    "KUBELET_RESTART",
    "LOST_TAINT",
    "MANAGED_BY",
    "MANAGER",
    "NODE_FAULT",
    "NODE_FAULT_PARTS",
    "NO_FAULTS",
    "SOURCE",
    "UNHEALTHY_TAINT",
    "Assignment",
    "Batch",
    "DeviceFault",
    "FaultError",
    "Health",
    "Inventory",
    "Matched",
    "Matcher",
    "NodeFaults",
    "Origin",
    "Overlay",
    "Pool",
    "PrepareFault",
    "PrepareMode",
    "Section",
    "Source",
    "SourceKind",
    "ThisNode",
    "add_expiry",
    "device_annotation",
    "fault_lines",
    "faults_of",
    "find_capacity_mismatches",
    "is_managed_slice",
    "node_annotation",
    "node_owner",
    "of_labels",
    "pools_of",
    "read_device_faults",
    "read_node_fault",
    "slices_of",
    "source_label",
]

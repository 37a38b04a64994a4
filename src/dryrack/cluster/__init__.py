"""
Assemble clusters: the API server, the engines, and the ports to the machine.

This package creates clocks, randomness, keys, files and sockets, and passes them to the engines
that need them. Two clusters in one process share nothing.
"""

from typing import TYPE_CHECKING

from dryrack.base.lazy import exports

if TYPE_CHECKING:
    from dryrack.cluster.assembly import (
        EngineOptions,
        MakeAllocator,
        NodePlugin,
        assemble_engines,
        has_compute_domains,
        node_plugins,
    )
    from dryrack.cluster.attached import (
        Attached,
        Attachment,
        Candidacy,
        Need,
        check_needs,
        connection_of,
        new_identity,
        remedy,
        stopping_by_signal,
    )
    from dryrack.cluster.catalogue import load_catalogue
    from dryrack.cluster.control_plane import (
        ControlPlane,
        ControlPlaneOptions,
        build_control_plane,
    )
    from dryrack.cluster.engines import Family, UnknownEngineError, Wiring, running_engines
    from dryrack.cluster.initial_objects import (
        add_allocation_states,
        add_compute_domains,
        add_device_classes,
        add_node,
        add_node_pools,
        allocation_state_objects,
        apply_objects,
        compute_domain_objects,
        node_pool_objects,
        virtual_node,
    )
    from dryrack.cluster.ports import SeededChance, SystemChance, SystemClock
    from dryrack.cluster.prices import load_prices
    from dryrack.cluster.private_files import ensure_own_directory, write_private
    from dryrack.cluster.process.component_status import (
        COMPONENTS,
        component_failures,
        describe_failure,
    )
    from dryrack.cluster.provisioning import (
        karpenter_settings,
        provisioner_needs,
        provisioner_settings,
    )
    from dryrack.cluster.publish_snapshot import publisher_needs, read_world
    from dryrack.cluster.scheduler_plugins import installed_plugins
    from dryrack.cluster.snapshots.past import Past, PastWrite
    from dryrack.cluster.snapshots.snapshot import (
        DECISION_KINDS,
        EXPLANATION_KINDS,
        GROUP_KINDS,
        MODELS,
        RECORDED_KINDS,
        follow_snapshots,
        read_objects,
        read_snapshot,
        typed,
    )
else:
    __getattr__ = exports(
        __name__,
        {
            "assembly": (
                "EngineOptions MakeAllocator NodePlugin assemble_engines has_compute_domains "
                "node_plugins"
            ),
            "attached": (
                "Attached Attachment Candidacy Need check_needs connection_of new_identity "
                "remedy stopping_by_signal"
            ),
            "catalogue": "load_catalogue",
            "prices": "load_prices",
            "process.component_status": "COMPONENTS component_failures describe_failure",
            "control_plane": "ControlPlane ControlPlaneOptions build_control_plane",
            "engines": "Family UnknownEngineError Wiring running_engines",
            "initial_objects": (
                "add_allocation_states add_compute_domains add_device_classes add_node "
                "add_node_pools allocation_state_objects apply_objects compute_domain_objects "
                "node_pool_objects virtual_node"
            ),
            "ports": "SeededChance SystemChance SystemClock",
            "private_files": "ensure_own_directory write_private",
            "provisioning": "karpenter_settings provisioner_needs provisioner_settings",
            "publish_snapshot": "publisher_needs read_world",
            "scheduler_plugins": "installed_plugins",
            "snapshots.past": "Past PastWrite",
            "snapshots.snapshot": (
                "DECISION_KINDS EXPLANATION_KINDS GROUP_KINDS MODELS RECORDED_KINDS "
                "follow_snapshots read_objects read_snapshot typed"
            ),
        },
    )

__all__ = [
    "COMPONENTS",
    "DECISION_KINDS",
    "EXPLANATION_KINDS",
    "GROUP_KINDS",
    "MODELS",
    "RECORDED_KINDS",
    "Attached",
    "Attachment",
    "Candidacy",
    "ControlPlane",
    "ControlPlaneOptions",
    "EngineOptions",
    "Family",
    "MakeAllocator",
    "Need",
    "NodePlugin",
    "Past",
    "PastWrite",
    "SeededChance",
    "SystemChance",
    "SystemClock",
    "UnknownEngineError",
    "Wiring",
    "add_allocation_states",
    "add_compute_domains",
    "add_device_classes",
    "add_node",
    "add_node_pools",
    "allocation_state_objects",
    "apply_objects",
    "assemble_engines",
    "build_control_plane",
    "check_needs",
    "component_failures",
    "compute_domain_objects",
    "connection_of",
    "describe_failure",
    "ensure_own_directory",
    "follow_snapshots",
    "has_compute_domains",
    "installed_plugins",
    "karpenter_settings",
    "load_catalogue",
    "load_prices",
    "new_identity",
    "node_plugins",
    "node_pool_objects",
    "provisioner_needs",
    "provisioner_settings",
    "publisher_needs",
    "read_objects",
    "read_snapshot",
    "read_world",
    "remedy",
    "running_engines",
    "stopping_by_signal",
    "typed",
    "virtual_node",
    "write_private",
]

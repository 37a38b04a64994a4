"""
`dryrack plugin`: devices that do not exist, on a node that does.

It serves the kubelet of this machine until it is told to stop.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from dryrack.cli.cluster_options import (
    Context,
    Kubeconfig,
    LogFormat,
    instead_option,
    panel,
    run_option,
)
from dryrack.cli.files import UsageError, read_sources
from dryrack.cli.views.connecting import connection_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.client.kubeconfig import Connection
    from dryrack.cluster.process import Address
    from dryrack.cluster.process.node_plugins import NodeSite
    from dryrack.kubeletplugin import DeviceKind

AGENT = "dryrack-plugin"
UID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The options of the command, as they were given."""

    devices: tuple[str, ...] = ()
    config: tuple[str, ...] = ()
    node: str = ""
    kubelet_dir: str = "/var/lib/kubelet"
    cdi_dir: str = "/var/run/cdi"
    kubeconfig: str = ""
    context: str = ""
    removes_slices: bool = False
    rolling_update_uid: str = ""
    metrics_address: str = "0"
    health_address: str = "0"
    log_format: str = "text"
    prints_rights: bool = False
    prints_classes: bool = False
    prints_definitions: bool = False
    fault_file: str = ""
    writes_states: bool = True
    writes_metadata: bool = False
    state_namespace: str = "fake-system"


def run(wish: Wish) -> bool:
    """Run the command; return whether it succeeded."""
    from dryrack.cli.service import address_of, log_format_of, serve

    check_namespace(wish.state_namespace)
    if wish.prints_rights:
        sys.stdout.write(rights_of(wish))
        return True
    if wish.prints_definitions:
        from dryrack.cluster.rights import ALLOCATION_STATES, definitions

        sys.stdout.write(definitions(ALLOCATION_STATES))
        return True
    kinds = kinds_of(wish)
    if wish.prints_classes:
        print_classes(kinds)
        return True
    form = log_format_of(wish.log_format)
    site = site_of(wish)
    addresses = (
        address_of("--metrics-address", wish.metrics_address),
        address_of("--grpc-health-address", wish.health_address),
    )
    connection = connection_to(kubeconfig=wish.kubeconfig, context=wish.context)
    return serve(form, lambda: _served(connection, kinds, site, wish, addresses))


def rights_of(wish: Wish) -> str:
    """Return the RBAC manifest for the named devices, or for devices of all kinds."""
    from dryrack.cluster.rights import plugin

    namespace = wish.state_namespace if wish.writes_states else ""
    if not wish.devices and not wish.config:
        return plugin(namespace)
    from dryrack.kubeletplugin import FakeKind

    kinds = kinds_of(wish)
    has_states = any(isinstance(each, FakeKind) for each in kinds)
    return plugin(namespace if has_states else "", [each.driver for each in kinds])


def kinds_of(wish: Wish) -> tuple[DeviceKind, ...]:
    """Return the devices of the node, from the options and the files."""
    if not wish.devices and not wish.config:
        raise UsageError("--devices is missing; name the devices of this node, for example fake:8")
    from dryrack.cluster import load_catalogue
    from dryrack.kubeletplugin import DevicesError, devices_documents, read_devices

    sources = read_sources(wish.config) if wish.config else ()
    documents = [each for it in sources for each in devices_documents(it.content, it.name)]
    try:
        return read_devices(wish.devices, catalogue=load_catalogue, documents=documents)
    except DevicesError as error:
        raise UsageError(str(error)) from None


def check_namespace(name: str) -> None:
    from dryrack.kinds.validation.names import label

    for complaint in label(name):
        raise UsageError(f"--nas-namespace {name!r}: {complaint}")


def print_classes(kinds: Sequence[DeviceKind]) -> None:
    """Print the DeviceClasses of the devices, for `kubectl apply -f -`."""
    from dryrack.cli.output import Format, print_data
    from dryrack.kinds.decode import to_builtins
    from dryrack.kubeletplugin import device_classes

    items = [to_builtins(each) for each in device_classes(kinds)]
    print_data({"apiVersion": "v1", "kind": "List", "items": items}, Format.YAML)


def site_of(wish: Wish) -> NodeSite:
    """Return the node: from the option, from $NODE_NAME, or the host name."""
    from pathlib import Path

    from dryrack.cluster.process.node_plugins import NodeSite
    from dryrack.kinds.validation.names import subdomain

    node = wish.node or os.environ.get("NODE_NAME", "") or socket.gethostname().lower()
    for complaint in subdomain(node):
        raise UsageError(f"--node {node!r}: {complaint}")
    uid = wish.rolling_update_uid
    if uid and not UID.fullmatch(uid):
        problem = "must be at most 63 letters, digits and hyphens"
        raise UsageError(f"--rolling-update-uid {uid!r}: {problem}")
    return NodeSite(node, Path(wish.kubelet_dir).resolve(), Path(wish.cdi_dir).resolve(), uid)


async def _served(
    connection: Connection,
    kinds: Sequence[DeviceKind],
    site: NodeSite,
    wish: Wish,
    addresses: tuple[Address | None, Address | None],
) -> None:
    from pathlib import Path

    from dryrack.base.metrics import Registry
    from dryrack.client.client import Client
    from dryrack.client.https import connected
    from dryrack.client.metering import MeteredTransport
    from dryrack.cluster import SystemChance, SystemClock, check_needs, stopping_by_signal
    from dryrack.cluster.process.node_plugins import COMMAND, NEEDS, NodePlugins

    async with connected(connection) as transport:
        metrics = Registry()
        client = Client(MeteredTransport(transport, metrics), agent=AGENT)
        await check_needs(client, NEEDS, COMMAND)
        plugins = NodePlugins(
            client,
            kinds,
            site,
            clock=SystemClock(),
            chance=SystemChance(),
            state_namespace=wish.state_namespace if wish.writes_states else "",
            writes_metadata=wish.writes_metadata,
            metrics=metrics,
            metrics_address=addresses[0],
            health_address=addresses[1],
            fault_file=Path(wish.fault_file) if wish.fault_file else None,
        )
        await plugins.run(stopping_by_signal(), removes_slices=wish.removes_slices)


_node_option = panel("Node and devices")
Devices = Annotated[
    list[str] | None,
    _node_option(
        "--devices",
        metavar="KIND[:COUNT][,option=value...]",
        help="Devices of the node, for example fake:8, gpu:8 or file. Repeatable.",
    ),
]
Config = Annotated[
    list[str] | None,
    _node_option(
        metavar="FILE", help="NodeDevices file with the devices. - is standard input. Repeatable."
    ),
]
Node = Annotated[
    str,
    _node_option(metavar="NAME", help="Name of the node. Default: $NODE_NAME, or the host name."),
]
KubeletDirectory = Annotated[
    str, _node_option("--kubelet-dir", help="Root directory of the kubelet (its --root-dir).")
]
CdiDirectory = Annotated[
    str, _node_option("--cdi-dir", help="Directory where the container runtime reads CDI specs.")
]
RemoveSlices = Annotated[
    bool,
    run_option("--remove-slices/--keep-slices", help="Delete the ResourceSlices on exit."),
]
RollingUpdateUid = Annotated[
    str,
    run_option(
        metavar="UID",
        envvar="ROLLING_UPDATE_UID",
        help="UID of this Pod. Lets two plugins run on the node during a rolling update.",
    ),
]
FaultFile = Annotated[
    str,
    run_option(
        metavar="FILE",
        help="File with a line DEVICE FAULT for each fault, as in: dryrack fault device.",
    ),
]
WriteStates = Annotated[
    bool, run_option("--nas/--no-nas", help="Write a NodeAllocationState for fake devices.")
]
StateNamespace = Annotated[
    str, run_option("--nas-namespace", metavar="NAME", help="Namespace of NodeAllocationStates.")
]
WriteMetadata = Annotated[
    bool,
    run_option(
        "--device-metadata/--no-device-metadata",
        help="Mount a file that describes the devices into each container.",
    ),
]
MetricsAddress = Annotated[
    str, run_option(metavar="HOST:PORT", help="Address of /metrics and /healthz. 0 disables them.")
]
HealthAddress = Annotated[
    str,
    run_option(
        "--grpc-health-address",
        metavar="HOST:PORT",
        help="Address of the gRPC health service. 0 disables it.",
    ),
]
PrintRights = Annotated[
    bool,
    instead_option("--print-rbac", help="Print the RBAC manifest for the devices and exit."),
]
PrintClasses = Annotated[
    bool, instead_option("--print-classes", help="Print the DeviceClasses of the devices and exit.")
]

PrintDefinitions = Annotated[
    bool, instead_option("--print-crds", help="Print the CRD of NodeAllocationState and exit.")
]


def plugin(
    devices: Devices = None,
    config: Config = None,
    node: Node = "",
    kubelet_dir: KubeletDirectory = "/var/lib/kubelet",
    cdi_dir: CdiDirectory = "/var/run/cdi",
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    remove_slices: RemoveSlices = False,
    rolling_update_uid: RollingUpdateUid = "",
    fault_file: FaultFile = "",
    nas: WriteStates = True,
    nas_namespace: StateNamespace = "fake-system",
    device_metadata: WriteMetadata = False,
    metrics_address: MetricsAddress = "0",
    grpc_health_address: HealthAddress = "0",
    log_format: LogFormat = "text",
    print_rbac: PrintRights = False,
    print_classes: PrintClasses = False,
    print_crds: PrintDefinitions = False,
) -> None:
    """Publish simulated devices for this node and prepare them for its Pods."""
    wish = Wish(
        devices=tuple(devices or ()),
        config=tuple(config or ()),
        node=node,
        kubelet_dir=kubelet_dir,
        cdi_dir=cdi_dir,
        kubeconfig=kubeconfig,
        context=context,
        removes_slices=remove_slices,
        rolling_update_uid=rolling_update_uid,
        fault_file=fault_file,
        metrics_address=metrics_address,
        health_address=grpc_health_address,
        log_format=log_format,
        prints_rights=print_rbac,
        prints_classes=print_classes,
        prints_definitions=print_crds,
        writes_states=nas,
        writes_metadata=device_metadata,
        state_namespace=nas_namespace,
    )
    raise typer.Exit(0 if run(wish) else 1)

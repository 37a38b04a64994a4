"""
`dryrack plugin`: publish simulated devices for this node and prepare them for its Pods.

The command serves the kubelet of this machine until a signal stops it.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.cli.files import UsageError, read_sources
from dryrack.cli.output import Format, print_data
from dryrack.cli.service import address_of, log_format_of, serve
from dryrack.cli.views.sources import connection_to

if TYPE_CHECKING:
    from dryrack.cli.options import PluginOptions
    from dryrack.cluster.process.node_plugins import NodeSite
    from dryrack.kubeletplugin import DeviceKind

AGENT = "dryrack-plugin"
UID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,62}")


def run(options: PluginOptions) -> bool:
    """Run the command; return whether it succeeded."""
    from dryrack.kinds.validation.names import label

    for complaint in label(options.nas_namespace):
        raise UsageError(f"--nas-namespace {options.nas_namespace!r}: {complaint}")
    if options.print_rbac:
        sys.stdout.write(rights_of(options))
        return True
    if options.print_crds:
        from dryrack.cluster.rights import ALLOCATION_STATES, definitions

        sys.stdout.write(definitions(ALLOCATION_STATES))
        return True
    kinds = kinds_of(options)
    if options.print_classes:
        from dryrack.kinds.decode import to_builtins
        from dryrack.kubeletplugin import device_classes

        items = [to_builtins(each) for each in device_classes(kinds)]
        print_data({"apiVersion": "v1", "kind": "List", "items": items}, Format.YAML)
        return True
    log_format = log_format_of(options.log_format)
    site = site_of(options)
    metrics_address = address_of("--metrics-address", options.metrics_address)
    health_address = address_of("--grpc-health-address", options.grpc_health_address)
    connection = connection_to(kubeconfig=options.kubeconfig, context=options.context)

    from dryrack.base.metrics import Registry
    from dryrack.client.client import Client
    from dryrack.client.https import connected
    from dryrack.client.metering import MeteredTransport
    from dryrack.cluster import SystemChance, SystemClock, check_needs, stopping_by_signal
    from dryrack.cluster.process.node_plugins import COMMAND, NEEDS, NodePlugins

    async def serve_kubelet() -> None:
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
                state_namespace=options.nas_namespace if options.nas else "",
                writes_metadata=options.device_metadata,
                metrics=metrics,
                metrics_address=metrics_address,
                health_address=health_address,
                fault_file=Path(options.fault_file) if options.fault_file else None,
            )
            await plugins.run(stopping_by_signal(), removes_slices=options.remove_slices)

    return serve(log_format, serve_kubelet)


def rights_of(options: PluginOptions) -> str:
    """Return the RBAC manifest for the named devices, or for devices of all kinds."""
    from dryrack.cluster.rights import plugin

    namespace = options.nas_namespace if options.nas else ""
    if not options.devices and not options.config:
        return plugin(namespace)
    from dryrack.kubeletplugin import FakeKind

    kinds = kinds_of(options)
    has_states = any(isinstance(each, FakeKind) for each in kinds)
    return plugin(namespace if has_states else "", [each.driver for each in kinds])


def kinds_of(options: PluginOptions) -> tuple[DeviceKind, ...]:
    """Return the devices of the node, from the options and the files."""
    if not options.devices and not options.config:
        raise UsageError("--devices is missing; name the devices of this node, for example fake:8")
    from dryrack.cluster import load_catalogue
    from dryrack.kubeletplugin import DevicesError, devices_documents, read_devices

    sources = read_sources(options.config) if options.config else ()
    documents = [each for it in sources for each in devices_documents(it.content, it.name)]
    try:
        return read_devices(options.devices, catalogue=load_catalogue, documents=documents)
    except DevicesError as error:
        raise UsageError(str(error)) from None


def site_of(options: PluginOptions) -> NodeSite:
    """Return the node: from the option, from $NODE_NAME, or the host name."""
    from dryrack.cluster.process.node_plugins import NodeSite
    from dryrack.kinds.validation.names import subdomain

    node = options.node or os.environ.get("NODE_NAME", "") or socket.gethostname().lower()
    for complaint in subdomain(node):
        raise UsageError(f"--node {node!r}: {complaint}")
    uid = options.rolling_update_uid
    if uid and not UID.fullmatch(uid):
        problem = "must be at most 63 letters, digits and hyphens"
        raise UsageError(f"--rolling-update-uid {uid!r}: {problem}")
    return NodeSite(node, Path(options.kubelet_dir).resolve(), Path(options.cdi_dir).resolve(), uid)

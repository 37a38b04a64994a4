"""The options of `dryrack kubelet`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dryrack.cli.command import CONTEXT, KUBECONFIG, argument, option, panel

_node_option = panel("Nodes")
_driver_option = panel("Drivers")
_cluster_option = panel("Cluster")


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletOptions:
    """
    Serve nodes of a cluster with virtual kubelets that call real DRA drivers.

    The command serves only the nodes that you name. It creates Nodes that do not exist, and deletes
    them when it stops. It refuses Nodes that a kubelet, KWOK, or dryrack up serves.

    In PROGRAM and ARG, {node}, {kubelet}, {plugins}, {registry}, {cdi}, and {kubeconfig} stand for
    the name and the directories of the node, and the kubeconfig.
    """

    program: Annotated[
        tuple[str, ...],
        argument(
            metavar="[-- PROGRAM [ARG]...]",
            help="The kubelet plugin of a DRA driver. It runs once for each node, with NODE_NAME "
            "and KUBECONFIG, and starts again if it exits.",
        ),
    ] = ()
    node: Annotated[
        tuple[str, ...], _node_option("--node", metavar="NAME", help="Name of a node. Repeatable.")
    ] = ()
    node_count: Annotated[
        int, _node_option("--node-count", metavar="N", help="Serve N nodes with a common name.")
    ] = 0
    node_name: Annotated[
        str,
        _node_option(
            metavar="PATTERN", help="Names of the nodes of --node-count; {} is their number."
        ),
    ] = "kubelet-{}"
    keep_nodes: Annotated[
        bool, _node_option("--keep-nodes", help="Do not delete the Nodes that the command creates.")
    ] = False
    kubelet_dir: Annotated[
        str,
        _driver_option(
            "--kubelet-dir",
            metavar="DIRECTORY",
            help="Drivers register in NODE/plugins_registry below DIRECTORY.",
        ),
    ] = ""
    cdi_dir: Annotated[
        tuple[str, ...],
        _driver_option(
            "--cdi-dir",
            metavar="DIRECTORY",
            help="Also read CDI specs from DIRECTORY; {node} is the name of the node. Repeatable. "
            "Default: /etc/cdi, /var/run/cdi, and NODE/cdi below --kubelet-dir.",
        ),
    ] = ()
    kubeconfig: Annotated[str, _cluster_option(metavar="FILE", help=KUBECONFIG)] = ""
    context: Annotated[str, _cluster_option(help=CONTEXT)] = ""
    health_address: Annotated[
        str,
        _cluster_option(
            metavar="HOST:PORT", help="Address of /healthz and /readyz; 0 switches it off."
        ),
    ] = "0"
    log_format: Annotated[
        str, _cluster_option(metavar="text|json", help="Format of log lines.")
    ] = "text"
    print_rbac: Annotated[
        bool, option("--print-rbac", help="Print the RBAC manifest and exit.")
    ] = False

"""Options of the commands for virtual clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dryrack.cli.command import Context, Kubeconfig, Output, argument, option, panel
from dryrack.cli.output import Format
from dryrack.kinds.releases import DEFAULT_RELEASE, RELEASES

ClusterName = Annotated[str, option("--name", help="Name of the cluster.")]
_inhabitants_option = panel("Nodes, devices, and objects")
_place_option = panel("Name, address, and files")
_behaviour_option = panel("Behavior")
ENGINES = (
    "kubelet, claims, garbage-collector, namespaces, serviceaccounts, nodes, taint-eviction, "
    "deployments, replicasets, replicationcontrollers, daemonsets, statefulsets, jobs, cronjobs, "
    "quotas, budgets, endpoints, endpointslices, loadbalancers, volumes, slices, scheduler"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """
    Start a virtual cluster: a Kubernetes control plane and virtual nodes.

    In PROGRAM and ARG, {node}, {kubelet}, {plugins}, {registry}, {cdi}, and {kubeconfig} stand for
    the name and the directories of the node, and the kubeconfig.
    """

    program: Annotated[
        tuple[str, ...],
        argument(
            metavar="[-- PROGRAM [ARG]...]",
            help="With --kubelet-dir: the kubelet plugin of a DRA driver. It runs once for each "
            "node, with NODE_NAME and KUBECONFIG, and starts again if it exits.",
        ),
    ] = ()
    nodes: Annotated[int, _inhabitants_option(help="Number of virtual nodes.")] = 0
    node_name: Annotated[
        str,
        _inhabitants_option(metavar="PATTERN", help="Names of these nodes; {} is their number."),
    ] = "node-{}"
    instance_type: Annotated[
        str,
        _inhabitants_option(
            metavar="TYPE",
            help="Instance type of these nodes, with its devices. List: dryrack hardware list.",
        ),
    ] = ""
    catalogue: Annotated[
        bool,
        _inhabitants_option(
            "--catalogue",
            help="Also give nodes that are added later the devices of their instance types.",
        ),
    ] = False
    catalogue_file: Annotated[
        tuple[str, ...],
        _inhabitants_option(
            metavar="FILE", help="As --catalogue, with instance types from FILE. Repeatable."
        ),
    ] = ()
    no_device_classes: Annotated[
        bool,
        _inhabitants_option(
            "--no-device-classes",
            help="Create no DeviceClasses, so that the chart of a driver can create its own.",
        ),
    ] = False
    devices: Annotated[
        tuple[str, ...],
        _inhabitants_option(
            metavar="KIND[:COUNT][,option=value...]",
            help="Devices of each virtual node, for example gpu:8, fake:8, file. Repeatable.",
        ),
    ] = ()
    kubelet_dir: Annotated[
        str,
        _inhabitants_option(
            "--kubelet-dir",
            metavar="DIRECTORY",
            help="Let driver programs register in NODE/plugins_registry below DIRECTORY; the pods "
            "of the node wait until the drivers have prepared their claims.",
        ),
    ] = ""
    provisioner: Annotated[
        bool,
        _inhabitants_option(
            "--provisioner",
            help="Create nodes for Pods that fit on no node, from the NodePools of the cluster, "
            "and remove nodes that are not needed. Implies --catalogue.",
        ),
    ] = False
    ignore_dra_requests: Annotated[
        bool,
        _inhabitants_option(
            "--ignore-dra-requests",
            help="With --provisioner: create no nodes for Pods with ResourceClaims.",
        ),
    ] = False
    config: Annotated[
        tuple[str, ...],
        _inhabitants_option(
            metavar="FILE",
            help="Objects to create; NodeDevices replace --devices. Repeatable; "
            "- is standard input.",
        ),
    ] = ()
    name: Annotated[str, _place_option("--name", help="Name of the cluster.")] = "default"
    detach: Annotated[
        bool,
        _place_option("--detach", "-d", help="Run in the background. Stop it with: dryrack down"),
    ] = False
    data_dir: Annotated[
        str | None,
        _place_option(metavar="DIR", help="Directory for the objects. Default: in memory."),
    ] = None
    kubeconfig: Annotated[
        str | None, _place_option(metavar="PATH", help="File for another copy of the kubeconfig.")
    ] = None
    merge: Annotated[
        bool,
        _place_option(
            "--merge", help="Add the cluster to your kubeconfig, as the current context."
        ),
    ] = False
    port: Annotated[int, _place_option(help="Port of the API server; 0 selects a free port.")] = 0
    host: Annotated[str, _place_option(help="Address of the API server.")] = "127.0.0.1"
    expose: Annotated[
        bool, _place_option("--expose", help="Allow a --host that other computers can reach.")
    ] = False
    no_dashboard: Annotated[
        bool, _place_option("--no-dashboard", help="Do not serve the dashboard.")
    ] = False
    release: Annotated[
        str, _behaviour_option(help=f"Kubernetes release to follow: {RELEASES}.")
    ] = DEFAULT_RELEASE.value
    feature_gates: Annotated[
        tuple[str, ...],
        _behaviour_option(
            metavar="GATE=true,...",
            help="Feature gates of Kubernetes. Default: as in the release.",
        ),
    ] = ()
    runtime_config: Annotated[
        tuple[str, ...],
        _behaviour_option(
            metavar="KEY=true,...",
            help="API versions to switch on or off, as for kube-apiserver: "
            "resource.k8s.io/v1beta2=true, api/all=true.",
        ),
    ] = ()
    authorization: Annotated[
        str, _behaviour_option(metavar="MODE", help="Authorization mode: always-allow or rbac.")
    ] = "always-allow"
    scheduler_config: Annotated[
        str,
        _behaviour_option(
            metavar="FILE", help="KubeSchedulerConfiguration with profiles, plugins, and weights."
        ),
    ] = ""
    without: Annotated[
        tuple[str, ...],
        _behaviour_option(
            metavar="ENGINE,...",
            help=f"Components not to run, so that you can run your own: {ENGINES}.",
        ),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DownOptions:
    """Stop a virtual cluster and delete its state, except the data directory."""

    name: ClusterName = "default"
    all_: Annotated[bool, option("--all", help="Stop all clusters.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleOptions:
    """Create or delete virtual nodes of a running virtual cluster."""

    name: ClusterName = "default"
    nodes: Annotated[
        int,
        option(help="Number of virtual nodes to have, or of nodes of --instance-type."),
    ]
    instance_type: Annotated[
        str,
        option(
            metavar="TYPE",
            help="Instance type of the nodes to count. Default: all virtual nodes.",
        ),
    ] = ""
    node_name: Annotated[
        str,
        option(
            metavar="PATTERN",
            help="Names of new nodes; {} is their number. Default: as the existing nodes.",
        ),
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusOptions:
    """Show the virtual clusters, their addresses, and failed components."""

    name: Annotated[
        str | None, option("--name", help="Name of a cluster. Default: all clusters.")
    ] = None
    output: Output = Format.TABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeconfigOptions:
    """Print the kubeconfig of a virtual cluster."""

    name: ClusterName = "default"
    path: Annotated[
        bool, option("--path", help="Print the path of the file, for the variable KUBECONFIG.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """
    Run the program of a workload on this machine, in place of its pod on a virtual node.

    The program gets what its pod would have: the token of its ServiceAccount, environment,
    arguments, ConfigMaps and Secrets. The API server calls its webhooks. Everything that the
    command writes is removed when it ends.

    Exit status 0: stopped by a signal, or the workload was deleted.
    Exit status 1: the program cannot run, or it failed and its pod does not restart it.
    Exit status 2: wrong usage.
    """

    workload: Annotated[
        str,
        argument(metavar="KIND/NAME", help="A deployment, statefulset, daemonset, or pod."),
    ]
    program: Annotated[
        tuple[str, ...],
        argument(
            metavar="[-- PROGRAM [ARG]...]",
            help="Program on this machine, before the arguments of the container. "
            "Default: the command of the container.",
        ),
    ] = ()
    kubeconfig: Kubeconfig = ""
    context: Context = ""
    namespace: Annotated[
        str, option("-n", "--namespace", help="Namespace of NAME. Default: from the context.")
    ] = ""
    container: Annotated[
        str, option("-c", "--container", help="Container to run. Default: as kubectl.")
    ] = ""
    detach: Annotated[
        bool,
        option(
            "--detach",
            "-d",
            help="Run in the background; the command ends when the pod is ready. "
            "The program ends with its workload or cluster.",
        ),
    ] = False
    without_args: Annotated[
        bool, option("--without-args", help="Leave out the arguments of the container.")
    ] = False
    port: Annotated[
        tuple[str, ...],
        option(
            metavar="CONTAINER=LOCAL",
            help="Port on this machine for a port of the container. Repeatable.",
        ),
    ] = ()
    mount: Annotated[
        tuple[str, ...],
        option(
            metavar="PATH=FOLDER",
            help="Mount nothing, and write the files of the mount at PATH to FOLDER. Repeatable.",
        ),
    ] = ()


# The groups of the options of `publish` in the help.

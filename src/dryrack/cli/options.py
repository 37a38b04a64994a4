"""
The options of the commands: one dataclass per command, whose docstring is the help of the command.

Only the classes and the help texts are here, so that `dryrack --help` loads no command. Commands
with subcommands have their options in their own `commands.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dryrack.cli.command import (
    CONTEXT,
    KUBECONFIG,
    Context,
    Kubeconfig,
    Output,
    SelectedCluster,
    argument,
    option,
    panel,
)
from dryrack.cli.output import (
    ApiTarget,
    DataFormat,
    Format,
    GangFormat,
    LintFormat,
    NamedFormat,
    PublisherFormat,
    WideFormat,
)
from dryrack.kinds.releases import DEFAULT_RELEASE, RELEASES

# Options of several commands.
Files = Annotated[
    tuple[str, ...],
    option(
        "-f",
        "--filename",
        metavar="FILE",
        help="YAML or JSON file, or a directory of files; - is standard input. Repeatable.",
    ),
]
MoreFiles = Annotated[
    tuple[str, ...], argument(metavar="[FILE]...", help="More files, as with -f.")
]
NamedOutput = Annotated[
    NamedFormat, option("-o", "--output", help="Output format; name prints what gets its devices.")
]
Release = Annotated[str, option("--release", help=f"Kubernetes release to follow: {RELEASES}.")]
SchedulerConfig = Annotated[
    str, option(metavar="FILE", help="Scheduler configuration whose profiles to use.")
]
FeatureGates = Annotated[
    tuple[str, ...],
    option(
        "--feature-gates",
        metavar="GATE=true,...",
        help="Feature gates of Kubernetes. Default: as in the release.",
    ),
]
OnlyNode = Annotated[str | None, option("--node", help="Try only this node.")]

# Options of commands on files that add nodes.
_instance_type_option = panel("Nodes of an instance type")
InstanceType = Annotated[
    str,
    _instance_type_option(
        "--instance-type",
        metavar="TYPE",
        help="Add nodes of this type with devices and classes. See: dryrack hardware list.",
    ),
]
NodeCount = Annotated[
    int | None,
    _instance_type_option("--nodes", help="Number of nodes of --instance-type. Default: 1."),
]
CatalogueFile = Annotated[
    tuple[str, ...],
    _instance_type_option(
        "--catalogue-file",
        metavar="FILE",
        help="File with your own instance types. Repeatable.",
    ),
]

# Options of commands that run until they are stopped.
cluster_option = panel("Cluster")
run_option = panel("Operation")
instead_option = panel("Print and exit")
ServedKubeconfig = Annotated[str, cluster_option(metavar="FILE", help=KUBECONFIG)]
ServedContext = Annotated[str, cluster_option(help=CONTEXT)]
MetricsAddress = Annotated[
    str, run_option(metavar="HOST:PORT", help="Address of /metrics; 0 switches it off.")
]
HealthAddress = Annotated[
    str, run_option(metavar="HOST:PORT", help="Address of /healthz and /readyz.")
]
LogFormat = Annotated[str, run_option(metavar="text|json", help="Format of log lines.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateOptions:
    """
    Show which devices the claims in files would get.

    If the files contain no ResourceSlices, nodes with the label
    node.kubernetes.io/instance-type get the devices of the hardware catalog.

    Exit status 0: all claims get their devices.
    Exit status 1: a claim does not fit, or a file has an error.
    Exit status 2: wrong usage.
    """

    more: MoreFiles = ()
    files: Files = ()
    node: OnlyNode = None
    output: NamedOutput = NamedFormat.TABLE
    release: Release = DEFAULT_RELEASE.value
    feature_gates: FeatureGates = ()
    scheduler_config: SchedulerConfig = ""
    instance_type: InstanceType = ""
    nodes: NodeCount = None
    catalogue_file: CatalogueFile = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainOptions:
    """
    Explain why a claim, pod, gang, or workload gets no devices, and what would help.

    With -f, the object is in the files. Without it, the object is in a cluster.
    The command changes nothing.

    Exit status 0: the object gets its devices or, in a cluster, has them.
    Exit status 1: it does not, or a file has an error.
    Exit status 2: wrong usage.
    """

    kind: Annotated[
        str,
        argument(
            metavar="KIND", help="Kind of NAME: claim, pod, gang, or a workload. Also KIND/NAME."
        ),
    ]
    name: Annotated[str, argument(metavar="NAME", help="Name, or NAMESPACE/NAME.")] = ""
    more: MoreFiles = ()
    files: Files = ()
    kubeconfig: Kubeconfig = ""
    context: Context = ""
    cluster: SelectedCluster = ""
    namespace: Annotated[
        str,
        option(
            "-n",
            "--namespace",
            help='Namespace of NAME. Default: from the context; with -f, "default".',
        ),
    ] = ""
    node: OnlyNode = None
    verbose: Annotated[
        bool,
        option("-v", "--verbose", help="Print the result of each scheduler plugin for each node."),
    ] = False
    output: NamedOutput = NamedFormat.TABLE
    release: Release = DEFAULT_RELEASE.value
    feature_gates: FeatureGates = ()
    scheduler_config: SchedulerConfig = ""
    instance_type: InstanceType = ""
    nodes: NodeCount = None
    catalogue_file: CatalogueFile = ()


_plan_option = panel("New nodes")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """
    Find the cheapest nodes for the pods in files or of a cluster, and prove that none are cheaper.

    By default the plan starts from zero: it is for all pods, also for those that have a node, and
    no node exists. With --existing it adds nodes to the existing ones for the pending pods.

    Exit status 0: the plan has all pods.
    Exit status 1: a pod is not in the plan, or a file has an error.
    Exit status 2: wrong usage.
    """

    more: MoreFiles = ()
    files: Files = ()
    kubeconfig: Kubeconfig = ""
    context: Context = ""
    cluster: SelectedCluster = ""
    existing: Annotated[
        bool, option("--existing", help="Keep the existing nodes, and plan for pending pods.")
    ] = False
    defragment: Annotated[
        str,
        option(
            metavar="DRIVER",
            help="Instead of a plan, show pods whose move frees whole nodes of a driver.",
        ),
    ] = ""
    instance_types: Annotated[
        tuple[str, ...],
        _plan_option(
            "--instance-types",
            metavar="TYPE,...",
            help="Types of new nodes; * matches any text. Default: all types of the best provider.",
        ),
    ] = ()
    prices: Annotated[
        tuple[str, ...],
        _plan_option("--prices", metavar="FILE", help="File with your own prices. Repeatable."),
    ] = ()
    fewest_nodes: Annotated[
        bool, _plan_option("--fewest-nodes", help="Find the fewest nodes, whatever they cost.")
    ] = False
    node_labels: Annotated[
        tuple[str, ...],
        _plan_option(
            "--node-labels", metavar="KEY=VALUE,...", help="More labels of new nodes. Repeatable."
        ),
    ] = ()
    spread: Annotated[
        str,
        _plan_option(
            "--spread", metavar="zone", help="Spread the pods of each workload evenly over zones."
        ),
    ] = ""
    zones: Annotated[
        tuple[str, ...],
        _plan_option(
            "--zones",
            metavar="ZONE,...",
            help="Zones of new nodes. Default: those of existing nodes, or three with --spread.",
        ),
    ] = ()
    max_cost: Annotated[
        float | None,
        _plan_option(
            "--max-cost",
            metavar="USD",
            help="Most that the new nodes may cost in an hour; pods beyond that are left over.",
        ),
    ] = None
    max_nodes: Annotated[
        int | None,
        _plan_option(
            "--max-nodes",
            metavar="N",
            help="Most new nodes; pods that do not fit on them are left over.",
        ),
    ] = None
    catalogue_file: Annotated[
        tuple[str, ...],
        _plan_option(
            "--catalogue-file",
            metavar="FILE",
            help="File with your own instance types. Repeatable.",
        ),
    ] = ()
    output: Output = Format.TABLE
    release: Release = DEFAULT_RELEASE.value
    feature_gates: FeatureGates = ()
    scheduler_config: SchedulerConfig = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintOptions:
    """
    Find errors in manifests, with codes, lines, and fixes.

    Exit status 0: no error; warnings and infos are possible.
    Exit status 1: an error.
    Exit status 2: wrong usage.

    For custom kinds, only the claims of their pod templates are checked;
    the info DR007 names these kinds.
    """

    more: MoreFiles = ()
    files: Files = ()
    output: Annotated[
        LintFormat, option("-o", "--output", help="Output format; the last three are for CI.")
    ] = LintFormat.TABLE
    release: Release = DEFAULT_RELEASE.value


# The groups of the options of `convert` in the help.
_what_option = panel("What to convert")
_written_option = panel("Output")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertOptions:
    """
    Convert manifests to the current API versions, and to claims, native gangs, and other formats.

    Without options, objects of old versions of resource.k8s.io become v1, and nothing else changes.
    The text is edited in place: comments, order, and indentation stay. Messages on standard error
    name each line that the result does not preserve.

    Exit status 0: converted.
    Exit status 1: a document cannot be converted; nothing is written.
    Exit status 2: wrong usage.
    """

    more: MoreFiles = ()
    files: Files = ()
    to: Annotated[
        ApiTarget, _what_option("--to", help="Version of resource.k8s.io to convert to.")
    ] = ApiTarget.V1
    claims: Annotated[
        bool,
        _what_option(
            "--claims",
            help="Replace device plugin resources, such as nvidia.com/gpu, by claim templates, and"
            " GPU node labels by selectors.",
        ),
    ] = False
    extended_resources: Annotated[
        bool,
        _what_option(
            "--extended-resources",
            help="Keep device plugin resources; add a DeviceClass that provides each of them.",
        ),
    ] = False
    gangs: Annotated[
        GangFormat | None,
        _what_option("--gangs", help="Format of gangs to convert all gangs to."),
    ] = None
    publisher: Annotated[
        PublisherFormat | None,
        _what_option(
            "--publisher", help="Format of device configuration to convert all formats to."
        ),
    ] = None
    scheduler_name: Annotated[
        str,
        _what_option(metavar="NAME", help="Scheduler to set in all pods that name a scheduler."),
    ] = ""
    release: Annotated[
        str,
        _what_option(
            "--release",
            help="Kubernetes release of the cluster, for native gangs and DeviceTaintRules: "
            f"{RELEASES}.",
        ),
    ] = DEFAULT_RELEASE.value
    in_place: Annotated[
        bool, _written_option("-i", "--in-place", help="Change the files; change all or none.")
    ] = False
    diff: Annotated[
        bool, _written_option("--diff", help="Print a unified diff; change no file.")
    ] = False
    output: Annotated[DataFormat, _written_option("-o", "--output", help="Output format.")] = (
        DataFormat.YAML
    )


# The groups of the options of `up` in the help.
_devices_option = panel("Devices")
_nodes_option = panel("Nodes")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishOptions:
    """Publish ResourceSlices with simulated devices for the nodes of a cluster."""

    kubeconfig: ServedKubeconfig = ""
    context: ServedContext = ""
    namespace: Annotated[
        str, _devices_option("-n", "--namespace", help="Namespace of the ConfigMap.")
    ] = "karpenter"
    config_map: Annotated[str, _devices_option(help="ConfigMap with the device configuration.")] = (
        "dra-kwok-configmap"
    )
    key: Annotated[
        str,
        _devices_option(help="Key in the ConfigMap. If it is missing, the only other key is used."),
    ] = "config.yaml"
    driver: Annotated[
        str,
        _devices_option(
            help="Driver name for all devices. Default: from the device configuration."
        ),
    ] = ""
    catalogue: Annotated[
        bool,
        _devices_option(
            "--catalogue", help="Use the hardware catalog for nodes without a device configuration."
        ),
    ] = False
    catalogue_file: Annotated[
        tuple[str, ...],
        _devices_option(
            metavar="FILE", help="As --catalogue, with instance types from FILE. Repeatable."
        ),
    ] = ()
    node_selector: Annotated[
        str,
        _nodes_option(
            metavar="LABELS",
            help="Label selector of the nodes. Default: nodes with the annotation of KWOK.",
        ),
    ] = ""
    all_nodes: Annotated[bool, _nodes_option("--all-nodes", help="Publish for all nodes.")] = False
    real_nodes: Annotated[
        bool,
        _nodes_option(
            "--real-nodes", help="Also publish for nodes with a kubelet, which deletes the slices."
        ),
    ] = False
    resync: Annotated[
        str, run_option(metavar="DURATION", help="Interval between full comparisons.")
    ] = "30s"
    leader_elect: Annotated[
        bool, run_option("--leader-elect/--no-leader-elect", help="Use leader election.")
    ] = True
    lease_namespace: Annotated[
        str, run_option(help="Namespace of the lease. Default: that of the ConfigMap.")
    ] = ""
    lease_name: Annotated[str, run_option(help="Name of the lease.")] = "dryrack-publisher"
    shard: Annotated[
        str,
        run_option(
            metavar="INDEX/COUNT",
            help="Publish only for the nodes of one shard, such as 0/4. Its lease is NAME-INDEX.",
        ),
    ] = ""
    metrics_address: MetricsAddress = "127.0.0.1:8082"
    health_address: HealthAddress = "127.0.0.1:8083"
    log_format: LogFormat = "text"
    once: Annotated[
        bool,
        instead_option(
            "--once", help="Publish once and exit; status 0 if all slices are as configured."
        ),
    ] = False
    remove_slices: Annotated[
        bool,
        instead_option("--remove-slices", help="Delete the slices of the publisher and exit."),
    ] = False
    dry_run: Annotated[
        bool, instead_option("--dry-run", help="Print the slices and exit; write nothing.")
    ] = False
    files: Annotated[
        tuple[str, ...],
        instead_option(
            "-f",
            "--filename",
            metavar="FILE",
            help="With --dry-run: read FILE instead of a cluster.",
        ),
    ] = ()
    output: Annotated[
        Format, instead_option("-o", "--output", help="Output format of --dry-run.")
    ] = Format.YAML
    print_rbac: Annotated[
        bool, instead_option("--print-rbac", help="Print the RBAC manifest and exit.")
    ] = False
    print_crds: Annotated[
        bool, instead_option("--print-crds", help="Print the CustomResourceDefinitions and exit.")
    ] = False


_pods_option = panel("Pods and profiles")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionOptions:
    """Create nodes of KWOK for Pods that fit on no node, from NodePools."""

    kubeconfig: ServedKubeconfig = ""
    context: ServedContext = ""
    ignore_dra_requests: Annotated[
        bool,
        _nodes_option(
            "--ignore-dra-requests",
            help="Create no nodes for Pods with ResourceClaims.",
        ),
    ] = False
    karpenter: Annotated[
        bool,
        _nodes_option(
            "--karpenter",
            help="Create stand-in Pods, for which Karpenter creates the nodes.",
        ),
    ] = False
    instance_types: Annotated[
        str,
        _nodes_option(
            metavar="FILE",
            help="With --karpenter: the --instance-types-file-path of its KWOK provider. "
            "Default: the types of the provider.",
        ),
    ] = ""
    catalogue_file: Annotated[
        tuple[str, ...],
        _nodes_option(
            metavar="FILE", help="More instance types, in addition to the catalog. Repeatable."
        ),
    ] = ()
    namespace: Annotated[
        str, _devices_option("-n", "--namespace", help="Namespace of the publisher's ConfigMap.")
    ] = "karpenter"
    config_map: Annotated[str, _devices_option(help="ConfigMap with the device configuration.")] = (
        "dra-kwok-configmap"
    )
    key: Annotated[str, _devices_option(help="Key in the ConfigMap.")] = "config.yaml"
    driver: Annotated[
        str,
        _devices_option(
            help="Driver name for all devices. Default: from the device configuration."
        ),
    ] = ""
    release: Annotated[
        str, _devices_option(help=f"Kubernetes release whose allocator to use: {RELEASES}.")
    ] = DEFAULT_RELEASE.value
    leader_elect: Annotated[
        bool, run_option("--leader-elect/--no-leader-elect", help="Use leader election.")
    ] = True
    lease_namespace: Annotated[str, run_option(help="Namespace of the lease.")] = "kube-system"
    lease_name: Annotated[str, run_option(help="Name of the lease.")] = "dryrack-provisioner"
    metrics_address: MetricsAddress = "127.0.0.1:8084"
    health_address: HealthAddress = "127.0.0.1:8085"
    log_format: LogFormat = "text"
    print_rbac: Annotated[
        bool, instead_option("--print-rbac", help="Print the RBAC manifest and exit.")
    ] = False
    print_crds: Annotated[
        bool, instead_option("--print-crds", help="Print the CustomResourceDefinitions and exit.")
    ] = False
    print_instance_types: Annotated[
        bool,
        instead_option(
            "--print-instance-types",
            help="Print the instance types as a file for Karpenter's KWOK provider and exit.",
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions:
    """Schedule Pods, their devices and gangs as a second scheduler of a cluster."""

    kubeconfig: ServedKubeconfig = ""
    context: ServedContext = ""
    name: Annotated[
        tuple[str, ...],
        _pods_option(
            "--name",
            metavar="NAME",
            help="Schedule Pods with this schedulerName. Repeatable. Default: dryrack.",
        ),
    ] = ()
    config: Annotated[
        str,
        _pods_option(
            metavar="FILE", help="KubeSchedulerConfiguration with profiles, plugins and weights."
        ),
    ] = ""
    namespace: Annotated[
        str,
        run_option(
            "-n",
            "--namespace",
            help="Namespace of the lease and the ServiceAccount. Default: kube-system.",
        ),
    ] = ""
    leader_elect: Annotated[
        bool | None,
        run_option(
            "--leader-elect/--no-leader-elect",
            help="Use leader election. Default: true, unless the --config file disables it.",
        ),
    ] = None
    lease_name: Annotated[
        str, run_option(help="Name of the lease. Default: derived from the first --name.")
    ] = ""
    metrics_address: MetricsAddress = "127.0.0.1:10251"
    health_address: HealthAddress = "127.0.0.1:10251"
    log_format: LogFormat = "text"
    print_rbac: Annotated[
        bool, instead_option("--print-rbac", help="Print the RBAC manifest and exit.")
    ] = False
    print_crds: Annotated[
        bool,
        instead_option(
            "--print-crds", help="Print the CRD of scheduling.x-k8s.io PodGroup and exit."
        ),
    ] = False


_node_option = panel("Node and devices")


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginOptions:
    """Publish simulated devices for this node and prepare them for its Pods."""

    devices: Annotated[
        tuple[str, ...],
        _node_option(
            "--devices",
            metavar="KIND[:COUNT][,option=value...]",
            help="Devices of the node, for example fake:8, gpu:8 or file. Repeatable.",
        ),
    ] = ()
    config: Annotated[
        tuple[str, ...],
        _node_option(
            metavar="FILE",
            help="NodeDevices file with the devices. - is standard input. Repeatable.",
        ),
    ] = ()
    node: Annotated[
        str,
        _node_option(
            metavar="NAME", help="Name of the node. Default: $NODE_NAME, or the host name."
        ),
    ] = ""
    kubelet_dir: Annotated[
        str, _node_option("--kubelet-dir", help="Root directory of the kubelet (its --root-dir).")
    ] = "/var/lib/kubelet"
    cdi_dir: Annotated[
        str,
        _node_option("--cdi-dir", help="Directory where the container runtime reads CDI specs."),
    ] = "/var/run/cdi"
    kubeconfig: ServedKubeconfig = ""
    context: ServedContext = ""
    remove_slices: Annotated[
        bool,
        run_option("--remove-slices/--keep-slices", help="Delete the ResourceSlices on exit."),
    ] = False
    rolling_update_uid: Annotated[
        str,
        run_option(
            metavar="UID",
            envvar="ROLLING_UPDATE_UID",
            help="UID of this Pod. Lets two plugins run on the node during a rolling update.",
        ),
    ] = ""
    fault_file: Annotated[
        str,
        run_option(
            metavar="FILE",
            help="File with a line DEVICE FAULT for each fault, as in: dryrack fault device.",
        ),
    ] = ""
    nas: Annotated[
        bool, run_option("--nas/--no-nas", help="Write a NodeAllocationState for fake devices.")
    ] = True
    nas_namespace: Annotated[
        str,
        run_option("--nas-namespace", metavar="NAME", help="Namespace of NodeAllocationStates."),
    ] = "fake-system"
    device_metadata: Annotated[
        bool,
        run_option(
            "--device-metadata/--no-device-metadata",
            help="Mount a file that describes the devices into each container.",
        ),
    ] = False
    metrics_address: Annotated[
        str,
        run_option(metavar="HOST:PORT", help="Address of /metrics and /healthz. 0 disables them."),
    ] = "0"
    grpc_health_address: Annotated[
        str,
        run_option(
            "--grpc-health-address",
            metavar="HOST:PORT",
            help="Address of the gRPC health service. 0 disables it.",
        ),
    ] = "0"
    log_format: LogFormat = "text"
    print_rbac: Annotated[
        bool,
        instead_option("--print-rbac", help="Print the RBAC manifest for the devices and exit."),
    ] = False
    print_classes: Annotated[
        bool,
        instead_option("--print-classes", help="Print the DeviceClasses of the devices and exit."),
    ] = False
    print_crds: Annotated[
        bool, instead_option("--print-crds", help="Print the CRD of NodeAllocationState and exit.")
    ] = False


ViewedFiles = Annotated[
    tuple[str, ...],
    option(
        "-f", "--filename", metavar="FILE", help="Read the objects from files, not from a cluster."
    ),
]
ViewedNamespace = Annotated[
    str, option("-n", "--namespace", help="Namespace to show. Default: from the context.")
]
AllNamespaces = Annotated[bool, option("-A", "--all-namespaces", help="Show all namespaces.")]
WideOutput = Annotated[WideFormat, option("-o", "--output", help="Output format.")]
Watch = Annotated[bool, option("-w", "--watch", help="Watch for changes and print them.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesOptions:
    """Show all devices: node, model, state, holder, and free devices by model."""

    kubeconfig: Kubeconfig = ""
    context: Context = ""
    cluster: SelectedCluster = ""
    files: ViewedFiles = ()
    node: Annotated[str, option(help="Show only the devices of this node.")] = ""
    output: WideOutput = WideFormat.TABLE
    watch: Watch = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimsOptions:
    """Show claims: state, devices, node and Pods."""

    kubeconfig: Kubeconfig = ""
    context: Context = ""
    cluster: SelectedCluster = ""
    namespace: ViewedNamespace = ""
    all_namespaces: AllNamespaces = False
    files: ViewedFiles = ()
    output: WideOutput = WideFormat.TABLE
    watch: Watch = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GangsOptions(ClaimsOptions):
    """Show gangs: required, bound and pending Pods, and why they are pending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestsOptions:
    """
    Print the objects of the Helm chart, without Helm.

    They are the same as those of `helm template` with the same values. The command prints all
    parts or one part: crds, classes, publisher, scheduler, plugin or dashboard.
    """

    part: Annotated[str, argument(metavar="[PART]", help="Print only this part.")] = ""
    namespace: Annotated[str, option("-n", "--namespace", help="Namespace of the objects.")] = (
        "dryrack-system"
    )
    release: Annotated[str, option("--release", help="Name of the Helm release.")] = "dryrack"
    values: Annotated[
        tuple[str, ...],
        option("-f", "--values", metavar="FILE", help="YAML file with values. Repeatable."),
    ] = ()
    set: Annotated[
        tuple[str, ...],
        option("--set", metavar="KEY=VALUE", help="Set one value. Repeatable."),
    ] = ()
    output: Annotated[DataFormat, option("-o", "--output", help="Output format.")] = DataFormat.YAML


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """
    Record a cluster as a scenario.

    You can then run it with other classes, nodes or scheduler settings. The scenario contains only
    what the scheduler uses: no Secrets, environment variables, commands or annotations.

    Exit status 0: recorded.
    Exit status 1: dryrack cannot read the cluster, or it has nothing to record.
    Exit status 2: wrong usage.
    """

    files: Annotated[
        tuple[str, ...],
        option(
            "-f", "--file", metavar="FILE", help="Output of: kubectl get -A -o yaml. Repeatable."
        ),
    ] = ()
    output: Annotated[
        str, option("-o", "--output", metavar="FILE", help="Output file. - is standard output.")
    ] = "-"
    kubeconfig: Kubeconfig = ""
    context: Context = ""
    cluster: SelectedCluster = ""
    anonymize: Annotated[
        bool,
        option(
            "--anonymize", help="Replace the names of namespaces, nodes, Pods, claims and labels."
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorOptions:
    """
    Check this machine and a cluster for problems, and print how to fix them.

    The command stores nothing in the cluster. A check whose facts you may not read is unknown.

    Exit status 0: no check failed; warnings and unknown results are possible.
    Exit status 1: a check failed.
    Exit status 2: wrong usage.
    """

    kubeconfig: Kubeconfig = ""
    context: Context = ""
    cluster: SelectedCluster = ""
    for_: Annotated[
        tuple[str, ...],
        option(
            "--for",
            metavar="COMMAND",
            help="Command that must work: publish, schedule, plugin or dashboard. "
            "A missing permission is then a failure, not a warning. Repeatable.",
        ),
    ] = ()
    as_: Annotated[
        str,
        option(
            "--as",
            metavar="USER",
            help="Check the permissions of USER, such as system:serviceaccount:NAMESPACE:NAME. "
            "Default: the current user.",
        ),
    ] = ""
    namespace: Annotated[
        str,
        option(
            "-n",
            "--namespace",
            help="Namespace in which the commands of --for run. Default: as in their --print-rbac.",
        ),
    ] = ""
    driver: Annotated[
        str, option("--driver", help="Driver whose ResourceSlices admission policies must allow.")
    ] = "gpu.example.com"
    node: Annotated[
        str,
        option(metavar="NAME", help="Name of this node. Default: $NODE_NAME, or the host name."),
    ] = ""
    kubelet_dir: Annotated[
        str, option("--kubelet-dir", help="Root directory of the kubelet (its --root-dir).")
    ] = "/var/lib/kubelet"
    cdi_dir: Annotated[
        str, option("--cdi-dir", help="Directory where the container runtime reads CDI specs.")
    ] = "/var/run/cdi"
    output: Output = Format.TABLE
    print_rbac: Annotated[
        bool, option("--print-rbac", help="Print the RBAC manifest and exit.")
    ] = False

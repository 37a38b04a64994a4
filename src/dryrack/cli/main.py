"""
The command line, and the only place that turns an error into an exit status.

0: success. 1: something does not fit, or the content of a file is wrong. 2: wrong usage; nothing
was done. 130: interrupted. If the reader of a pipe stops reading, SIGPIPE ends the command, which
a shell shows as 141. A command imports the packages that it needs when it runs, so that
`dryrack --help` stays fast.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
import typer.main

from dryrack.base.errors import DryrackError
from dryrack.base.version import __version__
from dryrack.cli import dashboard, hardware, plugin, schedule
from dryrack.cli.cluster_options import (
    Context,
    HealthAddress,
    Kubeconfig,
    LogFormat,
    MetricsAddress,
    PrintRights,
    StrictCommand,
    instead_option,
    joined,
    panel,
    run_option,
)
from dryrack.cli.examples import commands as examples
from dryrack.cli.faults import commands as faults
from dryrack.cli.files import UsageError
from dryrack.cli.output import (
    Format,
    LintFormat,
    NamedFormat,
    print_data,
    print_line,
    say,
    shown,
)
from dryrack.cli.scenarios import commands as scenarios
from dryrack.cli.streams import ReaderGone, end_by_broken_pipe, only_own_styles, open_streams
from dryrack.cli.views import commands as views
from dryrack.cli.views.fleet_options import CatalogueFiles as OwnTypes
from dryrack.cli.views.fleet_options import FleetOptions
from dryrack.cli.views.fleet_options import InstanceType as TypeOfNodes
from dryrack.cli.views.fleet_options import Nodes as NumberOfNodes

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

_SETTINGS = {"help_option_names": ["-h", "--help"]}

# The groups of commands in the help.
_LEARN = "Learn"
_ON_FILES = "Answers from files"
_ON_A_PLANE = "Virtual clusters"
_ON_CLUSTERS = "Virtual and real clusters"
_MORE = "More"

app = typer.Typer(
    name="dryrack",
    help="Kubernetes Dynamic Resource Allocation without the hardware.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=_SETTINGS,
)

app.add_typer(examples.app, name="examples", rich_help_panel=_LEARN)
app.add_typer(hardware.app, name="hardware", rich_help_panel=_ON_FILES)
app.add_typer(scenarios.app, name="scenario", rich_help_panel=_ON_A_PLANE)
app.add_typer(faults.app, name="fault", rich_help_panel=_ON_CLUSTERS)


@app.callback(invoke_without_command=True)
def every(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
    ] = False,
) -> None:
    if version:
        print_line(f"dryrack {__version__}")
        raise typer.Exit


Files = Annotated[
    list[str] | None,
    typer.Option(
        "-f",
        "--filename",
        metavar="FILE",
        help="YAML or JSON file, or a directory of files; - is standard input. Repeatable.",
    ),
]
MoreFiles = Annotated[
    list[str] | None, typer.Argument(metavar="[FILE]...", help="More files, as with -f.")
]
Output = Annotated[Format, typer.Option("-o", "--output", help="Output format.")]
NamedOutput = Annotated[
    NamedFormat,
    typer.Option("-o", "--output", help="Output format; name prints what gets its devices."),
]
Release = Annotated[
    str, typer.Option("--release", help="Kubernetes release whose allocator to use: 1.36 or 1.37.")
]
SchedulerConfig = Annotated[
    str, typer.Option(metavar="FILE", help="Scheduler configuration whose profiles to use.")
]
Gates = Annotated[
    list[str] | None,
    typer.Option(
        "--feature-gates",
        metavar="GATE=true,...",
        help="Feature gates of Kubernetes. Default: as in the release.",
    ),
]


@app.command(rich_help_panel=_ON_FILES)
def allocate(
    more: MoreFiles = None,
    files: Files = None,
    node: Annotated[str | None, typer.Option("--node", help="Try only this node.")] = None,
    output: NamedOutput = NamedFormat.TABLE,
    release: Release = "1.36",
    feature_gates: Gates = None,
    scheduler_config: SchedulerConfig = "",
    instance_type: TypeOfNodes = "",
    nodes: NumberOfNodes = None,
    catalogue_file: OwnTypes = None,
) -> None:
    """
    Show which devices the claims in files would get.

    If the files contain no ResourceSlices, nodes with the label
    node.kubernetes.io/instance-type get the devices of the hardware catalog.

    Exit status 0: all claims get their devices.
    Exit status 1: a claim does not fit, or a file has an error.
    Exit status 2: wrong usage.
    """
    from dryrack.cli import allocate as command

    settings = command.Settings.of(
        release=release,
        feature_gates=joined(feature_gates),
        node=node,
        scheduler_config=scheduler_config,
        fleet=FleetOptions(instance_type, nodes, tuple(catalogue_file or ())),
    )
    fits = command.run([*(files or []), *(more or [])], settings, output)
    raise typer.Exit(0 if fits else EXIT_FAILED)


@app.command(rich_help_panel=_ON_FILES)
def explain(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="Kind of NAME: claim, pod, gang, or a workload. Also KIND/NAME."
        ),
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name, or NAMESPACE/NAME.")] = "",
    more: MoreFiles = None,
    files: Files = None,
    kubeconfig: views.Kubeconfig = "",
    context: views.Context = "",
    namespace: Annotated[
        str,
        typer.Option(
            "-n",
            "--namespace",
            help='Namespace of NAME. Default: from the context; with -f, "default".',
        ),
    ] = "",
    node: Annotated[str | None, typer.Option("--node", help="Try only this node.")] = None,
    verbose: Annotated[
        bool,
        typer.Option(
            "-v", "--verbose", help="Print the result of each scheduler plugin for each node."
        ),
    ] = False,
    output: NamedOutput = NamedFormat.TABLE,
    release: Release = "1.36",
    feature_gates: Gates = None,
    scheduler_config: SchedulerConfig = "",
    instance_type: TypeOfNodes = "",
    nodes: NumberOfNodes = None,
    catalogue_file: OwnTypes = None,
) -> None:
    """
    Explain why a claim, pod, gang, or workload gets no devices, and what would help.

    With -f, the object is in the files. Without it, the object is in a cluster.
    The command changes nothing.

    Exit status 0: the object gets its devices or, in a cluster, has them.
    Exit status 1: it does not, or a file has an error.
    Exit status 2: wrong usage.
    """
    from dryrack.cli import allocate as settings_of
    from dryrack.cli import explain as command
    from dryrack.cli.views.sources import Source

    fleet = FleetOptions(instance_type, nodes, tuple(catalogue_file or ()))
    settings = settings_of.Settings.of(
        release=release,
        feature_gates=joined(feature_gates),
        node=node,
        scheduler_config=scheduler_config,
        fleet=fleet,
    )
    kind, slash, after = kind.partition("/")
    if slash:
        # What comes next is a file.
        name, more = after, [*([name] if name else []), *(more or [])]
    names = (*(files or ()), *(more or ()))
    source = Source(kubeconfig=kubeconfig, context=context, files=names, all_namespaces=True)
    if names:
        subject = command.Subject.of(kind, name, namespace or "default")
        fits = command.run(names, subject, settings=settings, form=output, verbose=verbose)
    else:
        from dryrack.cli.views.explaining import run

        if fleet.is_given:
            option = "--instance-type" if instance_type else "--catalogue-file"
            raise UsageError(f"{option}: a cluster has nodes already; use the option with -f FILE")
        command.Subject.of(kind, name, namespace)
        subject = command.Subject.of(kind, name, namespace or source.connection().namespace)
        fits = run(source, subject, settings, output, verbose=verbose)
    raise typer.Exit(0 if fits else EXIT_FAILED)


@app.command(rich_help_panel=_ON_FILES)
def lint(
    more: MoreFiles = None,
    files: Files = None,
    output: Annotated[
        LintFormat,
        typer.Option("-o", "--output", help="Output format; the last three are for CI."),
    ] = LintFormat.TABLE,
) -> None:
    """
    Find errors in manifests, with codes, lines, and fixes.

    Exit status 0: no error; warnings and infos are possible.
    Exit status 1: an error.
    Exit status 2: wrong usage.

    For custom kinds, only the claims of their pod templates are checked;
    the info DR007 names these kinds.
    """
    from dryrack.cli import lint as command

    clean = command.run([*(files or []), *(more or [])], output)
    raise typer.Exit(0 if clean else EXIT_FAILED)


Name = Annotated[str, typer.Option("--name", help="Name of the cluster.")]

# The groups of the options of `up` in the help.
_inhabitants_option = panel("Nodes, devices, and objects")
_place_option = panel("Name, address, and files")
_behaviour_option = panel("Behavior")
ENGINES = (
    "kubelet, claims, garbage-collector, namespaces, serviceaccounts, nodes, taint-eviction, "
    "deployments, replicasets, daemonsets, statefulsets, jobs, cronjobs, quotas, budgets, volumes, "
    "slices, scheduler"
)


# The options of `up`, by group.
VirtualNodes = Annotated[int, _inhabitants_option(help="Number of virtual nodes.")]
InstanceType = Annotated[
    str,
    _inhabitants_option(
        metavar="TYPE",
        help="Instance type of these nodes, with its devices. List: dryrack hardware list.",
    ),
]
CatalogueOfPlane = Annotated[
    bool,
    _inhabitants_option(
        "--catalogue",
        help="Also give nodes that are added later the devices of their instance types.",
    ),
]
CatalogueFilesOfPlane = Annotated[
    list[str] | None,
    _inhabitants_option(
        metavar="FILE", help="As --catalogue, with instance types from FILE. Repeatable."
    ),
]
DevicesOfNodes = Annotated[
    list[str] | None,
    _inhabitants_option(
        metavar="KIND[:COUNT][,option=value...]",
        help="Devices of each virtual node, for example gpu:8, fake:8, file. Repeatable.",
    ),
]
InitialObjects = Annotated[
    list[str] | None,
    _inhabitants_option(
        metavar="FILE",
        help="Objects to create; NodeDevices replace --devices. Repeatable; - is standard input.",
    ),
]
ClusterName = Annotated[str, _place_option("--name", help="Name of the cluster.")]
Detach = Annotated[
    bool,
    _place_option("--detach", "-d", help="Run in the background. Stop it with: dryrack down"),
]
DataDirectory = Annotated[
    str | None, _place_option(metavar="DIR", help="Directory for the objects. Default: in memory.")
]
KubeconfigCopy = Annotated[
    str | None, _place_option(metavar="PATH", help="File for another copy of the kubeconfig.")
]
Merge = Annotated[
    bool,
    _place_option("--merge", help="Add the cluster to your kubeconfig, as the current context."),
]
Port = Annotated[int, _place_option(help="Port of the API server; 0 selects a free port.")]
Host = Annotated[str, _place_option(help="Address of the API server.")]
Expose = Annotated[
    bool, _place_option("--expose", help="Allow a --host that other computers can reach.")
]
NoDashboard = Annotated[bool, _place_option("--no-dashboard", help="Do not serve the dashboard.")]
ReleaseOfPlane = Annotated[
    str, _behaviour_option(help="Kubernetes release whose allocator to use: 1.36 or 1.37.")
]
GatesOfPlane = Annotated[
    list[str] | None,
    _behaviour_option(
        metavar="GATE=true,...",
        help="Feature gates of the allocator. Default: as in the release.",
    ),
]
RuntimeConfig = Annotated[
    list[str] | None,
    _behaviour_option(
        metavar="KEY=true,...",
        help="API versions to switch on or off, as for kube-apiserver: "
        "resource.k8s.io/v1beta2=true, api/all=true.",
    ),
]
Authorization = Annotated[
    str, _behaviour_option(metavar="MODE", help="Authorization mode: always-allow or rbac.")
]
SchedulerConfiguration = Annotated[
    str,
    _behaviour_option(
        metavar="FILE", help="KubeSchedulerConfiguration with profiles, plugins, and weights."
    ),
]
Without = Annotated[
    list[str] | None,
    _behaviour_option(
        metavar="ENGINE,...",
        help=f"Components not to run, so that you can run your own: {ENGINES}.",
    ),
]


@app.command(rich_help_panel=_ON_A_PLANE)
def up(
    nodes: VirtualNodes = 0,
    instance_type: InstanceType = "",
    catalogue: CatalogueOfPlane = False,
    catalogue_file: CatalogueFilesOfPlane = None,
    devices: DevicesOfNodes = None,
    config: InitialObjects = None,
    name: ClusterName = "default",
    detach: Detach = False,
    data_dir: DataDirectory = None,
    kubeconfig: KubeconfigCopy = None,
    merge: Merge = False,
    port: Port = 0,
    host: Host = "127.0.0.1",
    expose: Expose = False,
    no_dashboard: NoDashboard = False,
    release: ReleaseOfPlane = "1.36",
    feature_gates: GatesOfPlane = None,
    runtime_config: RuntimeConfig = None,
    authorization: Authorization = "always-allow",
    scheduler_config: SchedulerConfiguration = "",
    without: Without = None,
) -> None:
    """Start a virtual cluster: a Kubernetes control plane and virtual nodes."""
    from dryrack.cli import up as command

    command.run(
        command.Wish(
            name=name,
            nodes=nodes,
            config=tuple(config or ()),
            host=host,
            port=port,
            exposes=expose,
            data_directory=data_dir,
            detaches=detach,
            without=joined(without),
            instance_type=instance_type,
            catalogue=catalogue,
            catalogue_files=tuple(catalogue_file or ()),
            devices=tuple(devices or ()),
            release=release,
            feature_gates=joined(feature_gates),
            runtime_config=joined(runtime_config),
            authorization=authorization,
            scheduler_config=scheduler_config,
            kubeconfig=kubeconfig,
            merges=merge,
            shows_dashboard=not no_dashboard,
        )
    )


@app.command(rich_help_panel=_ON_A_PLANE)
def down(
    name: Name = "default",
    all_: Annotated[bool, typer.Option("--all", help="Stop all clusters.")] = False,
) -> None:
    """Stop a virtual cluster and delete its state, except the data directory."""
    from dryrack.cli import clusters as command

    if all_:
        command.down_all()
    else:
        command.down(name)


@app.command(rich_help_panel=_ON_A_PLANE)
def status(
    name: Annotated[
        str | None, typer.Option("--name", help="Name of a cluster. Default: all clusters.")
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Show the virtual clusters, their addresses, and failed components."""
    from dryrack.cli import clusters as command

    raise typer.Exit(0 if command.status(name, output) else EXIT_FAILED)


@app.command(rich_help_panel=_ON_A_PLANE)
def kubeconfig(
    name: Name = "default",
    path: Annotated[
        bool,
        typer.Option("--path", help="Print the path of the file, for the variable KUBECONFIG."),
    ] = False,
) -> None:
    """Print the kubeconfig of a virtual cluster."""
    from dryrack.cli import clusters as command

    text = command.kubeconfig_path(name) if path else command.kubeconfig(name)
    sys.stdout.write(text)


# The options of `publish`, by group.
_devices_option = panel("Devices")
_nodes_option = panel("Nodes")
ConfigNamespace = Annotated[
    str, _devices_option("-n", "--namespace", help="Namespace of the ConfigMap.")
]
ConfigMapName = Annotated[str, _devices_option(help="ConfigMap with the device configuration.")]
ConfigKey = Annotated[
    str,
    _devices_option(help="Key in the ConfigMap. If it is missing, the only other key is used."),
]
DriverName = Annotated[
    str,
    _devices_option(help="Driver name for all devices. Default: from the device configuration."),
]
WithCatalogue = Annotated[
    bool,
    _devices_option(
        "--catalogue", help="Use the hardware catalog for nodes without a device configuration."
    ),
]
CatalogueFiles = Annotated[
    list[str] | None,
    _devices_option(
        metavar="FILE", help="As --catalogue, with instance types from FILE. Repeatable."
    ),
]
NodeSelector = Annotated[
    str,
    _nodes_option(
        metavar="LABELS",
        help="Label selector of the nodes. Default: nodes with the annotation of KWOK.",
    ),
]
AllNodes = Annotated[bool, _nodes_option("--all-nodes", help="Publish for all nodes.")]
RealNodes = Annotated[
    bool,
    _nodes_option(
        "--real-nodes", help="Also publish for nodes with a kubelet, which deletes the slices."
    ),
]
Resync = Annotated[str, run_option(metavar="DURATION", help="Interval between full comparisons.")]
LeaderElect = Annotated[
    bool, run_option("--leader-elect/--no-leader-elect", help="Use leader election.")
]
LeaseNamespace = Annotated[
    str, run_option(help="Namespace of the lease. Default: that of the ConfigMap.")
]
LeaseName = Annotated[str, run_option(help="Name of the lease.")]
Once = Annotated[
    bool,
    instead_option(
        "--once", help="Publish once and exit; status 0 if all slices are as configured."
    ),
]
DryRun = Annotated[
    bool, instead_option("--dry-run", help="Print the slices and exit; write nothing.")
]
DryRunFiles = Annotated[
    list[str] | None,
    instead_option(
        "-f", "--filename", metavar="FILE", help="With --dry-run: read FILE instead of a cluster."
    ),
]
PrintDefinitions = Annotated[
    bool, instead_option("--print-crds", help="Print the CustomResourceDefinitions and exit.")
]


@app.command(rich_help_panel=_ON_CLUSTERS)
def publish(
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    namespace: ConfigNamespace = "karpenter",
    config_map: ConfigMapName = "dra-kwok-configmap",
    key: ConfigKey = "config.yaml",
    driver: DriverName = "",
    catalogue: WithCatalogue = False,
    catalogue_file: CatalogueFiles = None,
    node_selector: NodeSelector = "",
    all_nodes: AllNodes = False,
    real_nodes: RealNodes = False,
    resync: Resync = "30s",
    leader_elect: LeaderElect = True,
    lease_namespace: LeaseNamespace = "",
    lease_name: LeaseName = "dryrack-publisher",
    metrics_address: MetricsAddress = "127.0.0.1:8082",
    health_address: HealthAddress = "127.0.0.1:8083",
    log_format: LogFormat = "text",
    once: Once = False,
    dry_run: DryRun = False,
    files: DryRunFiles = None,
    output: Annotated[
        Format, instead_option("-o", "--output", help="Output format of --dry-run.")
    ] = Format.YAML,
    print_rbac: PrintRights = False,
    print_crds: PrintDefinitions = False,
) -> None:
    """Publish ResourceSlices with simulated devices for the nodes of a cluster."""
    from dryrack.cli import publish as command

    wish = command.Wish(
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
        config_map=config_map,
        key=key,
        driver=driver,
        catalogue=catalogue,
        catalogue_files=tuple(catalogue_file or ()),
        node_selector=node_selector,
        all_nodes=all_nodes,
        real_nodes=real_nodes,
        resync=resync,
        leader_elect=leader_elect,
        lease_namespace=lease_namespace,
        lease_name=lease_name,
        metrics_address=metrics_address,
        health_address=health_address,
        log_format=log_format,
        once=once,
        dry_run=dry_run,
        output=output,
        files=tuple(files or ()),
        prints_rights=print_rbac,
        prints_definitions=print_crds,
    )
    raise typer.Exit(0 if command.run(wish) else EXIT_FAILED)


app.command(rich_help_panel=_ON_CLUSTERS)(schedule.schedule)
app.command(rich_help_panel=_ON_CLUSTERS)(plugin.plugin)
for _view in (views.devices, views.claims, views.gangs, dashboard.dashboard):
    app.command(rich_help_panel=_ON_CLUSTERS)(_view)


app.command(rich_help_panel=_ON_CLUSTERS)(scenarios.record)
app.command(rich_help_panel=_LEARN)(scenarios.demo)


@app.command(rich_help_panel=_MORE)
def version(output: Output = Format.TABLE) -> None:
    """Print the version."""
    if output is Format.TABLE:
        sys.stdout.write(f"dryrack {__version__}\n")
    else:
        print_data({"version": __version__}, output)


for _app in (app, examples.app, hardware.app, scenarios.app, faults.app):
    for _command in _app.registered_commands:
        _command.cls = StrictCommand


def _call(words: list[str]) -> None:
    """
    Run the command line.

    typer reads the signatures of all commands before it calls one. If the first word is a command,
    typer gets only that command, which is faster. Help, completion, and errors need all commands.
    """
    if os.environ.get("NO_COLOR"):
        # typer would still print bold and dim text, which uses the same escapes as colors.
        os.environ["_TYPER_FORCE_DISABLE_TERMINAL"] = "1"
    called = [each for each in app.registered_commands if words and _name(each) == words[0]]
    if not called or "_DRYRACK_COMPLETE" in os.environ:
        _guard_styles(typer.main.get_command(app))(prog_name="dryrack")
        return
    alone = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
    alone.registered_commands = called
    command = _guard_styles(typer.main.get_command(alone))
    command(words[1:], prog_name=f"dryrack {words[0]}", **_SETTINGS)


def _guard_styles(command: Any) -> Any:
    """Return the command; while it or a subcommand runs, only dryrack itself prints styles."""
    for each in getattr(command, "commands", {}).values():
        _guard_styles(each)
    callback = command.callback
    if callback is not None:

        def run_guarded(*arguments: object, **options: object) -> object:
            with only_own_styles():
                return callback(*arguments, **options)

        command.callback = run_guarded
    return command


def _name(command: typer.models.CommandInfo) -> str:
    assert command.callback is not None, "every command does something"
    return command.name or command.callback.__name__.replace("_", "-")


def run() -> None:
    """Run the console script; an error becomes one line and an exit status."""
    open_streams()
    try:
        _call_and_complain(sys.argv[1:])
    except ReaderGone:
        end_by_broken_pipe()


def _call_and_complain(words: list[str]) -> None:
    try:
        _call_and_flush(words)
    except UsageError as error:
        _complain(str(error))
        sys.exit(EXIT_USAGE)
    except DryrackError as error:
        _complain(str(error))
        sys.exit(EXIT_FAILED)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except OSError as error:
        # The disk may be full. A normal exit would try to write the rest of the output again.
        _complain(f"{error.filename or 'output'}: {(error.strerror or str(error)).lower()}")
        os._exit(EXIT_FAILED)


def _call_and_flush(words: list[str]) -> None:
    """Run the command line and write its output, so that errors in writing occur here."""
    try:
        _call(words)
    finally:
        sys.stdout.flush()


def _complain(text: str) -> None:
    say("\n".join(shown(line) for line in f"dryrack: {text}".split("\n")))

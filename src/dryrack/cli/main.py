"""
The command line, and the only place that turns an error into an exit code.

0: done, and all is well. 1: done, and something does not fit or is wrong in the content.
2: called wrongly, nothing was done. 130: interrupted. Who reads its output through a pipe and
stops ends it by SIGPIPE, which a shell shows as 141. Whatever a room needs is imported inside
its command, so that `dryrack --help` stays quick.
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

# The groups in which the commands are shown.
_LEARN = "Learn"
_ON_FILES = "With files alone"
_ON_A_PLANE = "A control plane of your own"
_ON_CLUSTERS = "On any cluster"
_MORE = "More"

app = typer.Typer(
    name="dryrack",
    help="Kubernetes devices that do not exist: allocate, explain and lint DRA without hardware.",
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
        bool, typer.Option("--version", help="Print the version and end.", is_eager=True)
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
        help="Kubernetes YAML or JSON, or a directory of it; - is stdin.",
    ),
]
MoreFiles = Annotated[
    list[str] | None, typer.Argument(metavar="[FILE]...", help="More files, as after -f.")
]
Output = Annotated[Format, typer.Option("-o", "--output", help="How to print the answer.")]
NamedOutput = Annotated[
    NamedFormat,
    typer.Option("-o", "--output", help="How to print the answer; name is who gets devices."),
]
Release = Annotated[
    str, typer.Option("--release", help="Behave as this Kubernetes release: 1.36 or 1.37.")
]
SchedulerConfig = Annotated[
    str, typer.Option(metavar="FILE", help="Decide as the profiles of a scheduler's configuration.")
]
Gates = Annotated[
    list[str] | None,
    typer.Option(
        "--feature-gates",
        metavar="GATE=true,...",
        help="Feature gates by Kubernetes' names, where they differ from the release's defaults.",
    ),
]


@app.command(rich_help_panel=_ON_FILES)
def allocate(
    more: MoreFiles = None,
    files: Files = None,
    node: Annotated[str | None, typer.Option("--node", help="Try this node alone.")] = None,
    output: NamedOutput = NamedFormat.TABLE,
    release: Release = "1.36",
    feature_gates: Gates = None,
    scheduler_config: SchedulerConfig = "",
    instance_type: TypeOfNodes = "",
    nodes: NumberOfNodes = None,
    catalogue_file: OwnTypes = None,
) -> None:
    """
    What-if: which devices would the claims in FILES get, on which node, or why none.

    Nodes with the label node.kubernetes.io/instance-type get the devices of the catalogue
    if FILES have no ResourceSlices.

    Exit code 0: all claims get their devices.
    Exit code 1: one does not, or a file is wrong.
    Exit code 2: called wrongly.
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
            metavar="KIND", help="What NAME is: claim, pod, gang or a workload; KIND/NAME will do."
        ),
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name, or NAMESPACE/NAME.")] = "",
    more: MoreFiles = None,
    files: Files = None,
    kubeconfig: views.Kubeconfig = "",
    context: views.Context = "",
    namespace: Annotated[
        str,
        typer.Option("-n", "--namespace", help="Of NAME; else the context's, in files default."),
    ] = "",
    node: Annotated[str | None, typer.Option("--node", help="Try this node alone.")] = None,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="What every plugin says of every node.")
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
    Say why a claim, pod, gang or workload gets its devices or none, and which change would help.

    It is one of FILES or, without them, of a cluster as it is now.
    Nothing is written.

    Exit code 0: it gets its devices, or on a cluster has them.
    Exit code 1: it does not, or a file is wrong.
    Exit code 2: called wrongly.
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
            raise UsageError(f"{option}: a cluster has its own nodes; name files with -f FILE")
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
        typer.Option("-o", "--output", help="How to print the answer; the last three are for CI."),
    ] = LintFormat.TABLE,
) -> None:
    """
    Find what is wrong in FILES before a cluster does: codes, lines, fixes.

    Exit code 0: no error, though there may be warnings and infos.
    Exit code 1: an error.
    Exit code 2: called wrongly.

    Custom kinds are not checked, but for the claims of their pod templates;
    an info (DR007) names them.
    """
    from dryrack.cli import lint as command

    clean = command.run([*(files or []), *(more or [])], output)
    raise typer.Exit(0 if clean else EXIT_FAILED)


Name = Annotated[str, typer.Option("--name", help="Which cluster.")]

# The groups in which the options of `up` are shown.
_inhabitants_option = panel("Nodes, devices and objects to start with")
_place_option = panel("Name, address and files")
_behaviour_option = panel("What it behaves as")
ENGINES = (
    "kubelet, claims, garbage, namespaces, accounts, nodes, eviction, deployments, replicasets, "
    "daemonsets, statefulsets, jobs, cronjobs, quotas, budgets, volumes, slices, scheduler"
)


# What people decide about a plane, in the groups in which it is shown.
VirtualNodes = Annotated[int, _inhabitants_option(help="Virtual nodes.")]
InstanceType = Annotated[
    str,
    _inhabitants_option(
        metavar="TYPE",
        help="What those nodes are, and so their devices; see: dryrack hardware list.",
    ),
]
CatalogueOfPlane = Annotated[
    bool,
    _inhabitants_option(
        "--catalogue", help="Give nodes that come later the devices of their instance types, too."
    ),
]
CatalogueFilesOfPlane = Annotated[
    list[str] | None,
    _inhabitants_option(metavar="FILE", help="The same, with types of your own; repeatable."),
]
DevicesOfNodes = Annotated[
    list[str] | None,
    _inhabitants_option(
        metavar="KIND[:COUNT][,option=value...]",
        help="What every virtual node has: fake:8, gpu:8, file; repeatable.",
    ),
]
InitialObjects = Annotated[
    list[str] | None,
    _inhabitants_option(
        metavar="FILE",
        help="Kubernetes objects, and NodeDevices in place of --devices; repeatable, - is stdin.",
    ),
]
ClusterName = Annotated[str, _place_option("--name", help="Which cluster.")]
Detach = Annotated[
    bool,
    _place_option("--detach", "-d", help="Return when its nodes are Ready; see: dryrack down."),
]
DataDirectory = Annotated[
    str | None, _place_option(metavar="DIR", help="Keep everything there; else in memory.")
]
KubeconfigCopy = Annotated[
    str | None, _place_option(metavar="PATH", help="Write the kubeconfig there as well.")
]
Merge = Annotated[
    bool, _place_option("--merge", help="Add the cluster to your kubeconfig and switch to it.")
]
Port = Annotated[int, _place_option(help="The port to listen at; 0 is any that is free.")]
Host = Annotated[str, _place_option(help="The address to listen at.")]
Expose = Annotated[
    bool, _place_option("--expose", help="Allow a --host that other machines can reach.")
]
NoDashboard = Annotated[bool, _place_option("--no-dashboard", help="Serve no page.")]
ReleaseOfPlane = Annotated[
    str, _behaviour_option(help="Hand devices out as this Kubernetes release: 1.36 or 1.37.")
]
GatesOfPlane = Annotated[
    list[str] | None,
    _behaviour_option(
        metavar="GATE=true,...",
        help="Feature gates of the allocator, where they differ from the release's defaults.",
    ),
]
RuntimeConfig = Annotated[
    list[str] | None,
    _behaviour_option(
        metavar="KEY=true,...",
        help="API versions to serve or not, as for kube-apiserver: "
        "resource.k8s.io/v1beta2=true, api/all=true.",
    ),
]
Authorization = Annotated[
    str, _behaviour_option(metavar="MODE", help="Who may do what: always-allow or rbac.")
]
SchedulerConfiguration = Annotated[
    str,
    _behaviour_option(
        metavar="FILE", help="A KubeSchedulerConfiguration: plugins, weights, profiles by name."
    ),
]
Without = Annotated[
    list[str] | None,
    _behaviour_option(
        metavar="ENGINE,...", help=f"Leave engines out, to run your own. There are: {ENGINES}."
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
    """Start a Kubernetes control plane in one process, for kubectl and every client."""
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
    all_: Annotated[bool, typer.Option("--all", help="Every cluster that is there.")] = False,
) -> None:
    """End a cluster that `up --detach` left running."""
    from dryrack.cli import clusters as command

    if all_:
        command.down_all()
    else:
        command.down(name)


@app.command(rich_help_panel=_ON_A_PLANE)
def status(
    name: Annotated[str | None, typer.Option("--name", help="One cluster; else all.")] = None,
    output: Output = Format.TABLE,
) -> None:
    """Show which clusters are up, where, and which of their components have failed."""
    from dryrack.cli import clusters as command

    raise typer.Exit(0 if command.status(name, output) else EXIT_FAILED)


@app.command(rich_help_panel=_ON_A_PLANE)
def kubeconfig(
    name: Name = "default",
    path: Annotated[
        bool, typer.Option("--path", help="Print where it is, for the variable KUBECONFIG.")
    ] = False,
) -> None:
    """Print the kubeconfig of a cluster that is up."""
    from dryrack.cli import clusters as command

    text = command.kubeconfig_path(name) if path else command.kubeconfig(name)
    sys.stdout.write(text)


# What people decide about publishing, in the groups in which it is shown.
_devices_option = panel("Which devices")
_nodes_option = panel("For which nodes")
ConfigNamespace = Annotated[
    str, _devices_option("-n", "--namespace", help="The namespace of the ConfigMap.")
]
ConfigMapName = Annotated[
    str, _devices_option(help="The ConfigMap that says which nodes have which devices.")
]
ConfigKey = Annotated[
    str, _devices_option(help="Its key; if there is one other key alone, that one.")
]
DriverName = Annotated[str, _devices_option(help="Publish everything as this driver's.")]
WithCatalogue = Annotated[
    bool,
    _devices_option("--catalogue", help="Devices by instance type, where nothing else is said."),
]
CatalogueFiles = Annotated[
    list[str] | None,
    _devices_option(metavar="FILE", help="The same, with types of your own; repeatable."),
]
NodeSelector = Annotated[
    str, _nodes_option(metavar="LABELS", help="For these nodes; else those of KWOK, by annotation.")
]
AllNodes = Annotated[bool, _nodes_option("--all-nodes", help="For every node.")]
RealNodes = Annotated[
    bool, _nodes_option("--real-nodes", help="Also where a kubelet runs, which removes them.")
]
Resync = Annotated[
    str, run_option(metavar="DURATION", help="How often to look at everything again.")
]
LeaderElect = Annotated[
    bool, run_option("--leader-elect/--no-leader-elect", help="Work if no other does.")
]
LeaseNamespace = Annotated[str, run_option(help="Where the lease is; else with the ConfigMap.")]
LeaseName = Annotated[str, run_option(help="The lease's name.")]
Once = Annotated[
    bool, instead_option("--once", help="Publish, check, end; exit 0 if all is as desired.")
]
DryRun = Annotated[
    bool, instead_option("--dry-run", help="Print what would be published; write nothing.")
]
DryRunFiles = Annotated[
    list[str] | None,
    instead_option("-f", "--filename", metavar="FILE", help="With --dry-run: no cluster."),
]
PrintDefinitions = Annotated[
    bool, instead_option("--print-crds", help="Print NodeOverlay and DRAConfig; end.")
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
        Format, instead_option("-o", "--output", help="With --dry-run: how to print.")
    ] = Format.YAML,
    print_rbac: PrintRights = False,
    print_crds: PrintDefinitions = False,
) -> None:
    """Publish devices as ResourceSlices for nodes that do not have them, on a cluster."""
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
    Does what is asked for.

    typer reads the signatures of all commands to call one; so, where the first word is a command,
    it is given that one alone. Everything else (help, completion, mistakes) is for all of them.
    """
    if os.environ.get("NO_COLOR"):
        # typer would leave bold and dim letters, which come in the same escapes as colours.
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
    """Return the command with its subcommands; while one runs, it prints no styles but our own."""
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
    """The console script: every mistake becomes one line and an exit code."""
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
        # A full disk, most likely; what could not be written would be tried again at exit.
        _complain(f"{error.filename or 'output'}: {(error.strerror or str(error)).lower()}")
        os._exit(EXIT_FAILED)


def _call_and_flush(words: list[str]) -> None:
    """Does what is asked for; what cannot be written fails here, and not when Python ends."""
    try:
        _call(words)
    finally:
        sys.stdout.flush()


def _complain(text: str) -> None:
    say("\n".join(shown(line) for line in f"dryrack: {text}".split("\n")))

"""Start a virtual cluster (`dryrack up`), and print what to try next."""

from __future__ import annotations

import os
import shlex
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.apiserver import runtime_config
from dryrack.base.errors import ContentError, DryrackError
from dryrack.cli.command import join_lists
from dryrack.cli.files import UsageError, parse_release, read_sources
from dryrack.cli.output import say, show_progress
from dryrack.cli.service import listening_address
from dryrack.cli.views.fleet_options import NODES_MAX
from dryrack.cluster import (
    EngineOptions,
    UnknownEngineError,
    assemble_engines,
    ensure_own_directory,
    kubeconfig,
)
from dryrack.cluster.process import (
    AuthorizationMode,
    ClusterStateError,
    Launch,
    launching,
    state_of,
)
from dryrack.kinds.paths import get
from dryrack.kinds.registry import builtin_kinds
from dryrack.kinds.releases import (
    DEFAULT_RELEASE,
    FeatureSet,
    GateError,
    gates_with_needs,
    parse_gates,
    resolve_gates,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.cli.virtual.options import UpOptions
    from dryrack.cluster import MakeAllocator
    from dryrack.cluster.process.launching import Dashboard
    from dryrack.controllers.provisioning import ProvisionerSettings
    from dryrack.hardware.catalogue import Catalogue
    from dryrack.kinds.documents import Document
    from dryrack.kinds.releases import Release
    from dryrack.kubeletplugin import DeviceKind


def run(options: UpOptions) -> None:
    """Start a cluster; return when it stops, or exit when it runs in the background."""
    launch = _launch_of(options)
    launching.check(launch)
    began = time.monotonic()
    say(f"Starting cluster {launch.state.name} ...")

    def print_stage(stage: str) -> None:
        is_progress = stage.startswith(launching.PROGRESS)
        show_progress(f" {stage}" if is_progress else "")
        if is_progress:
            return
        if stage:
            say(f" {stage}" if stage.startswith(launching.WARNING) else f" ✓ {stage}")
        else:
            _print_next_steps(launch, time.monotonic() - began, detach=options.detach)

    if options.detach:
        launching.detach(launch, print_stage)
        print_stage("")
        sys.stdout.flush()
        sys.stderr.flush()
        # A normal exit would wait until Python has cleaned up.
        os._exit(0)
    launching.run(launch, print_stage)
    say(f"Stopped cluster {launch.state.name}.")


def _launch_of(options: UpOptions) -> Launch:
    """Return what to start; raise `UsageError` if an option is invalid."""
    if not 0 <= options.nodes <= NODES_MAX:
        raise UsageError(f"--nodes {options.nodes}: must be a number from 0 to {NODES_MAX}")
    if not 0 <= options.port <= 65535:
        raise UsageError(f"--port {options.port}: must be a number from 1 to 65535, or 0")
    names = (name.strip() for name in join_lists(options.without).split(","))
    without = tuple(name for name in names if name)
    try:
        state = state_of(options.name)
        if without:
            assemble_engines(EngineOptions(without=without))
    except (ClusterStateError, UnknownEngineError) as error:
        raise UsageError(str(error)) from None
    catalogue = _catalogue(options)
    objects, node_devices = _objects(options.config)
    address = listening_address(
        options.host,
        options.port,
        expose=options.expose,
        risk="anyone with a certificate or a token of this cluster can use it",
    )
    scheduling = None
    dashboard: Dashboard | None = None
    data_directory = data_directory_of(options.data_dir) if options.data_dir else None
    devices = _devices(options, node_devices)
    release = parse_release(options.release)
    gates = _gates(options, release)
    allocator = _allocator(release, gates)
    if options.scheduler_config:
        from dryrack.cli.scheduler_config import read_config, settings_of_plane

        configuration = read_config(options.scheduler_config)
        scheduling = settings_of_plane(configuration, release)
    try:
        versions = runtime_config.parse(join_lists(options.runtime_config), release)
    except runtime_config.RuntimeConfigError as error:
        message = str(error).removeprefix("runtime config: ")
        raise UsageError(f"--runtime-config: {message}") from None
    _warn_of_gates(versions, FeatureSet(release, gates))
    try:
        authorization = AuthorizationMode(options.authorization)
    except ValueError:
        modes = " or ".join(mode.value for mode in AuthorizationMode)
        raise UsageError(f'--authorization "{options.authorization}": must be {modes}') from None
    kubeconfig_path = _kubeconfig(options)
    if not options.no_dashboard:
        from dryrack.dashboard import serve_when_visited

        dashboard = serve_when_visited
    return Launch(
        state=state,
        address=address,
        nodes=options.nodes,
        node_name=node_pattern(options.node_name),
        objects=objects,
        data_directory=data_directory,
        without=without,
        catalogue=catalogue,
        catalogue_files=tuple(os.path.abspath(each) for each in options.catalogue_file),
        machine=catalogue.instance_types.get(options.instance_type) if catalogue else None,
        devices=devices,
        program=_program(options),
        kubelet_directory=_kubelet_directory(options),
        omits_device_classes=options.no_device_classes,
        release=release,
        feature_gates=gates,
        allocator=allocator,
        scheduling=scheduling,
        runtime_config=versions,
        authorization=authorization,
        kubeconfig=kubeconfig_path,
        merges=options.merge,
        dashboard=dashboard,
        provisioner=_provisioner(options, catalogue),
    )


def _kubelet_directory(options: UpOptions) -> Path | None:
    """Return the directory for driver programs; raise if it cannot be used."""
    if not options.kubelet_dir:
        return None
    from dryrack.cli.kubelets.places import kubelet_directory

    return kubelet_directory(options.kubelet_dir, options.node_name.replace("{}", "100"))


def _program(options: UpOptions) -> tuple[str, ...]:
    """Return the program that runs for each node, with its absolute path."""
    if not options.program:
        return ()
    if not options.kubelet_dir:
        raise UsageError("PROGRAM needs --kubelet-dir, for example: --kubelet-dir /tmp/kubelets")
    from dryrack.cli.kubelets.places import driver_program

    return driver_program(options.program)


def node_pattern(pattern: str) -> str:
    """Return the value of --node-name if it gives valid and different names."""
    from dryrack.kinds.validation.names import label_value, subdomain

    option = f"--node-name {pattern!r}"
    if pattern.count("{}") != 1:
        raise UsageError(f"{option}: must contain {{}} once, for the number, as in gpu-{{}}")
    longest = pattern.replace("{}", str(NODES_MAX))
    # The name is also the value of the label kubernetes.io/hostname.
    for problem in (*subdomain(longest), *label_value(longest)):
        raise UsageError(f"{option}: {longest!r} is not a name of a node: {problem}")
    return pattern


def data_directory_of(text: str) -> Path:
    """Return the directory, and create it if needed; refuse one that is not safe to use."""
    import tempfile

    directory = Path(text).absolute()
    try:
        ensure_own_directory(directory)
        with tempfile.TemporaryFile(dir=directory):
            return directory
    except DryrackError as error:
        raise UsageError(f"--data-dir {error}") from None
    except (FileExistsError, NotADirectoryError):
        why = "is not a directory"
    except OSError as error:
        why = (error.strerror or str(error)).lower()
    raise UsageError(f"--data-dir {text}: {why}; choose a directory that you can write to")


def _catalogue(options: UpOptions) -> Catalogue | None:
    """Return the hardware catalog if an option needs it."""
    wanted = options.catalogue or options.catalogue_file or options.instance_type
    if not (wanted or options.provisioner):
        return None
    from dryrack.cli.hardware import load, unknown_type

    catalogue = load(options.catalogue_file)
    if options.instance_type and options.instance_type not in catalogue.instance_types:
        option = f"--instance-type {options.instance_type}"
        raise UsageError(unknown_type(option, options.instance_type, catalogue))
    if options.instance_type and not options.nodes:
        raise UsageError("--instance-type needs --nodes, for example: --nodes 3")
    return catalogue


def _provisioner(options: UpOptions, catalogue: Catalogue | None) -> ProvisionerSettings | None:
    """Return the settings of the provisioner if an option asks for it."""
    if not options.provisioner:
        if options.ignore_dra_requests:
            raise UsageError("--ignore-dra-requests needs --provisioner")
        return None
    from dryrack.cli.allocate import Settings
    from dryrack.cluster import provisioner_settings

    assert catalogue is not None, "--provisioner implies --catalogue"
    allocator = Settings.of(options.release, join_lists(options.feature_gates))
    return provisioner_settings(
        catalogue,
        ignores_claims=options.ignore_dra_requests,
        release=allocator.release,
        features=allocator.features,
    )


def _devices(options: UpOptions, node_devices: Sequence[Document]) -> tuple[DeviceKind, ...]:
    if not options.devices and not node_devices:
        return ()
    from dryrack.cli.hardware import load
    from dryrack.kubeletplugin import DevicesError, read_devices

    try:
        kinds = read_devices(
            options.devices, catalogue=lambda: load(options.catalogue_file), documents=node_devices
        )
    except DevicesError as error:
        raise UsageError(str(error)) from None
    if options.instance_type:
        # A node cannot have a second pool of a driver.
        machine = load(options.catalogue_file).instance_types[options.instance_type]
        drivers = sorted({kind.driver for kind in kinds} & set(machine.drivers))
        if drivers:
            raise UsageError(
                f"--devices: nodes of the instance type {machine.name} already have devices of "
                f"{drivers[0]}; remove --instance-type or these devices"
            )
    return kinds


def _gates(options: UpOptions, release: Release) -> Mapping[str, bool]:
    """Return the feature gates of the options; refuse those that kube-apiserver refuses."""
    try:
        gates = parse_gates(join_lists(options.feature_gates))
        resolve_gates(gates, release)
    except GateError as error:
        raise UsageError(f"--feature-gates: {error}") from None
    return gates


def _warn_of_gates(versions: runtime_config.RuntimeConfig, features: FeatureSet) -> None:
    """Warn about versions that are switched on and whose kinds need a feature gate that is off."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for kind in builtin_kinds(features.release):
        named = (kind.api_version, f"{kind.api_version}/{kind.plural}")
        is_named = any(versions.switches.get(each) for each in named)
        if kind.gate and is_named and not features.is_on(kind.gate):
            kinds.setdefault((kind.api_version, kind.gate), []).append(kind.kind)
    for (version, gate), names in kinds.items():
        needed = gates_with_needs([gate], features.release)
        say(
            f"warning: --runtime-config: the API server does not serve {' and '.join(names)} of "
            f"{version}, because the feature gate {gate} is off; add "
            f"--feature-gates={','.join(f'{each}=true' for each in needed)}"
        )


def _allocator(release: Release, gates: Mapping[str, bool]) -> MakeAllocator | None:
    if release is DEFAULT_RELEASE and not gates:
        return None
    from dryrack.allocation import Features, LiveAllocator

    return partial(LiveAllocator, features=Features.from_gates(gates, release), release=release)


def _objects(config: Sequence[str]) -> tuple[Sequence[Document], Sequence[Document]]:
    """
    Return the objects of the files, and those that define the devices of nodes.

    The API server validates the objects.
    """
    if not config:
        return (), ()
    from dryrack.kinds.documents import read

    readings = [read(source.content, source.name) for source in read_sources(config)]
    problems = [str(problem) for reading in readings for problem in reading.problems]
    if problems:
        raise ContentError("\n".join(problems))
    documents = [each for reading in readings for each in reading.documents]
    node_devices = [each for each in documents if each.api_version.startswith("dryrack.dev/")]
    if node_devices:
        from dryrack.kubeletplugin import is_node_devices

        node_devices = [each for each in node_devices if is_node_devices(each)]
    return [each for each in documents if each not in node_devices], node_devices


def _kubeconfig(options: UpOptions) -> Path | None:
    """Return where to write the kubeconfig in addition; refuse a file that is not one."""
    if options.kubeconfig is None and not options.merge:
        return None
    if options.kubeconfig is not None:
        path = Path(options.kubeconfig).absolute()
    else:
        # kubectl writes to the first of these files.
        first = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
        path = Path(first) if first else Path.home() / ".kube" / "config"
    if options.merge:
        kubeconfig.read(path)
    elif path.exists():
        names = {each.get("name") for each in get(kubeconfig.read(path), "clusters", ())}
        if names - {kubeconfig.entry_name(options.name)}:
            raise UsageError(f"--kubeconfig {path}: has other clusters; add --merge to keep them")
    return path


def _print_next_steps(launch: Launch, seconds: float, *, detach: bool) -> None:
    """Print how to stop the cluster, and commands to try."""
    path = launch.kubeconfig or launch.state.kubeconfig
    stop = f"with: {launch.state.down_command}" if detach else "with Ctrl-C"
    kinds = "namespaces"
    if launch.provisioner is not None:
        kinds = "nodepools,nodeclaims,nodes"
    elif launch.machine or (launch.nodes and launch.devices):
        kinds = "nodes,resourceslices"
    elif launch.nodes or any(each.kind == "Node" for each in launch.objects):
        kinds = "nodes"
    lines = (
        f" ✓ ready after {seconds:.1f} s; stop it {stop}",
        "",
        "Try next:",
        *(() if launch.merges else (f"  export KUBECONFIG={shlex.quote(str(path))}",)),
        f"  kubectl get {kinds}",
        "  dryrack examples",
    )
    say("\n".join(lines))

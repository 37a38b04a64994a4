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
from dryrack.cli.command import joined
from dryrack.cli.files import UsageError, read_sources
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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.apiserver.runtime_config import RuntimeConfig
    from dryrack.cli.options import UpOptions
    from dryrack.cluster import MakeAllocator
    from dryrack.cluster.process.launching import Dashboard
    from dryrack.hardware.catalogue import Catalogue
    from dryrack.kinds.documents import Document
    from dryrack.kubeletplugin import DeviceKind
    from dryrack.scheduler import SchedulerSettings

# The default of --release.
REFERENCE = "1.36"


def run(options: UpOptions) -> None:
    launch = _launch(options)
    launching.check(launch)
    began = time.monotonic()
    say(f"Starting cluster {launch.state.name} ...")

    def tell(stage: str) -> None:
        is_progress = stage.startswith(launching.PROGRESS)
        show_progress(f" {stage}" if is_progress else "")
        if is_progress:
            return
        if stage:
            say(f" {stage}" if stage.startswith(launching.WARNING) else f" ✓ {stage}")
        else:
            say(_next(launch, time.monotonic() - began, stays=options.detach))

    if options.detach:
        launching.detach(launch, tell)
        tell("")
        _go()
    else:
        launching.run(launch, tell)
        say(f"Stopped cluster {launch.state.name}.")


def _go() -> None:
    """Exit with status 0, without the time that Python takes to clean up."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _launch(options: UpOptions) -> Launch:
    if not 0 <= options.nodes <= NODES_MAX:
        raise UsageError(f"--nodes {options.nodes}: must be a number from 0 to {NODES_MAX}")
    if not 0 <= options.port <= 65535:
        raise UsageError(f"--port {options.port}: must be a number from 1 to 65535, or 0")
    try:
        state = state_of(options.name)
        without = _names(joined(options.without))
        if without:
            assemble_engines(EngineOptions(without=without))
    except (ClusterStateError, UnknownEngineError) as error:
        raise UsageError(str(error)) from None
    catalogue = _catalogue(options)
    objects, described = _objects(options.config)
    return Launch(
        state=state,
        address=listening_address(
            options.host,
            options.port,
            expose=options.expose,
            risk="anyone with a certificate or a token of this cluster can use it",
        ),
        nodes=options.nodes,
        objects=objects,
        data_directory=data_directory_of(options.data_dir) if options.data_dir else None,
        without=without,
        catalogue=catalogue,
        machine=catalogue.instance_types.get(options.instance_type) if catalogue else None,
        devices=_devices(options, described),
        allocator=_allocator(options),
        scheduling=_scheduling(options.scheduler_config),
        runtime_config=_runtime_config(joined(options.runtime_config)),
        authorization=_authorization(options.authorization),
        kubeconfig=_kubeconfig(options),
        merges=options.merge,
        dashboard=None if options.no_dashboard else _dashboard(),
    )


def _dashboard() -> Dashboard:
    from dryrack.dashboard import opened_when_visited

    return opened_when_visited


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
    if not (options.catalogue or options.catalogue_file or options.instance_type):
        return None
    from dryrack.cli.hardware import load, unknown_type

    found = load(options.catalogue_file)
    if options.instance_type and options.instance_type not in found.instance_types:
        said = f"--instance-type {options.instance_type}"
        raise UsageError(unknown_type(said, options.instance_type, found))
    if options.instance_type and not options.nodes:
        raise UsageError("--instance-type needs --nodes, for example: --nodes 3")
    return found


def _devices(options: UpOptions, described: Sequence[Document]) -> tuple[DeviceKind, ...]:
    if not options.devices and not described:
        return ()
    from dryrack.cli.hardware import load
    from dryrack.kubeletplugin import DevicesError, read_devices

    try:
        kinds = read_devices(
            options.devices, catalogue=lambda: load(options.catalogue_file), documents=described
        )
    except DevicesError as error:
        raise UsageError(str(error)) from None
    if options.instance_type:
        _check_once(options.instance_type, kinds, load(options.catalogue_file))
    return kinds


def _check_once(name: str, kinds: Sequence[DeviceKind], catalogue: Catalogue) -> None:
    """Refuse a second pool of a driver on a node: the instance type has one already."""
    both = sorted({kind.driver for kind in kinds} & set(catalogue.instance_types[name].drivers))
    if both:
        raise UsageError(
            f"--devices: nodes of the instance type {name} already have devices of {both[0]}; "
            "remove --instance-type or these devices"
        )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _allocator(options: UpOptions) -> MakeAllocator | None:
    if options.release == REFERENCE and not options.feature_gates:
        return None
    from dryrack.allocation import LiveAllocator
    from dryrack.cli.allocate import Settings

    settings = Settings.of(options.release, joined(options.feature_gates))
    return partial(LiveAllocator, features=settings.features, release=settings.release)


def _scheduling(file: str) -> SchedulerSettings | None:
    if not file:
        return None
    from dryrack.cli.scheduler_config import read_config, settings_of_plane

    return settings_of_plane(read_config(file))


def _runtime_config(text: str) -> RuntimeConfig:
    try:
        return runtime_config.parse(text)
    except runtime_config.RuntimeConfigError as error:
        raise UsageError(
            f"--runtime-config: {str(error).removeprefix('runtime config: ')}"
        ) from None


def _authorization(text: str) -> AuthorizationMode:
    try:
        return AuthorizationMode(text)
    except ValueError:
        known = " or ".join(mode.value for mode in AuthorizationMode)
        raise UsageError(f'--authorization "{text}": must be {known}') from None


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
    described = [each for each in documents if each.api_version.startswith("dryrack.dev/")]
    if described:
        from dryrack.kubeletplugin import is_node_devices

        described = [each for each in described if is_node_devices(each)]
    return [each for each in documents if each not in described], described


def _kubeconfig(options: UpOptions) -> Path | None:
    """Return where to write the kubeconfig in addition; refuse a file that is not one."""
    if options.kubeconfig is None and not options.merge:
        return None
    path = _own_kubeconfig() if options.kubeconfig is None else Path(options.kubeconfig).absolute()
    if options.merge:
        kubeconfig.read(path)
    elif path.exists():
        names = {each.get("name") for each in get(kubeconfig.read(path), "clusters", ())}
        if names - {kubeconfig.entry_name(options.name)}:
            raise UsageError(f"--kubeconfig {path}: has other clusters; add --merge to keep them")
    return path


def _own_kubeconfig() -> Path:
    """Return the file that kubectl writes to."""
    given = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    return Path(given) if given else Path.home() / ".kube" / "config"


def _next(launch: Launch, seconds: float, *, stays: bool) -> str:
    path = launch.kubeconfig or launch.state.kubeconfig
    end = f"with: {launch.state.down_command}" if stays else "with Ctrl-C"
    lines = (
        f" ✓ ready after {seconds:.1f} s; stop it {end}",
        "",
        "Try next:",
        *(() if launch.merges else (f"  export KUBECONFIG={shlex.quote(str(path))}",)),
        f"  kubectl get {_worth_a_look(launch)}",
        "  dryrack examples",
    )
    return "\n".join(lines)


def _worth_a_look(launch: Launch) -> str:
    if launch.machine or (launch.nodes and launch.devices):
        return "nodes,resourceslices"
    has_nodes = launch.nodes or any(each.kind == "Node" for each in launch.objects)
    return "nodes" if has_nodes else "namespaces"

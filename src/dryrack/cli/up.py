"""Start a virtual cluster (`dryrack up`), and print what to try next."""

from __future__ import annotations

import os
import shlex
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.apiserver import runtime_config
from dryrack.base.errors import ContentError, DryrackError
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
    from dryrack.cluster import MakeAllocator
    from dryrack.cluster.process.launching import Dashboard
    from dryrack.hardware.catalogue import Catalogue
    from dryrack.kinds.documents import Document
    from dryrack.kubeletplugin import DeviceKind
    from dryrack.scheduler import SchedulerSettings

# The default of --release.
REFERENCE = "1.36"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The options of the command line."""

    name: str
    nodes: int
    config: tuple[str, ...]
    host: str
    port: int
    exposes: bool
    data_directory: str | None
    detaches: bool
    without: str
    instance_type: str
    catalogue: bool
    catalogue_files: tuple[str, ...]
    devices: tuple[str, ...]
    release: str
    feature_gates: str
    runtime_config: str
    authorization: str
    scheduler_config: str
    kubeconfig: str | None
    merges: bool
    shows_dashboard: bool


def run(wish: Wish) -> None:
    launch = _launch(wish)
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
            say(_next(launch, time.monotonic() - began, stays=wish.detaches))

    if wish.detaches:
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


def _launch(wish: Wish) -> Launch:
    if not 0 <= wish.nodes <= NODES_MAX:
        raise UsageError(f"--nodes {wish.nodes}: must be a number from 0 to {NODES_MAX}")
    if not 0 <= wish.port <= 65535:
        raise UsageError(f"--port {wish.port}: must be a number from 1 to 65535, or 0")
    try:
        state = state_of(wish.name)
        without = _names(wish.without)
        if without:
            assemble_engines(EngineOptions(without=without))
    except (ClusterStateError, UnknownEngineError) as error:
        raise UsageError(str(error)) from None
    catalogue = _catalogue(wish)
    objects, described = _objects(wish.config)
    return Launch(
        state=state,
        address=listening_address(
            wish.host,
            wish.port,
            exposes=wish.exposes,
            risk="anyone with a certificate or a token of this cluster can use it",
        ),
        nodes=wish.nodes,
        objects=objects,
        data_directory=data_directory_of(wish.data_directory) if wish.data_directory else None,
        without=without,
        catalogue=catalogue,
        machine=catalogue.instance_types.get(wish.instance_type) if catalogue else None,
        devices=_devices(wish, described),
        allocator=_allocator(wish),
        scheduling=_scheduling(wish.scheduler_config),
        runtime_config=_runtime_config(wish.runtime_config),
        authorization=_authorization(wish.authorization),
        kubeconfig=_kubeconfig(wish),
        merges=wish.merges,
        dashboard=_dashboard() if wish.shows_dashboard else None,
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


def _catalogue(wish: Wish) -> Catalogue | None:
    """Return the hardware catalog if an option needs it."""
    if not (wish.catalogue or wish.catalogue_files or wish.instance_type):
        return None
    from dryrack.cli.hardware import load, unknown_type

    found = load(wish.catalogue_files)
    if wish.instance_type and wish.instance_type not in found.instance_types:
        said = f"--instance-type {wish.instance_type}"
        raise UsageError(unknown_type(said, wish.instance_type, found))
    if wish.instance_type and not wish.nodes:
        raise UsageError("--instance-type needs --nodes, for example: --nodes 3")
    return found


def _devices(wish: Wish, described: Sequence[Document]) -> tuple[DeviceKind, ...]:
    if not wish.devices and not described:
        return ()
    from dryrack.cli.hardware import load
    from dryrack.kubeletplugin import DevicesError, read_devices

    try:
        kinds = read_devices(
            wish.devices, catalogue=lambda: load(wish.catalogue_files), documents=described
        )
    except DevicesError as error:
        raise UsageError(str(error)) from None
    if wish.instance_type:
        _check_once(wish.instance_type, kinds, load(wish.catalogue_files))
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


def _allocator(wish: Wish) -> MakeAllocator | None:
    if wish.release == REFERENCE and not wish.feature_gates:
        return None
    from dryrack.allocation import LiveAllocator
    from dryrack.cli.allocate import Settings

    asked = Settings.of(release=wish.release, feature_gates=wish.feature_gates, node=None)
    return partial(LiveAllocator, features=asked.features, release=asked.release)


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


def _kubeconfig(wish: Wish) -> Path | None:
    """Return where to write the kubeconfig in addition; refuse a file that is not one."""
    if wish.kubeconfig is None and not wish.merges:
        return None
    path = _own_kubeconfig() if wish.kubeconfig is None else Path(wish.kubeconfig).absolute()
    if wish.merges:
        kubeconfig.read(path)
    elif path.exists():
        names = {each.get("name") for each in get(kubeconfig.read(path), "clusters", ())}
        if names - {kubeconfig.entry_name(wish.name)}:
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

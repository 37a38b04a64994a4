"""Read this machine for the checks: packages, ports, directories, sockets, and containerd."""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.cluster.doctor.machine_checks import PORTS
from dryrack.cluster.doctor.model import CdiSpec, MachineFacts, PluginSocket, Unknown
from dryrack.cluster.process.state import home
from dryrack.kinds.paths import get
from dryrack.kubeletplugin import claim_uid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from dryrack.kinds.raw import Raw

    _Fact = TypeVar("_Fact")

CONTAINERD_CONFIG = Path("/etc/containerd/config.toml")
# The module to import, by distribution.
_MODULES = {
    "aiohttp": "aiohttp",
    "cryptography": "cryptography.hazmat.bindings._rust",
    "google-re2": "re2",
    "grpcio": "grpc",
    "httptools": "httptools",
    "msgspec": "msgspec",
    "protobuf": "google.protobuf",
    "PyYAML": "yaml",
    "uvloop": "uvloop",
}
_PROGRAM_SECONDS_MAX = 10.0
_CONNECT_SECONDS_MAX = 1.0
_SOCKET_SUFFIX = "-reg.sock"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineQuestion:
    """The directories of the kubelet and of CDI on this machine."""

    kubelet: Path
    cdi: Path
    containerd_config: Path = CONTAINERD_CONFIG


def observe_machine(question: MachineQuestion) -> MachineFacts:
    """Return the facts about this machine; write nothing."""
    drivers = _read(lambda: _drivers(question.kubelet))
    found = () if isinstance(drivers, Unknown) else drivers
    state_directory = home()
    config, version = _containerd(question.containerd_config)
    return MachineFacts(
        python=sys.version_info[:3],
        import_errors=dict(_import_errors()),
        used_ports=frozenset(port for port in PORTS if _is_used(port)),
        state_directory=str(state_directory),
        state_problem=_write_problem(state_directory),
        open_files_max=_open_files_max(),
        kubectl=_kubectl(),
        kubelet_roots=tuple(sorted(_kubelet_roots())),
        kubelet_directory=question.kubelet,
        directory_problems=dict(_directory_problems(question.kubelet)),
        containerd=config,
        containerd_version=version,
        cdi_directory=question.cdi,
        sockets=_read(lambda: tuple(_sockets(question.kubelet / "plugins_registry"))),
        drivers=drivers,
        specs=_read(lambda: tuple(_specs(question.cdi, found))),
        prepared={each: _read_prepared(question.kubelet, each) for each in found},
    )


def _read(read: Callable[[], _Fact]) -> _Fact | Unknown:
    try:
        return read()
    except OSError as error:
        return Unknown(f"{error.filename}: {(error.strerror or str(error)).lower()}", "run as root")


def _import_errors() -> Iterator[tuple[str, str]]:
    for distribution, module in _MODULES.items():
        try:
            import_module(module)
        except ImportError as error:
            yield distribution, str(error)


def _is_used(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def _write_problem(directory: Path) -> str:
    """Return why files cannot be created below a directory; "" if they can."""
    place = next((each for each in (directory, *directory.parents) if each.exists()), Path("/"))
    if not place.is_dir():
        return f"{place} is not a directory"
    return "" if os.access(place, os.W_OK | os.X_OK) else f"you may not write to {place}"


def _open_files_max() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def _run(*command: str) -> str | Unknown:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PROGRAM_SECONDS_MAX, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Unknown(f"{' '.join(command)}: {error}")
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return Unknown(f"{' '.join(command)}: {lines[0]}")
    return done.stdout


def _kubectl() -> str | Unknown | None:
    program = shutil.which("kubectl")
    if program is None:
        return None
    text = _run(program, "version", "--client", "--output=json")
    if isinstance(text, Unknown):
        return text
    try:
        return str(json.loads(text)["clientVersion"]["gitVersion"])
    except (ValueError, KeyError, TypeError):
        return Unknown("kubectl version prints no version")


def _kubelet_roots() -> Iterator[str]:
    """Yield the root directories of the kubelets that run here."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if Path(words[0]).name != "kubelet":
            continue
        root = "/var/lib/kubelet"
        for word, following in zip(words, [*words[1:], ""], strict=True):
            name, _, value = word.lstrip("-").partition("=")
            if name == "root-dir":
                root = value or following
        yield str(Path(root))


def _directory_problems(kubelet: Path) -> Iterator[tuple[str, str]]:
    for path in (kubelet / "plugins", kubelet / "plugins_registry"):
        if not path.is_dir():
            yield str(path), "missing"
        elif not os.access(path, os.W_OK | os.X_OK):
            yield str(path), "you may not write to it"


def _containerd(config: Path) -> tuple[Raw | Unknown | None, str]:
    """Return the configuration of containerd, and its version."""
    program = shutil.which("containerd")
    if program is None and not config.exists():
        return None, ""
    version = ""
    if program is not None:
        text = _run(program, "--version")
        words = [] if isinstance(text, Unknown) else [each.lstrip("v") for each in text.split()]
        version = next((each for each in words if each[:1].isdigit()), "")
        dump = _run(program, "--config", str(config), "config", "dump")
        if not isinstance(dump, Unknown):
            return _parse(dump, "containerd config dump"), version
    text = _read(lambda: config.read_text() if config.exists() else "")
    return (text if isinstance(text, Unknown) else _parse(text, str(config))), version


def _parse(text: str, where: str) -> Raw | Unknown:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return Unknown(f"{where}: {error}")


def _sockets(registry: Path) -> Iterator[PluginSocket]:
    for path in sorted(registry.iterdir()) if registry.is_dir() else ():
        if path.is_socket():
            yield PluginSocket(str(path), _is_listening(path))


def _is_listening(path: Path) -> bool | Unknown:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_CONNECT_SECONDS_MAX)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return False
        except OSError as error:
            return Unknown(f"{path}: {(error.strerror or str(error)).lower()}", "run as root")
    return True


def _drivers(kubelet: Path) -> tuple[str, ...]:
    """Return the drivers of dryrack plugin: their directories have checkpoints."""
    plugins = kubelet / "plugins"
    if not plugins.is_dir():
        return ()
    return tuple(sorted(each.name for each in plugins.iterdir() if (each / "checkpoints").is_dir()))


def _read_prepared(kubelet: Path, driver: str) -> frozenset[str] | Unknown:
    directory = kubelet / "plugins" / driver / "checkpoints"
    return _read(
        lambda: frozenset(path.stem for path in directory.iterdir() if path.suffix == ".json")
    )


def _specs(directory: Path, drivers: tuple[str, ...]) -> Iterator[CdiSpec]:
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        for driver in drivers:
            uid = claim_uid(driver, path.name)
            if uid is None:
                continue
            try:
                version = get(json.loads(path.read_bytes()), "cdiVersion", "")
            except (OSError, ValueError) as error:
                yield CdiSpec(str(path), driver, uid, "", str(error))
            else:
                yield CdiSpec(str(path), driver, uid, version)

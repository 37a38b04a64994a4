"""Checks of this machine, and of the kubelet and the container runtime on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.client.endpoints import SLICES
from dryrack.cluster.doctor.model import (
    Unknown,
    UnknownFactError,
    fail,
    ok,
    require,
    several,
    skip,
    warn,
)
from dryrack.cluster.doctor.object_checks import RUNTIMES_MIN
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.cluster.doctor.model import ClusterFacts, MachineFacts, Subject, Verdict
    from dryrack.kinds.raw import Raw

PYTHON_MIN = (3, 11)
OPEN_FILES_MIN = 1024
# The ports that commands use by default.
PORTS = {8082: "publish", 8083: "publish", 10251: "schedule"}
# What needs a distribution, if not all commands need it.
OPTIONAL_DISTRIBUTIONS = {
    "cryptography": "dryrack up",
    "httptools": "dryrack up",
    "grpcio": "dryrack plugin",
    "protobuf": "dryrack plugin",
}
# The versions of CDI in which dryrack plugin writes.
CDI_VERSIONS = ("0.3.0", "0.5.0")
# The plugin of containerd that creates Pods, by the version of the configuration.
_CRI = {2: "io.containerd.grpc.v1.cri", 3: "io.containerd.cri.v1.runtime"}
_CDI_DIRECTORIES = ("/etc/cdi", "/var/run/cdi")


def check_python(machine: MachineFacts, _: Subject) -> Verdict:
    text = ".".join(map(str, machine.python))
    if machine.python < PYTHON_MIN:
        return fail(f"Python {text} is too old", "install Python 3.11 or newer")
    return ok(f"Python {text}")


def check_packages(machine: MachineFacts, _: Subject) -> Verdict:
    errors = machine.import_errors
    broken = [f"{name}: {error}" for name, error in sorted(errors.items())]
    if not broken:
        return ok("all packages that dryrack needs can be imported")
    optional = [
        f"{OPTIONAL_DISTRIBUTIONS[name]} does not work without {name}"
        for name in sorted(errors)
        if name in OPTIONAL_DISTRIBUTIONS
    ]
    fix = f"pip install --force-reinstall {' '.join(sorted(errors))}"
    if len(optional) == len(broken):
        return warn(several(optional), fix)
    return fail(f"cannot be imported: {several(broken)}", fix)


def check_ports(machine: MachineFacts, subject: Subject) -> Verdict:
    used = [
        f"port {port} of dryrack {command}"
        for port, command in PORTS.items()
        if port in machine.used_ports and (not subject.engines or command in subject.engines)
    ]
    if used:
        return warn(
            f"in use: {several(used)}",
            "stop the other program, or pass --metrics-address and --health-address",
        )
    return ok("the default ports of dryrack publish and dryrack schedule are free")


def check_state_directory(machine: MachineFacts, _: Subject) -> Verdict:
    if machine.state_problem:
        return fail(
            f"{machine.state_directory}: {machine.state_problem}",
            "set DRYRACK_HOME to a directory that you can write to",
        )
    return ok(f"{machine.state_directory} can be written to")


def check_open_files(machine: MachineFacts, _: Subject) -> Verdict:
    if machine.open_files_max < OPEN_FILES_MIN:
        return warn(
            f"a process may open {machine.open_files_max} files; many watches need more",
            f"ulimit -n {OPEN_FILES_MIN}",
        )
    return ok(f"a process may open {machine.open_files_max} files")


def _is_node(machine: MachineFacts) -> bool:
    return bool(machine.kubelet_roots) or "missing" not in machine.directory_problems.values()


def _no_node(machine: MachineFacts) -> Verdict:
    return skip(f"no kubelet runs here, and {machine.kubelet_directory} does not exist")


def check_kubelet_directories(machine: MachineFacts, subject: Subject) -> Verdict:
    directory = str(machine.kubelet_directory)
    if machine.kubelet_roots and directory not in machine.kubelet_roots:
        return fail(
            f"no kubelet uses {directory}; the kubelet here uses {machine.kubelet_roots[0]}",
            f"--kubelet-dir {machine.kubelet_roots[0]}",
        )
    if not _is_node(machine):
        return _no_node(machine)
    problems = [f"{path}: {problem}" for path, problem in machine.directory_problems.items()]
    if problems:
        return fail(several(problems), "start the kubelet, and run dryrack plugin as root")
    return ok(f"the directories below {directory} can be written to")


def check_sockets(machine: MachineFacts, _: Subject) -> Verdict:
    if not _is_node(machine):
        return _no_node(machine)
    sockets = require(machine.sockets)
    if not sockets:
        return skip("no plugin has a socket for the kubelet")
    stale = [each.path for each in sockets if each.is_listening is False]
    if stale:
        return fail(
            f"no program listens: {several(stale)}",
            "start the plugin again, or delete the sockets",
        )
    for each in sockets:
        require(each.is_listening)
    return ok(f"{len(sockets)} plugins listen for the kubelet")


def check_cdi(machine: MachineFacts, _: Subject) -> Verdict:
    if machine.containerd is None:
        return skip("containerd is not installed here")
    config = require(machine.containerd)
    parts = machine.containerd_version.split(".")[:2]
    version = tuple(int(each) for each in parts if each.isdigit())
    if version and version < RUNTIMES_MIN["containerd"]:
        return fail(
            f"containerd {machine.containerd_version} does not support CDI",
            "upgrade to containerd 2",
        )
    form = int(config.get("version") or (3 if version >= (2, 0) else 2))
    section = _CRI.get(form, _CRI[3])
    # Names of sections contain dots.
    cri: Raw = get(config, "plugins", {}).get(section, {})
    is_on = cri.get("enable_cdi")
    if is_on is None and not version:
        raise UnknownFactError(Unknown("the version of containerd is unknown"))
    if is_on is False or (is_on is None and version < (2, 0)):
        return fail(
            "CDI is off in the configuration of containerd",
            f'set enable_cdi = true in [plugins."{section}"], and restart containerd',
        )
    directories = cri.get("cdi_spec_dirs") or _CDI_DIRECTORIES
    own = str(machine.cdi_directory)
    # /var/run is a link to /run.
    if own.removeprefix("/var") not in {each.removeprefix("/var") for each in directories}:
        return fail(
            f"containerd does not read {own}; it reads {', '.join(directories)}",
            f"--cdi-dir {directories[-1]}",
        )
    return ok(f"containerd reads CDI specs in {own}")


def check_cdi_specs(machine: MachineFacts, _: Subject) -> Verdict:
    specs = require(machine.specs)
    if not require(machine.drivers):
        return skip("dryrack plugin has not run here")
    unreadable = [f"{each.path}: {each.problem}" for each in specs if each.problem]
    if unreadable:
        return fail(several(unreadable), "delete the files, and restart dryrack plugin")
    stale = list(_stale_specs(machine))
    if stale:
        return warn(several(stale), "restart dryrack plugin, which deletes or rewrites the files")
    return ok(f"{len(specs)} CDI specs, and each belongs to a prepared claim")


def _stale_specs(machine: MachineFacts) -> Iterator[str]:
    for each in require(machine.specs):
        if each.version not in CDI_VERSIONS:
            yield f"{each.path} has the CDI version {each.version}"
        elif each.uid not in require(machine.prepared[each.driver]):
            yield f"{each.path} belongs to no prepared claim"


def check_plugin(cluster: ClusterFacts, machine: MachineFacts, subject: Subject) -> Verdict:
    """A plugin that the kubelet has registered has ResourceSlices for its node."""
    if not _is_node(machine):
        return _no_node(machine)
    names = [each.path.rpartition("/")[2] for each in require(machine.sockets)]
    drivers = [
        driver
        for driver in require(machine.drivers)
        if any(name.startswith(f"{driver}-") for name in names)
    ]
    if not drivers:
        return skip("dryrack plugin does not run here")
    published = {
        get(each, "spec.driver", "")
        for each in cluster.items(SLICES)
        if get(each, "spec.nodeName", "") == subject.node
    }
    lacking = [each for each in drivers if each not in published]
    if lacking:
        return fail(
            f"node {subject.node} has no ResourceSlice of {', '.join(lacking)}",
            "see the log of dryrack plugin, and check --node",
        )
    return ok(f"node {subject.node} has ResourceSlices of {', '.join(drivers)}")

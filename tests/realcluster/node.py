"""
A real node: containerd, runc, CNI plugins and a kubelet, next to a control plane.

Everything it writes is below one directory, but for what the kernel keeps elsewhere: cgroups,
network namespaces, mounts. Those are noted before the start and swept after the end.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import yaml
from tests.realcluster import image, kubeconfig, programs, readiness, requirements
from tests.realcluster.processes import Processes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.realcluster.controlplane import ControlPlane

_CGROUPS = Path("/sys/fs/cgroup")
_NETWORK_NAMESPACES = Path("/run/netns")
_EMPTY_SECONDS_MAX = 30.0


class Plane(Protocol):
    """As much of a control plane as a node needs to end its pods."""

    def kubectl(self, *arguments: str) -> subprocess.CompletedProcess[str]: ...


@dataclass(frozen=True, slots=True)
class Node:
    """A node that runs."""

    name: str
    directory: Path
    processes: Processes
    plane: Plane
    found: Found

    @property
    def cdi(self) -> Path:
        """Where CDI specs are read from."""
        return self.directory / "cdi"

    @property
    def kubelet(self) -> Path:
        """The kubelet's root: `plugins` and `plugins_registry` are below it."""
        return self.directory / "kubelet"

    def ctr(self, *arguments: str, stdin: bytes | None = None) -> str:
        socket = self.directory / "containerd.sock"
        command = [str(programs.containerd("ctr")), "--address", str(socket), "-n", "k8s.io"]
        done = subprocess.run(
            [*command, *arguments], input=stdin, capture_output=True, timeout=60, check=True
        )
        return done.stdout.decode()

    def stop(self) -> None:
        """Ends the pods, then the node, then sweeps what the kernel kept."""
        self._end_pods()
        self.processes.stop_all()
        sweep(self.directory, self.found)

    def _end_pods(self) -> None:
        mine = f"--field-selector=spec.nodeName={self.name}"
        self.plane.kubectl(
            "delete", "pods", "-A", mine, "--grace-period=1", "--wait=true", "--timeout=30s"
        )
        deadline = time.monotonic() + _EMPTY_SECONDS_MAX
        while self.ctr("tasks", "list", "-q").strip() and time.monotonic() < deadline:
            time.sleep(0.2)
        for task in self.ctr("tasks", "list", "-q").split():
            self.ctr("tasks", "kill", "-s", "SIGKILL", task)


@dataclass(frozen=True, slots=True)
class Found:
    """What was there before the node, and is therefore not ours."""

    cgroups: tuple[str, ...]
    namespaces: tuple[str, ...]

    @classmethod
    def now(cls) -> Found:
        return cls(_names(_kube_cgroups()), _names(_network_namespaces()))


def start(
    plane: ControlPlane,
    directory: Path,
    *,
    name: str = "real-1",
    detached: bool = False,
    feature_gates: Mapping[str, bool] | None = None,
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr),  # noqa: T201
) -> Node:
    """Starts a node in `directory` (keep its path short: sockets have 108 bytes)."""
    requirements.ensure()
    directory.mkdir(parents=True, mode=0o700, exist_ok=True)
    processes = Processes(directory, detached=detached)
    node = Node(name, directory, processes, plane, Found.now())
    try:
        _Starter(plane, node, say, feature_gates or {}).run()
    except BaseException:
        processes.stop_all()
        sweep(directory, node.found)
        raise
    return node


@dataclass(slots=True)
class _Starter:
    plane: ControlPlane
    node: Node
    say: Callable[[str], None]
    feature_gates: Mapping[str, bool]
    port: int = field(default_factory=readiness.free_port)
    health_port: int = field(default_factory=readiness.free_port)

    def run(self) -> None:
        self._containerd()
        self.say("importing the image")
        busybox = shutil.which("busybox")
        assert busybox is not None, "requirements.ensure installs it"
        self.node.ctr("images", "import", "-", stdin=image.archive(Path(busybox)))
        self._kubelet()

    def _containerd(self) -> None:
        self.say("starting containerd")
        directory = self.node.directory
        for made in ("cdi", "cni", "containerd", "run", "ipam", "kubelet"):
            (directory / made).mkdir(exist_ok=True)
        (directory / "cni" / "10-ptp.conflist").write_text(_network(directory))
        config = directory / "containerd.toml"
        config.write_text(_containerd_config(directory))
        program = programs.containerd("containerd")
        # containerd finds its shim on the PATH.
        path = [
            programs.containerd("containerd-shim-runc-v2").parent,
            "/usr/sbin:/usr/bin:/sbin:/bin",
        ]
        self.node.processes.start(
            "containerd",
            [str(program), "--config", str(config)],
            environment={"PATH": ":".join(str(entry) for entry in path)},
        )
        readiness.wait("containerd", self._containerd_answers, self.node.processes)

    def _containerd_answers(self) -> bool:
        try:
            self.node.ctr("version")
        except subprocess.CalledProcessError:
            return False
        return True

    def _kubelet(self) -> None:
        self.say("starting kubelet")
        plane, node = self.plane, self.node
        user = plane.authority.client(f"system:node:{node.name}", groups=["system:nodes"])
        config = node.directory / "kubelet.yaml"
        config.write_text(yaml.safe_dump(self._kubelet_config()))
        flags = {
            "config": config,
            "hostname-override": node.name,
            "root-dir": node.kubelet,
            "node-ip": own_address(),
            "kubeconfig": kubeconfig.write(
                node.directory / "kubelet.kubeconfig",
                server=plane.server,
                authority=plane.authority.certificate,
                user=kubeconfig.by_certificate(user),
            ),
        }
        program = programs.kubernetes("kubelet", plane.options.release)
        arguments = [f"--{name}={value}" for name, value in flags.items()]
        node.processes.start("kubelet", [str(program), *arguments])
        readiness.wait("kubelet", self._node_is_ready, node.processes)

    def _node_is_ready(self) -> bool:
        path = "jsonpath={.status.conditions[?(@.type=='Ready')].status}"
        answer = self.node.plane.kubectl("get", "node", self.node.name, "-o", path)
        return answer.stdout == "True"

    def _kubelet_config(self) -> dict[str, object]:
        plane, node = self.plane, self.node
        serving = plane.authority.server(
            f"kubelet-{node.name}", addresses=[own_address(), "127.0.0.1"], names=[node.name]
        )
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(plane.authority.certificate)},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(serving.certificate),
            "tlsPrivateKeyFile": str(serving.key),
            "containerRuntimeEndpoint": f"unix://{node.directory / 'containerd.sock'}",
            "port": self.port,
            "healthzPort": self.health_port,
            "cgroupDriver": "cgroupfs",
            "failCgroupV1": False,
            "failSwapOn": False,
            "enforceNodeAllocatable": [],
            # A full disk or busy machine is not what the tests are about.
            "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%"},
            "imageGCHighThresholdPercent": 100,
            "featureGates": dict(self.feature_gates),
        }


def own_address() -> str:
    """An address of this machine that is not loopback, which the kubelet refuses for a node."""
    done = subprocess.run(
        ["ip", "-json", "-4", "address"], capture_output=True, text=True, check=True
    )
    for interface in json.loads(done.stdout):
        for address in interface["addr_info"]:
            if address["scope"] == "global":
                return str(address["local"])
    raise requirements.NodeRequirementError(
        "this machine has no address but loopback; give it one: ip address add 192.0.2.1/32 dev lo"
    )


def sweep(directory: Path, found: Found) -> None:
    """Removes what a node leaves in the kernel."""
    _end_shims(directory)
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in sorted((m for m in mounts if m.startswith(f"{directory}/")), reverse=True):
        subprocess.run(["umount", "-l", mount], check=False, capture_output=True)
    for namespace in _network_namespaces():
        if str(namespace) not in found.namespaces:
            subprocess.run(["ip", "netns", "delete", namespace.name], check=False)
    for cgroup in _kube_cgroups():
        if str(cgroup) not in found.cgroups:
            _remove_cgroup(cgroup)


def _end_shims(directory: Path) -> None:
    """A shim outlives containerd on purpose; without its containerd it would do so for ever."""
    mark = str(directory / "containerd.sock").encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if b"containerd-shim" in command and mark in command:
            subprocess.run(["kill", "-KILL", process.name], check=False, capture_output=True)


def _kube_cgroups() -> list[Path]:
    return [path for path in _CGROUPS.glob("*/kubepods") if path.is_dir()]


def _network_namespaces() -> list[Path]:
    return list(_NETWORK_NAMESPACES.glob("cni-*"))


def _names(paths: list[Path]) -> tuple[str, ...]:
    return tuple(sorted(str(path) for path in paths))


def _remove_cgroup(cgroup: Path) -> None:
    for path in sorted(cgroup.rglob("*"), reverse=True):
        if path.is_dir():
            _remove_directory(path)
    _remove_directory(cgroup)


def _remove_directory(path: Path) -> None:
    try:
        path.rmdir()
    except OSError as error:
        sys.stderr.write(f"node: {path}: {error.strerror}\n")


def _network(directory: Path) -> str:
    ipam = {
        "type": "host-local",
        "dataDir": str(directory / "ipam"),
        "ranges": [[{"subnet": "10.211.0.0/24"}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    # Point to point leaves no bridge behind when the last pod is gone.
    plugins = [{"type": "ptp", "ipMasq": False, "ipam": ipam}]
    return json.dumps({"cniVersion": "1.0.0", "name": "dryrack", "plugins": plugins})


def _containerd_config(directory: Path) -> str:
    runc = shutil.which("runc")
    return f"""
version = 3
root = "{directory}/containerd"
state = "{directory}/run"

[grpc]
  address = "{directory}/containerd.sock"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "native"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{image.PAUSE}"

[plugins."io.containerd.cri.v1.runtime"]
  enable_cdi = true
  cdi_spec_dirs = ["{directory}/cdi"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{requirements.CNI_PLUGINS}"]
    conf_dir = "{directory}/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        BinaryName = "{runc}"
        SystemdCgroup = false
"""

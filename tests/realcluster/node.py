"""
A real node: containerd, runc, CNI plugins and a kubelet, next to a control plane.

Everything it writes is below one directory, but for what the kernel keeps: see `kernel`. It leaves
the machine's packet filter alone.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from tests.realcluster import image, kernel, kubeconfig, programs, readiness, requirements
from tests.realcluster.processes import Processes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.realcluster.controlplane import ControlPlane


@dataclass(frozen=True, slots=True)
class Node:
    """A node that runs."""

    name: str
    directory: Path
    processes: Processes

    @property
    def cdi(self) -> Path:
        """The directories of CDI specs."""
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
        """Ends the node, then its pods, which would go on without it."""
        self.processes.kill_all()
        kernel.sweep(self.directory)


def start(
    plane: ControlPlane,
    directory: Path,
    *,
    name: str = "real-1",
    detached: bool = False,
    feature_gates: Mapping[str, bool] | None = None,
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr),  # noqa: T201
) -> Node:
    """Starts a node in `directory`, on a machine that can (see `requirements`)."""
    directory.mkdir(parents=True, mode=0o700, exist_ok=True)
    processes = Processes(directory, detached=detached)
    node = Node(name, directory, processes)
    try:
        _Starter(plane, node, say, feature_gates or {}).run()
    except BaseException:
        node.stop()
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
        kernel.make_cgroups(self.node.directory)
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
        plane = self.plane
        node = self.node
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
        answer = self.plane.kubectl("get", "node", self.node.name, "-o", path)
        return answer.stdout == "True"

    def _kubelet_config(self) -> dict[str, object]:
        plane = self.plane
        node = self.node
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
            "cgroupRoot": f"/{kernel.cgroup_name(node.directory)}",
            "makeIPTablesUtilChains": False,
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


def _network(directory: Path) -> str:
    ipam = {
        "type": "host-local",
        "dataDir": str(directory / "ipam"),
        # Another node on this machine has pods too, and both have routes in its one table.
        "ranges": [[{"subnet": f"10.211.{zlib.crc32(bytes(directory)) % 256}.0/24"}]],
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
  netns_mounts_under_state_dir = true
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

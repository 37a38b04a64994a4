"""
etcd, kube-apiserver, kube-controller-manager and kube-scheduler, on loopback.

etcd does not wait for the disk unless it is asked to: the test bed is thrown away. Client limits
are lifted, because a throttled controller makes slow tests and wrong comparisons.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.realcluster import kubeconfig, programs, readiness
from tests.realcluster.pki import Authority, Identity, service_account_key
from tests.realcluster.releases import RELEASE, Release

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tests.realcluster.processes import Processes

    # A part of the control plane, and the check that it is ready.
    _Awaited = tuple[str, Callable[[], bool]]

_LIMITS = ("--kube-api-qps=2000", "--kube-api-burst=4000")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a control plane."""

    release: Release = RELEASE
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    runtime_config: Mapping[str, bool] = field(default_factory=dict)
    with_scheduler: bool = True
    # Whether etcd waits for the disk.
    durable: bool = False
    # Controllers of kube-controller-manager that are left out, by name.
    without_controllers: tuple[str, ...] = ()
    # Whether a kubelet or KWOK keeps nodes alive. If nobody does, nodes are taken as they are
    # written: neither tainted when they are made nor lost when no lease is renewed.
    nodes_live: bool = False
    # The API server refuses some addresses for nodes; the machine's own goes into certificates.
    server_addresses: tuple[str, ...] = ("127.0.0.1",)


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A control plane that runs."""

    directory: Path
    options: Options
    port: int
    etcd_port: int
    authority: Authority
    admin: Identity
    kubeconfig: Path
    kubectl_path: Path

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def kubectl(
        self, *arguments: str, stdin: str | None = None, kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """kubectl of the same release, as the admin unless another kubeconfig is given."""
        command = [str(self.kubectl_path), "--kubeconfig", str(kubeconfig or self.kubeconfig)]
        return subprocess.run(
            [*command, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            cwd=self.directory,
        )


@dataclass(slots=True)
class _Starter:
    """Starts the parts in order; each step knows what the ones before it made."""

    directory: Path
    options: Options
    processes: Processes
    say: Callable[[str], None]
    etcd_port: int = field(default_factory=readiness.free_port)
    port: int = field(default_factory=readiness.free_port)

    def run(self) -> ControlPlane:
        authority = Authority(self.directory / "pki")
        admin = authority.client("dryrack-admin", groups=["system:masters"])
        self._etcd()
        tokens = service_account_key(self.directory / "pki")
        self._apiserver(authority, admin, tokens)
        ready = [self._controller_manager(authority, tokens)]
        if self.options.with_scheduler:
            ready.append(self._scheduler(authority))
        # Both take their time, which passes only once.
        for name, answers in ready:
            self._wait(name, answers)
        return ControlPlane(
            directory=self.directory,
            options=self.options,
            port=self.port,
            etcd_port=self.etcd_port,
            authority=authority,
            admin=admin,
            kubeconfig=self._kubeconfig(authority, admin, "admin"),
            kubectl_path=programs.kubernetes("kubectl", self.options.release),
        )

    def _etcd(self) -> None:
        client = f"http://127.0.0.1:{self.etcd_port}"
        peer = f"http://127.0.0.1:{readiness.free_port()}"
        flags = {
            "data-dir": str(self.directory / "etcd"),
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
            "unsafe-no-fsync": "" if self.options.durable else "true",
            "log-level": "warn",
        }
        self._launch("etcd", programs.etcd(), _flags(flags))
        self._wait("etcd", lambda: readiness.answers_http(self.etcd_port, "/health"))

    def _apiserver(self, authority: Authority, admin: Identity, tokens: Identity) -> None:
        names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
        addresses = [*self.options.server_addresses, "10.200.0.1"]
        serving = authority.server("apiserver", addresses=addresses, names=names)
        to_kubelet = authority.client("apiserver-to-kubelet", groups=["system:masters"])
        flags = {
            "etcd-servers": f"http://127.0.0.1:{self.etcd_port}",
            "bind-address": "127.0.0.1",
            "secure-port": str(self.port),
            "tls-cert-file": str(serving.certificate),
            "tls-private-key-file": str(serving.key),
            "client-ca-file": str(authority.certificate),
            "kubelet-certificate-authority": str(authority.certificate),
            "kubelet-client-certificate": str(to_kubelet.certificate),
            "kubelet-client-key": str(to_kubelet.key),
            "kubelet-preferred-address-types": "InternalIP",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": str(tokens.certificate),
            "service-account-signing-key-file": str(tokens.key),
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            "disable-admission-plugins": "" if self.options.nodes_live else "TaintNodesByCondition",
            "service-cluster-ip-range": "10.200.0.0/16",
            "endpoint-reconciler-type": "none",
            "allow-privileged": "true",
            "runtime-config": _pairs(self.options.runtime_config),
        }
        self._launch("kube-apiserver", self._program("kube-apiserver"), self._with_gates(flags))
        self._wait(
            "kube-apiserver",
            lambda: readiness.answers_https(
                self.port, "/readyz", authority=authority.certificate, user=admin
            ),
        )

    def _controller_manager(self, authority: Authority, tokens: Identity) -> _Awaited:
        user = authority.client("system:kube-controller-manager")
        off = [f"-{name}" for name in self.options.without_controllers]
        off += [] if self.options.nodes_live else ["-node-lifecycle-controller"]
        flags = {
            "kubeconfig": str(self._kubeconfig(authority, user, "controller-manager")),
            "service-account-private-key-file": str(tokens.key),
            "root-ca-file": str(authority.certificate),
            "controllers": ",".join(["*", *off]),
            "use-service-account-credentials": "true",
        }
        return self._client("kube-controller-manager", flags)

    def _scheduler(self, authority: Authority) -> _Awaited:
        user = authority.client("system:kube-scheduler")
        return self._client(
            "kube-scheduler", {"kubeconfig": str(self._kubeconfig(authority, user, "scheduler"))}
        )

    def _client(self, name: str, flags: dict[str, str]) -> _Awaited:
        port = readiness.free_port()
        common = {"bind-address": "127.0.0.1", "secure-port": str(port), "leader-elect": "false"}
        arguments = [*self._with_gates({**flags, **common}), *_LIMITS]
        self._launch(name, self._program(name), arguments)
        return name, lambda: readiness.answers_https(port, "/healthz", authority=None, user=None)

    def _program(self, name: str) -> Path:
        return programs.kubernetes(name, self.options.release)

    def _with_gates(self, flags: dict[str, str]) -> list[str]:
        return _flags({**flags, "feature-gates": _pairs(self.options.feature_gates)})

    def _launch(self, name: str, program: Path, arguments: Sequence[str]) -> None:
        self.say(f"starting {name}")
        self.processes.start(name, [str(program), *arguments])

    def _wait(self, name: str, ready: Callable[[], bool]) -> None:
        readiness.wait(name, ready, self.processes)

    def _kubeconfig(self, authority: Authority, user: Identity, label: str) -> Path:
        return kubeconfig.write(
            self.directory / f"{label}.kubeconfig",
            server=f"https://127.0.0.1:{self.port}",
            authority=authority.certificate,
            user=kubeconfig.by_certificate(user),
        )


def start(
    directory: Path,
    options: Options,
    processes: Processes,
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr),  # noqa: T201
) -> ControlPlane:
    """Starts a control plane in `directory`; if a part does not come up, none is left running."""
    directory.mkdir(parents=True, mode=0o700, exist_ok=True)
    try:
        return _Starter(directory, options, processes, say).run()
    except BaseException:
        processes.stop_all()
        raise


def _flags(values: Mapping[str, str]) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items() if value]


def _pairs(switches: Mapping[str, bool]) -> str:
    return ",".join(f"{name}={str(on).lower()}" for name, on in sorted(switches.items()))

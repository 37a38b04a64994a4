"""`dryrack run`: a program in place of its pod, against a cluster in a process of its own."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
import yaml
from tests.cli.command import dryrack

from dryrack.client.client import Client, Selection
from dryrack.client.endpoints import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    PODS,
    SECRETS,
    SERVICES,
    Endpoint,
)
from dryrack.client.errors import NotFoundError
from dryrack.client.https import connected
from dryrack.cluster import certificates, connection_of
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from dryrack.kinds.raw import Raw

PROGRAM = Path(__file__).with_name("operator_program.py")
ADDRESS = "dryrack.dev/address"
PROCESS = "dryrack.dev/process"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
NS = "ops"
_SECONDS_MAX = 30.0

T = TypeVar("T")


def container(**more: Any) -> Raw:
    return {
        "name": "manager",
        "image": "example.com/manager",
        "args": [
            "--probe=:8081",
            "--webhook=:9443",
            "--pod=$(POD_NAME)",
            "--config=/etc/operator/settings.yaml",
        ],
        "ports": [{"containerPort": 9443, "name": "webhook"}],
        "readinessProbe": {"httpGet": {"port": 8081, "path": "/readyz"}, "periodSeconds": 1},
        "envFrom": [{"configMapRef": {"name": "settings"}, "prefix": "FROM_"}],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "MEMORY", "valueFrom": {"resourceFieldRef": {
                "resource": "limits.memory", "divisor": "1Mi"}}},
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "password", "key": "it"}}},
            {"name": "GREETING", "value": "$(POD_NAME) says $(FROM_size)"},
        ],
        "resources": {"limits": {"memory": "64Mi"}},
        "volumeMounts": [
            {"name": "certificates", "mountPath": "/etc/webhook/certs"},
            {"name": "settings", "mountPath": "/etc/operator"},
        ],
    } | more  # fmt: skip


def deployment(name: str, **more: Any) -> Raw:
    spec = {
        "serviceAccountName": "operator",
        "containers": [container(**more), {"name": "proxy", "image": "example.com/proxy"}],
        "volumes": [
            {"name": "certificates", "secret": {"secretName": "certificates"}},
            {"name": "settings", "configMap": {"name": "settings"}},
        ],
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NS},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
    }


def objects() -> list[Raw]:
    def obj(kind: str, name: str, api_version: str = "v1", **more: Any) -> Raw:
        metadata = {"name": name, "namespace": NS}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}

    rbac = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}},
        obj("ServiceAccount", "operator"),
        obj(
            "Role",
            "operator",
            f"{rbac}/v1",
            rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}],
        ),
        obj(
            "RoleBinding",
            "operator",
            f"{rbac}/v1",
            roleRef={"apiGroup": rbac, "kind": "Role", "name": "operator"},
            subjects=[{"kind": "ServiceAccount", "name": "operator", "namespace": NS}],
        ),
        obj("ConfigMap", "settings", data={"settings.yaml": "a: 1", "size": "3"}),
        obj("Secret", "password", stringData={"it": "secret"}),
        obj("Secret", "certificates"),
        obj(
            "Service",
            "hook",
            spec={
                "selector": {"app": "operator"},
                "ports": [{"port": 443, "targetPort": "webhook"}],
            },
        ),
    ]


@dataclass
class Command:
    """`dryrack run` as a process."""

    process: subprocess.Popen[str]
    facts_file: Path
    errors_file: Path

    def facts(self) -> dict[str, Any]:
        wait_until(self.facts_file.exists, self)
        found: dict[str, Any] = json.loads(self.facts_file.read_text())
        return found

    @property
    def said(self) -> str:
        return self.errors_file.read_text()

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(_SECONDS_MAX)


@dataclass
class Cluster:
    kubeconfig: Path
    directory: Path
    count: int = 0

    def do(self, work: Callable[[Client], Awaitable[T]]) -> T:
        async def run() -> T:
            async with connected(connection_of({}, kubeconfig=str(self.kubeconfig))) as transport:
                return await work(Client(transport))

        return asyncio.run(run())

    def get(self, endpoint: Endpoint, name: str) -> Raw:
        return self.do(lambda client: client.get(endpoint, name, NS))

    def patch(self, endpoint: Endpoint, name: str, patch: Raw) -> Raw:
        return self.do(lambda client: client.patch(endpoint, name, patch, namespace=NS))

    def create(self, endpoint: Endpoint, obj: Raw) -> Raw:
        return self.do(lambda client: client.create(endpoint, obj))

    def pod(self, app: str) -> Raw:
        selection = Selection(namespace=NS, labels=f"app={app}")
        pods = self.do(lambda client: client.list(PODS, selection)).items
        return max(pods, key=lambda each: str(each["metadata"]["creationTimestamp"]))

    def is_ready(self, app: str) -> bool:
        conditions = get(self.pod(app), "status.conditions", ())
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    @contextmanager
    def deployed(self, name: str, **more: Any) -> Iterator[str]:
        """A Deployment for the length of a block, whose pod runs."""
        self.create(DEPLOYMENTS, deployment(name, **more))
        try:
            yield f"deployment/{name}"
        finally:
            with suppress(NotFoundError):
                self.do(lambda client: client.delete(DEPLOYMENTS, name, namespace=NS))

    @contextmanager
    def command(self, *words: str, adds_program: bool = True) -> Iterator[Command]:
        self.count += 1
        facts = self.directory / f"facts-{self.count}.json"
        errors = self.directory / f"errors-{self.count}.txt"
        temporary = self.directory / f"tmp-{self.count}"
        temporary.mkdir()
        program = ("--", sys.executable, str(PROGRAM)) if adds_program else ()
        command = [sys.executable, "-m", "dryrack", "run", "-n", NS, *words, *program]
        environment = {
            "KUBECONFIG": str(self.kubeconfig),
            "FACTS": str(facts),
            "TMPDIR": str(temporary),
        }
        with (
            errors.open("w") as file,
            subprocess.Popen(
                command, stderr=file, text=True, env={**os.environ, **environment}
            ) as process,
        ):
            running = Command(process, facts, errors)
            try:
                yield running
            finally:
                if process.poll() is None:
                    running.stop()
        assert "Traceback" not in running.said, running.said
        assert list(temporary.iterdir()) == []


def wait_until(condition: Callable[[], bool], command: Command | None = None) -> None:
    ends = time.monotonic() + _SECONDS_MAX
    while not condition():
        assert time.monotonic() < ends, command.said if command else "it takes too long"
        if command is not None:
            with suppress(subprocess.TimeoutExpired):
                command.process.wait(0.1)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("operators")
    config = directory / "objects.yaml"
    config.write_text(yaml.safe_dump_all(objects()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRYRACK_HOME", str(directory / "home"))
        up = ("up", "--detach", "--nodes", "1", "--authorization", "rbac", "--config", config)
        done = dryrack(*up)
        assert done.returncode == 0, done.stderr
        try:
            keys = certificates.ensure(directory / "keys", [f"hook.{NS}.svc"], time.time())
            yield _with_webhook(
                Cluster(directory / "home" / "default" / "kubeconfig", directory), keys
            )
        finally:
            dryrack("down")


def _with_webhook(cluster: Cluster, keys: certificates.Keys) -> Cluster:
    """Fill the Secret of the webhook, and register it for ConfigMaps with a label."""

    def encoded(path: Path) -> str:
        return base64.b64encode(path.read_bytes()).decode()

    data = {"tls.crt": encoded(keys.server.certificate), "tls.key": encoded(keys.server.key)}
    cluster.patch(SECRETS, "certificates", {"data": data})
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["configmaps"],
    }
    webhook = {
        "name": "hook.example.com",
        "clientConfig": {
            "service": {"namespace": NS, "name": "hook"},
            "caBundle": encoded(keys.authority.certificate),
        },
        "rules": [rule],
        "objectSelector": {"matchLabels": {"reviewed": "yes"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    endpoint = Endpoint(
        "admissionregistration.k8s.io",
        "v1",
        "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration",
        is_namespaced=False,
    )
    cluster.create(endpoint, {"metadata": {"name": "hook"}, "webhooks": [webhook]})
    return cluster


def test_a_program_has_what_its_pod_would_have(cluster: Cluster) -> None:
    """Token, rights, CA, namespace, environment, arguments, and mounted files are the pod's."""
    with cluster.deployed("facts") as name, cluster.command(name) as command:
        facts = command.facts()
        pod = cluster.pod("facts")
        own = pod["metadata"]["name"]
        claims = facts["claims"]
        assert claims["sub"] == f"system:serviceaccount:{NS}:operator"
        assert claims["kubernetes.io"]["pod"] == {"name": own, "uid": pod["metadata"]["uid"]}
        assert (facts["pods"], facts["secrets"]) == (200, 403)
        assert facts["settings"] == "a: 1"
        environment = facts["environment"]
        assert environment["POD_NAME"] == environment["HOSTNAME"] == own
        assert environment["GREETING"] == f"{own} says 3"
        assert (environment["MEMORY"], environment["PASSWORD"]) == ("64", "secret")
        assert f"--pod={own}" in facts["words"]
        assert "KUBECONFIG" not in environment
        assert pod["metadata"]["annotations"][PROCESS].endswith(f"/{command.process.pid}")


def test_webhooks_reach_the_program_until_it_stops(cluster: Cluster) -> None:
    """The annotation of the Service exists until the command ends."""
    labels = {"reviewed": "yes"}

    def reviewed(name: str) -> bool:
        metadata = {"name": name, "namespace": NS, "labels": labels}
        made = cluster.create(CONFIG_MAPS, {"metadata": metadata})
        return "seen-by" in made["metadata"]["labels"]

    with cluster.deployed("operator") as name, cluster.command(name) as command:
        wait_until(lambda: "is ready" in command.said and ADDRESS in command.said, command)
        assert cluster.is_ready("operator")
        assert reviewed("during")
        assert command.stop(signal.SIGINT) == 0
        assert not reviewed("afterwards")
        assert ADDRESS not in get(cluster.get(SERVICES, "hook"), "metadata.annotations", {})
        assert PROCESS not in get(cluster.pod("operator"), "metadata.annotations", {})
        wait_until(lambda: cluster.is_ready("operator"))


def test_the_pod_is_ready_when_its_probe_succeeds(cluster: Cluster) -> None:
    """A program that waits for its certificates is not ready; the files follow the Secret."""
    data = cluster.get(SECRETS, "certificates")["data"]
    cluster.patch(SECRETS, "certificates", {"data": {"tls.crt": None}})
    try:
        with cluster.deployed("waits") as name, cluster.command(name) as command:
            command.facts()
            wait_until(lambda: not cluster.is_ready("waits"), command)
            cluster.patch(SECRETS, "certificates", {"data": data})
            wait_until(lambda: cluster.is_ready("waits"), command)
    finally:
        cluster.patch(SECRETS, "certificates", {"data": data})


def test_a_program_that_ends_is_started_again(cluster: Cluster, tmp_path: Path) -> None:
    """The pod counts the restart, and states how the last run ended."""
    words = [*container()["args"], f"--crash-once={tmp_path}/crashed"]
    with cluster.deployed("crash", args=words) as name, cluster.command(name) as command:
        wait_until(lambda: "is ready" in command.said, command)
        (status,) = (
            each
            for each in cluster.pod("crash")["status"]["containerStatuses"]
            if each["name"] == "manager"
        )
        assert (status["restartCount"], status["ready"]) == (1, True)
        assert status["lastState"]["terminated"]["exitCode"] == 3
        assert "exit status 3; it starts again now" in command.said


def test_a_rollout_moves_the_program_to_the_new_pod(cluster: Cluster) -> None:
    """The command follows the Deployment, and ends when the Deployment is deleted."""
    with cluster.deployed("rolls") as name, cluster.command(name) as command:
        first = command.facts()["environment"]["POD_NAME"]
        wait_until(lambda: "is ready" in command.said, command)
        patch = {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}}
        cluster.patch(DEPLOYMENTS, "rolls", patch)
        wait_until(lambda: command.facts()["environment"]["POD_NAME"] != first, command)
        cluster.do(lambda client: client.delete(DEPLOYMENTS, "rolls", namespace=NS))
        assert command.process.wait(_SECONDS_MAX) == 0
        assert f"deployment {NS}/rolls was deleted" in command.said


def test_files_are_in_folders_without_a_mount_namespace(cluster: Cluster, tmp_path: Path) -> None:
    """Arguments, a variable, and a kubeconfig lead to the folders, which are removed."""
    folder = tmp_path / "settings"
    with (
        cluster.deployed("folders") as name,
        cluster.command(name, "--mount", f"/etc/operator={folder}") as command,
    ):
        facts = command.facts()
        assert f"--config={folder}/settings.yaml" in facts["words"]
        mounts = facts["environment"]["DRYRACK_MOUNTS"].split(":")
        assert f"/etc/operator={folder}" in mounts
        assert facts["pods"] == 200
        kubeconfig = yaml.safe_load(Path(facts["environment"]["KUBECONFIG"]).read_text())
        assert Path(kubeconfig["users"][0]["user"]["tokenFile"]).read_text().count(".") == 2
        rows = [line.split() for line in command.said.splitlines()]
        assert ["/etc/operator", str(folder)] in rows
        assert command.stop() == 0
        assert not folder.exists()


def test_a_port_in_use_is_replaced(cluster: Cluster) -> None:
    """An argument that ends with the port gets a free one."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        words = [each.replace("8081", str(port)) for each in container()["args"]]
        probe = {"httpGet": {"port": port, "path": "/readyz"}}
        more = {"args": words, "readinessProbe": probe}
        with cluster.deployed("ports", **more) as name, cluster.command(name) as command:
            wait_until(lambda: "is ready" in command.said, command)
            assert f"--probe=:{port}" not in command.facts()["words"]


HAS_NETWORKS = subprocess.run(["unshare", "--user", "--net", "true"], check=False).returncode == 0


@pytest.mark.skipif(not HAS_NETWORKS, reason="this user cannot create network namespaces")
def test_a_program_with_a_port_in_use_has_its_own_network(cluster: Cluster) -> None:
    """It listens at its usual port, reaches the API server, and its webhook is called."""
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
        words = [each.replace(":9443", f":{port}/") for each in container()["args"]]
        ports = [{"containerPort": port, "name": "webhook"}]
        more = {"args": words, "ports": ports}
        with cluster.deployed("operator", **more) as name, cluster.command(name) as command:
            wait_until(lambda: "is ready" in command.said, command)
            facts = command.facts()
            metadata = {"name": "relayed", "namespace": NS, "labels": {"reviewed": "yes"}}
            made = cluster.create(CONFIG_MAPS, {"metadata": metadata})

            assert f"--webhook=:{port}/" in facts["words"]
            assert facts["pods"] == 200
            assert made["metadata"]["labels"]["seen-by"] == "operator"
            assert "the program has its own network" in command.said


def test_a_detached_command_ends_when_the_pod_is_ready(cluster: Cluster) -> None:
    """The program goes on until its workload is deleted, and its output is in a log."""
    with cluster.deployed("background") as name, cluster.command(name, "--detach") as command:
        assert command.process.wait(_SECONDS_MAX) == 0
        assert cluster.is_ready("background")
        [pid] = re.findall(r"is ready: process (\d+), log ", command.said)
        [log] = re.findall(r", log (.*?);", command.said)
        cluster.do(lambda client: client.delete(DEPLOYMENTS, "background", namespace=NS))
        wait_until(lambda: not Path(f"/proc/{pid}/cmdline").exists(), command)
        assert f"deployment {NS}/background was deleted" in Path(log).read_text()


def test_a_detached_command_reports_why_it_cannot_start(cluster: Cluster) -> None:
    """The command fails as it does without the option."""
    with cluster.command("deployment/absent", "--detach") as command:
        assert command.process.wait(_SECONDS_MAX) == 1
        assert "deployment ops/absent" in command.said


def test_a_pod_that_does_not_restart_ends_the_command(cluster: Cluster) -> None:
    """The exit status of the program becomes the phase of the pod."""
    spec = deployment("x", args=[*container()["args"], "--exit=4"])["spec"]["template"]["spec"]
    metadata = {"name": "once", "namespace": NS, "labels": {"app": "once"}}
    cluster.create(PODS, {"metadata": metadata, "spec": {**spec, "restartPolicy": "Never"}})
    with cluster.command("pod/once") as command:
        assert command.process.wait(_SECONDS_MAX) == 1
        assert "ended with exit status 4" in command.said
        wait_until(lambda: cluster.get(PODS, "once")["status"]["phase"] == "Failed")


def test_a_second_command_for_the_same_pod_is_refused(cluster: Cluster) -> None:
    """The error names the process that has the pod."""
    with cluster.deployed("twice") as name, cluster.command(name) as command:
        command.facts()
        with cluster.command(name) as second:
            assert second.process.wait(_SECONDS_MAX) == 1
            assert f"process {command.process.pid} runs it already" in second.said
        assert command.process.poll() is None


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["manager"], 2, "'manager': must be KIND/NAME"),
        (["job/a"], 2, "'job/a': the kind must be deployment, statefulset, daemonset, pod"),
        (["deployment/A_b"], 2, "name 'A_b'"),
        (["deployment/bad", "--port", "x"], 2, "--port 'x': must be CONTAINER=LOCAL"),
        (["deployment/bad", "--mount", "x"], 2, "--mount 'x': must be PATH=FOLDER"),
        (["deployment/none"], 1, "deployment ops/none: not found; there is: bad"),
        (["deployment/bad", "-c", "none"], 1, "has no container 'none'; it has: manager, proxy"),
        (["deployment/bad"], 1, "container manager: has no command"),
        (["deployment/bad", "--", "no-such-program"], 1, "no-such-program: no such program"),
        (["deployment/bad", "--port", "1=2", "--", "true"], 1, "has no such port; it has: 9443"),
        (["deployment/bad", "--mount", "/a=/b", "--", "true"], 1, "has no mount there; it has: "),
        (
            ["deployment/bad", "--mount", "/etc/operator=/", "--", "true"],
            1,
            "not an empty directory",
        ),
    ],
)
def test_bad_input_gets_one_line(
    cluster: Cluster, words: list[str], status: int, message: str
) -> None:
    """The error names the input and the fix, and nothing stays in the cluster."""
    with cluster.deployed("bad"), cluster.command(*words, adds_program=False) as command:
        assert command.process.wait(_SECONDS_MAX) == status
        assert message in command.said
        assert command.said.count("\n") == 1
        wait_until(lambda: bool(cluster.pod("bad")))
        assert PROCESS not in get(cluster.pod("bad"), "metadata.annotations", {})

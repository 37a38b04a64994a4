"""Clients that people have, unmodified, against `dryrack up`: kubectl and the Python client."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.cli.command import dryrack
from tests.realcluster import programs
from tests.realcluster.releases import RELEASE

from dryrack.kinds.releases import DEFAULT_RELEASE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw

pytestmark = pytest.mark.real

_SECONDS_MAX = 60


@dataclass(frozen=True)
class Kubectl:
    """kubectl with the kubeconfig that `up` wrote."""

    program: Path
    kubeconfig: Path

    def __call__(self, *words: str, stdin: str = "") -> str:
        """What it prints; fails the test if it fails."""
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.program, "--kubeconfig", self.kubeconfig, *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_SECONDS_MAX,
            check=False,
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [str(self.program), "--kubeconfig", str(self.kubeconfig), *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def json(self, *words: str) -> Raw:
        found: Raw = json.loads(self(*words, "-o", "json"))
        return found


def started(home: Path, *words: str) -> Iterator[Kubectl]:
    """A cluster for as long as the fixture lives."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRYRACK_HOME", str(home))
        up = dryrack("up", "--detach", "--nodes", "2", *words)
        assert up.returncode == 0, up.stderr
        program = programs.kubernetes("kubectl", RELEASE)
        yield Kubectl(program, home / "default" / "kubeconfig")
        assert dryrack("down").returncode == 0


@pytest.fixture(scope="module")
def kubectl() -> Iterator[Kubectl]:
    with tempfile.TemporaryDirectory() as home:
        yield from started(Path(home))


@pytest.fixture(scope="module")
def guarded() -> Iterator[Kubectl]:
    """A cluster that decides by roles."""
    with tempfile.TemporaryDirectory() as home:
        yield from started(Path(home), "--authorization", "rbac")


def manifest(name: str, **data: str) -> str:
    return json.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    )


def test_nodes_are_ready(kubectl: Kubectl) -> None:
    """The first thing that everybody types."""
    kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=30s")
    lines = kubectl("get", "nodes").splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["node-1", "Ready"], ["node-2", "Ready"]]


def test_objects_are_made_changed_and_deleted(kubectl: Kubectl) -> None:
    """create, get, label, annotate, patch, replace and delete, by typed and untyped ways."""
    kubectl("create", "configmap", "words", "--from-literal=a=1")
    kubectl("label", "configmap", "words", "colour=blue")
    kubectl("annotate", "configmap", "words", "why=because")
    kubectl("patch", "configmap", "words", "--type=merge", "-p", '{"data":{"b":"2"}}')
    kubectl("patch", "configmap", "words", "-p", '{"data":{"c":"3"}}')
    patch = '[{"op":"remove","path":"/data/a"}]'
    kubectl("patch", "configmap", "words", "--type=json", "-p", patch)
    found = kubectl.json("get", "configmap", "words")
    assert found["data"] == {"b": "2", "c": "3"}
    assert found["metadata"]["labels"] == {"colour": "blue"}
    assert kubectl("get", "configmap", "-l", "colour=blue", "-o", "name") == "configmap/words\n"
    kubectl("replace", "-f", "-", stdin=json.dumps({**found, "data": {"d": "4"}}))
    assert kubectl("get", "cm", "words", "-o", "jsonpath={.data}") == '{"d":"4"}'
    assert "deleted" in kubectl("delete", "configmap", "words")
    gone = kubectl.run("get", "configmap", "words")
    assert gone.stderr == 'Error from server (NotFound): configmaps "words" not found\n'


def test_lists_of_objects_are_made(kubectl: Kubectl) -> None:
    """A manifest of kind List is checked by kubectl itself, which reads OpenAPI as protobuf."""
    items = ",".join(manifest(name) for name in ("first", "second"))
    listed = f'{{"apiVersion":"v1","kind":"List","items":[{items}]}}'
    told = kubectl("create", "-f", "-", stdin=listed)
    assert told == "configmap/first created\nconfigmap/second created\n"
    wrong = kubectl.run("create", "-f", "-", stdin=listed.replace('"data"', '"daten"'))
    assert wrong.returncode == 1
    assert 'unknown field "daten"' in wrong.stderr


def test_pods_know_whom_to_trust(kubectl: Kubectl) -> None:
    """Every namespace, new ones too, has the authority that is in the kubeconfig."""
    config = yaml.safe_load(kubectl.kubeconfig.read_text())
    authority = config["clusters"][0]["cluster"]["certificate-authority-data"]
    kubectl("create", "namespace", "trusting")
    for namespace in ("default", "trusting"):
        where = ("configmap/kube-root-ca.crt", "-n", namespace)
        kubectl("wait", "--for=create", "--timeout=30s", *where)
        found = kubectl.json("get", *where)
        assert found["data"]["ca.crt"] == base64.b64decode(authority).decode()


def test_apply_and_diff(kubectl: Kubectl) -> None:
    """Client side and server side; a difference is shown before it is made."""
    assert kubectl("apply", "-f", "-", stdin=manifest("plan", a="1")) == "configmap/plan created\n"
    changed = manifest("plan", a="2")
    difference = kubectl.run("diff", "-f", "-", stdin=changed)
    assert difference.returncode == 1
    assert '+  a: "2"' in difference.stdout
    assert kubectl("apply", "-f", "-", stdin=changed) == "configmap/plan configured\n"
    assert kubectl("apply", "-f", "-", stdin=changed) == "configmap/plan unchanged\n"
    kubectl(
        "apply", "--server-side", "--field-manager=one", "-f", "-", stdin=manifest("ssa", a="1")
    )
    clash = kubectl.run(
        "apply", "--server-side", "--field-manager=two", "-f", "-", stdin=manifest("ssa", a="2")
    )
    assert clash.returncode == 1
    assert 'conflict with "one": .data.a' in clash.stderr


def test_mistakes_are_told(kubectl: Kubectl) -> None:
    """A field that there is not is refused by name, before anything is written."""
    wrong = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containerz":[]}}'
    done = kubectl.run("create", "-f", "-", stdin=wrong)
    assert done.returncode == 1
    assert "containerz" in done.stderr


def test_a_watch_shows_what_happens(kubectl: Kubectl) -> None:
    """`get -w` prints the state, and then each change as it comes."""
    kubectl("create", "namespace", "watched")
    with kubectl.start("get", "configmaps", "-n", "watched", "-w", "--no-headers") as watching:
        assert watching.stdout is not None
        timer = threading.Timer(_SECONDS_MAX, watching.kill)
        timer.start()
        kubectl("create", "configmap", "seen", "-n", "watched", "--from-literal=a=1")
        lines = (line.split()[:2] for line in watching.stdout)
        assert next(line for line in lines if line[0] == "seen") == ["seen", "1"]
        watching.terminate()
        timer.cancel()
    kubectl("delete", "namespace", "watched", "--timeout=30s")
    assert "NotFound" in kubectl.run("get", "namespace", "watched").stderr


def test_a_deployment_rolls_out_and_goes(kubectl: Kubectl) -> None:
    """Pods come, run and have logs; deleting in the foreground leaves nothing."""
    kubectl("create", "deployment", "web", "--image=nginx", "--replicas=2")
    kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    kubectl("wait", "--for=condition=Ready", "pod", "-l", "app=web", "--timeout=30s")
    kubectl("set", "image", "deployment/web", "nginx=nginx:2")
    kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    assert len(kubectl("rollout", "history", "deployment/web").splitlines()) >= 4
    kubectl("logs", "deployment/web")
    assert "Successfully assigned" in kubectl("events", "--types=Normal")
    assert "Image:          nginx:2" in kubectl("describe", "pod", "-l", "app=web")
    kubectl("delete", "deployment", "web", "--cascade=foreground", "--timeout=30s")
    assert kubectl("get", "pods,replicasets", "-l", "app=web", "-o", "name") == ""


def test_what_is_there_is_told(kubectl: Kubectl) -> None:
    """api-resources, explain, cluster-info, version and whoami answer."""
    assert "resourceclaims" in kubectl("api-resources", "--api-group=resource.k8s.io")
    assert "FIELD: nodeName <string>" in kubectl("explain", "pod.spec.nodeName")
    assert "control plane is running" in kubectl("cluster-info")
    version = kubectl.json("version")["serverVersion"]
    assert f"{version['major']}.{version['minor']}" == DEFAULT_RELEASE.value
    assert "kubernetes-admin" in kubectl("auth", "whoami")
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"


def test_a_node_is_cordoned_and_drained(kubectl: Kubectl) -> None:
    """Everyday care of nodes works on nodes that do not exist."""
    kubectl("wait", "--for=condition=Ready", "node/node-2", "--timeout=30s")
    kubectl("cordon", "node-2")
    assert kubectl("get", "node", "node-2").split()[6] == "Ready,SchedulingDisabled"
    kubectl("drain", "node-2", "--ignore-daemonsets", "--force", "--timeout=30s")
    kubectl("uncordon", "node-2")
    kubectl("taint", "node", "node-2", "dedicated=x:NoSchedule")
    kubectl("taint", "node", "node-2", "dedicated-")


def test_roles_are_enforced(guarded: Kubectl) -> None:
    """An account may do what its role says; can-i knows it; a token proves who it is."""
    guarded("create", "serviceaccount", "robot")
    robot = "system:serviceaccount:default:robot"
    refused = guarded.run("auth", "can-i", "list", "pods", f"--as={robot}")
    assert (refused.returncode, refused.stdout) == (1, "no\n")
    guarded("create", "role", "reader", "--verb=list", "--resource=pods")
    guarded("create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:robot")
    assert guarded("auth", "can-i", "list", "pods", f"--as={robot}") == "yes\n"
    token = guarded("create", "token", "robot").strip()
    listed = by_token(guarded, token, "get", "pods")
    assert listed.returncode == 0, listed.stderr
    denied = by_token(guarded, token, "get", "secrets")
    assert f'User "{robot}" cannot list resource "secrets"' in denied.stderr


def by_token(kubectl: Kubectl, token: str, *words: str) -> subprocess.CompletedProcess[str]:
    """kubectl with the token in the place of the certificate."""
    config = yaml.safe_load(kubectl.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    path = kubectl.kubeconfig.parent / "token-kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return Kubectl(kubectl.program, path).run(*words)


def test_strangers_stay_outside(kubectl: Kubectl) -> None:
    """Without a certificate or a token nothing is told but the health."""
    assert "Unauthorized" in by_token(kubectl, "a.b.c", "get", "--raw", "/api/v1/pods").stderr
    assert anonymous(kubectl, "/healthz") == (200, b"ok")
    status, body = anonymous(kubectl, "/api")
    assert (status, json.loads(body)["reason"]) == (401, "Unauthorized")


def anonymous(kubectl: Kubectl, path: str) -> tuple[int, bytes]:
    """A GET by nobody."""
    cluster = yaml.safe_load(kubectl.kubeconfig.read_text())["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    tls = ssl.create_default_context(cadata=authority)
    try:
        with urllib.request.urlopen(cluster["server"] + path, context=tls) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read()


def test_the_python_client_reads_writes_and_watches(kubectl: Kubectl) -> None:
    """The official client, as its documentation uses it."""
    kubernetes = pytest.importorskip("kubernetes")
    kubernetes.config.load_kube_config(str(kubectl.kubeconfig))
    with kubernetes.client.ApiClient() as api:
        core = kubernetes.client.CoreV1Api(api)
        made = core.create_namespaced_config_map(
            "default", {"metadata": {"generateName": "python-"}, "data": {"a": "1"}}
        )
        name = made.metadata.name
        revision = made.metadata.resource_version
        core.patch_namespaced_config_map(name, "default", {"data": {"a": "2"}})
        assert core.read_namespaced_config_map(name, "default").data == {"a": "2"}
        event = first_event(kubernetes.watch.Watch(), core, revision)
        assert (event["type"], event["object"].data) == ("MODIFIED", {"a": "2"})
        core.delete_namespaced_config_map(name, "default")
        with pytest.raises(kubernetes.client.ApiException) as gone:
            core.read_namespaced_config_map(name, "default")
        assert gone.value.status == 404
        slices = kubernetes.client.ResourceV1Api(api).list_resource_slice()
        assert slices.kind == "ResourceSliceList"


def first_event(watch: Any, core: Any, revision: str) -> Any:
    """What is told first after a revision."""
    events = watch.stream(
        core.list_namespaced_config_map,
        "default",
        resource_version=revision,
        timeout_seconds=30,
    )
    # The library itself closes the connection of a watch when its generator ends.
    with closing(events):
        return next(iter(events))

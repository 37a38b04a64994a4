"""The facts are those of the cluster and the machine, and reading them changes neither."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import tempfile
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
import yaml

from dryrack.client.endpoints import SLICES
from dryrack.client.transport import User
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane
from dryrack.cluster.doctor import (
    ClusterFacts,
    Finding,
    MachineQuestion,
    State,
    Subject,
    Unknown,
    examine,
    machine_reader,
    observe_cluster,
    observe_machine,
)
from dryrack.cluster.doctor.webhook_rules import (
    POLICIES,
    POLICY_BINDINGS,
    VALIDATING_WEBHOOKS,
)
from dryrack.cluster.initial_objects import add_objects
from dryrack.cluster.ports import SystemClock
from dryrack.cluster.process.modes import AuthorizationMode
from dryrack.cluster.rights import doctor as manifest
from dryrack.cluster.rights import plugin
from dryrack.kinds.documents import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.client.transport import Request, Response, Transport
    from dryrack.cluster.control_plane import ControlPlane
    from dryrack.kinds.raw import Raw

ANN = User("ann", ("system:authenticated",))
DRIVER = "gpu.example.com"
EVERYONE = [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": ANN.groups[0]}]


def grant(rules: list[Raw], name: str = "ann") -> list[Raw]:
    """Return a role for the user, and its binding."""
    version = "rbac.authorization.k8s.io/v1"
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    return [
        {"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
        {
            "apiVersion": version,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": reference,
            "subjects": EVERYONE,
        },
    ]


WEBHOOK = {
    "kind": "ValidatingWebhookConfiguration",
    "apiVersion": VALIDATING_WEBHOOKS.api_version,
    "metadata": {"name": "w"},
    "webhooks": [
        {
            "name": "w.example.com",
            "clientConfig": {"service": {"namespace": "default", "name": "hook"}},
            "rules": [
                {
                    "apiGroups": ["resource.k8s.io"],
                    "apiVersions": ["v1"],
                    "resources": ["resourceclaims"],
                    "operations": ["CREATE"],
                }
            ],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
        }
    ],
}


def control_plane(*objects: Raw) -> ControlPlane:
    plane = build_control_plane(ControlPlaneOptions(authorization=AuthorizationMode.RBAC))
    asyncio.run(add_objects(plane, read(yaml.safe_dump_all(objects), "test").documents))
    return plane


@dataclass(slots=True)
class Recorder:
    """A transport of a user that records requests, each with its status."""

    transport: Transport
    user: User = ANN
    requests: list[tuple[Request, int]] = field(default_factory=list)

    async def send(self, request: Request) -> Response:
        sent = msgspec.structs.replace(request, user=self.user)
        response = await self.transport.send(sent)
        self.requests.append((request, response.status))
        return response


def observe(plane: ControlPlane, subject: Subject) -> tuple[Recorder, ClusterFacts]:
    recorder = Recorder(plane.transport)
    facts = asyncio.run(observe_cluster(recorder, "https://test", subject, SystemClock()))
    assert isinstance(facts, ClusterFacts)
    return recorder, facts


def findings_of(facts: ClusterFacts, subject: Subject) -> dict[str, Finding]:
    machine = observe_machine(MachineQuestion(kubelet=Path("/none"), cdi=Path("/none")))
    return {each.check: each for each in examine(facts, machine, subject)}


RULES = yaml.safe_load(manifest())["rules"]
SERVICE = {
    "kind": "Service",
    "apiVersion": "v1",
    "metadata": {"name": "hook", "namespace": "default"},
    "spec": {"ports": [{"port": 443}]},
}


def test_the_permissions_of_the_manifest_are_enough_and_each_is_used() -> None:
    """Only the dry runs need a permission that the manifest leaves out."""
    plane = control_plane(*grant(RULES), WEBHOOK, SERVICE)
    subject = Subject(account="system:serviceaccount:kube-system:dryrack-scheduler")
    recorder, facts = observe(plane, subject)
    findings = findings_of(facts, subject)

    forbidden = {request.path for request, status in recorder.requests if status == 403}
    paths = [request.path.split("/") for request, _ in recorder.requests]
    unused = [
        name for rule in RULES for name in rule["resources"] if not any(name in p for p in paths)
    ]
    assert (forbidden, unused) == ({SLICES.path()}, [])
    unknown = {name for name, each in findings.items() if each.state is State.UNKNOWN}
    # A control plane in this process sends no time.
    assert unknown == {"feature-gates", "clock"}
    assert findings["webhooks"].message.endswith("Service default/hook has no ready endpoint")
    assert findings["rights-schedule"].state is State.WARNING


def test_nothing_is_stored() -> None:
    """Each write is a dry run or a review, and the store has no new object."""
    create = {"apiGroups": [SLICES.group], "resources": [SLICES.plural], "verbs": ["create"]}
    plane = control_plane(*grant([*RULES, create]))
    before = plane.store.revision
    recorder, facts = observe(plane, Subject())
    writes = {
        request.path.rpartition("/")[2]
        for request, _ in recorder.requests
        if request.method != "GET" and "dryRun=All" not in request.query
    }

    assert writes == {"selfsubjectreviews", "selfsubjectaccessreviews"}
    assert plane.store.revision == before
    assert facts.attempts[""].object is not None
    assert findings_of(facts, Subject())["feature-gates"].state is State.OK


def test_a_user_without_permissions_gets_no_ok_for_what_is_hidden() -> None:
    """The reason names the permission, and the fix grants it."""
    _, facts = observe(control_plane(), Subject())
    findings = findings_of(facts, Subject())

    assert findings["pools"].state is State.UNKNOWN
    assert 'User "ann" cannot list resource "resourceslices"' in findings["pools"].message
    assert findings["pools"].fix.startswith("dryrack doctor --print-rbac")
    assert findings["feature-gates"].state is State.UNKNOWN
    assert findings["rights-schedule"].state is State.WARNING


def test_the_permissions_of_an_account_are_those_of_its_manifest() -> None:
    """An account with the manifest of the plugin lacks nothing; without a verb, it is named."""
    documents = list(yaml.safe_load_all(plugin("")))
    account = next(each["metadata"] for each in documents if each["kind"] == "ServiceAccount")
    user = f"system:serviceaccount:{account['namespace']}:{account['name']}"
    subject = Subject(account=user, engines=frozenset({"plugin"}))
    complete = control_plane(*grant(RULES), *documents)
    for each in documents:
        for rule in each.get("rules", ()):
            if rule["resources"] == ["resourceslices"]:
                rule["verbs"].remove("delete")
    reduced = control_plane(*grant(RULES), *documents)

    assert findings_of(observe(complete, subject)[1], subject)["rights-plugin"].state is State.OK
    finding = findings_of(observe(reduced, subject)[1], subject)["rights-plugin"]
    assert finding.state is State.FAILED
    assert finding.message == f"user {user} may not: delete resourceslices"


def test_a_policy_that_refuses_the_driver_is_named() -> None:
    """The dry run of the driver meets the policy."""
    validation = {"expression": "object.spec.driver == 'a.example.com'", "message": "only a"}
    policy = {
        "apiVersion": POLICIES.api_version,
        "kind": POLICIES.kind,
        "metadata": {"name": "drivers"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [SLICES.group],
                        "apiVersions": ["v1"],
                        "resources": [SLICES.plural],
                        "operations": ["CREATE"],
                    }
                ]
            },
            "validations": [validation],
        },
    }
    binding = {
        "apiVersion": POLICY_BINDINGS.api_version,
        "kind": POLICY_BINDINGS.kind,
        "metadata": {"name": "drivers"},
        "spec": {"policyName": "drivers", "validationActions": ["Deny"]},
    }
    create = {"apiGroups": [SLICES.group], "resources": [SLICES.plural], "verbs": ["create"]}
    plane = control_plane(*grant([*RULES, create]), policy, binding)
    states = {}
    for driver in ("a.example.com", "b.example.com"):
        subject = Subject(driver=driver, engines=frozenset({"publish"}))
        states[driver] = findings_of(observe(plane, subject)[1], subject)["policies"]

    assert states["a.example.com"].state is State.OK
    assert states["b.example.com"].state is State.FAILED
    assert "'drivers'" in states["b.example.com"].message
    assert "only a" in states["b.example.com"].message


@pytest.fixture
def kubelet() -> Iterator[Path]:
    """A root directory of a kubelet; its path is short enough for sockets."""
    directory = Path(tempfile.mkdtemp(prefix="dr-"))
    for name in ("plugins_registry", f"plugins/{DRIVER}/checkpoints"):
        (directory / name).mkdir(parents=True)
    yield directory
    shutil.rmtree(directory)


def test_the_sockets_and_files_of_a_node_are_read(kubelet: Path, tmp_path: Path) -> None:
    """A socket without a program, and a CDI spec without a claim, are seen."""
    (kubelet / "plugins" / DRIVER / "checkpoints" / "uid-1.json").write_text("{}")
    for name in ("uid-1", "uid-2"):
        spec = tmp_path / f"{DRIVER}-{name}.json"
        spec.write_text(json.dumps({"cdiVersion": "0.5.0"}))
    (tmp_path / f"{DRIVER}-uid-3.json").write_text("{")
    (tmp_path / "vendor.json").write_text("{")
    registry = kubelet / "plugins_registry"
    with (
        closing(socket.socket(socket.AF_UNIX)) as live,
        closing(socket.socket(socket.AF_UNIX)) as old,
    ):
        live.bind(str(registry / f"{DRIVER}-reg.sock"))
        live.listen()
        old.bind(str(registry / "old-reg.sock"))
        facts = observe_machine(MachineQuestion(kubelet=kubelet, cdi=tmp_path))

    assert not isinstance(facts.sockets, Unknown)
    assert [each.is_listening for each in facts.sockets] == [True, False]
    assert (facts.drivers, facts.prepared) == ((DRIVER,), {DRIVER: frozenset({"uid-1"})})
    assert not isinstance(facts.specs, Unknown)
    assert [(each.uid, bool(each.problem)) for each in facts.specs] == [
        ("uid-1", False),
        ("uid-2", False),
        ("uid-3", True),
    ]
    assert facts.directory_problems == {}


def test_the_configuration_of_containerd_is_read(tmp_path: Path) -> None:
    """A file with an error is unknown, and not taken for the defaults."""
    config = tmp_path / "config.toml"
    question = MachineQuestion(kubelet=tmp_path, cdi=tmp_path, containerd_config=config)
    config.write_text('version = 2\n[plugins."io.containerd.grpc.v1.cri"]\nenable_cdi = true\n')
    assert observe_machine(question).containerd == {
        "version": 2,
        "plugins": {"io.containerd.grpc.v1.cri": {"enable_cdi": True}},
    }
    config.write_text("version = ")
    assert isinstance(observe_machine(question).containerd, Unknown)


def test_a_used_port_and_a_directory_without_permission_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in place of a directory prevents the state of clusters."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DRYRACK_HOME", str(tmp_path / "file" / "state"))
    with closing(socket.socket()) as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        monkeypatch.setattr(machine_reader, "PORTS", {port: "publish"})
        facts = observe_machine(MachineQuestion(kubelet=tmp_path, cdi=tmp_path))

    assert facts.used_ports == {port}
    assert facts.state_problem == f"{tmp_path / 'file'} is not a directory"
    assert facts.directory_problems == {
        str(tmp_path / "plugins"): "missing",
        str(tmp_path / "plugins_registry"): "missing",
    }

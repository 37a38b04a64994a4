"""Permissions to write the parts of a claim's status, with RBAC."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

import pytest
from tests.parity.server import Server
from tests.realcluster.controlplane import Options

from dryrack.client.transport import ADMIN, Request, User
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane
from dryrack.cluster.process.modes import AuthorizationMode

if TYPE_CHECKING:
    from tests.realcluster.fixtures import StartCluster

    from dryrack.kinds.raw import Raw


RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
ACCOUNT = "system:serviceaccount:kube-system:driver"
ON_N1 = User(ACCOUNT, extra={"authentication.kubernetes.io/node-name": ("n1",)})
ON_N2 = User(ACCOUNT, extra={"authentication.kubernetes.io/node-name": ("n2",)})
DEVICE = {"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
NODE = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
ALLOCATED = {
    "allocation": {
        "devices": {"results": [{"request": "gpu", **DEVICE}]},
        "nodeSelector": {"nodeSelectorTerms": [NODE]},
    }
}
TOLD = ALLOCATED | {"devices": [DEVICE | {"data": {"mac": "00:00"}}]}
STATUS = {"resources": ["resourceclaims/status"], "verbs": ["update", "patch"]}
BINDING = {"resources": ["resourceclaims/binding"], "verbs": ["update", "patch"]}


def driver(prefix: str, name: str = "gpu.example.com") -> Raw:
    verbs = [f"{prefix}:update", f"{prefix}:patch"]
    return {"resources": ["resourceclaims/driver"], "verbs": verbs, "resourceNames": [name]}


class Asked(Protocol):
    """A server, and requests of one user to it."""

    async def ask(self, method: str, target: str, body: Raw, who: User = ADMIN) -> Raw: ...


class Embedded:
    """A server in this process that decides by roles."""

    def __init__(self) -> None:
        plane = build_control_plane(ControlPlaneOptions(authorization=AuthorizationMode.RBAC))
        self._transport = plane.transport

    async def ask(self, method: str, target: str, body: Raw, who: User = ADMIN) -> Raw:
        path, _, query = target.partition("?")
        content = json.dumps(body).encode()
        headers = {"content-type": media_type(method)}
        request = Request(method, path, query, headers=headers, body=content, user=who)
        answer = await self._transport.send(request)
        assert isinstance(answer.body, bytes)
        return {"code": answer.status, **json.loads(answer.body)}


class Real:
    """A real server, whose admin speaks for others."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def ask(self, method: str, target: str, body: Raw, who: User = ADMIN) -> Raw:
        headers = {"Content-Type": media_type(method)}
        if who is not ADMIN:
            headers["Impersonate-User"] = who.name
            for key, values in who.extra.items():
                headers[f"Impersonate-Extra-{quote(key, safe='')}"] = values[0]
        content = json.dumps(body).encode()
        status, _, answer = self._server.send(method, target, headers=headers, content=content)
        return {"code": status, **json.loads(answer)}


def media_type(method: str) -> str:
    return f"application/{'merge-patch+json' if method == 'PATCH' else 'json'}"


def statuses(
    user: User,
    rules: list[Raw],
    *,
    before: Raw,
    after: Raw,
    asked: Asked | None = None,
    name: str = "c",
) -> list[Raw]:
    """Return the answers to an update and a patch of the status by a user with these rules."""
    server = asked or Embedded()

    async def run() -> list[Raw]:
        whole = [{"apiGroups": ["resource.k8s.io"], **each} for each in rules]
        role = {"metadata": {"name": name}, "rules": whole}
        await server.ask("POST", f"{RBAC}/clusterroles", role)
        group = "rbac.authorization.k8s.io"
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user.name}],
        }
        await server.ask("POST", f"{RBAC}/clusterrolebindings", binding)
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
        spec = {"devices": {"requests": [request]}}
        await server.ask("POST", CLAIMS, {"metadata": {"name": name}, "spec": spec})
        path = f"{CLAIMS}/{name}/status"
        made = await server.ask("PATCH", path, {"status": before})
        assert made.pop("code") == 200, made
        updated = await server.ask("PUT", f"{path}?dryRun=All", {**made, "status": after}, user)
        return [updated, await server.ask("PATCH", path, {"status": after}, user)]

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("user", "rules", "before", "after"),
    [
        (User("scheduler"), [STATUS, BINDING], {}, ALLOCATED),
        (ON_N1, [STATUS, driver("associated-node")], ALLOCATED, TOLD),
        (ON_N1, [STATUS, driver("arbitrary-node")], ALLOCATED, TOLD),
        (ON_N2, [STATUS, driver("arbitrary-node")], ALLOCATED, TOLD),
        # Nothing of it is changed.
        (ON_N2, [STATUS], TOLD, TOLD),
    ],
)
def test_who_has_the_right_of_a_part_writes_it(
    user: User, rules: list[Raw], before: Raw, after: Raw
) -> None:
    """The scheduler binds; a driver sets the status of its devices from its node or anywhere."""
    assert [each["code"] for each in statuses(user, rules, before=before, after=after)] == [200] * 2


def test_an_allocation_takes_the_right_to_bind() -> None:
    """In the whole cluster, and with the verb of the request; the sentence is the real server's."""
    found = statuses(User("joe"), [STATUS], before={}, after=ALLOCATED)

    assert [(each["code"], each["reason"]) for each in found] == [(422, "Invalid")] * 2
    for verb, each in zip(("update", "patch"), found, strict=True):
        assert each["message"] == (
            'ResourceClaim.resource.k8s.io "c" is invalid: status.allocation: Forbidden: changing '
            'status.allocation or status.reservedFor requires resource="resourceclaims/binding", '
            f'verb="{verb}" permission: resourceclaims.resource.k8s.io is forbidden: User "joe" '
            f'cannot {verb} resource "resourceclaims/binding" in API group "resource.k8s.io" at '
            "the cluster scope"
        )


@pytest.mark.parametrize(
    ("user", "rule", "verbs"),
    [
        (ON_N2, driver("associated-node"), ["arbitrary-node:update"]),
        (User("joe"), driver("associated-node"), ["arbitrary-node:update"]),
        (
            ON_N1,
            driver("associated-node", "other.example.com"),
            ["associated-node:update", "arbitrary-node:update"],
        ),
    ],
)
def test_devices_are_told_of_by_their_driver_alone(user: User, rule: Raw, verbs: list[str]) -> None:
    """By its name, and from another node only with the right for all nodes."""
    found = statuses(user, [STATUS, rule], before=ALLOCATED, after=TOLD)[0]

    assert found["details"]["causes"] == [
        {
            "reason": "FieldValueForbidden",
            "field": "status.devices",
            "message": (
                'Forbidden: changing status.devices requires resource="resourceclaims/driver", '
                f'verb="[{" ".join(verbs)}]" permission: resourceclaims.resource.k8s.io '
                f'"gpu.example.com" is forbidden: User "{user.name}" cannot {verbs[0]} resource '
                '"resourceclaims/driver" in API group "resource.k8s.io" in the namespace "default"'
            ),
        }
    ]


CASES: list[tuple[User, list[Raw], Raw, Raw]] = [
    (User("joe"), [STATUS], {}, ALLOCATED),
    (User("joe"), [STATUS], {}, TOLD),
    (User("jim"), [STATUS, BINDING], {}, ALLOCATED),
    (User("jim"), [STATUS, BINDING], TOLD, {}),
    (ON_N1, [STATUS], ALLOCATED, TOLD),
    (ON_N2, [STATUS], TOLD, ALLOCATED),
    (User("jo"), [STATUS, driver("associated-node")], ALLOCATED, TOLD),
    (User("jill"), [STATUS, driver("arbitrary-node")], ALLOCATED, TOLD),
    (User("jack"), [STATUS, driver("arbitrary-node", "other.example.com")], ALLOCATED, TOLD),
]


@pytest.mark.real
def test_a_real_server_draws_the_same_lines(start_cluster: StartCluster) -> None:
    """Codes, sentences and causes are the same for each of the cases."""
    options = Options(with_scheduler=False, without_controllers=("resourceclaim-controller",))
    real = Real(Server.of(start_cluster(options).plane.kubeconfig))

    def told(asked: Asked) -> list[tuple[int, str, Any]]:
        found = []
        for number, (user, rules, before, after) in enumerate(CASES):
            name = f"case-{number}"
            for each in statuses(user, rules, before=before, after=after, asked=asked, name=name):
                causes = (each.get("details") or {}).get("causes")
                found.append((each["code"], each.get("message", ""), causes))
        return found

    assert told(Embedded()) == told(real)

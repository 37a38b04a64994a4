"""Roles and bindings decide as in Kubernetes, reviews report it, and headers impersonate."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from multidict import CIMultiDict

from dryrack.apiserver.answer.status import StatusError
from dryrack.apiserver.authentication import ANONYMOUS, Authentication
from dryrack.apiserver.authentication.impersonation import impersonate
from dryrack.apiserver.authentication.tokens import Tokens
from dryrack.apiserver.authorization.attributes import Attributes, denial
from dryrack.apiserver.authorization.rbac import Policy, Sources
from dryrack.apiserver.authorization.roles import default_roles
from dryrack.client.timekeeping import VirtualClock
from dryrack.client.transport import ADMIN, Request, User
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import EmbeddedCluster, embedded
from dryrack.cluster.ports import SystemChance
from dryrack.cluster.process.modes import AuthorizationMode
from dryrack.cluster.signing import EllipticKey
from dryrack.kinds.releases import Release

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

RBAC = "/apis/rbac.authorization.k8s.io/v1"
JOE = User("joe", ("system:authenticated",))
ROBOT = User("system:serviceaccount:factory:robot", ("system:serviceaccounts",))


def role(name: str, *rules: Raw, namespace: str = "", labels: dict[str, str] | None = None) -> Raw:
    meta: Raw = {"name": name, "labels": labels or {}}
    return {"metadata": meta | ({"namespace": namespace} if namespace else {}), "rules": rules}


def binding(role_name: str, subject: Raw, *, kind: str = "ClusterRole", namespace: str = "") -> Raw:
    meta: Raw = {"name": f"{role_name}-binding"}
    return {
        "metadata": meta | ({"namespace": namespace} if namespace else {}),
        "roleRef": {"kind": kind, "name": role_name},
        "subjects": [subject],
    }


def pods(*verbs: str, **more: Any) -> Raw:
    return {"apiGroups": [""], "resources": ["pods"], "verbs": list(verbs), **more}


def asks(user: User, verb: str, **more: str) -> Attributes:
    return Attributes(user, verb, **{"resource": "pods", "namespace": "factory", **more})


USER_JOE = {"kind": "User", "name": "joe"}


def test_a_cluster_binding_holds_everywhere_and_a_binding_in_its_namespace() -> None:
    """A role that is bound in a namespace says nothing about the others, nor about all."""
    reader = role("reader", pods("list"))
    whole = Policy.of(
        Sources(cluster_roles=[reader], cluster_bindings=[binding("reader", USER_JOE)])
    )
    assert whole.allows(asks(JOE, "list"))
    assert whole.allows(asks(JOE, "list", namespace=""))
    assert not whole.allows(asks(JOE, "delete"))
    here = [binding("reader", USER_JOE, namespace="factory")]
    part = Policy.of(Sources(cluster_roles=[reader], bindings=here))
    assert part.allows(asks(JOE, "list"))
    assert not part.allows(asks(JOE, "list", namespace="office"))
    assert not part.allows(asks(JOE, "list", namespace=""))


def test_a_role_is_looked_up_where_it_is_bound() -> None:
    """A Role of the same name in another namespace, or a ClusterRole, is another role."""
    sources = Sources(
        roles=[
            role("r", pods("get"), namespace="factory"),
            role("r", pods("*"), namespace="office"),
        ],
        cluster_roles=[role("r", pods("*"))],
        bindings=[binding("r", USER_JOE, kind="Role", namespace="factory")],
    )
    policy = Policy.of(sources)
    assert policy.allows(asks(JOE, "get"))
    assert not policy.allows(asks(JOE, "list"))


@pytest.mark.parametrize(
    ("subject", "user"),
    [
        ({"kind": "Group", "name": "system:authenticated"}, JOE),
        ({"kind": "ServiceAccount", "name": "robot", "namespace": "factory"}, ROBOT),
        ({"kind": "User", "name": ROBOT.name}, ROBOT),
    ],
)
def test_subjects_are_users_groups_and_accounts(subject: Raw, user: User) -> None:
    """Each kind of subject matches its user, and no other."""
    sources = Sources(
        cluster_roles=[role("r", pods("get"))], cluster_bindings=[binding("r", subject)]
    )
    policy = Policy.of(sources)
    assert policy.allows(asks(user, "get"))
    assert not policy.allows(asks(User("somebody"), "get"))


@pytest.mark.parametrize(
    ("rule", "allowed", "refused"),
    [
        (pods("get", resourceNames=["a"]), {"name": "a"}, {"name": "b"}),
        (pods("get", resources=["pods/log"]), {"subresource": "log"}, {"subresource": ""}),
        (pods("get", resources=["pods"]), {"subresource": ""}, {"subresource": "log"}),
        (pods("get", resources=["*/status"]), {"subresource": "status"}, {"subresource": "log"}),
        (pods("get", resources=["*"]), {"subresource": "log"}, {"group": "apps"}),
        (pods("get", apiGroups=["*"]), {"group": "apps"}, {"resource": "nodes"}),
    ],
)
def test_rules_match_as_in_kubernetes(rule: Raw, allowed: Raw, refused: Raw) -> None:
    """Names, subresources and wildcards, each with what it does not mean."""
    sources = Sources(cluster_roles=[role("r", rule)], cluster_bindings=[binding("r", USER_JOE)])
    policy = Policy.of(sources)
    assert policy.allows(asks(JOE, "get", **allowed))
    assert not policy.allows(asks(JOE, "get", **refused))


def test_paths_match_by_their_beginning() -> None:
    """A star at the end covers what follows; without one the path is exact."""
    rule = {"nonResourceURLs": ["/openapi/*", "/version"], "verbs": ["get"]}
    sources = Sources(cluster_roles=[role("r", rule)], cluster_bindings=[binding("r", USER_JOE)])
    policy = Policy.of(sources)
    assert policy.allows(Attributes(JOE, "get", path="/openapi/v3/api"))
    assert policy.allows(Attributes(JOE, "get", path="/version"))
    assert not policy.allows(Attributes(JOE, "get", path="/version/x"))
    assert not policy.allows(Attributes(JOE, "post", path="/version"))


def test_aggregated_roles_have_the_rules_of_others() -> None:
    """By labels, through other aggregated roles, and around a circle without getting lost."""
    sub = {"clusterRoleSelectors": [{"matchLabels": {"to": "view"}}]}
    up = {"clusterRoleSelectors": [{"matchLabels": {"to": "edit"}}]}
    roles = [
        role("view", labels={"to": "edit"}) | {"aggregationRule": sub},
        role("edit", labels={"to": "view"}) | {"aggregationRule": up},
        role("part", pods("get"), labels={"to": "view"}),
    ]
    policy = Policy.of(Sources(cluster_roles=roles, cluster_bindings=[binding("edit", USER_JOE)]))
    assert policy.allows(asks(JOE, "get"))
    assert not policy.allows(asks(JOE, "list"))


@pytest.mark.parametrize("selectors", ["alike", "different"])
def test_roles_that_all_select_each_other_are_visited_once(selectors: str) -> None:
    """A circle of any size takes no longer than its selections; along all paths, 15 do not end."""
    roles = [role("part", pods("get"), labels={"to": "all"})]
    for number in range(200):
        other = str(number if selectors == "different" else 0)
        never = {"key": "to", "operator": "NotIn", "values": [f"none-{other}"]}
        rule = {"clusterRoleSelectors": [{"matchExpressions": [never]}]}
        roles.append(role(f"r{number}", labels={"to": "all"}) | {"aggregationRule": rule})
    policy = Policy.of(Sources(cluster_roles=roles, cluster_bindings=[binding("r7", USER_JOE)]))

    assert policy.allows(asks(JOE, "get"))
    assert not policy.allows(asks(JOE, "list"))
    assert len(list(policy.rules(JOE, "factory"))) == 1


def test_masters_may_do_anything() -> None:
    """Members of system:masters may do anything, whatever roles are stored."""
    assert Policy.of(Sources()).allows(asks(ADMIN, "delete"))
    assert not Policy.of(Sources()).allows(asks(JOE, "get"))


@pytest.mark.parametrize("release", Release, ids=lambda release: release.value)
def test_the_default_roles_are_those_of_kubernetes(release: Release) -> None:
    """People find admin, edit, view, and what discovery needs."""
    names = {each["metadata"]["name"] for each in default_roles(release)}
    assert {"cluster-admin", "admin", "edit", "view", "system:discovery"} <= names


def test_denials_are_told_as_kubernetes_tells_them() -> None:
    """The sentence that people search for."""
    asked = Attributes(JOE, "list", group="apps", resource="deployments", namespace="default")
    assert denial(asked) == (
        'User "joe" cannot list resource "deployments" in API group "apps" in the namespace '
        '"default"'
    )
    path = Attributes(JOE, "get", path="/metrics<")
    assert denial(path) == 'User "joe" cannot get path "/metrics&lt;"'


class Rbac:
    """A cluster that decides by roles, asked by several people."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster

    async def ask(
        self, method: str, path: str, body: Raw | None = None, *, user: User, query: str = ""
    ) -> Raw:
        content = json.dumps(body).encode() if body is not None else b""
        headers = {"accept": "application/json", "content-type": "application/json"}
        request = Request(method, path, query, headers=headers, body=content, user=user)
        answer = await self._cluster.transport.send(request)
        assert isinstance(answer.body, bytes)
        return {"code": answer.status, **json.loads(answer.body)}


async def _grant(cluster: Rbac, rule: Raw) -> None:
    name = {"metadata": {"name": "reader", "namespace": "default"}}
    made = await cluster.ask(
        "POST", f"{RBAC}/namespaces/default/roles", name | {"rules": [rule]}, user=ADMIN
    )
    assert made["code"] == 201, made
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", **USER_JOE}
    body = name | {"roleRef": reference, "subjects": [subject]}
    made = await cluster.ask("POST", f"{RBAC}/namespaces/default/rolebindings", body, user=ADMIN)
    assert made["code"] == 201, made


def _rbac_scenario(scenario: Any) -> None:
    async def run() -> None:
        options = ControlPlaneOptions(authorization=AuthorizationMode.RBAC)
        async with embedded(options, engines=()) as cluster:
            await scenario(Rbac(cluster))

    asyncio.run(run())


def test_a_cluster_enforces_its_roles_as_they_change() -> None:
    """Without a role a user may do nothing; with a role exactly what it allows."""

    async def scenario(cluster: Rbac) -> None:
        where = "/api/v1/namespaces/default/pods"
        refused = await cluster.ask("GET", where, user=JOE)
        assert (refused["code"], refused["reason"]) == (403, "Forbidden")
        assert refused["message"] == (
            'pods is forbidden: User "joe" cannot list resource "pods" in API group "" in the '
            'namespace "default"'
        )
        await _grant(cluster, pods("list"))
        assert (await cluster.ask("GET", where, user=JOE))["code"] == 200
        refused = await cluster.ask("POST", where, {"metadata": {"name": "x"}}, user=JOE)
        assert refused["code"] == 403
        assert (await cluster.ask("GET", "/api/v1/pods", user=JOE))["code"] == 403

    _rbac_scenario(scenario)


ROLES = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"]}
GRANTED = (
    pods("get", "list"),
    {"apiGroups": ["apps"], "resources": ["*/scale"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"], "verbs": ["get"]},
    {"nonResourceURLs": ["/logs/*"], "verbs": ["get"]},
    {**ROLES, "verbs": ["create", "update", "get", "patch"]},
)


def _escalation(*lines: str) -> str:
    return (
        'clusterroles.rbac.authorization.k8s.io "more" is forbidden: user "joe" '
        '(groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently '
        "held:\n" + "\n".join(lines)
    )


@pytest.mark.parametrize(
    ("rules", "missing"),
    [
        ([pods("get")], ()),
        ([pods("list", "get"), pods("get", resourceNames=["a"])], ()),
        ([{"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get"]}], ()),
        ([{"nonResourceURLs": ["/logs/kubelet"], "verbs": ["get"]}], ()),
        (
            [pods("get", "watch", "delete")],
            ('{APIGroups:[""], Resources:["pods"], Verbs:["watch" "delete"]}',),
        ),
        (
            [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
            ('{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',),
        ),
        (
            [
                {"nonResourceURLs": ["/", "/logs"], "verbs": ["get", "post"]},
                pods("*", resourceNames=["a", "b"]),
            ],
            (
                '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["*"]}',
                '{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["*"]}',
                '{NonResourceURLs:["/"], Verbs:["get"]}',
                '{NonResourceURLs:["/"], Verbs:["post"]}',
                '{NonResourceURLs:["/logs"], Verbs:["get"]}',
                '{NonResourceURLs:["/logs"], Verbs:["post"]}',
            ),
        ),
    ],
)
def test_nobody_grants_what_he_does_not_have(rules: list[Raw], missing: tuple[str, ...]) -> None:
    """A role is refused with what its writer lacks, in the real server's words."""

    async def scenario(cluster: Rbac) -> None:
        await _grant_everywhere(cluster, "writer", *GRANTED)
        body = {"metadata": {"name": "more"}, "rules": rules}
        answer = await cluster.ask("POST", f"{RBAC}/clusterroles", body, user=JOE)
        if missing:
            assert (answer["code"], answer["message"]) == (403, _escalation(*missing))
        else:
            assert answer["code"] == 201, answer

    _rbac_scenario(scenario)


async def _grant_everywhere(cluster: Rbac, name: str, *rules: Raw) -> None:
    role = {"metadata": {"name": name}, "rules": rules}
    made = await cluster.ask("POST", f"{RBAC}/clusterroles", role, user=ADMIN)
    assert made["code"] == 201, made
    body = {
        "metadata": {"name": name},
        "roleRef": {"kind": "ClusterRole", "name": name},
        "subjects": [USER_JOE],
    }
    made = await cluster.ask("POST", f"{RBAC}/clusterrolebindings", body, user=ADMIN)
    assert made["code"] == 201, made


def test_nobody_binds_what_he_does_not_have() -> None:
    """The verb `bind` or system:masters allow it; a missing role is an error."""

    async def scenario(cluster: Rbac) -> None:
        await _grant_everywhere(cluster, "writer", *GRANTED)
        where = f"{RBAC}/namespaces/default/rolebindings"

        async def bound(role: str, user: User = JOE) -> Raw:
            body = {
                "metadata": {"name": f"{role}-{user.name.replace(':', '-')}"},
                "roleRef": {"kind": "ClusterRole", "name": role},
                "subjects": [USER_JOE],
            }
            return await cluster.ask("POST", where, body, user=user)

        assert (await bound("writer"))["code"] == 201
        refused = await bound("view")
        assert refused["code"] == 403
        assert "is attempting to grant RBAC permissions not currently held:" in refused["message"]
        gone = await bound("none")
        assert (gone["code"], gone["message"]) == (
            404,
            'rolebindings.rbac.authorization.k8s.io "none" not found',
        )
        assert (await bound("view", ADMIN))["code"] == 201
        await _grant_everywhere(
            cluster, "binder", {**ROLES, "resourceNames": ["edit"], "verbs": ["bind"]}
        )
        assert (await bound("edit"))["code"] == 201
        assert (await bound("cluster-admin"))["code"] == 403

    _rbac_scenario(scenario)


def test_escalation_is_a_right_of_its_own() -> None:
    """The verb `escalate` allows any rule; aggregation needs all permissions."""

    async def scenario(cluster: Rbac) -> None:
        await _grant_everywhere(cluster, "writer", *GRANTED)
        where = f"{RBAC}/clusterroles"
        mine = {"metadata": {"name": "mine"}, "rules": [pods("get")]}
        assert (await cluster.ask("POST", where, mine, user=JOE))["code"] == 201
        more = {**mine, "rules": [pods("*")]}
        assert (await cluster.ask("PUT", f"{where}/mine", more, user=JOE))["code"] == 403
        selector = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
        gathering = {"metadata": {"name": "all"}, "aggregationRule": selector}
        refused = await cluster.ask("POST", where, gathering, user=JOE)
        assert (refused["code"], refused["message"]) == (
            403,
            (
                'clusterroles.rbac.authorization.k8s.io "all" is forbidden: must have '
                "cluster-admin privileges to use the aggregationRule"
            ),
        )
        await _grant_everywhere(cluster, "escalator", {**ROLES, "verbs": ["escalate"]})
        assert (await cluster.ask("PUT", f"{where}/mine", more, user=JOE))["code"] == 200
        assert (await cluster.ask("POST", where, gathering, user=JOE))["code"] == 201

    _rbac_scenario(scenario)


def test_a_list_of_one_name_is_allowed_by_that_name() -> None:
    """A field selector that leaves one name makes a list or a watch one of that object."""

    async def scenario(cluster: Rbac) -> None:
        await _grant(cluster, pods("list") | {"resourceNames": ["mine"]})
        where = "/api/v1/namespaces/default/pods"

        async def code(query: str) -> int:
            return int((await cluster.ask("GET", where, query=query, user=JOE))["code"])

        assert await code("fieldSelector=metadata.name%3Dmine") == 200
        assert await code("fieldSelector=metadata.name%3Dmine,status.phase%3DRunning") == 200
        assert await code("fieldSelector=metadata.name%3Dother") == 403
        assert await code("fieldSelector=metadata.name%21%3Dmine") == 403
        assert await code("fieldSelector=nonsense") == 403
        assert await code("") == 403

    _rbac_scenario(scenario)


def test_paths_that_are_no_resources_are_guarded_too() -> None:
    """Every authenticated user may read discovery; metrics need permission."""

    async def scenario(cluster: Rbac) -> None:
        assert (await cluster.ask("GET", "/api", user=JOE))["code"] == 200
        refused = await cluster.ask("GET", "/metrics", user=JOE)
        assert (refused["code"], refused["message"]) == (
            403,
            'forbidden: User "joe" cannot get path "/metrics"',
        )

    _rbac_scenario(scenario)


def test_reviews_tell_what_would_be_decided() -> None:
    """About oneself, about others, and everything one may do, with the binding that allows it."""

    async def scenario(cluster: Rbac) -> None:
        await _grant(cluster, pods("list"))
        group = "/apis/authorization.k8s.io/v1"
        spec: Raw = {
            "resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "default"}
        }
        mine = await cluster.ask(
            "POST", f"{group}/selfsubjectaccessreviews", {"spec": spec}, user=JOE
        )
        assert mine["status"] == {
            "allowed": True,
            "reason": "RBAC: allowed by "
            'RoleBinding "reader/default" of Role "reader" to User "joe"',
        }
        theirs = {"spec": spec | {"user": "ann"}}
        answer = await cluster.ask("POST", f"{group}/subjectaccessreviews", theirs, user=ADMIN)
        assert answer["status"] == {"allowed": False}
        rules = {"spec": {"namespace": "default"}}
        answer = await cluster.ask("POST", f"{group}/selfsubjectrulesreviews", rules, user=JOE)
        assert pods("list") in [
            {key: rule[key] for key in ("apiGroups", "resources", "verbs")}
            for rule in answer["status"]["resourceRules"]
        ]

    _rbac_scenario(scenario)


def test_a_review_must_ask_one_thing() -> None:
    """A review needs either a resource or a path, and a subject."""

    async def scenario(cluster: Rbac) -> None:
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        answer = await cluster.ask("POST", path, {"spec": {"user": "joe"}}, user=ADMIN)
        assert (answer["code"], answer["details"]["causes"][0]["field"]) == (
            422,
            "spec.resourceAttributes",
        )
        spec = {"nonResourceAttributes": {"verb": "get", "path": "/"}}
        answer = await cluster.ask("POST", path, {"spec": spec}, user=ADMIN)
        assert [each["field"] for each in answer["details"]["causes"]] == ["spec.user"]

    _rbac_scenario(scenario)


def everything(asked: Attributes) -> bool:
    return True


def nothing(asked: Attributes) -> bool:
    return False


def test_a_borrowed_name_brings_its_groups() -> None:
    """Service accounts imply groups; all users but the anonymous one are authenticated."""
    headers = CIMultiDict({"Impersonate-User": ROBOT.name})
    assert impersonate(ADMIN, headers, everything).groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:factory",
        "system:authenticated",
    )
    headers = CIMultiDict([("impersonate-user", "ann"), ("Impersonate-Group", "a")])
    headers.add("impersonate-group", "b")
    headers.add("Impersonate-Extra-Scopes%2Fx", "view")
    ann = impersonate(ADMIN, headers, everything)
    assert ann == User("ann", ("a", "b", "system:authenticated"), "", {"scopes/x": ("view",)})
    assert impersonate(ADMIN, CIMultiDict(), nothing) is ADMIN


def test_borrowing_needs_permission_for_each_part() -> None:
    """Users, groups and accounts are asked about as resources; a group alone is a mistake."""
    with pytest.raises(StatusError, match='cannot impersonate resource "users"') as refused:
        impersonate(JOE, CIMultiDict({"Impersonate-User": "ann"}), nothing)
    assert refused.value.status.code == 403
    asked: list[Attributes] = []

    def remember(each: Attributes) -> bool:
        asked.append(each)
        return True

    headers = CIMultiDict([("Impersonate-User", ROBOT.name), ("Impersonate-Group", "g")])
    impersonate(JOE, headers, remember)
    assert [(each.resource, each.namespace, each.name) for each in asked] == [
        ("serviceaccounts", "factory", "robot"),
        ("groups", "", "g"),
    ]
    with pytest.raises(StatusError, match="without impersonating a user"):
        impersonate(JOE, CIMultiDict({"Impersonate-Group": "g"}), everything)


class Nowhere:
    """A store with nothing in it."""

    def get(self, resource: str, namespace: str, name: str) -> Raw | None:
        return None


def test_certificates_tokens_and_strangers() -> None:
    """A certificate names user and groups; a wrong token is refused even where none is needed."""
    tokens = Tokens(EllipticKey.fresh(), Nowhere(), clock=VirtualClock(), chance=SystemChance())
    door = Authentication(tokens, everything)
    subject = ((("organizationName", "system:masters"),), (("commonName", "root"),))
    known = door.user_of("/api", CIMultiDict(), {"subject": subject})
    assert known == User("root", ("system:masters", "system:authenticated"))
    assert door.user_of("/livez/ping", CIMultiDict(), {}) == ANONYMOUS
    for path, headers in (
        ("/api", {}),
        ("/livezzz", {}),
        ("/healthz", {"Authorization": "Bearer x.y.z"}),
        ("/api", {"Authorization": "Basic cm9vdDpyb290"}),
    ):
        with pytest.raises(StatusError) as refused:
            door.user_of(path, CIMultiDict(headers), {})
        assert refused.value.status.code == 401

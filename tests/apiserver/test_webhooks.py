"""
Admission webhooks: when they are asked, what they are asked, and what comes of their answers.

The webhook is a program at loopback with a certificate of its own authority, as one that is
developed against the cluster.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer
from tests.apiserver.whole_plane import WholePlane

from dryrack.apiserver.webhooks.admission_reviews import ReviewRequest, Unanswered, read_answer
from dryrack.cluster import certificates

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from dryrack.cluster.certificates import Keys
    from dryrack.kinds.raw import Raw


REGISTRATIONS = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
ALLOWED: Raw = {"allowed": True}
MERGE = "application/merge-patch+json"


def rule(*resources: str) -> Raw:
    about = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"]}
    return {**about, "resources": list(resources)}


def patch(*operations: Raw) -> Raw:
    """An answer that changes the object."""
    encoded = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


@dataclass
class Program:
    """A webhook with a given answer that records its requests."""

    answer: Callable[[Raw], Raw | Awaitable[Raw]]
    url: str = ""
    asked: list[Raw] = field(default_factory=list)

    async def respond(self, request: web.BaseRequest) -> web.Response:
        review = await request.json()
        asked = review["request"]
        self.asked.append(asked)
        found = self.answer(asked)
        response = found if isinstance(found, dict) else await found
        kind = {"kind": review["kind"], "apiVersion": review["apiVersion"]}
        return web.json_response({**kind, "response": {"uid": asked["uid"], **response}})


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return certificates.ensure(tmp_path_factory.mktemp("keys"), ["127.0.0.1"], time.time())


@dataclass
class Scene:
    """A cluster, and webhooks that run beside it."""

    keys: Keys
    plane: WholePlane = field(default_factory=WholePlane)

    @asynccontextmanager
    async def program(
        self, answer: Callable[[Raw], Raw | Awaitable[Raw]]
    ) -> AsyncIterator[Program]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.keys.server.certificate, self.keys.server.key)
        program = Program(answer)
        server = RawTestServer(program.respond, scheme="https", host="127.0.0.1")
        await server.start_server(ssl=context)
        program.url = str(server.make_url("/review"))
        try:
            yield program
        finally:
            await server.close()

    async def register(self, kind: str, url: str, service: Raw | None = None, **more: Any) -> None:
        authority = base64.b64encode(self.keys.authority.certificate.read_bytes()).decode()
        webhook = {
            "name": f"{kind}.example.com",
            "clientConfig": {
                **({"service": service} if service else {"url": url}),
                "caBundle": authority,
            },
            "rules": [rule("configmaps")],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **more,
        }
        path = f"{REGISTRATIONS}/{kind}webhookconfigurations"
        made = await self.plane.asked(
            "POST", path, {"metadata": {"name": kind}, "webhooks": [webhook]}
        )
        assert (made.status, made.warnings) == (201, ()), made


def config_map(**metadata: Any) -> Raw:
    return {"metadata": {"name": "m", **metadata}, "data": {"a": "1"}}


@pytest.fixture
def scene(keys: Keys) -> Scene:
    return Scene(keys)


async def test_a_mutating_webhook_changes_what_is_stored(scene: Scene) -> None:
    """Its patch is applied, what no kind has is dropped, and the rest completed as ever."""
    container = {"name": "sidecar", "image": "s", "nonsense": 1}
    added = patch({"op": "add", "path": "/spec/containers/-", "value": container})
    async with scene.program(lambda _: added) as program:
        await scene.register("mutating", program.url, rules=[rule("pods")])
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        made = await scene.plane.asked("POST", PODS, pod)
    assert made.status == 201
    sidecar = made.body["spec"]["containers"][1]
    assert (sidecar["name"], sidecar["imagePullPolicy"]) == ("sidecar", "Always")
    assert "nonsense" not in sidecar
    assert made.body == (await scene.plane.asked("GET", f"{PODS}/p")).body


async def test_a_webhook_is_told_who_wants_to_do_what(scene: Scene) -> None:
    """The AdmissionRequest of a create: the object as it was admitted, and no old one."""
    async with scene.program(lambda _: ALLOWED) as program:
        await scene.register("validating", program.url)
        await scene.plane.asked("POST", MAPS, config_map())
    [asked] = program.asked
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert asked["kind"] == asked["requestKind"] == kind
    assert asked["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert (asked["operation"], asked["namespace"]) == ("CREATE", "default")
    assert asked["name"] == "m"
    assert "system:masters" in asked["userInfo"]["groups"]
    assert (asked["object"]["kind"], asked["object"]["data"]) == ("ConfigMap", {"a": "1"})
    assert (asked["oldObject"], asked["dryRun"]) == (None, False)


async def test_what_is_made_up_for_an_object_is_what_webhooks_were_told(scene: Scene) -> None:
    """A write begins again after each answer, and yet has one name and one uid."""
    async with scene.program(lambda _: ALLOWED) as program:
        await scene.register("mutating", program.url)
        await scene.register("validating", program.url)
        body = {"metadata": {"generateName": "m-"}}
        made = (await scene.plane.asked("POST", MAPS, body)).body
    mutating, validating = program.asked
    assert "name" not in mutating["object"]["metadata"]
    assert validating["object"]["metadata"]["name"] == made["metadata"]["name"]
    assert validating["object"]["metadata"]["uid"] == made["metadata"]["uid"]


@pytest.mark.parametrize("kind", ["mutating", "validating"])
async def test_a_webhook_denies_a_write(scene: Scene, kind: str) -> None:
    """The code and the reason are its own, and nothing is stored."""
    status = {"code": 403, "reason": "Forbidden", "message": "not today"}
    async with scene.program(lambda _: {"allowed": False, "status": status}) as program:
        await scene.register(kind, program.url)
        refused = await scene.plane.asked("POST", MAPS, config_map())
    assert (refused.status, refused.body["reason"]) == (403, "Forbidden")
    assert refused.message == (
        f'admission webhook "{kind}.example.com" denied the request: not today'
    )
    assert (await scene.plane.asked("GET", f"{MAPS}/m")).status == 404


POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


async def test_a_mutating_webhook_completes_a_binding(scene: Scene) -> None:
    """Labels that it adds to the Binding are the pod's, as it gets its node."""
    await scene.plane.asked("POST", PODS, POD)
    added = patch({"op": "add", "path": "/metadata/labels", "value": {"rack": "r1"}})
    async with scene.program(lambda _: added) as program:
        await scene.register("mutating", program.url, rules=[rule("pods/binding")])
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
        bound = await scene.plane.asked("POST", f"{PODS}/p/binding", binding)
    [asked] = program.asked
    assert bound.status == 201, bound.message
    assert (asked["kind"]["kind"], asked["subResource"]) == ("Binding", "binding")
    pod = (await scene.plane.asked("GET", f"{PODS}/p")).body
    assert (pod["spec"]["nodeName"], pod["metadata"]["labels"]) == ("n", {"rack": "r1"})


async def test_a_validating_webhook_denies_an_eviction_and_a_scale(scene: Scene) -> None:
    """It sees the Eviction and the Scale, and neither is carried out."""
    controllers = PODS.replace("pods", "replicationcontrollers")
    await scene.plane.asked("POST", PODS, POD)
    template = {"metadata": {"labels": {"app": "a"}}, "spec": POD["spec"]}
    controller = {"metadata": {"name": "rc"}, "spec": {"replicas": 2, "template": template}}
    await scene.plane.asked("POST", controllers, controller)
    async with scene.program(lambda _: {"allowed": False}) as program:
        parts = rule("pods/eviction", "replicationcontrollers/scale")
        await scene.register("validating", program.url, rules=[parts])
        evicted = await scene.plane.asked("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}})
        scale = {"metadata": {"name": "rc"}, "spec": {"replicas": 7}}
        scaled = await scene.plane.asked("PUT", f"{controllers}/rc/scale", scale)
    first, second = program.asked
    assert (evicted.status, scaled.status) == (400, 400)
    assert (first["kind"]["kind"], first["operation"]) == ("Eviction", "CREATE")
    assert (second["kind"]["kind"], second["operation"]) == ("Scale", "UPDATE")
    assert second["object"]["spec"] == {"replicas": 7}
    assert second["oldObject"]["spec"] == {"replicas": 2}
    assert (await scene.plane.asked("GET", f"{PODS}/p")).status == 200
    found = (await scene.plane.asked("GET", f"{controllers}/rc")).body
    assert found["spec"]["replicas"] == 2


async def test_a_service_may_say_where_its_program_is(tmp_path: Path) -> None:
    """The webhook shows a certificate for the Service, as it would in the cluster."""
    own = certificates.ensure(tmp_path, ["hooks.operators.svc"], time.time(), lasts=False)
    scene = Scene(own)

    async with scene.program(lambda _: {"allowed": False}) as program:
        address = program.url.removeprefix("https://").partition("/")[0]
        await scene.plane.asked("POST", "/api/v1/namespaces", {"metadata": {"name": "operators"}})
        service = {
            "metadata": {"name": "hooks", "annotations": {"dryrack.dev/address": address}},
            "spec": {"ports": [{"port": 443}]},
        }
        await scene.plane.asked("POST", "/api/v1/namespaces/operators/services", service)
        named = {"name": "hooks", "namespace": "operators", "path": "/review"}
        await scene.register("validating", "", service=named)
        refused = await scene.plane.asked("POST", MAPS, config_map())
    assert refused.message.endswith("denied the request without explanation")
    assert len(program.asked) == 1


@pytest.mark.parametrize("address", ["127.0.0.1:94x", ":9443", "127.0.0.1:99999", "two words"])
async def test_an_address_that_is_none_is_told_to_who_writes(scene: Scene, address: str) -> None:
    """A slip in the annotation of a Service is a webhook that cannot be called."""
    service = {
        "metadata": {"name": "hooks", "annotations": {"dryrack.dev/address": address}},
        "spec": {"ports": [{"port": 443}]},
    }
    await scene.plane.asked("POST", "/api/v1/namespaces/default/services", service)
    await scene.register("validating", "", service={"name": "hooks", "namespace": "default"})
    refused = await scene.plane.asked("POST", MAPS, config_map())
    assert refused.status == 500
    assert f'failed to call webhook: Post "https://{address}/' in refused.message


async def test_a_denial_without_a_word_is_a_bad_request(scene: Scene) -> None:
    """As the real server has it."""
    async with scene.program(lambda _: {"allowed": False}) as program:
        await scene.register("validating", program.url)
        refused = await scene.plane.asked("POST", MAPS, config_map())
    assert refused.status == 400
    assert refused.message.endswith("denied the request without explanation")


async def test_a_deletion_is_reviewed(scene: Scene) -> None:
    """The review has only the old object; a denied object stays."""
    await scene.plane.asked("POST", MAPS, config_map())
    async with scene.program(lambda _: {"allowed": False}) as program:
        await scene.register("validating", program.url)
        refused = await scene.plane.asked("DELETE", f"{MAPS}/m")
    [asked] = program.asked
    assert (asked["operation"], asked["object"]) == ("DELETE", None)
    assert asked["oldObject"]["data"] == {"a": "1"}
    assert refused.status == 400
    assert (await scene.plane.asked("GET", f"{MAPS}/m")).status == 200


async def test_all_of_a_collection_are_reviewed_before_the_first_is_deleted(scene: Scene) -> None:
    """The answer names all that were there, however often the request begins again."""
    names = [f"m{number:02}" for number in range(21)]
    for name in names:
        await scene.plane.asked("POST", MAPS, config_map(name=name))
    async with scene.program(lambda _: ALLOWED) as program:
        await scene.register("validating", program.url)
        deleted = await scene.plane.asked("DELETE", MAPS)
    assert sorted(each["name"] for each in program.asked) == names
    assert [each["metadata"]["name"] for each in deleted.body["items"]] == names
    assert (await scene.plane.asked("GET", MAPS)).body["items"] == []


async def test_a_webhook_is_asked_anew_if_the_object_changed_meanwhile(scene: Scene) -> None:
    """The stored object was reviewed as it is, with the change of another writer."""
    await scene.plane.asked("POST", MAPS, config_map())

    async def overtake(asked: Raw) -> Raw:
        if asked["oldObject"]["data"] == {"a": "1"} and "b" in asked["object"]["data"]:
            await scene.plane.asked("PATCH", f"{MAPS}/m", {"data": {"a": "2"}}, content_type=MERGE)
        return ALLOWED

    async with scene.program(overtake) as program:
        await scene.register("validating", program.url)
        made = await scene.plane.asked(
            "PATCH", f"{MAPS}/m", {"data": {"b": "3"}}, content_type=MERGE
        )
    assert made.body["data"] == {"a": "2", "b": "3"}
    assert program.asked[-1]["oldObject"]["data"] == {"a": "2"}
    assert program.asked[-1]["object"]["data"] == {"a": "2", "b": "3"}


@pytest.mark.parametrize(("policy", "code"), [("Fail", 500), ("Ignore", 201)])
async def test_a_webhook_that_is_not_there_fails_or_is_ignored(
    scene: Scene, policy: str, code: int
) -> None:
    """Its failurePolicy decides; a refusal says which webhook, where, and what happened."""
    async with scene.program(lambda _: ALLOWED) as program:
        pass
    await scene.register("validating", program.url, failurePolicy=policy)
    made = await scene.plane.asked("POST", MAPS, config_map())
    assert made.status == code
    if code != 201:
        assert made.message == (
            'Internal error occurred: failed calling webhook "validating.example.com": failed '
            f'to call webhook: Post "{program.url}?timeout=10s": connection refused'
        )


@pytest.mark.parametrize(
    "unmet",
    [
        {"rules": [rule("secrets")]},
        {"objectSelector": {"matchLabels": {"a": "b"}}},
        {"namespaceSelector": {"matchLabels": {"a": "b"}}},
        {"matchConditions": [{"name": "c", "expression": "object.metadata.name == 'other'"}]},
    ],
)
async def test_a_webhook_is_asked_about_nothing_else(scene: Scene, unmet: Raw) -> None:
    """By its rules, selectors and conditions; it need not even be there."""
    await scene.register("validating", "https://127.0.0.1:1/", **unmet)
    assert (await scene.plane.asked("POST", MAPS, config_map())).status == 201


async def test_a_registration_is_never_reviewed(scene: Scene) -> None:
    """A webhook that is not there could not be taken back otherwise."""
    everything = {**rule("*"), "apiGroups": ["*"], "apiVersions": ["*"]}
    await scene.register("mutating", "https://127.0.0.1:1/", rules=[everything])
    path = f"{REGISTRATIONS}/mutatingwebhookconfigurations/mutating"
    assert (await scene.plane.asked("DELETE", path)).status == 200


async def test_a_dry_run_asks_only_who_says_that_it_does_nothing_else(scene: Scene) -> None:
    """One with side effects is not asked, and the request refused."""
    await scene.register("validating", "https://127.0.0.1:1/", sideEffects="Some")
    refused = await scene.plane.asked("POST", f"{MAPS}?dryRun=All", config_map())
    assert refused.status == 400
    assert refused.message == (
        'admission webhook "validating.example.com" does not support dry run'
    )


async def test_warnings_of_webhooks_are_told_once(scene: Scene) -> None:
    """However often the write begins again."""
    warned = {"allowed": True, "warnings": ["mind the gap"]}
    async with scene.program(lambda _: warned) as program:
        await scene.register("mutating", program.url)
        await scene.register("validating", program.url)
        made = await scene.plane.asked("POST", MAPS, config_map())
    assert len(program.asked) == 2
    assert made.warnings == ("mind the gap",)


async def test_long_warnings_are_cut(scene: Scene) -> None:
    """A client would refuse an answer with headers of any length, although the write succeeded."""
    long = [f"{number:03} {'x' * 10_000}" for number in range(50)]
    warned = {"allowed": True, "warnings": long}
    async with scene.program(lambda _: warned) as program:
        await scene.register("mutating", program.url)
        made = await scene.plane.asked("POST", MAPS, config_map())
    assert made.warnings == tuple(each[:256] for each in long[:16])


REVIEW = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}


@pytest.mark.parametrize(
    ("answer", "mutates", "problem"),
    [
        ("no json", True, "webhook response was absent"),
        ("{}", True, "webhook response was absent"),
        pytest.param("[" * 100_000, True, "Expected `object`, got `array`", id="deep array"),
        pytest.param(
            '{"x":' * 50_000, True, "webhook response was absent", id="deep and of no interest"
        ),
        pytest.param(
            '{"response":{"status":{"code":' + "1" * 5000 + "}}}",
            True,
            "Integer value out of range - at `$.response.status.code`",
            id="thousands of digits",
        ),
        (
            {**REVIEW, "response": {"uid": "u", "warnings": 1}},
            True,
            "Expected `array | null`, got `int` - at `$.response.warnings`",
        ),
        (
            {**REVIEW, "response": {"uid": "u", "status": {"code": "many"}}},
            True,
            "Expected `int | null`, got `str` - at `$.response.status.code`",
        ),
        ({**REVIEW, "response": {"uid": "v"}}, True, 'expected response.uid="u", got "v"'),
        (
            {"kind": "Pod", "apiVersion": "v1", "response": {"uid": "u"}},
            True,
            (
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, "
                "got /v1, Kind=Pod"
            ),
        ),
        (
            {**REVIEW, "response": {"uid": "u", "patch": "W10="}},
            True,
            "webhook returned response.patch but not response.patchType",
        ),
        (
            {**REVIEW, "response": {"uid": "u", "patch": "W10="}},
            False,
            "validating webhook may not return response.patch",
        ),
    ],
)
def test_an_answer_that_is_none_is_a_failure(answer: Any, mutates: bool, problem: str) -> None:
    """A program that answers something else is as one that does not answer."""
    question = ReviewRequest("https://h/", "", b"", 10, "v1", {}, mutates)
    body = answer if isinstance(answer, str) else json.dumps(answer)
    found = read_answer(question, "u", body.encode())

    assert found == Unanswered(f"received invalid webhook response: {problem}")

"""
Conversion webhooks: custom objects that are read and written in another version than the stored.

The webhook is an HTTPS server at loopback that renames a field, as Kueue's does with `cohort` and
`cohortName`.
"""

from __future__ import annotations

import asyncio
import base64
import copy
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

from dryrack.client.transport import Request, Stream
from dryrack.cluster import certificates

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.apiserver.whole_plane import Answer

    from dryrack.cluster.certificates import Keys
    from dryrack.kinds.raw import Raw


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OLD = "/apis/example.com/v1beta1/queues"
NEW = "/apis/example.com/v1beta2/queues"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TEXT = {"type": "string"}
NAMES = {"example.com/v1beta1": "cohort", "example.com/v1beta2": "cohortName"}
SERVICE = {"namespace": "default", "name": "hook", "path": "/convert"}


def convert(obj: Raw, desired: str) -> Raw:
    """Rename the field that differs, as a webhook is expected to."""
    made = copy.deepcopy(obj)
    before = NAMES[made["apiVersion"]]
    after = NAMES[desired]
    made["apiVersion"] = desired
    for part in ("spec", "status"):
        if before in (made.get(part) or {}):
            made[part][after] = made[part].pop(before)
    return made


@dataclass
class Webhook:
    """A conversion webhook; `change` makes a wrong response of a right one."""

    change: Callable[[Raw], Raw] = lambda review: review
    delay: asyncio.Event | None = None
    url: str = ""
    requests: list[Raw] = field(default_factory=list)
    is_asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def respond(self, request: web.BaseRequest) -> web.Response:
        review = await request.json()
        assert request.query["timeout"] == "30s"
        asked = review["request"]
        self.requests.append(asked)
        self.is_asked.set()
        if self.delay is not None:
            await self.delay.wait()
        converted = [convert(each, asked["desiredAPIVersion"]) for each in asked["objects"]]
        response = {"uid": asked["uid"], "result": {"status": "Success"}}
        response["convertedObjects"] = converted
        head = {"kind": review["kind"], "apiVersion": review["apiVersion"]}
        return web.json_response(self.change({**head, "response": response}))


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    names = ["127.0.0.1", "hook.default.svc"]
    return certificates.ensure(tmp_path_factory.mktemp("keys"), names, time.time())


@dataclass
class Scene:
    """A cluster and conversion webhooks that run beside it."""

    keys: Keys
    plane: WholePlane = field(default_factory=WholePlane)

    @asynccontextmanager
    async def webhook(self, change: Callable[[Raw], Raw] | None = None) -> AsyncIterator[Webhook]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.keys.server.certificate, self.keys.server.key)
        webhook = Webhook() if change is None else Webhook(change)
        server = RawTestServer(webhook.respond, scheme="https", host="127.0.0.1")
        await server.start_server(ssl=context)
        webhook.url = str(server.make_url("/convert"))
        try:
            yield webhook
        finally:
            await server.close()

    async def define(self, url: str = "", **more: Any) -> Answer:
        """Define queues; without a URL, behind a Service."""
        body = definition(self.client_config(url), **more)
        return await self.plane.asked("POST", DEFINITIONS, body)

    def client_config(self, url: str) -> Raw:
        authority = base64.b64encode(self.keys.authority.certificate.read_bytes()).decode()
        place = {"url": url} if url else {"service": SERVICE}
        return {**place, "caBundle": authority}

    async def create(self, path: str, name: str, **spec: Any) -> Answer:
        return await self.plane.asked("POST", path, queue(path, name, **spec))

    async def get(self, path: str, accept: str = "application/json") -> Answer:
        return await self.plane.asked("GET", path, accept=accept)


def definition(client_config: Raw, *, stored: str = "v1beta2", selectable: str = "") -> Raw:
    def version(name: str, own: str) -> Raw:
        fields = {"type": "object", "properties": {own: TEXT, "weight": {"type": "integer"}}}
        schema = {"type": "object", "properties": {"spec": fields, "status": fields}}
        made: Raw = {"name": name, "served": True, "storage": name == stored}
        made |= {"schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}
        scale = {"specReplicasPath": ".spec.weight", "statusReplicasPath": ".status.weight"}
        made["subresources"]["scale"] = scale
        if selectable:
            made["selectableFields"] = [{"jsonPath": f".spec.{own}"}]
        return made

    webhook = {"clientConfig": client_config, "conversionReviewVersions": ["v1"]}
    return {
        "metadata": {"name": "queues.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "queues", "kind": "Queue"},
            "versions": [version("v1beta1", "cohort"), version("v1beta2", "cohortName")],
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


def queue(path: str, name: str, **spec: Any) -> Raw:
    api_version = path.removeprefix("/apis/").rpartition("/")[0]
    return {
        "apiVersion": api_version,
        "kind": "Queue",
        "metadata": {"name": name, "labels": {"name": name}},
        "spec": spec,
    }


@dataclass
class Watching:
    """A watch over the server's own transport."""

    stream: Stream
    rest: bytes = b""

    async def event(self) -> Raw:
        """Return the next event."""
        while b"\n" not in self.rest:
            chunk = await asyncio.wait_for(anext(self.stream), 20)
            assert isinstance(chunk, bytes)
            self.rest += chunk
        line, _, self.rest = self.rest.partition(b"\n")
        found: Raw = json.loads(line)
        return found


async def watch(plane: WholePlane, path: str) -> Watching:
    where, _, query = path.partition("?")
    response = await plane.plane.transport.send(Request("GET", where, f"watch=true&{query}"))
    assert not isinstance(response.body, bytes), response.body
    return Watching(response.body)


@pytest.fixture
def scene(keys: Keys) -> Scene:
    return Scene(keys)


async def test_an_object_is_converted_on_its_way_in_and_out(scene: Scene) -> None:
    """An object that is written in one version is read in both, and no field is lost."""
    async with scene.webhook() as webhook:
        assert (await scene.define(webhook.url)).warnings == ()
        made = await scene.create(OLD, "q", cohort="team", weight=2)
        assert (made.status, made.warnings) == (201, ())
        assert made.body["spec"] == {"cohort": "team", "weight": 2}
        assert made.body["apiVersion"] == "example.com/v1beta1"
        new = (await scene.get(f"{NEW}/q")).body
        assert new["spec"] == {"cohortName": "team", "weight": 2}
        assert (await scene.get(f"{OLD}/q")).body == made.body
        stored = scene.plane.plane.server.lookup.get("queues.example.com", "", "q")
        assert stored is not None
        assert stored["spec"] == {"cohortName": "team", "weight": 2}
        assert stored["metadata"] == made.body["metadata"]


async def test_updates_patches_and_applies_go_through_the_webhook(scene: Scene) -> None:
    """All writes in another version change the field of the stored version."""
    async with scene.webhook() as webhook:
        await scene.define(webhook.url)
        made = (await scene.create(OLD, "q", cohort="a")).body
        made["spec"]["cohort"] = "b"
        replaced = await scene.plane.asked("PUT", f"{OLD}/q", made)
        assert (replaced.status, replaced.body["spec"]) == (200, {"cohort": "b"})
        patch = {"spec": {"cohort": "c"}}
        patched = await scene.plane.asked("PATCH", f"{OLD}/q", patch, content_type=MERGE)
        assert (patched.status, patched.body["spec"]) == (200, {"cohort": "c"})
        wanted = {**queue(NEW, "q", cohortName="d"), "metadata": {"name": "q"}}
        path = f"{NEW}/q?fieldManager=one&force=true"
        applied = await scene.plane.asked("PATCH", path, wanted, content_type=APPLY)
        assert (applied.status, applied.body["spec"]) == (200, {"cohortName": "d"})
        owners = {
            (each["manager"], each["apiVersion"])
            for each in applied.body["metadata"]["managedFields"]
            if "f:spec" in each["fieldsV1"]
        }
        assert ("one", "example.com/v1beta2") in owners
        wanted = {**queue(OLD, "q", cohort="e"), "metadata": {"name": "q"}}
        path = f"{OLD}/q?fieldManager=two"
        refused = await scene.plane.asked("PATCH", path, wanted, content_type=APPLY)
        assert (refused.status, refused.body["reason"]) == (409, "Conflict")
        status = {"status": {"cohort": "s"}}
        told = await scene.plane.asked("PATCH", f"{OLD}/q/status", status, content_type=MERGE)
        assert (told.status, told.body["status"]) == (200, {"cohort": "s"})
        assert (await scene.get(f"{NEW}/q")).body["status"] == {"cohortName": "s"}
        scale = {"spec": {"replicas": 3}}
        scaled = await scene.plane.asked("PATCH", f"{OLD}/q/scale", scale, content_type=MERGE)
        assert (scaled.status, scaled.body["spec"]) == (200, {"replicas": 3})
        found = (await scene.get(f"{OLD}/q")).body["spec"]
        assert found == {"cohort": "d", "weight": 3}


async def test_a_dry_run_is_converted_both_ways_and_stores_nothing(scene: Scene) -> None:
    """The answer has the fields of the request's version."""
    async with scene.webhook() as webhook:
        await scene.define(webhook.url)
        body = queue(OLD, "q", cohort="team")
        made = await scene.plane.asked("POST", f"{OLD}?dryRun=All", body)
        assert (made.status, made.body["spec"]) == (201, {"cohort": "team"})
        assert (await scene.get(f"{NEW}/q")).status == 404


async def test_a_list_is_converted_in_one_review_and_only_once(scene: Scene) -> None:
    """A second list, a page and a get need no further call."""
    async with scene.webhook() as webhook:
        await scene.define(webhook.url)
        for index in range(5):
            await scene.create(NEW, f"q-{index}", cohortName=str(index))
        assert webhook.requests == []
        listed = (await scene.get(OLD)).body
        assert [each["spec"]["cohort"] for each in listed["items"]] == list("01234")
        assert {each["apiVersion"] for each in listed["items"]} == {"example.com/v1beta1"}
        [request] = webhook.requests
        assert request["desiredAPIVersion"] == "example.com/v1beta1"
        assert len(request["objects"]) == 5
        selected = (await scene.get(f"{OLD}?labelSelector=name=q-3")).body
        assert [each["spec"]["cohort"] for each in selected["items"]] == ["3"]
        page = (await scene.get(f"{OLD}?limit=2")).body
        assert [each["spec"]["cohort"] for each in page["items"]] == ["0", "1"]
        assert (await scene.get(f"{OLD}/q-4")).body["spec"] == {"cohort": "4"}
        assert len(webhook.requests) == 1


async def test_fields_of_another_version_select_converted_objects(scene: Scene) -> None:
    """A field selector names the field of the version in the path, in lists and watches."""
    async with scene.webhook() as webhook:
        await scene.define(webhook.url, selectable="yes")
        for name in ("a", "b"):
            await scene.create(NEW, name, cohortName=name)
        found = (await scene.get(f"{OLD}?fieldSelector=spec.cohort=b")).body
        assert [each["metadata"]["name"] for each in found["items"]] == ["b"]
        watching = await watch(scene.plane, f"{OLD}?fieldSelector=spec.cohort=b")
        assert (await watching.event())["object"]["metadata"]["name"] == "b"
        patch = {"spec": {"cohortName": "c"}}
        await scene.plane.asked("PATCH", f"{NEW}/b", patch, content_type=MERGE)
        event = await watching.event()
        assert (event["type"], event["object"]["spec"]) == ("DELETED", {"cohort": "b"})


async def test_a_watch_tells_events_in_its_version_and_in_order(scene: Scene) -> None:
    """A watch that needs conversion has every event, and the bookmark does not overtake them."""
    async with scene.webhook() as webhook:
        await scene.define(webhook.url)
        await scene.create(NEW, "a", cohortName="1")
        options = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        watching = await watch(scene.plane, f"{OLD}?{options}&allowWatchBookmarks=true")
        await scene.create(NEW, "b", cohortName="2")
        await scene.plane.asked("DELETE", f"{NEW}/a")
        events = [await watching.event() for _ in range(4)]
        assert [each["type"] for each in events] == ["ADDED", "BOOKMARK", "ADDED", "DELETED"]
        shown = [each["object"].get("spec") for each in events]
        assert shown == [{"cohort": "1"}, None, {"cohort": "2"}, {"cohort": "1"}]
        versions = {each["object"]["apiVersion"] for each in events}
        assert versions == {"example.com/v1beta1"}


async def test_a_reader_of_a_watch_that_gives_up_waiting_loses_no_event(scene: Scene) -> None:
    """An event whose conversion takes too long for one read is there for the next."""
    async with scene.webhook() as webhook:
        await scene.define(webhook.url)
        await scene.create(NEW, "a", cohortName="1")
        webhook.delay = asyncio.Event()
        webhook.is_asked.clear()
        watching = await watch(scene.plane, OLD)
        reading = asyncio.create_task(watching.event())
        await webhook.is_asked.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        webhook.delay.set()
        assert (await watching.event())["object"]["spec"] == {"cohort": "1"}


async def test_a_watch_ends_with_the_error_of_a_failed_conversion(scene: Scene) -> None:
    """The error has the reason, and the client can watch again."""

    def failed(review: Raw) -> Raw:
        return {**review, "response": {**review["response"], "result": {"status": "Failed"}}}

    async with scene.webhook(failed) as webhook:
        await scene.define(webhook.url)
        await scene.create(NEW, "a", cohortName="1")
        watching = await watch(scene.plane, OLD)
        event = await watching.event()
        assert (event["type"], event["object"]["code"]) == ("ERROR", 500)
        told = "failed: response.result.status was 'Failed', not 'Success'"
        assert event["object"]["message"].endswith(told)
        with pytest.raises(StopAsyncIteration):
            await anext(watching.stream)


async def test_the_server_answers_others_while_a_webhook_is_slow(scene: Scene) -> None:
    """A request that waits for a conversion keeps no other waiting."""
    async with scene.webhook() as webhook:
        await scene.define(webhook.url)
        await scene.create(NEW, "a", cohortName="1")
        webhook.delay = asyncio.Event()
        webhook.is_asked.clear()
        waiting = asyncio.create_task(scene.get(f"{OLD}/a"))
        await webhook.is_asked.wait()
        assert (await scene.get(f"{NEW}/a")).status == 200
        assert not waiting.done()
        webhook.delay.set()
        assert (await waiting).body["spec"] == {"cohort": "1"}


@pytest.mark.parametrize(
    ("part", "value", "told"),
    [
        ("uid", "other", 'failed: expected response.uid="'),
        ("result", {"status": "Failed", "message": "no way"}, "failed: no way"),
        ("result", {}, "failed: response.result.status was '', not 'Success'"),
        ("convertedObjects", [], "returned 0 objects, expected 1"),
        ("convertedObjects", [7], "returned invalid object at index 0: not an object"),
    ],
)
def test_a_response_that_does_not_answer_the_review_fails_the_request(
    scene: Scene, part: str, value: Any, told: str
) -> None:
    """The text and the code are those of kube-apiserver, and nothing is stored."""

    def change(review: Raw) -> Raw:
        return {**review, "response": {**review["response"], part: value}}

    refused = asyncio.run(_refused(scene, change))
    start = "conversion webhook for example.com/v1beta1, Kind=Queue "
    assert refused.message.startswith(start + told)
    assert (refused.status, refused.body.get("reason")) == (500, None)


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (
            ("apiVersion",),
            "example.com/v1",
            (
                "object at index 0: invalid groupVersion (expected example.com/v1beta2, received "
                "example.com/v1)"
            ),
        ),
        (("kind",), "Row", "object at index 0: invalid kind (expected Queue, received Row)"),
        (("metadata", "name"), "z", "object: must have the same name: q != z"),
        (
            ("metadata", "labels"),
            {"a": 1},
            "metadata: metadata.labels[a] must be a string, but is number in converted object",
        ),
        (
            ("metadata", "labels"),
            {"a b": ""},
            'metadata: metadata.labels: Invalid value: "a b": name part must consist of',
        ),
    ],
)
def test_an_object_that_is_not_the_one_that_was_sent_fails_the_request(
    scene: Scene, path: tuple[str, ...], value: Any, told: str
) -> None:
    """Version, kind, name and uid are checked, and labels must be valid."""

    def change(review: Raw) -> Raw:
        obj = review["response"]["convertedObjects"][0]
        for key in path[:-1]:
            obj = obj[key]
        obj[path[-1]] = value
        return review

    refused = asyncio.run(_refused(scene, change))
    start = "conversion webhook for example.com/v1beta1, Kind=Queue returned invalid "
    assert refused.message.startswith(start + told)


async def _refused(scene: Scene, change: Callable[[Raw], Raw]) -> Answer:
    async with scene.webhook(change) as webhook:
        await scene.define(webhook.url)
        refused = await scene.create(OLD, "q", cohort="team")
        assert (await scene.get(f"{NEW}/q")).status == 404
        return refused


async def test_a_webhook_changes_labels_and_annotations_and_no_other_metadata(scene: Scene) -> None:
    """Other metadata stays as it was, whatever the webhook returns."""

    def change(review: Raw) -> Raw:
        meta = review["response"]["convertedObjects"][0]["metadata"]
        meta |= {"finalizers": ["example.com/x"], "annotations": {"a": "b"}, "labels": None}
        return review

    async with scene.webhook(change) as webhook:
        await scene.define(webhook.url)
        await scene.create(OLD, "q", cohort="team")
        meta = (await scene.get(f"{NEW}/q")).body["metadata"]
        assert ("finalizers" in meta, "labels" in meta) == (False, False)
        assert meta["annotations"] == {"a": "b"}


async def test_a_webhook_that_does_not_answer_fails_the_request(scene: Scene) -> None:
    """The message names the call."""
    async with scene.webhook() as webhook:
        url = webhook.url
    await scene.define(url)
    refused = await scene.create(OLD, "q", cohort="team")
    start = "conversion webhook for example.com/v1beta1, Kind=Queue failed: Post "
    assert refused.message.startswith(f'{start}"{url}?timeout=30s": ')
    assert refused.status == 500


async def test_a_service_with_an_address_stands_for_the_webhook(scene: Scene) -> None:
    """The annotation of the Service says where the program runs, as for admission webhooks."""
    async with scene.webhook() as webhook:
        told = (await scene.define()).warnings
        assert ["dryrack.dev/address" in each for each in told] == [True]
        address = webhook.url.removeprefix("https://").partition("/")[0]
        meta = {"name": "hook", "annotations": {"dryrack.dev/address": address}}
        service = {"metadata": meta, "spec": {"ports": [{"port": 443}]}}
        path = "/api/v1/namespaces/default/services"
        assert (await scene.plane.asked("POST", path, service)).status == 201
        made = await scene.create(OLD, "q", cohort="team")
        assert (made.status, made.body["spec"]) == (201, {"cohort": "team"})
        assert (await scene.get(f"{NEW}/q")).body["spec"] == {"cohortName": "team"}


async def test_without_a_webhook_no_field_is_lost(scene: Scene) -> None:
    """Writes and reads that would lose a field fail; all others are as without a webhook."""
    await scene.define()
    refused = await scene.create(OLD, "q", cohort="team")
    assert refused.status == 500
    assert refused.message == (
        "conversion webhook for example.com/v1beta1, Kind=Queue failed: Post "
        '"https://hook.default.svc:443/convert?timeout=30s": service "hook" not found; run '
        "the webhook and annotate the Service default/hook with dryrack.dev/address=HOST:PORT "
        "(example.com/v1beta2 has no spec.cohort)"
    )
    assert (await scene.get(f"{NEW}/q")).status == 404
    assert (await scene.create(OLD, "same", weight=2)).body["spec"] == {"weight": 2}
    assert (await scene.create(NEW, "new", cohortName="team")).status == 201
    assert (await scene.get(f"{OLD}/new")).status == 500
    assert (await scene.get(OLD)).status == 500
    assert (await scene.get(f"{OLD}/same")).status == 200


async def test_without_a_webhook_controllers_still_see_and_delete_objects(scene: Scene) -> None:
    """The garbage collector reads metadata, and a deletion changes no field that could be lost."""
    await scene.define()
    body = queue(NEW, "q", cohortName="team")
    body["metadata"]["finalizers"] = ["example.com/hold"]
    await scene.plane.asked("POST", NEW, body)
    listed = (await scene.get(OLD, accept=METADATA)).body
    assert [each["metadata"]["name"] for each in listed["items"]] == ["q"]
    await scene.plane.asked("DELETE", f"{OLD}/q")
    left = (await scene.get(f"{NEW}/q")).body
    assert "deletionTimestamp" in left["metadata"]
    assert left["spec"] == {"cohortName": "team"}


async def test_deletions_in_another_version_answer_in_it(scene: Scene) -> None:
    """One object with a finalizer, and a collection with and without."""
    async with scene.webhook() as webhook:
        await scene.define(webhook.url)
        for name in ("a", "b", "c"):
            body = queue(NEW, name, cohortName=name)
            body["metadata"]["finalizers"] = ["example.com/hold"] if name != "b" else []
            await scene.plane.asked("POST", NEW, body)
        told = await scene.plane.asked("DELETE", f"{OLD}/a")
        assert (told.body["spec"], "deletionTimestamp" in told.body["metadata"]) == (
            {"cohort": "a"},
            True,
        )
        told = await scene.plane.asked("DELETE", OLD)
        assert [each["spec"]["cohort"] for each in told.body["items"]] == ["a", "b", "c"]
        left = (await scene.get(OLD)).body["items"]
        assert [each["metadata"]["name"] for each in left] == ["a", "c"]
        assert [each["spec"]["cohort"] for each in left] == ["a", "c"]


async def test_objects_of_a_former_storage_version_are_converted_when_they_are_read(
    scene: Scene,
) -> None:
    """The definition lists both stored versions, and a write moves an object to the new one."""
    async with scene.webhook() as webhook:
        made = (await scene.define(webhook.url, stored="v1beta1")).body
        await scene.create(OLD, "q", cohort="team")
        change = definition(scene.client_config(webhook.url))
        change["metadata"]["resourceVersion"] = (
            await scene.get(f"{DEFINITIONS}/queues.example.com")
        ).body["metadata"]["resourceVersion"]
        moved = await scene.plane.asked("PUT", f"{DEFINITIONS}/queues.example.com", change)
        assert made["status"]["storedVersions"] == ["v1beta1"]
        assert moved.body["status"]["storedVersions"] == ["v1beta1", "v1beta2"]
        assert (await scene.get(f"{NEW}/q")).body["spec"] == {"cohortName": "team"}
        assert (await scene.get(f"{OLD}/q")).body["spec"] == {"cohort": "team"}
        lookup = scene.plane.plane.server.lookup
        stored = lookup.get("queues.example.com", "", "q")
        assert stored is not None
        assert stored["apiVersion"] == "example.com/v1beta1"
        found = (await scene.get(f"{NEW}/q")).body
        assert (await scene.plane.asked("PUT", f"{NEW}/q", found)).status == 200
        stored = lookup.get("queues.example.com", "", "q")
        assert stored is not None
        assert (stored["apiVersion"], stored["spec"]) == (
            "example.com/v1beta2",
            {"cohortName": "team"},
        )


async def test_a_definition_is_deleted_with_its_objects_without_the_webhook(scene: Scene) -> None:
    """The server deletes the objects by itself, and calls no webhook."""
    await scene.define()
    await scene.create(NEW, "q", cohortName="team")
    await scene.plane.asked("DELETE", f"{DEFINITIONS}/queues.example.com")
    for _ in range(3):
        await asyncio.sleep(0)
    assert (await scene.get(f"{DEFINITIONS}/queues.example.com")).status == 404


@pytest.mark.parametrize(
    ("webhook", "told"),
    [
        (
            {"clientConfig": {"caBundle": ""}, "conversionReviewVersions": ["v1"]},
            (
                "spec.conversion.webhookClientConfig: Required value: exactly one of url or "
                "service is required"
            ),
        ),
        (
            {"clientConfig": {"url": "https://h/"}, "conversionReviewVersions": ["v7"]},
            (
                'spec.conversion.conversionReviewVersions: Invalid value: ["v7"]: must include at '
                "least one of v1, v1beta1"
            ),
        ),
    ],
)
def test_a_definition_must_say_how_to_call_its_webhook(
    scene: Scene, webhook: Raw, told: str
) -> None:
    """The server refuses the same values of spec.conversion as kube-apiserver."""
    body = definition({})
    body["spec"]["conversion"]["webhook"] = webhook
    refused = scene.plane.create(DEFINITIONS, body)
    assert refused.status == 422
    assert refused.message.endswith(told)

"""Objects of custom kinds as they are read: with the defaults of the schema, and nothing else."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.apiserver.replay import EmbeddedServer, embedded_server
from tests.apiserver.whole_plane import WholePlane

from dryrack.client.timekeeping import VirtualClock
from dryrack.client.transport import Request
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.client.transport import Response, Stream
    from dryrack.kinds.raw import Raw


_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_TEXT = {"type": "string"}


class ControlPlane:
    """A server with the kind Gadget."""

    def __init__(self) -> None:
        self.server: EmbeddedServer = embedded_server()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        form = "merge-patch+json" if method == "PATCH" else "json"
        content = b"" if body is None else json.dumps(body).encode()
        headers = {"content-type": f"application/{form}"}
        status, _, answer = self.server.send(method, path, headers=headers, content=content)
        assert status < 300, answer
        return (
            [json.loads(line) for line in answer.splitlines()]
            if "watch" in path
            else (json.loads(answer))
        )

    def define(self, *versions: Raw) -> None:
        names = {"plural": "gadgets", "kind": "Gadget"}
        spec = {"group": "example.com", "scope": "Cluster", "names": names}
        body = {"metadata": {"name": "gadgets.example.com"}, "spec": {**spec, "versions": versions}}
        self.ask("POST", _DEFINITIONS, body)

    def redefine(self, *versions: Raw) -> None:
        path = f"{_DEFINITIONS}/gadgets.example.com"
        self.ask("PATCH", path, {"spec": {"versions": list(versions)}})

    def make(self, name: str, **more: Any) -> Raw:
        gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": name}}
        made: Raw = self.ask("POST", "/apis/example.com/v1/gadgets", gadget | more)
        return made


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    made = ControlPlane()
    yield made
    made.server.close()


def version(name: str = "v1", **properties: Raw) -> Raw:
    schema = {"type": "object", "properties": properties}
    return {
        "name": name,
        "served": True,
        "storage": name == "v1",
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }


def spec(**properties: Raw) -> Raw:
    return {"type": "object", "properties": properties}


def every_reading(plane: ControlPlane, of: str = "v1") -> list[Raw]:
    """The one gadget as a get, a list and a watch show it, without its metadata."""
    path = f"/apis/example.com/{of}/gadgets"
    (event,) = plane.ask("GET", f"{path}?watch=true&timeoutSeconds=1")
    found = (plane.ask("GET", f"{path}/g"), plane.ask("GET", path)["items"][0], event["object"])
    return [{key: each[key] for key in ("spec", "status") if key in each} for each in found]


def test_a_new_object_has_the_defaults_of_its_status(plane: ControlPlane) -> None:
    """A default status is read before one is written; a written status gets defaults."""
    condition = {"type": "Ready", "status": "True"}
    phase = {"type": "string", "default": "New"}
    conditions = {"type": "array", "items": {"type": "object", "additionalProperties": _TEXT}}
    status = spec(conditions=conditions, phase=phase) | {"default": {"conditions": [condition]}}
    plane.define(version(spec=spec(size=_TEXT), status=status))
    made = plane.make("g", status={"phase": "Sent"})

    assert made["status"] == {"conditions": [condition], "phase": "New"}
    assert every_reading(plane) == [{"status": made["status"]}] * 3
    assert made["metadata"]["generation"] == 1
    path = "/apis/example.com/v1/gadgets/g"
    told = plane.ask("PATCH", f"{path}/status", {"status": {"phase": None, "conditions": []}})
    assert told["status"] == {"conditions": [], "phase": "New"}
    kept = plane.ask("PATCH", path, {"spec": {"size": "1"}})
    assert kept["status"] == told["status"]
    assert kept["metadata"]["generation"] == 2


def test_an_optional_status_without_a_default_stays_away(plane: ControlPlane) -> None:
    """The defaults of its fields come with the status itself."""
    plane.define(version(status=spec(phase={"type": "string", "default": "New"})))

    assert "status" not in plane.make("g")


def test_a_changed_schema_holds_for_what_is_stored(plane: ControlPlane) -> None:
    """An old object is read with new defaults and without removed fields."""
    plane.define(version(spec=spec(old=_TEXT, size=_TEXT)))
    made = plane.make("g", spec={"old": "x", "size": "1"})
    plane.redefine(version(spec=spec(size=_TEXT, colour={"type": "string", "default": "red"})))

    assert every_reading(plane) == [{"spec": {"size": "1", "colour": "red"}}] * 3
    found = plane.ask("GET", "/apis/example.com/v1/gadgets/g")
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    written = plane.ask(
        "PATCH", "/apis/example.com/v1/gadgets/g", {"metadata": {"labels": {"a": "b"}}}
    )
    assert written["metadata"]["generation"] == 1
    plane.redefine(version(spec=spec(old=_TEXT, size=_TEXT, colour=_TEXT)))
    assert every_reading(plane) == [{"spec": {"size": "1", "colour": "red"}}] * 3


def test_an_object_is_read_in_the_version_that_is_asked_for(plane: ControlPlane) -> None:
    """By the defaults of the stored version and the fields of the other, whichever is stored."""
    size = {"type": "string", "default": "1"}
    colour = {"type": "string", "default": "red"}
    one = version(spec=spec(size=size, kept=_TEXT))
    two = version("v2", spec=spec(colour=colour, kept=_TEXT))
    plane.define(one, two)
    plane.make("g", spec={"kept": "x"})

    assert every_reading(plane) == [{"spec": {"kept": "x", "size": "1"}}] * 3
    assert every_reading(plane, "v2") == [{"spec": {"kept": "x"}}] * 3
    plane.redefine(one | {"storage": False}, two | {"storage": True})
    assert every_reading(plane, "v2") == [{"spec": {"kept": "x"}}] * 3
    found = plane.ask("GET", "/apis/example.com/v2/gadgets/g")
    assert found["apiVersion"] == "example.com/v2"


@pytest.mark.parametrize("change", ["redefined", "deleted"])
async def test_a_watch_ends_with_the_schema_that_it_began_with(change: str) -> None:
    """A change of the spec makes watchers list again; any other change does not."""
    transport = build_control_plane(ControlPlaneOptions(clock=VirtualClock())).transport

    async def ask(method: str, path: str, body: Raw) -> Response:
        form = "merge-patch+json" if method == "PATCH" else "json"
        headers = {"content-type": f"application/{form}"}
        content = json.dumps(body).encode()
        answer = await transport.send(Request(method, path, headers=headers, body=content))
        # What the server has to say of a definition comes with the next turn of the loop.
        await asyncio.sleep(0)
        return answer

    names = {"plural": "gadgets", "kind": "Gadget"}
    whole = {"group": "example.com", "scope": "Cluster", "names": names}
    body = {"metadata": {"name": "gadgets.example.com"}}
    await ask("POST", _DEFINITIONS, {**body, "spec": {**whole, "versions": [version()]}})
    path = f"{_DEFINITIONS}/gadgets.example.com"
    watch = await transport.send(Request("GET", "/apis/example.com/v1/gadgets", "watch=1"))
    assert not isinstance(watch.body, bytes)
    reading = asyncio.create_task(_whole(watch.body), name="watch")
    await ask("PATCH", path, {"metadata": {"labels": {"a": "b"}}})
    assert not reading.done()
    if change == "redefined":
        await ask("PATCH", path, {"spec": {"versions": [version(spec=spec())]}})
    else:
        await ask("DELETE", path, {})
    assert await asyncio.wait_for(reading, 5) == b""


async def _whole(body: Stream) -> bytes:
    return b"".join([chunk async for chunk in body if isinstance(chunk, bytes)])


def test_a_write_of_fields_that_the_stored_version_does_not_have_is_refused() -> None:
    """No webhook converts them, and the message names each of them."""
    plane = WholePlane()
    items = {"type": "array", "items": spec(name=_TEXT)}
    old_items = {"type": "array", "items": spec(name=_TEXT, weight=_TEXT)}
    names = {"plural": "gadgets", "kind": "Gadget"}
    versions = [
        version("v1", spec=spec(cohortName=_TEXT, items=items)),
        version("v1beta1", spec=spec(cohort=_TEXT, items=old_items)),
    ]
    service = {"name": "s", "namespace": "s"}
    webhook = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}
    definition = {"group": "example.com", "scope": "Cluster", "names": names, "versions": versions}
    definition["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    body = {"metadata": {"name": "gadgets.example.com"}, "spec": definition}
    assert plane.create(_DEFINITIONS, body).status == 201

    fields = {"cohort": "team", "items": [{"name": "a"}, {"name": "b", "weight": "1"}]}
    gadget = {"apiVersion": "example.com/v1beta1", "kind": "Gadget", "metadata": {"name": "g"}}
    made = plane.create("/apis/example.com/v1beta1/gadgets", gadget | {"spec": fields})
    assert made.status == 500
    assert made.message.endswith("(example.com/v1 has no spec.cohort, spec.items[1].weight)")
    made = plane.create("/apis/example.com/v1beta1/gadgets", gadget | {"spec": {"items": []}})
    again = plane.ask("PUT", "/apis/example.com/v1beta1/gadgets/g", made.body)
    assert (made.status, again.status, again.warnings) == (201, 200, ())

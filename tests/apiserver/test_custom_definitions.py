"""Definitions of custom kinds: what is wrong with them, whose names they take, how they end."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apiserver.replay import CountingChance, known_differences
from tests.apiserver.slips import places, spoilt
from tests.parity.recording import read
from tests.parity.script import SCRIPTS, Step, load

from dryrack.apiserver.answer.status import StatusError
from dryrack.apiserver.custom.acceptance import settle_names
from dryrack.apiserver.custom.definition import DefinitionStrategy, condition_of
from dryrack.apiserver.strategy import Write
from dryrack.client.timekeeping import VirtualClock
from dryrack.client.transport import ADMIN, Request
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane
from dryrack.cluster.journal import SqliteJournal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dryrack.client.transport import Transport

_SCRIPT = load(SCRIPTS / "custom-kinds.yaml")
_ANSWERS = {answer["step"]: answer for answer in read(_SCRIPT)}
_OTHER = known_differences()["custom-kinds"]
_DEFINED = [
    step for step in _SCRIPT.steps if step.name.startswith("define ") and step.name not in _OTHER
]
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class _Lookup:
    def get(self, resource: str, namespace: str, name: str) -> dict[str, Any] | None:
        return None

    def list(self, resource: str, namespace: str | None) -> tuple[dict[str, Any], ...]:
        return ()


_WRITE = Write(
    now="2026-01-01T00:00:00Z",
    user=ADMIN,
    namespace="",
    subresource="",
    dry_run=False,
    chance=CountingChance(),
    lookup=_Lookup(),
    warn=lambda text: None,
)


def _definition(plural: str, kind: str, **version: Any) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    only = {"name": "v1", "served": True, "storage": True, "schema": schema, **version}
    return {
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": plural, "kind": kind},
            "versions": [only],
        },
    }


@pytest.mark.parametrize("step", _DEFINED, ids=[step.name for step in _DEFINED])
def test_a_definition_is_refused_for_the_recorded_reasons(step: Step) -> None:
    """The causes of a refusal are the recorded ones in their order; what was taken has none."""
    strategy = DefinitionStrategy()
    obj = strategy.prepare_create(strategy.default(step.body, _WRITE), _WRITE)
    found = strategy.validate_create(obj, _WRITE)
    causes = _ANSWERS[step.name]["body"].get("details", {}).get("causes", [])

    assert [(p.reason.value, p.field, p.message) for p in found] == [
        (cause["reason"], cause["field"], cause["message"]) for cause in causes
    ]


def _accepted(definition: dict[str, Any], *others: dict[str, Any]) -> dict[str, Any]:
    made = DefinitionStrategy().default(definition, _WRITE)
    return {**made, "status": settle_names(made, others, "2026-01-01T00:00:00Z")}


def test_names_belong_to_whoever_came_first() -> None:
    """A second definition with a kind that is taken keeps its other names and is not served."""
    first = _accepted(_definition("boxes", "Box"))
    second = _accepted(_definition("crates", "Box"), first)

    assert condition_of(first, "Established")["status"] == "True"
    assert condition_of(second, "Established")["status"] == "False"
    assert condition_of(second, "NamesAccepted")["message"] == '"BoxList" is already in use'
    assert second["status"]["acceptedNames"] == {"plural": "crates", "kind": ""}


def test_what_is_served_stays_served() -> None:
    """A definition that asks for a name that is taken is served under its old names."""
    first = _accepted(_definition("boxes", "Box"))
    second = _accepted(_definition("crates", "Crate"))
    second["spec"]["names"]["shortNames"] = ["box"]
    again = {**second, "status": settle_names(second, [first], "2026-01-02T00:00:00Z")}

    assert condition_of(again, "NamesAccepted")["status"] == "False"
    assert condition_of(again, "Established")["status"] == "True"


class _Plane:
    """A server in process, asked in turns."""

    def __init__(self) -> None:
        plane = build_control_plane(
            ControlPlaneOptions(clock=VirtualClock(), chance=CountingChance())
        )
        self._transport: Transport = plane.transport
        self._runner = asyncio.Runner()

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        where, _, query = path.partition("?")
        content = b"" if body is None else json.dumps(body).encode()
        patch = "application/merge-patch+json" if method == "PATCH" else "application/json"
        request = Request(method, where, query, {"content-type": patch}, content)
        return self._runner.run(self._sent(request))

    async def _sent(self, request: Request) -> tuple[int, Any]:
        response = await self._transport.send(request)
        # What the server has to say of a definition comes with the next turn of the loop.
        await asyncio.sleep(0)
        assert isinstance(response.body, bytes)
        is_json = (response.header("content-type") or "").startswith("application/json")
        return response.status, json.loads(response.body) if is_json else response.body

    def close(self) -> None:
        self._runner.close()


@pytest.fixture
def plane() -> Iterator[_Plane]:
    made = _Plane()
    yield made
    made.close()


def test_a_kind_is_served_from_its_definition_to_its_end(plane: _Plane) -> None:
    """It is there at once, in discovery too, and gone with its objects when it is deleted."""
    assert plane.ask("POST", _DEFINITIONS, _definition("gadgets", "Gadget"))[0] == 201
    gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}}

    assert plane.ask("POST", "/apis/example.com/v1/gadgets", gadget)[0] == 201
    assert plane.ask("GET", "/apis/example.com/v1")[1]["resources"][0]["name"] == "gadgets"
    assert plane.ask("DELETE", f"{_DEFINITIONS}/gadgets.example.com")[0] == 200
    assert plane.ask("GET", f"{_DEFINITIONS}/gadgets.example.com")[0] == 404
    assert plane.ask("GET", "/apis/example.com/v1/gadgets")[0] == 404


def test_a_definition_waits_for_the_finalizers_of_its_objects(plane: _Plane) -> None:
    """A kind is served until the finalizers of its objects are removed; then both are gone."""
    plane.ask("POST", _DEFINITIONS, _definition("gadgets", "Gadget"))
    meta = {"name": "g", "finalizers": ["example.com/hold"]}
    gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": meta}
    plane.ask("POST", "/apis/example.com/v1/gadgets", gadget)
    plane.ask("DELETE", f"{_DEFINITIONS}/gadgets.example.com")

    assert plane.ask("GET", f"{_DEFINITIONS}/gadgets.example.com")[0] == 200
    late = {**gadget, "metadata": {"name": "late"}}
    assert plane.ask("POST", "/apis/example.com/v1/gadgets", late)[0] == 405
    released = plane.ask(
        "PATCH", "/apis/example.com/v1/gadgets/g", {"metadata": {"finalizers": None}}
    )
    assert released[0] == 200
    assert plane.ask("GET", "/apis/example.com/v1/gadgets/g")[0] == 404
    assert plane.ask("GET", f"{_DEFINITIONS}/gadgets.example.com")[0] == 404


def test_definitions_are_served_again_after_a_restart(tmp_path: Path) -> None:
    """Definitions from the journal are served with their schemas before the first write."""
    gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}}
    schema = {"type": "object", "properties": {"spec": {"type": "string"}}}
    version = {"schema": {"openAPIV3Schema": schema}}

    async def first() -> None:
        journal = SqliteJournal(tmp_path)
        transport = build_control_plane(ControlPlaneOptions(journal=journal)).transport
        body = json.dumps(_definition("gadgets", "Gadget", **version)).encode()
        await transport.send(Request("POST", _DEFINITIONS, body=body))
        await journal.close()

    async def second() -> int:
        journal = SqliteJournal(tmp_path)
        transport = build_control_plane(ControlPlaneOptions(journal=journal)).transport
        body = json.dumps({**gadget, "spec": 5}).encode()
        response = await transport.send(Request("POST", "/apis/example.com/v1/gadgets", body=body))
        await journal.close()
        return response.status

    asyncio.run(first())
    assert asyncio.run(second()) == 422


def test_the_scale_of_a_custom_kind_can_be_read_and_written(plane: _Plane) -> None:
    """Replicas are where the definition says; an object without them has no scale."""
    scale = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}
    plane.ask("POST", _DEFINITIONS, _definition("sets", "Set", subresources={"scale": scale}))
    path = "/apis/example.com/v1/sets"
    for name, spec in (("a", {"n": 3}), ("b", {})):
        body = {"apiVersion": "example.com/v1", "kind": "Set", "metadata": {"name": name}}
        assert plane.ask("POST", path, {**body, "spec": spec})[0] == 201

    assert plane.ask("GET", f"{path}/a/scale")[1]["spec"] == {"replicas": 3}
    assert plane.ask("PATCH", f"{path}/a/scale", {"spec": {"replicas": 5}})[0] == 200
    assert plane.ask("GET", f"{path}/a")[1]["spec"] == {"n": 5}
    assert plane.ask("GET", f"{path}/b/scale")[0] == 500


_JUNK: tuple[Any, ...] = (
    None,
    0,
    1.5,
    "",
    "(",
    True,
    [],
    {},
    [None],
    {"a": None},
    {"type": "object"},
    [{"type": "string"}],
    {"properties": {"a": None}},
    "self.x > 1",
)


_WITH_SCHEMA = [
    step for step in _DEFINED if any("schema" in v for v in step.body["spec"]["versions"][:1])
]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_spoilt_definitions_are_judged_not_fatal(data: st.DataObject) -> None:
    """Any value anywhere in a schema leads to a verdict."""
    body = copy.deepcopy(data.draw(st.sampled_from(_WITH_SCHEMA)).body)
    schema = body["spec"]["versions"][0]["schema"]
    good = schema["openAPIV3Schema"]
    place = data.draw(st.sampled_from([path for path, _ in places(good) if path]))
    junk = copy.deepcopy(data.draw(st.sampled_from(_JUNK)))
    schema["openAPIV3Schema"] = spoilt(good, place, junk)

    assert _verdict(body) in ("taken", "refused", "unreadable")


def _verdict(body: dict[str, Any]) -> str:
    strategy = DefinitionStrategy()
    try:
        obj = strategy.prepare_create(strategy.default(body, _WRITE), _WRITE)
    except StatusError:
        return "unreadable"
    return "refused" if [str(p) for p in strategy.validate_create(obj, _WRITE)] else "taken"


_SPEC = {"text": {"type": "string"}, "list": {"type": "array", "items": {"type": "string"}}}
_TYPED = {
    "type": "object",
    "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
        "spec": {"type": "object", "properties": _SPEC},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
}
_NO_TYPE = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with "
    "formats are allowed."
)


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        (".spec.text", ""),
        (".map.key", ""),
        (".spec.nothing", "is an invalid path: does not refer to a valid field"),
        (".spec.text.more", "is an invalid path: does not refer to a valid field"),
        (".spec.list[0]", "is an invalid path: array notation is not allowed"),
        (".spec['text']", "is an invalid path: array notation is not allowed"),
        (".spec.", "is an invalid path: unexpected end of JSON path"),
        ("spec.text", "is an invalid path: expected [ or . but got: spec"),
        ("." * 300_000, "is an invalid path: does not refer to a valid field"),
        (".spec.list", _NO_TYPE),
        (".metadata.name", "must not point to fields in metadata"),
    ],
    ids=lambda text: text[:20],
)
def test_a_field_to_select_by_has_to_be_one(plane: _Plane, path: str, detail: str) -> None:
    """The server answers 422 as the real one does, which looks the field up in the schema."""
    fields = [{"jsonPath": path}]
    definition = _definition(
        "things", "Thing", schema={"openAPIV3Schema": _TYPED}, selectableFields=fields
    )
    code, answer = plane.ask("POST", _DEFINITIONS, definition)
    value = json.dumps(path)

    assert code == (422 if detail else 201)
    if detail:
        assert answer["reason"] == "Invalid"
        assert answer["details"]["causes"] == [
            {
                "reason": "FieldValueInvalid",
                "message": f"Invalid value: {value}: {detail}",
                "field": "spec.selectableFields[0].jsonPath",
            }
        ]


def test_fields_to_select_by_are_eight_different_ones(plane: _Plane) -> None:
    """A field twice, one without a path, and nine are refused."""
    many = {"type": "object", "properties": {f"f{n}": {"type": "string"} for n in range(9)}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": many}}}
    fields = [{"jsonPath": f".spec.f{n}"} for n in range(9)]
    fields += [{"jsonPath": ".spec.f0"}, {"jsonPath": ""}]
    definition = _definition("things", "Thing", schema=schema, selectableFields=fields)
    code, answer = plane.ask("POST", _DEFINITIONS, definition)

    assert code == 422
    assert [(each["reason"], each["field"]) for each in answer["details"]["causes"]] == [
        ("FieldValueDuplicate", "spec.selectableFields[9].jsonPath"),
        ("FieldValueRequired", "spec.selectableFields[10].jsonPath"),
        ("FieldValueTooMany", "spec.selectableFields"),
    ]


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        (".spec.text", ""),
        ('.status.conditions[?(@.type=="Ready")].status', ""),
        (".spec.list[0:2]", ""),
        (".spec.list[?(@.x)].y", ""),
        ("spec", "must be a simple json path starting with ."),
        (".spec.list[?(", "is an invalid path: unterminated filter"),
        (".spec[", "is an invalid path: unterminated array"),
        (".a[?(@" + ".a" * 100_000, "is an invalid path: unterminated filter"),
    ],
    ids=lambda text: text[:30],
)
def test_a_column_whose_path_cannot_be_read_is_refused(
    plane: _Plane, path: str, detail: str
) -> None:
    """The refusal is a 422; the real server leaves out this column and all that follow."""
    columns = [{"name": "Column", "type": "string", "jsonPath": path}]
    definition = _definition("things", "Thing", additionalPrinterColumns=columns)
    code, answer = plane.ask("POST", _DEFINITIONS, definition)

    assert code == (422 if detail else 201)
    if detail:
        [cause] = answer["details"]["causes"]
        assert cause["field"] == "spec.additionalPrinterColumns[0].JSONPath"
        assert cause["message"].endswith(f": {detail}")


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        (".spec.selector", ""),
        ("spec.selector", "must be a simple json path starting with ."),
        (".metadata.x", "should be a json path under either .spec or .status"),
    ],
)
def test_the_path_of_a_selector_of_scale_begins_with_a_dot(
    plane: _Plane, path: str, detail: str
) -> None:
    """And leads into the specification or the status."""
    scale = {"specReplicasPath": ".spec.r", "statusReplicasPath": ".status.r"}
    scale["labelSelectorPath"] = path
    definition = _definition("things", "Thing", subresources={"scale": scale})
    code, answer = plane.ask("POST", _DEFINITIONS, definition)

    assert code == (422 if detail else 201)
    if detail:
        [cause] = answer["details"]["causes"]
        assert cause["message"].endswith(f": {detail}")

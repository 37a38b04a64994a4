"""Objects of custom kinds against what a real server was recorded to say of them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.parity.recording import read
from tests.parity.script import SCRIPTS, Step, load

from dryrack.apiserver.custom.rule_evaluation import find_broken_rules
from dryrack.apiserver.custom.strategy import CustomStrategy, StoredVersion
from dryrack.apiserver.strategy import Write
from dryrack.client.transport import ADMIN
from dryrack.extension.definitions import JsonPathError, parse_json_path
from dryrack.extension.definitions.filling import prune, with_defaults
from dryrack.extension.definitions.formats import has_format
from dryrack.extension.definitions.rules import Uncompiled, compile_rule, compile_rules
from dryrack.extension.definitions.values import value_problems

_SCRIPT = load(SCRIPTS / "custom-kinds.yaml")
_ANSWERS = {answer["step"]: answer for answer in read(_SCRIPT)}
_SCHEMA = _SCRIPT.steps[0].body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
_CREATED = [
    step
    for step in _SCRIPT.steps
    if step.request.startswith("POST /apis/custom.example.com/v1/")
    and isinstance(step.body, dict)
    and step.body.get("apiVersion") == "custom.example.com/v1"
]


class _Lookup:
    def get(self, resource: str, namespace: str, name: str) -> dict[str, Any] | None:
        return None

    def list(self, resource: str, namespace: str | None) -> tuple[dict[str, Any], ...]:
        return ()


class _Chance:
    def uuid(self) -> str:
        return "00000000-0000-4000-8000-000000000000"


_WRITE = Write(
    now="2026-01-01T00:00:00Z",
    user=ADMIN,
    namespace="parity-custom-kinds",
    subresource="",
    dry_run=False,
    chance=_Chance(),
    lookup=_Lookup(),
    warn=lambda text: None,
)


def _strategy() -> CustomStrategy:
    return CustomStrategy(
        api_version="custom.example.com/v1",
        kind="Box",
        namespaced=True,
        schema=_SCHEMA,
        stored_version=StoredVersion("custom.example.com/v1", _SCHEMA),
        rules=compile_rules(_SCHEMA),
        has_status=True,
    )


@pytest.mark.parametrize("step", _CREATED, ids=[step.name for step in _CREATED])
def test_an_object_is_refused_for_the_recorded_reasons(step: Step) -> None:
    """The causes of a refusal are the recorded ones in their order; what was taken has none."""
    strategy = _strategy()
    answer = _ANSWERS[step.name]
    meta = {**step.body["metadata"], "namespace": "parity-custom-kinds"}
    obj = strategy.default(prune(_SCHEMA, {**step.body, "metadata": meta}), _WRITE)
    found = strategy.validate_create(strategy.prepare_create(obj, _WRITE), _WRITE)
    causes = answer["body"].get("details", {}).get("causes", [])

    assert [(p.reason.value, p.field, p.message) for p in found] == [
        (cause["reason"], cause["field"], cause["message"]) for cause in causes
    ]


def test_what_has_not_changed_is_not_checked_again() -> None:
    """A schema that became stricter does not lock objects, except where they change."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "maxLength": 1}, "b": {"type": "integer"}},
    }
    old = {"a": "long", "b": 1}

    assert list(value_problems(schema, {"a": "long", "b": 2}, old=old)) == []
    assert [p.field for p in value_problems(schema, {"a": "longer", "b": 2}, old=old)] == ["a"]


def test_items_with_keys_are_compared_with_themselves() -> None:
    """An item of a map list is found again by its keys, wherever it stands."""
    item = {"type": "object", "properties": {"k": {"type": "string"}, "v": {"maximum": 1}}}
    schema = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": item,
    }
    old = [{"k": "a", "v": 5}, {"k": "b", "v": 6}]

    assert list(value_problems(schema, [{"k": "b", "v": 6}], old=old)) == []
    assert len(list(value_problems(schema, [{"k": "b", "v": 7}], old=old))) == 1


def test_transition_rules_need_something_to_compare_with() -> None:
    """A rule about `oldSelf` is tried on updates alone, an optional one always."""
    schema = {
        "type": "object",
        "properties": {
            "a": {
                "type": "integer",
                "x-kubernetes-validations": [{"rule": "self >= oldSelf"}],
            },
            "b": {
                "type": "integer",
                "x-kubernetes-validations": [
                    {"rule": "oldSelf.hasValue() || self == 0", "optionalOldSelf": True}
                ],
            },
        },
    }
    rules = compile_rules(schema)

    assert list(find_broken_rules(rules, {"a": 1, "b": 0})) == []
    assert [p.field for p in find_broken_rules(rules, {"a": 1, "b": 1})] == ["b"]
    assert [p.field for p in find_broken_rules(rules, {"a": 1, "b": 2}, {"a": 2, "b": 1})] == ["a"]


def test_rules_know_the_types_of_fields() -> None:
    """Formats and numbers have the types that CEL gives them; a wrong comparison is found."""
    schema = {
        "type": "object",
        "properties": {
            "when": {"type": "string", "format": "date-time"},
            "long": {"type": "string", "format": "duration"},
            "share": {"type": "number"},
            "some-name": {"type": "object", "additionalProperties": {"type": "integer"}},
            "either": {"x-kubernetes-int-or-string": True},
        },
    }
    rule = (
        "self.when > timestamp('2026-01-01T00:00:00Z') && self.long < duration('1h') "
        "&& self.share == 1.0 && self.some__dash__name['x'] == 1 && self.either == 3"
    )
    ruled = compile_rules({**schema, "x-kubernetes-validations": [{"rule": rule}]}, is_root=False)
    value = {
        "when": "2026-01-02T00:00:00Z",
        "long": "5m",
        "share": 1,
        "some-name": {"x": 1},
        "either": 3,
    }

    assert list(find_broken_rules(ruled, value)) == []
    assert isinstance(compile_rule({"rule": "self.share == 'x'"}, schema), Uncompiled)


def test_reserved_words_are_fields_too() -> None:
    """A field named as a word of CEL is found as it is written, and in its escaped form."""
    schema = {
        "type": "object",
        "properties": {"namespace": {"type": "string"}},
        "x-kubernetes-validations": [
            {"rule": "self.namespace == 'a' && self.__namespace__ == 'a' && has(self.namespace)"}
        ],
    }

    assert list(find_broken_rules(compile_rules(schema, is_root=False), {"namespace": "a"})) == []


def test_defaults_reach_as_deep_as_objects_do() -> None:
    """A default is completed by the defaults inside it; what is null and must not be is filled."""
    schema = {
        "type": "object",
        "properties": {
            "a": {
                "type": "object",
                "default": {},
                "properties": {"b": {"type": "integer", "default": 1}},
            },
            "c": {"type": "array", "items": {"type": "integer", "default": 2}},
            "d": {"type": "string"},
        },
    }

    assert with_defaults(schema, {"c": [None, 3], "d": None}) == {"a": {"b": 1}, "c": [2, 3]}


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", "2026-02-28", "2026-02-30"),
        ("datetime", "2026-01-01t00:00:00.5+01:00", "2026-01-01"),
        ("duration", "1h30m", "1 fortnight"),
        ("duration", "22 ns", ""),
        ("email", "a@b.c", "a"),
        ("hostname", "a-b.example", "-a"),
        ("ipv6", "::1", "1.2.3.4"),
        ("mac", "00:11:22:33:44:55", "00:11"),
        ("uri", "https://example.com/x", "x"),
        ("uuid4", "00000000-0000-4000-8000-000000000000", "00000000-0000-3000-8000-000000000000"),
        ("k8slongname", "a.b-c", "a..b"),
    ],
)
def test_formats_tell_good_from_bad(name: str, good: str, bad: str) -> None:
    """Each format takes an example of itself and refuses what is almost one."""
    assert has_format(name, good)
    assert not has_format(name, bad)


OBJECT: Any = {
    "a": {"b.c": [1, 2, 3], "b": {"c": 7}, "n": None, "s": "text", "f": 1.5, "t": True},
    "l": [{"t": "x", "v": 1}, {"t": "y", "v": 2, "w": [1, 2]}, {"t": "y", "v": 3, "z": None}],
    "": 5,
    "e": [],
    "a'b": 4,
}
# What client-go v0.36.4 makes of these.
LEADS: list[tuple[str, Any]] = [
    (".a.b\\.c[-1]", (3,)),
    (".a['b.c'][0]", None),
    (".a['b.c']", (7,)),
    (".a['b\\.c'][0]", (1,)),
    (".l[?(@.t=='y')].v", (2,)),
    (".l[?(@.t!='x')].v", (2,)),
    ('.l[?(@.t=="y")].v', (2,)),
    (".l[?(@.v>1)].t", ("y",)),
    (".l[?(@.v<=1)].t", ("x",)),
    (".l[?(@.w)].v", (2,)),
    (".l[?(@.nothing)].v", None),
    ('.l[?(@.v=="2")].v', None),
    (".l[?(@.v=2)].v", None),
    (".l[5].v", None),
    (".l[1:].v", (2,)),
    (".l[0:3:2].t", ("x",)),
    (".l[::0]", None),
    (".l[0,2].v", (1,)),
    (".l[*].w[1]", (2,)),
    (".l[-1].v", (3,)),
    (".l[]", ({"t": "x", "v": 1},)),
    (".a.n", (None,)),
    (".a.n.x", None),
    (".a.s[0]", None),
    (".a[0]", None),
    (".", (5,)),
    ("..w", ([1, 2],)),
    ("..v[0]", None),
    (".a.b.c", (7,)),
    ("$.a.b.c", (7,)),
    ("@.a.b.c", (7,)),
    (".a .b .c", (7,)),
    (".a'b", (4,)),
    (".a}.b", ({"b": {"c": 7}, "b.c": [1, 2, 3], "f": 1.5, "n": None, "s": "text", "t": True},)),
    ("'q'", ("q",)),
    ("12", (12,)),
    ("true", (True,)),
    ("word", None),
    (".a)", None),
    (".a;b", None),
    (".a'", None),
    (".e[0]", None),
]
UNREADABLE = [
    (".l[?(", "unterminated filter"),
    ("[?(@.a)", "unclosed array expect ]"),
    (".l[?(@.t=='y)].v", "unterminated filter"),
    (".a[", "unterminated array"),
    (".a[x]", "invalid array index x"),
    (".a[1:2:3:4]", "invalid array index 1:2:3:4"),
    (".a[99999999999999999999]", "array index 99999999999999999999 is not a number"),
    (".a[-]", "array index - is not a number"),
    (".a{", "unrecognized character in action: U+007B '{'"),
    (".a....b", "invalid multiple recursive descent"),
    ("....", "invalid multiple recursive descent"),
    ("(", "unrecognized character in action: U+0028 '('"),
    ("'", "unterminated quoted string"),
    ("'\\q'", "unquote string '\\q' error invalid syntax"),
    (".l[0,x]", "invalid array index x"),
    ("\n", "unclosed action"),
    (".a\n", "unclosed action"),
    (".l[?(@.t=='y'].v", "unterminated filter"),
]


@pytest.mark.parametrize(("path", "found"), LEADS)
def test_paths_lead_to_the_values_of_client_go(path: str, found: tuple[Any] | None) -> None:
    """Names, quotes, escapes, slices, unions, descents and comparisons."""
    assert parse_json_path(path).first(OBJECT) == found


@pytest.mark.parametrize(("path", "error"), UNREADABLE)
def test_paths_are_refused_in_the_words_of_client_go(path: str, error: str) -> None:
    """Text that kubectl cannot read is refused."""
    with pytest.raises(JsonPathError) as refusal:
        parse_json_path(path)

    assert str(refusal.value) == error


@pytest.mark.parametrize(
    "path",
    [
        ".a[?(@" + ".a" * 200_000,
        ".a[?(@" + "\\a" * 200_000 + " = 1)]",
        ".a[?(@.a==" + " " * 300_000 + "x",
        "'" + "\\'" * 200_000,
        ".a" + "[ " * 200_000,
        ".a[" + "0," * 100_000 + "x]",
        ".a[" + "1" * 300_000 + "]",
        "[?('" * 100_000,
        "." + "\\" * 300_000 + "{",
    ],
    ids=lambda path: path[:8],
)
def test_a_long_path_that_is_unreadable_is_refused_in_linear_time(path: str) -> None:
    """No part of it is read again and again."""
    with pytest.raises(JsonPathError):
        parse_json_path(path)


@pytest.mark.parametrize(
    "path", ["...*" * 50, ".l" + "[0,0,0,0]" * 50, "...*...*" + "[0:]" * 100_000]
)
def test_a_path_that_multiplies_values_leads_nowhere(path: str) -> None:
    """Instead of visiting more values than there are atoms."""
    deep: Any = 1
    for _ in range(100):
        deep = {"a": deep, "l": [[deep]]}

    assert parse_json_path(path).first(deep) is None

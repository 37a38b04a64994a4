"""Rules of a custom kind that cost much or are about changes, on both servers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.apiserver.replay import embedded_server
from tests.parity.server import Server

if TYPE_CHECKING:
    from tests.apiserver.replay import EmbeddedServer
    from tests.realcluster.controlplane import ControlPlane

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_POTS = "/apis/rules.example.com/v1/namespaces/default/pots"
_JSON = {"Content-Type": "application/json"}
_NUMBER = {"type": "integer"}


def _ruled(schema: dict[str, Any], *rules: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": list(rules)}


def _list(most: int) -> dict[str, Any]:
    return {"type": "array", "maxItems": most, "items": _NUMBER}


# Far above the limit of one evaluation for a hundred numbers.
_RUINOUS = {"rule": "self.all(x, self.all(y, self.all(z, x + y + z >= 0)))"}

_SPEC = {
    "small": _ruled(_NUMBER, {"rule": "self > 5", "message": "too small"}),
    "moving": _ruled(_NUMBER, {"rule": "self != oldSelf", "message": "must move"}),
    "optional": _ruled(
        _NUMBER, {"rule": "self > oldSelf.orValue(3)", "optionalOldSelf": True, "message": "grow"}
    ),
    "short": _ruled(_list(10), {"rule": "self[2] > 0"}),
    "plain": {"type": "array", "maxItems": 10, "items": _ruled(_NUMBER, {"rule": "self > 5"})},
    "keyed": {
        "type": "array",
        "maxItems": 10,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {
            "type": "object",
            "required": ["k"],
            "properties": {
                "k": {"type": "string"},
                "v": _ruled(_NUMBER, {"rule": "self > 5"}, {"rule": "self >= oldSelf"}),
            },
        },
    },
    "ruinous": _ruled(_list(100), _RUINOUS, {"rule": "false", "message": "never tried"}),
    "told": _ruled(
        _list(100),
        {
            "rule": "self.size() != 2",
            "messageExpression": "self[0] > 0 ? ' there are two ' : ''",
        },
        {
            "rule": "self.size() != 3",
            "messageExpression": "self[7] > 0 ? 'a' : 'b'",
            "message": "plain",
        },
        {"rule": "self.size() != 4", "messageExpression": "'two\\nlines'"},
    ),
    "deep": _ruled(_NUMBER, {"rule": " + ".join(["self"] * 60) + " != 60", "message": "sixty"}),
}
_DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "pots.rules.example.com"},
    "spec": {
        "group": "rules.example.com",
        "names": {"plural": "pots", "singular": "pot", "kind": "Pot", "listKind": "PotList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": _SPEC}},
                    }
                },
            }
        ],
    },
}

_HUNDRED = list(range(100))
_CREATED: dict[str, Any] = {
    "all is well": {"small": 6, "moving": 1, "optional": 4, "short": [1, 2, 3]},
    "too small": {"small": 5, "optional": 3},
    "no such item": {"short": [1]},
    "ruinous": {"ruinous": _HUNDRED},
    "ruinous but short": {"ruinous": [1], "told": [1, 2]},
    "a message": {"told": [1, 2]},
    "no message": {"told": [0, 2]},
    "a message that fails": {"told": [1, 2, 3]},
    "a message of two lines": {"told": [1, 2, 3, 4]},
    "deep": {"deep": 1},
    "items": {"plain": [1, 7], "keyed": [{"k": "a", "v": 1}]},
}
# Each is first created before there are rules for it.
_CHANGED: dict[str, tuple[Any, Any]] = {
    "nothing": ({"small": 1, "plain": [1]}, {"small": 1, "plain": [1]}),
    "something else": ({"small": 1, "optional": 1}, {"small": 1, "optional": 4}),
    "itself": ({"small": 1}, {"small": 2}),
    "not moving": ({"moving": 1}, {"moving": 1}),
    "an error that was there": ({"short": [1], "small": 6}, {"short": [1], "small": 7}),
    "a list around an item": ({"plain": [1]}, {"plain": [1, 8]}),
    "another keyed item": (
        {"keyed": [{"k": "a", "v": 1}, {"k": "b", "v": 2}]},
        {"keyed": [{"k": "b", "v": 2}, {"k": "a", "v": 0}, {"k": "c", "v": 3}]},
    ),
}


def _sent(server: Server | EmbeddedServer, method: str, path: str, body: Any) -> Any:
    content = json.dumps(body).encode() if body is not None else b""
    return json.loads(server.send(method, path, headers=_JSON, content=content)[2])


def _told(answer: Any) -> Any:
    """Return the verdict of a server; causes as a set, because maps have no order."""
    if answer["kind"] != "Status":
        return answer.get("spec")
    causes = answer.get("details", {}).get("causes", [])
    return answer["code"], sorted(map(json.dumps, causes)) or answer["message"]


def _pot(spec: Any, name: str = "pot") -> Any:
    return {
        "apiVersion": "rules.example.com/v1",
        "kind": "Pot",
        "metadata": {"name": name},
        "spec": spec,
    }


def _define(server: Server | EmbeddedServer, *, ruled: bool) -> None:
    body = json.loads(json.dumps(_DEFINITION))
    if not ruled:
        body = _without_rules(body)
    path = f"{_DEFINITIONS}/{body['metadata']['name']}"
    known = _sent(server, "GET", path, None)
    if known["kind"] == "Status":
        answer = _sent(server, "POST", _DEFINITIONS, body)
    else:
        known["spec"] = body["spec"]
        answer = _sent(server, "PUT", path, known)
    assert answer["kind"] != "Status", answer["message"]


def _without_rules(part: Any) -> Any:
    if isinstance(part, dict):
        kept = {k: v for k, v in part.items() if k != "x-kubernetes-validations"}
        return {key: _without_rules(value) for key, value in kept.items()}
    return [_without_rules(each) for each in part] if isinstance(part, list) else part


def _until_ruled(server: Server) -> None:
    """A real server takes a moment until it holds objects to a new definition."""
    broken = _pot({"small": 1})
    while _sent(server, "POST", f"{_POTS}?dryRun=All", broken)["kind"] != "Status":
        pass


@pytest.mark.real
@pytest.mark.timeout(300)
def test_rules_are_tried_as_by_a_real_server(real_plane: ControlPlane) -> None:
    """Costs, messages, errors and what a change excuses are the real server's."""
    real = Server.of(real_plane.kubeconfig)
    embedded = embedded_server()
    try:
        for server in (real, embedded):
            _define(server, ruled=False)
        real_plane.kubectl("wait", "--for=condition=Established", "crd/pots.rules.example.com")
        for server in (real, embedded):
            for number, (old, _) in enumerate(_CHANGED.values()):
                _sent(server, "POST", _POTS, _pot(old, f"pot-{number}"))
            _define(server, ruled=True)
        _until_ruled(real)
        for what, spec in _CREATED.items():
            answers = [
                _told(_sent(server, "POST", f"{_POTS}?dryRun=All", _pot(spec)))
                for server in (embedded, real)
            ]
            assert answers[0] == answers[1], what
        for number, (what, (_, new)) in enumerate(_CHANGED.items()):
            answers = []
            for server in (embedded, real):
                path = f"{_POTS}/pot-{number}"
                body = {**_sent(server, "GET", path, None), "spec": new}
                answers.append(_told(_sent(server, "PUT", path, body)))
            assert answers[0] == answers[1], what
    finally:
        real.send("DELETE", f"{_DEFINITIONS}/pots.rules.example.com", headers={}, content=b"")
        embedded.close()

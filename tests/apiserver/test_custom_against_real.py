"""Spoilt objects of a custom kind, sent to the embedded server and to a real one."""

from __future__ import annotations

import copy
import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from tests.apiserver.replay import embedded_server
from tests.apiserver.slips import places, spoilt
from tests.parity.script import SCRIPTS, load
from tests.parity.server import Server

if TYPE_CHECKING:
    from tests.apiserver.replay import EmbeddedServer
    from tests.realcluster.controlplane import ControlPlane

_SCRIPT = load(SCRIPTS / "custom-kinds.yaml")
_DEFINITION = _SCRIPT.steps[0].body
_SAMPLES = [
    step.body
    for step in _SCRIPT.steps
    if step.request.startswith("POST /apis/custom.example.com/v1/")
    and isinstance(step.body, dict)
    and step.body.get("apiVersion") == "custom.example.com/v1"
    and step.body.get("kind") == "Box"
    and "spec" in step.body
]
_JUNK: tuple[Any, ...] = (
    *(None, 0, -1, 5, 1.5, 10**12, "", "x", "a b", "1h", "A_b", True, False),
    *([], {}, [None], ["a", "a"], {"a": None}, {"a": "b"}, [{}]),
)
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_BOXES = "/apis/custom.example.com/v1/namespaces/default/boxes?dryRun=All"
_JSON = {"Content-Type": "application/json"}
_OBJECTS = 300


def _spoilt(chance: random.Random) -> dict[str, Any]:
    body = chance.choice(_SAMPLES) | {"metadata": {"name": "spoilt"}}
    place = chance.choice([path for path, _ in places(body["spec"]) if path])
    return body | {"spec": spoilt(body["spec"], place, copy.deepcopy(chance.choice(_JUNK)))}


def _verdict(server: Server | EmbeddedServer, body: dict[str, Any]) -> Any:
    """Return the verdict of a server; causes as a set, because maps have no order."""
    content = json.dumps(body).encode()
    _, _, answer = server.send("POST", _BOXES, headers=_JSON, content=content)
    told = json.loads(answer)
    if told["kind"] != "Status":
        return {key: value for key, value in told.items() if key != "metadata"}
    causes = told.get("details", {}).get("causes", [])
    return told["code"], sorted(map(json.dumps, causes)) or told["message"]


@pytest.mark.real
def test_spoilt_objects_get_the_verdict_of_a_real_server(real_plane: ControlPlane) -> None:
    """Both servers report the same problems of a custom object."""
    real = Server.of(real_plane.kubeconfig)
    embedded = embedded_server()
    content = json.dumps(_DEFINITION).encode()
    for server in (real, embedded):
        server.send("POST", _DEFINITIONS, headers=_JSON, content=content)
    name = _DEFINITION["metadata"]["name"]
    real_plane.kubectl("wait", "--for=condition=Established", f"crd/{name}")
    chance = random.Random(20260101)
    try:
        for _ in range(_OBJECTS):
            body = _spoilt(chance)
            assert _verdict(embedded, body) == _verdict(real, body), json.dumps(body["spec"])
    finally:
        real.send("DELETE", f"{_DEFINITIONS}/{name}", headers={}, content=b"")
        embedded.close()

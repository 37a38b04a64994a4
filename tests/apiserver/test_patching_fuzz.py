"""Patches of all kinds, many of them wrong, sent to the embedded server."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from tests.apiserver.generate_objects import Maker, kind_of, spoiled
from tests.apiserver.generate_patches import path_into
from tests.apiserver.replay import embedded_server

_CONTAINERS = [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]
_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": _CONTAINERS}}
_REQUEST = {"name": "a", "exactly": {"deviceClassName": "c"}}
# Group, version, kind, path of the collection, and the spec of an object that is accepted.
_RESOURCES: tuple[tuple[tuple[str, str, str], str, dict[str, Any]], ...] = (
    (("", "v1", "ConfigMap"), "/api/v1/namespaces/n/configmaps", {}),
    (("", "v1", "Node"), "/api/v1/nodes", {}),
    (("", "v1", "Pod"), "/api/v1/namespaces/n/pods", {"spec": {"containers": _CONTAINERS}}),
    (
        ("apps", "v1", "Deployment"),
        "/apis/apps/v1/namespaces/n/deployments",
        {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE}},
    ),
    (
        ("resource.k8s.io", "v1", "ResourceClaim"),
        "/apis/resource.k8s.io/v1/namespaces/n/resourceclaims",
        {"spec": {"devices": {"requests": [_REQUEST]}}},
    ),
)
_ANSWERS = (200, 201, 400, 404, 409, 422)
# What the real server does not expect either, and says so: patches that it cannot type or merge.
_UNEXPECTED = 500
SEEDS = 60


def a_patch(random: Random, maker: Maker, live: dict[str, Any]) -> tuple[str, Any]:
    """A media type and a patch of it; half of the patches are spoiled."""
    match random.choice(("strategic", "merge", "json", "apply")):
        case "strategic":
            made: Any = {**maker.patch(live), "metadata": {}}
            return "application/strategic-merge-patch+json", spoiled(random, made)
        case "merge":
            made = {**maker.object(), "metadata": {}}
            return "application/merge-patch+json", spoiled(random, made)
        case "json":
            made = [_operation(random, maker, live) for _ in range(random.randint(1, 3))]
            return "application/json-patch+json", made
        case _:
            wanted = maker.object()
            made = {name: spoiled(random, each) for name, each in wanted.items()}
            named = {"apiVersion": wanted["apiVersion"], "kind": wanted["kind"]}
            return "application/apply-patch+yaml", {**made, **named, "metadata": {"name": "a"}}


def _operation(random: Random, maker: Maker, live: dict[str, Any]) -> dict[str, Any]:
    return {
        "op": random.choice(("add", "remove", "replace", "copy", "move", "test")),
        "path": path_into(random, live),
        "from": path_into(random, live),
        "value": spoiled(random, maker.object().get("spec")),
    }


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_patch_is_answered(seed: int) -> None:
    """Every patch is answered with an object or a refusal, and so is the next request."""
    random = Random(seed)
    kind, path, spec = _RESOURCES[seed % len(_RESOURCES)]
    maker = Maker(kind_of(*kind), random)
    server = embedded_server()
    server.make_namespace("n")
    body = json.dumps({"metadata": {"name": "a"}, **spec}).encode()
    created = server.send("POST", path, headers={"Content-Type": "application/json"}, content=body)
    assert created[0] == 201, created[2]
    for _ in range(6):
        live = json.loads(server.send("GET", f"{path}/a", headers={}, content=b"")[2])
        media_type, patch = a_patch(random, maker, live)
        status, _, answer = server.send(
            "PATCH",
            f"{path}/a{random.choice(('', '/status'))}?fieldManager={random.choice('xyz')}",
            headers={"Content-Type": media_type},
            content=json.dumps(patch).encode(),
        )

        assert status in (*_ANSWERS, _UNEXPECTED)
        assert json.loads(answer)["kind"] in (kind[2], "Status")
        assert status != _UNEXPECTED or media_type.endswith(("+yaml", "strategic-merge-patch+json"))
    server.close()

"""
The server answers any input, with a refusal that blames the client.

Good objects of many kinds are spoilt in one place, or a request is put together from odd parts.
The real server has a few answers of 500 for such things, and ours has the same.
"""

from __future__ import annotations

import copy
import json
import time
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apiserver.replay import EmbeddedServer, embedded_server

from dryrack.apiserver.ownership.patching import strategic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw


NAMESPACE = "hostile"
IN_NAMESPACE = f"namespaces/{NAMESPACE}/"
POD = {
    "metadata": {"name": "x", "labels": {"a": "b"}, "finalizers": ["example.com/f"]},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "env": [{"name": "A", "value": "B"}],
                "ports": [{"containerPort": 80}],
                "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]},
            }
        ],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "claim"}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "nodeSelector": {"zone": "a"},
    },
    "status": {"phase": "Pending"},
}
SLICE = {
    "metadata": {"name": "x"},
    "spec": {
        "driver": "d.example.com",
        "nodeName": "n",
        "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        "devices": [
            {
                "name": "d",
                "attributes": {"a": {"string": "s"}, "n": {"int": 1}},
                "capacity": {"m": {"value": "1Gi"}},
                "taints": [{"key": "k", "effect": "NoSchedule"}],
            }
        ],
    },
}
CLAIM = {
    "metadata": {"name": "x"},
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "r",
                    "exactly": {
                        "deviceClassName": "c",
                        "selectors": [{"cel": {"expression": "device.driver == 'd'"}}],
                    },
                }
            ],
            "constraints": [{"matchAttribute": "d.example.com/a"}],
            "config": [{"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}}],
        }
    },
    "status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]},
}
TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
SELECTOR: Raw = {"matchLabels": {"a": "b"}}
DEFINITION = {
    "metadata": {"name": "racks.hostile.example.com"},
    "spec": {
        "group": "hostile.example.com",
        "scope": "Namespaced",
        "names": {"plural": "racks", "singular": "rack", "kind": "Rack"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"n": {"type": "integer"}}}
                        },
                    }
                },
            }
        ],
    },
}
OBJECTS: dict[str, Raw] = {
    f"/api/v1/{IN_NAMESPACE}pods": POD,
    f"/api/v1/{IN_NAMESPACE}configmaps": {"metadata": {"name": "x"}, "data": {"a": "b"}},
    f"/api/v1/{IN_NAMESPACE}secrets": {"metadata": {"name": "x"}, "data": {"a": "Yg=="}},
    f"/api/v1/{IN_NAMESPACE}events": {
        "metadata": {"name": "x"},
        "involvedObject": {"kind": "Pod", "namespace": NAMESPACE, "name": "p"},
        "lastTimestamp": "2026-01-01T00:00:00Z",
    },
    "/api/v1/nodes": {
        "metadata": {"name": "x"},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "podCIDR": "10.0.0.0/24"},
        "status": {"capacity": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]},
    },
    "/api/v1/namespaces": {"metadata": {"name": "x"}, "spec": {"finalizers": ["kubernetes"]}},
    f"/apis/coordination.k8s.io/v1/{IN_NAMESPACE}leases": {
        "metadata": {"name": "x"},
        "spec": {"holderIdentity": "me", "renewTime": "2026-01-01T00:00:00.000000Z"},
    },
    f"/apis/apps/v1/{IN_NAMESPACE}deployments": {
        "metadata": {"name": "x"},
        "spec": {"replicas": 1, "selector": SELECTOR, "template": TEMPLATE},
    },
    f"/apis/batch/v1/{IN_NAMESPACE}jobs": {
        "metadata": {"name": "x"},
        "spec": {
            "template": {
                "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
            }
        },
    },
    "/apis/resource.k8s.io/v1/resourceslices": SLICE,
    f"/apis/resource.k8s.io/v1/{IN_NAMESPACE}resourceclaims": CLAIM,
    f"/apis/resource.k8s.io/v1beta1/{IN_NAMESPACE}resourceclaims": {
        "metadata": {"name": "x"},
        "spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "c", "count": 2}]}},
    },
    "/apis/resource.k8s.io/v1/deviceclasses": {
        "metadata": {"name": "x"},
        "spec": {"selectors": [{"cel": {"expression": "true"}}]},
    },
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": DEFINITION,
}
odd = st.sampled_from(
    [None, True, 0, -1, 1.5, 2**63, 10**30, "", "x", "a b", "\u0000", "é", [], [None], {}, {"": 0}]
) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)
patch_types = st.sampled_from(
    [
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "application/json-patch+json",
    ]
)


@cache
def server() -> EmbeddedServer:
    made = embedded_server()
    made.make_namespace(NAMESPACE)
    return made


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    yield
    server().close()


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in an object, those that it could have besides as well."""
    entries: Any = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in entries:
        yield (*at, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*at, key))
    if isinstance(value, dict):
        yield (*at, "strange")


def spoilt(obj: Raw, place: tuple[Any, ...], value: Any) -> Raw:
    made = copy.deepcopy(obj)
    inner: Any = made
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return made


def ask(request: str, body: Any, content_type: str = "application/json") -> Raw:
    method, _, path = request.partition(" ")
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    status, _, answer = server().send(
        method, path, headers={"Content-Type": content_type}, content=content
    )
    told: Raw = json.loads(answer)
    if status >= 500:
        # What the real server did not expect anybody to send is a 500 without a reason; a bug of
        # ours would have been raised.
        assert "reason" not in told, (request, body, told)
    return told


@pytest.mark.parametrize("path", sorted(OBJECTS))
def test_what_is_spoilt_was_good(path: str) -> None:
    """Every object is one that the server takes as it stands."""
    made = ask(f"POST {path}?dryRun=All", OBJECTS[path])

    assert made["kind"] != "Status", made


def test_a_body_of_countless_words_is_refused() -> None:
    """Large YAML is refused before it blocks other requests for long."""
    body = b"metadata: {name: x}\ndata:\n" + b"".join(b" k%d: v\n" % n for n in range(130_000))
    told = ask(f"POST /api/v1/{IN_NAMESPACE}configmaps", body, "application/yaml")

    assert told["code"] == 400
    assert "too many values" in told["message"]


MANY = 20_000
BIG: dict[str, tuple[str, Any, str]] = {
    "owners": (
        "POST configmaps",
        {
            "metadata": {
                "name": "many",
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": f"{number}"}
                    for number in range(MANY)
                ],
            }
        },
        "application/json",
    ),
    "items by strategic merge": (
        "PATCH pods/x",
        {"spec": {"containers": [{"name": f"c{number}"} for number in range(MANY)]}},
        "application/strategic-merge-patch+json",
    ),
    "words by strategic merge": (
        "PATCH pods/x",
        {"metadata": {"finalizers": [f"e.com/{number}" for number in range(MANY)]}},
        "application/strategic-merge-patch+json",
    ),
    "deletions by strategic merge": (
        "PATCH pods/x",
        {
            "spec": {
                "tolerations": [{"key": "k"}],
                "containers": [{"name": f"c{n}", "$patch": "delete"} for n in range(MANY)],
            }
        },
        "application/strategic-merge-patch+json",
    ),
    "items by apply": (
        "PATCH pods/many?fieldManager=m",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "many"},
            "spec": {"containers": [{"name": f"c{number}"} for number in range(MANY)]},
        },
        "application/apply-patch+yaml",
    ),
}


@pytest.mark.parametrize("what", sorted(BIG))
def test_twice_as_much_takes_twice_as_long(what: str) -> None:
    """A list that fills a body is gone through, and not once for each of its items."""
    request, body, content_type = BIG[what]
    method, _, path = request.partition(" ")
    ask(f"POST /api/v1/{IN_NAMESPACE}pods", POD)
    began = time.thread_time()
    ask(f"{method} /api/v1/{IN_NAMESPACE}{path}", body, content_type)

    # Some seconds at the most on any machine; a look at each for each would take minutes.
    assert time.thread_time() - began < 15


@pytest.mark.parametrize(
    ("live", "patch", "left"),
    [
        (
            {"finalizers": [f"e.com/{number}" for number in range(2 * MANY)]},
            {
                "$deleteFromPrimitiveList/finalizers": [
                    f"e.com/{number}" for number in range(MANY, 3 * MANY)
                ]
            },
            {"finalizers": [f"e.com/{number}" for number in range(MANY)]},
        ),
        (
            {f"k{number}": "" for number in range(2 * MANY)},
            {"$retainKeys": [f"k{number}" for number in reversed(range(MANY, 3 * MANY))]},
            {f"k{number}": "" for number in range(MANY, 2 * MANY)},
        ),
    ],
    ids=["deleteFromPrimitiveList", "retainKeys"],
)
def test_a_directive_with_many_values_takes_linear_time(live: Raw, patch: Raw, left: Raw) -> None:
    """The server does not compare each value of the object with each value of the directive."""
    began = time.thread_time()

    assert strategic.merge(live, patch, None) == left
    # It takes some hundredths of a second; with comparisons of all pairs it takes many seconds.
    assert time.thread_time() - began < 2


def test_many_tolerations_of_a_runtime_class_take_linear_time() -> None:
    """The server does not compare each of them with each toleration of the pod."""
    there = [{"key": f"k{number}", "operator": "Exists"} for number in range(MANY)]
    wanted = [
        {"key": f"k{number}", "operator": "Exists"} for number in range(MANY - 1, 2 * MANY - 1)
    ]
    runtime_class = {
        "metadata": {"name": "many"},
        "handler": "many",
        "scheduling": {"tolerations": wanted},
    }
    made = ask("POST /apis/node.k8s.io/v1/runtimeclasses", runtime_class)
    assert made["kind"] == "RuntimeClass", made
    pod: Raw = copy.deepcopy(POD) | {"metadata": {"name": "many"}}
    pod["spec"] |= {"runtimeClassName": "many", "tolerations": there}
    began = time.thread_time()
    stored = ask(f"POST /api/v1/{IN_NAMESPACE}pods", pod)

    assert time.thread_time() - began < 3
    keys = [each["key"] for each in stored["spec"]["tolerations"]]
    assert [key for key in keys if key.startswith("k")][:MANY] == [f"k{n}" for n in range(MANY)]
    assert keys.count(f"k{MANY - 1}") == keys.count(f"k{MANY}") == 1


@st.composite
def spoilt_objects(draw: st.DrawFn) -> tuple[str, Raw, Raw]:
    path = draw(st.sampled_from(sorted(OBJECTS)))
    obj = OBJECTS[path]
    place = draw(st.sampled_from(sorted(places(obj), key=repr)))
    return path, obj, spoilt(obj, place, draw(odd))


@settings(max_examples=400)
@given(spoilt_objects(), patch_types)
def test_a_spoilt_object_is_taken_or_refused(case: tuple[str, Raw, Raw], patch_type: str) -> None:
    """Create, update, status and every patch answer; what was stored can be read and listed."""
    path, good, bad = case
    name = good["metadata"]["name"]
    ask(f"POST {path}", bad)
    ask(f"POST {path}", good)
    ask(f"PUT {path}/{name}", bad)
    ask(f"PUT {path}/{name}/status", bad)
    manager = "?fieldManager=m" if "apply" in patch_type else ""
    ask(f"PATCH {path}/{name}{manager}", bad, patch_type)
    ask(f"PATCH {path}/{name}/status{manager}", bad, patch_type)
    ask(f"GET {path}?fieldSelector=metadata.name!%3D{name}", b"")
    stored = ask(f"GET {path}/{name}", b"")
    ask(f"DELETE {path}/{name}", bad.get("spec") if isinstance(bad.get("spec"), dict) else b"")
    ask(f"PATCH {path}/{name}", {"metadata": {"finalizers": None}}, "application/merge-patch+json")
    ask(f"DELETE {path}/{name}?gracePeriodSeconds=0", b"")

    assert stored["kind"]


@settings(max_examples=200)
@given(
    st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]),
    st.lists(
        st.sampled_from(
            [
                *("api", "apis", "v1", "apps", "namespaces", NAMESPACE, "pods", "status", "watch"),
                *("%2e", "", "..", "é", "log", "x"),
            ]
        ),
        max_size=7,
    ),
    st.dictionaries(
        st.sampled_from(["limit", "continue", "labelSelector", "fieldSelector", "dryRun", "force"]),
        st.text(alphabet="a1=!(,)%&é-", max_size=6),
        max_size=3,
    ),
    st.binary(max_size=20),
)
def test_an_odd_request_is_answered(
    method: str, parts: list[str], query: dict[str, str], body: bytes
) -> None:
    """Any path, query and body get an answer below 500."""
    path = "/" + "/".join(parts)
    asked = "&".join(f"{key}={value}" for key, value in query.items())
    status, _, _ = server().send(method, f"{path}?{asked}", headers={}, content=body)

    assert status < 500

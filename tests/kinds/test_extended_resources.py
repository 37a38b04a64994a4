"""The claim for extended resources that device classes stand for."""

from __future__ import annotations

from typing import Any

import pytest

from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.expansion.extended_resources import (
    asked_for,
    claim_of,
    classes_by_resource,
    request_mappings,
)
from dryrack.kinds.resource import DeviceClass

GPU = "example.com/gpu"


def container(gpus: int = 0, **more: Any) -> Any:
    limits = {GPU: str(gpus)} if gpus else {}
    return {"name": "c", "resources": {"limits": {"cpu": "1", **limits}}, **more}


def pod(*containers: Any, init: tuple[Any, ...] = ()) -> Pod:
    spec = {"containers": list(containers), "initContainers": list(init)}
    return decode({"metadata": {"name": "p", "namespace": "n"}, "spec": spec}, Pod)


def device_class(name: str, resource: str | None = None, created: str = "") -> DeviceClass:
    metadata = {"name": name, **({"creationTimestamp": created} if created else {})}
    spec = {"extendedResourceName": resource} if resource else {}
    return decode({"metadata": metadata, "spec": spec}, DeviceClass)


def requests(of: Pod, *classes: DeviceClass) -> list[tuple[str, str, int]]:
    claim = claim_of(of, classes_by_resource(classes or (device_class("gpu", GPU),)))
    if claim is None:
        return []
    exact = [(each.name, each.exactly) for each in claim.spec.devices.requests]
    return [(name, e.device_class_name, e.count) for name, e in exact if e is not None]


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (pod(container(2)), [("container-0-request-1", "gpu", 2)]),
        (pod(container()), []),
        (
            pod(container(1), container(3)),
            [("container-0-request-1", "gpu", 1), ("container-1-request-1", "gpu", 3)],
        ),
        (pod(container(2), init=(container(1),)), [("container-1-request-1", "gpu", 2)]),
        (
            pod(container(1), init=(container(3), container(4))),
            [("container-1-request-1", "gpu", 3), ("container-2-request-1", "gpu", 1)],
        ),
        (
            pod(container(1), init=(container(1, **SIDECAR),)),
            [("container-0-request-1", "gpu", 1), ("container-1-request-1", "gpu", 1)],
        ),
    ],
)
def test_containers_that_stay_ask_for_their_own(
    asked: Pod, expected: list[tuple[str, str, int]]
) -> None:
    """Init containers that end use what comes after them, and ask for what they need beyond."""
    assert requests(asked) == expected


def uses(of: Pod) -> list[tuple[str, str]]:
    found = request_mappings(of, classes_by_resource((device_class("gpu", GPU),)))
    assert {each.resource_name for each in found} <= {GPU}
    return [(each.container_name, each.request_name) for each in found]


def named(name: str, gpus: int) -> Any:
    return {**container(gpus), "name": name}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (pod(named("a", 2)), [("a", "container-0-request-1")]),
        (pod(named("a", 0)), []),
        (
            pod(named("a", 2), named("b", 1), init=(named("i", 1),)),
            [
                ("a", "container-1-request-1"),
                ("b", "container-2-request-1"),
                ("i", "container-1-request-1"),
            ],
        ),
        (
            pod(named("a", 1), init=(named("i", 3), named("j", 4), named("k", 0))),
            [
                ("a", "container-3-request-1"),
                ("i", "container-3-request-1"),
                ("i", "container-1-request-1"),
                ("j", "container-3-request-1"),
                ("j", "container-1-request-1"),
            ],
        ),
    ],
)
def test_containers_are_told_which_requests_are_theirs(
    asked: Pod, expected: list[tuple[str, str]]
) -> None:
    """Init containers that end share the request of the neediest among them."""
    assert uses(asked) == expected


def test_every_class_stands_for_a_resource_of_its_name() -> None:
    """No warning is given."""
    name = "deviceclass.resource.kubernetes.io/gpu"
    asked = pod({"name": "c", "resources": {"requests": {name: "1"}, "limits": {name: "1"}}})

    assert asked_for(asked) == (name,)
    assert requests(asked, device_class("gpu")) == [("container-0-request-0", "gpu", 1)]


def test_of_classes_for_one_resource_the_newest_counts() -> None:
    """And of those that are as old the first by name."""
    old = device_class("a", GPU, "2025-01-01T00:00:00Z")
    new = device_class("b", GPU)
    newest = device_class("c", GPU, "2026-01-01T00:00:00Z")

    assert classes_by_resource((newest, old, new))[GPU] is newest
    assert classes_by_resource((new, device_class("a", GPU)))[GPU].metadata.name == "a"


def test_the_claim_is_named_after_the_pod() -> None:
    """By the name that the cluster has given it, if it has."""
    classes = classes_by_resource((device_class("gpu", GPU),))
    claim = claim_of(pod(container(1)), classes)
    assert claim is not None

    assert (claim.metadata.namespace, claim.metadata.name) == ("n", "p-extended-resources")

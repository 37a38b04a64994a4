"""The end of a namespace, step by step."""

from __future__ import annotations

from typing import Any

from dryrack.client.endpoints import CONFIG_MAPS, NAMESPACES, PODS
from dryrack.controllers.namespaces.deletion import plan
from dryrack.controllers.writes import DeleteAll, Update

Raw = dict[str, Any]

NOW = 1_800_000_000.0
ENDING: Raw = {
    "metadata": {"name": "play", "deletionTimestamp": "2027-01-15T08:00:00Z"},
    "spec": {"finalizers": ["kubernetes"]},
    "status": {"phase": "Terminating"},
}
THING: Raw = {"metadata": {"name": "x"}}
GOING: Raw = {"metadata": {"name": "x", "deletionTimestamp": "2027-01-15T08:00:00Z"}}


def remaining(writes: tuple[object, ...]) -> str:
    """What the namespace is told of what is left."""
    (told,) = (each for each in writes if isinstance(each, Update))
    conditions = {each["type"]: each["reason"] for each in told.object["status"]["conditions"]}
    return str(conditions["NamespaceContentRemaining"])


def test_pods_go_before_what_they_rely_on() -> None:
    """While there is a pod, deleted or not, nothing else is deleted, and nothing is counted."""
    first = plan(ENDING, {PODS: [THING], CONFIG_MAPS: [THING]}, NOW).writes
    then = plan(ENDING, {PODS: [GOING], CONFIG_MAPS: [THING]}, NOW)
    last = plan(ENDING, {PODS: [], CONFIG_MAPS: [THING]}, NOW).writes

    assert DeleteAll(PODS, "play") in first
    assert DeleteAll(CONFIG_MAPS, "play") not in first
    assert not any(isinstance(each, DeleteAll) for each in then.writes)
    assert then.again_seconds
    assert remaining(then.writes) == "ContentRemoved"
    assert [each for each in last if isinstance(each, DeleteAll)] == [
        DeleteAll(CONFIG_MAPS, "play")
    ]
    assert remaining(last) == "SomeResourcesRemain"


def test_an_empty_namespace_is_released() -> None:
    """Its finalizer goes when every kind has answered that nothing is left."""
    (freed,) = plan(ENDING, {PODS: [], CONFIG_MAPS: []}, NOW).writes

    assert isinstance(freed, Update)
    assert (freed.endpoint, freed.subresource) == (NAMESPACES, "finalize")
    assert freed.object["spec"]["finalizers"] == []

"""ReplicationControllers on an embedded cluster in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.controllers import scenes

from dryrack.client.client import Selection
from dryrack.client.endpoints import EVENTS, NODES, PODS, REPLICATION_CONTROLLERS
from dryrack.client.errors import InvalidError
from dryrack.cluster.initial_objects import virtual_node

if TYPE_CHECKING:
    from tests.stage import Stage

    from dryrack.kinds.raw import Raw

LABELS = {"app": "web"}


def controller(**spec: Any) -> Raw:
    template = {"metadata": {"labels": LABELS}, "spec": scenes.POD_SPEC}
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 3, "template": template} | spec,
    }


async def pods_of(stage: Stage) -> list[Raw]:
    return list((await stage.client.list(PODS, Selection(namespace="default"))).items)


async def test_a_controller_keeps_its_number_of_pods(stage: Stage) -> None:
    """Pods are created, replaced and deleted; labels and selector come from the template."""
    await stage.create(NODES, virtual_node("node-1"))
    [created] = await stage.create(REPLICATION_CONTROLLERS, controller())
    await stage.advance(10)
    pods = await pods_of(stage)
    found = await stage.client.get(REPLICATION_CONTROLLERS, "web", "default")
    events = (await stage.client.list(EVENTS, Selection(namespace="default"))).items

    assert (created["spec"]["selector"], created["metadata"]["labels"]) == (LABELS, LABELS)
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    assert {pod["metadata"]["ownerReferences"][0]["kind"] for pod in pods} == {
        "ReplicationController"
    }
    assert found["status"] == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "observedGeneration": 1,
    }
    made = [each for each in events if each["reason"] == "SuccessfulCreate"]
    assert {each["source"]["component"] for each in made} == {"replication-controller"}
    assert len(made) == 3

    await stage.client.delete(PODS, pods[0]["metadata"]["name"], namespace="default")
    await stage.advance(40)
    assert len(await pods_of(stage)) == 3

    wrong = {"status": {"readyReplicas": 0, "availableReplicas": 0}}
    await stage.client.patch(
        REPLICATION_CONTROLLERS, "web", wrong, namespace="default", subresource="status"
    )
    await stage.advance(1)
    repaired = await stage.client.get(REPLICATION_CONTROLLERS, "web", "default")
    assert repaired["status"] == found["status"]

    fewer = {"spec": {"replicas": 1}}
    await stage.client.patch(REPLICATION_CONTROLLERS, "web", fewer, namespace="default")
    await stage.advance(40)
    assert len(await pods_of(stage)) == 1
    revision = stage.store.revision
    await stage.advance(600)
    for resource in ("pods", "replicationcontrollers", "events"):
        assert not stage.store.events(resource, after=revision)


async def test_a_controller_adopts_and_releases_pods(stage: Stage) -> None:
    """An orphan with the labels is adopted; a pod that loses them is replaced."""
    metadata = {"name": "orphan", "namespace": "default", "labels": LABELS}
    await stage.create(PODS, {"metadata": metadata, "spec": scenes.POD_SPEC})
    await stage.create(REPLICATION_CONTROLLERS, controller(replicas=1))
    await stage.advance(1)
    assert [pod["metadata"]["name"] for pod in await pods_of(stage)] == ["orphan"]
    assert (await stage.pod("orphan"))["metadata"]["ownerReferences"][0]["controller"]

    other = {"metadata": {"labels": {"app": "other"}}}
    await stage.client.patch(PODS, "orphan", other, namespace="default")
    await stage.advance(1)
    assert "ownerReferences" not in (await stage.pod("orphan"))["metadata"]
    assert len(await pods_of(stage)) == 2


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"selector": {"app": "other"}}, "`selector` does not match template `labels`"),
        ({"replicas": -1}, "must be greater than or equal to 0"),
        ({"template": {"spec": scenes.POD_SPEC}}, "spec.selector: Required value"),
        (
            {
                "template": {
                    "metadata": {"labels": LABELS},
                    "spec": scenes.POD_SPEC | {"restartPolicy": "Never"},
                }
            },
            'supported values: "Always"',
        ),
    ],
)
async def test_an_invalid_controller_is_refused(stage: Stage, spec: Raw, problem: str) -> None:
    """The API server validates a ReplicationController as Kubernetes does."""
    with pytest.raises(InvalidError, match=problem):
        await stage.create(REPLICATION_CONTROLLERS, controller(**spec))

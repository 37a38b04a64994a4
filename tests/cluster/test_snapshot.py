"""A cluster that is read once: what it does not serve is not there, what it forbids is told."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from dryrack.base.errors import DryrackError
from dryrack.client.client import Client, Selection
from dryrack.client.endpoints import CLAIMS, PODS, TAINT_RULES
from dryrack.client.transport import Response
from dryrack.cluster import DECISION_KINDS, follow_snapshots, read_snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.stage import Stage

    from dryrack.client.transport import Request
    from dryrack.cluster.snapshots.snapshot import Snapshot
    from dryrack.kinds.meta import KubernetesObject


class Refusing:
    """A server that answers with empty lists, but for some resources."""

    def __init__(self, codes: dict[str, int]) -> None:
        self._codes = codes

    async def send(self, request: Request) -> Response:
        resource = request.path.rpartition("/")[2]
        code = self._codes.get(resource, 200)
        body: dict[str, object] = {"items": []}
        if code != 200:
            words = f'{resource} is forbidden: User "jane" cannot list resource "{resource}"'
            body = {"kind": "Status", "code": code, "message": words}
        return Response(code, (), json.dumps(body).encode())


def snapshot(codes: dict[str, int]) -> Snapshot:
    return asyncio.run(read_snapshot(Client(Refusing(codes)), DECISION_KINDS))


def test_kinds_that_are_not_served_have_no_objects() -> None:
    """Not every cluster has PodGroups and taint rules."""
    assert snapshot({"podgroups": 404, "workloads": 404, "devicetaintrules": 404}).notes == ()


def test_kinds_that_may_be_missing_and_are_forbidden_are_told() -> None:
    """The answer is about less than there is."""
    (note,) = snapshot({"devicetaintrules": 403, "services": 403}).notes

    assert note == (
        "the account cannot list devicetaintrules.resource.k8s.io, services; "
        "the result ignores them"
    )


def test_missing_rights_are_told_with_the_command_that_gives_them() -> None:
    """Which verb on which resource, for all that is needed."""
    with pytest.raises(DryrackError, match=r'"jane" cannot list resource "pods"') as raised:
        snapshot({"pods": 403})

    needed = str(raised.value).partition("--verb=get,list,watch --resource=")[2]
    assert needed.startswith("pods,nodes,resourceclaims.resource.k8s.io,")
    # kubectl refuses to name what the cluster does not serve.
    assert "podgroups" not in needed


@pytest.mark.stage(only=())
async def test_a_cluster_that_is_followed_is_told_again_when_it_changes(stage: Stage) -> None:
    """Once for changes that come together, and never while nothing changes."""
    told: list[list[str]] = []

    def note(objects: Sequence[KubernetesObject]) -> None:
        told.append(sorted(each.metadata.name for each in objects))

    kinds = (CLAIMS, PODS, TAINT_RULES)
    namespace = Selection(namespace="default")
    stage.run_beside(follow_snapshots(stage.client, kinds, namespace, note, clock=stage.clock))
    await stage.advance(5)
    for name in ("one", "two"):
        requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
        metadata = {"name": name, "namespace": "default"}
        spec = {"devices": {"requests": requests}}
        await stage.client.create(CLAIMS, {"metadata": metadata, "spec": spec})
    await stage.advance(5)
    await stage.client.delete(CLAIMS, "one", namespace="default")
    await stage.advance(60)

    assert told == [[], ["one", "two"], ["two"]]

"""The rights that are shipped are those that the page needs: all of them, and no other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import yaml
from tests.client.planes import CountedChance
from tests.cluster.rights_witness import As, Witness, endpoint_of, granted, workloads_of_1_35
from tests.dashboard.small_world import DRIVER, small_world

from dryrack.apiserver.runtime_config import parse
from dryrack.client.client import Client
from dryrack.client.endpoints import DEFINITIONS
from dryrack.client.timekeeping import VirtualClock, settle
from dryrack.client.transport import User
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.cluster.process.modes import AuthorizationMode
from dryrack.cluster.rights import MANIFESTS, dashboard
from dryrack.dashboard.data.trial import read_trial
from dryrack.dashboard.decisions import Decisions
from dryrack.dashboard.live import Live

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

VIEWER = "jane"
BINDING: Raw = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "viewer"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "dryrack-dashboard",
    },
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": VIEWER}],
}


def test_the_page_does_with_its_rights_all_that_it_does_and_has_no_others() -> None:
    """On a cluster that serves every kind, with an account that has nothing but the role."""
    witness = asyncio.run(_looked_at())

    assert witness.forbidden == []
    assert witness.done == set(granted(yaml.safe_load_all(dashboard())))


async def _looked_at() -> Witness:
    clock = VirtualClock()
    chance = CountedChance()
    options = ControlPlaneOptions(
        clock=clock,
        chance=chance,
        authorization=AuthorizationMode.RBAC,
        runtime_config=parse("api/all=true"),
        feature_gates={"GenericWorkload": True},
    )
    async with embedded(options, engines=()) as cluster:
        admin = cluster.client
        await small_world(admin)
        await admin.create(DEFINITIONS, yaml.safe_load((MANIFESTS / "podgroups.yaml").read_text()))
        await admin.create(DEFINITIONS, workloads_of_1_35())
        await settle(50)
        for each in (*yaml.safe_load_all(dashboard()), BINDING):
            await admin.create(endpoint_of(each), each)
        witness = Witness(As(cluster.transport, User(VIEWER, ("system:authenticated",))))
        live = Live(Client(witness), clock=clock, chance=chance)
        async with asyncio.TaskGroup() as group:
            following = group.create_task(live.run(), name="the page's view")
            await live.look()
            decisions = Decisions(live)
            await decisions.explain("pod", "team/waits")
            body = b'{"kind":"pod","namespace":"team","name":"waits","change":{"count":1}}'
            await decisions.attempt(read_trial(body))
            await decisions.defragment(DRIVER)
            following.cancel()
        return witness

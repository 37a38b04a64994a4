"""
The rights that are shipped are those that the publisher needs: all of them, and no other.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.client.planes import CountedChance
from tests.cluster import publisher_play
from tests.cluster.publisher_play import ACCOUNT, LEASE, NAMESPACE
from tests.cluster.rights_witness import As, Witness, endpoint_of, granted, granted_names
from tests.realcluster import kubeconfig, readiness
from tests.realcluster.controlplane import Options

from dryrack.client.client import Client
from dryrack.client.endpoints import SLICES
from dryrack.client.https import connected
from dryrack.client.kubeconfig import load
from dryrack.client.timekeeping import VirtualClock, settle
from dryrack.client.transport import User
from dryrack.cluster.attached import Attached, Attachment, Candidacy, check_needs
from dryrack.cluster.chart import Release, render_file
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane
from dryrack.cluster.ports import SystemClock
from dryrack.cluster.process.modes import AuthorizationMode
from dryrack.cluster.publish_once import remove_slices
from dryrack.cluster.publish_snapshot import publisher_needs, read_world
from dryrack.controllers import slices
from dryrack.controllers.slices import PublisherSettings
from dryrack.hardware import MANAGED_BY, MANAGER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.realcluster.fixtures import StartCluster


def publisher_of(witness: Witness, attachment: Attachment) -> Attached:
    options = PublisherSettings()
    return Attached(witness, lambda around: slices.engine(around, options), attachment)


def test_the_rights_are_all_used_and_all_that_is_used() -> None:
    """On a plane that enforces roles nothing is forbidden, and no right is for nothing."""

    async def scenario() -> Witness:
        clock = VirtualClock()
        chance = CountedChance()
        mode = AuthorizationMode.RBAC
        plane = build_control_plane(
            ControlPlaneOptions(clock=clock, chance=chance, authorization=mode)
        )
        admin = plane.client()
        await publisher_play.set_up(admin)
        groups = ("system:serviceaccounts", "system:authenticated")
        user = User(f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}", groups)
        witness = Witness(As(plane.transport, user))
        await check_needs(Client(witness), publisher_needs(PublisherSettings()))

        async def until(what: str, holds: Callable[[], Awaitable[bool]]) -> None:
            for _ in range(200):
                await settle(50)
                if await holds():
                    return
                await clock.advance(0.2)
            pytest.fail(f"not {what}")

        stopping = asyncio.Event()
        candidacy = Candidacy(LEASE, "one")
        attachment = Attachment(candidacy=candidacy, clock=clock, chance=chance)
        async with asyncio.TaskGroup() as group:
            group.create_task(publisher_of(witness, attachment).run(stopping))
            await publisher_play.play(admin, until)
            await read_world(Client(witness), PublisherSettings())
            # Long enough for a renewal of the lease, and for all that is done now and then.
            await clock.advance(60)
            stopping.set()
        return witness

    witness = asyncio.run(scenario())

    assert witness.forbidden == []
    assert sorted(witness.done) == sorted(publisher_play.granted())
    assert granted_names(publisher_play.manifests()) <= witness.names


def test_the_cleanup_deletes_the_slices_with_its_own_rights() -> None:
    """The role of the Job suffices, each of its rights is used, and other slices stay."""
    text = render_file("publisher/cleanup.yaml", Release("dryrack", NAMESPACE), {})
    roles = [each for each in yaml.safe_load_all(text) if "Role" in each["kind"]]

    async def scenario() -> tuple[Witness, list[str]]:
        clock, chance = VirtualClock(), CountedChance()
        mode = AuthorizationMode.RBAC
        plane = build_control_plane(
            ControlPlaneOptions(clock=clock, chance=chance, authorization=mode)
        )
        admin = plane.client()
        for each in roles:
            await admin.create(endpoint_of(each), each)
        for name, manager, driver in (
            ("ours", MANAGER, "a.example.com"),
            ("other-driver", MANAGER, "b.example.com"),
            ("foreign", "somebody", "a.example.com"),
        ):
            pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": driver, "nodeName": "n", "pool": pool, "devices": []}
            metadata = {"name": name, "labels": {MANAGED_BY: manager}}
            await admin.create(SLICES, {"metadata": metadata, "spec": spec})
        groups = ("system:serviceaccounts", "system:authenticated")
        user = User(f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}-cleanup", groups)
        witness = Witness(As(plane.transport, user))
        assert await remove_slices(Client(witness), "a.example.com") == 1
        assert await remove_slices(Client(witness)) == 1
        left = (await admin.list(SLICES)).items
        return witness, [each["metadata"]["name"] for each in left]

    witness, left = asyncio.run(scenario())

    assert left == ["foreign"]
    assert witness.forbidden == []
    assert witness.done == set(granted(roles))


@pytest.mark.real
@pytest.mark.timeout(300)
def test_the_rights_suffice_on_a_real_cluster(start_cluster: StartCluster) -> None:
    """A service account with them publishes, and the API server forbids it nothing."""
    plane = start_cluster(Options()).plane

    async def scenario() -> Witness:
        clock = SystemClock()
        async with connected(load([plane.kubeconfig], clock)) as road:
            admin = Client(road)
            await publisher_play.set_up(admin)
            token = plane.kubectl("create", "token", ACCOUNT, "-n", NAMESPACE).stdout.strip()
            limited = kubeconfig.write(
                plane.directory / "publisher.kubeconfig",
                server=plane.server,
                authority=plane.authority.certificate,
                user=kubeconfig.by_token(token),
            )
            async with connected(load([limited], clock)) as narrow:
                witness = Witness(narrow)
                await check_needs(Client(witness), publisher_needs(PublisherSettings()))
                stopping = asyncio.Event()
                attachment = Attachment(candidacy=Candidacy(LEASE, "one"))
                async with asyncio.TaskGroup() as group:
                    group.create_task(publisher_of(witness, attachment).run(stopping))
                    await publisher_play.play(admin, readiness.until)
                    await read_world(Client(witness), PublisherSettings())
                    stopping.set()
                return witness

    witness = asyncio.run(scenario())

    assert witness.forbidden == []
    assert witness.done <= set(publisher_play.granted())

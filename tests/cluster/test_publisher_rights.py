"""
The rights that are shipped are those that the publisher needs: all of them, and no other.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.client.planes import CountedChance
from tests.cluster import publisher_play
from tests.cluster.publisher_play import ACCOUNT, LEASE, NAMESPACE
from tests.cluster.rights_witness import As, Witness, granted_names
from tests.realcluster import kubeconfig, readiness
from tests.realcluster.controlplane import Options

from dryrack.client.client import Client
from dryrack.client.https import connected
from dryrack.client.kubeconfig import load
from dryrack.client.timekeeping import VirtualClock, settle
from dryrack.client.transport import User
from dryrack.cluster.attached import Attached, Attachment, Candidacy, check_needs
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane
from dryrack.cluster.ports import SystemClock
from dryrack.cluster.process.modes import AuthorizationMode
from dryrack.cluster.publish_snapshot import publisher_needs, read_world
from dryrack.controllers import slices
from dryrack.controllers.slices import PublisherSettings

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

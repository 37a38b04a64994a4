"""
Random histories: prepare, unprepare, kill and reboot, in any order, with 50 claims.

A model says which claims the kubelet was told are prepared; after every restart the plugin must
know all of these, and disk and memory must agree. A failure names the seed of its history.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from tests.kubeletplugin.faults import NEVER, Killed, MortalFileSystem
from tests.kubeletplugin.nodes import bench
from tests.kubeletplugin.test_killed import check_whole

from dryrack.kubeletplugin.kinds.fake import FakeKind

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kubeletplugin.nodes import Bench

    from dryrack.kubeletplugin import ClaimReference, NodePlugin

CLAIMS = 50
HISTORIES = 1_000
STEPS = 6
# No call has more operations on files than that.
OPERATIONS_MAX = 9


@dataclass(slots=True)
class History:
    """One node for all histories, which go on from each other's ends."""

    world: Bench
    claims: list[ClaimReference]
    plugin: NodePlugin
    files: MortalFileSystem
    prepared: set[str] = field(default_factory=set)
    """Told to the kubelet, and not asked back since."""
    open: set[str] = field(default_factory=set)
    """Asked for or asked back, and never answered: they may be prepared or not."""
    kills: int = 0

    async def play(self, dice: random.Random) -> None:
        for _ in range(STEPS):
            if dice.random() < 0.3:
                self.files.last = self.files.done + dice.randint(1, OPERATIONS_MAX)
                self.files.is_half_done = dice.random() < 0.5
            try:
                await self._step(dice)
            except Killed:
                self.kills += 1
                self._restart(is_reboot=dice.random() < 0.3)
            self.files.last = NEVER
        self._restart(is_reboot=False)

    async def _step(self, dice: random.Random) -> None:
        some = dice.sample(self.claims, dice.randint(1, 3))
        uids = {claim.uid for claim in some}
        if dice.random() < 0.6:
            self.open |= uids - self.prepared
            answers = await self.plugin.prepare(some)
            assert all(isinstance(answer, tuple) for answer in answers.values())
            self.prepared |= uids
        else:
            self.open |= uids
            self.prepared -= uids
            assert set((await self.plugin.unprepare(some)).values()) == {None}
        self.open -= uids

    def _restart(self, *, is_reboot: bool) -> None:
        if is_reboot:
            for path in self.world.cdi.iterdir():
                path.unlink()
        self.files = MortalFileSystem()
        self.plugin = self.world.plugin(self.files)
        assert self.plugin.recover() == ()
        known = {record.uid for record in self.plugin.records}
        assert self.prepared <= known <= self.prepared | self.open
        check_whole(self.world, self.plugin, known)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("histories")


def test_no_history_loses_a_claim_or_leaks_one(made: Path) -> None:
    """The answers to the kubelet stay valid over 1,000 histories with kills and reboots."""

    async def scenario() -> int:
        world = bench(made, FakeKind(CLAIMS))
        claims = [await world.claim(f"claim-{n}", [f"fake-{n}"]) for n in range(CLAIMS)]
        files = MortalFileSystem()
        plugin = world.plugin(files)
        plugin.recover()
        history = History(world, claims, plugin, files)
        for seed in range(HISTORIES):
            try:
                await history.play(random.Random(seed))
            except AssertionError as error:
                raise AssertionError(f"history {seed}: {error}") from error
        await history.plugin.unprepare(claims)
        check_whole(world, history.plugin, set())
        return history.kills

    assert asyncio.run(scenario()) > HISTORIES // 2

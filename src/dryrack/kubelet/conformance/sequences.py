"""
Random sequences of calls and faults, and the smallest one that fails.

A sequence is a list of lines, such as `prepare 0`. The number is that of a claim; each claim has
its own device, and is created when it is first prepared. The lines and a driver without files
decide what happens, so a sequence that fails can be run again.
"""

from __future__ import annotations

import asyncio
import random
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.kubelet.conformance.bench import NOT_STARTED
from dryrack.kubelet.conformance.contract import (
    check_cdi,
    check_same,
    check_unprepared,
    requirement,
)
from dryrack.kubelet.conformance.report import NotMetError, SkippedError
from dryrack.kubelet.instance import CallError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from dryrack.kubelet.conformance.bench import Bench, Key, Prepared
    from dryrack.kubelet.instance import ClaimReference

_STEPS = 14
_CLAIMS_MAX = 4
# A driver of others starts in about a second, and each try starts it once.
_TRIES_MAX = 40
_REDUCE_SECONDS_MAX = 120.0
_CANCEL_SECONDS = 0.001

# The steps with a claim and without one, and how often a random sequence has them.
_CLAIM_STEPS = {"prepare": 6, "unprepare": 4, "delete": 2, "cancel": 1, "race": 1}
_DRIVER_STEPS = {"crash": 2, "restart": 1, "reboot": 1}
_KUBELET_STEPS = {"reconnect": 1}


def parse_sequence(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the steps of a file; raise `ValueError` for a line that is none."""
    steps = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        has_claim = words[0] in _CLAIM_STEPS
        if words[0] not in {*_CLAIM_STEPS, *_DRIVER_STEPS, *_KUBELET_STEPS}:
            known = ", ".join((*_CLAIM_STEPS, *_DRIVER_STEPS, *_KUBELET_STEPS))
            raise ValueError(f"line {number}: unknown step {words[0]!r}; use one of {known}")
        if len(words) != 1 + has_claim or (has_claim and not words[1].isdecimal()):
            example = f"{words[0]} 0" if has_claim else words[0]
            raise ValueError(f"line {number}: {line.strip()!r}; write, for example, {example!r}")
        steps.append(" ".join(words))
    if not steps:
        raise ValueError("no steps")
    return tuple(steps)


@requirement(
    "After any sequence of calls and faults, claims are prepared completely or not at all."
)
async def random_sequences(bench: Bench) -> None:
    devices = (await bench.devices())[:_CLAIMS_MAX]
    if bench.replay:
        await _play(bench, bench.replay, devices)
        return
    for number in range(bench.sequences):
        steps = random_steps(bench, len(devices), f"{bench.seed}-{number}")
        try:
            await _play(bench, steps, devices)
        except NotMetError as error:
            raise await _smallest(bench, devices, steps, error) from None
        await bench.clean()


def random_steps(bench: Bench, claims: int, seed: str) -> tuple[str, ...]:
    """Return a random sequence; the seed decides it."""
    chance = random.Random(seed)
    weights = {**_CLAIM_STEPS, **_KUBELET_STEPS}
    if bench.program is not None:
        weights |= _DRIVER_STEPS
    steps = []
    for verb in chance.choices(list(weights), list(weights.values()), k=_STEPS):
        claim = chance.randrange(claims)
        steps.append(f"{verb} {claim}" if verb in _CLAIM_STEPS else verb)
    return tuple(steps)


async def _smallest(
    bench: Bench, devices: Sequence[Key], steps: tuple[str, ...], error: NotMetError
) -> NotMetError:
    """Return the failure of the smallest part of a sequence that still fails."""
    if bench.program is None:
        return _failure(steps, error, "")
    failures = {steps: error}
    end = bench.clock.now() + _REDUCE_SECONDS_MAX

    async def fails(part: tuple[str, ...]) -> bool:
        if bench.clock.now() > end:
            return False
        await bench.clean()
        await bench.reset()
        try:
            await _play(bench, part, devices)
        except NotMetError as failure:
            failures[part] = failure
            return True
        return False

    # What follows the step that failed has no part in it.
    smallest = steps[: error.step]
    if not await fails(smallest):
        return _failure(steps, error, "it does not fail each time; ")
    smallest = await reduce(smallest, fails)
    return _failure(smallest, failures[smallest], "")


async def reduce(
    steps: tuple[str, ...], fails: Callable[[tuple[str, ...]], Awaitable[bool]]
) -> tuple[str, ...]:
    """Return a part of the steps that fails, and from which no step can be removed."""
    tries = 0
    size = max(1, len(steps) // 2)
    while tries < _TRIES_MAX:
        removed = False
        start = 0
        while start < len(steps) and tries < _TRIES_MAX:
            part = steps[:start] + steps[start + size :]
            tries += 1
            if part and await fails(part):
                steps, removed = part, True
            else:
                start += size
        if size == 1 and not removed:
            break
        size = max(1, size // 2)
    return steps


def _failure(steps: tuple[str, ...], error: NotMetError, note: str) -> NotMetError:
    failure = NotMetError(
        f"{note}the smallest sequence that fails: {'; '.join(steps)}",
        f"{error.sent}: {error.got}",
    )
    failure.steps = steps
    return failure


@dataclass(slots=True)
class _Slot:
    """A claim of a sequence, and what the driver must answer for it."""

    name: str
    device: Key
    claim: ClaimReference | None = None
    # The answer while the claim is prepared.
    devices: Prepared | None = None


@dataclass(slots=True)
class _Player:
    """A run of a sequence."""

    bench: Bench
    slots: Sequence[_Slot]
    # Claims that are not prepared any more, with their last answers.
    ended: list[tuple[ClaimReference, Prepared]] = field(default_factory=list)

    async def step(self, line: str) -> None:
        """Do a step, and check what is promised after each one."""
        verb, _, number = line.partition(" ")
        if number:
            slot = self.slots[int(number) % len(self.slots)]
            await getattr(self, f"_{verb}")(slot)
        elif verb == "crash":
            await self.bench.restart(signal.SIGKILL)
        elif verb == "restart":
            await self.bench.restart(signal.SIGTERM)
        elif verb == "reboot":
            await self.bench.own_program().stop(signal.SIGKILL)
            self.bench.clear_cdi()
            await self.bench.restart(signal.SIGKILL)
            # A kubelet prepares the claims of all pods again after a reboot.
            for slot in self.slots:
                if slot.devices is not None:
                    await self._prepare(slot)
        else:
            await self.bench.restart_kubelet()
            await self.bench.instance()
        for slot in self.slots:
            if slot.devices is not None:
                check_cdi(self.bench, slot.devices, f"{slot.name} is prepared")
        for claim, devices in self.ended:
            check_unprepared(self.bench, devices, claim, f"{claim.name} is unprepared")

    async def _claim_of(self, slot: _Slot) -> ClaimReference:
        if slot.claim is None:
            slot.claim = await self.bench.claim(slot.device, name=slot.name)
        return slot.claim

    async def _prepare(self, slot: _Slot) -> None:
        claim = await self._claim_of(slot)
        devices = (await self.bench.prepare(claim))[claim.uid]
        check_same(slot.devices or devices, devices, f"NodePrepareResources for {slot.name} again")
        slot.devices = devices
        self.ended = [each for each in self.ended if each[0] != claim]

    async def _unprepare(self, slot: _Slot) -> None:
        claim = await self._claim_of(slot)
        await self.bench.unprepare(claim)
        self._end(slot, claim)

    def _end(self, slot: _Slot, claim: ClaimReference) -> None:
        if slot.devices is not None:
            self.ended.append((claim, slot.devices))
        slot.devices = None

    async def _delete(self, slot: _Slot) -> None:
        """Delete the claim, as a forced deletion of its pod does, and unprepare it."""
        claim = await self._claim_of(slot)
        await self.bench.delete(claim)
        await self.bench.unprepare(claim)
        self._end(slot, claim)
        slot.claim = None

    async def _cancel(self, slot: _Slot) -> None:
        """Give up a call to prepare, and repeat it."""
        claim = await self._claim_of(slot)
        instance = await self.bench.instance()
        call = asyncio.ensure_future(instance.prepare([claim]))
        await asyncio.wait([call], timeout=_CANCEL_SECONDS)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await self._prepare(slot)

    async def _race(self, slot: _Slot) -> None:
        """Prepare and unprepare at the same time, and unprepare again."""
        claim = await self._claim_of(slot)
        instance = await self.bench.instance()
        calls = (instance.prepare([claim]), instance.unprepare([claim]))
        await asyncio.gather(*calls, return_exceptions=True)
        await self._unprepare(slot)


async def _play(bench: Bench, steps: Sequence[str], devices: Sequence[Key]) -> None:
    """Run a sequence; raise `NotMetError` with the step that failed."""
    if bench.program is None and any(each in _DRIVER_STEPS for each in steps):
        raise SkippedError(NOT_STARTED)
    slots = [_Slot(f"claim-{number}", device) for number, device in enumerate(devices)]
    player = _Player(bench, slots)
    for number, line in enumerate(steps, 1):
        try:
            await player.step(line)
        except NotMetError as error:
            failure = NotMetError(f"step {number}, {line}: {error.sent}", error.got)
            failure.step = number
            raise failure from None
    for slot in slots:
        with suppress(CallError):
            if slot.claim is not None:
                await bench.unprepare(slot.claim)

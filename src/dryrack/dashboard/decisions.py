"""Decisions of the scheduler's code on a copy of the cluster: explain, and try a change."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from dryrack.base.errors import ContentError, DryrackError
from dryrack.base.text import hint
from dryrack.client.endpoints import POD_DISRUPTION_BUDGETS
from dryrack.cluster import EXPLANATION_KINDS, SeededChance, read_snapshot, typed
from dryrack.dashboard.data.trial import Trial, TrialError, apply_change, current_values
from dryrack.kinds.releases import DEFAULT_RELEASE
from dryrack.placement import ExplainDocuments, Settings, World
from dryrack.planning import DriverError, defragment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.client.endpoints import Endpoint
    from dryrack.dashboard.live import Live
    from dryrack.kinds.meta import KubernetesObject
    from dryrack.kinds.raw import Raw
    from dryrack.placement import ExplainDocument


Value = TypeVar("Value")

# Explanations and the world are kept until an object changes that decisions depend on. Objects that
# the dashboard does not watch, such as volumes, are read again after this time.
KEPT_SECONDS_MAX = 30.0
_KEPT_MAX = 8


@dataclass(frozen=True, slots=True)
class _Kept(Generic[Value]):
    """A value, the number of `Live.decisions` for which it is true, and when it was computed."""

    number: int
    at: float
    value: Value


@dataclass(frozen=True, slots=True)
class _Answer:
    """An explanation, and what it says about changes to try."""

    world: World
    case: ExplainDocument
    current: Mapping[str, Any]
    seconds: float

    def document(self, number: int) -> dict[str, Any]:
        return {
            **self.case.document,
            "decisions": number,
            "seconds": round(self.seconds, 3),
            "current": self.current,
            "canTry": list(self.case.changes),
        }


class Decisions:
    """Explain objects and try changes, without a write to the cluster."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._world: _Kept[World] | None = None
        # One decision at a time; other answers do not wait for it.
        self._deciding = asyncio.Lock()
        self._answers: dict[tuple[str, str], _Kept[_Answer]] = {}

    async def explain(self, kind: str, name: str) -> Mapping[str, Any]:
        """Return the document of `dryrack explain -o json`, and the changes that can be tried."""
        async with self._deciding:
            number, answer = await self._explain(kind, name)
        return answer.document(number)

    async def attempt(self, trial: Trial) -> Mapping[str, Any]:
        """Return the explanation after a change, and the present one."""
        async with self._deciding:
            try:
                _, before = await self._explain(trial.kind, trial.full_name)
                after = await asyncio.to_thread(_after, before, trial)
            except DryrackError as error:
                raise TrialError(str(error)) from None
        return {
            "change": msgspec.to_builtins(trial.change),
            "help": trial.help,
            "fits": _fits(after.document),
            "after": after.document,
            "before": before.case.document,
        }

    async def _explain(self, kind: str, name: str) -> tuple[int, _Answer]:
        number, key = self._live.decisions, (kind, name)
        answer = self._fresh(self._answers.get(key))
        if answer is not None:
            return number, answer
        world = await self._present()
        try:
            began = self._live.clock.now()
            case, current = await asyncio.to_thread(_explain_now, world, kind, name)
        except DryrackError as error:
            # The request names an object that does not exist or cannot be explained.
            raise ContentError(str(error)) from None
        answer = _Answer(world, case, current, self._live.clock.now() - began)
        self._answers.pop(key, None)
        self._answers[key] = _Kept(number, self._live.clock.now(), answer)
        while len(self._answers) > _KEPT_MAX:
            del self._answers[next(iter(self._answers))]
        return number, answer

    async def _present(self) -> World:
        """Return the cluster as it is now."""
        world = self._fresh(self._world)
        if world is None:
            number = self._live.decisions
            known, rest = await self._read()
            world = await asyncio.to_thread(_world, known, rest)
            self._world = _Kept(number, self._live.clock.now(), world)
            self._answers.clear()
        return world

    def _fresh(self, kept: _Kept[Value] | None) -> Value | None:
        if kept is None or kept.number != self._live.decisions:
            return None
        is_old = self._live.clock.now() - kept.at > KEPT_SECONDS_MAX
        return None if is_old else kept.value

    async def defragment(self, driver: str) -> Mapping[str, Any]:
        """Return the pods whose move frees whole nodes of a driver."""
        known, rest = await self._read()
        budgets = await read_snapshot(self._live.client, [POD_DISRUPTION_BUDGETS])

        def compute() -> Mapping[str, Any]:
            world = _world(known, [*rest, *budgets.objects])
            found = defragment(world, driver, release=DEFAULT_RELEASE, chance=SeededChance())
            return found.document()

        try:
            return {**await asyncio.to_thread(compute), "notes": list(budgets.notes)}
        except DriverError as error:
            raise ContentError(str(error)) from None

    async def _read(self) -> tuple[dict[Endpoint, Sequence[Raw]], Sequence[KubernetesObject]]:
        """Return the watched objects, and those that only decisions need."""
        watched = [kind for kind in EXPLANATION_KINDS if kind in self._live.kinds]
        others = [kind for kind in EXPLANATION_KINDS if kind not in watched]
        known: dict[Endpoint, Sequence[Raw]] = {k: self._live.objects(k) for k in watched}
        rest = (await read_snapshot(self._live.client, others)).objects
        return known, rest


def _explain_now(world: World, kind: str, name: str) -> tuple[ExplainDocument, Mapping[str, Any]]:
    namespace, _, bare = name.partition("/")
    trial = Trial(kind=kind, namespace=namespace, name=bare)
    return _case(world, kind, name), current_values(world, trial)


def _after(before: _Answer, trial: Trial) -> ExplainDocument:
    """Return the explanation after a change, or after a change that the explanation suggests."""
    if not trial.help:
        changed_world = apply_change(before.world, trial)
        return _case(changed_world, trial.kind, trial.full_name, trial.change.node)
    if trial.help not in before.case.changes:
        known = (
            hint(trial.help, before.case.changes)
            if before.case.changes
            else "the explanation suggests no change"
        )
        raise TrialError(f"help {trial.help!r} is not a change that can be tried; {known}")
    return _case(before.case.changes[trial.help], trial.kind, trial.full_name)


def _world(known: Mapping[Endpoint, Sequence[Raw]], rest: Sequence[KubernetesObject]) -> World:
    objects = [each for endpoint, raws in known.items() for each in typed(endpoint, raws)]
    return World.of([*objects, *rest])


def _case(world: World, kind: str, name: str, node: str | None = None) -> ExplainDocument:
    def settings() -> Settings:
        return Settings(chance=SeededChance(), node=node, assumes_nodes=False)

    return ExplainDocuments(world=world, settings=settings).of(kind, name)


def _fits(case: Mapping[str, Any]) -> bool | None:
    """Return whether the object gets or has all its devices; None if unknown."""
    if "gangs" in case:
        fits = [each.get("fits", each.get("status") == "placed") for each in case["gangs"]]
        return None if None in fits and False not in fits else all(fits)
    if "pod" in case:
        return bool(case["wouldGoTo"] or case["node"])
    return bool(case.get("allocated") or case.get("devices"))

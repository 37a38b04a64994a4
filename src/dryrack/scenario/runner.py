"""
Run a scenario: its steps in their order, and every expectation until it holds or times out.

Each step is a task: it begins at its time or when another step has ended, so that two steps may run
at once. The first failed step ends the run. All times are those of the world's clock.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dryrack.base.durations import seconds_in
from dryrack.base.errors import ContentError, DryrackError
from dryrack.client.client import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from dryrack.client.endpoints import CLAIMS, NODES, PODS
from dryrack.client.errors import (
    AlreadyExistsError,
    ApiError,
    NotFoundError,
    TooManyRequestsError,
)
from dryrack.client.timekeeping import deadline, sleep
from dryrack.kinds.paths import get, status_of
from dryrack.scenario.expectations import describe, find_failures
from dryrack.scenario.outcome import ExpectationOutcome, Outcome, StepOutcome, Verdict
from dryrack.scenario.problems import before
from dryrack.scenario.references import DEFAULT_NAMESPACE, Reference, name_in
from dryrack.scenario.replay.comparison import fidelity_of
from dryrack.scenario.replay.placements import placements_of
from dryrack.scenario.step_output import read_output
from dryrack.scenario.world import ClusterReader, Kinds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.shape import Path
    from dryrack.scenario.model import Expectation, PatchOf, Scenario, Step
    from dryrack.scenario.reading import LoadedScenario
    from dryrack.scenario.replay.placements import PodPlacement
    from dryrack.scenario.step_output import StepOutput
    from dryrack.scenario.world import World

MANAGER = "dryrack-scenario"
_PATCH_TYPES = {"merge": MERGE_PATCH, "strategic": STRATEGIC_PATCH, "json": JSON_PATCH}
# How soon a change is looked at; the pause grows with the time of waiting.
_LOOK_SECONDS = 0.1
_LOOK_SHARE = 0.1
_LOOK_SECONDS_MAX = 5.0
# A kind that was defined just now may take a moment.
_KIND_SECONDS_MAX = 10.0
# How often an eviction that a budget refuses is tried again, and for how long.
_EVICTION_SECONDS = 5.0
_EVICTION_SECONDS_MAX = 30.0


class Observer(Protocol):
    """Follows a run."""

    def began(self, step: Step, at: float) -> None: ...

    def waits(self, at: float, lacking: Sequence[str]) -> None:
        """Called when an expectation does not hold yet."""
        ...

    def ended(self, outcome: StepOutcome) -> None: ...

    def shown(self, output: StepOutput) -> None: ...


class SilentObserver:
    """An observer that does nothing."""

    def began(self, step: Step, at: float) -> None: ...

    def waits(self, at: float, lacking: Sequence[str]) -> None: ...

    def ended(self, outcome: StepOutcome) -> None: ...

    def shown(self, output: StepOutput) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Options of a run, beside its scenario and its world."""

    seed: int = 0
    setup: tuple[Raw, ...]
    """Objects of the fleet, created first."""
    observer: Observer
    skips_missing: bool = False
    """Ignore deletions, evictions and scaling of objects that do not exist."""


async def run(loaded: LoadedScenario, world: World, setting: Setting) -> Outcome:
    """Run a scenario to its end; failures are part of the outcome and not raised."""
    return await _Run(loaded, world, setting).run()


class _Run:
    """One run of a scenario."""

    def __init__(self, loaded: LoadedScenario, world: World, setting: Setting) -> None:
        self._loaded = loaded
        self._scenario: Scenario = loaded.scenario
        self._world = world
        self._setting = setting
        self._kinds = Kinds(world.client)
        self._start = world.clock.now()
        self._outcomes: dict[int, StepOutcome] = {}
        self._ends = [asyncio.Event() for _ in self._scenario.steps]

    def _now(self) -> float:
        return self._world.clock.now() - self._start

    async def run(self) -> Outcome:
        limit = self._scenario.limit
        problem = ""
        try:
            async with deadline(self._world.clock, self._start + _seconds(limit)):
                for obj in self._setting.setup:
                    await self._create(obj)
                await self._apply(self._loaded.objects_of(self._scenario.objects))
                for words in self._scenario.faults:
                    await self._world.faults.begin(words)
                problem = await self._run_steps_until_broken()
        except TimeoutError:
            problem = f"did not end within its limit of {limit}"
        except DryrackError as error:
            problem = str(error)
        placements: tuple[PodPlacement, ...] = ()
        # A cluster that cannot be read any more is a problem already.
        with contextlib.suppress(DryrackError):
            placements = placements_of(await self._world.list(PODS), await self._world.list(CLAIMS))
        journal = self._world.journal
        skipped = [
            StepOutcome(id=step.id, title=title_of(step), verdict=Verdict.SKIPPED)
            for step in self._scenario.steps
        ]
        return Outcome(
            name=self._loaded.name,
            title=self._scenario.title or self._loaded.name,
            seed=self._setting.seed,
            steps=tuple(self._outcomes.get(index, each) for index, each in enumerate(skipped)),
            seconds=self._now(),
            writes=journal.writes,
            hash=journal.hash if self._world.is_reproducible else "",
            problem=problem,
            placements=placements,
            fidelity=fidelity_of(self._scenario.recorded, placements),
        )

    async def _run_steps_until_broken(self) -> str:
        """Run all steps until an invariant is broken; return the violations, also those at rest."""
        steps = asyncio.create_task(self._run_steps(), name="steps")
        broken = asyncio.create_task(self._world.invariants.broken(), name="invariants")
        try:
            await asyncio.wait((steps, broken), return_when=asyncio.FIRST_COMPLETED)
            if broken.done():
                return broken.result()
            steps.result()
            all_held = all(each.verdict is Verdict.HELD for each in self._outcomes.values())
            return await self._world.invariants.at_rest() if all_held else ""
        finally:
            for task in (steps, broken):
                task.cancel()
            await asyncio.gather(steps, broken, return_exceptions=True)

    async def _run_steps(self) -> None:
        """Run all steps; stop at the first that fails."""
        places = {step.id: index for index, step in enumerate(self._scenario.steps) if step.id}
        tasks = [
            asyncio.create_task(self._run_step(index, places), name=f"step {index}")
            for index in range(len(self._scenario.steps))
        ]
        try:
            for done in asyncio.as_completed(tasks):
                if (await done).verdict is Verdict.FAILED:
                    return
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run_step(self, index: int, places: Mapping[str, int]) -> StepOutcome:
        step = self._scenario.steps[index]
        clock = self._world.clock
        follows = before(self._scenario.steps, dict(places), index)
        if step.at:
            await sleep(clock, self._start + _seconds(step.at) - clock.now())
        else:
            if follows is not None:
                await self._ends[follows].wait()
            if step.delay:
                await sleep(clock, _seconds(step.delay))
        began = self._now()
        self._world.journal.note(f"step {index} {title_of(step)}")
        self._setting.observer.began(step, began)
        results: list[ExpectationOutcome] = []
        problem = ""
        try:
            await self._act(step, index)
            results = await self._check_expectations(step)
            problem = await self._world.invariants.after_step()
        except DryrackError as error:
            problem = str(error)
        held = not problem and all(each.held for each in results)
        outcome = StepOutcome(
            id=step.id,
            title=title_of(step),
            verdict=Verdict.HELD if held else Verdict.FAILED,
            began=began,
            ended=self._now(),
            expectations=tuple(results),
            problem=problem,
        )
        self._outcomes[index] = outcome
        self._world.journal.note(f"step {index} {outcome.verdict}")
        self._setting.observer.ended(outcome)
        for wanted in step.show:
            reader = ClusterReader(self._world, self._kinds)
            self._setting.observer.shown(await read_output(wanted, reader, clock.now()))
        if held:
            self._ends[index].set()
        return outcome

    async def _act(self, step: Step, index: int) -> None:
        for words in step.fail:
            await self._world.faults.begin(words)
        for words in step.heal:
            await self._world.faults.end(words)
        if step.apply:
            await self._apply(self._loaded.objects_of(step.apply))
        elif step.delete:
            for entry in step.delete:
                reference = Reference.parse(entry) if isinstance(entry, str) else None
                if reference is not None and entry not in self._loaded.files:
                    endpoint = await self._endpoint_of(reference)
                    matching = [x for x in await self._world.list(endpoint) if reference.fits(x)]
                    if not matching and not self._setting.skips_missing:
                        raise ContentError(f"{reference}: cannot delete it: not found")
                    for obj in matching:
                        await self._remove(endpoint, obj)
                    continue
                for obj in reversed(self._loaded.objects_of([entry])):
                    endpoint, placed = await self._resolve(obj)
                    await self._remove(endpoint, placed)
        elif step.evict:
            await self._evict(step.evict)
        elif step.scale is not None:
            await self._scale(step.scale.object, step.scale.replicas)
        elif step.patch is not None:
            await self._patch(step.patch, ("steps", index, "patch"))
        elif step.wait:
            await sleep(self._world.clock, _seconds(step.wait))

    async def _apply(self, objects: Iterable[Raw]) -> None:
        for obj in objects:
            endpoint, placed = await self._resolve(obj)
            await self._world.client.apply(endpoint, placed, manager=MANAGER, force=True)

    async def _create(self, obj: Raw) -> None:
        """Create an object of the fleet; keep an existing one."""
        endpoint, placed = await self._resolve(obj)
        try:
            made = await self._world.client.create(endpoint, placed)
        except AlreadyExistsError:
            return
        status = status_of(obj)
        if endpoint == NODES and not get(made, "status.capacity"):
            name = obj["metadata"]["name"]
            patch = {"status": status}
            await self._world.client.patch(
                NODES, name, patch, subresource="status", media_type=MERGE_PATCH
            )

    async def _endpoint_of(self, reference: Reference) -> Endpoint:
        endpoint = await self._kinds.named(reference)
        if endpoint is None:
            raise ContentError(f"{reference}: the cluster has no such kind")
        return endpoint

    async def _remove(self, endpoint: Endpoint, obj: Raw) -> None:
        metadata = obj["metadata"]
        try:
            await self._world.client.delete(
                endpoint, metadata["name"], namespace=metadata.get("namespace", "")
            )
        except NotFoundError:
            if not self._setting.skips_missing:
                raise ContentError(f"{name_in(obj)}: cannot delete it: not found") from None

    async def _evict(self, entries: Iterable[str]) -> None:
        """
        Evict pods as `kubectl drain` does.

        With `skips_missing`, a pod that a budget protects stays.
        """
        pods = await self._world.list(PODS)
        waiting: list[Raw] = []
        for reference in filter(None, map(Reference.parse, entries)):
            found = [pod for pod in pods if reference.fits(pod)]
            if not found and not self._setting.skips_missing:
                raise ContentError(f"{reference}: cannot evict it: not found")
            waiting += found
        latest = self._now() + _EVICTION_SECONDS_MAX
        while True:
            refused = [pod for pod in waiting if not await self._is_evicted(pod, latest)]
            if not refused or self._now() >= latest:
                return
            waiting = refused
            await sleep(self._world.clock, _EVICTION_SECONDS)

    async def _is_evicted(self, pod: Raw, latest: float) -> bool:
        """Return whether a pod is evicted or gone; raise if a budget still refuses too late."""
        name = {key: pod["metadata"][key] for key in ("name", "namespace")}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": name}
        try:
            await self._world.client.create(PODS, eviction, subresource="eviction")
        except NotFoundError:
            return True
        except TooManyRequestsError as error:
            if self._now() >= latest and not self._setting.skips_missing:
                causes = get(error.status, "details.causes", ())
                why = "; ".join(str(each.get("message", "")) for each in causes) or error.message
                raise ContentError(f"{name_in(pod)}: not evicted: {why}") from None
            return False
        return True

    async def _scale(self, text: str, replicas: int) -> None:
        reference = Reference.parse(text)
        assert reference is not None, "a scenario that was read names objects as it must"
        endpoint = await self._endpoint_of(reference)
        namespace = reference.namespace or DEFAULT_NAMESPACE
        patch = {"spec": {"replicas": replicas}}
        try:
            await self._world.client.patch(
                endpoint, reference.name, patch, namespace=namespace, subresource="scale"
            )
        except NotFoundError:
            if not self._setting.skips_missing:
                raise

    async def _patch(self, wanted: PatchOf, path: Path) -> None:
        """Patch all matching objects; an error names the line of the step."""
        reference = Reference.parse(wanted.object)
        assert reference is not None, "a scenario that was read names objects as it must"
        where = self._loaded.describe_place(path)
        endpoint = await self._endpoint_of(reference)
        matching = [each for each in await self._world.list(endpoint) if reference.fits(each)]
        if not matching and not self._setting.skips_missing:
            raise ContentError(f"{where}: {reference}: cannot patch it: not found")
        for obj in matching:
            try:
                await self._world.client.patch(
                    endpoint,
                    obj["metadata"]["name"],
                    wanted.patch,
                    namespace=obj["metadata"].get("namespace", ""),
                    subresource=wanted.subresource,
                    media_type=_PATCH_TYPES[wanted.type],
                )
            except ApiError as error:
                raise ContentError(f"{where}: {name_in(obj)}: {error.message}") from None

    async def _resolve(self, obj: Raw) -> tuple[Endpoint, Raw]:
        """Return the endpoint of an object, and the object with a namespace."""
        latest = self._now() + _KIND_SECONDS_MAX
        while (endpoint := await self._kinds.of(obj["apiVersion"], obj["kind"])) is None:
            if self._now() >= latest:
                what = f"{obj['kind']} of {obj['apiVersion']}"
                raise ContentError(f"{what}: the cluster has no such kind")
            await sleep(self._world.clock, _LOOK_SECONDS)
        metadata = obj["metadata"]
        if not endpoint.is_namespaced or metadata.get("namespace"):
            return endpoint, obj
        return endpoint, {**obj, "metadata": {**metadata, "namespace": DEFAULT_NAMESPACE}}

    async def _check_expectations(self, step: Step) -> list[ExpectationOutcome]:
        tasks = [asyncio.create_task(self._check(each)) for each in step.expect]
        try:
            return [await task for task in tasks]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _check(self, each: Expectation) -> ExpectationOutcome:
        """
        Look until the expectation holds, and then for as long as it has to last.

        Each revision of the store is looked at once.
        """
        began = self._now()
        lasting = _seconds(each.lasting) if each.lasting else 0.0
        latest = began + _seconds(each.within)
        since: float | None = None
        seen: int | None = None
        wrong: list[str] = []
        while True:
            revision = self._world.revision()
            if revision is None or revision != seen:
                seen = revision
                wrong = await find_failures(each, ClusterReader(self._world, self._kinds))
            now = self._now()
            if wrong and since is not None:
                wrong = [f"{what}, after it had held" for what in wrong]
                break
            if not wrong:
                since = now if since is None else since
                if now - since >= lasting:
                    break
            elif now >= latest:
                break
            if wrong:
                self._setting.observer.waits(now, wrong)
            until = latest if since is None else since + lasting
            pause = min(max(_LOOK_SECONDS, (now - began) * _LOOK_SHARE), _LOOK_SECONDS_MAX)
            await sleep(self._world.clock, min(pause, max(until - now, 0.001)))
        return ExpectationOutcome(describe(each), tuple(wrong), self._now() - began)


def title_of(step: Step) -> str:
    """Return the title of a step."""
    return step.title or step.id or "step"


def _seconds(text: str) -> float:
    seconds = seconds_in(text)
    assert seconds is not None, "a scenario that was read has times that are times"
    return seconds

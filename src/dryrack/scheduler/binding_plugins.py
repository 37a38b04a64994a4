"""
Reserve, Permit, PreBind and PostBind of plugins.

A plugin that rejects a pod, fails, or answers too late ends the attempt for its plan and no other.
Then `unreserve` is called for all plugins that have reserved, in reverse order. Nothing is written
to the cluster before all pods of a plan are permitted.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.base.errors import DryrackError
from dryrack.client.timekeeping import deadline
from dryrack.placement import (
    ANY_CHANGE,
    Change,
    PodConstraints,
    ProposedBinding,
    Rejected,
    Wait,
)
from dryrack.scheduler.binding import OvertakenError
from dryrack.scheduler.reporting import scheduler_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from dryrack.client.client import Client
    from dryrack.client.informer import Name
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.placement import Plugin, Profile
    from dryrack.scheduler.binding_cycle import Decision
    from dryrack.scheduler.reporting import Reporter
    from dryrack.scheduler.scheduler_cache import SchedulerCache

_logger = logging.getLogger(__name__)

# kube-scheduler's limit for the binding of a pod with devices.
PRE_BIND_SECONDS_MAX = 600.0
# A longer wait would keep devices from other pods (kube-scheduler's maxTimeout).
PERMIT_SECONDS_MAX = 900.0


class RejectionError(DryrackError):
    """A plugin rejects a pod after a node was found for it."""

    def __init__(
        self, message: str, *, changes: Change = ANY_CHANGE, is_error: bool, is_retried: bool
    ) -> None:
        """The pod is retried after one of the changes, or after a delay if `is_retried`."""
        super().__init__(message)
        self.changes = changes
        self.is_error = is_error
        self.is_retried = is_retried


@dataclass(slots=True)
class _Pending:
    """A pod that waits for the permission of a plugin."""

    decision: Decision
    plugin: Plugin
    until: float = 0.0
    reason: str = ""


class BindingPlugins:
    """Calls the plugins of a scheduler's profiles around the binding of pods."""

    def __init__(
        self,
        cache: SchedulerCache,
        client: Client,
        clock: Timekeeper,
        *,
        profiles: Mapping[str, Profile],
        reporter: Reporter,
    ) -> None:
        self._cache = cache
        self._client = client
        self._clock = clock
        self._profiles = profiles
        self._reporter = reporter
        self._waiting: set[asyncio.Event] = set()
        self._reserved: dict[Name, list[Plugin]] = {}

    def notify(self) -> None:
        """Ask again whether waiting pods are permitted."""
        for each in self._waiting:
            each.set()

    async def admit(
        self,
        decisions: Sequence[Decision],
        wait_without_slot: Callable[[Awaitable[None]], Awaitable[None]],
    ) -> None:
        """Reserve and permit all decisions; raise, with nothing reserved, if one is rejected."""
        try:
            for each in decisions:
                for plugin in self._profile_of(each).reserving:
                    self._reserve(each, plugin)
            pending = [
                _Pending(each, plugin)
                for each in decisions
                for plugin in self._profile_of(each).permitting
            ]
            began = self._clock.now()
            pending = self._ask(pending, began)
            if pending:
                await wait_without_slot(self._wait_until_permitted(pending, began))
        except BaseException:
            self.unreserve(decisions)
            raise

    def unreserve(self, decisions: Sequence[Decision]) -> None:
        """Undo the reservations of plugins; an exception of one does not keep others from it."""
        for each in reversed(decisions):
            for plugin in reversed(self._reserved.pop(each.name, [])):
                if plugin.unreserve is None:
                    continue
                try:
                    plugin.unreserve(self._propose(each), self._args(each, plugin))
                except Exception as error:
                    _logger.warning("plugin %s: unreserve: %r", plugin.name, error, exc_info=error)

    async def pre_bind(self, decisions: Sequence[Decision]) -> None:
        """Call PreBind for all decisions; raise if a plugin rejects one, fails, or is too late."""
        for each in decisions:
            for plugin in self._profile_of(each).pre_binding:
                assert plugin.pre_bind is not None, "a plugin of this extension point"
                arguments = (self._propose(each), self._client, self._args(each, plugin))
                with self._errors_of(plugin, "pre_bind"):
                    async with deadline(self._clock, self._clock.now() + PRE_BIND_SECONDS_MAX):
                        answer: Any = plugin.pre_bind(*arguments)
                        if inspect.isawaitable(answer):
                            answer = await answer
                self._check(plugin, "pre_bind", answer, Rejected)
                if isinstance(answer, Rejected):
                    raise _rejection(plugin, answer.reason, is_retried=True)

    async def post_bind(self, decisions: Sequence[Decision]) -> None:
        """Call PostBind for bound pods; its exceptions are logged."""
        for each in decisions:
            self._reserved.pop(each.name, None)
            for plugin in self._profile_of(each).post_binding:
                assert plugin.post_bind is not None, "a plugin of this extension point"
                try:
                    arguments = (self._propose(each), self._client, self._args(each, plugin))
                    async with deadline(self._clock, self._clock.now() + PRE_BIND_SECONDS_MAX):
                        answer: Any = plugin.post_bind(*arguments)
                        if inspect.isawaitable(answer):
                            await answer
                except Exception as error:
                    _logger.warning("plugin %s: post_bind: %r", plugin.name, error, exc_info=error)

    def _reserve(self, decision: Decision, plugin: Plugin) -> None:
        if plugin.reserve is None:
            return
        self._reserved.setdefault(decision.name, []).append(plugin)
        with self._errors_of(plugin, "reserve"):
            answer: Any = plugin.reserve(self._propose(decision), self._args(decision, plugin))
        self._check(plugin, "reserve", answer, Rejected)
        if isinstance(answer, Rejected):
            raise _rejection(plugin, answer.reason)

    def _ask(self, pending: Sequence[_Pending], began: float) -> list[_Pending]:
        """Return the pods that still wait for a plugin; raise if one is rejected."""
        now = self._clock.now()
        left = []
        for each in pending:
            decision, plugin = each.decision, each.plugin
            assert plugin.permit is not None, "a plugin of this extension point"
            with self._errors_of(plugin, "permit"):
                proposed, args = self._propose(decision), self._args(decision, plugin)
                answer: Any = plugin.permit(proposed, now - began, args)
            self._check(plugin, "permit", answer, Rejected, Wait)
            if isinstance(answer, Rejected):
                raise _rejection(plugin, answer.reason)
            if isinstance(answer, Wait):
                seconds = min(answer.seconds, PERMIT_SECONDS_MAX)
                if began + seconds <= now:
                    reason = f": {answer.reason}" if answer.reason else ""
                    raise _rejection(plugin, f"not permitted within {seconds:g} s{reason}")
                left.append(_Pending(decision, plugin, began + seconds, answer.reason))
        return left

    async def _wait_until_permitted(self, pending: list[_Pending], began: float) -> None:
        changed = asyncio.Event()
        self._waiting.add(changed)
        try:
            for each in pending:
                await self._report_wait(each)
            while pending:
                timer = self._clock.call_at(min(each.until for each in pending), changed.set)
                try:
                    await changed.wait()
                finally:
                    timer.cancel()
                changed.clear()
                for each in pending:
                    decision = each.decision
                    obstacle = self._cache.find_obstacle(decision.raw, decision.node)
                    if obstacle:
                        raise OvertakenError(obstacle)
                pending = self._ask(pending, began)
        finally:
            self._waiting.discard(changed)

    async def _report_wait(self, waiting: _Pending) -> None:
        pod, node = waiting.decision.raw, waiting.decision.node
        await self._reporter.nominate(pod, node)
        reason = f": {waiting.reason}" if waiting.reason else ""
        message = f"plugin {waiting.plugin.name}: waiting on node {node}{reason}"
        await self._reporter.record_event(pod, "WaitingOnPermit", message, type="Normal")

    def _propose(self, decision: Decision) -> ProposedBinding:
        fleet = self._cache.cluster.fleet
        node = fleet.get(decision.node)
        if node is None:
            raise OvertakenError(f"node {decision.node}: no longer exists")
        wanted = decision.wanted
        pod = PodConstraints.of(
            wanted.pod, wanted.unallocated, wanted.allocated, extended=wanted.extended
        )
        return ProposedBinding(pod, node, fleet, decision.given)

    def _profile_of(self, decision: Decision) -> Profile:
        return self._profiles[scheduler_of(decision.raw)]

    def _args(self, decision: Decision, plugin: Plugin) -> Mapping[str, Any]:
        return self._profile_of(decision).args_of(plugin)

    @contextmanager
    def _errors_of(self, plugin: Plugin, point: str) -> Iterator[None]:
        """Turn an exception of a plugin into a rejection that names it."""
        try:
            yield
        except OvertakenError:
            raise
        except Exception as error:
            _logger.warning("plugin %s: %s: %r", plugin.name, point, error, exc_info=error)
            what = "took too long" if isinstance(error, TimeoutError) else repr(error)
            raise RejectionError(
                f"plugin {plugin.name}: {point}: {what}", is_error=True, is_retried=True
            ) from error

    @staticmethod
    def _check(plugin: Plugin, point: str, answer: object, *types: type) -> None:
        if answer is not None and not isinstance(answer, types):
            if inspect.iscoroutine(answer):
                answer.close()
            expected = " or ".join(("None", *(each.__name__ for each in types)))
            message = f"returned {type(answer).__name__}; return {expected}"
            raise RejectionError(
                f"plugin {plugin.name}: {point}: {message}", is_error=True, is_retried=True
            )


def _rejection(plugin: Plugin, reason: str, *, is_retried: bool = False) -> RejectionError:
    changes = ANY_CHANGE if plugin.hints is None else plugin.hints
    message = f"plugin {plugin.name}: {reason}"
    return RejectionError(message, changes=changes, is_error=False, is_retried=is_retried)

"""
Supervision: a component that fails stops alone, and starts again later.

A component is a part of the control plane that can run without the others: one controller, the
scheduler, one informer. Whatever it does runs in the context of its `Component`: the tasks it
creates, the listeners it registers with informers, and its timers. An unexpected exception in one
of these ends this component only; the `Supervisor` restarts it with back-off. An exception that
concerns one object, such as a pod that a plan cannot cope with, does not end the component: the
object is tried again later, and the failure is reported.

Code that runs outside a component is not supervised, and its exceptions are raised. This is the
case in tests and scenarios, where a bug must be seen.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dryrack.client.timekeeping import sleep

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dryrack.client.timekeeping import Timekeeper

_logger = logging.getLogger(__name__)

# The first restart comes at once for people, and a component that fails whenever it starts takes
# no more than a hundredth of a core. A component that runs for longer than the maximum begins anew.
RESTART_SECONDS_MIN = 1.0
RESTART_SECONDS_MAX = 60.0

# How many different objects are reported by name. Further ones are counted under the last name.
SUBJECTS_MAX = 100

REPORT_COMMAND = "dryrack record --anonymize --output recording.yaml"


@dataclass(frozen=True, slots=True)
class Failure:
    """The last failure of a component, or of one object that the component handles."""

    component: str
    error: str
    at: float
    count: int = 1
    subject: str = ""
    """The object that the failure concerns; "" if it stopped the component."""
    restarts_at: float | None = None
    """When the component starts again; None if it runs."""


class Component:
    """One run of a component, until its first failure."""

    def __init__(self, name: str, supervisor: Supervisor) -> None:
        self.name = name
        self.is_over = False
        self._supervisor = supervisor
        self._failure: Exception | None = None
        self._task: asyncio.Task[object] | None = None
        self._cleanups: list[Callable[[], None]] = []

    async def run(self, start: Callable[[], Awaitable[None]]) -> Exception | None:
        """Run the component, and return the exception that ends it; None if it returned."""
        self._task = asyncio.current_task()
        assert self._task is not None, "components run in tasks"
        token = _current.set(self)
        try:
            await start()
        except asyncio.CancelledError:
            # Either `fail` has cancelled the task, or the control plane stops.
            if self._failure is None or self._task.uncancel():
                raise
        except Exception as error:  # noqa: BLE001 - the supervisor reports it
            self._failure = self._failure or _first(error)
        finally:
            self.is_over = True
            _current.reset(token)
            for cleanup in self._cleanups:
                cleanup()
        return self._failure

    def fail(self, error: Exception) -> None:
        """End the component because of an exception outside its tasks."""
        if not self.is_over and self._failure is None:
            self._failure = error
            self.is_over = True
            assert self._task is not None, "only a component that runs has listeners and timers"
            self._task.cancel()

    def guard(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Return a callback that ends the component if it raises."""

        def call() -> None:
            try:
                callback()
            except Exception as error:  # noqa: BLE001 - it ends the component
                self.fail(error)

        return call

    def on_end(self, cleanup: Callable[[], None]) -> None:
        """Call `cleanup` when this run of the component is over."""
        self._cleanups.append(cleanup)

    def fail_for(self, subject: str, error: Exception) -> None:
        """Report an exception that concerns one object."""
        self._supervisor.report(self.name, error, subject)

    def recover(self, subject: str) -> None:
        """Note that an object which failed before is handled now."""
        self._supervisor.forget(self.name, subject)


_current: ContextVar[Component | None] = ContextVar("component", default=None)


def current_component() -> Component | None:
    """Return the component that the caller runs in; None if it is not supervised."""
    return _current.get()


class Supervisor:
    """Restarts components with back-off, and knows what has failed."""

    def __init__(self, clock: Timekeeper, on_change: Callable[[], None] = lambda: None) -> None:
        self._clock = clock
        self._on_change = on_change
        self._failures: dict[tuple[str, str], Failure] = {}
        self._logged: set[tuple[str, str]] = set()

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Return the last failure of each component and object, ordered by name."""
        return tuple(self._failures[key] for key in sorted(self._failures))

    async def run(self, name: str, start: Callable[[], Awaitable[None]]) -> None:
        """Run a component until it returns, or the task is cancelled; restart it when it fails."""
        in_a_row = 0
        while True:
            began = self._clock.now()
            error = await Component(name, self).run(start)
            if error is None:
                return
            if self._clock.now() - began > RESTART_SECONDS_MAX:
                in_a_row = 0
            seconds = min(RESTART_SECONDS_MIN * 2**in_a_row, RESTART_SECONDS_MAX)
            in_a_row = min(in_a_row + 1, 10)
            self.report(name, error, restarts_at=self._clock.now() + seconds)
            await sleep(self._clock, seconds)
            self._failures[name, ""] = replace(self._failures[name, ""], restarts_at=None)
            self._on_change()

    def report(
        self, name: str, error: Exception, subject: str = "", restarts_at: float | None = None
    ) -> None:
        """Log a failure when it happens for the first time, and count it."""
        text = "".join(traceback.format_exception_only(error)).strip()
        place = traceback.extract_tb(error.__traceback__)[-1:]
        if (name, f"{type(error)} {place}") not in self._logged:
            self._logged.add((name, f"{type(error)} {place}"))
            concerns = f", {subject}" if subject else ""
            then = "it restarts" if restarts_at is not None else "the object is tried again later"
            _logger.error(
                "%s%s: unexpected %s; %s, and this failure is not logged again; "
                "this is a bug in dryrack, please report it with this log and the output of: %s",
                *(name, concerns, text, then, REPORT_COMMAND),
                exc_info=error,
            )
        if len(self._failures) >= SUBJECTS_MAX and (name, subject) not in self._failures:
            subject = "other objects" if subject else ""
        before = self._failures.get((name, subject))
        count = before.count + 1 if before else 1
        self._failures[name, subject] = Failure(
            name, text, self._clock.now(), count, subject, restarts_at
        )
        self._on_change()

    def forget(self, name: str, subject: str) -> None:
        """Drop what is known about an object that is handled again."""
        if self._failures.pop((name, subject), None) is not None:
            self._on_change()


def _first(error: Exception) -> Exception:
    """Return the first exception in a group, at any depth."""
    return _first(error.exceptions[0]) if isinstance(error, ExceptionGroup) else error

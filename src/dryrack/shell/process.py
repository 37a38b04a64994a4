"""
Processes in virtual time: tasks that run until they sleep, wait or end.

A program is a generator. It yields how long it sleeps, or what it waits for, and returns its exit
code. `Process.run` lets all tasks go on up to a time; between two wakes no time passes, except for
a program that never sleeps: it pays for its steps, as a busy loop does on a real machine.
"""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass

# A program that takes so many steps without sleeping has used up a second.
_STEPS_PER_SECOND = 2_000
# One call runs a process for at most so many wakes and steps, so that a loop cannot block dryrack.
_WAKES_MAX = 20_000
_STEPS_MAX = 40_000
_OUTPUT_BYTES_MAX = 1 << 20
_GAP = b"# dryrack left out a part of the output of this program\n"

KILLED = 137
TERMINATED = 143


@dataclass(frozen=True, slots=True)
class Sleep:
    """Go on after this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Until:
    """Go on when the condition holds, or when a signal with a trap arrives."""

    condition: Callable[[], bool]


Pause = Sleep | Until
Program = Generator[Pause, None, int]
STEP = Sleep(0.0)


class Task:
    """One program of a process."""

    def __init__(self, program: Program, at: float) -> None:
        self._program = program
        self._condition: Callable[[], bool] | None = None
        self.wakes_at = at
        self.status: int | None = None
        self.failure = ""

    def is_ready(self, now: float, *, is_interrupted: bool) -> bool:
        if self.status is not None:
            return False
        if self._condition is not None:
            return is_interrupted or self._condition()
        return self.wakes_at <= now

    def step(self, now: float) -> None:
        """Let the program go on until it pauses or ends."""
        try:
            pause = next(self._program)
        except StopIteration as end:
            self.status = int(end.value or 0) & 0xFF
            return
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            # A script that a command cannot handle ends its container, not the kubelet.
            self.failure = f"# dryrack cannot run this command: {error!r}\n"
            self.status = 2
            return
        match pause:
            case Sleep(seconds):
                self._condition = None
                self.wakes_at = now + seconds
            case Until(condition):
                self._condition = condition
                self.wakes_at = math.inf

    def close(self) -> None:
        self._program.close()
        if self.status is None:
            self.status = KILLED


@dataclass(frozen=True, slots=True)
class Chunk:
    """Output, with its time."""

    at: float
    descriptor: int
    data: bytes


class Process:
    """A program with its background tasks and its output."""

    def __init__(self, at: float) -> None:
        self.now = at
        self.started_at = at
        self.ended_at: float | None = None
        self.exit_code: int | None = None
        self.is_endless = False
        """True once the program is in a loop that only a signal ends."""
        self.handles_signals = False
        """True if the program has a trap for SIGTERM."""
        self.is_signaled = False
        self.is_terminal = False
        """True if a person types the input: shells print a prompt."""
        self.is_prompting = False
        self.has_read_clock = False
        """True if the result of the program can depend on the time."""
        self.output: list[Chunk] = []
        self.dropped_bytes = 0
        self._size = 0
        self._pauses_until = at
        """A program that used up its steps goes on at this time."""
        self._main: Task | None = None
        self._tasks: list[Task] = []
        self.signals: list[str] = []

    def start(self, program: Program) -> Task:
        """Add a task; the first one is the main task, and the process ends with it."""
        task = Task(program, self.now)
        self._tasks.append(task)
        if self._main is None:
            self._main = task
        return task

    def write(self, descriptor: int, data: bytes) -> None:
        if not data:
            return
        self.output.append(Chunk(self.now, descriptor, data))
        self._size += len(data)
        while self._size > _OUTPUT_BYTES_MAX and len(self.output) > 1:
            size = len(self.output.pop(0).data)
            self._size -= size
            self.dropped_bytes += size

    @property
    def wakes_at(self) -> float:
        """Return when something can happen by itself; infinity if only input changes anything."""
        if self.exit_code is not None:
            return math.inf
        wake = min((each.wakes_at for each in self._tasks if each.status is None), default=math.inf)
        return max(wake, self._pauses_until)

    def run(self, until: float) -> None:
        """Let time pass, up to and including `until`."""
        steps = 0
        total = 0
        wakes = 0
        while self.exit_code is None and self._pauses_until <= until:
            self.now = max(self.now, self._pauses_until)
            ready = [
                each
                for each in self._tasks
                if each.is_ready(self.now, is_interrupted=bool(self.signals))
            ]
            for task in ready:
                task.step(self.now)
                self.write(2, task.failure.encode())
                task.failure = ""
                if task is self._main and task.status is not None:
                    self._end(task.status)
                    return
            if ready:
                steps += len(ready)
                total += len(ready)
                if total > _STEPS_MAX:
                    self.write(2, _GAP)
                    self._pauses_until = max(self.now, until) + 1
                elif steps >= _STEPS_PER_SECOND:
                    steps = 0
                    self._pauses_until = self.now + 1
                continue
            self._tasks = [each for each in self._tasks if each.status is None]
            wake = self.wakes_at
            if wake > until:
                break
            steps = 0
            wakes += 1
            if wakes > _WAKES_MAX:
                self.write(2, _GAP)
                wakes = 0
                for task in self._tasks:
                    task.wakes_at = max(task.wakes_at, until)
                wake = self.wakes_at
            self.now = max(self.now, wake)
        if self.exit_code is None:
            self.now = max(self.now, until)

    def signal(self, name: str) -> None:
        """Send a signal; the program handles it if it has a trap."""
        self.is_signaled = True
        self.is_endless = False
        self.signals.append(name)

    def interrupt(self) -> None:
        """End the program as Ctrl-C does; a shell with a prompt goes on."""
        if not self.is_terminal or not self.is_prompting:
            self.kill(130)

    def kill(self, code: int) -> None:
        if self.exit_code is None:
            self._end(code)

    def _end(self, code: int) -> None:
        self.exit_code = code
        self.ended_at = self.now
        for task in self._tasks:
            task.close()
        self._tasks = []

"""
How a pod on a virtual node behaves, as its annotations say.

Nothing is executed on a virtual node, so what a real program would decide is written on the pod:

| annotation                  | what it says                                                       |
|-----------------------------|--------------------------------------------------------------------|
| `dryrack.dev/start-seconds` | from the pod's arrival on the node to its first container          |
| `dryrack.dev/init-seconds`  | how long each init container runs                                  |
| `dryrack.dev/ready-seconds` | from a container's start to its readiness                          |
| `dryrack.dev/run-seconds`   | how long it runs: 5 for pods of Jobs and Helm hooks, else for ever |
| `dryrack.dev/exit-code`     | what it exits with                                                 |
| `dryrack.dev/failures`      | how many first runs of a container exit with 1, whatever the code  |
| `dryrack.dev/stop-seconds`  | how long a container takes to stop when the pod is deleted         |
| `dryrack.dev/waiting`       | a reason (`ImagePullBackOff`) for which no container ever starts   |

A value that is no number is as if it were not there.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

PREFIX = "dryrack.dev/"

# Long enough to be seen running, short enough that nobody waits for a job.
RUN_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """See the module's docstring; `run_seconds` is None for a container that never ends."""

    start_seconds: float = 0.0
    init_seconds: float = 0.0
    ready_seconds: float = 0.0
    run_seconds: float | None = None
    exit_code: int = 0
    failures: int = 0
    stop_seconds: float = 0.0
    waiting: str = ""


def script_of(annotations: Mapping[str, str], *, run_seconds: float | None) -> Script:
    """What the annotations of a pod say; `run_seconds` is what holds if they do not."""
    return Script(
        start_seconds=_number(annotations, "start-seconds"),
        init_seconds=_number(annotations, "init-seconds"),
        ready_seconds=_number(annotations, "ready-seconds"),
        run_seconds=_optional_number(annotations, "run-seconds", run_seconds),
        exit_code=int(_number(annotations, "exit-code")) & 0xFF,
        failures=int(_number(annotations, "failures")),
        stop_seconds=_number(annotations, "stop-seconds"),
        waiting=annotations.get(PREFIX + "waiting", ""),
    )


def _number(annotations: Mapping[str, str], name: str) -> float:
    return _optional_number(annotations, name, None) or 0.0


def _optional_number(
    annotations: Mapping[str, str], name: str, usual: float | None
) -> float | None:
    try:
        number = float(annotations[PREFIX + name])
    except (KeyError, ValueError):
        return usual
    return number if math.isfinite(number) and number >= 0 else usual

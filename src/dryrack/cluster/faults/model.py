"""
Fault injection: everything that can be made to go wrong, as values.

A fault of the API or of an engine is the work of a `FaultBoard`; one of nodes, devices, pools and
claims is a plain write that anybody can make. `reading` makes these values of words.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# What the real server asks for when it sheds load.
RETRY_AFTER_SECONDS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiFault:
    """
    What requests of engines meet; each share is that of the requests which it can hit.

    A conflict hits updates and patches. An error comes before the server has seen the request; a
    lost answer after a write has taken effect.
    """

    engine: str = ""
    """Whose requests; all engines' if empty."""
    conflicts: float = 0.0
    too_many: float = 0.0
    errors: float = 0.0
    lost_answers: float = 0.0
    latency_seconds: float = 0.0
    watch_latency_seconds: float = 0.0
    """How late engines hear of changes."""

    def plus(self, other: ApiFault) -> ApiFault:
        """Both at a time."""
        return ApiFault(
            engine=self.engine,
            conflicts=max(self.conflicts, other.conflicts),
            too_many=max(self.too_many, other.too_many),
            errors=max(self.errors, other.errors),
            lost_answers=max(self.lost_answers, other.lost_answers),
            latency_seconds=self.latency_seconds + other.latency_seconds,
            watch_latency_seconds=self.watch_latency_seconds + other.watch_latency_seconds,
        )


class WatchEnd(StrEnum):
    """How a watch ends that was not to end."""

    BROKEN = "broken"
    """The connection is gone; the next watch goes on from where it was."""
    EXPIRED = "expired"
    """The server no longer knows the revision; all is listed again."""


@dataclass(frozen=True, slots=True)
class WatchLoss:
    """All open watches of engines end now."""

    end: WatchEnd = WatchEnd.BROKEN
    engine: str = ""


class CrashPoint(StrEnum):
    """When an engine dies."""

    NOW = "now"
    BEFORE_WRITE = "before"
    AFTER_WRITE = "after"


# A process that has died is started again by a kubelet at once; this is what its start takes.
RESTART_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class EngineCrash:
    """
    A family of engines dies without any clean-up and has forgotten everything when it starts again.

    At a write, that is the `write`-th from now on, before or after it has taken effect.
    """

    engine: str
    point: CrashPoint = CrashPoint.NOW
    write: int = 0


@dataclass(frozen=True, slots=True)
class NodeFailure:
    """What an annotation of a Node tells of; `part` is prepare, driver or ready."""

    node: str
    part: str
    value: str


@dataclass(frozen=True, slots=True)
class NodeReboot:
    """What a node had prepared is forgotten, and its pods start again."""

    node: str


@dataclass(frozen=True, slots=True)
class DeviceFailure:
    """A fault of the devices whose nodes and names match, or of a share of them."""

    node: str
    device: str
    value: str
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class HalfGeneration:
    """The pools of a node begin a generation whose other slices never come."""

    node: str
    driver: str = "*"


@dataclass(frozen=True, slots=True)
class ClaimLeak:
    """A claim has a device for a pod that there is not."""

    namespace: str
    name: str


EngineFault = ApiFault | WatchLoss | EngineCrash
ObjectFault = NodeFailure | NodeReboot | DeviceFailure | HalfGeneration | ClaimLeak
Fault = EngineFault | ObjectFault


@dataclass(frozen=True, slots=True)
class Injection:
    """A fault, and how long it lasts; None: until it is healed."""

    fault: Fault
    seconds: float | None = None


class Subject(StrEnum):
    """What can be healed."""

    ALL = "all"
    API = "api"
    ENGINE = "engine"
    NODE = "node"
    DEVICE = "device"


@dataclass(frozen=True, slots=True)
class Healing:
    """All faults of a subject end; `name` is a pattern: an engine, a node, or NODE/DEVICE."""

    subject: Subject
    name: str = "*"

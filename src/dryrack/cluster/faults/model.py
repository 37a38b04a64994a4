"""
The faults that can be injected, as values.

A `FaultBoard` has the faults of the API and of engines; faults of nodes, devices, pools and claims
are plain writes. `reading` parses these values.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# What the real server asks for when it sheds load.
RETRY_AFTER_SECONDS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiFault:
    """
    Shares of the requests of engines that fail, and their latency.

    Conflicts affect updates and patches. An error happens before the server has seen the request; a
    lost answer happens after a write has taken effect.
    """

    engine: str = ""
    """The engine whose requests are affected; "" for all."""
    conflicts: float = 0.0
    too_many: float = 0.0
    errors: float = 0.0
    lost_answers: float = 0.0
    latency_seconds: float = 0.0
    watch_latency_seconds: float = 0.0
    """The delay of watch events."""

    def plus(self, other: ApiFault) -> ApiFault:
        """Return the combination of two faults."""
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
    """The way in which a watch ends early."""

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
    """The moment when an engine crashes."""

    NOW = "now"
    BEFORE_WRITE = "before"
    AFTER_WRITE = "after"


# A process that has died is started again by a kubelet at once; this is what its start takes.
RESTART_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class EngineCrash:
    """
    A family of engines crashes without clean-up, and restarts without its state.

    At a write, this is the `write`-th from now on, before or after it has taken effect.
    """

    engine: str
    point: CrashPoint = CrashPoint.NOW
    write: int = 0


@dataclass(frozen=True, slots=True)
class NodeFailure:
    """A fault in an annotation of a Node; `part` is prepare, driver or ready."""

    node: str
    part: str
    value: str


@dataclass(frozen=True, slots=True)
class NodeReboot:
    """A node loses what it had prepared, and its pods start again."""

    node: str


@dataclass(frozen=True, slots=True)
class KubeletRestart:
    """The virtual kubelet of a node restarts, and driver programs register again."""

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
    """The pools of a node get a new generation of which slices are missing."""

    node: str
    driver: str = "*"


@dataclass(frozen=True, slots=True)
class ClaimLeak:
    """A claim keeps a device for a pod that does not exist."""

    namespace: str
    name: str


EngineFault = ApiFault | WatchLoss | EngineCrash
ObjectFault = NodeFailure | NodeReboot | KubeletRestart | DeviceFailure | HalfGeneration | ClaimLeak
Fault = EngineFault | ObjectFault


@dataclass(frozen=True, slots=True)
class Injection:
    """A fault, and how long it lasts; None: until it is healed."""

    fault: Fault
    seconds: float | None = None


class Subject(StrEnum):
    """The subjects whose faults can be ended."""

    ALL = "all"
    API = "api"
    ENGINE = "engine"
    NODE = "node"
    DEVICE = "device"


@dataclass(frozen=True, slots=True)
class Healing:
    """
    The end of all faults of a subject; `name` is a pattern: an engine, a node, or NODE/DEVICE.
    """

    subject: Subject
    name: str = "*"

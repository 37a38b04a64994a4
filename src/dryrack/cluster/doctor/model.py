"""
Facts about a cluster and a machine, and the findings of checks.

A fact that could not be read is an `Unknown` with the reason. A check that needs it calls
`require`, so its result is `unknown`, and never `ok`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dryrack.client.endpoints import Endpoint
    from dryrack.client.transport import User
    from dryrack.kinds.raw import Raw

_Fact = TypeVar("_Fact")

# The commands that run on a cluster and have a manifest of rights.
ENGINES = ("publish", "schedule", "plugin", "dashboard")


class State(enum.StrEnum):
    """The result of a check."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A fact that could not be read, and the reason."""

    reason: str
    fix: str = ""


class UnknownFactError(Exception):
    """A check needs a fact that could not be read."""

    def __init__(self, unknown: Unknown) -> None:
        super().__init__(unknown.reason)
        self.unknown = unknown


def require(fact: _Fact | Unknown) -> _Fact:
    """Return the fact; raise if it could not be read."""
    if isinstance(fact, Unknown):
        raise UnknownFactError(fact)
    return fact


class Verdict(NamedTuple):
    """The result of a check, with its message and its fix."""

    state: State
    message: str
    fix: str = ""


def ok(message: str) -> Verdict:
    return Verdict(State.OK, message)


def warn(message: str, fix: str) -> Verdict:
    return Verdict(State.WARNING, message, fix)


def fail(message: str, fix: str) -> Verdict:
    return Verdict(State.FAILED, message, fix)


def skip(message: str) -> Verdict:
    return Verdict(State.SKIPPED, message)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    check: str
    state: State
    message: str
    fix: str = ""

    def as_data(self) -> Raw:
        return {
            "check": self.check,
            "state": self.state.value,
            "message": self.message,
            "fix": self.fix,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The question of the user: commands, an account, and a node."""

    engines: frozenset[str] = frozenset()
    """The commands that must work; for the others, a missing right is a warning."""
    account: str = ""
    """The user whose rights are checked; "" for the current user."""
    driver: str = "gpu.example.com"
    """The driver of the ResourceSlice of the dry run."""
    namespace: str = ""
    """The namespace in which the commands run; "" for those of their manifests."""
    node: str = ""
    """The node of the plugin."""


class Attempt(NamedTuple):
    """The answer to a dry run: the stored object, or the refusal."""

    object: Raw | None
    refusal: str = ""
    is_allowed: bool = True
    """False if the user has no right to create the object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """Facts that were read from a cluster."""

    server: str = ""
    version: Raw = field(default_factory=dict)
    is_live: bool = True
    user: User | Unknown = field(default_factory=lambda: Unknown("not read"))
    server_time: float | None = None
    """The time of the server; None if it sends no time."""
    clock_skew_seconds: float | None = None
    """The time of this machine minus the time of the server."""
    versions: Mapping[tuple[str, str], str] | Unknown = field(default_factory=dict)
    """The version by group and plural; a kind that is not served is missing."""
    lists: Mapping[Endpoint, tuple[Raw, ...] | Unknown] = field(default_factory=dict)
    attempts: Mapping[str, Attempt] = field(default_factory=dict)
    """Dry runs of ResourceSlices, by feature gate; "" for one without special fields."""
    denied: Mapping[str, tuple[str, ...] | Unknown] = field(default_factory=dict)
    """The rights that the account lacks, by engine."""
    may_write_for_any_node: bool | Unknown = False
    """True if the account may write the device status of claims of any node."""
    services: Mapping[tuple[str, str], bool | Unknown] = field(default_factory=dict)
    """Services of webhooks, by namespace and name: True if an endpoint is ready."""
    component_failures: tuple[Raw, ...] | Unknown = ()
    """The failed components of a virtual cluster."""

    @property
    def is_virtual(self) -> bool:
        """Return True for the control plane of `dryrack up`."""
        return "dryrack" in str(self.version.get("gitVersion", ""))

    def items(self, endpoint: Endpoint) -> tuple[Raw, ...]:
        """Return the objects of a kind; raise if they could not be read."""
        return require(self.lists.get(endpoint, ()))


class PluginSocket(NamedTuple):
    """A registration socket in the directory that the kubelet watches."""

    path: str
    is_listening: bool | Unknown


class CdiSpec(NamedTuple):
    """A CDI spec of a driver of this machine."""

    path: str
    driver: str
    uid: str
    version: str
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """Facts that were read from this machine."""

    python: tuple[int, ...] = (3, 11)
    import_errors: Mapping[str, str] = field(default_factory=dict)
    """Errors by distribution."""
    used_ports: frozenset[int] = frozenset()
    state_directory: str = ""
    state_problem: str = ""
    """Why the directory for the state of clusters cannot be written to."""
    open_files_max: int = 1024
    kubectl: str | Unknown | None = None
    """The version of kubectl; None if it is not installed."""
    kubelet_roots: tuple[str, ...] = ()
    """The root directories of the kubelets that run."""
    kubelet_directory: Path
    directory_problems: Mapping[str, str] = field(default_factory=dict)
    """Problems of the directories below the kubelet's root directory."""
    containerd: Raw | Unknown | None = None
    """The configuration of containerd; None if it is not installed."""
    containerd_version: str = ""
    cdi_directory: Path
    sockets: tuple[PluginSocket, ...] | Unknown = ()
    drivers: tuple[str, ...] | Unknown = ()
    """The drivers of dryrack plugin that have run here."""
    specs: tuple[CdiSpec, ...] | Unknown = ()
    prepared: Mapping[str, frozenset[str] | Unknown] = field(default_factory=dict)
    """The UIDs of prepared claims by driver."""


def several(texts: Sequence[str], shown_max: int = 3) -> str:
    """Return the first texts and the number of the others."""
    rest = len(texts) - shown_max
    return "; ".join(texts[:shown_max]) + (f"; and {rest} more" if rest > 0 else "")

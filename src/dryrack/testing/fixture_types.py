"""The types of the fixtures that tests call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.testing.expectation import Because, Scheduled
    from dryrack.testing.manifests import Manifest


class Fleet(Protocol):
    """Adds virtual nodes; see `AsyncCluster.add_nodes`."""

    def __call__(
        self,
        profile: str = "",
        *,
        count: int | None = None,
        name: str = "",
        devices: str | Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        taints: Sequence[str | Mapping[str, str]] = (),
        capacity: Mapping[str, str | int] | None = None,
    ) -> tuple[str, ...]: ...


class Apply(Protocol):
    """Creates or changes objects; see `AsyncCluster.apply`."""

    def __call__(self, manifest: Manifest) -> list[Raw]: ...


class ExpectScheduled(Protocol):
    """Waits until pods have nodes; see `AsyncCluster.expect_scheduled`."""

    def __call__(
        self,
        target: str | Mapping[str, Any],
        *,
        on: str | Sequence[str] = "",
        devices: int | str | Sequence[str] | None = None,
        within: float | str | None = None,
    ) -> Scheduled: ...


class ExpectPending(Protocol):
    """Checks that pods keep waiting; see `AsyncCluster.expect_pending`."""

    def __call__(
        self,
        target: str | Mapping[str, Any],
        *,
        because: Because | Sequence[Because] = (),
        lasting: float | str | None = None,
        within: float | str | None = None,
    ) -> str: ...

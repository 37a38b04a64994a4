"""Slices that were understood, with the entries that they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.hardware.config_formats.forms import expanded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.hardware.config_formats.fields import Given
    from dryrack.hardware.config_formats.forms import Template
    from dryrack.hardware.inventory import Batch
    from dryrack.kinds.resource import CounterSet, Device


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the list of devices that could be understood."""

    template: Template
    device: Device

    def names(self) -> Iterator[str]:
        """The devices that it stands for."""
        return expanded(self.device, self.template.count)


@dataclass(frozen=True, slots=True)
class Piece:
    """A batch, and the entries that it comes from."""

    batch: Batch
    entries: tuple[Entry, ...]
    counters: tuple[tuple[Given, CounterSet], ...]

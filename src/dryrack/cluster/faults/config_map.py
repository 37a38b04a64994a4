"""
Faults of the API and of engines on a running cluster, as entries of a ConfigMap.

`kube-system/dryrack-faults` has an entry for each fault: its words as in a scenario, with an
optional ` until` and a time. A new entry begins a fault and a deleted entry ends it. An entry whose
time has passed has no effect, so a restart of the cluster does not repeat a crash. The faults do
not affect the requests of this module, otherwise no fault could be ended.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.client.client import Selection
from dryrack.client.endpoints import CONFIG_MAPS
from dryrack.client.informer import Informer, Name
from dryrack.client.timekeeping import seconds_of, timestamp
from dryrack.cluster.faults.model import (
    RESTART_SECONDS,
    ApiFault,
    EngineCrash,
    Healing,
    Subject,
    WatchLoss,
)
from dryrack.cluster.faults.reading import FaultWordsError, read_injection
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.base.ports import Chance
    from dryrack.client.client import Client
    from dryrack.cluster.faults.board import FaultBoard
    from dryrack.cluster.faults.model import EngineFault, Injection
    from dryrack.kinds.raw import Raw

_logger = logging.getLogger(__name__)

CONFIG_MAP = Name("kube-system", "dryrack-faults")
# How long a moment lasts: a plane that is started later does not repeat it.
_MOMENT_SECONDS = 10.0
_ONLY = "the ConfigMap has faults of the API, watches and components only"
_UNTIL = re.compile(r"(?P<words>.*\S)\s+until\s+(?P<until>\S+)")


def entry_of(injection: Injection, words: str, now: float) -> tuple[str, str]:
    """Return the key and the value of a fault that begins now; `words` name no duration."""
    fault = injection.fault
    seconds = injection.seconds
    match fault:
        case ApiFault():
            key = f"api.{fault.engine}" if fault.engine else "api"
        case WatchLoss():
            key = "watches"
            seconds = _MOMENT_SECONDS
        case EngineCrash():
            key = f"engine.{fault.engine}"
            seconds = max(RESTART_SECONDS if seconds is None else seconds, 1.0)
        case _:
            raise FaultWordsError(f"{words!r}: annotate the Node instead; {_ONLY}")
    return key, words if seconds is None else f"{words} until {timestamp(now + seconds + 1)}"


class FaultEntries:
    """Puts the faults of the ConfigMap on a board, and removes them with their entries."""

    def __init__(self, client: Client, board: FaultBoard, chance: Chance) -> None:
        self._board = board
        self._known: dict[str, tuple[str, EngineFault]] = {}
        selection = Selection(
            namespace=CONFIG_MAP.namespace, fields=f"metadata.name={CONFIG_MAP.name}"
        )
        self._informer = Informer(
            client, CONFIG_MAPS, clock=board.clock, chance=chance, selection=selection
        )
        self._informer.listen(self._on_config_map)

    async def run(self) -> None:
        await self._informer.run()

    def _on_config_map(self, _: Raw | None, new: Raw | None) -> None:
        entries: Mapping[str, str] = get(new or {}, "data", {})
        for key in sorted(self._known.keys() - entries.keys()):
            self._end(key)
        for key, value in sorted(entries.items()):
            if self._known.get(key, ("",))[0] != value:
                self._end(key)
                try:
                    fault, seconds = self._read(value)
                    if seconds is None or seconds > 0:
                        self._known[key] = (value, fault)
                        self._board.begin_soon(fault, seconds)
                except (DryrackError, ValueError) as error:
                    _logger.warning("ConfigMap %s, %s: %s", "/".join(CONFIG_MAP), key, error)

    def _read(self, value: str) -> tuple[EngineFault, float | None]:
        said = _UNTIL.fullmatch(value.strip())
        fault = read_injection(said["words"] if said else value).fault
        if not isinstance(fault, ApiFault | WatchLoss | EngineCrash):
            raise FaultWordsError(f"{value!r}: annotate the Node instead; {_ONLY}")
        return fault, seconds_of(said["until"]) - self._board.clock.now() if said else None

    def _end(self, key: str) -> None:
        _, fault = self._known.pop(key, ("", None))
        if isinstance(fault, ApiFault):
            self._board.drop(fault)
        elif isinstance(fault, EngineCrash):
            self._board.end(Healing(Subject.ENGINE, fault.engine))

"""
Fault injection: the faults of nodes, devices, the API and engines, and their words.

    board = FaultBoard(clock=clock, chance=SeededChance(seed))
    async with embedded(options, board=board) as cluster:
        await board.begin(read_injection("api conflicts=0.1 latency=20ms").fault)
"""

from dryrack.cluster.faults.board import FaultBoard
from dryrack.cluster.faults.config_map import CONFIG_MAP, entry_of
from dryrack.cluster.faults.injection import FaultInjector, FaultTargetError
from dryrack.cluster.faults.model import (
    ClaimLeak,
    EngineCrash,
    HalfGeneration,
    Injection,
    KubeletRestart,
    NodeReboot,
    Subject,
    WatchLoss,
)
from dryrack.cluster.faults.reading import (
    FaultWordsError,
    injection_of,
    read_healing,
    read_injection,
)

__all__ = [
    "CONFIG_MAP",
    "ClaimLeak",
    "EngineCrash",
    "FaultBoard",
    "FaultInjector",
    "FaultTargetError",
    "FaultWordsError",
    "HalfGeneration",
    "Injection",
    "KubeletRestart",
    "NodeReboot",
    "Subject",
    "WatchLoss",
    "entry_of",
    "injection_of",
    "read_healing",
    "read_injection",
]

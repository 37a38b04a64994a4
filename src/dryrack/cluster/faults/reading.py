"""
Parse the words of faults, which are the same in scenarios and on the command line.

    api conflicts=0.1 latency=20ms engine=scheduler for 30s
    watches broken
    engine scheduler crash for 10s
    engine scheduler crash=after write=3
    node worker-1 prepare=fail=no device
    node worker-* ready=false for 2m
    node worker-1 reboot
    node worker-1 kubelet-restart
    device worker-1/gpu-3 unhealthy
    device */gpu-* lost share=0.1
    pool worker-1/gpu.nvidia.com half
    claim default/forgotten leaked
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dryrack.base.durations import seconds_in
from dryrack.base.errors import DryrackError
from dryrack.base.numbers import read_int64
from dryrack.base.text import hint
from dryrack.cluster.faults.model import (
    ApiFault,
    ClaimLeak,
    CrashPoint,
    DeviceFailure,
    EngineCrash,
    HalfGeneration,
    Healing,
    Injection,
    KubeletRestart,
    NodeFailure,
    NodeReboot,
    Subject,
    WatchEnd,
    WatchLoss,
)
from dryrack.hardware import NODE_FAULT_PARTS, FaultError, read_device_faults, read_node_fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.cluster.faults.model import Fault


class FaultWordsError(DryrackError):
    """Words that are not a fault."""


_FOR = re.compile(r"(?P<fault>.*\S)\s+for\s+(?P<seconds>\S+)", re.DOTALL)
_SHARES = {
    "conflicts": "conflicts",
    "too-many": "too_many",
    "errors": "errors",
    "lost-answers": "lost_answers",
}
_ONCE = (WatchLoss, NodeReboot, KubeletRestart, HalfGeneration, ClaimLeak)
_DELAYS = {"latency": "latency_seconds", "watch-latency": "watch_latency_seconds"}


def read_injection(text: str) -> Injection:
    """Parse a fault, and its duration if the words have one."""
    said = _FOR.fullmatch(text.strip())
    if said is None:
        return injection_of(text.strip())
    seconds = seconds_in(said["seconds"])
    if not seconds:
        raise FaultWordsError(f"for {said['seconds']!r}: use a duration such as 30s or 1m30s")
    return injection_of(said["fault"], seconds)


def injection_of(text: str, seconds: float | None = None) -> Injection:
    """Parse a fault whose words have no duration; events such as crashes last no time."""
    kind, _, rest = text.partition(" ")
    reader = _READERS.get(kind)
    if reader is None:
        raise FaultWordsError(f"unknown fault {kind!r}; {hint(kind, _READERS)}")
    fault = reader(rest.strip())
    if seconds is not None and isinstance(fault, _ONCE):
        raise FaultWordsError(f"{text!r} happens once; remove the duration")
    return Injection(fault, seconds)


def read_healing(text: str) -> Healing:
    """Parse what to heal: all, or a subject and a pattern."""
    word, _, name = text.strip().partition(" ")
    try:
        subject = Subject(word)
    except ValueError:
        known = ", ".join(Subject)
        raise FaultWordsError(f"{word!r}: unknown target; use one of: {known}") from None
    return Healing(subject, name.strip() or "*")


def _api(text: str) -> ApiFault:
    values: dict[str, float] = {}
    engine = ""
    for word in text.split():
        key, _, value = word.partition("=")
        if key == "engine":
            engine = value
        elif key in _SHARES:
            values[_SHARES[key]] = _share(key, value)
        elif key in _DELAYS:
            values[_DELAYS[key]] = _delay(key, value)
        else:
            known = hint(key, (*_SHARES, *_DELAYS, "engine"))
            raise FaultWordsError(f"api {word!r}: unknown fault; {known}")
    if not values:
        raise FaultWordsError("api: add a fault, for example conflicts=0.1")
    return ApiFault(engine=engine, **values)


def _watches(text: str) -> WatchLoss:
    words = text.split()
    engine = "".join(word.removeprefix("engine=") for word in words if word.startswith("engine="))
    rest = [word for word in words if not word.startswith("engine=")] or ["broken"]
    if len(rest) > 1 or rest[0] not in (*WatchEnd,):
        raise FaultWordsError(
            f"watches {text!r}: use broken or expired; to limit it, add engine=NAME"
        )
    return WatchLoss(WatchEnd(rest[0]), engine)


def _engine(text: str) -> EngineCrash:
    name, *words = text.split() or [""]
    point = None
    write = 0
    for word in words:
        key, _, value = word.partition("=")
        if key == "crash" and value in ("", *CrashPoint):
            point = CrashPoint(value or "now")
        elif key == "write" and (number := read_int64(value)) is not None and number >= 0:
            write = number
        else:
            raise FaultWordsError(
                f"engine {name} {word!r}: use crash, crash=before or crash=after, and write=N"
            )
    if not name or point is None:
        raise FaultWordsError(f"engine {text!r}: use NAME crash, for example 'scheduler crash'")
    return EngineCrash(name, point, write)


def _node(text: str) -> NodeFailure | NodeReboot | KubeletRestart:
    name, _, said = text.partition(" ")
    said = said.strip()
    if said == "reboot":
        return NodeReboot(name)
    if said == "kubelet-restart":
        return KubeletRestart(name)
    part, has_value, value = said.partition("=")
    if part not in NODE_FAULT_PARTS or not has_value:
        raise FaultWordsError(
            f"node {text!r}: use NODE and prepare=fail|slow=5s|hang, driver=gone, ready=false, "
            "reboot or kubelet-restart"
        )
    try:
        read_node_fault(part, value)
    except FaultError as error:
        raise FaultWordsError(f"node {name} {said!r}: {error}") from None
    return NodeFailure(name, part, value)


def _device(text: str) -> DeviceFailure:
    target, _, said = text.partition(" ")
    node, has_device, device = target.partition("/")
    words = said.split(" ")
    shares = [word.removeprefix("share=") for word in words if word.startswith("share=")]
    value = " ".join(word for word in words if not word.startswith("share=")).strip()
    if not has_device or not node or not device or not value:
        raise FaultWordsError(
            f"device {text!r}: use NODE/DEVICE and unhealthy, lost or taint=KEY[=VALUE]:EFFECT"
        )
    try:
        read_device_faults(value)
    except FaultError as error:
        raise FaultWordsError(f"device {target} {value!r}: {error}") from None
    return DeviceFailure(node, device, value, _share("share", shares[0]) if shares else 1.0)


def _pool(text: str) -> HalfGeneration:
    target, _, said = text.partition(" ")
    node, _, driver = target.partition("/")
    if not node or said.strip() != "half":
        raise FaultWordsError(f"pool {text!r}: use NODE[/DRIVER] half")
    return HalfGeneration(node, driver or "*")


def _claim(text: str) -> ClaimLeak:
    target, _, said = text.partition(" ")
    namespace, has_name, name = target.partition("/")
    if not has_name or not name or said.strip() != "leaked":
        raise FaultWordsError(f"claim {text!r}: use NAMESPACE/NAME leaked")
    return ClaimLeak(namespace, name)


def _share(key: str, text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise FaultWordsError(f"{key}={text}: must be a share from 0 to 1, for example 0.1")
    return share


def _delay(key: str, text: str) -> float:
    seconds = seconds_in(text)
    if seconds is None:
        raise FaultWordsError(f"{key}={text}: must be a duration, for example 20ms or 2s")
    return seconds


_READERS: dict[str, Callable[[str], Fault]] = {
    "api": _api,
    "watches": _watches,
    "engine": _engine,
    "node": _node,
    "device": _device,
    "pool": _pool,
    "claim": _claim,
}

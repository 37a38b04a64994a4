"""Faults in words: what they mean, and what is said of words that mean nothing."""

from __future__ import annotations

import pytest

from dryrack.cluster.faults import (
    ClaimLeak,
    EngineCrash,
    FaultWordsError,
    HalfGeneration,
    Injection,
    KubeletRestart,
    NodeReboot,
    Subject,
    WatchLoss,
    read_healing,
    read_injection,
)
from dryrack.cluster.faults.model import (
    ApiFault,
    CrashPoint,
    DeviceFailure,
    Fault,
    Healing,
    NodeFailure,
    WatchEnd,
)

WORDS: dict[str, tuple[Fault, float | None]] = {
    "api conflicts=0.1 latency=20ms engine=scheduler for 30s": (
        ApiFault(engine="scheduler", conflicts=0.1, latency_seconds=0.02),
        30.0,
    ),
    "api too-many=1 errors=0.5 lost-answers=0 watch-latency=2s": (
        ApiFault(too_many=1.0, errors=0.5, watch_latency_seconds=2.0),
        None,
    ),
    "watches": (WatchLoss(), None),
    "watches expired engine=controllers": (WatchLoss(WatchEnd.EXPIRED, "controllers"), None),
    "engine scheduler crash": (EngineCrash("scheduler"), None),
    "engine scheduler crash=after write=3 for 10s": (
        EngineCrash("scheduler", CrashPoint.AFTER_WRITE, 3),
        10.0,
    ),
    "node worker-1 prepare=fail=no device for you for 1m30s": (
        NodeFailure("worker-1", "prepare", "fail=no device for you"),
        90.0,
    ),
    "node worker-* ready=false": (NodeFailure("worker-*", "ready", "false"), None),
    "node worker-1 reboot": (NodeReboot("worker-1"), None),
    "node worker-1 kubelet-restart": (KubeletRestart("worker-1"), None),
    "device worker-1/gpu-3 unhealthy": (DeviceFailure("worker-1", "gpu-3", "unhealthy"), None),
    "device */gpu-* taint=a=b:NoExecute share=0.25 for 5m": (
        DeviceFailure("*", "gpu-*", "taint=a=b:NoExecute", 0.25),
        300.0,
    ),
    "pool worker-1 half": (HalfGeneration("worker-1"), None),
    "pool worker-1/gpu.example.com half": (HalfGeneration("worker-1", "gpu.example.com"), None),
    "claim default/forgotten leaked": (ClaimLeak("default", "forgotten"), None),
}


@pytest.mark.parametrize("words", WORDS)
def test_words_name_a_fault(words: str) -> None:
    """With the time that it lasts, if they say so."""
    assert read_injection(words) == Injection(*WORDS[words])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("", "unknown fault ''; use one of: api, claim, device, engine, node, pool, watches"),
        ("apj conflicts=1", "unknown fault 'apj'; did you mean 'api'?"),
        ("api", "api: add a fault, for example conflicts=0.1"),
        ("api conflict=1", "api 'conflict=1': unknown fault; did you mean 'conflicts'?"),
        ("api conflicts=2", "conflicts=2: must be a share from 0 to 1, for example 0.1"),
        ("api latency=20", "latency=20: must be a duration, for example 20ms or 2s"),
        (
            "watches sometimes",
            "watches 'sometimes': use broken or expired; to limit it, add engine=NAME",
        ),
        ("engine scheduler", "engine 'scheduler': use NAME crash, for example 'scheduler crash'"),
        ("engine x stop", "engine x 'stop': use crash, crash=before or crash=after, and write=N"),
        ("node a sad=true", "node 'a sad=true': use NODE and prepare=fail"),
        ("device gpu-1 lost", "device 'gpu-1 lost': use NODE/DEVICE and unhealthy, lost or"),
        ("device a/b lost share=x", "share=x: must be a share from 0 to 1, for example 0.1"),
        ("pool a full", "pool 'a full': use NODE[/DRIVER] half"),
        ("claim a leaked", "claim 'a leaked': use NAMESPACE/NAME leaked"),
        ("node a reboot for 5s", "'node a reboot' happens once; remove the duration"),
        ("node a ready=false for ever", "for 'ever': use a duration such as 30s or 1m30s"),
    ],
)
def test_words_that_name_none_are_refused_with_what_would_do(words: str, complaint: str) -> None:
    """In one sentence."""
    with pytest.raises(FaultWordsError) as refused:
        read_injection(words)
    assert str(refused.value).startswith(complaint)


def test_what_is_to_be_well_again_is_named_by_its_subject() -> None:
    """All of it where nothing else is said."""
    assert read_healing("all") == Healing(Subject.ALL)
    assert read_healing("device worker-1/gpu-*") == Healing(Subject.DEVICE, "worker-1/gpu-*")
    with pytest.raises(FaultWordsError, match="'it': unknown target; use one of: all, api, eng"):
        read_healing("it")

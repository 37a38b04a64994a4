"""
Which pods of a job have ended, each counted once.

A pod of a job carries a finalizer, so that it cannot vanish before it is counted. Counting goes
through three states, each of which is in the API: a pod that has ended is written down as
uncounted; then its finalizer is taken away; then it moves from the uncounted to the number. A
controller that dies in between goes on from what is written.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dryrack.base.numbers import read_int64
from dryrack.client.endpoints import PODS
from dryrack.controllers import writes
from dryrack.controllers.objects import (
    annotations_of,
    finalizers_of,
    status_of,
    uid_of,
)
from dryrack.controllers.writes import Write
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass(frozen=True, slots=True)
class Count:
    """What is known about the ended pods of a job."""

    succeeded: int
    failed: int
    uncounted_succeeded: tuple[str, ...]
    uncounted_failed: tuple[str, ...]
    indexes: frozenset[int]
    """Those that have succeeded, where they matter."""
    waiting_failed: int
    """Failed pods that are kept uncounted until another replaces them."""

    @property
    def all_succeeded(self) -> int:
        return self.succeeded + len(self.uncounted_succeeded)

    @property
    def all_failed(self) -> int:
        return self.failed + len(self.uncounted_failed) + self.waiting_failed

    def to_status(self) -> Raw:
        uncounted: Raw = {}
        if self.uncounted_succeeded:
            uncounted["succeeded"] = list(self.uncounted_succeeded)
        if self.uncounted_failed:
            uncounted["failed"] = list(self.uncounted_failed)
        found: Raw = {"uncountedTerminatedPods": uncounted}
        if self.succeeded:
            found["succeeded"] = self.succeeded
        if self.failed:
            found["failed"] = self.failed
        if self.indexes:
            found["completedIndexes"] = index_text(self.indexes)
        return found


def has_succeeded(pod: Raw) -> bool:
    return status_of(pod).get("phase") == "Succeeded"


def count(
    job: Raw,
    pods: Sequence[Raw],
    *,
    has_failed: Callable[[Raw], bool],
    is_kept: Callable[[Raw], bool] = lambda pod: False,
    is_ignored: Callable[[Raw], bool] = lambda pod: False,
) -> Count:
    """The next state of the counting; of failed pods some are kept for now, some never count."""
    status = status_of(job)
    told = get(status, "uncountedTerminatedPods", {})
    held = {uid_of(pod) for pod in pods if FINALIZER in finalizers_of(pod)}
    good, bad = (list(told.get(key) or ()) for key in ("succeeded", "failed"))
    # Without its finalizer a pod can only be counted by what was written down.
    succeeded = int(status.get("succeeded") or 0) + sum(uid not in held for uid in good)
    failed = int(status.get("failed") or 0) + sum(uid not in held for uid in bad)
    ended = [pod for pod in pods if uid_of(pod) in held]
    kept = {uid_of(pod) for pod in ended if is_kept(pod)}
    counting = [pod for pod in ended if uid_of(pod) not in kept and not is_ignored(pod)]
    return Count(
        succeeded,
        failed,
        _merged([uid for uid in good if uid in held], ended, has_succeeded),
        _merged([uid for uid in bad if uid in held], counting, has_failed),
        indexes_of(job, pods),
        sum(uid_of(pod) in kept and not is_ignored(pod) for pod in ended),
    )


def _merged(
    known: Sequence[str], pods: Sequence[Raw], has_ended: Callable[[Raw], bool]
) -> tuple[str, ...]:
    found = [uid_of(pod) for pod in pods if has_ended(pod)]
    return tuple(sorted({*known, *found}))


def set_free(job: Raw, pods: Sequence[Raw], *, is_ignored: Callable[[Raw], bool]) -> list[Write]:
    """Takes the finalizer from pods that are written down, and from those that never will be."""
    told = get(job, "status.uncountedTerminatedPods", {})
    written = {*get(told, "succeeded", ()), *get(told, "failed", ())}
    return [
        without_finalizer(pod)
        for pod in pods
        if FINALIZER in finalizers_of(pod) and (uid_of(pod) in written or is_ignored(pod))
    ]


def without_finalizer(pod: Raw) -> Write:
    return writes.without_finalizer(PODS, pod, FINALIZER)


def is_indexed(job: Raw) -> bool:
    return get(job, "spec.completionMode", "") == "Indexed"


def index_of(pod: Raw) -> int | None:
    index = read_int64(annotations_of(pod).get(INDEX, ""))
    return None if index is None or index < 0 else index


def indexes_of(job: Raw, pods: Sequence[Raw]) -> frozenset[int]:
    """The completed indexes: those written down, and those of pods that have just succeeded."""
    if not is_indexed(job):
        return frozenset()
    ended = (index_of(pod) for pod in pods if has_succeeded(pod))
    written = parsed_indexes(status_of(job).get("completedIndexes") or "")
    return written | {each for each in ended if each is not None}


def parsed_indexes(text: str) -> frozenset[int]:
    """ "0,2-4" in numbers."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def index_text(indexes: frozenset[int]) -> str:
    """Numbers as "0,2-4"."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(f"{a}" if a == b else f"{a},{b}" if b == a + 1 else f"{a}-{b}" for a, b in runs)

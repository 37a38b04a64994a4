"""
Count the ended pods of a job, each once.

A pod of a job has a finalizer, so it cannot be deleted before it is counted. Counting has three
states, which are in the API: an ended pod is recorded as uncounted; then its finalizer is removed;
then it moves from the uncounted pods to the number. A controller that restarts in between continues
with what is recorded.
"""

from collections.abc import Callable, Iterable, Sequence
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
    """The ended pods of a job."""

    succeeded: int
    failed: int
    uncounted_succeeded: tuple[str, ...]
    uncounted_failed: tuple[str, ...]
    indexes: frozenset[int]
    """The completed indexes of an Indexed job."""
    waiting_failed: int
    """The number of failed pods that stay uncounted until they are replaced."""

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
        status: Raw = {"uncountedTerminatedPods": uncounted}
        if self.succeeded:
            status["succeeded"] = self.succeeded
        if self.failed:
            status["failed"] = self.failed
        if self.indexes:
            status["completedIndexes"] = index_text(self.indexes)
        return status


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
    """Return the next count; `is_kept` pods stay uncounted, `is_ignored` pods never count."""
    status = status_of(job)
    uncounted = get(status, "uncountedTerminatedPods", {})
    held = {uid_of(pod) for pod in pods if FINALIZER in finalizers_of(pod)}
    recorded_good = get(uncounted, "succeeded", [])
    recorded_bad = get(uncounted, "failed", [])
    # A pod without its finalizer is counted by what was recorded.
    succeeded = int(status.get("succeeded") or 0) + sum(u not in held for u in recorded_good)
    failed = int(status.get("failed") or 0) + sum(u not in held for u in recorded_bad)
    ended = [pod for pod in pods if uid_of(pod) in held]
    kept = {uid_of(pod) for pod in ended if is_kept(pod)}
    counting = [pod for pod in ended if uid_of(pod) not in kept and not is_ignored(pod)]
    return Count(
        succeeded,
        failed,
        _sorted_uids(held & set(recorded_good), filter(has_succeeded, ended)),
        _sorted_uids(held & set(recorded_bad), filter(has_failed, counting)),
        indexes_of(job, pods),
        sum(uid_of(pod) in kept and not is_ignored(pod) for pod in ended),
    )


def _sorted_uids(known: Iterable[str], pods: Iterable[Raw]) -> tuple[str, ...]:
    return tuple(sorted({*known, *map(uid_of, pods)}))


def remove_finalizers(
    job: Raw, pods: Sequence[Raw], *, is_ignored: Callable[[Raw], bool]
) -> list[Write]:
    """Remove the finalizer from pods that are recorded, and from those that never will be."""
    uncounted = get(job, "status.uncountedTerminatedPods", {})
    recorded = {*get(uncounted, "succeeded", ()), *get(uncounted, "failed", ())}
    return [
        without_finalizer(pod)
        for pod in pods
        if FINALIZER in finalizers_of(pod) and (uid_of(pod) in recorded or is_ignored(pod))
    ]


def without_finalizer(pod: Raw) -> Write:
    return writes.without_finalizer(PODS, pod, FINALIZER)


def is_indexed(job: Raw) -> bool:
    return get(job, "spec.completionMode", "") == "Indexed"


def index_of(pod: Raw) -> int | None:
    index = read_int64(annotations_of(pod).get(INDEX, ""))
    return None if index is None or index < 0 else index


def indexes_of(job: Raw, pods: Sequence[Raw]) -> frozenset[int]:
    """Return the completed indexes: those in the status, and of pods that just succeeded."""
    if not is_indexed(job):
        return frozenset()
    ended = (index_of(pod) for pod in pods if has_succeeded(pod))
    recorded = parse_indexes(status_of(job).get("completedIndexes") or "")
    return recorded | {each for each in ended if each is not None}


def parse_indexes(text: str) -> frozenset[int]:
    """Return the numbers of a text like "0,2-4"."""
    indexes: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        indexes.update(range(int(first), int(last or first) + 1))
    return frozenset(indexes)


def index_text(indexes: frozenset[int]) -> str:
    """Return numbers as a text like "0,2-4"."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(f"{a}" if a == b else f"{a},{b}" if b == a + 1 else f"{a}-{b}" for a, b in runs)

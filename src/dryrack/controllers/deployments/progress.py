"""The status of a deployment: counts, and the progress of its rollout."""

from collections.abc import Sequence

from dryrack.client.timekeeping import seconds_of, timestamp
from dryrack.controllers.deployments.scaling import limits_of
from dryrack.controllers.objects import condition_of, spec_of, status_of
from dryrack.controllers.workloads import replicas_of
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

DEADLINE_SECONDS_DEFAULT = 600


def progress(
    deployment: Raw, every: Sequence[Raw], new: Raw | None, now: float
) -> tuple[Raw, float | None]:
    """Return the status, and in how many seconds the deadline of the progress ends."""
    counts = _counts(deployment, every, new)
    conditions: Sequence[Raw] = get(deployment, "status.conditions", ())
    progressing, again_seconds = _progressing(deployment, counts, new, now)
    has_begun = condition_of(deployment, "Progressing") is not None
    available: _Judgement | None = None
    # The first condition is about the rollout; conditions about its pods come later.
    if has_begun or progressing:
        available = (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
        if counts["availableReplicas"] >= limits_of(deployment).available_min:
            message = "Deployment has minimum availability."
            available = ("True", "MinimumReplicasAvailable", message)
    judgements = {"Available": available, "Progressing": progressing}
    for kind in judgements if has_begun else reversed(judgements):
        conditions = _set_condition(conditions, kind, judgements[kind], now)
    conditions = _failures(conditions, every, new)
    status = {key: value for key, value in counts.items() if value}
    status["terminatingReplicas"] = counts["terminatingReplicas"]
    old = status_of(deployment)
    if old.get("collisionCount"):
        status["collisionCount"] = old["collisionCount"]
    return status | ({"conditions": conditions} if conditions else {}), again_seconds


def _failures(conditions: Sequence[Raw], every: Sequence[Raw], new: Raw | None) -> list[Raw]:
    """Copy the failure of a replica set to its deployment; the newest comes first."""
    ordered = [new, *every] if new else every
    failures = (condition_of(each, "ReplicaFailure") for each in ordered)
    failure = next((each for each in failures if each is not None), None)
    if failure is None:
        return [each for each in conditions if each["type"] != "ReplicaFailure"]
    copied = failure | {"lastUpdateTime": failure["lastTransitionTime"]}
    return list(conditions) if copied in conditions else _put_last(conditions, copied)


def _counts(deployment: Raw, every: Sequence[Raw], new: Raw | None) -> Raw:
    def total(field: str) -> int:
        return sum(int(status_of(each).get(field) or 0) for each in every)

    available = total("availableReplicas")
    wanted = sum(replicas_of(each) for each in every)
    return {
        "observedGeneration": deployment["metadata"].get("generation"),
        "replicas": total("replicas"),
        "updatedReplicas": int(status_of(new).get("replicas") or 0) if new else 0,
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, wanted - available),
        "terminatingReplicas": total("terminatingReplicas"),
    }


_Judgement = tuple[str, str, str]
"""The status, the reason and the message of a condition."""


def is_complete(deployment: Raw, counts: Raw) -> bool:
    """Return True if all pods are new and available, and no others exist."""
    wanted = replicas_of(deployment)
    same = all(
        counts[key] == wanted for key in ("updatedReplicas", "replicas", "availableReplicas")
    )
    return same and counts["observedGeneration"] is not None


def _progressing(
    deployment: Raw, counts: Raw, new: Raw | None, now: float
) -> tuple[_Judgement | None, float | None]:
    if spec_of(deployment).get("paused"):
        return ("Unknown", "DeploymentPaused", "Deployment is paused"), None
    name = new["metadata"]["name"] if new else ""
    subject = f'ReplicaSet "{name}"' if new else f'Deployment "{deployment["metadata"]["name"]}"'
    if new and is_complete(deployment, counts):
        return ("True", "NewReplicaSetAvailable", f"{subject} has successfully progressed."), None
    old = condition_of(deployment, "Progressing")
    if new and old is None:
        message = f'Created new replica set "{name}"'
        return ("True", "NewReplicaSetCreated", message), _deadline(deployment)
    if new and _has_put_last(deployment, counts):
        message = f"{subject} is progressing."
        return ("True", "ReplicaSetUpdated", message), _deadline(deployment)
    if old is None or old["reason"] == "NewReplicaSetAvailable":
        return None, None
    since = old.get("lastUpdateTime") or old.get("lastTransitionTime")
    left = seconds_of(since) + _deadline(deployment) - now if since else _deadline(deployment)
    if left > 0:
        return None, left
    return ("False", "ProgressDeadlineExceeded", f"{subject} has timed out progressing."), None


def _deadline(deployment: Raw) -> float:
    return float(get(deployment, "spec.progressDeadlineSeconds", DEADLINE_SECONDS_DEFAULT))


def _has_put_last(deployment: Raw, counts: Raw) -> bool:
    """Return True if there are more new or fewer old pods than in the status."""
    old = status_of(deployment)

    def before(key: str) -> int:
        return int(old.get(key) or 0)

    outdated = counts["replicas"] - counts["updatedReplicas"]
    return bool(
        counts["updatedReplicas"] > before("updatedReplicas")
        or outdated < before("replicas") - before("updatedReplicas")
        or counts["readyReplicas"] > before("readyReplicas")
        or counts["availableReplicas"] > before("availableReplicas")
    )


def _set_condition(
    conditions: Sequence[Raw], kind: str, judgement: _Judgement | None, now: float
) -> list[Raw]:
    if judgement is None:
        return list(conditions)
    status, reason, message = judgement
    old = next((each for each in conditions if each["type"] == kind), None)
    # Progress extends the deadline; nothing else is worth a write.
    is_same = old is not None and (old["status"], old["reason"]) == (status, reason)
    if is_same and reason != "ReplicaSetUpdated":
        return list(conditions)
    when = timestamp(now)
    since = old["lastTransitionTime"] if old is not None and old["status"] == status else when
    new = {"type": kind, "status": status, "lastUpdateTime": when, "lastTransitionTime": since}
    return _put_last(conditions, new | {"reason": reason, "message": message})


def _put_last(conditions: Sequence[Raw], new: Raw) -> list[Raw]:
    """Put a changed condition last."""
    return [*(each for each in conditions if each["type"] != new["type"]), new]

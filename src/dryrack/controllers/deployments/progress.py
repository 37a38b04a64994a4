"""The status of a deployment: counts, and whether its rollout gets on."""

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
    """The status, and in how many seconds patience ends."""
    counts = _counts(deployment, every, new)
    conditions: Sequence[Raw] = get(deployment, "status.conditions", ())
    told, again_seconds = _progressing(deployment, counts, new, now)
    has_begun = condition_of(deployment, "Progressing") is not None
    # That a rollout has begun is said before anything is said of its pods.
    available = _availability(deployment, counts) if has_begun or told else None
    said = {"Available": available, "Progressing": told}
    for kind in said if has_begun else reversed(said):
        conditions = _set(conditions, kind, said[kind], now)
    conditions = _failures(conditions, every, new)
    status = {key: value for key, value in counts.items() if value}
    status["terminatingReplicas"] = counts["terminatingReplicas"]
    old = status_of(deployment)
    if old.get("collisionCount"):
        status["collisionCount"] = old["collisionCount"]
    return status | ({"conditions": conditions} if conditions else {}), again_seconds


def _failures(conditions: Sequence[Raw], every: Sequence[Raw], new: Raw | None) -> list[Raw]:
    """What a replica set cannot do is said of its deployment; of the newest first."""
    ordered = [new, *every] if new else every
    found = (condition_of(each, "ReplicaFailure") for each in ordered)
    failure = next((each for each in found if each is not None), None)
    if failure is None:
        return [each for each in conditions if each["type"] != "ReplicaFailure"]
    told = failure | {"lastUpdateTime": failure["lastTransitionTime"]}
    return list(conditions) if told in conditions else _moved(conditions, told)


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


_Told = tuple[str, str, str]


def _availability(deployment: Raw, counts: Raw) -> _Told:
    if counts["availableReplicas"] >= limits_of(deployment).available_min:
        return "True", "MinimumReplicasAvailable", "Deployment has minimum availability."
    message = "Deployment does not have minimum availability."
    return "False", "MinimumReplicasUnavailable", message


def is_complete(deployment: Raw, counts: Raw) -> bool:
    """Whether all pods are new and available, and no others are there."""
    wanted = replicas_of(deployment)
    same = all(
        counts[key] == wanted for key in ("updatedReplicas", "replicas", "availableReplicas")
    )
    return same and counts["observedGeneration"] is not None


def _progressing(
    deployment: Raw, counts: Raw, new: Raw | None, now: float
) -> tuple[_Told | None, float | None]:
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
    if new and _has_moved(deployment, counts):
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
    found = spec_of(deployment).get("progressDeadlineSeconds")
    return float(DEADLINE_SECONDS_DEFAULT if found is None else found)


def _has_moved(deployment: Raw, counts: Raw) -> bool:
    """Whether more of the new or fewer of the old are there than the status tells."""
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


def _set(conditions: Sequence[Raw], kind: str, told: _Told | None, now: float) -> list[Raw]:
    if told is None:
        return list(conditions)
    status, reason, message = told
    old = next((each for each in conditions if each["type"] == kind), None)
    # A rollout that moves on renews its patience; nothing else is worth a write.
    is_same = old is not None and (old["status"], old["reason"]) == (status, reason)
    if is_same and reason != "ReplicaSetUpdated":
        return list(conditions)
    when = timestamp(now)
    since = old["lastTransitionTime"] if old is not None and old["status"] == status else when
    new = {"type": kind, "status": status, "lastUpdateTime": when, "lastTransitionTime": since}
    return _moved(conditions, new | {"reason": reason, "message": message})


def _moved(conditions: Sequence[Raw], new: Raw) -> list[Raw]:
    """What is new is said last."""
    return [*(each for each in conditions if each["type"] != new["type"]), new]

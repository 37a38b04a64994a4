"""
Plan the writes that turn the existing slices of a pool into the wanted ones.

Consumers read the newest generation of a pool, and use it when it has as many slices as each of
them says. So a change of one slice is one write in the same generation. Any other change is a new
generation: consumers see nothing of it until its last slice is written, and then they see all of
it. The slices that it replaces are deleted last. Slices that were replaced earlier are deleted
first, so that consumers never see them again. If the publisher stops in between, the next plan
begins with what exists.

Promise: whatever prefix of a plan is carried out, a consumer sees the old pool, the new pool, or an
incomplete pool. The plan of a pool that is as wanted is empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from dryrack.kinds.decode import DecodeError, decode, to_builtins
from dryrack.kinds.paths import get
from dryrack.kinds.pool_generation import newest_generation
from dryrack.kinds.resource import ResourcePool, ResourceSliceSpec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from dryrack.kinds.pool_generation import Generation
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.resource import ResourceSlice


class PoolId(NamedTuple):
    """The identity of a pool. Consumers go through pools in this order."""

    driver: str
    name: str


@dataclass(frozen=True, slots=True)
class CreateSlice:
    """A slice to create."""

    slice: Raw


@dataclass(frozen=True, slots=True)
class UpdateSlice:
    """A slice to update at the revision that was observed."""

    slice: Raw


@dataclass(frozen=True, slots=True)
class DeleteSlice:
    """A slice to delete, as it was observed."""

    slice: Raw


SliceWrite = CreateSlice | UpdateSlice | DeleteSlice


def pool_of(slice_: Raw) -> PoolId:
    """Return the pool that a slice belongs to."""
    spec = slice_["spec"]
    return PoolId(spec["driver"], spec["pool"]["name"])


def document(wanted: ResourceSlice) -> Raw:
    """Return a slice as the API server returns it: quantities and times in canonical form."""
    raw = to_builtins(wanted)
    for _, taint in _taints(raw["spec"]):
        if "timeAdded" in taint:
            time = datetime.fromisoformat(taint["timeAdded"]).astimezone(UTC)
            taint["timeAdded"] = time.strftime("%Y-%m-%dT%H:%M:%SZ")
    return raw


def plan_pools(
    wanted: Mapping[PoolId, Sequence[Raw]],
    observed: Iterable[Raw],
    *,
    untouched: Collection[PoolId] = (),
) -> dict[PoolId, tuple[SliceWrite, ...]]:
    """
    Return the writes for each pool that is not as wanted, in the order to carry them out.

    Pools that are removed come first, so that no device is ever published under two names.
    """
    existing: dict[PoolId, list[Raw]] = {}
    for each in observed:
        existing.setdefault(pool_of(each), []).append(each)
    plans = {
        pool: plan_pool(wanted.get(pool, ()), existing.get(pool, ()))
        for pool in (*sorted(existing.keys() - wanted.keys()), *sorted(wanted))
        if pool not in untouched
    }
    return {pool: writes for pool, writes in plans.items() if writes}


def plan_pool(wanted: Sequence[Raw], observed: Sequence[Raw]) -> tuple[SliceWrite, ...]:
    """
    Return the writes that make the wanted slices of one pool from the observed ones.

    Wanted slices are what `document` returns; their generation does not matter. Without wanted
    slices the pool is deleted.
    """
    if not wanted:
        return tuple(_deletions(observed))
    existing = {each["metadata"]["name"]: each for each in observed}
    names = {each["metadata"]["name"] for each in wanted}
    obsolete = [each for each in observed if each["metadata"]["name"] not in names]
    newest = newest_generation(observed, _pool_spec)
    timed = with_known_times(wanted, observed)
    kept = [
        (_at_generation(each, newest.number), existing[each["metadata"]["name"]])
        for each in timed
        if each["metadata"]["name"] in existing
    ]
    if len(kept) == len(wanted) and _can_keep_generation(kept, obsolete, newest):
        updates = [_update(new, old) for new, old in kept if not _is_same(new, old)]
        return (*_deletions(obsolete), *updates)
    # Existing slices are updated first, the oldest first: when one slice is new, none is older
    # than the generation before.
    kept.sort(key=lambda pair: _age(pair[1]))
    next_generation = newest.number + 1
    updates = [_update(_at_generation(new, next_generation), old) for new, old in kept]
    creations = [
        CreateSlice(_at_generation(each, next_generation))
        for each in timed
        if each["metadata"]["name"] not in existing
    ]
    stale = [each for each in obsolete if _generation(each) < newest.number]
    replaced = [each for each in obsolete if _generation(each) == newest.number]
    return (*_deletions(stale), *updates, *creations, *_deletions(replaced))


def _can_keep_generation(
    kept: Sequence[tuple[Raw, Raw]], obsolete: Sequence[Raw], newest: Generation[Raw]
) -> bool:
    """
    Return True if the generation can stay: at most one of its slices changes.

    Deleting slices of the same generation makes it incomplete first. That is certain only if all of
    them were one complete pool of which one slice remains; otherwise consumers could meet a count
    that another program has written.
    """
    changed = sum(not is_same_spec(new["spec"], old["spec"]) for new, old in kept)
    if changed > 1:
        return False
    deleted = sum(_generation(each) == newest.number for each in obsolete)
    leaves_one = len(kept) == 1 and len(newest.slices) == deleted + 1
    return not deleted or (leaves_one and newest.is_complete)


def _deletions(obsolete: Iterable[Raw]) -> Iterator[DeleteSlice]:
    """Delete the oldest generation first."""
    for each in sorted(obsolete, key=_age):
        if not each["metadata"].get("deletionTimestamp"):
            yield DeleteSlice(each)


def _update(new: Raw, old: Raw) -> UpdateSlice:
    """Keep what other programs have added to the metadata."""
    metadata = old["metadata"] | {"labels": {**_labels(old), **_labels(new)}}
    metadata.pop("ownerReferences", None)
    owners = get(new, "metadata.ownerReferences", ())
    if owners:
        metadata["ownerReferences"] = owners
    return UpdateSlice(old | {"metadata": metadata, "spec": new["spec"]})


def _is_same(new: Raw, old: Raw) -> bool:
    """Return True if the old slice has all labels, the owners and the spec of the new one."""
    labels = _labels(old)
    if any(labels.get(key) != value for key, value in _labels(new).items()):
        return False
    return _owners(new) == _owners(old) and is_same_spec(new["spec"], old["spec"])


def is_same_spec(new: Raw, old: Raw) -> bool:
    """Return True if two specs mean the same; `new` is in the API server's form."""
    if new == old:
        return True
    try:
        return new == to_builtins(decode(old, ResourceSliceSpec))
    except DecodeError:
        return False


def _at_generation(slice_: Raw, generation: int) -> Raw:
    spec = slice_["spec"]
    return slice_ | {"spec": spec | {"pool": spec["pool"] | {"generation": generation}}}


def _generation(slice_: Raw) -> int:
    return int(slice_["spec"]["pool"].get("generation", 0))


def _age(slice_: Raw) -> tuple[int, str]:
    return _generation(slice_), slice_["metadata"]["name"]


def _pool_spec(slice_: Raw) -> ResourcePool:
    pool = slice_["spec"]["pool"]
    return ResourcePool(
        name=pool["name"],
        generation=_generation(slice_),
        resource_slice_count=int(pool.get("resourceSliceCount", 0)),
    )


def _labels(slice_: Raw) -> Raw:
    return get(slice_, "metadata.labels", {})


def _owners(slice_: Raw) -> list[tuple[str, ...]]:
    keys = ("apiVersion", "kind", "name", "uid")
    owners = get(slice_, "metadata.ownerReferences", ())
    return [tuple(owner.get(key, "") for key in keys) for owner in owners]


_TaintKey = tuple[str, str, str, str]


def with_known_times(wanted: Sequence[Raw], observed: Sequence[Raw]) -> Sequence[Raw]:
    """Return the wanted slices with the times of observed taints where they set none."""
    if all("timeAdded" in taint for new in wanted for _, taint in _taints(new["spec"])):
        return wanted
    times = {
        key: taint["timeAdded"]
        for old in observed
        for key, taint in _taints(old["spec"])
        if "timeAdded" in taint
    }

    def with_time(device: Raw, taint: Raw) -> Raw:
        time = times.get(_taint_key(device, taint))
        return taint if "timeAdded" in taint or time is None else taint | {"timeAdded": time}

    timed = []
    for new in wanted:
        spec = new["spec"]
        if "devices" in spec:
            devices = [
                device | {"taints": [with_time(device, taint) for taint in device["taints"]]}
                if device.get("taints")
                else device
                for device in spec["devices"]
            ]
            spec = spec | {"devices": devices}
        timed.append(new | {"spec": spec})
    return timed


def _taints(spec: Raw) -> Iterator[tuple[_TaintKey, Raw]]:
    for device in get(spec, "devices", ()):
        for taint in get(device, "taints", ()):
            yield _taint_key(device, taint), taint


def _taint_key(device: Raw, taint: Raw) -> _TaintKey:
    return device["name"], taint["key"], taint.get("value", ""), taint["effect"]

"""
From the slices of a pool that there are to those that there should be.

Consumers look at the newest generation of a pool, and use it when it has as many slices as each
of them says. So a change of one slice is one write in the same generation, and any other change
is a new generation: not until its last slice is written do they see anything of it, and then they
see all of it. What it replaces goes last, and what had been replaced before goes first, so that
it does not come to light again. If the publisher dies in between, the next plan begins from what is
there.

Promise: whatever prefix of a plan is carried out, a consumer sees the old pool, the new pool, or
one that is incomplete. A pool that is as it should be has an empty plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dryrack.client.endpoints import SLICES
from dryrack.client.informer import name_of
from dryrack.client.timekeeping import seconds_of, timestamp
from dryrack.controllers.objects import is_deleted, labels_of, owners_of, uid_of
from dryrack.controllers.writes import Create, Delete, Plan, Update, Write
from dryrack.hardware import MANAGED_BY, MANAGER
from dryrack.kinds.decode import DecodeError, decode, to_builtins
from dryrack.kinds.paths import get
from dryrack.kinds.pool_generation import newest_generation
from dryrack.kinds.resource import ResourcePool, ResourceSliceSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dryrack.kinds.pool_generation import Generation
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.resource import ResourceSlice


# The key of the pools of the whole cluster; no node is called so.
SHARED = ""


class PoolId(NamedTuple):
    """Which pool; in the order in which consumers go through them."""

    driver: str
    name: str


def is_ours(slice_: Raw) -> bool:
    """Whether a slice is one of those that are published here; all others are a driver's."""
    return labels_of(slice_).get(MANAGED_BY) == MANAGER


def key_of(slice_: Raw) -> str:
    """The node of a slice, or `SHARED`: slices with one key are reconciled together."""
    return str(slice_["spec"].get("nodeName") or SHARED)


def pool_of(slice_: Raw) -> PoolId:
    spec = slice_["spec"]
    return PoolId(spec["driver"], spec["pool"]["name"])


def document(wanted: ResourceSlice) -> Raw:
    """A slice as the server would give it back: quantities and times in the form it writes."""
    raw = to_builtins(wanted)
    for taint in _taints(raw["spec"]):
        if "timeAdded" in taint:
            taint["timeAdded"] = timestamp(seconds_of(taint["timeAdded"]))
    return raw


def plan(wanted: Sequence[Raw], observed: Sequence[Raw]) -> Plan:
    """
    What makes of the observed slices of one pool the wanted ones; without any, its end.

    The wanted ones are documents of this module; their generation does not matter.
    """
    if not wanted:
        return Plan(tuple(_deleted(observed)))
    there = {name_of(each): each for each in observed}
    names = {name_of(each) for each in wanted}
    obsolete = [each for each in observed if name_of(each) not in names]
    pairs = [(each, there.get(name_of(each))) for each in with_known_times(wanted, observed)]
    newest = newest_generation(observed, _pool)
    kept = [(_at(new, newest.number), old) for new, old in pairs if old is not None]
    if len(kept) == len(pairs) and _is_one_write(kept, obsolete, newest):
        updates = [_updated(new, old) for new, old in kept if not is_same(new, old)]
        return Plan((*_deleted(obsolete), *updates))
    fresh = [(_at(new, newest.number + 1), old) for new, old in pairs]
    stale = [each for each in obsolete if _generation(each) < newest.number]
    last = [each for each in obsolete if _generation(each) == newest.number]
    return Plan((*_deleted(stale), *_renewed(fresh), *_deleted(last)))


def is_same(new: Raw, old: Raw) -> bool:
    """Whether the old one says all that the new one does."""
    labels = labels_of(old)
    if any(labels.get(key) != value for key, value in labels_of(new).items()):
        return False
    return _owners(new) == _owners(old) and is_same_spec(new["spec"], old["spec"])


def is_same_spec(new: Raw, old: Raw) -> bool:
    """Whether two specs mean the same; `new` is as the server writes it."""
    if new == old:
        return True
    try:
        return new == to_builtins(decode(old, ResourceSliceSpec))
    except DecodeError:
        return False


def _renewed(pairs: Sequence[tuple[Raw, Raw | None]]) -> Iterator[Write]:
    """Those that are there first, oldest first, so that nothing older is left when one is new."""
    there = [(new, old) for new, old in pairs if old is not None]
    there.sort(key=lambda pair: (_generation(pair[1]), name_of(pair[1])))
    yield from (_updated(new, old) for new, old in there)
    yield from (Create(SLICES, new) for new, old in pairs if old is None)


def _is_one_write(
    kept: Sequence[tuple[Raw, Raw]], obsolete: Sequence[Raw], newest: Generation[Raw]
) -> bool:
    """
    Whether the generation can stay: then at most one of its slices says anything else.

    Slices of the same generation that have to go make it incomplete first. That is certain only
    if they all were one pool, whose last one remains; else a count that another program has written
    could be met on the way.
    """
    changed = sum(not is_same_spec(new["spec"], old["spec"]) for new, old in kept)
    if changed > 1:
        return False
    going = sum(_generation(each) == newest.number for each in obsolete)
    is_last_left = len(kept) == 1 and len(newest.slices) == going + 1
    return not going or (is_last_left and newest.is_complete)


def _deleted(obsolete: Iterable[Raw]) -> Iterator[Write]:
    """Oldest generation first."""
    for each in sorted(obsolete, key=lambda each: (_generation(each), name_of(each))):
        if not is_deleted(each):
            revision = each["metadata"]["resourceVersion"]
            yield Delete(SLICES, name_of(each), uid_of(each), revision)


def _updated(new: Raw, old: Raw) -> Write:
    """What others have added to the metadata stays."""
    metadata = old["metadata"] | {"labels": {**labels_of(old), **labels_of(new)}}
    metadata.pop("ownerReferences", None)
    if owners_of(new):
        metadata["ownerReferences"] = owners_of(new)
    return Update(SLICES, old | {"metadata": metadata, "spec": new["spec"]})


def _at(new: Raw, generation: int) -> Raw:
    spec = new["spec"]
    return new | {"spec": spec | {"pool": spec["pool"] | {"generation": generation}}}


def _generation(slice_: Raw) -> int:
    return _pool(slice_).generation


def _pool(slice_: Raw) -> ResourcePool:
    pool = slice_["spec"]["pool"]
    return ResourcePool(
        name=pool["name"],
        generation=int(pool.get("generation", 0)),
        resource_slice_count=int(pool.get("resourceSliceCount", 0)),
    )


def _owners(slice_: Raw) -> list[tuple[str, ...]]:
    keys = ("apiVersion", "kind", "name", "uid")
    return [tuple(owner.get(key, "") for key in keys) for owner in owners_of(slice_)]


_Mark = tuple[str, str, str, str]


def with_known_times(wanted: Sequence[Raw], observed: Sequence[Raw]) -> Sequence[Raw]:
    """The wanted ones with the times of taints that are there already and are not set."""
    if not any("timeAdded" not in taint for new in wanted for taint in _taints(new["spec"])):
        return wanted
    known = {
        mark: taint["timeAdded"]
        for old in observed
        for mark, taint in _marks(old["spec"])
        if "timeAdded" in taint
    }
    return [new | {"spec": _with_times(new["spec"], known)} for new in wanted]


def _with_times(spec: Raw, known: Mapping[_Mark, str]) -> Raw:
    if "devices" not in spec:
        return spec
    devices = [
        device | {"taints": [_with_time(device, taint, known) for taint in device["taints"]]}
        if device.get("taints")
        else device
        for device in spec["devices"]
    ]
    return spec | {"devices": devices}


def _with_time(device: Raw, taint: Raw, known: Mapping[_Mark, str]) -> Raw:
    when = known.get(_mark(device, taint))
    return taint if "timeAdded" in taint or when is None else taint | {"timeAdded": when}


def _marks(spec: Raw) -> Iterator[tuple[_Mark, Raw]]:
    for device in get(spec, "devices", ()):
        for taint in get(device, "taints", ()):
            yield _mark(device, taint), taint


def _mark(device: Raw, taint: Raw) -> _Mark:
    return device["name"], taint["key"], taint.get("value", ""), taint["effect"]


def _taints(spec: Raw) -> Iterator[Raw]:
    return (taint for _, taint in _marks(spec))

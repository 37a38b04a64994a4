"""Series of writes by several managers, and what becomes of the owners of the fields."""

from __future__ import annotations

import copy
from random import Random
from typing import TYPE_CHECKING, Any

from tests.apiserver.generate_objects import KINDS, Kind, Maker, kind_of
from tests.apiserver.one_version import OneVersion

from dryrack.apiserver.ownership.server_side_apply import (
    ApplyConflicts,
    ApplyProblem,
    Tracked,
    apply_configuration,
    managed_after_update,
)
from dryrack.kinds.releases import DEFAULT_RELEASE, PATCHES
from dryrack.kinds.schemas.strict_decode import conform

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

_MANAGERS = ("alice", "bob", "carol", "kubectl")
_WRITES_MAX = 6
NOW = "2026-01-01T00:00:00Z"


def series(seed: int) -> Raw:
    """Some updates and applies of one object; what is updated is mostly what was there."""
    random = Random(seed)
    kind = kind_of(*KINDS[seed % len(KINDS)])
    maker = Maker(kind, random)
    current = read(kind, maker.object())
    writes: list[Raw] = []
    for _ in range(random.randint(2, _WRITES_MAX)):
        current = read(kind, maker.changed(current))
        manager = random.choice(_MANAGERS)
        if random.random() < 0.5:
            writes.append({"manager": manager, "update": current})
        else:
            wanted = _part(random, current)
            writes.append({"manager": manager, "apply": wanted, "force": random.random() < 0.5})
    subresource = random.choice(("", "", "status"))
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "subresource": subresource,
        "reset": [["spec"]] if subresource else [["status"]],
        "writes": writes,
    }


def _part(random: Random, value: Raw) -> Raw:
    """Return some of the fields, as a client applies that manages these."""
    return {
        name: _some(random, inner)
        for name, inner in copy.deepcopy(value).items()
        if name in ("apiVersion", "kind", "metadata") or random.random() < 0.7
    }


def _some(random: Random, value: Any) -> Any:
    if isinstance(value, dict):
        kept = ("name", "type", "key", "uid")
        return {
            name: _some(random, inner)
            for name, inner in value.items()
            if inner is not None and (name in kept or random.random() < 0.8)
        }
    return value


def read(kind: Kind, value: Raw) -> Raw:
    found = conform(kind.schema, value)
    assert not found.mismatch, found.mismatch
    return found.object


def followed(case: Raw) -> list[Raw]:
    """Return the result of each write of a series: the object or the refusal."""
    group, _, version = case["apiVersion"].rpartition("/")
    kind = kind_of(group, version, case["kind"])
    tracked = Tracked(
        kind.api_version,
        kind.kind,
        OneVersion(kind.api_version, kind.schema),
        case["subresource"],
        tuple(tuple(path) for path in case["reset"]),
        PATCHES[DEFAULT_RELEASE].keeps_owners_on_failure,
    )
    live: Raw | None = None
    found: list[Raw] = []
    for write in case["writes"]:
        made = _written(live, write, tracked)
        if isinstance(made, ApplyConflicts | ApplyProblem):
            found.append({"error": made.message})
            continue
        live = read(kind, {**made, "metadata": {**made["metadata"], "uid": "u"}})
        found.append({"object": live})
    return found


def _written(live: Raw | None, write: Raw, tracked: Tracked) -> Raw | ApplyConflicts | ApplyProblem:
    if "apply" in write:
        return apply_configuration(
            live,
            write["apply"],
            manager=write["manager"],
            force=write["force"],
            now=NOW,
            tracked=tracked,
        )
    return managed_after_update(
        live, write["update"], manager=write["manager"], now=NOW, tracked=tracked
    )


def comparable(outcome: Raw) -> Raw:
    """Return a result without times, with owners and refusals sorted."""
    error = outcome.get("error")
    if error is not None:
        return {"error": sorted(error.splitlines())}
    made = copy.deepcopy(outcome["object"])
    entries = made["metadata"].pop("managedFields", [])
    for entry in entries:
        entry.pop("time", None)
    entries.sort(key=lambda entry: (entry["operation"], entry["manager"], entry["apiVersion"]))
    return {"object": made, "owners": entries}

"""Garbage collection never touches what has an owner, and never guesses."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from tests.base.exposition import value
from tests.client.planes import config_map, site
from tests.controllers.test_embedded import DEFINITIONS, definition

from dryrack.base.metrics import Registry
from dryrack.client.client import Client, Selection
from dryrack.client.endpoints import CONFIG_MAPS, PODS, REPLICA_SETS
from dryrack.client.informer import Informers, Name
from dryrack.controllers.garbage_collector import (
    FOREGROUND,
    ORPHAN,
    Collection,
    Graph,
    Item,
    OwnerState,
    plan,
)
from dryrack.controllers.writes import Delete, EngineContext, Patch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.raw import Raw


def item(
    uid: str, *owners: str, finalizers: tuple[str, ...] = (), is_deleted: bool = False
) -> Item:
    references = tuple({"uid": each, "blockOwnerDeletion": True} for each in owners)
    name = Name("default", uid)
    return Item(PODS, name, uid, "7", references, finalizers, is_deleted)


@given(st.lists(st.sampled_from(OwnerState), min_size=1, max_size=4))
def test_only_what_has_lost_every_owner_goes(fates: list[OwnerState]) -> None:
    """One living or unknown owner is enough to stay."""
    owners = [f"o{number}" for number in range(len(fates))]
    found = plan(item("x", *owners), dict(zip(owners, fates, strict=True)), ())
    deletes = [each for each in found.writes if isinstance(each, Delete)]

    assert bool(deletes) == all(each in (OwnerState.GONE, OwnerState.WAITING) for each in fates)
    assert all(each.uid == "x" and each.revision == "7" for each in deletes)


def test_lost_owners_are_forgotten_while_others_live() -> None:
    """References to owners that are gone are taken away, and nothing else."""
    (write,) = plan(item("x", "a", "b"), {"a": OwnerState.GONE, "b": OwnerState.SOLID}, ()).writes

    assert isinstance(write, Patch)
    left = write.patch["metadata"]["ownerReferences"]
    assert [each["uid"] for each in left] == ["b"]


def test_an_owner_waits_for_blocking_dependents() -> None:
    """In the foreground the finalizer stays until no blocking dependent is left."""
    owner = item("o", finalizers=(FOREGROUND, "other"), is_deleted=True)

    assert plan(owner, {}, [item("x", "o")]).writes == ()
    (write,) = plan(owner, {}, ()).writes
    assert isinstance(write, Patch)
    assert write.patch["metadata"]["finalizers"] == ["other"]


def test_orphans_are_set_free_first() -> None:
    """Orphaned dependents lose the reference; then the owner loses its finalizer."""
    owner = item("o", finalizers=(ORPHAN,), is_deleted=True)
    (freed,) = plan(owner, {}, [item("x", "o", "p")]).writes
    (gone,) = plan(owner, {}, ()).writes

    assert isinstance(freed, Patch)
    assert freed.name == Name("default", "x")
    assert [each["uid"] for each in freed.patch["metadata"]["ownerReferences"]] == ["p"]
    assert isinstance(gone, Patch)
    assert gone.patch["metadata"]["finalizers"] is None


def test_foreground_deletion_goes_down_the_tree() -> None:
    """A dependent that is itself an owner is deleted in the foreground, too."""
    (write,) = plan(item("x", "o"), {"o": OwnerState.WAITING}, [item("y", "x")]).writes

    assert isinstance(write, Delete)
    assert write.propagation == "Foreground"


def test_a_circle_of_owners_ends() -> None:
    """If two objects wait for each other, the one that is not deleted yet stops blocking."""
    waiting = item("o", "x", finalizers=(FOREGROUND,), is_deleted=True)
    other = item("x", "o")
    (freed,) = plan(other, {"o": OwnerState.WAITING}, [waiting]).writes
    assert isinstance(freed, Patch)
    owners = freed.patch["metadata"]["ownerReferences"]
    assert [each["blockOwnerDeletion"] for each in owners] == [False]

    again = replace(other, owners=tuple(owners))
    (gone,) = plan(again, {"o": OwnerState.WAITING}, [waiting]).writes
    assert isinstance(gone, Delete)
    assert gone.propagation == "Foreground"
    (released,) = plan(waiting, {"x": OwnerState.WAITING}, [again]).writes
    assert isinstance(released, Patch)
    assert released.patch["metadata"]["finalizers"] is None


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.lists(st.integers(0, 5), max_size=2), st.booleans()),
        max_size=30,
    )
)
def test_the_graph_knows_the_dependents(script: list[tuple[int, list[int], bool]]) -> None:
    """After any changes, the dependents of a uid are those whose last state names it."""
    graph = Graph()
    truth = dict[str, Item]()
    for number, owners, is_removed in script:
        uid = f"u{number}"
        if is_removed:
            graph.remove(uid)
            truth.pop(uid, None)
        else:
            truth[uid] = item(uid, *(f"u{each}" for each in owners))
            graph.put(truth[uid])
    for number in range(6):
        uid = f"u{number}"
        expected = [
            each.uid for each in truth.values() if any(o["uid"] == uid for o in each.owners)
        ]
        assert [each.uid for each in graph.dependents(uid)] == sorted(expected)


def test_kinds_are_kept_apart() -> None:
    """An item keeps the kind under which it is written."""
    graph = Graph()
    graph.put(Item(REPLICA_SETS, Name("a", "b"), "r", "1", (), (), is_deleted=False))
    found = graph.get("r")

    assert found is not None
    assert found.endpoint is REPLICA_SETS


def test_an_owner_of_no_kind_is_not_asked_for_again() -> None:
    """Nothing is decided for an hour; when the kind is served, the owner turns out to be gone."""

    async def play() -> None:
        at = site()
        metrics = Registry()
        informers = Informers(at.client, clock=at.clock, chance=at.chance)
        context = EngineContext(at.client, informers, at.clock, at.chance, metrics=metrics)
        owner = {"apiVersion": "example.com/v1", "kind": "Rack", "name": "r", "uid": "gone"}
        owned = config_map("owned")
        owned["metadata"]["ownerReferences"] = [owner]
        await at.client.create(CONFIG_MAPS, owned)

        def decisions() -> float:
            names = {"controller": "garbage-collector-controller"}
            total = "controller_runtime_reconcile_total"
            results = ("success", "error", "requeue_after")
            return sum(value(metrics.render(), total, result=each, **names) for each in results)

        async with asyncio.TaskGroup() as group:
            tasks = (
                group.create_task(informers.run(), name="informers"),
                group.create_task(Collection(context).run(), name="collection"),
            )
            await at.clock.advance(5)
            before = decisions()
            await at.clock.advance(3600)
            assert decisions() == before > 0
            await at.client.create(DEFINITIONS, definition())
            await at.clock.advance(5)
            assert [each["metadata"]["name"] for each in (await maps(at.client))] == []
            for task in tasks:
                task.cancel()

    async def maps(client: Client) -> Sequence[Raw]:
        return (await client.list(CONFIG_MAPS, Selection(namespace="default"))).items

    asyncio.run(play())

"""The store: revisions rise, watches have no gap, writes conflict, the log keeps the past."""

from __future__ import annotations

from typing import Any, TypeGuard

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryrack.base.limits import LARGE_OBJECT_BYTES
from dryrack.store import Conflict, Event, EventType, Gone, Key, Record, Store, Stored

PODS = "pods"
NAMESPACES = ("a", "a-b", "b")
KEYS = [Key(PODS, namespace, name) for namespace in NAMESPACES for name in ("x", "y")]

Action = tuple[str, Key, int]

actions = st.lists(
    st.tuples(st.sampled_from(["put", "put", "delete"]), st.sampled_from(KEYS), st.integers(0, 3)),
    max_size=40,
)


def body(value: int = 0) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": "x"}, "value": value}


def act(store: Store, action: Action) -> Stored | Conflict:
    verb, key, value = action
    if verb == "put":
        return store.put(key, body(value), expected=None)
    return store.delete(key, expected=None)


def state(store: Store) -> dict[Key, int]:
    return {each.key: each.revision for each in store.list(PODS, None)[0]}


def replayed(start: dict[Key, int], events: list[Event]) -> dict[Key, int]:
    """Return the revisions after a list and the events that follow it."""
    revisions = dict(start)
    for event in events:
        if event.type is EventType.DELETED:
            del revisions[event.stored.key]
        else:
            assert (event.stored.key in revisions) is (event.type is EventType.MODIFIED)
            revisions[event.stored.key] = event.revision
    return revisions


@given(actions)
def test_every_write_is_one_revision_and_revisions_only_rise(script: list[Action]) -> None:
    """A write that happens raises the revision by one; a conflict leaves it as it is."""
    store = Store()
    for action in script:
        before = store.revision
        result = act(store, action)

        assert store.revision == before + (not isinstance(result, Conflict))
        if isinstance(result, Stored):
            assert result.revision == store.revision
            assert result.object["metadata"]["resourceVersion"] == str(store.revision)


@given(actions, actions)
def test_a_list_and_the_events_after_it_give_the_next_list(
    before: list[Action], after: list[Action]
) -> None:
    """A list and the events after its revision lead to the objects of a later list."""
    store = Store()
    for action in before:
        act(store, action)
    start, (_, revision) = state(store), store.list(PODS, None)
    for action in after:
        act(store, action)

    events = store.events(PODS, after=revision)

    assert not isinstance(events, Gone)
    assert replayed(start, list(events)) == state(store)


@given(actions, actions)
def test_a_subscriber_sees_what_the_log_keeps(before: list[Action], after: list[Action]) -> None:
    """A subscriber gets each event once, in the order of the log, until it leaves."""
    store = Store()
    seen = list[Event]()
    for action in before:
        act(store, action)
    revision = store.revision
    leave = store.subscribe(PODS, seen.append)
    for action in after:
        act(store, action)
    logged = store.events(PODS, after=revision)
    leave()
    store.put(KEYS[0], body(), expected=None)

    assert seen == logged


def test_a_subscriber_that_raises_keeps_no_other_from_the_event() -> None:
    """All subscribers get the event; then the writer gets the error, and the write stays."""
    store = Store()
    seen = list[Event]()

    def fail(event: Event) -> None:
        raise LookupError(f"no room for {event.stored.key.name}")

    store.subscribe(PODS, fail)
    store.subscribe(PODS, seen.append)
    with pytest.raises(LookupError, match="no room for x"):
        store.put(KEYS[0], body(), expected=0)
    store.subscribe(PODS, fail)
    with pytest.raises(LookupError) as caught:
        store.delete(KEYS[0], expected=None)

    assert isinstance(caught.value.__context__, LookupError), "the first is not lost"
    assert [event.type for event in seen] == [EventType.ADDED, EventType.DELETED]
    assert seen == store.events(PODS, after=1)


@given(actions, actions)
def test_a_restarted_history_is_gone(before: list[Action], after: list[Action]) -> None:
    """Subscribers that have not left are called once; nothing that is stored changes."""
    store = Store()
    ended = list[str]()
    store.subscribe(PODS, lambda _: None, ended=lambda: ended.append("stays"))
    leave = store.subscribe(PODS, lambda _: None, ended=lambda: ended.append("left"))
    leave()
    for action in before:
        act(store, action)
    before_restart = state(store)
    revision = store.revision
    store.restart(PODS)

    assert (ended, state(store), store.revision) == (["stays"], before_restart, revision)
    assert revision == 1 or isinstance(store.events(PODS, after=revision - 1), Gone)
    for action in after:
        act(store, action)
    events = store.events(PODS, after=revision)
    assert not isinstance(events, Gone)
    assert replayed(before_restart, list(events)) == state(store)


@given(actions)
def test_a_list_at_a_revision_is_the_list_of_that_time(script: list[Action]) -> None:
    """For every revision of the log, `list_at` returns what `list` returned then."""
    store = Store()
    then: dict[int, list[tuple[Stored, ...]]] = {}
    for action in script:
        then[store.revision] = [store.list(PODS, each)[0] for each in (None, *NAMESPACES)]
        act(store, action)

    for revision, lists in then.items():
        assert [store.list_at(PODS, each, revision) for each in (None, *NAMESPACES)] == lists


@given(actions, st.integers(1, 8))
def test_a_full_log_is_gone_and_never_has_a_gap(script: list[Action], events_max: int) -> None:
    """For any revision, a bounded log returns every event after it, or `Gone`."""
    store = Store(events_max=events_max)
    everything = list[Event]()
    store.subscribe(PODS, everything.append)
    for action in script:
        act(store, action)

    for revision in range(1, store.revision + 1):
        events = store.events(PODS, after=revision)
        whole = [event for event in everything if event.revision > revision]
        if isinstance(events, Gone):
            assert len(whole) > events_max
            assert events.oldest > revision
        else:
            assert events == whole


@given(actions)
def test_a_restored_store_continues_where_it_was(script: list[Action]) -> None:
    """A store that is restored from its records has the same objects and the same revision."""
    records: list[Record] = []

    class Journal:
        def append(self, record: Record) -> None:
            records.append(record)

    store = Store(Journal())
    for action in script:
        act(store, action)
    again = Store.restore(records)

    assert [each.object for each in again.list(PODS, None)[0]] == [
        each.object for each in store.list(PODS, None)[0]
    ]
    assert again.revision == store.revision
    assert isinstance(again.events(PODS, after=store.revision - 1), Gone)
    assert again.events(PODS, after=store.revision) == []


def test_a_write_at_another_revision_is_a_conflict() -> None:
    """A put or delete that expects another revision changes nothing and returns the stored one."""
    store = Store()
    made = store.put(KEYS[0], body(1), expected=0)
    assert isinstance(made, Stored)

    assert store.put(KEYS[0], body(2), expected=0) == Conflict(made)
    assert store.put(KEYS[0], body(2), expected=made.revision + 1) == Conflict(made)
    assert store.delete(KEYS[0], expected=made.revision - 1) == Conflict(made)
    assert store.put(KEYS[1], body(2), expected=made.revision) == Conflict(None)
    assert store.delete(KEYS[1], expected=None) == Conflict(None)
    assert store.get(KEYS[0]) is made
    assert isinstance(store.put(KEYS[0], body(2), expected=made.revision), Stored)


def test_a_write_that_the_journal_refuses_has_not_happened() -> None:
    """If the journal raises, the write is in no list and no log, and reaches no subscriber."""

    class Full:
        def append(self, record: Record) -> None:
            raise OSError("no space left")

    store = Store(Full())
    seen = list[Event]()
    store.subscribe(PODS, seen.append)

    with pytest.raises(OSError, match="no space"):
        store.put(KEYS[0], body(), expected=0)

    assert store.get(KEYS[0]) is None
    assert (store.revision, store.events(PODS, after=1), seen) == (1, [], [])


def test_lists_are_in_the_order_of_the_real_store() -> None:
    """The order is that of the text `namespace/name`, in which "a-b/x" comes before "a/x"."""
    store = Store()
    for key in sorted(KEYS):
        store.put(key, body(), expected=0)

    everywhere = [f"{each.key.namespace}/{each.key.name}" for each in store.list(PODS, None)[0]]

    assert everywhere == ["a-b/x", "a-b/y", "a/x", "a/y", "b/x", "b/y"]
    assert [each.key for each in store.list(PODS, "a")[0]] == KEYS[:2]


def test_a_stored_object_is_encoded_once_and_not_shared_with_the_writer() -> None:
    """The JSON of an object is one value, and the writer's metadata does not change."""
    store = Store()
    given_body = body()
    made = store.put(KEYS[0], given_body, expected=0)
    assert isinstance(made, Stored)

    assert made.json is made.json
    assert made.json == b'{"kind":"Pod","metadata":{"name":"x","resourceVersion":"2"},"value":0}'
    assert "resourceVersion" not in given_body["metadata"]


def test_a_deletion_returns_the_last_state_at_its_own_revision() -> None:
    """The event and the result have the revision of the deletion and the last content."""
    store = Store()
    made = store.put(KEYS[0], body(7), expected=0)
    gone = store.delete(KEYS[0], expected=None)
    assert isinstance(made, Stored)
    assert isinstance(gone, Stored)
    events = store.events(PODS, after=made.revision)
    assert not isinstance(events, Gone)

    assert gone.revision == made.revision + 1
    assert gone.object["metadata"]["resourceVersion"] == str(gone.revision)
    assert gone.object["value"] == 7
    assert [(each.type, each.stored, each.previous) for each in events] == [
        (EventType.DELETED, gone, made)
    ]


@given(actions)
def test_a_compacted_object_reads_the_same(script: list[Action]) -> None:
    """An object that was compacted is equal to what it was."""
    store = Store()
    made = [stored for stored in (act(store, action) for action in script) if _is_stored(stored)]
    before = [(each.object, each.json) for each in made]
    for each in made:
        each.compact()

    assert [(each.object, each.json) for each in made] == before


def _is_stored(result: Stored | Conflict) -> TypeGuard[Stored]:
    return isinstance(result, Stored)


def test_only_the_last_written_objects_are_kept_as_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound, the oldest objects are JSON alone: each read decodes a new value."""
    monkeypatch.setattr("dryrack.store.store.READABLE_OBJECTS_MAX", 1)
    store = Store()
    for key in KEYS[:2]:
        store.put(key, body(), expected=0)
    old = store.get(KEYS[0])
    new = store.get(KEYS[1])
    assert old is not None
    assert new is not None

    assert old.object is not old.object
    assert old.object == {**body(), "metadata": {"name": "x", "resourceVersion": "2"}}
    assert new.object is new.object


def test_a_log_forgets_large_versions_before_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaced versions have a bound in bytes; a reader of older events gets `Gone`."""
    monkeypatch.setattr("dryrack.store.store.WATCH_LOG_BYTES_MAX", 3000)
    store = Store()
    told: list[bytes] = []
    store.subscribe(PODS, lambda event: told.append(event.stored.json))
    for _ in range(5):
        store.put(KEYS[0], body() | {"data": "x" * 1000}, expected=None)
    revision = store.revision

    assert isinstance(store.events(PODS, after=revision - 4), Gone)
    events = store.events(PODS, after=revision - 2)
    assert not isinstance(events, Gone)
    assert [each.revision for each in events] == [revision - 1, revision]
    for _ in range(20):
        store.put(KEYS[1], body(), expected=None)
    assert not isinstance(store.events(PODS, after=revision), Gone)


def test_few_large_objects_are_kept_as_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large objects have a bound of their own, so that they displace no small ones."""
    monkeypatch.setattr("dryrack.store.store.READABLE_LARGE_OBJECTS_MAX", 1)
    store = Store()
    told: list[bytes] = []
    store.subscribe(PODS, lambda event: told.append(event.stored.json))
    small, *large = KEYS[:3]
    store.put(small, body(), expected=0)
    for key in large:
        store.put(key, body() | {"data": "x" * LARGE_OBJECT_BYTES}, expected=0)
    found = [store.get(key) for key in (small, *large)]

    assert [each is not None and each.object is each.object for each in found] == [
        True,
        False,
        True,
    ]


def test_a_history_can_begin_late() -> None:
    """A history that begins at a revision has all later events; beginning again changes nothing."""
    store = Store()
    store.put(KEYS[0], body(), expected=0)
    store.begin("later")
    began = store.revision
    made = store.put(Key("later", "", "x"), body(), expected=0)
    store.begin("later")

    assert store.events("later", after=began - 1) == Gone(began)
    events = store.events("later", after=began)
    assert not isinstance(events, Gone)
    assert [each.stored for each in events] == [made]

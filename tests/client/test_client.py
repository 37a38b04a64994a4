"""The verbs, on an embedded server; what they promise does not depend on which server it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.planes import config_map, site

from dryrack.client import client as verbs
from dryrack.client.client import LINE_BYTES_MAX, MERGE_PATCH, LineSplitter, Selection
from dryrack.client.discovery import discover
from dryrack.client.endpoints import CONFIG_MAPS, NAMESPACES, PODS, Endpoint
from dryrack.client.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    InvalidError,
    NotFoundError,
    TransportError,
)


@given(
    st.lists(st.binary(max_size=20).map(lambda it: it.replace(b"\n", b"")), max_size=20), st.data()
)
def test_lines_do_not_depend_on_chunks(lines: list[bytes], data: st.DataObject) -> None:
    """However a stream is cut into chunks, the same lines come out."""
    text = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=10)))
    splitter = LineSplitter()
    found: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        found += splitter.feed(text[start:end])

    assert found == [line for line in lines if line]


def test_a_line_without_end_is_refused() -> None:
    """A stream without line ends is no watch, and does not fill the memory."""
    splitter = LineSplitter()
    chunk = b"x" * (1024 * 1024)

    for _ in range(LINE_BYTES_MAX // len(chunk)):
        assert list(splitter.feed(chunk)) == []
    with pytest.raises(TransportError):
        list(splitter.feed(chunk))


async def test_refusals_are_told_apart() -> None:
    """Each refusal that engines treat differently has a class, and carries the whole Status."""
    client = site().client
    await client.create(CONFIG_MAPS, config_map("a"))
    with pytest.raises(AlreadyExistsError):
        await client.create(CONFIG_MAPS, config_map("a"))
    with pytest.raises(NotFoundError) as missing:
        await client.get(CONFIG_MAPS, "b", "default")
    assert missing.value.status["details"] == {"name": "b", "kind": "configmaps"}
    with pytest.raises(InvalidError):
        await client.create(CONFIG_MAPS, config_map("A B"))
    stale = await client.get(CONFIG_MAPS, "a", "default")
    await client.update(CONFIG_MAPS, stale | {"data": {"x": "1"}})
    with pytest.raises(ConflictError) as conflict:
        await client.update(CONFIG_MAPS, stale | {"data": {"x": "2"}})
    assert not isinstance(conflict.value, AlreadyExistsError)
    with pytest.raises(ConflictError):
        await client.delete(CONFIG_MAPS, "a", namespace="default", uid="another")


async def test_a_list_has_all_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are one list, in order, each item with its kind."""
    monkeypatch.setattr(verbs, "PAGE_OBJECTS", 3)

    here = site()
    names = [f"c{number:02}" for number in range(10)]
    for name in names:
        await here.client.create(CONFIG_MAPS, config_map(name))
    listing = await here.client.list(CONFIG_MAPS, Selection(namespace="default"))
    assert [each["metadata"]["name"] for each in listing.items] == names
    assert {each["kind"] for each in listing.items} == {"ConfigMap"}
    assert sum("limit=3" in each.query for each in here.road.asked) == 4


async def test_patches_and_applies_change_parts() -> None:
    """A merge patch and an apply leave alone what they do not name."""
    client = site().client
    await client.create(CONFIG_MAPS, config_map("a", x="1"))
    patched = await client.patch(
        CONFIG_MAPS, "a", {"data": {"y": "2"}}, namespace="default", media_type=MERGE_PATCH
    )
    assert patched["data"] == {"x": "1", "y": "2"}
    applied = await client.apply(CONFIG_MAPS, config_map("a", z="3"), manager="tests")
    assert applied["data"] == {"x": "1", "y": "2", "z": "3"}


async def test_a_watch_tells_changes_in_order() -> None:
    """Everything after the revision, nothing before."""
    client = site().client
    await client.create(CONFIG_MAPS, config_map("before"))
    start = (await client.list(CONFIG_MAPS)).revision
    async with client.watch(CONFIG_MAPS, revision=start) as events:
        await client.create(CONFIG_MAPS, config_map("a"))
        await client.delete(CONFIG_MAPS, "a", namespace="default")
        seen = [await anext(events), await anext(events)]
    told = [(each.type, each.object["metadata"]["name"]) for each in seen]
    assert told == [("ADDED", "a"), ("DELETED", "a")]


async def test_a_watch_of_nothing_is_refused() -> None:
    """A kind that is not served is an error of the call, not an empty stream."""
    nothing = Endpoint("example.com", "v1", "things", "Thing")
    with pytest.raises(ApiError):
        async with site().client.watch(nothing):
            raise AssertionError("unreachable")


async def test_discovery_names_each_kind_once() -> None:
    """The client's endpoints have the versions that the server prefers."""
    served = await discover(site().client)
    endpoints = [each.endpoint for each in served]
    assert PODS in endpoints
    assert NAMESPACES in endpoints
    assert len({each.resource for each in endpoints}) == len(endpoints)


def test_paths_are_encoded() -> None:
    """A name that is no name leads to no other path."""
    assert PODS.path("a", "b/../c?d") == "/api/v1/namespaces/a/pods/b%2F..%2Fc%3Fd"

"""The current inventory after all kinds of changes of its documents."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.base import exposition
from tests.client.planes import refusal, site
from tests.controllers.slices.definitions import definitions
from tests.controllers.slices.reading import (
    CONFIG_MAP,
    DRA_CONFIGS,
    NAMESPACE,
    NODE_OVERLAYS,
    Stage,
    begin,
    config,
    dra_config,
    messages,
    overlay,
    play,
    prepared,
)

from dryrack.client.endpoints import CONFIG_MAPS, DEFINITIONS
from dryrack.client.informer import Informers
from dryrack.client.timekeeping import settle
from dryrack.controllers.slices import PublisherSettings
from dryrack.controllers.slices import current_inventory as readers_module
from dryrack.controllers.slices.current_inventory import CurrentInventory
from dryrack.controllers.slices.published_counts import PublishedCounts
from dryrack.controllers.slices.sources import Sources
from dryrack.controllers.writes import EngineContext
from dryrack.hardware.inventory import Assignment, Origin, Source, SourceKind

if TYPE_CHECKING:
    from tests.client.planes import Site

    from dryrack.client.transport import Request, Response
    from dryrack.hardware.config_formats import Reading

BAD = config().replace("operator: In", "operator: Inn")
OURS = Source(SourceKind.CONFIG_MAP, CONFIG_MAP)


def test_a_config_map_comes_changes_and_goes() -> None:
    """Its devices are in the inventory as soon as it says so, and gone with it."""

    async def scene(stage: Stage) -> None:
        assert stage.devices == []
        await stage.put(config("gpu-0"))
        assert stage.devices == ["gpu-0"]
        await stage.put(config("gpu-1", "gpu-2"))
        assert stage.devices == ["gpu-1", "gpu-2"]
        await stage.remove(CONFIG_MAPS, CONFIG_MAP, NAMESPACE)
        assert stage.devices == []
        assert stage.sources.statuses == {}

    play(scene)


@pytest.mark.parametrize("text", [None, "", "  \n", "# nothing\n---\n"])
def test_an_emptied_config_map_wants_nothing(text: str | None) -> None:
    """No data, no text, or comments alone: its devices go, and that is no mistake."""

    async def scene(stage: Stage) -> None:
        await stage.put(config())
        await stage.put(text)
        assert stage.devices == []
        assert stage.sources.statuses[OURS].is_valid
        assert await stage.events("InvalidConfig") == []

    play(scene)


def test_any_single_other_key_will_do() -> None:
    """A configuration under another key is found if it is the only one."""

    async def scene(stage: Stage) -> None:
        await stage.put_data({"devices.yml": config()})
        assert stage.devices == ["gpu-0"]
        await stage.put_data({"a.yml": config("gpu-1"), "b.yml": config("gpu-2")})
        assert stage.devices == ["gpu-0"]
        assert not stage.sources.statuses[OURS].is_valid
        await stage.put_data({"a.yml": config("gpu-1"), "config.yaml": config("gpu-2")})
        assert stage.devices == ["gpu-2"]

    play(scene)


def test_only_the_config_map_that_is_meant_is_watched() -> None:
    """Requests name namespace and object: rights on that one ConfigMap are enough."""

    async def scene(stage: Stage) -> None:
        other = {"metadata": {"name": "other", "namespace": NAMESPACE}, "data": {"a": config()}}
        await stage.create(CONFIG_MAPS, other)
        await stage.create(CONFIG_MAPS, other | {"metadata": {"name": "x", "namespace": "default"}})
        assert stage.devices == []
        asked = [each for each in stage.at.road.asked if "configmaps" in each.path]
        read = [each for each in asked if each.method == "GET"]
        assert read
        assert {each.path for each in read} == {f"/api/v1/namespaces/{NAMESPACE}/configmaps"}
        assert all(f"fieldSelector=metadata.name%3D{CONFIG_MAP}" in each.query for each in read)

    play(scene)


def test_the_last_valid_version_stays_in_force() -> None:
    """Bad versions, one after the other, change nothing; the next good one does."""

    async def scene(stage: Stage) -> None:
        await stage.put(config("gpu-0"))
        for text in (BAD, "a: [", BAD + "\n"):
            await stage.put(text)
            assert stage.devices == ["gpu-0"]
        await stage.put(config("gpu-1"))
        assert stage.devices == ["gpu-1"]

    play(scene)


def test_a_bad_version_is_told_once_with_line_field_and_fix() -> None:
    """One event for each version, not for each look; what is in force is said as well."""

    async def scene(stage: Stage) -> None:
        await stage.put(config())
        await stage.put(BAD)
        await stage.put_data({"config.yaml": BAD}, labels={"touched": "yes"})
        await stage.at.clock.advance(120)
        (event,) = await stage.events("InvalidConfig")
        assert (event["type"], event["metadata"]["namespace"]) == ("Warning", NAMESPACE)
        assert event["involvedObject"]["name"] == CONFIG_MAP
        first, *_, last = event["message"].splitlines()
        assert first.startswith("config.yaml:6: mappings[0].nodeSelectorTerms[0].")
        assert "; " in first
        assert last == "the last valid version stays in force: 1 device in 1 mapping"
        await stage.put(BAD + "# again\n")
        assert len(await stage.events("InvalidConfig")) == 2

    play(scene)


async def test_another_process_does_not_tell_again() -> None:
    """After a start, or when another leads, the same version makes no second event."""
    at = await prepared(site())
    first = await begin(at)
    await first.put(config())
    await first.put(BAD)
    await first.stop()
    second = await begin(at)
    assert len(await second.events("InvalidConfig")) == 1
    assert len(await second.events("ConfigAccepted")) == 1
    await second.stop()


def test_loose_writing_is_taken_and_told() -> None:
    """Every warning has its line and its fix, in one event for each version."""

    async def scene(stage: Stage) -> None:
        await stage.put(config().replace("driver: gpu.example.com\nm", "driver: gpu/x\nm"))
        await stage.at.clock.advance(120)
        assert stage.devices == ["gpu-0"]
        (event,) = await stage.events("ConfigWarning")
        assert event["message"].startswith("config.yaml:1: driver: ")
        assert "write 'gpu.x'" in event["message"]

    play(scene)


def test_after_a_start_with_a_bad_version_nothing_is_known() -> None:
    """It is in the inventory as unread, so its slices stay; an event reports it."""

    async def before(at: Site) -> None:
        metadata = {"name": CONFIG_MAP, "namespace": NAMESPACE}
        await at.client.create(CONFIG_MAPS, {"metadata": metadata, "data": {"config.yaml": BAD}})

    async def scene(stage: Stage) -> None:
        assert unread(stage) == [OURS]
        (event,) = await stage.events("InvalidConfig")
        assert event["message"].endswith("what is published for it stays as it is")
        assert number(stage, "config_unknown", source="ConfigMap") == 1
        await stage.put(BAD + "# still\n")
        assert unread(stage) == [OURS]
        await stage.put(config())
        assert unread(stage) == []
        assert stage.devices == ["gpu-0"]

    play(scene, before=before)


def test_a_source_that_begins_bad_has_caused_nothing() -> None:
    """A source that did not exist before is not unread: it has no slices that could stay."""

    async def scene(stage: Stage) -> None:
        await stage.put(BAD)
        assert unread(stage) == []
        assert stage.devices == []
        (event,) = await stage.events("InvalidConfig")
        assert event["message"].endswith("stays in force: 0 devices in 0 mappings")

    play(scene)


@given(st.lists(st.sampled_from(["good", "bad", "empty", "gone"]), max_size=8))
def test_the_inventory_follows_the_last_valid_version(script: list[str]) -> None:
    """After any edits the inventory holds what the last version that could be read wanted."""

    async def scene(stage: Stage) -> None:
        expected: list[str] = []
        for position, word in enumerate(script):
            if word == "good":
                expected = [f"gpu-{position}"]
                await stage.put(config(*expected))
            elif word == "bad":
                await stage.put(BAD + f"# {position}\n")
            elif word == "empty":
                expected = []
                await stage.put(None)
            elif OURS in stage.sources.statuses:
                expected = []
                await stage.remove(CONFIG_MAPS, CONFIG_MAP, NAMESPACE)
            assert stage.devices == expected

    play(scene)


def test_kinds_that_are_not_there_keep_nobody_waiting() -> None:
    """Without NodeOverlay and DRAConfig the inventory is known at once, without a warning."""

    async def scene(stage: Stage) -> None:
        assert stage.current.known.is_set()
        assert stage.sources.lacking() == ()

    play(scene)


def test_kinds_are_found_when_they_are_defined() -> None:
    """A second after their definitions came, their objects are in the inventory."""

    async def scene(stage: Stage) -> None:
        await stage.at.clock.advance(100)
        await stage.define()
        await stage.create(DRA_CONFIGS, dra_config("a"))
        await stage.create(NODE_OVERLAYS, overlay("b", 2))
        assert stage.devices == ["gpu-0", "gpu-1", "gpu-0"]

    play(scene)


def test_kinds_take_their_devices_with_them() -> None:
    """When a definition goes, the devices of its objects go; and it may come again."""

    async def scene(stage: Stage) -> None:
        await stage.put(config("own"))
        await stage.define()
        await stage.create(DRA_CONFIGS, dra_config("a"))
        assert stage.devices == ["own", "gpu-0"]
        for each in definitions():
            await stage.at.client.delete(DEFINITIONS, each["metadata"]["name"])
        await stage.at.clock.advance(2)
        assert stage.devices == ["own"]
        assert stage.sources.lacking() == ()
        await stage.define()
        await stage.create(DRA_CONFIGS, dra_config("a", "gpu-9"))
        assert stage.devices == ["own", "gpu-9"]

    play(scene)


def test_a_version_that_is_not_served_is_not_waited_for() -> None:
    """A definition with other versions only counts as none, also at a start."""

    async def before(at: Site) -> None:
        for each in definitions():
            other = each["spec"]["versions"][0] | {"name": "v1beta1"}
            spec = each["spec"] | {"versions": [other]}
            await at.client.create(DEFINITIONS, each | {"spec": spec})

    async def scene(stage: Stage) -> None:
        await stage.put(config())
        assert stage.devices == ["gpu-0"]
        for each in definitions():
            name = each["metadata"]["name"]
            found = await stage.at.client.get(DEFINITIONS, name)
            versions = [
                found["spec"]["versions"][0],
                each["spec"]["versions"][0] | {"storage": False},
            ]
            spec = found["spec"] | {"versions": versions}
            await stage.at.client.update(DEFINITIONS, found | {"spec": spec})
        await stage.at.clock.advance(1)
        await stage.create(DRA_CONFIGS, dra_config("a", "gpu-1"))
        assert stage.devices == ["gpu-0", "gpu-1"]

    play(scene, before=before)


def test_who_may_not_watch_definitions_finds_kinds_later() -> None:
    """Discovery is asked now and then, and nothing breaks in between."""

    async def before(at: Site) -> None:
        def refuse(request: Request) -> Response | None:
            is_read = request.method == "GET" and "customresourcedefinitions" in request.path
            return refusal(403, "Forbidden") if is_read else None

        at.road.refuse = refuse

    async def scene(stage: Stage) -> None:
        assert stage.current.known.is_set()
        await stage.define()
        await stage.create(DRA_CONFIGS, dra_config("a"))
        assert stage.devices == []
        await stage.at.clock.advance(31)
        assert stage.devices == ["gpu-0"]
        for each in definitions():
            await stage.at.client.delete(DEFINITIONS, each["metadata"]["name"])
        await stage.at.clock.advance(31)
        assert stage.devices == []

    play(scene, before=before)


@pytest.mark.parametrize(
    "path",
    [
        f"/api/v1/namespaces/{NAMESPACE}/configmaps",
        "/apis/test.karpenter.sh/v1alpha1",
        "/apis/karpenter.sh/v1alpha1",
        "/apis/karpenter.sh/v1alpha1/nodeoverlays",
        "/apis/test.karpenter.sh/v1alpha1/draconfigs",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ],
)
def test_no_inventory_is_made_on_partial_knowledge(path: str) -> None:
    """While anything cannot be asked for, no inventory is known; then it holds all at once."""
    closed = {path}

    async def before(at: Site) -> None:
        for each in definitions():
            await at.client.create(DEFINITIONS, each)
        await at.client.create(DRA_CONFIGS, dra_config("a", "gpu-1"))
        await at.client.create(NODE_OVERLAYS, overlay("b"))
        metadata = {"name": CONFIG_MAP, "namespace": NAMESPACE}
        text = config("gpu-2")
        await at.client.create(CONFIG_MAPS, {"metadata": metadata, "data": {"config.yaml": text}})
        at.road.refuse = lambda request: refusal(500, "No") if request.path in closed else None

    async def scene(stage: Stage) -> None:
        await stage.at.clock.advance(60)
        assert not stage.current.known.is_set()
        assert stage.sources.lacking()
        told: list[int] = []
        stage.current.listen(lambda: told.append(len(stage.devices)))
        closed.clear()
        await stage.at.clock.advance(60)
        assert told == [3]
        assert stage.sources.lacking() == ()

    play(scene, before=before)


def test_a_server_that_forgets_a_kind_is_not_believed() -> None:
    """As long as the definition is there, a kind that is not served has not taken anything away."""

    async def scene(stage: Stage) -> None:
        await stage.define()
        await stage.create(DRA_CONFIGS, dra_config("a"))
        stage.at.road.refuse = lambda request: (
            refusal(404, "NotFound") if request.path.startswith("/apis/test.karpenter.sh") else None
        )
        stage.at.road.cuts = 10
        await stage.at.clock.advance(300)
        assert stage.devices == ["gpu-0"]
        stage.at.road.refuse = lambda request: None
        await stage.at.clock.advance(60)
        await stage.create(DRA_CONFIGS, dra_config("b", "gpu-1"))
        assert stage.devices == ["gpu-0", "gpu-1"]

    play(scene)


def test_dra_configs_are_in_the_order_of_their_names() -> None:
    """The ConfigMap comes first, then sources by name; each can be removed alone."""

    async def scene(stage: Stage) -> None:
        await stage.define()
        for name in ("b", "c", "a"):
            await stage.create(DRA_CONFIGS, dra_config(name, f"gpu-{name}"))
        await stage.put(config("own"))
        assert stage.devices == ["own", "gpu-a", "gpu-b", "gpu-c"]
        await stage.remove(DRA_CONFIGS, "b")
        assert stage.devices == ["own", "gpu-a", "gpu-c"]

    play(scene)


def test_a_bad_dra_config_leaves_the_others_alone() -> None:
    """Its own last valid version stays, and all others go on changing."""

    async def scene(stage: Stage) -> None:
        await stage.define()
        await stage.create(DRA_CONFIGS, dra_config("a", "gpu-a"))
        await stage.create(DRA_CONFIGS, dra_config("b", "gpu-b"))
        await stage.change(DRA_CONFIGS, dra_config("a", "No Name"))
        await stage.change(DRA_CONFIGS, dra_config("b", "gpu-c"))
        assert stage.devices == ["gpu-a", "gpu-c"]

    play(scene)


def test_overlays_without_slices_are_none_of_ours() -> None:
    """An overlay about prices is not in the inventory and has no events."""

    async def scene(stage: Stage) -> None:
        await stage.define()
        await stage.create(NODE_OVERLAYS, overlay("price", resourceSlices=None, price="1.5"))
        assert stage.current.inventory is not None
        assert stage.current.inventory.overlays == ()
        assert await stage.events("ConfigAccepted", "ConfigWarning") == []
        await stage.change(NODE_OVERLAYS, overlay("price", price="1.5"))
        assert stage.devices == ["gpu-0"]
        await stage.change(NODE_OVERLAYS, overlay("price", resourceSlices=None, price="1.5"))
        assert stage.devices == []

    play(scene)


def test_overlays_without_slices_are_not_waited_for() -> None:
    """A start does not wait for an overlay without devices."""

    async def before(at: Site) -> None:
        for each in definitions():
            await at.client.create(DEFINITIONS, each)
        await at.client.create(NODE_OVERLAYS, overlay("price", resourceSlices=None, price="1.5"))

    async def scene(stage: Stage) -> None:
        assert stage.current.known.is_set()

    play(scene, before=before)


def test_an_overlay_that_promises_other_numbers_is_told() -> None:
    """A capacity of eight with two devices: an event on the overlay, and a metric."""

    async def scene(stage: Stage) -> None:
        await stage.define()
        capacity = {"gpu.example.com/device": "8"}
        await stage.create(NODE_OVERLAYS, overlay("big", 2, capacity=capacity))
        (event,) = await stage.events("ConfigWarning")
        assert event["involvedObject"]["kind"] == "NodeOverlay"
        assert "capacity of gpu.example.com/device is 8" in event["message"]
        assert "2 devices" in event["message"]
        assert stage.devices == ["gpu-0", "gpu-1"]
        assert number(stage, "capacity_mismatches") == 1
        await stage.change(NODE_OVERLAYS, overlay("big", 8, capacity=capacity))
        assert number(stage, "capacity_mismatches") == 0

    play(scene)


def test_the_catalogue_is_in_the_inventory() -> None:
    """It is there if it is switched on, and not otherwise."""
    origin = Origin(SourceKind.CATALOGUE, "p5.48xlarge", "")
    catalogue = {"p5.48xlarge": Assignment(origin, (), ())}

    async def scene(stage: Stage) -> None:
        assert stage.current.inventory is not None
        assert stage.current.inventory.instance_types == stage.options.catalogue

    play(scene)
    play(scene, options=PublisherSettings(catalogue=catalogue))


def test_a_drivers_name_can_be_put_in_place_of_all() -> None:
    """The option speaks for the ConfigMap, overlays and DRAConfigs alike."""

    async def scene(stage: Stage) -> None:
        await stage.define()
        await stage.put(config())
        await stage.create(DRA_CONFIGS, dra_config("a"))
        await stage.create(NODE_OVERLAYS, overlay("b"))
        inventory = stage.current.inventory
        assert inventory is not None
        given = (*(each.assignment for each in inventory.overlays), *inventory.assignments)
        assert len(given) == 3
        assert {batch.driver for each in given for batch in each.batches} == {"mine.example.com"}

    play(scene, options=PublisherSettings(driver="mine.example.com"))


def test_numbers_tell_whether_the_configuration_is_valid() -> None:
    """One while all can be read, zero while any cannot; and when the last valid one was read."""

    async def scene(stage: Stage) -> None:
        await stage.put(config())
        read_at = stage.at.clock.now()
        assert number(stage, "config_valid", source="ConfigMap") == 1
        await stage.at.clock.advance(50)
        await stage.put(BAD)
        assert number(stage, "config_valid", source="ConfigMap") == 0
        assert number(stage, "config_valid", source="DRAConfig") == 1
        assert number(stage, "config_problems", source="ConfigMap") >= 1
        last = "config_last_valid_timestamp_seconds"
        assert number(stage, last, source="ConfigMap") == read_at
        await stage.put(config("gpu-1"))
        assert number(stage, "config_valid", source="ConfigMap") == 1
        assert number(stage, last, source="ConfigMap") == read_at + 50

    play(scene)


def test_a_bug_in_a_reader_stops_nothing_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A document that a reader cannot cope with is a bad one; the others are read."""

    def broken(raw: object, **_: object) -> Reading:
        raise RuntimeError("a bug")

    monkeypatch.setattr(readers_module, "read_dra_config", broken)

    async def before(at: Site) -> None:
        for each in definitions():
            await at.client.create(DEFINITIONS, each)
        await at.client.create(DRA_CONFIGS, dra_config("a"))

    async def scene(stage: Stage) -> None:
        await stage.at.clock.advance(5)
        await stage.put(config())
        assert stage.devices == ["gpu-0"]
        condition = await stage.condition("a", "ValidationSucceeded")
        assert condition["status"] == "False"
        assert "please report" in condition["message"]

    play(scene, before=before)
    assert "a bug; please report it" in caplog.text


def test_a_change_that_does_not_matter_moves_nobody() -> None:
    """Labels of the ConfigMap, or its resync, put no other inventory onto the current."""

    async def scene(stage: Stage) -> None:
        await stage.put(config())
        told: list[None] = []
        stage.current.listen(lambda: told.append(None))
        await stage.put_data({"config.yaml": config()}, labels={"a": "b"})
        await stage.at.clock.advance(400)
        assert len(told) == 1
        assert len(await stage.events("ConfigAccepted")) == 1

    play(scene)


def test_many_problems_are_told_in_an_events_length() -> None:
    """The first problems are listed, the rest is counted, and the version in force is named."""

    async def scene(stage: Stage) -> None:
        names = [f"Bad Name {position}" for position in range(60)]
        await stage.put(config(*names))
        (message,) = messages(await stage.events("InvalidConfig"))
        assert len(message.encode()) <= 1024
        *_, counted, last = message.splitlines()
        assert counted.startswith("and ")
        assert last.startswith("the last valid version stays in force")

    play(scene)


async def test_whoever_waits_for_its_turn_knows_all_already() -> None:
    """Caches are whole before it may work, and nothing is on the current until it does."""
    at = await prepared(site())
    informers = Informers(at.client, clock=at.clock, chance=at.chance)
    context = EngineContext(at.client, informers, at.clock, at.chance)
    current = CurrentInventory()
    sources = Sources(context, PublisherSettings(), current=current, counts=PublishedCounts())
    kinds = {"configmaps", "nodeoverlays.karpenter.sh", "draconfigs.test.karpenter.sh"}
    assert set(informers.unsynced()) == set(sources.lacking()) == kinds
    caching = asyncio.create_task(informers.run(), name="informers")
    await settle()
    assert informers.unsynced() == sources.lacking() == ()
    assert not current.known.is_set()
    working = asyncio.create_task(sources.run(), name="sources")
    await settle()
    assert current.known.is_set()
    for task in (working, caching):
        task.cancel()
    await asyncio.wait([working, caching])


def test_the_longest_names_are_told_of() -> None:
    """An event's name begins with that of its object, and is cut where the API wants it."""
    options = PublisherSettings(config_map="n" * 253)

    async def scene(stage: Stage) -> None:
        metadata = {"name": "n" * 253, "namespace": NAMESPACE}
        await stage.create(CONFIG_MAPS, {"metadata": metadata, "data": {"config.yaml": BAD}})
        (event,) = await stage.events("InvalidConfig")
        assert len(event["metadata"]["name"]) == 253
        assert event["involvedObject"]["name"] == "n" * 253

    play(scene, options=options)


def unread(stage: Stage) -> list[Source]:
    assert stage.current.inventory is not None
    return list(stage.current.inventory.unread)


def number(stage: Stage, name: str, **labels: str) -> float:
    return exposition.value(stage.metrics.render(), f"dryrack_publish_{name}", **labels)


def test_options_name_another_config_map() -> None:
    """Namespace, name and key are those of the options."""
    options = replace(PublisherSettings(), namespace="default", config_map="mine", key="x.yaml")

    async def scene(stage: Stage) -> None:
        data = {"x.yaml": config("gpu-7"), "config.yaml": config("gpu-8")}
        metadata = {"name": "mine", "namespace": "default"}
        await stage.at.client.create(CONFIG_MAPS, {"metadata": metadata, "data": data})
        await settle()
        assert stage.devices == ["gpu-7"]

    play(scene, options=options)


FAULTS = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from([403, 404, 409, 410, 429, 500, 503])), max_size=25
)


@settings(max_examples=15, deadline=None)
@given(FAULTS, st.lists(st.integers(0, 60), max_size=6))
def test_whatever_fails_nobody_sees_less_than_there_is(
    faults: list[tuple[int, int]], cuts: list[int]
) -> None:
    """Refusals and broken watches, at any request: every inventory has all that is in force."""

    async def run() -> None:
        at = await prepared(site())
        for each in definitions():
            await at.client.create(DEFINITIONS, each)
        await at.client.create(DRA_CONFIGS, dra_config("a", "gpu-a"))
        await at.client.create(NODE_OVERLAYS, overlay("b"))
        metadata = {"name": CONFIG_MAP, "namespace": NAMESPACE}
        data = {"config.yaml": config("own")}
        await at.client.create(CONFIG_MAPS, {"metadata": metadata, "data": data})
        refused = dict(faults)
        asked = itertools.count()

        def refuse(request: Request) -> Response | None:
            number = next(asked)
            at.road.cuts += number in cuts
            # A refusal that says "not found" about a kind is an answer, and not a fault.
            code = refused.get(number)
            is_question = request.path.count("/") == 3 and code in (403, 404)
            return refusal(code, "Fault") if code and not is_question else None

        at.road.refuse = refuse
        stage = await begin(at)
        seen: list[list[str]] = []
        stage.current.listen(lambda: seen.append(stage.devices))
        await at.clock.advance(300)
        at.road.refuse = lambda request: None
        at.road.cuts = 0
        await at.clock.advance(120)
        assert seen == [["gpu-0", "own", "gpu-a"]]
        await stage.change(DRA_CONFIGS, dra_config("a", "gpu-b"))
        assert stage.devices == ["gpu-0", "own", "gpu-b"]
        await stage.stop()

    asyncio.run(run())

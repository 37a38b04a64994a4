"""The status of a DRAConfig: correct conditions and counts, written rarely."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from tests.client.planes import refusal, site
from tests.controllers.slices.definitions import definitions
from tests.controllers.slices.reading import (
    DRA_CONFIGS,
    Stage,
    begin,
    config,
    dra_config,
    messages,
    play,
    prepared,
)

from dryrack.client.endpoints import DEFINITIONS
from dryrack.controllers.slices.events import EVENTS, Reason
from dryrack.controllers.slices.published_counts import Published, PublishedCounts, Row
from dryrack.controllers.slices.sources import CONDITIONS, Condition
from dryrack.hardware.inventory import Source, SourceKind

if TYPE_CHECKING:
    from dryrack.client.transport import Request, Response

A = Source(SourceKind.CONFIG, "a")
B = Source(SourceKind.CONFIG, "b")


def writes(stage: Stage) -> list[Request]:
    """Return the writes of the publisher about DRAConfigs."""
    path = "/apis/test.karpenter.sh/v1alpha1/draconfigs/"
    return [
        each
        for each in stage.at.road.asked
        if each.path.startswith(path) and each.method == "PATCH"
    ]


def test_a_valid_config_is_ready_when_all_is_published() -> None:
    """It is valid first, and ready when the publisher has nothing left to do."""

    async def scene(stage: Stage) -> None:
        await stage.define()
        is_done = False
        stage.counts.is_settled = lambda: is_done
        await stage.create(DRA_CONFIGS, dra_config("a"))
        await stage.at.clock.advance(5)
        valid = await stage.condition("a", "ValidationSucceeded")
        assert (valid["status"], valid["reason"], valid["observedGeneration"]) == (
            "True",
            "Valid",
            1,
        )
        ready = await stage.condition("a", "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "Publishing")
        is_done = True
        await stage.at.clock.advance(2)
        ready = await stage.condition("a", "Ready")
        assert (ready["status"], ready["reason"]) == ("True", "Published")
        is_done = False
        stage.counts.set_row("node-a", Row({A: 1}))
        await stage.at.clock.advance(5)
        assert (await stage.condition("a", "Ready"))["status"] == "True"

    play(scene)


def test_counts_are_those_of_the_ledger() -> None:
    """Slices and nodes by who asked for them; pools of the whole cluster are on no node."""

    async def scene(stage: Stage) -> None:
        await stage.define()
        await stage.create(DRA_CONFIGS, dra_config("a"))
        await stage.create(DRA_CONFIGS, dra_config("b", "gpu-1"))
        stage.counts.set_row("node-a", Row({A: 2, B: 1}))
        stage.counts.set_row("node-b", Row({A: 1}))
        stage.counts.set_row("", Row({B: 3}, is_node=False))
        await stage.at.clock.advance(2)
        assert counts(await stage.status("a")) == (3, 2)
        assert counts(await stage.status("b")) == (4, 1)
        stage.counts.set_row("node-a", Row({}))
        await stage.at.clock.advance(2)
        assert counts(await stage.status("a")) == (1, 1)
        assert counts(await stage.status("b")) == (3, 0)

    play(scene)


def counts(status: dict[str, int]) -> tuple[int, int]:
    return status["resourceSliceCount"], status["nodeCount"]


def test_a_bad_version_is_shown_and_the_last_valid_one_named() -> None:
    """Field and fix are in the condition; who is not valid is not ready."""

    async def scene(stage: Stage) -> None:
        await stage.define()
        await stage.create(DRA_CONFIGS, dra_config("a"))
        await stage.at.clock.advance(2)
        before = await stage.condition("a", "ValidationSucceeded")
        await stage.change(DRA_CONFIGS, dra_config("a", "No Name"))
        await stage.at.clock.advance(2)
        valid = await stage.condition("a", "ValidationSucceeded")
        assert (valid["status"], valid["reason"]) == ("False", "InvalidConfig")
        assert valid["observedGeneration"] == 2
        assert valid["lastTransitionTime"] > before["lastTransitionTime"]
        assert valid["message"].startswith("spec.pools[0].resourceSlices[0].devices[0].name: ")
        ready = await stage.condition("a", "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "ValidationFailed")
        assert ready["message"].endswith("generation 1 stays in force")
        (message,) = messages(await stage.events("InvalidConfig"))
        assert message.startswith("spec.pools[0].")

    play(scene)


async def test_a_status_is_written_only_if_it_says_anything_new() -> None:
    """Neither time, nor a restart, nor the status's own echo makes another write."""
    at = await prepared(site())
    first = await begin(at)
    await first.define()
    await first.create(DRA_CONFIGS, dra_config("a"))
    await at.clock.advance(3)
    written = len(writes(first))
    assert written == 1
    await at.clock.advance(600)
    await first.stop()
    second = await begin(at)
    await at.clock.advance(600)
    await second.put(config("other"))
    assert len(writes(second)) == written
    assert len(await second.events("ConfigAccepted")) == 2
    await second.stop()


def test_a_fleet_that_comes_up_is_counted_once_a_second() -> None:
    """However many nodes, people need no write for each."""

    async def scene(stage: Stage) -> None:
        await stage.define()
        await stage.create(DRA_CONFIGS, dra_config("a"))
        await stage.at.clock.advance(2)
        before = len(writes(stage))
        for number in range(300):
            stage.counts.set_row(f"node-{number}", Row({A: 1}))
            await stage.at.clock.advance(0.01)
        await stage.at.clock.advance(2)
        assert counts(await stage.status("a")) == (300, 300)
        assert len(writes(stage)) - before <= 5

    play(scene)


def test_a_refused_status_is_written_later() -> None:
    """Conflicts and outages delay the status, and cause no second event."""

    async def scene(stage: Stage) -> None:
        await stage.define()
        refused: list[Request] = []

        def refuse(request: Request) -> Response | None:
            if request.path.endswith("/status") and len(refused) < 3:
                refused.append(request)
                return refusal(409 if len(refused) % 2 else 503, "Conflict")
            return None

        stage.at.road.refuse = refuse
        await stage.create(DRA_CONFIGS, dra_config("a"))
        await stage.at.clock.advance(3)
        assert len(refused) == 3
        assert (await stage.condition("a", "Ready"))["status"] == "True"
        assert len(await stage.events("ConfigAccepted")) == 1

    play(scene)


def test_what_others_say_in_the_status_stays() -> None:
    """Conditions of other kinds are theirs."""

    async def scene(stage: Stage) -> None:
        await stage.define()
        await stage.create(DRA_CONFIGS, dra_config("a"))
        await stage.at.clock.advance(2)
        found = await stage.at.client.get(DRA_CONFIGS, "a")
        other = found["status"]["conditions"][0] | {"type": "Other"}
        status = found["status"] | {"conditions": [other, *found["status"]["conditions"]]}
        await stage.at.client.update(DRA_CONFIGS, found | {"status": status}, subresource="status")
        stage.counts.set_row("node-a", Row({A: 1}))
        await stage.at.clock.advance(2)
        kinds = [each["type"] for each in (await stage.status("a"))["conditions"]]
        assert kinds == ["Other", "ValidationSucceeded", "Ready"]
        assert counts(await stage.status("a")) == (1, 1)

    play(scene)


def test_devices_that_were_left_out_are_told() -> None:
    """A note of the counts is an event, once for each version, and is in the condition."""

    async def scene(stage: Stage) -> None:
        await stage.define()
        await stage.create(DRA_CONFIGS, dra_config("a"))
        note = frozenset({(A, "device gpu-0 is there already")})
        for node in ("node-a", "node-b"):
            stage.counts.set_row(node, Row({A: 1}, note))
            await stage.at.clock.advance(2)
        assert messages(await stage.events("DevicesLeftOut")) == ["device gpu-0 is there already"]
        assert (await stage.condition("a", "Ready"))["message"] == "device gpu-0 is there already"
        for node in ("node-a", "node-b"):
            stage.counts.set_row(node, Row({A: 1}))
        await stage.at.clock.advance(2)
        assert (await stage.condition("a", "Ready"))["message"] == ""

    play(scene)


def test_a_fleet_with_one_mistake_is_not_told_for_each_node() -> None:
    """Five notes on a version become events, and a last event says that there are more."""

    async def scene(stage: Stage) -> None:
        await stage.define()
        await stage.create(DRA_CONFIGS, dra_config("a"))
        for number in range(40):
            note = frozenset({(A, f"pool node-{number} is taken")})
            stage.counts.set_row(f"node-{number}", Row({A: 1}, note))
            await stage.at.clock.advance(0.5)
        found = messages(await stage.events("DevicesLeftOut"))
        assert len(found) == 6
        assert [each for each in found if "run: dryrack publish --dry-run" in each] == found[-1:]

    play(scene)


def test_a_definition_without_a_status_breaks_nothing() -> None:
    """Devices are published also if the definition has no status."""

    async def before_scene(stage: Stage) -> None:
        for each in definitions():
            version = {
                key: value
                for key, value in each["spec"]["versions"][0].items()
                if key != "subresources"
            }
            bare = each | {"spec": each["spec"] | {"versions": [version]}}
            await stage.at.client.create(DEFINITIONS, bare)
        await stage.at.clock.advance(1)
        await stage.create(DRA_CONFIGS, dra_config("a"))
        await stage.at.clock.advance(30)
        assert stage.devices == ["gpu-0"]
        assert len(await stage.events("ConfigAccepted")) == 1

    play(before_scene)


ROWS = st.builds(
    Row,
    st.dictionaries(st.sampled_from([A, B]), st.integers(1, 4)),
    st.frozensets(st.tuples(st.sampled_from([A, B]), st.sampled_from("xy"))),
    st.booleans(),
)


@given(st.lists(st.tuples(st.sampled_from("pqr"), ROWS), max_size=20))
def test_the_ledger_sums_up_what_rows_say(entries: list[tuple[str, Row]]) -> None:
    """After any entries the sums are those of the last row of each key."""
    counts = PublishedCounts()
    last = dict[str, Row]()
    heard: set[Source | None] = set()
    counts.listen(heard.add)
    for key, row in entries:
        was = {source: (counts.of(source), counts.notes_on(source)) for source in (A, B)}
        heard.clear()
        counts.set_row(key, row)
        last[key] = row
        assert all(
            source in heard
            for source in (A, B)
            if was[source] != (counts.of(source), counts.notes_on(source))
        )

    for source in (A, B):
        slices = sum(row.slices.get(source, 0) for row in last.values())
        nodes = sum(row.is_node and source in row.slices for row in last.values())
        assert counts.of(source) == Published(slices, nodes)
        notes = {text for row in last.values() for about, text in row.notes if about == source}
        assert counts.notes_on(source) == tuple(sorted(notes))
    assert counts.nodes == sum(row.is_node and bool(row.slices) for row in last.values())
    total = sum(sum(row.slices.values()) for row in last.values())
    assert counts.slices_of(SourceKind.CONFIG) == total


def test_every_word_has_a_meaning() -> None:
    """The reference lists all reasons of events and conditions."""
    assert set(EVENTS) == set(Reason)
    assert set(CONDITIONS) == set(Condition)

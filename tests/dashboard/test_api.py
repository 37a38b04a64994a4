"""The JSON API has the data of the commands, for the present cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from tests.dashboard.small_world import DRIVER, create, device, resource_slice, set_phase
from tests.dashboard.visit import BEARER, Visit, visit

from dryrack.client.endpoints import (
    CLAIMS,
    COSCHEDULING_POD_GROUPS,
    DEFINITIONS,
    PODS,
    SLICES,
)
from dryrack.cluster import DECISION_KINDS, SeededChance, read_snapshot
from dryrack.cluster.rights import MANIFESTS
from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import ResourceClaim, ResourceSlice
from dryrack.placement import (
    ExplainDocuments,
    Settings,
    World,
    claims_of,
    devices_of,
    gangs_of,
    summary_of,
)

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw


def devices(fleet: Raw) -> dict[str, Raw]:
    """Return the devices of the map by node and name, from its columns."""
    columns = fleet["devices"]
    found = {}
    for n in range(len(columns["pool"])):
        where = fleet["nodes"]["name"][columns["node"][n]]
        name = fleet["names"][columns["name"][n]]
        found[f"{where}/{name}"] = {
            "pool": fleet["pools"]["name"][columns["pool"][n]],
            "model": fleet["models"][columns["model"][n]],
            "state": fleet["states"][columns["state"][n]],
        }
    return found


def test_the_map_has_every_device_with_its_state() -> None:
    """By node, with the model, and the nodes with their zones."""

    async def story(page: Visit) -> None:
        fleet = await page.get("fleet")

        assert devices(fleet)["rack-1/gpu-0"]["state"] == "allocated"
        assert {each["state"] for name, each in devices(fleet).items() if name[-1] == "1"} == {
            "free"
        }
        assert devices(fleet)["rack-2/gpu-0"]["model"] == "Example 80GB"
        assert fleet["nodes"] == {
            "name": ["rack-1", "rack-2"],
            "zone": ["zone-a", "zone-b"],
            "rack": ["", ""],
            "instanceType": ["", ""],
            "ready": [True, True],
            "cordoned": [False, False],
        }
        assert fleet["pools"] == {"driver": [DRIVER, DRIVER], "name": ["rack-1", "rack-2"]}

    visit(story)


def test_the_summary_is_that_of_the_command() -> None:
    """The summary has free devices, their distribution over nodes, and the fragmentation."""

    async def story(page: Visit) -> None:
        [told] = (await page.get("fleet"))["summary"]
        listed = (await page.client.list(SLICES)).items
        slices = [decode(each, ResourceSlice) for each in listed]
        claims = [decode(e, ResourceClaim) for e in (await page.client.list(CLAIMS)).items]
        [summary] = summary_of(devices_of(slices, claims))

        assert told == summary.document() | {
            "states": {"free": 3, "allocated": 1},
            "fragmentation": 0.333,
        }

    visit(story)


def test_a_device_is_prepared_when_its_pod_runs() -> None:
    """The kubelet starts nothing before the devices are prepared."""

    async def story(page: Visit) -> None:
        await set_phase(page.client, "train", "Running")

        assert devices(await page.get("fleet"))["rack-1/gpu-0"]["state"] == "prepared"

    visit(story)


def test_claims_and_gangs_are_those_of_the_commands() -> None:
    """Document for document."""

    async def story(page: Visit) -> None:
        claims = [decode(e, ResourceClaim) for e in (await page.client.list(CLAIMS)).items]
        pods = [decode(each, Pod) for each in (await page.client.list(PODS)).items]

        told = (await page.get("claims"))["claims"]
        assert told == [each.document() for each in claims_of(claims, pods)]
        assert [each["state"] for each in told] == ["pending", "reserved"]
        told = (await page.get("gangs"))["gangs"]
        assert told == [each.document() for each in gangs_of(pods)]
        assert [each["status"] for each in told] == ["gathering"]

    visit(story)


def test_gangs_of_different_dialects_are_listed_together() -> None:
    """A cluster may have pods with labels and PodGroups of scheduler-plugins at once."""

    async def story(page: Visit) -> None:
        definition = yaml.safe_load((MANIFESTS / "podgroups.yaml").read_text())
        group = {"metadata": {"name": "group", "namespace": "team"}, "spec": {"minMember": 3}}
        await page.client.create(DEFINITIONS, definition)
        await page.client.create(COSCHEDULING_POD_GROUPS, group)
        told = (await page.get("gangs"))["gangs"]
        assert [each["name"] for each in told] == ["group", "pair"]
        assert len({each["dialect"] for each in told}) == 2

    visit(story)


def test_pods_that_wait_can_be_asked_for_alone() -> None:
    """The rows have the reason."""

    async def story(page: Visit) -> None:
        everyone = (await page.get("pods"))["pods"]
        waiting = (await page.get("pods?pending"))["pods"]

        assert [each["name"] for each in everyone] == ["half", "train", "waits"]
        assert [each["name"] for each in waiting] == ["half", "waits"]
        assert waiting[1]["claims"] == ["four"]
        assert waiting[0]["gang"] == "pair"

    visit(story)


@pytest.mark.parametrize(
    "subject",
    ["pod/team/waits", "pod/team/train", "claim/team/one", "claim/team/four", "gang/team/pair"],
)
def test_explanations_are_those_of_the_command(subject: str) -> None:
    """The document that `dryrack explain -o json` prints of the same cluster."""

    async def story(page: Visit) -> None:
        world = World.of((await read_snapshot(page.client, DECISION_KINDS)).objects)
        cases = ExplainDocuments(world=world, settings=lambda: Settings(chance=SeededChance()))
        kind, _, name = subject.partition("/")

        document = cases.of(kind, name).document
        found = await page.get(f"explain/{subject}")
        assert {key: found[key] for key in document} == document
        assert set(found) - set(document) == {"decisions", "seconds", "current", "canTry"}

    visit(story)


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("explain/pod/team/wait", 404, "pod 'team/wait' not found, or it has ended; did you mean"),
        ("explain/gang/team/none", 404, "gang 'team/none' not found"),
        ("explain/node/team/a", 404, "Not Found"),
        ("nothing", 404, "Not Found"),
    ],
)
def test_what_is_not_there_is_told(path: str, status: int, words: str) -> None:
    """The error is JSON, with a similar name."""

    async def story(page: Visit) -> None:
        async with page.http.get(f"/api/v1/{path}", headers=BEARER) as response:
            assert response.status == status
            assert words in (await response.json())["error"]

    visit(story)


def test_nothing_is_asked_of_the_cluster_before_somebody_looks() -> None:
    """And nothing any more a while after the last visit."""

    async def story(page: Visit) -> None:
        async with page.http.get("/", headers=BEARER) as response:
            assert response.status == 200
        await page.clock.advance(600)
        assert page.road.asked == []

        await page.get("claims")
        await page.clock.advance(120)
        asked = len(page.road.asked)
        await page.clock.advance(3600)
        assert len(page.road.asked) == asked > 0

        await set_phase(page.client, "train", "Running")
        await page.get("pods")
        await page.clock.advance(1)
        running = [
            each["name"] for each in (await page.get("pods"))["pods"] if each["phase"] == "Running"
        ]
        assert running == ["train"]

    visit(story)


def test_a_cluster_that_shows_nothing_is_told_with_the_remedy() -> None:
    """The next visit tries again."""
    from tests.client.planes import refusal

    async def story(page: Visit) -> None:
        page.road.refuse = lambda request: refusal(403, "Forbidden")
        async with page.http.get("/api/v1/fleet", headers=BEARER) as response:
            assert response.status == 503
            assert "dryrack dashboard --print-rbac | kubectl apply -f -" in await response.text()
        page.road.refuse = lambda request: None
        assert (await page.get("fleet"))["nodes"]["name"] == ["rack-1", "rack-2"]

    visit(story)


def test_the_map_can_be_grouped_by_any_attribute() -> None:
    """Which there are, and a column for those that are asked for."""

    async def story(page: Visit) -> None:
        numa = [device(f"gpu-{n}") for n in range(3)]
        for n, each in enumerate(numa[:2]):
            each["attributes"] |= {"numa": {"int": n % 2}, "nvlink": {"bool": True}}
        await create(page.client, SLICES, resource_slice("rack-3", numa))
        known = {each["name"]: each for each in (await page.get("attributes"))["attributes"]}
        fleet = await page.get("fleet?attribute=numa&attribute=nvlink&attribute=none")

        assert known["numa"] == {
            "name": "numa",
            "devices": 2,
            "distinct": 2,
            "values": {"0": 1, "1": 1},
        }
        assert known[f"{DRIVER}/model"]["values"] == {"Example 80GB": 7}
        column = [-1, -1, -1, -1, 0, 1, -1]
        assert fleet["attributes"]["numa"] == {"values": ["0", "1"], "column": column}
        assert fleet["attributes"]["nvlink"]["values"] == ["true"]
        assert set(fleet["attributes"]["none"]["column"]) == {-1}

    visit(story)

"""The output of `dryrack plan` and `dryrack simulate` on the dashboard."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer
from tests.cli.command import run
from tests.dashboard.test_api_usage import SCRIPTS, fields_of, words_of
from tests.dashboard.visit import BEARER, TOKEN, Visit, visit

from dryrack.base.errors import DryrackError
from dryrack.cli.files import UsageError
from dryrack.cli.hardware import load
from dryrack.dashboard import live_of_results, plan_document, read_plan, read_runs
from dryrack.dashboard.access import Access
from dryrack.dashboard.server import application

if TYPE_CHECKING:
    from pathlib import Path

JOBS = """name,arrival,duration,workers,gang,priority,queue,cpu,memory,devices
train-a,0,3600,2,true,0,research,16,64Gi,gpu.nvidia.com:8
notebook-1,120,1800,1,false,0,notebooks,4,16Gi,gpu.nvidia.com:1
notebook-2,180,1800,1,false,0,notebooks,4,16Gi,gpu.nvidia.com:1
never,240,1800,4,true,0,research,4,16Gi,gpu.nvidia.com:8
"""
GANG = "pod-group.scheduling.sigs.k8s.io"


def workload(gpus: int, replicas: int, gang: str = "") -> list[dict[str, Any]]:
    labels = {"app": "web"}
    if gang:
        labels |= {f"{GANG}/name": gang, f"{GANG}/min-available": str(replicas)}
    exactly = {"deviceClassName": "gpu.nvidia.com", "count": gpus}
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "3"}}}
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "gpus"},
            "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "containers": [container],
                        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}],
                    },
                },
            },
        },
    ]


def planned(folder: Path, objects: list[dict[str, Any]], *words: str) -> dict[str, Any]:
    file = folder / "objects.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    _, out, _ = run("plan", "-o", "json", "-f", str(file), *words)
    document: dict[str, Any] = json.loads(out)
    return document


def answers(document: dict[str, Any], *paths: str) -> list[Any]:
    """Return what the dashboard answers about a plan."""
    plan = read_plan(json.dumps(document).encode(), "plan.json")

    async def read() -> list[Any]:
        live = live_of_results(plan, load(()))
        results = {"runs": [], "plan": plan_document(plan)}
        async with asyncio.TaskGroup() as group:
            following = group.create_task(live.run(), name="state")
            server = TestServer(application(live, Access(TOKEN), results))
            await server.start_server(access_log=None, shutdown_timeout=0.1)
            found = []
            async with ClientSession(server.make_url("/")) as http:
                for path in paths:
                    async with http.get(f"/api/v1/{path}", headers=BEARER) as response:
                        assert response.status == 200, await response.text()
                        found.append(await response.json())
            following.cancel()
            await server.close()
        return found

    return asyncio.run(read())


def test_the_map_has_the_nodes_pods_and_devices_of_the_plan(tmp_path: Path) -> None:
    """Each pod is on its node with the devices that the plan gives it; all others are free."""
    document = planned(tmp_path, workload(1, 6, gang="team"), "--instance-types", "g6.12xlarge")
    fleet, pods, claims, gangs, results = answers(
        document, "fleet", "pods", "claims", "gangs", "results"
    )

    assert fleet["nodes"]["name"] == [each["name"] for each in document["nodes"]]
    used = {
        f"{device['driver']}/{device['pool']}/{device['device']}"
        for node in document["nodes"]
        for device in node["devices"]
    }
    [summary] = fleet["summary"]
    assert summary["states"] == {"free": 8 - len(used), "allocated": len(used)}
    assert summary["free"] == sum(node["left"]["gpu.nvidia.com"] for node in document["nodes"])
    assert {each["node"]: 0 for each in pods["pods"]}.keys() == set(fleet["nodes"]["name"])
    assert {f"{each['namespace']}/{each['name']}": each["node"] for each in pods["pods"]} == {
        pod: node["name"] for node in document["nodes"] for pod in node["pods"]
    }
    assert {device for each in claims["claims"] for device in each["devices"]} == used
    assert [(each["name"], each["status"]) for each in gangs["gangs"]] == [("team", "placed")]
    assert results["plan"]["cost"] == document["cost"]
    assert results["plan"]["nodes"][0]["left"] == document["nodes"][0]["left"]


def test_mig_partitions_of_a_plan_are_on_its_nodes(tmp_path: Path) -> None:
    """The label that enables them is in the plan."""
    objects = workload(1, 3)
    exactly = objects[0]["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    exactly["deviceClassName"] = "mig.nvidia.com"
    cel = {"expression": "device.attributes['gpu.nvidia.com'].profile == '3g.20gb'"}
    exactly["selectors"] = [{"cel": cel}]
    words = ("--instance-types", "p4d.24xlarge", "--node-labels", "dryrack.dev/mig=dynamic")
    document = planned(tmp_path, objects, *words)
    [claims] = answers(document, "claims")

    assert sum(len(each["devices"]) for each in claims["claims"]) == 3
    assert {each["state"] for each in claims["claims"]} == {"reserved"}


def test_existing_nodes_and_pods_that_are_left_over_are_shown_as_such(tmp_path: Path) -> None:
    """Only the used devices of an existing node are known; a pod that fits nowhere is pending."""
    labels = {"node.kubernetes.io/instance-type": "g6.12xlarge"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "old", "labels": labels},
        "status": {"allocatable": {"cpu": "48", "memory": "192Gi", "pods": "110"}},
    }
    words = ("--existing", "--instance-types", "g6.xlarge", "--max-cost", "0.01")
    document = planned(tmp_path, [*workload(1, 6), node], *words)
    fleet, pods = answers(document, "fleet", "pods?pending")

    assert fleet["models"] == ["existing node: only devices that the plan uses"]
    assert [each["node"] for each in document["existing"]] == ["old"]
    assert fleet["summary"][0]["states"] == {"allocated": 4}
    assert {f"{each['namespace']}/{each['name']}": each["why"] for each in pods["pods"]} == {
        each["pod"]: each["why"] for each in document["unplaceable"]
    }


def simulated(folder: Path, *words: str) -> bytes:
    trace = folder / "jobs.csv"
    trace.write_text(JOBS)
    _, out, _ = run("simulate", str(trace), "-o", "json", *words)
    return out.encode()


def test_the_runs_are_those_of_the_simulation(tmp_path: Path) -> None:
    """Every measure is as the command prints it; points of curves have all their fields."""
    content = simulated(
        tmp_path, "--fleet", "p5.48xlarge:2", "--policy", "kubernetes,best-fit", "-j", "1"
    )
    printed = json.loads(content)["runs"]
    shown = read_runs({"run.json": content})

    assert [each["policy"] for each in shown] == ["kubernetes", "best-fit"]
    for run_, each in zip(shown, printed, strict=True):
        curve = run_.pop("curve")
        points = each.pop("curve")
        assert run_.pop("file") == ""
        assert run_ == {"cost": None, "fairness": None} | each
        assert [point["allocated"] for point in curve] == [e.get("allocated", 0.0) for e in points]
        assert [point["at"] for point in curve] == [point["time"] for point in points]
    assert [each["file"] for each in read_runs({"a": content, "b": content})] == ["a"] * 2 + [
        "b"
    ] * 2


def test_the_page_uses_every_field_of_results(tmp_path: Path) -> None:
    """A measure that no script reads would be missing on the page."""
    document = planned(tmp_path, workload(1, 2), "--instance-types", "g6.12xlarge")
    [found] = answers(document, "results")
    found["runs"] = read_runs({"r": simulated(tmp_path, "--fleet", "p5.48xlarge:2", "-j", "1")})
    maps = {"byQueue", "byDevices", "byModel", "left"}
    names = set(fields_of(without_keys(found, maps)))
    words = set[str]().union(*map(words_of, SCRIPTS))

    # Each new node is one node.
    assert sorted(names - words - {"count"}) == []


def without_keys(value: Any, maps: set[str]) -> Any:
    """Return a JSON value whose maps have no names of the trace."""
    if isinstance(value, dict):
        return {
            key: list(each.values()) if key in maps else without_keys(each, maps)
            for key, each in value.items()
        }
    return [without_keys(each, maps) for each in value] if isinstance(value, list) else value


def test_a_cluster_has_no_results() -> None:
    """The page then has no view of results."""

    async def story(page: Visit) -> None:
        assert await page.get("results") == {"runs": [], "plan": None}

    visit(story)


@pytest.mark.parametrize(
    ("option", "content", "words"),
    [
        ("--plan", "{}", "not a plan: Object missing required field `nodes`"),
        ("--plan", "no JSON", "not a plan: JSON is malformed"),
        ("--simulation", "{}", "not the result of a simulation: Object missing required field"),
        ("--simulation", '{"runs": []}', "no run of this simulation ended"),
        (
            "--simulation",
            '{"runs": [{"policy": 1}]}',
            "not the result of a simulation: Expected `str`, got `int` - at `$.policy`",
        ),
    ],
)
def test_another_file_is_an_error_with_the_fix(
    tmp_path: Path, option: str, content: str, words: str
) -> None:
    """The message names the file and the command that writes such a file."""
    file = tmp_path / "result.json"
    file.write_text(content)
    with pytest.raises(DryrackError) as error:
        run("dashboard", option, str(file))

    assert f"{file}: {words}" in str(error.value)
    assert "name a file with the output of: dryrack" in str(error.value)


def test_a_plan_with_a_type_outside_the_catalog_names_the_option(tmp_path: Path) -> None:
    """The plan may have been made with a file of instance types."""
    document = planned(tmp_path, workload(1, 2), "--instance-types", "g6.12xlarge")
    document["nodes"][0]["instanceType"] = "my-type"
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(document))
    with pytest.raises(DryrackError, match=r"no instance type 'my-type'.*--catalogue-file FILE"):
        run("dashboard", "--plan", str(file))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--plan", "p", "--context", "lab"), "--plan and --simulation show results"),
        (("--catalogue-file", "c"), "--catalogue-file describes the nodes of --plan"),
    ],
)
def test_options_that_exclude_each_other_are_refused(words: tuple[str, ...], message: str) -> None:
    """Before anything is read."""
    with pytest.raises(UsageError, match=message):
        run("dashboard", *words)

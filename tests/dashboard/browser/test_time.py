"""The time axis, fragmentation, and results in a browser: the page shows what the API has."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp.test_utils import TestServer
from tests.dashboard.test_results import simulated

from dryrack.cli.hardware import load
from dryrack.dashboard import live_of_results, read_runs
from dryrack.dashboard.access import Access
from dryrack.dashboard.server import application

if TYPE_CHECKING:
    from pathlib import Path

    from tests.dashboard.browser.chromium import Tab
    from tests.dashboard.browser.conftest import Look

pytestmark = pytest.mark.real

TOKEN = "b" * 48


async def api(tab: Tab, path: str) -> Any:
    return await tab.js(f"fetch('api/v1/{path}').then(answer => answer.json())")


async def row(tab: Tab, title: str) -> list[str]:
    """Return the cells of the row with this title, without the title."""
    rows = "[...document.querySelectorAll('main tbody tr')]"
    found = f"{rows}.find(row => row.querySelector('th')?.innerText === {json.dumps(title)})"
    await tab.until(f"Boolean({found})")
    cells: list[str] = await tab.js(f"[...{found}.querySelectorAll('td')].map(e => e.innerText)")
    return cells


def test_the_history_shows_what_differs_between_both_ends(look: Look) -> None:
    """The states at the begin and now, the delay of each gang, and every change in the range."""

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.go("#/history")
        before = await row(tab, "From")
        after = await row(tab, "To")
        timeline = await api(tab, "timeline")
        first = timeline["moments"][0]["revision"]
        found = await api(tab, f"compare?from={first}")
        states = list({**found["from"]["states"], **found["to"]["states"]})
        assert before == [str(found["from"]["states"].get(each, 0)) for each in states]
        assert after == [str(found["to"]["states"].get(each, 0)) for each in states]
        for kind in ("pods", "claims", "devices"):
            count = len(found[kind]["changed"])
            await tab.has(f"{kind.capitalize()}: {count} differ", "main")
        for gang in timeline["gangs"]:
            await tab.has(f"{gang['namespace']}/{gang['name']}", ".gangs")
        await tab.has("waits since", ".gangs")

        # The range is part of the address.
        last = timeline["moments"][-1]["revision"]
        await tab.go(f"#/history?from={last}&to={last}")
        await tab.has("Both ends are the same moment", "main")
        await tab.js(
            "const slider = document.querySelector('.ends input'); slider.value = 0;"
            "slider.dispatchEvent(new Event('input'))"
        )
        await tab.until(f"location.hash.includes('from={first}')")

    look(story)


def test_the_page_says_how_many_pods_to_move(look: Look) -> None:
    """The numbers are those of the answer, and pods that cannot be moved are listed."""

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.go("#/fragmentation")
        section = "[...document.querySelectorAll('.part')].find(e => e.innerText.startsWith("
        section += "'gpu.example.com'))"
        await tab.until(f"Boolean({section})")
        await tab.js(f"{section}.querySelector('button').click()")
        found = await api(tab, "defragment/gpu.example.com")
        await tab.until(f"Boolean({section}.querySelector('.helps'))")
        text = await tab.js(f"{section}.innerText")
        assert f"{found['whole']} of {found['nodes']} nodes" in text
        assert [each["name"] for each in found["fixed"]] == ["team/train"]
        assert "1 pod or claim cannot be moved" in text
        # The bars are the numbers of nodes.
        [summary] = [
            each
            for each in (await api(tab, "fleet"))["summary"]
            if each["driver"] == "gpu.example.com"
        ]
        label = await tab.js(f"{section}.querySelector('.bars').getAttribute('aria-label')")
        for each in summary["nodes"]:
            assert f"{each['nodes']} nodes with {each['free']} free" in label

    look(story)


def test_two_runs_are_side_by_side(look: Look, tmp_path: Path) -> None:
    """Each measure of both runs with its difference; the address has the runs."""
    content = simulated(tmp_path, "--fleet", "p5.48xlarge:2", "--fleet", "p5.48xlarge:4", "-j", "1")
    runs = read_runs({"runs.json": content})

    async def story(look: Look) -> None:
        tab = look.tab
        live = live_of_results(None, load(()))
        server = TestServer(application(live, Access(TOKEN), {"runs": runs, "plan": None}))
        await server.start_server(access_log=None, shutdown_timeout=0.1)
        try:
            await tab.open(str(server.make_url(f"/?token={TOKEN}")))
            # Without a plan the map has nothing to show.
            await tab.until("location.hash.startsWith('#/results')")
            never = [each["failed"] for each in runs]
            assert await row(tab, "Pods that never ran") == [
                str(never[0]),
                str(never[1]),
                f"−{never[0] - never[1]}, better",
            ]
            costs = [each["cost"]["total"] for each in runs]
            shown = await row(tab, "Cost of the nodes, USD")
            assert shown == [
                f"{costs[0]:,.2f}",
                f"{costs[1]:,.2f}",
                f"+{costs[1] - costs[0]:,.2f}, worse",
            ]
            await tab.has(runs[0]["unplaced"][0]["reason"], "main")
            await tab.go("#/results?a=1&b=0")
            await tab.until("document.querySelectorAll('.sides select')[0].value === '1'")
            swapped = await row(tab, "Pods that never ran")
            assert swapped[2] == f"+{never[0] - never[1]}, worse"
            assert await tab.js("document.querySelector('.curves canvas').width > 0")
        finally:
            # The page would complain of a server that is gone.
            await tab.open("about:blank")
            await tab.until("location.href === 'about:blank'")
            await server.close()

    look(story)

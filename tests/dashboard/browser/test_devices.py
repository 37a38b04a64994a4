"""The table of all devices: what the map shows, for keys and screen readers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.cli.command import dryrack
from tests.dashboard.browser.requirements import axe_core
from tests.dashboard.browser.scene import resource_slice

from dryrack.client.endpoints import SLICES

if TYPE_CHECKING:
    from tests.dashboard.browser.chromium import Tab
    from tests.dashboard.browser.conftest import Look

pytestmark = pytest.mark.real

ROWS = "document.querySelectorAll('main tbody tr')"
COUNT = "Number(document.querySelector('main .count').textContent.split(' ').at(-1))"


async def _filter(tab: Tab, text: str) -> None:
    await tab.js("document.querySelector('main input[type=search]').select()")
    await tab.type(text)


def test_the_table_has_what_the_map_has(look: Look) -> None:
    """As many devices in each state as the legend counts, found by the name of the state."""

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.has("withdrawn", ".legend")
        legend: dict[str, int] = await tab.js(
            "Object.fromEntries([...document.querySelectorAll('.legend li')]"
            ".map((each) => each.innerText.trim().split(/\\s+/))"
            ".map((words) => [words.slice(0, -1).join(' '), Number(words.at(-1))]))"
        )
        await tab.go("#/devices")
        await tab.until(f"{COUNT} === {sum(legend.values())}")
        shown = await tab.js(
            "[...document.querySelectorAll('main tbody .state')].map((each) => each.innerText)"
        )
        assert {state: shown.count(state) for state in legend} == legend

    look(story)


def test_a_device_is_found_and_opened_by_keys(look: Look) -> None:
    """The filter says how many are left, and a row leads to the device on the map."""

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.press("g")
        await tab.press("d")
        await tab.until("location.hash === '#/devices'")
        await tab.has("gpu-shared", "main")
        await _filter(tab, "node-3 gpu-2")
        await tab.until(f"{ROWS}.length === 1")
        assert await tab.js("document.querySelector('#announcement').textContent") == "1 row shown"
        while not await tab.js("document.activeElement.closest('tbody') !== null"):
            await tab.press("Tab")
        await tab.press("Enter")
        await tab.until("location.hash === '#/fleet/gpu.example.com/node-3/gpu-2'")

    look(story)


def test_a_row_follows_its_device(look: Look) -> None:
    """A device that breaks is seen to break here, too."""

    async def story(look: Look) -> None:
        tab = look.tab
        fault = ("--kubeconfig", look.kubeconfig)
        await tab.go("#/devices")
        await _filter(tab, "node-3 gpu-3")
        await tab.has("free", "main tbody .state")
        device = ("fault", "device", "node-3/gpu-3")
        assert dryrack(*device, "unhealthy", *fault).returncode == 0
        await tab.has("unhealthy", "main tbody .state")
        assert dryrack(*device, "ok", *fault).returncode == 0
        await tab.has("free", "main tbody .state")

    look(story)


def test_many_devices_come_in_pages(look: Look) -> None:
    """No page has more rows than a browser likes, and all devices are on one of them."""

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.go("#/devices")
        await tab.has("gpu-shared", "main")
        assert await tab.js("document.querySelector('.pager').hidden")
        for pool in ("many-1", "many-2"):
            devices = [{"name": f"d-{number}"} for number in range(128)]
            await look.client.create(SLICES, resource_slice("many.example.com", pool, devices))
        await tab.until(f"{COUNT} > 256")
        count = await tab.js(COUNT)
        await tab.has(f"1 to 200 of {count}", ".pager")
        first = await tab.js("document.querySelector('main tbody').innerText")
        await tab.click(".pager button:last-child")
        await tab.has(f"201 to {count} of {count}", ".pager")
        assert await tab.js(f"{ROWS}.length") == count - 200
        assert await tab.js("document.querySelector('main tbody').innerText") != first
        await tab.js(f"{axe_core()}; true")
        violations = "axe.run(document).then((found) => found.violations.map((each) => each.id))"
        assert await tab.js(violations) == []
        await _filter(tab, "many-2/d-127")
        await tab.until(f"{ROWS}.length === 1")
        for pool in ("many-1", "many-2"):
            await look.client.delete(SLICES, f"{pool}-slice")
        await tab.until(f"{COUNT} === {json.dumps(count - 256)}")

    look(story)

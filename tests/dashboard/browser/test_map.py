"""The map: filters, colors, collapsed devices, and partitions as slices."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from tests.dashboard.browser.requirements import axe_core
from tests.dashboard.browser.scene import resource_slice

from dryrack.client.endpoints import CLAIMS, SLICES
from dryrack.dashboard.bundle import STATIC

if TYPE_CHECKING:
    from pathlib import Path

    from tests.dashboard.browser.chromium import Tab
    from tests.dashboard.browser.conftest import Look

pytestmark = pytest.mark.real

NICS = "nic.example.com"
COUNTS = """Object.fromEntries([...document.querySelectorAll('%s .entry')].map((each) =>
  [each.querySelector('.label').innerText, Number(each.querySelector('b').innerText)]))"""
# The sum of the colors of the map, which changes if devices are dimmed.
INK = """(() => {
  const map = document.querySelector('canvas.map');
  const {data} = map.getContext('2d').getImageData(0, 0, map.width, map.height);
  let sum = 0;
  for (let n = 0; n < data.length; n += 4) {
    const [red, green, blue] = data.subarray(n, n + 3);
    sum += Math.max(red, green, blue) - Math.min(red, green, blue);
  }
  return sum;
})()"""
FRAMES = "new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"


async def _focus_on(tab: Tab, expression: str) -> None:
    await tab.until(expression)
    await tab.js(f"{expression}.focus()")


def test_the_legend_and_the_cards_filter_the_map(look: Look) -> None:
    """The address has the filter, other devices are dimmed, and the focus stays on the button."""

    async def story(look: Look) -> None:
        tab = look.tab
        state = (
            "[...document.querySelectorAll('.legend button')]"
            ".find((each) => each.innerText.startsWith('prepared'))"
        )
        await tab.has("withdrawn", ".legend")
        await tab.js(FRAMES)
        before = await tab.js(INK)
        await _focus_on(tab, state)
        await tab.press("Enter")
        await tab.until("location.hash === '#/fleet?state=prepared'")
        await tab.until(f"{state}.getAttribute('aria-pressed') === 'true'")
        assert await tab.js(f"document.activeElement === {state}")
        await tab.until(f"{INK} < {before}")
        await tab.has("state: prepared", ".set-filters")
        await tab.click(".summary .model")
        await tab.until("location.hash.includes('model=')")
        await tab.js(f"{axe_core()}; true")
        violations = "axe.run(document).then((found) => found.violations.map((each) => each.id))"
        assert await tab.js(violations) == []
        await tab.click(".set-filters button")
        await tab.click(".set-filters button")
        await tab.until("location.hash === '#/fleet'")
        await tab.until(f"Math.abs({INK} - {before}) < {before} / 50")

    look(story)


def test_a_filter_is_chosen_by_its_value(look: Look) -> None:
    """The field offers the namespaces, zones, and pools of the devices."""

    async def story(look: Look) -> None:
        tab = look.tab
        field = "document.querySelector('.filter-field input')"
        await tab.has("withdrawn", ".legend")
        await _focus_on(tab, field)
        await tab.until("document.querySelector('option[value=\"namespace: team\"]')")
        await tab.type("team")
        await tab.press("Enter")
        await tab.until("location.hash === '#/fleet?namespace=team'")
        await _focus_on(tab, field)
        await tab.type("nowhere")
        await tab.press("Enter")
        await tab.until("document.querySelector('#announcement').innerText.includes('nowhere')")

    look(story)


def test_colors_count_the_devices_of_each_owner(look: Look) -> None:
    """The legend has as many devices of a namespace as the claims of the API."""

    async def story(look: Look) -> None:
        tab = look.tab
        claims = (await look.client.list(CLAIMS)).items
        results = {
            (each["driver"], each["pool"], each["device"])
            for claim in claims
            for each in claim.get("status", {})
            .get("allocation", {})
            .get("devices", {})
            .get("results", ())
        }
        await tab.go("#/fleet?color=namespace")
        await tab.until("document.querySelector('.owned .entry')")
        assert await tab.js(COUNTS % ".owned") == {"team": len(results)}

    look(story)


def test_devices_that_accompany_accelerators_are_collapsed(look: Look) -> None:
    """The legend counts them after a click on their button, and the address keeps them open."""

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.has("withdrawn", ".legend")
        before = await tab.js(COUNTS % ".legend")
        devices = [{"name": f"nic-{n}"} for n in range(5)]
        await look.client.create(SLICES, resource_slice(NICS, "nics", devices, nodeName="node-1"))
        await tab.has(f"{NICS} 5", ".kinds")
        assert await tab.js(COUNTS % ".legend") == before
        await _focus_on(tab, "document.querySelector('.kinds button')")
        await tab.press("Enter")
        await tab.until(f"location.hash === '#/fleet?open={NICS}'")
        await tab.until("document.activeElement.getAttribute('aria-expanded') === 'true'")
        await tab.until(f"({COUNTS % '.legend'}).free === {before['free'] + 5}")
        await tab.go(f"#/fleet/{NICS}/nics/nic-0")
        await tab.until(f"({COUNTS % '.legend'}).free === {before['free'] + 5}")
        await tab.go("#/fleet")
        await look.client.delete(SLICES, "nics-slice")
        await tab.until(f"!document.querySelector('.kinds').innerText.includes('{NICS}')")

    look(story)


def test_a_selected_device_stays_selected_while_others_change(look: Look) -> None:
    """The map keeps the focus and the selection when devices come and go."""

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.go("#/fleet/gpu.example.com/node-1/gpu-0")
        await tab.has("gpu-0", ".panel")
        await _focus_on(tab, "document.querySelector('canvas.map')")
        await look.client.create(SLICES, resource_slice("new.example.com", "new", [{"name": "x"}]))
        await tab.until(
            "[...document.querySelectorAll('.summary')].some((e) => e.innerText.includes('new.ex'))"
        )
        assert await tab.js("document.activeElement.className") == "map"
        await tab.press("ArrowRight")
        await tab.until("location.hash === '#/fleet/gpu.example.com/node-1/gpu-1'")
        await look.client.delete(SLICES, "new-slice")

    look(story)


LANES = """
import { lanesOf, nodesOf } from "./layout.js";
import { auxiliaryDrivers } from "./kinds.js";
const device = (name, model, start, width) => ({
  id: name, name, model, node: "n", driver: "gpu.example.com", pool: "n", state: "free", level: -1,
  counterSet: "card", placement: { start, width, of: 8, memory: 0 } });
const devices = [
  device("a", "1g", 0, 1), device("b", "1g", 1, 1),
  device("c", "4g", 4, 4), device("d", "8g", 0, 8),
  device("e", "x", -1, 3), device("f", "x", -1, 3), device("g", "x", -1, 3) ];
const place = (each) => [each.device.name, each.start * 8];
const lanes = lanesOf(devices).map((lane) => lane.map(place));
const fleet = { devices: new Map(devices.map((each) => [each.id, each])) };
const { tiles } = nodesOf(fleet, new Set());
const order = [10, 9, 1].map((n) => ({ ...device(`x${n}`, "", 0, 1), node: `node-${n}` }));
const names = nodesOf({ devices: new Map(order.map((each) => [each.id, each])) }, new Set());
console.log(JSON.stringify({
  lanes,
  frames: tiles[0].frames.length,
  cells: tiles[0].cells.length,
  order: names.tiles.map((each) => each.node),
  auxiliary: auxiliaryDrivers(["gpu.nvidia.com", "dra.net", "dra.cpu", "gpu.example.net",
    "compute-domain.nvidia.com", "nic.example.com"]),
  only: auxiliaryDrivers(["dra.net", "dra.cpu"]),
}));
"""


def test_partitions_are_in_lanes_at_their_places(tmp_path: Path) -> None:
    """The widest ones are first, partitions of a lane do not overlap, and nodes are in order."""
    for name in ("layout.js", "kinds.js"):
        (tmp_path / name).write_text((STATIC / "map" / name).read_text())
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "try.js").write_text(LANES)
    done = subprocess.run(
        ["node", "try.js"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)

    assert found == {
        "lanes": [
            *([["d", 0]], [["c", 4]]),
            *([["e", 0], ["f", 3]], [["g", 0]]),
            [["a", 0], ["b", 1]],
        ],
        "frames": 1,
        "cells": 7,
        "order": ["node-1", "node-9", "node-10"],
        "auxiliary": ["compute-domain.nvidia.com", "dra.cpu", "dra.net", "nic.example.com"],
        "only": [],
    }

"""The page in a real browser: every view, live changes, markup in names, keys, accessibility."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.command import dryrack
from tests.dashboard.browser.relay import Relay
from tests.dashboard.browser.requirements import axe_core
from tests.dashboard.browser.scene import MARKUP, VIEWS, claim, pod
from yarl import URL

from dryrack.client.endpoints import CLAIMS, PODS

if TYPE_CHECKING:
    from tests.dashboard.browser.chromium import Tab
    from tests.dashboard.browser.conftest import Look

pytestmark = pytest.mark.real

WIDTHS = (360, 1280)


@pytest.mark.parametrize("address", VIEWS)
def test_every_view_opens_by_its_address(look: Look, address: str) -> None:
    """With what it is about, and nothing on the console."""

    async def story(look: Look) -> None:
        await look.tab.go(address)
        await look.tab.has(VIEWS[address], "main")

    look(story)


def test_a_pod_goes_from_pending_to_running_while_it_is_looked_at(look: Look) -> None:
    """Nobody reloads: the list, the pod and the map follow the cluster."""

    async def story(look: Look) -> None:
        tab = look.tab
        name = "team/watched"
        await look.client.create(CLAIMS, claim("watched", 1))
        await look.client.create(
            PODS, pod("watched", "watched", schedulingGates=[{"name": "example.com/wait"}])
        )
        await tab.go("#/pending")
        await tab.has(name, "main")
        await tab.go("#/pods/team/watched")
        await tab.has("Pending", "main .heading")
        found = await look.client.get(PODS, "watched", "team")
        found["spec"]["schedulingGates"] = []
        await look.client.update(PODS, found)
        await tab.has("Running", "main .heading")
        await tab.go("#/pending")
        await tab.until(f"!document.querySelector('main').innerText.includes('{name}')")
        await look.client.delete(PODS, "watched", namespace="team")
        await look.client.delete(CLAIMS, "watched", namespace="team")

    look(story)


def test_a_device_that_breaks_is_seen_to_break(look: Look) -> None:
    """In its details and in the legend, and it is well again when it is."""

    async def story(look: Look) -> None:
        tab = look.tab
        device = "node-3/gpu-3"
        fault = ("--kubeconfig", look.kubeconfig)
        await tab.go("#/fleet/gpu.example.com/node-3/gpu-3")
        await tab.has("free", ".panel .state")
        assert dryrack("fault", "device", device, "unhealthy", *fault).returncode == 0
        await tab.has("unhealthy", ".panel .state")
        await tab.has("unhealthy", ".legend")
        assert dryrack("fault", "device", device, "ok", *fault).returncode == 0
        await tab.has("free", ".panel .state")

    look(story)


# Where a text of the cluster's is shown in full, and which part of the page has it.
MARKUP_SHOWN = {
    "#/fleet/attack.example.com/attack/odd": (MARKUP[:64], ".panel"),
    "#/events": (MARKUP, "main td.text"),
    "#/pods/team/train": (MARKUP, "main .happenings"),
    "#/claims/team/orphan": (MARKUP, "main"),
    "#/pending": (MARKUP, "main"),
    "#/pods/team/elsewhere": (MARKUP, "main"),
}


def test_markup_in_the_cluster_is_text_on_the_page(look: Look) -> None:
    """Attributes, models, messages of events and of conditions: nothing becomes an element."""

    async def story(look: Look) -> None:
        tab = look.tab
        for address, (text, place) in MARKUP_SHOWN.items():
            await tab.go(address)
            # A table may have it in any row.
            await tab.until(
                f"[...document.querySelectorAll({json.dumps(place)})]"
                f".some((each) => each.innerText.includes({json.dumps(text)}))"
            )
            assert await _made_of_markup(tab) == 0, address
        for address in VIEWS:
            await tab.go(address)
            await tab.has(VIEWS[address], "main")
            assert await _made_of_markup(tab) == 0, address
        assert "broken" not in await tab.js("document.title")

    look(story)


async def _made_of_markup(tab: Tab) -> int:
    count: int = await tab.js("document.querySelectorAll('main img, main b[onclick]').length")
    return count


def test_everything_can_be_done_by_keys(look: Look) -> None:
    """Search, the map, the details, the views and the help, and no mouse."""

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.press("/")
        await tab.type("waits")
        await tab.has("team/waits", "#results")
        await tab.press("Enter")
        await tab.until("location.hash === '#/pods/team/waits'")
        await tab.press("g")
        await tab.press("f")
        await tab.until("location.hash === '#/fleet'")
        await _tab_to(tab, "canvas.map")
        await tab.press("ArrowRight")
        await tab.until("location.hash.startsWith('#/fleet/')")
        before = await tab.js("location.hash")
        await tab.press("ArrowRight")
        await tab.until(f"location.hash !== {json.dumps(before)}")
        assert await tab.js("document.querySelector('#announcement').textContent")
        await tab.press("Escape")
        await tab.until("location.hash === '#/fleet'")
        assert await tab.js("document.activeElement.className") == "map"
        await tab.press("?")
        await tab.until("document.querySelector('dialog').open")
        await tab.press("Escape")
        await tab.until("!document.querySelector('dialog').open")

    look(story)


def test_keys_that_come_quickly_are_all_heard(look: Look) -> None:
    """Two in one breath, before the page hears of its new address, go two devices far."""

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.go("#/fleet/gpu.example.com/node-1/gpu-0")
        await tab.has("node-1", "main")
        await tab.js(
            "for (let n = 0; n < 2; n++) document.querySelector('canvas.map')"
            ".dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}))"
        )
        await tab.until("location.hash === '#/fleet/gpu.example.com/node-1/gpu-2'")

    look(story)


async def _tab_to(tab: Tab, selector: str) -> None:
    for _ in range(60):
        await tab.press("Tab")
        if await tab.js(f"document.activeElement.matches({json.dumps(selector)})"):
            return
    raise AssertionError(f"the tab key never comes to {selector}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_keeps_anybody_out(look: Look, scheme: str) -> None:
    """Axe-core finds nothing: names, roles, order, contrast; in both themes and on a phone."""

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.scheme(scheme)
        await tab.js(f"{axe_core()}; true")
        for width in WIDTHS:
            await tab.size(width, 800)
            for address, text in VIEWS.items():
                await tab.go(address)
                await tab.has(text, "main")
                assert await _violations(tab) == [], (address, width)

    look(story)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_is_wider_than_its_window(look: Look, scheme: str, tmp_path: Path) -> None:
    """On a phone, a screen and a wall; DRYRACK_SCREENSHOTS names where the pictures are kept."""
    kept = Path(os.environ.get("DRYRACK_SCREENSHOTS") or tmp_path)
    kept.mkdir(parents=True, exist_ok=True)

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.scheme(scheme)
        for width in (360, 1280, 2560):
            await tab.size(width, 800)
            for address, text in VIEWS.items():
                await tab.go(address)
                await tab.has(text, "main")
                assert await tab.js("document.documentElement.scrollWidth") <= width, address
                name = re.sub(r"[^a-z0-9]+", "-", address.lower()).strip("-")[:80]
                (kept / f"{name}-{width}-{scheme}.png").write_bytes(await tab.screenshot())

    look(story)


async def _violations(tab: Tab) -> list[Any]:
    # The map is a canvas; what it shows is in the details, the legend and the announcements.
    found: list[Any] = await tab.js(
        "axe.run(document).then(found => found.violations.map("
        "each => [each.id, each.help, ...each.nodes.slice(0, 3).map(node => node.html)]))"
    )
    return found


def test_a_lost_connection_is_told_and_found_again(look: Look) -> None:
    """What is shown stays, with the time at which it was true."""

    async def story(look: Look) -> None:
        tab = look.tab
        real = URL(look.address)
        relay = Relay(real.port or 0)
        await relay.start()
        await tab.open(str(real.with_port(relay.port)))
        await tab.has("live", "#connection")
        await relay.cut()
        await tab.has("connection is lost", "#banner")
        await tab.has("LATEST-GPU-MODEL", "main")
        await relay.start()
        await tab.until("document.querySelector('#banner').hidden")
        await tab.has("live", "#connection")
        await relay.cut()
        # A browser notes every request that fails.
        await tab.open("about:blank")
        tab.complaints.clear()

    look(story)


def test_a_part_of_the_page_that_does_not_load_is_loaded_again(look: Look) -> None:
    """A network that changes meanwhile leaves nobody with a page that says Loading for ever."""

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.open("about:blank")
        await tab.call("Network.enable")
        await tab.call("Network.setBlockedURLs", urls=["*/static/page.*.js"])
        await tab.open(look.address)
        await tab.has("trying again", "main")
        await tab.call("Network.setBlockedURLs", urls=[])
        await tab.has("live", "#connection")
        await tab.call("Network.disable")
        # A browser notes every request that fails.
        tab.complaints.clear()

    look(story)


def test_a_change_is_tried_and_answered(look: Look) -> None:
    """Nine devices are more than a node has; four would fit."""

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.go("#/why/pod/team/waits")
        await tab.has("does not fit", "main")
        count = "document.querySelector('.trial [name=count]')"
        assert await tab.js(f"{count}.value") == "9"
        await tab.click(".trial [type=submit]")
        await tab.has("Change at least one value", ".answer")
        await tab.js(f"{count}.value = 1")
        await tab.click(".trial [type=submit]")
        await tab.has("fits with this change", ".answer")
        await tab.has("does not fit", ".compare section:first-child")
        await tab.has("would fit", ".compare section:last-child")
        await tab.js("document.querySelector('.trial [name=class]').value = 'no-such-class'")
        await tab.click(".trial [type=submit]")
        await tab.has("no-such-class", ".answer")
        tab.complaints.clear()

    look(story)


def test_the_map_is_grouped_by_any_attribute(look: Look) -> None:
    """The field offers those that devices have, and the address keeps what was chosen."""

    async def story(look: Look) -> None:
        tab = look.tab
        option = "document.querySelector('.grouping option[value^=\"attribute:\"]')"
        await tab.until(option)
        await tab.js(
            f"{option}.selected = true; "
            "document.querySelector('.grouping select').dispatchEvent(new Event('change'))"
        )
        await tab.until("location.hash.startsWith('#/fleet?group=attribute')")
        await tab.go("#/fleet?group=attribute%3Anothing.example.com%2Fnone")
        await tab.has("LATEST-GPU-MODEL", "main")

    look(story)


def test_the_slider_shows_what_the_fleet_looked_like(look: Look) -> None:
    """At its beginning there is no device; back at now there are all of them."""

    async def story(look: Look) -> None:
        tab = look.tab
        legend = "document.querySelector('.legend').innerText"
        await tab.go("#/fleet?at=now")
        await tab.has("moment", ".timeline")
        before = await tab.js("document.querySelector('.timeline input').max")
        await look.client.create(PODS, pod("newcomer", schedulingGates=[{"name": "x.com/y"}]))
        await tab.until(f"document.querySelector('.timeline input').max > {before}")
        await look.client.delete(PODS, "newcomer", namespace="team")
        now = await tab.js(legend)
        await tab.js(
            "const range = document.querySelector('.timeline input'); range.value = 0;"
            "range.dispatchEvent(new Event('input'))"
        )
        await tab.has("moment 1 of", ".timeline")
        await tab.until(f"{legend} !== {json.dumps(now)}")
        assert await tab.js("document.querySelector('.fleet-view').classList.contains('past')")
        await tab.click(".timeline [aria-label='Back to now']")
        await tab.until(f"{legend} === {json.dumps(now)}")
        assert await tab.js("document.querySelector('.timeline').hidden")

    look(story)


def test_everything_on_the_page_is_of_the_moment_of_its_address(look: Look) -> None:
    """Lists, badge, and panel show the past; an unknown moment is an error message."""

    async def story(look: Look) -> None:
        tab = look.tab
        revision = await tab.js(
            "fetch('api/v1/timeline').then(a => a.json()).then(a => a.moments[0].revision)"
        )
        await tab.go(f"#/pending?at={revision}")
        await tab.has("The page shows the past", "#banner")
        await tab.has("No pending pods", "main")
        assert not await tab.js("document.querySelector('nav .count')")
        await tab.go(f"#/fleet/gpu.example.com/node-1/gpu-0?at={revision}")
        await tab.has("did not exist at this moment", ".panel")
        await tab.go("#/pending?at=1")
        await tab.has("This moment cannot be shown", "#banner")
        await tab.has("the history begins later", "#banner")
        await tab.click("#banner a")
        await tab.until("document.querySelector('#banner').hidden")
        await tab.has("team/waits", "main")
        tab.complaints.clear()

    look(story)


def test_what_is_not_there_is_told(look: Look) -> None:
    """A deep link may be older than what it is about."""

    async def story(look: Look) -> None:
        await look.tab.go("#/claims/team/gone")
        await look.tab.until("document.querySelector('.problem')")
        # A browser notes every answer that is no success.
        look.tab.complaints.clear()

    look(story)

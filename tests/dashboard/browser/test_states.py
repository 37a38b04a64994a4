"""Every state of a device, shared capacity, long names and an empty fleet, in a browser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.command import dryrack
from tests.dashboard.browser.scene import DRIVER, LONG

if TYPE_CHECKING:
    from pathlib import Path

    from tests.dashboard.browser.conftest import Look

pytestmark = pytest.mark.real

STATES = {
    "partial/known": "incomplete",
    "partial/gone": "withdrawn",
    "shared/gpu-shared": "shared",
    f"{LONG}/{LONG[:63]}": "no node",
}
# By state, the picture of it in the legend, without its colours: dark or light alone.
_PICTURES = """Object.fromEntries([...document.querySelectorAll('.legend li')].map((each) => {
  const canvas = each.querySelector('canvas');
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const seen = Array.from({length: data.length / 4}, (_, n) => data[n * 4 + 3] > 100 ? 1 : 0);
  return [each.querySelector('.label').innerText, seen.join('')];
}))"""


@pytest.mark.parametrize(("device", "state"), STATES.items())
def test_a_state_is_told_in_the_details_and_in_the_legend(
    look: Look, device: str, state: str
) -> None:
    """A pool that lacks a slice, a device that nobody publishes any more, one that is shared."""

    async def story(look: Look) -> None:
        await look.tab.go(f"#/fleet/{DRIVER}/{device}")
        await look.tab.has(state, ".panel .state")
        await look.tab.has(state, ".legend")

    look(story)


def test_states_differ_by_more_than_their_colours(look: Look) -> None:
    """Whoever sees no colours tells them apart by their shapes."""

    async def story(look: Look) -> None:
        await look.tab.has("withdrawn", ".legend")
        pictures: dict[str, Any] = await look.tab.js(_PICTURES)
        assert {"free", "shared", "prepared", "incomplete", "withdrawn"} <= set(pictures)
        assert len(set(pictures.values())) == len(pictures), pictures

    look(story)


def test_shared_capacity_is_shown_as_a_level(look: Look) -> None:
    """In the details as a meter that a screen reader reads, too."""

    async def story(look: Look) -> None:
        await look.tab.go(f"#/fleet/{DRIVER}/shared/gpu-shared")
        await look.tab.has("team/half-of-one", ".panel")
        meter = "document.querySelector('.panel [role=meter]')"
        assert await look.tab.js(f"{meter}.getAttribute('aria-valuenow')") == "50"

    look(story)


@pytest.mark.parametrize("width", [360, 1280])
def test_long_names_stay_in_their_boxes(look: Look, width: int) -> None:
    """No text is drawn outside of the window, where nobody can read it."""

    async def story(look: Look) -> None:
        await look.tab.size(width, 800)
        addresses = (
            f"#/fleet/{DRIVER}/{LONG}/{LONG[:63]}",
            f"#/claims/team/{LONG}",
            f"#/pods/team/{LONG}",
        )
        for address in addresses:
            await look.tab.go(address)
            await look.tab.has(LONG[:63], "main")
            outside = await look.tab.js(
                "[...document.querySelectorAll('main h1, main h2, main dd, main .name')]"
                f".filter((each) => each.getBoundingClientRect().right > {width} + 1)"
                ".filter((each) => !each.closest('.table, .picture, .summary'))"
                ".map((each) => each.outerHTML.slice(0, 200))"
            )
            assert outside == [], address
        for view in ("#/devices", "#/slices", "#/claims", "#/pending"):
            await look.tab.go(view)
            await look.tab.has(LONG, "main")
            assert await look.tab.js(
                "document.querySelector('.table').scrollWidth"
                " <= document.querySelector('.table').clientWidth"
            ), view

    look(story)


def test_an_empty_fleet_says_how_devices_come(look: Look, tmp_path: Path) -> None:
    """Nothing is not the same as loading; every list says what it would show."""
    up = dryrack("up", "--detach", "--name", "empty")
    try:
        address = re.search(r"dashboard: (http://\S+)", up.stderr)
        assert address is not None, up.stderr

        async def story(look: Look) -> None:
            await look.tab.open(address[1])
            await look.tab.has("No nodes and no devices yet", "main")
            for view in ("pending", "claims", "gangs", "slices", "events"):
                await look.tab.go(f"#/{view}")
                await look.tab.has("No", "main .empty")
            await look.tab.open("about:blank")

        look(story)
    finally:
        dryrack("down", "--name", "empty")

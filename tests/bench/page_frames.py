"""
The dashboard in a browser: the time to its map, another grouping, and redraws while you drag.

    python -m tests.bench.page_frames [--nodes N ...]

`python -m tests.bench.page` runs it after the measurements of the server.

Nodes have eight devices each. Chromium draws without a graphics card, which is the slowest case.
Times are from the start of the navigation, with a server that knows the cluster. The time of the
processor is that of the main thread of the page: on a loaded machine, compare it instead.
A drag moves the pointer with every frame, for two seconds; a redraw is counted when the map clears
its canvas; 60 per second is the most that Chromium shows. A write is visible when the legend of the
map counts it.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

from aiohttp.test_utils import TestServer
from rich.console import Console
from tests.bench.page import LATENCY_SECONDS_MAX, fill
from tests.client.planes import CountedChance
from tests.dashboard.browser import requirements
from tests.dashboard.browser.chromium import opened
from tests.dashboard.small_world import allocation, claim
from tests.dashboard.visit import TOKEN

from dryrack.client.endpoints import CLAIMS
from dryrack.cluster.embedded import embedded
from dryrack.cluster.ports import SystemClock
from dryrack.dashboard.access import Access
from dryrack.dashboard.live import Live
from dryrack.dashboard.server import application

if TYPE_CHECKING:
    from tests.dashboard.browser.chromium import Tab

    from dryrack.client.client import Client

SIZES = (1_000, 10_000)
# Goals by number of nodes: seconds until the map is complete, and redraws per second.
MAP_SECONDS_MAX = {1_000: 1.5, 10_000: 4.0}
REDRAWS_MIN = {1_000: 55.0, 10_000: 25.0}
PAINT_SECONDS_MAX = 1.0
GROUPING_SECONDS_MAX = 0.3
# A longer task delays input that a person notices.
BLOCKED_SECONDS_MAX = 0.1
GROUPINGS = ("nothing", "instance type", "zone", "model")
WRITES = 40
_DRAGS = ("all of it", "nearer", "near")
_DRAG = """new Promise((resolve) => {
  const map = document.querySelector("canvas.map");
  const send = (type, x, y) => map.dispatchEvent(new PointerEvent(type, {
    pointerId: 1, clientX: x, clientY: y, bubbles: true, isPrimary: true, buttons: 1 }));
  map.setPointerCapture = () => {};
  const began = performance.now();
  let redraws = 0;
  const context = map.getContext("2d");
  context.clearRect = function (...box) {
    redraws++;
    CanvasRenderingContext2D.prototype.clearRect.apply(this, box);
  };
  const gaps = [];
  let last = began;
  send("pointerdown", 640, 500);
  const step = (now) => {
    gaps.push(now - last);
    last = now;
    const t = (now - began) / 1000;
    if (t > 2) {
      send("pointerup", 640, 500);
      delete context.clearRect;
      gaps.sort((a, b) => a - b);
      resolve({ redraws: redraws / t, worst: gaps[Math.floor(gaps.length * 0.95)] });
      return;
    }
    send("pointermove", 640 + 250 * Math.sin(3 * t), 500 + 150 * Math.sin(5 * t));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""
# The time from a choice until the map is complete, and the longest task meanwhile.
_GROUP = """new Promise((resolve) => {
  const tasks = [0];
  const note = (list) => tasks.push(...list.getEntries().map((each) => each.duration));
  const observer = new PerformanceObserver(note);
  observer.observe({ entryTypes: ["longtask"] });
  const began = performance.now();
  const select = document.querySelector(".grouping select");
  select.value = %r;
  select.dispatchEvent(new Event("change"));
  const look = () => {
    const mark = performance.getEntriesByName("map").at(-1);
    if (mark.startTime < began) return setTimeout(look, 5);
    const seconds = (mark.startTime - began) / 1000;
    setTimeout(() => resolve({ seconds, blocked: Math.max(...tasks) / 1000 }), 100);
  };
  look();
})"""
# The time at which the legend counts so many allocated devices, in milliseconds.
_COUNTED = """new Promise((resolve) => {
  const count = () => Number([...document.querySelectorAll(".legend .entry")]
    .find((each) => each.querySelector(".label").innerText === "allocated")
    ?.querySelector("b").innerText ?? 0);
  const look = () => count() === %d ? resolve(Date.now()) : setTimeout(look, 4);
  look();
})"""
_NEARER = """(() => {
  const map = document.querySelector("canvas.map");
  for (let n = 0; n < %d; n++) {
    map.dispatchEvent(new KeyboardEvent("keydown", { key: "+" }));
  }
})()"""
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime / 1000"
_MAP = "performance.getEntriesByName('map')[0]?.startTime / 1000"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.page_frames")
    parser.add_argument("--nodes", type=int, nargs="*", default=SIZES, metavar="N")
    return run(parser.parse_args().nodes)


def run(sizes: tuple[int, ...] = SIZES) -> int:
    """Measure fleets of these sizes; return 1 if a goal is missed."""
    requirements.ensure()
    return max(asyncio.run(_measure(nodes)) for nodes in sizes)


async def _measure(nodes: int) -> int:
    console = Console(width=None if sys.stdout.isatty() else 140)
    async with embedded(engines=()) as cluster, asyncio.TaskGroup() as group:
        await fill(cluster.client, nodes)
        live = Live(cluster.client, clock=SystemClock(), chance=CountedChance())
        following = group.create_task(live.run(), name="the page's view")
        server = TestServer(application(live, Access(TOKEN)))
        await server.start_server(access_log=None, shutdown_timeout=0.1)
        try:
            async with opened() as tab:
                await live.look()
                found = await _look(tab, str(server.make_url(f"/?token={TOKEN}")))
                found["write"] = await _writes(tab, cluster.client)
        finally:
            following.cancel()
            await server.close()
    console.print(f"{nodes} nodes x 8 devices, in Chromium")
    goals = [
        ("first paint", found["paint"], PAINT_SECONDS_MAX),
        ("map complete", found["map"], MAP_SECONDS_MAX.get(nodes, float("inf"))),
        ("  of it, the page's processor", found["processor"], float("inf")),
    ]
    for name in GROUPINGS:
        each = found[name]
        goals += [
            (f"grouped by {name}", each["seconds"], GROUPING_SECONDS_MAX),
            ("  of it, the page's processor", each["processor"], float("inf")),
            ("  input blocked", each["blocked"], BLOCKED_SECONDS_MAX),
        ]
    goals.append(("a write is visible, 95 of 100", found["write"], LATENCY_SECONDS_MAX))
    is_met = [_tell(console, *goal) for goal in goals]
    for name in _DRAGS:
        each = found[name]
        console.print(
            f"  dragged, {name}: {each['redraws']:.0f} redraws per second; "
            f"95 of 100 frames within {each['worst']:.0f} ms"
        )
    least = min(found[name]["redraws"] for name in _DRAGS)
    goal = REDRAWS_MIN.get(nodes, 0.0)
    console.print(f"  goal of {goal:.0f} redraws {'met' if least >= goal else 'missed'}")
    return 0 if all(is_met) and least >= goal else 1


def _tell(console: Console, name: str, seconds: float, most: float) -> bool:
    is_met = seconds <= most
    goal = "" if most == float("inf") else f" (goal {most:g} s {'met' if is_met else 'missed'})"
    console.print(f"  {name}: {seconds:.2f} s{goal}")
    return is_met


async def _look(tab: Tab, address: str) -> dict[str, Any]:
    await tab.size(1440, 900)
    await tab.call("Performance.enable", timeDomain="threadTicks")
    await tab.open(address)
    await tab.until(_MAP)
    found: dict[str, Any] = {
        "paint": await tab.js(_PAINT),
        "map": await tab.js(_MAP),
        "processor": await _processor(tab),
    }
    await tab.until("document.querySelector('#connection').textContent === 'live'")
    for name in GROUPINGS:
        used = await _processor(tab)
        found[name] = await tab.js(_GROUP % name)
        found[name]["processor"] = await _processor(tab) - used
    found["all of it"] = await tab.js(_DRAG)
    await tab.js(_NEARER % 4)
    found["nearer"] = await tab.js(_DRAG)
    await tab.js(_NEARER % 6)
    found["near"] = await tab.js(_DRAG)
    return found


async def _writes(tab: Tab, client: Client) -> float:
    """Return the time in which 95 of 100 writes are visible."""
    seconds = []
    for n in range(WRITES):
        made = await client.create(CLAIMS, claim(f"seen-{n}"))
        given = made | {"status": {"allocation": allocation(f"node-{n:05}", "gpu-0")}}
        shown = asyncio.create_task(tab.js(_COUNTED % (n + 1)))
        await asyncio.sleep(0.05)
        began = time.time()
        await client.update(CLAIMS, given, subresource="status")
        seconds.append(float(await shown) / 1000 - began)
    return statistics.quantiles(seconds, n=20)[-1]


async def _processor(tab: Tab) -> float:
    """Return what the main thread of the page used of the processor, in seconds."""
    metrics = (await tab.call("Performance.getMetrics"))["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))


if __name__ == "__main__":
    sys.exit(main())

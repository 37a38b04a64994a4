"""
Frames per second of the dashboard while the map is dragged and zoomed in a browser.

    python -m tests.bench.page_frames [--nodes N ...]

Nodes have eight devices each. Chromium draws without a graphics card here, which is the worst that
somebody has; 60 is what it shows at most. A drag moves the pointer with every frame, for two
seconds, over the whole fleet and again from near, where devices are drawn one by one.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any

from aiohttp.test_utils import TestServer
from rich.console import Console
from tests.bench.page import fill
from tests.client.planes import CountedChance
from tests.dashboard.browser import requirements
from tests.dashboard.browser.chromium import opened
from tests.dashboard.visit import TOKEN

from dryrack.cluster.embedded import embedded
from dryrack.cluster.ports import SystemClock
from dryrack.dashboard.access import Access
from dryrack.dashboard.live import Live
from dryrack.dashboard.server import application

if TYPE_CHECKING:
    from tests.dashboard.browser.chromium import Tab

SIZES = (1_000, 10_000)
# What the page promises of 1,000 nodes, less what a machine does besides; of 10,000: usable.
FRAMES_MIN = {1_000: 55.0, 10_000: 25.0}
_DRAG = """new Promise((resolve) => {
  const map = document.querySelector("canvas.map");
  const send = (type, x, y) => map.dispatchEvent(new PointerEvent(type, {
    pointerId: 1, clientX: x, clientY: y, bubbles: true, isPrimary: true, buttons: 1 }));
  map.setPointerCapture = () => {};
  const began = performance.now();
  const gaps = [];
  let last = began;
  send("pointerdown", 640, 500);
  const step = (now) => {
    gaps.push(now - last);
    last = now;
    const t = (now - began) / 1000;
    if (t > 2) {
      send("pointerup", 640, 500);
      gaps.sort((a, b) => a - b);
      resolve({ frames: gaps.length / t, worst: gaps[Math.floor(gaps.length * 0.95)] });
      return;
    }
    send("pointermove", 640 + 250 * Math.sin(3 * t), 500 + 150 * Math.sin(5 * t));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""
_NEARER = """(() => {
  const map = document.querySelector("canvas.map");
  for (let n = 0; n < %d; n++) {
    map.dispatchEvent(new KeyboardEvent("keydown", { key: "+" }));
  }
})()"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.page_frames")
    parser.add_argument("--nodes", type=int, nargs="*", default=SIZES, metavar="N")
    requirements.ensure()
    return max(asyncio.run(_measure(nodes)) for nodes in parser.parse_args().nodes)


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
        finally:
            following.cancel()
            await server.close()
    console.print(f"{nodes} nodes x 8 devices: the map is there after {found['paint']:.2f} s")
    for name in ("all of it", "nearer", "near"):
        each = found[name]
        console.print(
            f"  dragged, {name}: {each['frames']:.0f} frames per second; "
            f"95 of 100 within {each['worst']:.0f} ms"
        )
    least = min(found[name]["frames"] for name in ("all of it", "nearer", "near"))
    goal = FRAMES_MIN.get(nodes, 0.0)
    console.print(f"  goal of {goal:.0f} frames {'met' if least >= goal else 'missed'}")
    return 0 if least >= goal else 1


async def _look(tab: Tab, address: str) -> dict[str, Any]:
    await tab.size(1280, 800)
    began = time.perf_counter()
    await tab.open(address)
    await tab.until("document.querySelector('.legend li')")
    found: dict[str, Any] = {"paint": time.perf_counter() - began}
    await tab.until("document.querySelector('#connection').textContent === 'live'")
    found["all of it"] = await tab.js(_DRAG)
    await tab.js(_NEARER % 4)
    found["nearer"] = await tab.js(_DRAG)
    await tab.js(_NEARER % 6)
    found["near"] = await tab.js(_DRAG)
    return found


if __name__ == "__main__":
    sys.exit(main())

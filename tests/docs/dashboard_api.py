"""
Write the reference page of the dashboard's JSON API from a template.

The answer of the server, for a small cluster, follows each line `GET api/v1/...:` of the template.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.dashboard.small_world import allocate, allocation
from tests.dashboard.visit import visit

if TYPE_CHECKING:
    from tests.dashboard.visit import Visit

TEMPLATE = Path(__file__).parent / "dashboard-api.template.md"
_EXAMPLE = re.compile(r"^`(?:GET|POST) api/v1/([^`]+)`(?: with `(.+)`)?:$", re.MULTILINE)
_ROUTE = re.compile(r"^## `((?:GET|POST) .+)`$", re.MULTILINE)
_WIDTH = 96


def page() -> str:
    """Return the template with the answers."""
    text = TEMPLATE.read_text()
    answers: dict[str, str] = {}

    async def story(visitor: Visit) -> None:
        for path, body in _EXAMPLE.findall(text):
            answers[path] = await _answer(visitor, path, body)

    visit(story)
    return _EXAMPLE.sub(lambda found: f"{found[0]}\n\n{answers[found[1]]}", text)


def documented_routes() -> list[str]:
    """Return the routes that have a heading in the template."""
    return _ROUTE.findall(TEMPLATE.read_text())


def plain(route: str) -> str:
    """Return a route without the patterns of its parts."""
    return route.replace("{kind:pod|claim|gang}", "{pod|claim|gang}").replace(":.+", "")


async def _answer(visitor: Visit, path: str, body: str) -> str:
    if body:
        return f"```json\n{pretty(await visitor.attempt(json.loads(body)))}\n```"
    if path != "stream":
        return f"```json\n{pretty(await visitor.get(path))}\n```"
    since = (await visitor.get("fleet"))["revision"]
    async with visitor.streaming(f"?since={since}") as events:
        await allocate(visitor.client, "four", allocation("rack-2", "gpu-1"), "waits")
        await visitor.clock.advance(0.2)
        event = await events.next()
    return f"```\nid: {event.id}\nevent: {event.type}\ndata: {pretty(event.data)}\n```"


def pretty(value: Any, indent: str = "") -> str:
    """Return JSON in which each list and object that fits on a line is on one line."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(indent + flat) <= _WIDTH or not isinstance(value, dict | list):
        return flat
    inner = indent + "  "
    if isinstance(value, list):
        lines = [f"{inner}{pretty(each, inner)}" for each in value]
        return "[\n" + ",\n".join(lines) + f"\n{indent}]"
    lines = [f"{inner}{json.dumps(key)}: {pretty(each, inner)}" for key, each in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"

"""The page shows every field of its API and handles every event, or the lists below say why not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.dashboard.small_world import DRIVER
from tests.dashboard.visit import Visit, visit

from dryrack.dashboard.bundle import STATIC

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATHS = (
    "fleet",
    "claims",
    "gangs",
    "pods",
    "slices",
    "classes",
    "events",
    "timeline",
    "compare?from=2027-01-15T08:00:00Z",
    f"defragment/{DRIVER}",
    "attributes",
    f"devices/{DRIVER}/rack-1/gpu-0",
    "claims/team/one",
    "gangs/team/pair",
    "pods/team/train",
    "nodes/rack-1",
    "pending",
    "search?text=example",
    "objects/pod/team/train",
    "explain/pod/team/waits",
    "explain/gang/team/pair",
)
# Fields whose keys are names of the cluster, such as attributes.
MAPS = {
    "values",
    "attributes",
    "capacity",
    "levels",
    "states",
    "requests",
    "placed",
    "waiting",
    "claims",
    "labels",
}
SCRIPTS = sorted(STATIC.rglob("*.js"))
UNUSED: dict[str, str] = {}


def fields_of(value: Any, *, is_map: bool = False) -> Iterator[str]:
    """Yield the names of all fields of a JSON value."""
    if isinstance(value, dict):
        for key, each in value.items():
            if not is_map:
                yield key
            yield from fields_of(each, is_map=key in MAPS and not is_map)
    elif isinstance(value, list):
        for each in value:
            yield from fields_of(each)


def words_of(script: Path) -> set[str]:
    """Return the identifiers of a script without its comments."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", script.read_text(), flags=re.DOTALL)
    return set(re.findall(r"[A-Za-z_]\w*", text))


def test_the_page_uses_every_field_of_its_api() -> None:
    """A field that no script reads is unused on purpose, and the list says why."""
    names: set[str] = set()

    async def story(page: Visit) -> None:
        for path in PATHS:
            names.update(fields_of(await page.get(path)))

    visit(story)
    words = set[str]().union(*map(words_of, SCRIPTS))

    assert sorted(names - words - set(UNUSED)) == []
    assert sorted(set(UNUSED) & words) == [], "the page uses these fields now"
    assert sorted(set(UNUSED) - names) == [], "the API has no such fields"


def test_the_page_handles_every_event_of_the_stream() -> None:
    """Each event that the server sends has a listener, and each listener an event."""
    sent = set(re.findall(r"event: (\w+)", (STATIC.parent / "stream.py").read_text()))
    script = (STATIC / "api.js").read_text()
    heard = set(re.findall(r'addEventListener\("(\w+)"', script)) - {"open", "error"}

    assert heard == sent

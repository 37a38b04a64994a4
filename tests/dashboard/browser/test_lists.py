"""Tables, pending groups, suggested changes, YAML: what the user does with lists and panels."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.dashboard.browser.scene import VIEWS, attacked_event, claim, pod

from dryrack.client.endpoints import CLAIMS, EVENTS, NODES, PODS

if TYPE_CHECKING:
    from tests.dashboard.browser.conftest import Look

    from dryrack.kinds.raw import Raw

pytestmark = pytest.mark.real

NAMES = "[...document.querySelectorAll('main tbody td:first-child')].map((each) => each.innerText)"


def test_a_table_sorts_and_keeps_its_order_in_the_address(look: Look) -> None:
    """Ascending, descending, and natural order; a link with the order shows the same."""

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.go("#/nodes")
        await tab.until(f"{NAMES}.length === 3")
        await tab.click("th:first-child .sort")
        await tab.until("location.hash === '#/nodes?sort=name'")
        await tab.click("th:first-child .sort")
        await tab.until("location.hash === '#/nodes?sort=-name'")
        await tab.until(f"{NAMES}.join() === 'node-3,node-2,node-1'")
        assert await tab.js("document.querySelector('[aria-sort]').ariaSort") == "descending"
        await tab.go("#/fleet")
        await tab.go("#/nodes?sort=-name&filter=node-2")
        await tab.until(f"{NAMES}.join() === 'node-2'")
        assert await tab.js("document.querySelector('.filters input').value") == "node-2"

    look(story)


def test_a_choice_and_a_word_of_a_column_filter(look: Look) -> None:
    """Both are in the address; the rows are those of the API."""

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.go("#/claims")
        await tab.has("team/two", "main")
        await tab.js(
            "const choice = document.querySelector('select[aria-label=State]');"
            "choice.value = 'pending'; choice.dispatchEvent(new Event('change'))"
        )
        await tab.until("location.hash === '#/claims?state=pending'")
        found = await tab.js("fetch('api/v1/claims').then((answer) => answer.json())")
        names = {f"team/{it['name']}" for it in found["claims"] if it["state"] == "pending"}
        await tab.until(f"{NAMES}.length === {len(names)}")
        assert set(await tab.js(NAMES)) == names
        await tab.go("#/claims?filter=state%3Apending")
        await tab.until(f"{NAMES}.length === {len(names)}")

    look(story)


def test_the_focus_and_the_selection_survive_an_update(look: Look) -> None:
    """A row that changes keeps the focused link and the selected text of other cells."""

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.go("#/nodes")
        await tab.until(f"{NAMES}.length === 3")
        link = "document.querySelector('main tbody tr:nth-child(2) a')"
        await tab.js(f"{link}.focus()")
        await tab.js(f"getSelection().selectAllChildren({link})")
        found = await look.client.get(NODES, "node-2")
        found["spec"]["unschedulable"] = True
        await look.client.update(NODES, found)
        await tab.has("cordoned", "main tbody tr:nth-child(2)")
        assert await tab.js("document.activeElement.innerText") == "node-2"
        assert await tab.js("getSelection().toString()") == "node-2"
        await tab.go("#/nodes/node-2")
        await tab.has("cordoned", "main .heading")
        await tab.js("getSelection().selectAllChildren(document.querySelector('main h1'))")
        found = await look.client.get(NODES, "node-2")
        found["spec"]["unschedulable"] = False
        await look.client.update(NODES, found)
        await tab.has("ready", "main .heading")
        assert await tab.js("getSelection().toString()") == "Node node-2"

    look(story)


def test_ages_are_relative_and_have_the_exact_time(look: Look) -> None:
    """By the clock of the server, and of the moment that the page shows."""

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.go("#/claims")
        await tab.has("team/two", "main")
        age = "document.querySelector('main time.age')"
        exact = await tab.js(f"{age}.dateTime")
        assert exact in await tab.js(f"{age}.title")
        assert await tab.js(f"/^\\d+[smhd]/.test({age}.textContent)")

    look(story)


def test_the_yaml_of_an_object_can_be_read_and_copied(look: Look) -> None:
    """With the kubectl commands; it stays open when the object changes."""

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.go("#/claims/team/two")
        await tab.has("YAML and kubectl", "main")
        await tab.js("document.querySelector('details.yaml').open = true")
        await tab.has("kubectl get resourceclaim two -n team -o yaml", ".yaml")
        await tab.has("kind: ResourceClaim", ".yaml pre")
        found = await look.client.get(CLAIMS, "two", "team")
        found["metadata"].setdefault("labels", {})["changed"] = "yes"
        await look.client.update(CLAIMS, found)
        await look.client.create(CLAIMS, claim("touch", 1))
        await tab.has("changed:", ".yaml pre")
        await look.client.delete(CLAIMS, "touch", namespace="team")
        await tab.go("#/object/class/gpu.example.com")
        await tab.has("kind: DeviceClass", "main pre")

    look(story)


def test_pending_pods_are_grouped_by_cause(look: Look) -> None:
    """The count of pods and the cause are those of the explanation."""

    async def story(look: Look) -> None:
        tab = look.tab
        for number in range(3):
            name = f"same-{number}"
            await look.client.create(CLAIMS, claim(name, 9))
            await look.client.create(PODS, pod(name, name))
        await tab.go("#/pending")
        await tab.has("4 pods", ".groups")
        cause = await tab.js(
            "fetch('api/v1/explain/pod/team/same-0').then((a) => a.json()).then((a) => a.cause)"
        )
        card = (
            "[...document.querySelectorAll('.groups .card')]"
            f".find((each) => each.innerText.includes({json.dumps(cause)}))"
        )
        await tab.until(f"{card}?.innerText.includes('4 pods')")
        await tab.has("gang team/pair", ".groups")
        for number in range(3):
            await look.client.delete(PODS, f"same-{number}", namespace="team")
            await look.client.delete(CLAIMS, f"same-{number}", namespace="team")
        await tab.until(f"!{card}?.innerText.includes('4 pods')")

    look(story)


def test_a_suggested_change_is_tried_with_a_button(look: Look) -> None:
    """The answer compares before and after."""

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.go("#/why/pod/team/waits")
        await tab.click(".helps .try")
        await tab.has("fits with this change", ".answer")
        await tab.has("does not fit", ".compare section:first-child")
        await tab.has("would fit", ".compare section:last-child")

    look(story)


def test_an_explanation_is_read_again_only_for_changes_that_decide(look: Look) -> None:
    """An Event and a condition of a node are unrelated; a cordon is not."""

    async def story(look: Look) -> None:
        tab = look.tab
        asked = (
            "performance.getEntriesByType('resource')"
            ".filter((each) => each.name.includes('/explain/pod/team/waits')).length"
        )
        await tab.go("#/why/pod/team/waits")
        await tab.has("closest node", "main")
        before = await tab.js(asked)
        await look.client.create(EVENTS, unrelated_event())
        found = await look.client.get(NODES, "node-3")
        found["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-01-01T00:00:00Z"
        await look.client.update(NODES, found, subresource="status")
        events = "fetch('api/v1/events').then((a) => a.text())"
        while "unrelated" not in await tab.js(events):
            assert await tab.js("document.querySelector('#connection').textContent") == "live"
        assert await tab.js(asked) == before
        await set_cordon(look, cordon=True)
        await tab.until(f"{asked} > {before}")
        await set_cordon(look, cordon=False)

    look(story)


def unrelated_event() -> Raw:
    event = attacked_event()
    event["metadata"]["name"] = "unrelated"
    return event


async def set_cordon(look: Look, *, cordon: bool) -> None:
    found = await look.client.get(NODES, "node-3")
    found["spec"]["unschedulable"] = cordon
    await look.client.update(NODES, found)


def test_requests_of_a_change_are_a_list(look: Look) -> None:
    """Requests are added and removed, and selectors too."""

    async def story(look: Look) -> None:
        tab = look.tab
        requests = "document.querySelectorAll('.request').length"
        await tab.go("#/why/pod/team/waits")
        await tab.until(f"{requests} === 1")
        await tab.click("fieldset > .add")
        await tab.until(f"{requests} === 2")
        await tab.click(".request:first-child .add")
        await tab.js("document.querySelector('[name=selectors]').value = 'false'")
        await tab.click(".trial [type=submit]")
        await tab.has("does not fit with this change", ".answer")
        await tab.click(".selector button")
        await tab.click(".request:first-child .remove")
        await tab.click(".trial [type=submit]")
        await tab.has("fits with this change", ".answer")
        await tab.click(".trial > .buttons button:nth-child(2)")
        await tab.until("document.querySelector('.trial [name=count]').value === '9'")

    look(story)


def test_the_current_tab_is_visible_on_a_phone(look: Look) -> None:
    """The tabs scroll to the current one."""

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.size(360, 800)
        for view in ("classes", "events", "fleet"):
            await tab.go(f"#/{view}")
            await tab.has(VIEWS[f"#/{view}"], "main")
            box = await tab.js(
                "(({left, right}) => [left, right])"
                "(document.querySelector('nav [aria-current]').getBoundingClientRect())"
            )
            assert 0 <= box[0] < box[1] <= 360, view

    look(story)


@pytest.mark.parametrize(
    ("text", "match", "address"),
    [
        ("latest-gpu-model", "model", "#/devices?model=LATEST-GPU-MODEL"),
        ("productname=<img", "productName=", "#/fleet/attack.example.com/attack/odd"),
        ("partial-slice", "slice", "#/object/slice/partial-slice"),
    ],
)
def test_models_attributes_and_slices_are_found(
    look: Look, text: str, match: str, address: str
) -> None:
    """The search field opens what the user chooses."""

    async def story(look: Look) -> None:
        tab = look.tab
        await tab.go("#/fleet")
        await tab.has("LATEST-GPU-MODEL", "main")
        await tab.press("/")
        await tab.type(text)
        await tab.has(match, "#results li")
        await tab.press("Enter")
        await tab.until(f"location.hash === {json.dumps(address)}")

    look(story)

"""A change is tried on a copy: the answer is that of the scheduler, and nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.dashboard.small_world import DRIVER, create
from tests.dashboard.visit import BEARER, Visit, visit

from dryrack.base.limits import DASHBOARD_BODY_BYTES_MAX
from dryrack.client.endpoints import CLASSES

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

WAITS = {"kind": "pod", "namespace": "team", "name": "waits"}


def trial(**change: Any) -> Raw:
    return WAITS | {"change": change}


def test_a_smaller_count_is_tried() -> None:
    """Four do not fit, two do; the answer says where, beside what is so now."""

    async def story(page: Visit) -> None:
        found = await page.attempt(trial(count=2))

        assert found["fits"]
        assert found["after"]["wouldGoTo"] == "rack-2"
        assert found["before"]["wouldGoTo"] == ""
        assert found["before"] == await page.get("explain/pod/team/waits")

    visit(story)


def test_one_node_is_tried() -> None:
    """And what it has against the pod."""

    async def story(page: Visit) -> None:
        assert (await page.attempt(trial(count=1, node="rack-1")))["after"]["wouldGoTo"] == "rack-1"
        found = await page.attempt(trial(count=2, node="rack-1"))
        assert not found["fits"]
        assert [each["node"] for each in found["after"]["nodes"]] == ["rack-1"]

    visit(story)


def test_another_class_and_other_selectors_are_tried() -> None:
    """An invalid selector gives the error of the cluster."""

    async def story(page: Visit) -> None:
        nothing = [{"cel": {"expression": "false"}}]
        other = {"metadata": {"name": "other"}, "spec": {"selectors": nothing}}
        await create(page.client, CLASSES, other)

        assert not (await page.attempt(trial(count=1, **{"class": "other"})))["fits"]
        right = f'device.attributes["{DRIVER}"].model.startsWith("Example")'
        assert (await page.attempt(trial(count=1, selectors=[right])))["fits"]
        assert not (await page.attempt(trial(count=1, selectors=["false"])))["fits"]
        wrong = await page.attempt(trial(count=1, selectors=["device.nothing"]))
        assert not wrong["fits"]
        assert "undefined field 'nothing'" in str(wrong["after"])

    visit(story)


def test_what_is_placed_is_tried_as_if_it_came_now() -> None:
    """It gives back, in the copy, what it has."""

    async def story(page: Visit) -> None:
        train = {"kind": "pod", "namespace": "team", "name": "train"}
        found = await page.attempt(train | {"change": {"count": 2, "node": "rack-1"}})

        assert found["fits"]
        assert found["after"]["wouldGoTo"] == "rack-1"
        assert found["before"]["node"] == "rack-1"

    visit(story)


def test_claims_and_gangs_are_tried() -> None:
    """By their pods."""

    async def story(page: Visit) -> None:
        four = {"kind": "claim", "namespace": "team", "name": "four"}
        assert (await page.attempt(four | {"change": {"count": 1}}))["fits"]
        pair = {"kind": "gang", "namespace": "team", "name": "pair"}
        assert not (await page.attempt(pair | {"change": {"node": "rack-1"}}))["fits"]

    visit(story)


def test_nothing_is_written() -> None:
    """Not one request of the page's server changes anything."""

    async def story(page: Visit) -> None:
        await page.attempt(trial(count=2))

        assert {each.method for each in page.road.asked} == {"GET"}

    visit(story)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"class": "gpus"}, "class 'gpus' not found; did you mean"),
        ({"node": "rack-9"}, "node 'rack-9' not found"),
        ({"count": 0}, "count 0: must be from 1 to 32"),
        ({"count": "many"}, "Expected `int | null`, got `str` - at `$.change.count`"),
        ({"colour": "red"}, "unknown field `colour`"),
        ({"count": 1, "request": "cpus"}, "pod team/waits has no request 'cpus' to change"),
    ],
)
def test_what_makes_no_sense_is_told(change: Raw, words: str) -> None:
    """The error has a similar name."""

    async def story(page: Visit) -> None:
        assert words in (await page.attempt(WAITS | {"change": change}, status=400))["error"]

    visit(story)


def test_what_a_form_could_send_is_not_taken() -> None:
    """A page elsewhere can make a browser post text here, and no more."""

    async def story(page: Visit) -> None:
        headers = BEARER | {"Content-Type": "text/plain"}
        async with page.http.post("/api/v1/try", data=b"{}", headers=headers) as response:
            assert response.status == 415

    visit(story)


def test_a_trial_that_nests_too_deep_is_refused() -> None:
    """Python's own limit does not show as an error of the server."""

    async def story(page: Visit) -> None:
        headers = BEARER | {"Content-Type": "application/json"}
        body = b'{"change":' * 5000
        async with page.http.post("/api/v1/try", headers=headers, data=body) as response:
            assert response.status == 400
        body = b" " * (DASHBOARD_BODY_BYTES_MAX + 1)
        async with page.http.post("/api/v1/try", headers=headers, data=body) as response:
            assert response.status == 413

    visit(story)

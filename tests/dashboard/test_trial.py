"""A change is tried on a copy: the answer is that of the scheduler, and nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.dashboard.small_world import (
    DRIVER,
    EVENT,
    allocate,
    allocation,
    bind,
    claim,
    create,
    pod,
)
from tests.dashboard.visit import BEARER, Visit, visit

from dryrack.base.limits import DASHBOARD_BODY_BYTES_MAX
from dryrack.client.endpoints import CLAIMS, CLASSES, EVENTS, NODES, PODS, TEMPLATES

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.kinds.raw import Raw

WAITS = {"kind": "pod", "namespace": "team", "name": "waits"}


def trial(**change: Any) -> Raw:
    return WAITS | {"change": change}


def requests(*wanted: Raw, of: str = "four") -> Raw:
    return {"claims": [{"claim": of, "requests": list(wanted)}]}


ONE: list[Raw] = [{"name": "a", "class": "gpu"}]


def test_a_smaller_count_is_tried() -> None:
    """Four do not fit, two do; the answer says where, beside what is so now."""

    async def story(page: Visit) -> None:
        found = await page.attempt(trial(count=2))

        assert found["fits"]
        assert found["after"]["wouldGoTo"] == "rack-2"
        assert found["before"]["wouldGoTo"] == ""
        now = await page.get("explain/pod/team/waits")
        assert found["before"] == {key: now[key] for key in found["before"]}

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


def test_each_suggested_change_is_tried_and_fits() -> None:
    """What the explanation suggests is what the scheduler's code decides in the changed copy."""

    async def story(page: Visit) -> None:
        found = await page.get("explain/pod/team/waits")
        assert found["canTry"] == found["helps"]
        assert len(found["canTry"]) == 2
        for text in found["canTry"]:
            answer = await page.attempt(WAITS | {"help": text})
            assert answer["fits"], text
            assert answer["help"] == text
            assert answer["after"]["wouldGoTo"], text
            assert answer["before"]["wouldGoTo"] == ""
        wrong = await page.attempt(WAITS | {"help": "buy more"}, status=400)
        assert wrong["error"].startswith("help 'buy more' is not a change that can be tried")

    visit(story)


def test_a_higher_priority_is_tried() -> None:
    """The suggestion to raise the priority leads to a preemption on the named node."""

    async def story(page: Visit) -> None:
        for name in ("rack-1", "rack-2"):
            for number in range(2):
                if (name, number) != ("rack-1", 0):
                    each = f"{name}-{number}"
                    await create(page.client, CLAIMS, claim(each))
                    await create(page.client, PODS, pod(each, each))
                    await bind(page.client, each, name)
                    await allocate(page.client, each, allocation(name, f"gpu-{number}"), each)
        await create(page.client, CLAIMS, claim("late"))
        await create(page.client, PODS, pod("late", "late"))
        late = {"kind": "pod", "namespace": "team", "name": "late"}
        found = await page.get("explain/pod/team/late")
        assert not found["wouldGoTo"]
        [text] = [each for each in found["canTry"] if "priority" in each]
        assert found["current"]["priority"] == 0
        bodies: tuple[Raw, ...] = ({"help": text}, {"change": {"priority": 1}})
        for body in bodies:
            answer = await page.attempt(late | body)
            assert answer["fits"]
            assert answer["after"]["preempts"]

    visit(story)


def test_a_change_starts_from_the_current_values() -> None:
    """What the explanation has as current changes nothing if it is tried as it is."""

    async def story(page: Visit) -> None:
        found = await page.get("explain/pod/team/waits")
        [four] = found["current"]["claims"]
        request = {"name": "gpus", "class": "gpu", "count": 4, "selectors": [], "capacity": {}}
        assert four == {"claim": "four", "alike": 1, "requests": [request]}
        same = await page.attempt(WAITS | {"change": requests(request)})
        assert same["after"] == same["before"]

    visit(story)


def test_requests_are_added_changed_and_removed() -> None:
    """A constraint loses the requests that the change removes, and further fields stay."""

    async def story(page: Visit) -> None:
        each = claim("several")
        devices = each["spec"]["devices"]
        toleration = {"key": "example.com/any", "operator": "Exists"}
        devices["requests"][0]["exactly"] |= {"tolerations": [toleration]}
        devices["requests"].append({"name": "more", "exactly": {"deviceClassName": "gpu"}})
        attribute = f"{DRIVER}/model"
        devices["constraints"] = [
            {"requests": ["gpus", "more"], "matchAttribute": attribute},
            {"requests": ["more"], "matchAttribute": attribute},
        ]
        await create(page.client, CLAIMS, each)
        await create(page.client, PODS, pod("several", "several"))
        several = {"kind": "pod", "namespace": "team", "name": "several"}
        [values] = (await page.get("explain/pod/team/several"))["current"]["claims"]
        assert [it["name"] for it in values["requests"]] == ["gpus", "more"]

        one = [{"name": "gpus", "class": "gpu", "selectors": ["false"]}]
        assert not (await page.attempt(several | {"change": requests(*one, of="several")}))["fits"]
        three = [{"name": name, "class": "gpu"} for name in ("gpus", "more", "third")]
        assert not (await page.attempt(several | {"change": requests(*three, of="several")}))[
            "fits"
        ]
        choice = [{"name": f"gpus/{count}", "class": "gpu", "count": int(count)} for count in "92"]
        found = await page.attempt(several | {"change": requests(*choice, of="several")})
        results = found["after"]["claims"]["team/several"]["devices"]["results"]
        assert [it["request"] for it in results] == ["gpus/2"] * 2
        everything = [{"name": "gpus", "class": "gpu", "count": None}]
        found = await page.attempt(several | {"change": requests(*everything, of="several")})
        results = found["after"]["claims"]["team/several"]["devices"]["results"]
        assert [it["tolerations"] for it in results] == [[toleration]] * 2

    visit(story)


def test_an_explanation_is_computed_once_until_its_inputs_change() -> None:
    """A heartbeat and the event of another pod are no reason to decide again; a cordon is."""

    async def story(page: Visit) -> None:
        async def change_node(change: Callable[[Raw], None], subresource: str = "") -> None:
            found = await page.client.get(NODES, "rack-2")
            change(found)
            await page.client.update(NODES, found, subresource=subresource)

        def set_heartbeat(found: Raw) -> None:
            found["status"]["conditions"][0]["lastHeartbeatTime"] = "2027-01-15T08:00:01Z"

        def cordon(found: Raw) -> None:
            found["spec"]["unschedulable"] = True

        first = await page.get("explain/pod/team/waits")
        asked = len(page.road.asked)
        await change_node(set_heartbeat, "status")
        other: Raw = {**EVENT, "metadata": {"name": "other", "namespace": "team"}}
        await create(page.client, EVENTS, other)
        await page.clock.advance(0.2)
        assert await page.get("explain/pod/team/waits") == first
        assert len(page.road.asked) == asked
        async with page.streaming(f"?since={(await page.get('fleet'))['revision']}") as events:
            await change_node(cordon)
            await page.clock.advance(0.2)
            update = (await events.next()).data
        found = await page.get("explain/pod/team/waits")
        assert found["decisions"] == update["decisions"] > first["decisions"]
        assert found["nodes"] != first["nodes"]

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
        ({"claims": [{"claim": "five", "requests": ONE}]}, "claim 'five' not found"),
        (requests(), "requests: a claim has 1 to 32 requests, got 0"),
        (requests({"name": "A", "class": "gpu"}), "request 'A': must be lowercase letters"),
        (requests({"name": "a", "class": "gpus"}), "class 'gpus' not found; did you mean"),
        (requests(*ONE, *ONE), "the name is used more than once"),
        (
            requests(*ONE, {"name": "a/b", "class": "gpu"}),
            "request 'a/b': the name is used more than once",
        ),
        (
            requests({"name": "a", "class": "gpu", "capacity": {"memory": "much"}}),
            "request 'a', capacity 'memory': 'much'",
        ),
        ({"priority": 2 * 10**9}, "priority 2000000000: must be at most 1000000000"),
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


def test_a_raised_quota_is_tried() -> None:
    """The quota that refuses a claim is the cause, and both suggestions fit."""

    async def story(page: Visit) -> None:
        each = pod("over")
        each["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "two"}]
        template: Raw = {"metadata": {"name": "two", "namespace": "team"}}
        template["spec"] = {"spec": claim("two", 2)["spec"]}
        await create(page.client, TEMPLATES, template)
        await create(page.client, PODS, each)
        resource = "gpu.deviceclass.resource.k8s.io/devices"
        about = {"kind": "Pod", "namespace": "team", "name": "over"}
        refusal = (
            f"forbidden: exceeded quota: devices, requested: {resource}=2, "
            f"used: {resource}=0, limited: {resource}=1"
        )
        event: Raw = {
            **EVENT,
            "metadata": {"name": "over.1", "namespace": "team"},
            "involvedObject": about,
            "reason": "FailedResourceClaimCreation",
            "message": refusal,
        }
        await create(page.client, EVENTS, event)
        found = await page.get("explain/pod/team/over")

        assert found["cause"].startswith("exceeded quota: ResourceQuota devices allows 1 of")
        assert len(found["canTry"]) == 2
        for text in found["canTry"]:
            answer = await page.attempt({**WAITS, "name": "over", "help": text})
            assert answer["fits"], text
            assert "quota" not in answer["after"]["cause"]

    visit(story)

"""Pending pods in groups: one explanation holds for all pods of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.dashboard.small_world import claim, create, pod
from tests.dashboard.visit import Visit, visit

from dryrack.client.endpoints import CLAIMS, PODS, PRIORITY_CLASSES

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw


async def pending_pod(page: Visit, name: str, count: int, **spec: Any) -> None:
    each = pod(name, name)
    each["spec"] |= spec
    token = {"name": f"kube-api-access-{name}", "projected": {"sources": []}}
    each["spec"]["volumes"] = [token]
    await create(page.client, CLAIMS, claim(name, count))
    await create(page.client, PODS, each)


def test_pods_that_are_equal_for_the_scheduler_are_one_group() -> None:
    """Names and token volumes do not matter; requests, priorities, and selectors do."""

    async def story(page: Visit) -> None:
        for name in ("a-1", "a-2", "a-10"):
            await pending_pod(page, name, 3)
        await pending_pod(page, "other-count", 5)
        await pending_pod(page, "other-node", 3, nodeSelector={"zone": "x"})
        await pending_pod(page, "gated", 3, schedulingGates=[{"name": "example.com/quota"}])
        each = pod("templated")
        each["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimTemplateName": "none"}]
        await create(page.client, PODS, each)
        groups = (await page.get("pending"))["groups"]

        names = [each["pods"] for each in groups]
        assert sorted(map(sorted, names)) == [
            ["a-1", "a-10", "a-2"],
            ["gated"],
            ["half"],
            ["other-count"],
            ["other-node"],
            ["templated"],
            ["waits"],
        ]
        [group] = [each for each in groups if "a-1" in each["pods"]]
        assert (group["requests"], group["claimsMissing"]) == (["3 × gpu"], 0)
        # The explanations of all pods of a group agree in what they say of the cause.
        causes = {(await page.get(f"explain/pod/team/{each}"))["cause"] for each in group["pods"]}
        assert len(causes) == 1
        [templated] = [each for each in groups if each["pods"] == ["templated"]]
        assert (templated["requests"], templated["claimsMissing"]) == ([], 1)
        [gated] = [each for each in groups if each["pods"] == ["gated"]]
        assert gated["schedulingGates"] == ["example.com/quota"]

    visit(story)


def test_members_of_a_gang_are_one_group() -> None:
    """Whatever they request."""

    async def story(page: Visit) -> None:
        member = pod("second", "four", gang="pair")
        await create(page.client, PODS, member)
        groups = (await page.get("pending"))["groups"]

        [gang] = [each for each in groups if each["gang"]]
        assert gang["gang"] == "pair"
        assert sorted(gang["pods"]) == ["half", "second"]
        assert gang["requests"] == ["4 × gpu"]

    visit(story)


def test_the_highest_priority_is_first_then_the_oldest() -> None:
    """As in the queue of the scheduler."""

    async def story(page: Visit) -> None:
        await page.clock.advance(60)
        await pending_pod(page, "late", 3)
        urgent: Raw = pod("urgent")
        high: Raw = {"metadata": {"name": "high"}, "value": 1000}
        await create(page.client, PRIORITY_CLASSES, high)
        urgent["spec"]["priorityClassName"] = "high"
        await create(page.client, PODS, urgent)
        groups = (await page.get("pending"))["groups"]

        assert [each["pods"][0] for each in groups] == ["urgent", "half", "waits", "late"]
        assert [each["priority"] for each in groups] == [1000, 0, 0, 0]
        assert groups[-1]["oldest"] > groups[1]["oldest"]

    visit(story)

"""What the server makes of cron jobs, and what it refuses, in the real server's words."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from dryrack.client.endpoints import CRON_JOBS
from dryrack.client.errors import ApiError
from dryrack.client.timekeeping import VirtualClock
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw


POD = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "a"}]}


def cron_job(job: Raw | None = None, *, name: str = "tick", **spec: Any) -> Raw:
    template = {"spec": {"template": {"spec": POD}} | (job or {})}
    made = {"schedule": "@daily", "jobTemplate": template} | spec
    return {"metadata": {"name": name, "namespace": "default"}, "spec": made}


def run(scenario: Callable[[Client], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with embedded(ControlPlaneOptions(clock=VirtualClock()), engines=()) as cluster:
            await scenario(cluster.client)

    asyncio.run(whole())


def causes(error: ApiError) -> list[str]:
    details = error.status.get("details") or {}
    return [f"{each['field']}: {each['message']}" for each in details.get("causes", ())]


ZONE_IN_SCHEDULE = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
REFUSALS: list[tuple[Raw, list[str]]] = [
    ({"schedule": ""}, ["spec.schedule: Required value"]),
    (
        {"schedule": "* * * *"},
        ['spec.schedule: Invalid value: "* * * *": expected exactly 5 fields, found 4: [* * * *]'],
    ),
    (
        {"schedule": "TZ=UTC 0 * * * *"},
        [f'spec.schedule: Invalid value: "TZ=UTC 0 * * * *": {ZONE_IN_SCHEDULE}'],
    ),
    (
        {"schedule": "CRON_TZ=Mars 0 * * * *"},
        [
            (
                'spec.schedule: Invalid value: "CRON_TZ=Mars 0 * * * *": '
                "provided bad location Mars: unknown time zone Mars"
            ),
            f'spec.schedule: Invalid value: "CRON_TZ=Mars 0 * * * *": {ZONE_IN_SCHEDULE}',
        ],
    ),
    (
        {"timeZone": ""},
        ['spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string'],
    ),
    (
        {"timeZone": "Mars/Base"},
        ['spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base'],
    ),
    (
        {"timeZone": "../UTC"},
        ['spec.timeZone: Invalid value: "../UTC": unknown time zone ../UTC'],
    ),
    (
        {"timeZone": "Local"},
        [
            (
                'spec.timeZone: Invalid value: "Local": timeZone must be an explicit time zone as '
                "defined in https://www.iana.org/time-zones"
            )
        ],
    ),
    (
        {"startingDeadlineSeconds": -1, "failedJobsHistoryLimit": -2},
        [
            "spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
            "spec.failedJobsHistoryLimit: Invalid value: -2: must be greater than or equal to 0",
        ],
    ),
    (
        {"concurrencyPolicy": "Never"},
        [
            (
                'spec.concurrencyPolicy: Unsupported value: "Never": supported values: '
                '"Allow", "Forbid", "Replace"'
            )
        ],
    ),
    (
        {"job": {"parallelism": -1, "manualSelector": True, "selector": {}}},
        [
            (
                "spec.jobTemplate.spec.parallelism: Invalid value: -1: "
                "must be greater than or equal to 0"
            ),
            "spec.jobTemplate.spec.selector: Invalid value: {}: `selector` will be auto-generated",
            (
                "spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "
                '"nil", "false"'
            ),
        ],
    ),
    (
        {"job": {"completionMode": "Indexed"}},
        ["spec.jobTemplate.spec.completions: Required value: when completion mode is Indexed"],
    ),
    (
        {"job": {"template": {"spec": POD | {"restartPolicy": "Always"}}}},
        [
            (
                "spec.jobTemplate.spec.template.spec.restartPolicy: Required value: "
                'valid values: "OnFailure", "Never"'
            )
        ],
    ),
    (
        {"name": "a" * 53},
        [f'metadata.name: Invalid value: "{"a" * 53}": must be no more than 52 characters'],
    ),
]


@pytest.mark.parametrize(("parts", "expected"), REFUSALS)
def test_a_bad_cron_job_is_refused(parts: Raw, expected: list[str]) -> None:
    """Each mistake is told, with its path."""

    async def scenario(client: Client) -> None:
        with pytest.raises(ApiError) as refusal:
            await client.create(CRON_JOBS, cron_job(**parts))
        assert causes(refusal.value) == expected

    run(scenario)


def test_a_new_cron_job_is_completed() -> None:
    """With its own defaults and those of the pods; jobs are completed when they are made."""

    async def scenario(client: Client) -> None:
        made = await client.create(CRON_JOBS, cron_job(name="a" * 52))
        spec = made["spec"]
        job = spec.pop("jobTemplate")["spec"]
        assert spec == {
            "schedule": "@daily",
            "concurrencyPolicy": "Allow",
            "suspend": False,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
        }
        assert [*job] == ["template"]
        assert job["template"]["spec"]["terminationGracePeriodSeconds"] == 30
        assert made["metadata"]["generation"] == 1

    run(scenario)


def test_a_cron_job_may_change_in_all_parts() -> None:
    """The template of its jobs too; a change is judged as the new object was."""

    async def scenario(client: Client) -> None:
        await client.create(CRON_JOBS, cron_job())
        pod = {"containers": [{"name": "main", "image": "b"}]}
        template = {"spec": {"template": {"spec": pod}}}
        patch = {"spec": {"schedule": "@hourly", "timeZone": "Asia/Tokyo", "jobTemplate": template}}
        changed = await client.patch(CRON_JOBS, "tick", patch, namespace="default")
        assert changed["metadata"]["generation"] == 2
        bad = {"spec": {"schedule": "TZ=UTC @hourly"}}
        with pytest.raises(ApiError) as refusal:
            await client.patch(CRON_JOBS, "tick", bad, namespace="default")
        expected = f'spec.schedule: Invalid value: "TZ=UTC @hourly": {ZONE_IN_SCHEDULE}'
        assert causes(refusal.value) == [expected]

    run(scenario)

"""Cron jobs on an embedded cluster whose time stands still until it is moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.controllers import scenes
from tests.controllers.worlds import World
from tests.stage import Stage

from dryrack.client.client import Selection
from dryrack.client.endpoints import CRON_JOBS, EVENTS, JOBS, NODES, PODS
from dryrack.client.informer import Name, name_of
from dryrack.client.timekeeping import timestamp
from dryrack.cluster.assembly import EngineOptions, assemble_engines
from dryrack.cluster.engines import running_engines
from dryrack.cluster.initial_objects import virtual_node
from dryrack.controllers.cronjobs import plan
from dryrack.controllers.objects import uid_of
from dryrack.controllers.writes import Plan, Report

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

MINUTE = 60
HOUR = 3600
DAY = 86_400
# A Friday, eight o'clock in the morning: 30,000,000 minutes after 1970.
START = 1_800_000_000.0
FIRST = 30_000_000
TICK = Name("default", "tick")
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def cron_job(schedule: str = "*/5 * * * *", *, run_seconds: float = 5, **spec: Any) -> Raw:
    """A cron job `tick`; the pods of its jobs run for so long."""
    annotations = {"dryrack.dev/run-seconds": str(run_seconds)}
    pod = scenes.POD_SPEC | {"restartPolicy": "Never"}
    job = {
        "metadata": {"labels": {"app": "tick"}, "annotations": {"note": "yes"}},
        "spec": {
            "backoffLimit": 0,
            "template": {"metadata": {"annotations": annotations}, "spec": pod},
        },
    }
    metadata = {"name": "tick", "namespace": "default"}
    return {"metadata": metadata, "spec": {"schedule": schedule, "jobTemplate": job} | spec}


# Most of what runs in a whole cluster looks around by the minute, and has no part in this.
FEW = ("cronjobs", "jobs", "kubelet", "scheduler")


class CronStage(Stage):
    """A cluster with a node, in which nodes live for long without a heartbeat."""

    def __init__(
        self, *, start: float = START, only: tuple[str, ...] = FEW, **options: Any
    ) -> None:
        engines = EngineOptions(only=only, node_lease_seconds=100 * DAY)
        super().__init__(start=start, engines=engines, **options)

    async def set_up(self) -> None:
        await self.create(NODES, virtual_node("node-a"))
        await self.advance(1)

    async def make(self, schedule: str = "*/5 * * * *", **parts: Any) -> None:
        await self.create(CRON_JOBS, cron_job(schedule, **parts))

    async def change(self, **spec: Any) -> None:
        patch = {"spec": spec}
        await self.client.patch(CRON_JOBS, "tick", patch, namespace="default")

    async def status(self) -> Raw:
        found = await self.client.get(CRON_JOBS, "tick", "default")
        status: Raw = found.get("status", {})
        return status

    async def jobs(self) -> dict[str, Raw]:
        found = (await self.client.list(JOBS, Selection(namespace="default"))).items
        return {each["metadata"]["name"]: each for each in found}

    async def pods(self) -> list[Raw]:
        return list((await self.client.list(PODS, Selection(namespace="default"))).items)

    async def minutes(self) -> list[int]:
        """For which minutes there are jobs, counted from the start."""
        return sorted(int(name.rpartition("-")[2]) - FIRST for name in await self.jobs())

    async def active(self) -> list[int]:
        references = (await self.status()).get("active", ())
        return [int(each["name"].rpartition("-")[2]) - FIRST for each in references]

    async def told(self, reason: str) -> list[str]:
        """Return the messages of events with a reason, the oldest first."""
        events = (await self.client.list(EVENTS, Selection(namespace="default"))).items
        mine = [each for each in events if each["involvedObject"]["kind"] == "CronJob"]
        mine.sort(key=lambda each: str(each["firstTimestamp"]))
        return [each["message"] for each in mine if each["reason"] == reason]

    def written_since(self, revision: int) -> list[str]:
        """Which kinds were written, but for the leases of nodes."""
        store = self.store
        kinds = (each for each in store.resources() if each != "leases.coordination.k8s.io")
        return [each for each in kinds if store.events(each, after=revision)]


ONLY_CRON_JOBS = assemble_engines(EngineOptions(only=("cronjobs",)))

pytestmark = pytest.mark.stage(kind=CronStage)


async def test_a_job_is_made_at_each_time(stage: CronStage) -> None:
    """It has the template's labels and annotations, its owner, and the time in its name."""
    await stage.make()
    await stage.advance(4 * MINUTE)
    assert await stage.jobs() == {}
    await stage.advance(MINUTE)
    ((name, job),) = (await stage.jobs()).items()
    metadata = job["metadata"]
    assert name == f"tick-{FIRST + 5}"
    assert metadata["labels"] == {"app": "tick"}
    assert metadata["annotations"] == {"note": "yes", SCHEDULED_AT: "2027-01-15T08:05:00Z"}
    owner = (await stage.client.get(CRON_JOBS, "tick", "default"))["metadata"]
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "name": "tick",
            "uid": owner["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    await stage.advance(10 * MINUTE)
    assert await stage.minutes() == [5, 10, 15]


async def test_the_status_follows_the_jobs(stage: CronStage) -> None:
    """The status lists active jobs, the last schedule and the last success."""
    await stage.make()
    await stage.advance(5 * MINUTE)
    status, ((name, job),) = await stage.status(), (await stage.jobs()).items()
    (active,) = status["active"]
    assert (active["kind"], active["apiVersion"]) == ("Job", "batch/v1")
    assert (active["name"], active["uid"]) == (name, job["metadata"]["uid"])
    assert status["lastScheduleTime"] == "2027-01-15T08:05:00Z"
    assert "lastSuccessfulTime" not in status
    await stage.advance(10)
    assert await stage.status() == {
        "lastScheduleTime": "2027-01-15T08:05:00Z",
        "lastSuccessfulTime": "2027-01-15T08:05:05Z",
    }
    assert await stage.told("SuccessfulCreate") == [f"Created job {name}"]
    ended = f"Saw completed job: {name}, condition: Complete"
    assert await stage.told("SawCompletedJob") == [ended]
    assert await stage.told("UnexpectedJob") == []


@pytest.mark.parametrize("spec", [{}, {"suspend": True}, {"concurrencyPolicy": "Forbid"}])
async def test_nothing_is_written_between_two_times(stage: CronStage, spec: Raw) -> None:
    """A cron job waits for the time, also if a job of it goes on and on."""
    await stage.make("5,10 8,9 * * *", run_seconds=DAY, **spec)
    await stage.advance(12 * MINUTE)
    revision = stage.control_plane.store.revision
    await stage.advance(50 * MINUTE)
    assert stage.written_since(revision) == []


async def test_jobs_run_side_by_side_if_they_may(stage: CronStage) -> None:
    """`Allow` is what holds where nothing is said."""
    await stage.make(run_seconds=12 * MINUTE)
    await stage.advance(16 * MINUTE)
    assert await stage.active() == [5, 10, 15]
    await stage.advance(2 * MINUTE)
    assert await stage.active() == [10, 15]


async def test_a_job_waits_for_the_one_before_if_it_has_to(stage: CronStage) -> None:
    """`Forbid`: each time has one event, and the latest is made up for after the job."""
    await stage.make(run_seconds=12 * MINUTE, concurrencyPolicy="Forbid")
    await stage.advance(11 * MINUTE)
    await stage.change(failedJobsHistoryLimit=2)
    await stage.advance(5 * MINUTE)
    assert await stage.minutes() == [5]
    assert len(await stage.told("JobAlreadyActive")) == 2
    await stage.advance(2 * MINUTE)
    assert await stage.minutes() == [5, 15]
    assert await stage.active() == [15]


@pytest.mark.stage(only=(*FEW, "garbage-collector"))
async def test_a_job_takes_the_place_of_the_one_before_if_it_has_to(stage: CronStage) -> None:
    """`Replace`: the old job goes with its pods."""
    await stage.make(run_seconds=12 * MINUTE, concurrencyPolicy="Replace")
    await stage.advance(11 * MINUTE)
    assert await stage.minutes() == await stage.active() == [10]
    assert await stage.told("SuccessfulDelete") == [f"Deleted job tick-{FIRST + 5}"]
    (pod,) = await stage.pods()
    assert pod["metadata"]["ownerReferences"][0]["name"] == f"tick-{FIRST + 10}"
    assert await stage.told("MissingJob") == []


async def test_a_suspended_cron_job_starts_nothing(stage: CronStage) -> None:
    """Afterwards the latest time of those that were missed is made up for."""
    await stage.make(suspend=True)
    await stage.advance(17 * MINUTE)
    assert await stage.minutes() == []
    await stage.change(suspend=False)
    await stage.advance(1)
    assert await stage.minutes() == [15]
    await stage.advance(4 * MINUTE)
    assert await stage.minutes() == [15, 20]


async def test_what_is_missed_beyond_the_deadline_is_not_made_up_for(stage: CronStage) -> None:
    """A time of two minutes ago is over if the deadline is one minute."""
    await stage.make(suspend=True, startingDeadlineSeconds=60)
    await stage.advance(17 * MINUTE)
    await stage.change(suspend=False)
    await stage.advance(1)
    assert await stage.minutes() == []
    await stage.advance(4 * MINUTE)
    assert await stage.minutes() == [20]


async def test_another_schedule_holds_at_once(stage: CronStage) -> None:
    """A changed schedule replaces the time that was waited for."""
    await stage.make("@daily")
    await stage.advance(MINUTE)
    await stage.change(schedule="*/10 * * * *")
    await stage.advance(10 * MINUTE)
    assert await stage.minutes() == [10]
    await stage.change(schedule="@daily")
    await stage.advance(HOUR)
    assert await stage.minutes() == [10]


@pytest.mark.stage(only=(*FEW, "garbage-collector"))
async def test_a_history_is_kept_and_no_more(stage: CronStage) -> None:
    """Three that succeeded and one that failed, where nothing is said; the oldest go."""
    await stage.make()
    await stage.advance(31 * MINUTE)
    assert await stage.minutes() == [20, 25, 30]
    template = {"metadata": {"annotations": {"dryrack.dev/exit-code": "1"}}}
    await stage.change(jobTemplate={"spec": {"template": template}})
    await stage.advance(10 * MINUTE)
    assert await stage.minutes() == [20, 25, 30, 40]
    status = await stage.status()
    assert status["lastSuccessfulTime"] == "2027-01-15T08:30:05Z"
    await stage.change(successfulJobsHistoryLimit=0, failedJobsHistoryLimit=0)
    await stage.advance(2 * MINUTE)
    assert await stage.minutes() == []
    assert await stage.pods() == []


@pytest.mark.stage(only=("cronjobs",))
async def test_a_zone_says_when_it_is_time(stage: CronStage) -> None:
    """Nine o'clock in New York is two in the afternoon in winter; the job says it so."""
    await stage.make("0 9 * * *", timeZone="America/New_York")
    await stage.advance(5 * HOUR)
    assert await stage.minutes() == []
    await stage.advance(HOUR)
    ((name, job),) = (await stage.jobs()).items()
    assert name == f"tick-{FIRST + 6 * 60}"
    scheduled = job["metadata"]["annotations"][SCHEDULED_AT]
    assert scheduled == "2027-01-15T09:00:00-05:00"


@pytest.mark.stage(start=1_793_505_600.0, only=("cronjobs",))
async def test_an_hour_that_comes_twice_has_two_jobs(stage: CronStage) -> None:
    """On the night of 1 November 2026, half past one comes twice in New York."""
    await stage.make("30 1 * * *", timeZone="America/New_York")
    await stage.advance(8 * HOUR)
    found = [each["metadata"] for each in (await stage.jobs()).values()]
    assert sorted(each["annotations"][SCHEDULED_AT] for each in found) == [
        "2026-11-01T01:30:00-04:00",
        "2026-11-01T01:30:00-05:00",
    ]


async def test_jobs_made_by_hand_are_told_of_and_left_alone(stage: CronStage) -> None:
    """As by `kubectl create job --from`: they run, and count for the history, not as active."""
    await stage.make("@daily", successfulJobsHistoryLimit=1)
    client = stage.client
    owner = await client.get(CRON_JOBS, "tick", "default")
    reference = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": "tick",
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    for name in ("first", "second"):
        annotations = {"cronjob.kubernetes.io/instantiate": "manual"}
        metadata = {
            "name": name,
            "namespace": "default",
            "annotations": annotations,
            "ownerReferences": [reference],
        }
        spec = owner["spec"]["jobTemplate"]["spec"]
        await client.create(JOBS, {"metadata": metadata, "spec": spec})
        await stage.advance(1)
        assert await stage.active() == []
        await stage.advance(10)
    assert [*await stage.jobs()] == ["second"]
    assert (await stage.status())["lastSuccessfulTime"] == "2027-01-15T08:00:17Z"
    told = "Saw a job that the controller did not create or forgot"
    assert await stage.told("UnexpectedJob") == [f"{told}: first", f"{told}: second"]


@pytest.mark.stage(only=(*FEW, "garbage-collector"))
async def test_a_job_that_is_deleted_is_no_longer_active(stage: CronStage) -> None:
    """And is not made again."""
    await stage.make("5 8 * * *", run_seconds=DAY)
    await stage.advance(6 * MINUTE)
    ((name, _),) = (await stage.jobs()).items()
    await stage.client.delete(JOBS, name, namespace="default")
    await stage.advance(MINUTE)
    assert await stage.status() == {"lastScheduleTime": "2027-01-15T08:05:00Z"}
    assert await stage.told("MissingJob") == [f"Active job went missing: {name}"]
    assert await stage.jobs() == {}


@pytest.mark.stage(only=(*FEW, "garbage-collector"))
async def test_jobs_go_with_their_cron_job(stage: CronStage) -> None:
    """And their pods with them."""
    await stage.make(run_seconds=DAY)
    await stage.advance(11 * MINUTE)
    await stage.client.delete(CRON_JOBS, "tick", namespace="default")
    await stage.advance(MINUTE)
    assert await stage.jobs() == {}
    assert await stage.pods() == []


async def test_a_name_that_another_job_has_is_left_to_it(stage: CronStage) -> None:
    """The time is skipped, and the next one holds."""
    await stage.make()
    client = stage.client
    spec = cron_job()["spec"]["jobTemplate"]["spec"]
    metadata = {"name": f"tick-{FIRST + 5}", "namespace": "default"}
    taken = await client.create(JOBS, {"metadata": metadata, "spec": spec})
    await stage.advance(11 * MINUTE)
    assert await stage.minutes() == [5, 10]
    found = (await stage.jobs())[f"tick-{FIRST + 5}"]
    assert found["metadata"]["uid"] == taken["metadata"]["uid"]
    assert (await stage.status())["lastScheduleTime"] == "2027-01-15T08:10:00Z"


@pytest.mark.parametrize(("away_minutes", "is_told"), [(30, False), (499, False), (520, True)])
@pytest.mark.stage(only=())
async def test_a_controller_that_was_away_makes_up_for_the_latest_time(
    stage: CronStage, away_minutes: int, is_told: bool
) -> None:
    """One job, however many were missed; if there were more than a hundred, an event says so."""
    await stage.make()
    await stage.advance(away_minutes * MINUTE)
    async with running_engines(ONLY_CRON_JOBS, stage.control_plane.wiring):
        await stage.advance(1)
        latest = away_minutes // 5 * 5
        assert await stage.minutes() == await stage.active() == [latest]
        told = await stage.told("TooManyMissedTimes")
        assert len(told) == is_told
        await stage.advance(5 * MINUTE)
        assert await stage.minutes() == [latest, latest + 5]


@pytest.mark.stage(only=())
async def test_a_controller_that_dies_before_it_writes_the_status_goes_on(
    stage: CronStage,
) -> None:
    """The job is found by its name, written down, and not made twice."""
    await stage.make()
    await stage.advance(6 * MINUTE)
    found = await stage.client.get(CRON_JOBS, "tick", "default")
    (write, *_) = plan(found, (), stage.now(), existing={}).writes
    await stage.create(JOBS, write.object)  # type: ignore[union-attr]
    async with running_engines(ONLY_CRON_JOBS, stage.control_plane.wiring):
        await stage.advance(1)
        assert await stage.minutes() == await stage.active() == [5]
        assert await stage.told("UnexpectedJob") == []


BAD_SPECS = [
    ({"schedule": "59 23 31 2 *"}, "InvalidSchedule"),
    ({"schedule": "often"}, "UnparseableSchedule"),
    ({"timeZone": "Mars/Base"}, "UnknownTimeZone"),
]


@pytest.mark.parametrize(("spec", "reason"), BAD_SPECS)
def test_a_schedule_that_makes_no_sense_is_told(spec: Raw, reason: str) -> None:
    """One that was stored before it was judged, or never comes; nothing is waited for."""
    made = cron_job(**spec)
    made["metadata"] |= {"uid": "u", "creationTimestamp": "2027-01-15T08:00:00Z"}
    found = plan(made, (), START + DAY, existing={})

    (report,) = found.writes
    assert isinstance(report, Report)
    assert (report.type, report.reason) == ("Warning", reason)
    assert found.again_seconds is None


class Play:
    """A cron job for every minute, its controller, and jobs with a given end."""

    def __init__(self, policy: str, kept: int) -> None:
        self.world = World()
        limits = {"successfulJobsHistoryLimit": kept, "failedJobsHistoryLimit": kept}
        spec: Raw = {"concurrencyPolicy": policy} | limits
        self.world.create(CRON_JOBS, cron_job("* * * * *", **spec))

    def plan(self) -> Plan:
        owner = self.world.get(CRON_JOBS, TICK)
        jobs = self.jobs()
        assert owner is not None
        existing = {name_of(job): job for job in jobs}
        return plan(owner, jobs, self.world.now, existing=existing)

    def jobs(self) -> list[Raw]:
        return self.world.all(JOBS)

    def running(self) -> list[Raw]:
        return [job for job in self.jobs() if not job.get("status")]

    def control(self, up_to: int | None = None) -> None:
        self.world.carry_out(self.plan().writes, up_to=up_to)

    def settle(self) -> None:
        for _ in range(10):
            writes = [each for each in self.plan().writes if not isinstance(each, Report)]
            if not writes:
                return
            self.control()
        raise AssertionError("it does not come to rest")

    def end(self, ending: str) -> None:
        for job in self.running()[:1]:
            when = timestamp(self.world.now)
            condition = {"type": ending, "status": "True"}
            done = {"completionTime": when} if ending == "Complete" else {}
            status = {"conditions": [condition], "startTime": when} | done
            self.world.put(JOBS, job | {"status": status})


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["settle", "crash", "Complete", "Failed", "wait"]), st.integers(0, 4)
    ),
    max_size=40,
)


@settings(max_examples=150)
@given(st.sampled_from(["Allow", "Forbid", "Replace"]), st.integers(0, 2), STEPS)
def test_a_cron_job_comes_to_rest_however_it_went(
    policy: str, kept: int, steps: list[tuple[str, int]]
) -> None:
    """No job is made twice; those that run are written down, and the history is short."""
    play = Play(policy, kept)
    crashed = False
    for word, number in steps:
        match word:
            case "settle":
                play.settle()
            case "crash":
                play.control(up_to=number)
                crashed = True
            case "wait":
                play.world.now += number * 25
            case _:
                play.end(word)
        if policy != "Allow" and not crashed:
            assert len(play.running()) <= 1
    play.settle()
    owner = play.world.get(CRON_JOBS, TICK)
    assert owner is not None
    active = {each["uid"] for each in owner.get("status", {}).get("active", ())}
    running = {uid_of(job) for job in play.running()}
    ended = [job["status"]["conditions"][0]["type"] for job in play.jobs() if job.get("status")]

    # A job whose maker died, and that was not found before the next time, is nobody's.
    assert active <= running if crashed else active == running
    assert max(ended.count("Complete"), ended.count("Failed")) <= kept

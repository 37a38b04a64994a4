"""Jobs under any order of events and crashes: each pod is counted once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.controllers.scenes import is_true, job
from tests.controllers.worlds import World

from dryrack.client.endpoints import JOBS, PODS
from dryrack.client.informer import Name, name_of
from dryrack.client.timekeeping import timestamp
from dryrack.controllers.jobs import completion, policies
from dryrack.controllers.jobs.tracking import index_of, index_text, parse_indexes
from dryrack.controllers.objects import (
    finalizers_of,
    is_deleted,
    is_terminal,
    status_of,
    uid_of,
)
from dryrack.controllers.workloads import is_active
from dryrack.controllers.writes import NOTHING, Delete

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

NAME = Name("default", "sum")


class Play:
    """A job, its controller, and pods with a given end."""

    def __init__(self, **spec: Any) -> None:
        self.world = World()
        made = self.world.create(JOBS, job(NAME, **spec))
        labels = {"batch.kubernetes.io/controller-uid": uid_of(made)}
        template = made["spec"]["template"]
        labelled = template | {"metadata": template["metadata"] | {"labels": labels}}
        selected = {"selector": {"matchLabels": labels}, "template": labelled}
        self.world.put(JOBS, made | {"spec": made["spec"] | selected})
        self.ended: dict[str, str] = {}

    @property
    def job(self) -> Raw:
        found = self.world.get(JOBS, NAME)
        assert found is not None
        return found

    def control(self, up_to: int | None = None) -> int:
        plan = completion.plan(self.job, self.world.all(PODS), self.world.now)
        before = self.world.all(PODS)
        self.world.carry_out(plan.writes, up_to=up_to)
        # Whoever is told to go before its end has failed, whatever becomes of it.
        told = {write.uid for write in plan.writes[:up_to] if isinstance(write, Delete)}
        for pod in before:
            if uid_of(pod) in told:
                self.ended.setdefault(uid_of(pod), "Failed")
        return len(plan.writes)

    def end(self, phase: str, code: int = 1) -> bool:
        running = [pod for pod in self.world.all(PODS) if not is_terminal(pod)]
        if not running:
            return False
        self.ended.setdefault(uid_of(running[0]), phase)
        state = {"terminated": {"exitCode": code if phase == "Failed" else 0}}
        statuses = [{"name": "main", "state": state}]
        status = {"phase": phase, "containerStatuses": statuses}
        self.world.put(PODS, running[0] | {"status": status})
        return True

    def finish(self, phase: str) -> None:
        for _ in range(200):
            self.world.now += 1000
            if not self.control() and not self.end(phase):
                return
        raise AssertionError("the job has no end")


STEPS = st.lists(
    st.tuples(st.sampled_from(["control", "crash", "good", "bad", "later"]), st.integers(0, 4)),
    max_size=40,
)


@settings(max_examples=200)
@given(
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(0, 4),
    STEPS,
    st.sampled_from(["Succeeded", "Failed"]),
)
def test_every_pod_is_counted_once(
    completions: int, parallelism: int, limit: int, steps: list[tuple[str, int]], end: str
) -> None:
    """The numbers of a finished job are those of the pods that ended, however it went."""
    play = Play(completions=completions, parallelism=parallelism, backoffLimit=limit)
    for word, number in steps:
        do(play, word, number)
        active = [pod for pod in play.world.all(PODS) if is_active(pod)]
        assert len(active) <= parallelism
    play.finish(end)
    status = status_of(play.job)
    good = sum(phase == "Succeeded" for phase in play.ended.values())
    bad = sum(phase == "Failed" for phase in play.ended.values())

    assert status.get("succeeded", 0) == good
    assert status.get("failed", 0) == bad
    assert is_true(play.job, "Complete") == (good >= completions and bad <= limit)
    assert is_true(play.job, "Complete") != is_true(play.job, "Failed")
    assert status["uncountedTerminatedPods"] == {}


def do(play: Play, word: str, number: int) -> None:
    match word:
        case "control":
            play.control()
        case "crash":
            play.control(up_to=number)
        case "good":
            play.end("Succeeded")
        case "bad":
            play.end("Failed")
        case "later":
            play.world.now += number * 10


@settings(max_examples=60)
@given(st.integers(1, 5), st.integers(1, 3), STEPS)
def test_each_index_succeeds_once(
    completions: int, parallelism: int, steps: list[tuple[str, int]]
) -> None:
    """An indexed job ends with every index done, and none twice at a time."""
    play = Play(
        completions=completions,
        parallelism=parallelism,
        completionMode="Indexed",
        backoffLimit=100,
    )
    for word, number in steps:
        do(play, word, number)
    play.finish("Succeeded")

    assert status_of(play.job)["completedIndexes"] == index_text(frozenset(range(completions)))
    assert is_true(play.job, "Complete")


@given(st.frozensets(st.integers(0, 40)))
def test_indexes_are_written_and_read(indexes: frozenset[int]) -> None:
    """Runs of numbers are written short and read back the same."""
    assert parse_indexes(index_text(indexes)) == indexes


def test_a_suspended_job_has_no_pods() -> None:
    """Suspending deletes what runs; resuming starts again."""
    play = Play(completions=2, parallelism=2, suspend=True)
    play.control()
    assert play.world.all(PODS) == []
    assert is_true(play.job, "Suspended")
    play.world.put(JOBS, play.job | {"spec": play.job["spec"] | {"suspend": False}})
    play.control()
    assert len(play.world.all(PODS)) == 2
    play.world.put(JOBS, play.job | {"spec": play.job["spec"] | {"suspend": True}})
    play.control()
    assert all(is_deleted(pod) for pod in play.world.all(PODS))


def test_a_suspended_job_counts_no_failure_and_its_clock_starts_anew() -> None:
    """Pods that a suspension takes away count as nothing; a deadline begins with the resumption."""
    play = Play(completions=2, parallelism=2, activeDeadlineSeconds=100, backoffLimit=0)
    play.control()
    for is_suspended in (True, False):
        play.world.now += 90
        play.world.put(JOBS, play.job | {"spec": play.job["spec"] | {"suspend": is_suspended}})
        play.control()
        play.control()
    status = status_of(play.job)

    assert status.get("failed", 0) == 0
    assert status["startTime"] == timestamp(play.world.now)
    assert len([pod for pod in play.world.all(PODS) if is_active(pod)]) == 2
    assert not is_true(play.job, "FailureTarget")


def test_a_deleted_pod_of_a_job_is_a_failure() -> None:
    """A running pod that is deleted counts as failed at once, and is replaced."""
    play = Play(completions=1)
    play.control()
    (pod,) = play.world.all(PODS)
    play.world.carry_out([Delete(PODS, name_of(pod), uid_of(pod))])
    for _ in range(4):
        play.world.now += 100
        play.control()
    status = status_of(play.job)

    assert status["failed"] == 1
    assert status.get("succeeded", 0) == 0
    assert [uid_of(each) == uid_of(pod) for each in play.world.all(PODS)] == [False]


@pytest.mark.parametrize("policy", ["Failed", "TerminatingOrFailed"])
def test_a_job_past_its_deadline_fails_and_asks_for_nothing_more(policy: str) -> None:
    """Its pods, scheduled or not, count as failed; no look is wanted once nothing is to be done."""
    play = Play(completions=3, parallelism=3, activeDeadlineSeconds=2, podReplacementPolicy=policy)
    play.control()
    play.world.now += 3
    plans = []
    while not is_true(play.job, "Failed"):
        plans.append(completion.plan(play.job, play.world.all(PODS), play.world.now))
        play.world.carry_out(plans[-1].writes)
        assert len(plans) < 10

    assert all(plan.again_seconds is None for plan in plans)
    assert status_of(play.job)["failed"] == 3
    assert completion.plan(play.job, play.world.all(PODS), play.world.now) == NOTHING


def test_a_finished_job_goes_when_its_time_is_over() -> None:
    """`ttlSecondsAfterFinished` counts from the end."""
    play = Play(completions=1, ttlSecondsAfterFinished=100)
    play.control()
    play.end("Succeeded")
    while not is_true(play.job, "Complete"):
        assert play.control()
    waiting = completion.plan(play.job, play.world.all(PODS), play.world.now + 50)
    over = completion.plan(play.job, play.world.all(PODS), play.world.now + 101)

    assert waiting.writes == ()
    assert waiting.again_seconds == 50
    assert [type(each).__name__ for each in over.writes] == ["Delete"]


def test_a_job_of_another_controller_is_left_to_it() -> None:
    """Nothing is done about it but to end it when it is finished and its time is over."""
    play = Play(completions=1, managedBy="example.com/queue", ttlSecondsAfterFinished=100)
    assert not play.control()
    end = {"type": "Complete", "status": "True"}
    play.world.put(JOBS, play.job | {"status": {"conditions": [end]}})
    undated = completion.plan(play.job, [], play.world.now + 1000)
    dated = end | {"lastTransitionTime": timestamp(play.world.now)}
    play.world.put(JOBS, play.job | {"status": {"conditions": [dated]}})
    over = completion.plan(play.job, [], play.world.now + 101)

    assert undated.writes == ()
    assert [type(each).__name__ for each in over.writes] == ["Delete"]


def _failed(code: int, **status: Any) -> Raw:
    terminated = {"terminated": {"exitCode": code}}
    statuses = [{"name": "side", "state": {"running": {}}}, {"name": "main", "state": terminated}]
    return {
        "metadata": {"name": "p", "namespace": "default"},
        "status": {"phase": "Failed", "containerStatuses": statuses, **status},
    }


@pytest.mark.parametrize(
    ("rule", "pod", "action"),
    [
        ({"onExitCodes": {"operator": "In", "values": [3, 42]}}, _failed(42), "Ignore"),
        ({"onExitCodes": {"operator": "In", "values": [3]}}, _failed(42), "Count"),
        ({"onExitCodes": {"operator": "NotIn", "values": [3]}}, _failed(42), "Ignore"),
        # Zero is no failure, whatever is not in the list.
        ({"onExitCodes": {"operator": "NotIn", "values": [3]}}, _failed(0), "Count"),
        (
            {"onExitCodes": {"containerName": "side", "operator": "In", "values": [42]}},
            _failed(42),
            "Count",
        ),
        (
            {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            _failed(1, conditions=[{"type": "DisruptionTarget", "status": "True"}]),
            "Ignore",
        ),
        (
            {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            _failed(1, conditions=[{"type": "DisruptionTarget", "status": "False"}]),
            "Count",
        ),
    ],
)
def test_the_first_rule_that_fits_decides(rule: Raw, pod: Raw, action: str) -> None:
    """Exit codes of any container that ended badly, or conditions of the pod."""
    rules = [{"action": "Ignore", **rule}, {"action": "Count", "onExitCodes": _ANY}]
    made = job(NAME, podFailurePolicy={"rules": rules})

    assert policies.failure_action(made, pod).action == action


_ANY = {"operator": "NotIn", "values": [0]}


def test_a_fatal_failure_is_told_as_the_real_controller_does() -> None:
    """By its container and exit code, or by the condition of the pod."""
    by_code = {"action": "FailJob", "onExitCodes": _ANY}
    disrupted = {"type": "DisruptionTarget", "status": "True"}
    by_condition = {"action": "FailJob", "onPodConditions": [disrupted]}
    pod = _failed(7, conditions=[disrupted])
    told = [
        policies.fatal_message(job(NAME, podFailurePolicy={"rules": rules}), [pod])
        for rules in ([by_code], [{"action": "Ignore", "onExitCodes": {**_IN_3}}, by_condition])
    ]

    assert told == [
        "Container main for pod default/p failed with exit code 7 matching FailJob rule at index 0",
        "Pod default/p has condition DisruptionTarget matching FailJob rule at index 1",
    ]


_IN_3 = {"operator": "In", "values": [3]}
INDEXED = {"completionMode": "Indexed", "backoffLimit": 2**31 - 1}
POLICY = {
    "rules": [
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [9]}},
        {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}},
    ]
}
ENDS = st.lists(st.sampled_from(["good", "bad", "ignored", "fatal", "control"]), max_size=40)


@settings(max_examples=150)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 2), ENDS)
def test_every_index_has_its_own_limit(
    completions: int, parallelism: int, limit: int, steps: list[str]
) -> None:
    """
    An index is given up after its limit of failures or a fatal one; ignored ones never count.

    The job ends when each index has succeeded or is given up.
    """
    play = Play(
        completions=completions,
        parallelism=parallelism,
        backoffLimitPerIndex=limit,
        podFailurePolicy=POLICY,
        podReplacementPolicy="Failed",
        **INDEXED,
    )
    codes = {"bad": 1, "ignored": 9, "fatal": 42}
    failures: dict[int, int] = {}
    for word in [*steps, *["bad", "control"] * 60]:
        play.world.now += 1000
        running = [pod for pod in play.world.all(PODS) if not is_terminal(pod)]
        if word == "control" or not running:
            play.control()
            continue
        index = index_of(running[0])
        assert index is not None
        play.end("Succeeded" if word == "good" else "Failed", codes.get(word, 0))
        failures[index] = failures.get(index, 0) + {"bad": 1, "fatal": limit + 1}.get(word, 0)
    play.finish("Failed")
    status = status_of(play.job)
    given_up = {index for index, count in failures.items() if count > limit}

    assert parse_indexes(status["failedIndexes"]) == given_up
    done = parse_indexes(status.get("completedIndexes", ""))
    assert done | given_up == set(range(completions))
    assert is_true(play.job, "Complete") == (not given_up)
    assert status["uncountedTerminatedPods"] == {}
    assert not any(finalizers_of(pod) for pod in play.world.all(PODS))


@pytest.mark.parametrize(
    ("rules", "succeeded", "message"),
    [
        ([{"succeededIndexes": "0,2-3"}], {0, 2, 3}, "Matched rules at index 0"),
        ([{"succeededIndexes": "0,2-3"}], {0, 1, 2}, ""),
        ([{"succeededIndexes": "0,2-3", "succeededCount": 2}], {0, 3}, "Matched rules at index 0"),
        ([{"succeededIndexes": "0,2-3", "succeededCount": 2}], {1, 3}, ""),
        ([{"succeededIndexes": "9"}, {"succeededCount": 2}], {1, 3}, "Matched rules at index 1"),
        ([{"succeededCount": 0}], set(), ""),
    ],
)
def test_a_job_may_succeed_early(rules: list[Raw], succeeded: set[int], message: str) -> None:
    """By certain indexes, by a number of them, or by a number of any."""
    made = job(NAME, successPolicy={"rules": rules})

    assert policies.success_message(made, frozenset(succeeded)) == message

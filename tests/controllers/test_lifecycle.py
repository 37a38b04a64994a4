"""The life of a pod, under every order of events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dryrack.controllers.pods.lifecycle import (
    Container,
    Deleted,
    Effect,
    Event,
    Exited,
    Missing,
    Passed,
    Prepared,
    Remove,
    Role,
    Run,
    Running,
    Waiting,
    WakeAt,
    step,
)
from dryrack.controllers.pods.rendering import new_run, phase_of, render, resume

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

START = 1_800_000_000.0
SECONDS = st.sampled_from(["0", "1", "7", "30", "x", "-1", "nan"])
ANNOTATIONS = st.fixed_dictionaries(
    {},
    optional={
        f"dryrack.dev/{word}": values
        for word, values in {
            "start-seconds": SECONDS,
            "init-seconds": SECONDS,
            "ready-seconds": SECONDS,
            "run-seconds": SECONDS,
            "stop-seconds": SECONDS,
            "exit-code": st.sampled_from(["0", "1", "256"]),
            "failures": st.sampled_from(["0", "2"]),
            "waiting": st.sampled_from(["", "ImagePullBackOff"]),
        }.items()
    },
)


@st.composite
def pods(draw: st.DrawFn) -> Raw:
    sidecars = draw(st.lists(st.booleans(), max_size=3))
    first = [
        {"name": f"i{number}", "image": "i"} | ({"restartPolicy": "Always"} if sidecar else {})
        for number, sidecar in enumerate(sidecars)
    ]
    count = draw(st.integers(1, 3))
    spec: Raw = {
        "restartPolicy": draw(st.sampled_from(["Always", "OnFailure", "Never"])),
        "initContainers": first,
        "containers": [{"name": f"c{number}", "image": "c"} for number in range(count)],
    }
    deadline = draw(st.sampled_from([None, 1, 200]))
    if deadline is not None:
        spec["activeDeadlineSeconds"] = deadline
    metadata = {"name": "p", "uid": "u", "annotations": draw(ANNOTATIONS)}
    return {"metadata": metadata, "spec": spec}


WORDS = ["prepare", "pass", "pass", "lack", "have", "delete"]
SCRIPTS = st.lists(
    st.tuples(st.sampled_from(WORDS), st.integers(0, 400)),
    max_size=20,
)


def drive(pod: Raw, script: list[tuple[str, int]]) -> list[tuple[Event, Run, tuple[Effect, ...]]]:
    run = new_run(pod, START)
    now = START
    found = []
    for word, seconds in script:
        now += seconds
        run, effects = step(run, event := event_of(word, now))
        found.append((event, run, effects))
    return found


def event_of(word: str, now: float) -> Event:
    match word:
        case "prepare":
            return Prepared(now)
        case "delete":
            return Deleted(now, 30.0)
        case "lack":
            return Missing(now, {"c0": 'configmap "x" not found'})
        case "have":
            return Missing(now, {})
        case _:
            return Passed(now)


@given(pods(), SCRIPTS)
def test_what_lacks_something_does_not_start(pod: Raw, script: list[tuple[str, int]]) -> None:
    """From the moment on when something is missing until it is there."""
    before = new_run(pod, START)
    for event, run, _ in drive(pod, script):
        if before.missing and not isinstance(event, Missing):
            old = before.mains[0]
            new = run.mains[0]
            assert new.restarts == old.restarts
            assert isinstance(new.state, Waiting) or not isinstance(old.state, Waiting)
        before = run


@given(pods(), SCRIPTS)
def test_nothing_runs_past_the_deadline_and_its_grace(
    pod: Raw, script: list[tuple[str, int]]
) -> None:
    """A pod that was stopped at its deadline has failed, regardless of its containers."""
    seconds = pod["spec"].get("activeDeadlineSeconds")
    for event, run, _ in drive(pod, script):
        if seconds is not None and event.at >= START + seconds + 30:
            assert run.is_stopped
            assert phase_of(run) in ("Failed", "Succeeded")
        if run.is_expired and run.is_over:
            assert phase_of(run) == "Failed"


@given(pods(), SCRIPTS)
def test_time_only_goes_forward(pod: Raw, script: list[tuple[str, int]]) -> None:
    """Nothing happens in the future, every wake-up is ahead, and no change is before another."""
    last = START
    for event, run, effects in drive(pod, script):
        assert last <= run.at <= max(event.at, last)
        last = run.at
        assert all(each.when > event.at for each in effects if isinstance(each, WakeAt))


@given(pods(), SCRIPTS)
def test_nothing_runs_before_its_turn(pod: Raw, script: list[tuple[str, int]]) -> None:
    """No main container starts before all init containers are done, none before the devices."""
    for _, run, _ in drive(pod, script):
        begun = [each for each in run.containers if not isinstance(each.state, Waiting)]
        if run.prepared_at is None:
            assert begun == []
        if any(each.role is Role.MAIN for each in begun):
            inits = [each for each in run.containers if each.role is Role.INIT]
            assert all(isinstance(each.state, Exited) for each in inits)


@given(pods(), SCRIPTS)
def test_the_policy_decides_about_restarts(pod: Raw, script: list[tuple[str, int]]) -> None:
    """Never means never; success is final unless the policy is Always."""
    for _, run, _ in drive(pod, script):
        for container in run.mains:
            if run.restart_policy == "Never":
                assert container.restarts == 0
            if run.restart_policy == "OnFailure" and container.last is not None:
                assert container.last.code != 0


@given(pods(), SCRIPTS)
def test_a_pod_is_removed_only_when_it_is_deleted_and_still(
    pod: Raw, script: list[tuple[str, int]]
) -> None:
    """`Remove` follows a deletion, when nothing runs; and within the grace it comes."""
    deleted_at: float | None = None
    for event, run, effects in drive(pod, script):
        if isinstance(event, Deleted) and deleted_at is None:
            deleted_at = event.at
        is_removed = Remove() in effects
        if is_removed:
            assert deleted_at is not None
            assert not any(isinstance(each.state, Running) for each in run.containers)
        if deleted_at is not None and event.at >= deleted_at + 30:
            assert is_removed


@given(pods(), SCRIPTS)
@example(
    {
        "metadata": {"name": "p", "uid": "u", "annotations": {}},
        "spec": {"restartPolicy": "Always", "containers": [{"name": "c0", "image": "c"}]},
    },
    [("prepare", 0), ("delete", 0), ("prepare", 0)],
)
def test_nothing_starts_after_a_deletion(pod: Raw, script: list[tuple[str, int]]) -> None:
    """A deleted pod stops and never runs again, even if a finalizer keeps it for long."""
    started: list[tuple[str, int]] | None = None
    for event, run, effects in drive(pod, script):
        seen = [(each.name, each.restarts) for each in begun_in(run)]
        if started is None:
            started = seen if isinstance(event, Deleted) else None
            continue
        assert seen == started
        if Remove() in effects:
            assert phase_of(run) in ("Failed", "Succeeded")
            status = render(run, pod, address="10.64.0.1", host="10.0.0.1")
            again = resume(pod | {"status": status}, event.at)
            after, _ = step(again, Deleted(event.at + 500, 30.0))
            assert [each.state for each in after.containers] == [
                each.state for each in run.containers
            ]


def begun_in(run: Run) -> list[Container]:
    return [each for each in run.containers if not isinstance(each.state, Waiting) or each.last]


@pytest.mark.parametrize(
    ("stop_seconds", "grace_seconds", "code"), [(0, 30, 143), (20, 30, 143), (40, 30, 137)]
)
def test_a_deletion_ends_a_container_by_a_signal(
    stop_seconds: int, grace_seconds: float, code: int
) -> None:
    """SIGTERM, or SIGKILL when the grace is over: the pod has failed under every policy."""
    for policy in ("Always", "OnFailure", "Never"):
        metadata = {
            "name": "p",
            "uid": "u",
            "annotations": {
                "dryrack.dev/run-seconds": "1000",
                "dryrack.dev/stop-seconds": str(stop_seconds),
            },
        }
        pod = {
            "metadata": metadata,
            "spec": {"restartPolicy": policy, "containers": [{"name": "c"}]},
        }
        run, _ = step(new_run(pod, START), Prepared(START))
        run, _ = step(run, Deleted(START + 1, grace_seconds))
        run, effects = step(run, Passed(START + 31))

        assert effects == (Remove(),)
        assert isinstance(run.mains[0].state, Exited)
        assert run.mains[0].state.code == code
        assert phase_of(run) == "Failed"


@given(pods(), SCRIPTS)
def test_waking_up_early_changes_nothing(pod: Raw, script: list[tuple[str, int]]) -> None:
    """The number of `Passed` events does not matter."""
    often: list[tuple[str, int]] = []
    for word, seconds in script:
        half = seconds // 2
        often += [("pass", half), (word, seconds - half)]
    rare = drive(pod, script)
    dense = drive(pod, often)

    assert not script or rare[-1][1] == dense[-1][1]


@given(pods(), SCRIPTS)
def test_a_run_goes_on_from_its_status(pod: Raw, script: list[tuple[str, int]]) -> None:
    """A run survives the status: phase, containers, restarts."""
    for _, run, _ in drive(pod, script):
        status = render(run, pod, address="10.64.0.1", host="10.0.0.1")
        again = resume(pod | {"status": status}, START)

        assert [(each.name, each.state, each.restarts) for each in again.containers] == [
            (each.name, each.state, each.restarts) for each in run.containers
        ]
        if run.stops_at is None:
            assert phase_of(again) == phase_of(run) == status["phase"]


@given(pods(), SCRIPTS)
def test_rendering_is_stable(pod: Raw, script: list[tuple[str, int]]) -> None:
    """A status that was written is not written again while nothing changes."""
    status: Raw = {}
    for event, run, _ in drive(pod, script):
        status = render(run, pod | {"status": status}, address="10.64.0.1", host="10.0.0.1")
        later, _ = step(run, Passed(event.at))
        again = render(later, pod | {"status": status}, address="10.64.0.1", host="10.0.0.1")

        assert again == status


def pod_of(kind: str, api_version: str, **annotations: str) -> Raw:
    owner = {"kind": kind, "apiVersion": api_version, "name": "o", "uid": "o", "controller": True}
    metadata = {"name": "p", "uid": "u", "annotations": annotations}
    return {
        "metadata": metadata | ({"ownerReferences": [owner]} if kind else {}),
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c"}]},
    }


@pytest.mark.parametrize(
    ("kind", "api_version"), [("", ""), ("Job", "batch.volcano.sh/v1alpha1"), ("RayCluster", "v1")]
)
def test_a_pod_of_no_job_runs_until_it_is_deleted(kind: str, api_version: str) -> None:
    """A pod without an expected end runs forever, with any restart policy."""
    run, effects = step(new_run(pod_of(kind, api_version), START), Prepared(START))

    assert phase_of(run) == "Running"
    assert effects == ()


def test_an_annotation_ends_a_pod_of_no_job() -> None:
    """An annotation has precedence over the default."""
    pod = pod_of("", "", **{"dryrack.dev/run-seconds": "3"})
    _, effects = step(new_run(pod, START), Prepared(START))

    assert effects == (WakeAt(START + 3.0),)


@pytest.mark.parametrize(("inits", "reasons"), [([], ["X"]), (["i", "j"], ["X", "P", "P"])])
def test_a_pod_that_is_to_wait_says_for_what(inits: list[str], reasons: list[str]) -> None:
    """As kubectl shows it: of the container that would start first, and no container starts."""
    pod = pod_of("", "", **{"dryrack.dev/waiting": "X"})
    pod["spec"]["initContainers"] = [{"name": name} for name in inits]
    run, _ = step(new_run(pod, START), Prepared(START))
    run, _ = step(run, Passed(START + 1000))

    found = [each.state for each in run.containers]
    assert found == [Waiting({"P": "PodInitializing"}.get(each, each)) for each in reasons]


def test_a_pod_of_a_job_completes_by_itself() -> None:
    """A pod of a Job without an annotation runs for a while and succeeds."""
    run, effects = step(new_run(pod_of("Job", "batch/v1"), START), Prepared(START))

    assert phase_of(run) == "Running"
    assert effects == (WakeAt(START + 5.0),)
    run, effects = step(run, Passed(START + 5.0))
    assert phase_of(run) == "Succeeded"
    assert effects == ()


@pytest.mark.parametrize(("policy", "seconds"), [("Never", 5.0), ("OnFailure", 5.0), ("Always", 0)])
def test_a_pod_that_is_a_hook_of_helm_completes_if_it_can(policy: str, seconds: float) -> None:
    """`helm test` waits until its pod has succeeded; one that is always restarted never does."""
    pod = pod_of("", "", **{"helm.sh/hook": "test"})
    pod["spec"]["restartPolicy"] = policy
    _, effects = step(new_run(pod, START), Prepared(START))

    assert effects == ((WakeAt(START + seconds),) if seconds else ())

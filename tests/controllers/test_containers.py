"""Containers of virtual nodes run their commands, in virtual time."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from dryrack.client.errors import NotFoundError
from dryrack.testing import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A cluster with one virtual node."""
    with Cluster() as cluster:
        cluster.add_nodes(count=1, capacity={"cpu": 8})
        yield cluster


def container(*command: str, **more: Any) -> Raw:
    return {"name": "c", "image": "busybox", "command": list(command), **more}


def script(text: str, **more: Any) -> Raw:
    return container("sh", "-c", text, **more)


def pod(*containers: Raw, name: str = "p", **spec: Any) -> Raw:
    named = [
        each | {"name": f"c{number}" if number else "c"} for number, each in enumerate(containers)
    ]
    metadata: Raw = {"name": name, "namespace": "default"}
    if annotations := spec.pop("annotations", None):
        metadata["annotations"] = annotations
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": named, **spec},
    }


def job(command: Raw, **spec: Any) -> Raw:
    template = {"spec": {"restartPolicy": "Never", "containers": [command]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"template": template, **spec},
    }


def status_of(cluster: Cluster, name: str = "p", number: int = 0) -> Raw:
    statuses = cluster.get("Pod", name)["status"]["containerStatuses"]
    status: Raw = statuses[number]
    return status


def condition_of(cluster: Cluster, kind: str) -> Raw | None:
    conditions = cluster.get("Job", "j")["status"].get("conditions", ())
    return next((each for each in conditions if each["type"] == kind), None)


def test_a_job_succeeds_when_its_command_does(cluster: Cluster) -> None:
    """The Job completes when the script has ended, not after a fixed time."""
    cluster.apply(job(script("echo start; sleep 30; echo end")))
    cluster.advance(20)
    before = condition_of(cluster, "Complete")
    cluster.advance(20)

    assert before is None
    complete = condition_of(cluster, "Complete")
    assert complete is not None
    assert complete["status"] == "True"


def test_a_job_fails_when_its_command_does(cluster: Cluster) -> None:
    """Pods that exit with 1 count against the back-off limit."""
    cluster.apply(job(script("exit 1"), backoffLimit=1))
    cluster.advance(120)

    failed = condition_of(cluster, "Failed")
    assert failed is not None
    assert failed["reason"] == "BackoffLimitExceeded"
    assert cluster.get("Job", "j")["status"]["failed"] == 2


def test_a_pod_failure_policy_reads_the_exit_code(cluster: Cluster) -> None:
    """A rule for the code 42 ends the Job at once."""
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    cluster.apply(job(script("exit 42"), podFailurePolicy={"rules": [rule]}, backoffLimit=6))
    cluster.advance(60)

    failed = condition_of(cluster, "Failed")
    assert failed is not None
    assert failed["reason"] == "PodFailurePolicy"
    assert cluster.get("Job", "j")["status"]["failed"] == 1


def test_a_success_policy_reads_which_index_succeeded(cluster: Cluster) -> None:
    """The Job is done when index 0 is, also if the others never end."""
    command = script("[ $JOB_COMPLETION_INDEX = 0 ] || sleep infinity")
    policy = {"rules": [{"succeededIndexes": "0"}]}
    cluster.apply(
        job(command, completionMode="Indexed", completions=3, parallelism=3, successPolicy=policy)
    )
    cluster.advance(60)

    complete = condition_of(cluster, "SuccessCriteriaMet")
    assert complete is not None
    assert complete["status"] == "True"


def test_a_container_that_fails_is_restarted_with_a_growing_wait(cluster: Cluster) -> None:
    """The status has the last exit code, its message, and the number of restarts."""
    cluster.apply(pod(script("echo broken > /dev/termination-log; exit 3")))
    cluster.advance(5)

    status = status_of(cluster)
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    last = status["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"], last["message"]) == (3, "Error", "broken\n")
    assert status["restartCount"] == 1
    cluster.advance(30)
    assert status_of(cluster)["restartCount"] == 3


def test_a_failing_init_container_keeps_the_others_from_starting(cluster: Cluster) -> None:
    """It is restarted unless the policy of the pod is Never."""
    failing = container("false") | {"name": "init"}
    cluster.apply(pod(container("sleep", "9"), initContainers=[failing]))
    cluster.apply(
        pod(container("sleep", "9"), name="never", initContainers=[failing], restartPolicy="Never")
    )
    cluster.advance(5)

    waiting = cluster.get("Pod", "p")["status"]
    assert waiting["phase"] == "Pending"
    assert waiting["initContainerStatuses"][0]["restartCount"] >= 1
    assert cluster.get("Pod", "never")["status"]["phase"] == "Failed"


def test_init_containers_run_one_after_the_other(cluster: Cluster) -> None:
    """Each takes its own time, and they share files with the container."""
    mount = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    first = script("sleep 5; echo one > /data/f") | {"name": "first"} | mount
    second = script("sleep 5; echo two >> /data/f") | {"name": "second"} | mount
    cluster.apply(
        pod(
            script("cat /data/f; sleep 99") | mount,
            initContainers=[first, second],
            volumes=[{"name": "data", "emptyDir": {}}],
        )
    )
    cluster.advance(9)
    before = cluster.get("Pod", "p")["status"]["phase"]
    cluster.advance(2)

    assert (before, cluster.get("Pod", "p")["status"]["phase"]) == ("Pending", "Running")
    assert cluster.logs("p") == "one\ntwo\n"


def test_the_environment_comes_from_all_sources(cluster: Cluster) -> None:
    """ConfigMaps, Secrets, fields of the pod, amounts of resources, and references to others."""
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": "default"},
            "data": {"COLOR": "red", "file": "content\n"},
        }
    )
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "keys", "namespace": "default"},
            "stringData": {"password": "s3cret"},
        }
    )
    env = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)-$(MISSING)-$$(A)"},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "password"}}},
    ]
    shown = script(
        "echo $A $B $NODE $APP $CPU $KEY $COLOR $(ARGUMENT) $HOSTNAME; cat /etc/settings/file",
        env=[*env, {"name": "ARGUMENT", "value": "expanded"}],
        envFrom=[{"configMapRef": {"name": "settings"}}],
        resources={"limits": {"cpu": "1500m"}},
        volumeMounts=[{"name": "settings", "mountPath": "/etc/settings"}],
    )
    labeled = pod(
        shown,
        restartPolicy="Never",
        volumes=[{"name": "settings", "configMap": {"name": "settings"}}],
    )
    labeled["metadata"]["labels"] = {"app": "web"}
    cluster.apply(labeled)
    cluster.advance(5)

    [line, content] = cluster.logs("p").splitlines()
    assert line == "1 1-$(MISSING)-$(A) node-1 web 2 s3cret red expanded p"
    assert content == "content"


def test_a_service_account_token_is_bound_to_its_pod(cluster: Cluster) -> None:
    """A projected volume has a token that is bound to the pod."""
    source = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}
    cluster.apply(
        pod(
            script("cat /token/token", volumeMounts=[{"name": "t", "mountPath": "/token"}]),
            restartPolicy="Never",
            volumes=[{"name": "t", "projected": {"sources": [source]}}],
        )
    )
    cluster.advance(5)
    payload = cluster.logs("p").split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))

    assert claims["kubernetes.io"]["pod"]["name"] == "p"
    assert claims["sub"] == "system:serviceaccount:default:default"


def test_a_deleted_pod_takes_a_second_to_stop(cluster: Cluster) -> None:
    """A container without a handler for SIGTERM ends after one second."""
    cluster.apply(pod(container("sleep", "infinity")))
    cluster.advance(5)
    cluster.delete("Pod", "p")
    cluster.advance(0.5)
    stopping = cluster.get("Pod", "p")
    cluster.advance(1)

    assert "deletionTimestamp" in stopping["metadata"]
    with pytest.raises(NotFoundError):
        cluster.get("Pod", "p")


@pytest.mark.parametrize(
    ("command", "lifecycle", "seconds"),
    [
        ("trap 'exit 0' TERM; sleep 9999 & wait", {}, 0.0),
        ("trap 'sleep 5; exit 0' TERM; sleep 9999 & wait", {}, 5.0),
        ("sleep 9999", {"preStop": {"exec": {"command": ["sh", "-c", "sleep 7"]}}}, 8.0),
        ("sleep 9999", {"preStop": {"sleep": {"seconds": 4}}}, 5.0),
        # The grace of the pod ends what takes longer.
        ("trap 'sleep 100' TERM; sleep 9999 & wait", {}, 30.0),
        ("sleep 9999", {"preStop": {"exec": {"command": ["sleep", "60"]}}}, 30.0),
    ],
)
def test_hooks_and_handlers_decide_how_long_a_pod_takes_to_stop(
    cluster: Cluster, command: str, lifecycle: Raw, seconds: float
) -> None:
    """The pod is gone when its hook and its handler have ended, or with its grace."""
    cluster.apply(pod(script(command, lifecycle=lifecycle)))
    cluster.advance(5)
    cluster.delete("Pod", "p")
    if seconds:
        cluster.advance(seconds - 0.5)
        cluster.get("Pod", "p")
    cluster.advance(1)

    with pytest.raises(NotFoundError):
        cluster.get("Pod", "p")


def test_annotations_decide_before_the_command(cluster: Cluster) -> None:
    """A pod whose outcome is set ends as its annotations say."""
    annotations = {"dryrack.dev/run-seconds": "3", "dryrack.dev/exit-code": "5"}
    cluster.apply(
        pod(container("sleep", "infinity"), annotations=annotations, restartPolicy="Never")
    )
    cluster.advance(5)

    assert status_of(cluster)["state"]["terminated"]["exitCode"] == 5


def test_an_unknown_program_behaves_as_without_an_interpreter(cluster: Cluster) -> None:
    """The log names it once; a pod runs on, and a Job pod ends after five seconds."""
    text = "echo begin; nvidia-smi; nvidia-smi; echo end"
    cluster.apply(pod(script(text)))
    cluster.apply(job(script(text)))
    cluster.advance(20)

    assert cluster.get("Pod", "p")["status"]["phase"] == "Running"
    assert cluster.logs("p") == "begin\n# dryrack does not run nvidia-smi\n"
    assert condition_of(cluster, "Complete") is not None


@pytest.mark.parametrize(
    ("image", "phase"),
    [
        ("registry.k8s.io/pause:3.10", "Running"),
        ("nginx", "Running"),
        ("busybox:1.36", "Succeeded"),
        ("example.com/unknown:1", "Running"),
    ],
)
def test_an_image_without_a_command_does_what_it_is_known_for(
    cluster: Cluster, image: str, phase: str
) -> None:
    """A server runs on; a shell without input ends at once."""
    cluster.apply(pod({"name": "c", "image": image}, restartPolicy="Never"))
    cluster.advance(20)

    assert cluster.get("Pod", "p")["status"]["phase"] == phase


def test_an_idle_loop_costs_no_writes_and_no_wakes(cluster: Cluster) -> None:
    """A container that loops forever changes nothing in the cluster."""
    cluster.apply(pod(script("while true; do date; sleep 1; done")))
    cluster.advance(5)
    before = cluster.get("Pod", "p")["metadata"]["resourceVersion"]
    cluster.advance(3600)

    assert cluster.get("Pod", "p")["metadata"]["resourceVersion"] == before
    assert len(cluster.logs("p").splitlines()) > 3600


def probe(*words: str, **more: Any) -> Raw:
    return {"exec": {"command": list(words)}, **more}


def messages_of(cluster: Cluster, reason: str) -> list[str]:
    return [each["message"] for each in cluster.list("Event") if each["reason"] == reason]


def test_a_readiness_probe_decides_when_a_pod_is_ready(cluster: Cluster) -> None:
    """The pod becomes ready with the first probe after the file exists, and unready without it."""
    text = "sleep 22; touch /tmp/ready; sleep 36; rm /tmp/ready; sleep 600"
    readiness = probe("cat", "/tmp/ready", periodSeconds=5, failureThreshold=2)
    cluster.apply(pod(script(text, readinessProbe=readiness)))
    ready = []
    for _ in range(9):
        cluster.advance(10)
        ready.append(status_of(cluster)["ready"])

    assert ready == [False, False, True, True, True, True, False, False, False]
    assert status_of(cluster)["restartCount"] == 0
    assert messages_of(cluster, "Unhealthy") == [
        "Readiness probe failed: cat: can't open '/tmp/ready': No such file or directory\n"
    ]


def test_a_liveness_probe_restarts_a_container(cluster: Cluster) -> None:
    """Three failures in a row restart the container, with the events of the kubelet."""
    text = "touch /tmp/healthy; sleep 30; rm -f /tmp/healthy; sleep 600"
    liveness = probe("cat", "/tmp/healthy", initialDelaySeconds=5, periodSeconds=5)
    cluster.apply(pod(script(text, livenessProbe=liveness)))
    cluster.advance(40)
    before = status_of(cluster)["restartCount"]
    cluster.advance(15)
    status = status_of(cluster)

    assert (before, status["restartCount"], status["ready"]) == (0, 1, True)
    assert status["lastState"]["terminated"]["exitCode"] == 143
    assert messages_of(cluster, "Killing") == [
        "Container c failed liveness probe, will be restarted"
    ]


def test_other_probes_wait_for_the_startup_probe(cluster: Cluster) -> None:
    """A liveness probe that would fail early does not run before the container has started."""
    startup = probe("test", "-e", "/tmp/up", periodSeconds=5, failureThreshold=30)
    liveness = probe("test", "-e", "/tmp/up", periodSeconds=1, failureThreshold=1)
    text = "sleep 60; touch /tmp/up; sleep 600"
    cluster.apply(pod(script(text, startupProbe=startup, livenessProbe=liveness)))
    cluster.advance(50)
    before = status_of(cluster)
    cluster.advance(30)
    after = status_of(cluster)

    assert (before["started"], before["ready"]) == (False, False)
    assert (after["started"], after["ready"], after["restartCount"]) == (True, True, 0)


def test_a_startup_probe_that_never_succeeds_ends_the_container(cluster: Cluster) -> None:
    """The container is stopped after the threshold, and the pod fails by its restart policy."""
    startup = probe("false", periodSeconds=2, failureThreshold=3)
    cluster.apply(pod(script("sleep 600", startupProbe=startup), restartPolicy="Never"))
    cluster.advance(20)

    assert cluster.get("Pod", "p")["status"]["phase"] == "Failed"
    assert messages_of(cluster, "Unhealthy") == ["Startup probe failed: "]


def test_a_probe_that_takes_too_long_fails(cluster: Cluster) -> None:
    """A command has one second unless the probe allows more."""
    cluster.apply(pod(script("sleep 600", readinessProbe=probe("sleep", "3"))))
    cluster.advance(30)

    assert status_of(cluster)["ready"] is False
    assert messages_of(cluster, "Unhealthy") == [
        "Readiness probe failed: command timed out: sleep 3 timed out after 1s"
    ]


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "prepare-data; sleep 600"],
        ["/usr/local/bin/server"],
    ],
)
def test_probes_of_unknown_programs_succeed(cluster: Cluster, command: list[str]) -> None:
    """dryrack does not run the program that would create the file, so the pod is ready."""
    ready = container(*command, readinessProbe=probe("cat", "/tmp/ready", periodSeconds=1))
    cluster.apply(pod(ready))
    cluster.advance(10)

    assert status_of(cluster)["ready"] is True


def test_a_probe_runs_an_unknown_program_with_success(cluster: Cluster) -> None:
    """A health check that is part of an image does not keep a pod from being ready."""
    cluster.apply(pod(script("sleep 600", livenessProbe=probe("grpc_health_probe", "-addr=:80"))))
    cluster.advance(60)

    assert (status_of(cluster)["ready"], status_of(cluster)["restartCount"]) == (True, 0)


def test_a_hook_runs_after_the_start(cluster: Cluster) -> None:
    """The container is ready when its hook has ended, and sees the files of the hook."""
    hook = {"postStart": probe("sh", "-c", "sleep 10; echo hello > /tmp/message")}
    text = "sleep 15; cat /tmp/message; sleep 600"
    cluster.apply(pod(script(text, lifecycle=hook)))
    cluster.advance(5)
    before = status_of(cluster)["ready"]
    cluster.advance(15)

    assert (before, status_of(cluster)["ready"]) == (False, True)
    assert cluster.logs("p") == "hello\n"


def test_a_hook_that_fails_restarts_the_container(cluster: Cluster) -> None:
    """A failing hook stops the container, with the reason in an event."""
    hook = {"postStart": probe("sh", "-c", "echo no data; exit 4")}
    cluster.apply(pod(script("sleep 600", lifecycle=hook)))
    cluster.advance(5)

    assert status_of(cluster)["restartCount"] == 1
    assert messages_of(cluster, "FailedPostStartHook") == [
        "PostStartHookError: command exited with 4: no data"
    ]


def test_probes_that_pass_write_nothing(cluster: Cluster) -> None:
    """A ready container in which nothing happens causes no writes."""
    cluster.apply(
        pod(
            script("touch /tmp/ok; sleep infinity", readinessProbe=probe("cat", "/tmp/ok")),
            script("while true; do sleep 60; done", livenessProbe=probe("true")),
        )
    )
    cluster.advance(60)
    before = cluster.get("Pod", "p")["metadata"]["resourceVersion"]
    cluster.advance(3600)

    assert cluster.get("Pod", "p")["metadata"]["resourceVersion"] == before


def test_scripts_calculate_with_expr(cluster: Cluster) -> None:
    """Indexed Jobs of Kubernetes' documentation fail every second index in this way."""
    text = "expr 7 % 2; expr 2 \\* 3 + 1; expr a = b || echo no; expr 4 - 4 || echo zero"
    cluster.apply(pod(script(text + "; expr x + 1; echo $?")))
    cluster.advance(1)

    printed = ["1", "7", "0", "no", "0", "zero", "expr: syntax error", "2"]
    assert cluster.logs("p").splitlines() == printed

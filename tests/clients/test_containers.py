"""kubectl and the official Python client talk to the containers of virtual nodes."""

from __future__ import annotations

import gc
import os
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.clients.served import ServedPlane

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]

MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: red}
---
apiVersion: v1
kind: Pod
metadata: {name: shell}
spec:
  containers:
  - name: main
    image: busybox
    command: [sh, -c, "echo started; trap 'echo bye; exit 0' TERM; while true; do sleep 1; done"]
    env: [{name: COLOR, valueFrom: {configMapKeyRef: {name: settings, key: color}}}]
    volumeMounts: [{name: settings, mountPath: /settings}, {name: data, mountPath: /data}]
  volumes: [{name: settings, configMap: {name: settings}}, {name: data, emptyDir: {}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: follow}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: busybox, command: [sh, -c, "echo hello; sleep 3; echo bye"]}]
"""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPlane]:
    """A cluster with a pod that runs a script."""
    directory = tmp_path_factory.mktemp("plane")
    with ServedPlane(directory, ("--nodes", "1"), name="containers") as served:
        served.must("apply", "-f", "-", stdin=MANIFEST)
        served.must("wait", "pod/shell", "--for=condition=Ready", "--timeout=60s")
        yield served
    gc.collect()


@pytest.fixture(params=["websocket", "spdy"])
def protocol(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both protocols that kubectl knows."""
    monkeypatch.setenv(
        "KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "true" if request.param == "websocket" else "false"
    )
    return str(request.param)


@pytest.mark.usefixtures("protocol")
class TestExec:
    """`kubectl exec`, `cp` and `attach`."""

    def test_output_errors_and_exit_codes(self, plane: ServedPlane) -> None:
        """kubectl separates both outputs, and exits with the code of the command."""
        done = plane.kubectl("exec", "shell", "--", "sh", "-c", "echo out; echo err >&2; exit 3")

        assert (done.stdout, done.returncode) == ("out\n", 3)
        assert done.stderr.startswith("err\n")

    def test_environment_and_files(self, plane: ServedPlane) -> None:
        """A command sees the environment and the volumes of its container."""
        command = ("sh", "-c", "echo $COLOR; cat /settings/color; echo; cat /etc/hostname")

        assert plane.must("exec", "shell", "--", *command) == "red\nred\nshell\n"

    def test_standard_input(self, plane: ServedPlane) -> None:
        """A command reads what is typed or piped into kubectl, up to its end."""
        text = "line\n" * 50_000

        assert plane.must("exec", "-i", "shell", "--", "wc", "-l", stdin=text) == "50000\n"

    def test_copy_there_and_back(self, plane: ServedPlane, tmp_path: Path) -> None:
        """`kubectl cp` copies folders with any bytes."""
        source = tmp_path / "source"
        (source / "below").mkdir(parents=True)
        (source / "below" / "bytes").write_bytes(bytes(range(256)) * 1000)
        plane.must("exec", "shell", "--", "rm", "-rf", "/data/copied")
        plane.must("cp", str(source), "shell:/data/copied")
        plane.must("cp", "shell:/data/copied", str(tmp_path / "back"))

        copied = (tmp_path / "back" / "below" / "bytes").read_bytes()
        assert copied == (source / "below" / "bytes").read_bytes()

    def test_a_command_that_does_not_exist(self, plane: ServedPlane) -> None:
        """The error names the program."""
        done = plane.kubectl("exec", "shell", "--", "nvidia-smi")

        assert done.returncode == 127
        assert "nvidia-smi: dryrack does not run this program" in done.stderr

    def test_refusals(self, plane: ServedPlane) -> None:
        """kubectl gets the errors of an API server."""
        missing = plane.kubectl("exec", "nobody", "--", "ls").stderr
        wrong = plane.kubectl("exec", "shell", "-c", "other", "--", "ls").stderr
        plane.must("wait", "job/follow", "--for=condition=Complete", "--timeout=60s")
        ended = plane.kubectl("exec", "job/follow", "--", "ls").stderr

        assert 'pods "nobody" not found' in missing
        assert "container other is not valid for pod shell" in wrong or "not found" in wrong
        assert "cannot exec into a container in a completed pod" in ended

    def test_a_terminal(self, plane: ServedPlane) -> None:
        """A shell with a terminal echoes what is typed, and prints a prompt."""
        command = f"{plane.kubectl_path} --kubeconfig {plane.kubeconfig} exec -it shell -- sh"
        done = subprocess.run(
            ["script", "-qec", command, "/dev/null"],
            input="echo $((6*7))\nexit 5\n",
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "HOME": str(plane.directory)},
            check=False,
        )

        assert done.returncode == 5
        assert "/ # echo $((6*7))" in done.stdout
        assert "\n42" in done.stdout.replace("\r", "")


def test_logs_follow_until_the_container_ends(plane: ServedPlane) -> None:
    """`kubectl logs -f` prints each line when it is written, and ends with the container."""
    plane.must("delete", "job/follow")
    plane.must("apply", "-f", "-", stdin=MANIFEST)
    plane.must("wait", "pod", "-l", "job-name=follow", "--for=condition=Ready", "--timeout=60s")
    began = time.monotonic()
    text = plane.must("logs", "-f", "job/follow")

    assert text == "hello\nbye\n"
    assert time.monotonic() - began > 1


def test_the_python_client_runs_a_command(plane: ServedPlane) -> None:
    """`kubernetes.stream` uses a WebSocket with the protocol v4."""
    from kubernetes import client, config
    from kubernetes.stream import stream

    load: Any = config.load_kube_config
    load(str(plane.kubeconfig))
    with client.ApiClient() as api:
        core: Any = client.CoreV1Api(api)
        text = stream(
            core.connect_get_namespaced_pod_exec,
            "shell",
            "default",
            command=["sh", "-c", "echo $COLOR"],
            stderr=True,
            stdin=False,
            stdout=True,
            tty=False,
        )

    assert text == "red\n"


def test_attach_shows_what_the_program_writes(plane: ServedPlane) -> None:
    """`kubectl attach` ends with the program, which handles SIGTERM."""
    manifest = MANIFEST.split("---")[1].replace("name: shell", "name: attached")
    plane.must("apply", "-f", "-", stdin=manifest)
    plane.must("wait", "pod/attached", "--for=condition=Ready", "--timeout=60s")
    command = [str(plane.kubectl_path), "--kubeconfig", str(plane.kubeconfig)]
    command += ["attach", "attached"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as attached:
        assert attached.stdout is not None
        plane.must("exec", "attached", "--", "true")
        plane.must("delete", "pod/attached", "--timeout=30s")
        assert "bye" in attached.stdout.read()


def test_run_with_input_ends_with_the_container(plane: ServedPlane) -> None:
    """`kubectl run --attach --stdin` gives the input, prints the output, and ends."""
    command = ["run", "reader", "--image=busybox", "--restart=OnFailure", "--attach", "--stdin"]
    done = plane.kubectl(*command, "--", "sh", "-c", "cat && echo done", stdin="hello\n")

    assert (done.returncode, done.stdout) == (0, "hello\ndone\n"), done.stderr
    assert plane.must("get", "pod/reader", "-o", "jsonpath={.status.phase}") == "Succeeded"


def test_input_can_stay_open(plane: ServedPlane) -> None:
    """With `--leave-stdin-open`, the program waits for the next client."""
    command = ["run", "stays", "--image=busybox", "--attach", "--stdin", "--leave-stdin-open"]
    done = plane.kubectl(*command, "--", "sh", "-c", "cat && echo done", stdin="hello\n")

    assert done.returncode == 0, done.stderr
    assert plane.must("logs", "stays") == "hello\n"
    assert plane.must("get", "pod/stays", "-o", "jsonpath={.status.phase}") == "Running"

"""`dryrack up`, `down`, `status` and `kubeconfig`, as a person runs them."""

from __future__ import annotations

import base64
import errno
import json
import os
import signal
import ssl
import stat
import subprocess
import sys
import tempfile
import urllib.request
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.cli.command import dryrack

from dryrack.cli.files import UsageError
from dryrack.cli.virtual.up import data_directory_of
from dryrack.kinds.releases import DEFAULT_RELEASE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dryrack.kinds.raw import Raw


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home of its own for the clusters of a test, which end with it."""
    directory = tmp_path / "a home"
    monkeypatch.setenv("DRYRACK_HOME", str(directory))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "own" / "config"))
    yield directory
    if directory.exists() and any(directory.iterdir()):
        dryrack("down", "--all")


def fetched(kubeconfig: Path, path: str, body: Raw | None = None) -> Raw:
    """Return the answer to a GET, or to a POST of a body, with a kubeconfig's certificate."""
    found: Raw = json.loads(asked(kubeconfig, path, body))
    return found


def asked(kubeconfig: Path, path: str, body: Raw | None = None, method: str | None = None) -> str:
    """Return the text of the answer."""
    config = yaml.safe_load(kubeconfig.read_text())
    names = {each["name"]: each["context"] for each in config["contexts"]}
    context = names[config["current-context"]]
    cluster = _entry(config["clusters"], context["cluster"])["cluster"]
    user = _entry(config["users"], context["user"])["user"]
    tls = ssl.create_default_context(cadata=_pem(cluster["certificate-authority-data"]))
    pair = kubeconfig.parent / "pair.pem"
    pair.write_text(_pem(user["client-certificate-data"]) + _pem(user["client-key-data"]))
    tls.load_cert_chain(pair)
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(cluster["server"] + path, data, headers, method=method)
    with urllib.request.urlopen(request, context=tls) as answer:
        text: str = answer.read().decode()
        return text


def _entry(entries: list[Raw], name: str) -> Raw:
    return next(each for each in entries if each["name"] == name)


def _pem(data: str) -> str:
    return base64.b64decode(data).decode()


def test_a_cluster_comes_serves_and_goes(home: Path, tmp_path: Path) -> None:
    """Up and detached, found by status and kubeconfig, with its nodes; then down and gone."""
    up = dryrack("up", "--detach", "--nodes", "2")
    assert up.returncode == 0, up.stderr
    assert "2 virtual nodes" in up.stderr
    assert up.stderr.endswith("  kubectl get nodes\n  dryrack examples\n")
    assert up.stdout == ""
    # With a path that has a space, it can be pasted all the same.
    assert f"  export KUBECONFIG='{home / 'default' / 'kubeconfig'}'\n" in up.stderr
    told = json.loads(dryrack("status", "-o", "json").stdout)
    assert [(each["name"], each["state"]) for each in told] == [("default", "up")]
    config = tmp_path / "config"
    config.write_text(dryrack("kubeconfig").stdout)
    path = dryrack("kubeconfig", "--path").stdout.removesuffix("\n")
    assert (home / "default" / "kubeconfig").samefile(path)
    nodes = fetched(config, "/api/v1/nodes")["items"]
    assert [each["metadata"]["name"] for each in nodes] == ["node-1", "node-2"]
    assert all("kwok.x-k8s.io/node" in each["metadata"]["annotations"] for each in nodes)
    conditions = [each for node in nodes for each in node["status"]["conditions"]]
    assert [each["status"] for each in conditions if each["type"] == "Ready"] == ["True"] * 2
    down = dryrack("down")
    assert (down.returncode, down.stderr) == (0, "Stopped cluster default.\n")
    assert list(home.iterdir()) == []
    assert dryrack("status").returncode == 1


def test_what_it_writes_is_for_its_owner(home: Path) -> None:
    """State 0700, kubeconfig and record 0600."""
    assert dryrack("up", "--detach").returncode == 0
    directory = home / "default"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    for name in ("kubeconfig", "running.json", "log"):
        assert stat.S_IMODE((directory / name).stat().st_mode) == 0o600


def test_several_clusters_live_by_name(home: Path) -> None:
    """Each has its own port and its own objects; a name that is taken is refused."""
    for name, nodes in (("one", "1"), ("two", "0")):
        assert dryrack("up", "--detach", "--name", name, "--nodes", nodes).returncode == 0
    counts = [
        len(fetched(home / name / "kubeconfig", "/api/v1/nodes")["items"])
        for name in ("one", "two")
    ]
    assert counts == [1, 0]
    again = dryrack("up", "--detach", "--name", "one")
    assert again.returncode == 1
    assert "is already running (process " in again.stderr
    assert dryrack("down", "--name", "one").returncode == 0
    assert dryrack("status", "--name", "two").returncode == 0
    assert dryrack("status", "--name", "one").returncode == 1


def test_status_shows_a_component_that_failed(home: Path) -> None:
    """The cluster is degraded; the line names the failure, and the log if there is one."""
    # Once nodes are Ready, the cluster has removed what an earlier process reported.
    assert dryrack("up", "--detach", "--nodes", "1").returncode == 0
    failure = {"component": "scheduler", "error": "KeyError: 'x'", "count": 2}
    failure["restartsAt"] = "2030-01-01T00:00:00Z"
    config_map = {
        "metadata": {"name": "dryrack-components", "namespace": "kube-system"},
        "data": {"failures": json.dumps([failure])},
    }
    path = "/api/v1/namespaces/kube-system/configmaps"
    fetched(home / "default" / "kubeconfig", path, config_map)
    status = dryrack("status")
    assert status.returncode == 1
    assert status.stdout.splitlines()[1].split()[:2] == ["default", "degraded"]
    log = home / "default" / "log"
    line = "cluster default: scheduler failed 2 times: KeyError: 'x'; it is stopped and restarts"
    assert status.stderr == f"{line}; see {log}\n"
    log.unlink()
    assert dryrack("status").stderr == f"{line}; see the terminal in which dryrack up runs\n"


def test_data_is_there_after_a_kill(home: Path, tmp_path: Path) -> None:
    """A killed cluster with --data-dir restarts with its objects, at the same address."""
    data = tmp_path / "data"
    assert dryrack("up", "--detach", "--nodes", "1", "--data-dir", data).returncode == 0
    config = tmp_path / "kept"
    config.write_text((home / "default" / "kubeconfig").read_text())
    before = fetched(config, "/api/v1/nodes")["items"][0]["metadata"]
    os.kill(json.loads(dryrack("status", "-o", "json").stdout)[0]["pid"], signal.SIGKILL)
    assert dryrack("status").returncode == 1
    assert dryrack("up", "--detach", "--data-dir", data).returncode == 0
    after = fetched(config, "/api/v1/nodes")["items"][0]["metadata"]
    assert (after["uid"], after["name"]) == (before["uid"], "node-1")
    down = dryrack("down")
    assert f"its data is still in {data}" in down.stderr
    assert (data / "objects.sqlite").exists()


def test_two_clusters_do_not_share_data(tmp_path: Path) -> None:
    """The second cluster is refused, with the process of the first."""
    data = tmp_path / "data"
    assert dryrack("up", "--detach", "--data-dir", data).returncode == 0
    second = dryrack("up", "--detach", "--name", "second", "--data-dir", data)
    assert second.returncode == 1
    assert "in use by process" in second.stderr


def test_objects_of_a_file_are_there_from_the_start(home: Path, tmp_path: Path) -> None:
    """--config creates the objects of files; if the API refuses one, no cluster starts."""
    folder = tmp_path / "start"
    folder.mkdir()
    file = folder / "a.yaml"
    more = folder / "b.yaml"
    file.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: hello}\n")
    more.write_text(
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\n"
        "spec: {selectors: [{cel: {expression: 'device.driver == \"gpu\"'}}]}\n"
    )
    last = tmp_path / "last.yaml"
    last.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {x: bye}\n")
    # A repeated option adds files; the last one alone would lose objects without a word.
    up = dryrack("up", "--detach", "--config", folder, "--config", last)
    assert up.returncode == 0, up.stderr
    assert "3 objects from the files of --config" in up.stderr
    for name, value in (("a", "hello"), ("b", "bye")):
        path = f"/api/v1/namespaces/default/configmaps/{name}"
        assert fetched(home / "default" / "kubeconfig", path)["data"] == {"x": value}
    file.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Wrong_Name}\n")
    refused = dryrack("up", "--detach", "--name", "second", "--config", file)
    assert refused.returncode == 1
    assert f"{file}:3: ConfigMap Wrong_Name, metadata.name: Invalid value" in refused.stderr
    assert not (home / "second").exists()


NODE: Raw = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"annotations": {"kwok.x-k8s.io/node": "fake"}},
    "status": {"capacity": {"cpu": "8", "pods": "110"}},
}


def test_nodes_of_a_file_are_ready_when_it_says_so(home: Path, tmp_path: Path) -> None:
    """As those of --nodes are: who waits for the command can schedule at once."""
    names = [f"rack-{number}" for number in range(40)]
    nodes = [{**NODE, "metadata": {**NODE["metadata"], "name": name}} for name in names]
    config = tmp_path / "nodes.yaml"
    config.write_text(yaml.safe_dump_all(nodes))
    done = dryrack("up", "--detach", "--config", config)
    found = fetched(home / "default" / "kubeconfig", "/api/v1/nodes")["items"]
    ready = [
        node["metadata"]["name"]
        for node in found
        for each in node["status"].get("conditions", ())
        if (each["type"], each["status"]) == ("Ready", "True")
    ]
    assert sorted(ready) == sorted(names)
    assert " ✓ 40 nodes are Ready\n ✓ ready after " in done.stderr


def test_nodes_of_a_type_come_with_the_classes_of_their_drivers(home: Path, tmp_path: Path) -> None:
    """When `up` returns, nodes of a type have their devices; types and classes may be one's own."""
    file = tmp_path / "rack.yaml"
    file.write_text(
        "apiVersion: dryrack.dev/v1alpha1\nkind: Catalogue\n"
        "models: [{name: card, driver: gpu.example.com, device: 'gpu-{index}'}]\n"
        "instanceTypes: [{names: [rack], devices: [{model: card, count: 2}]}]\n"
        "deviceClasses: [{name: card, expression: device.driver == 'gpu.example.com'}]\n"
    )
    words = ("--nodes", "1", "--instance-type", "rack", "--catalogue-file", file)
    up = dryrack("up", "--detach", *words)
    assert up.returncode == 0, up.stderr
    config = home / "default" / "kubeconfig"
    [node] = fetched(config, "/api/v1/nodes")["items"]
    assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "rack"
    [slice_] = fetched(config, "/apis/resource.k8s.io/v1/resourceslices")["items"]
    assert [each["name"] for each in slice_["spec"]["devices"]] == ["gpu-0", "gpu-1"]
    classes = fetched(config, "/apis/resource.k8s.io/v1/deviceclasses")["items"]
    assert {"card", "gpu.nvidia.com"} <= {each["metadata"]["name"] for each in classes}


def test_device_classes_can_be_left_to_charts(home: Path) -> None:
    """With --no-device-classes there are GPU nodes with devices and names, but no classes."""
    words = ("--nodes", "1", "--instance-type", "g6.xlarge", "--devices", "gpu:2")
    up = dryrack("up", "--detach", "--no-device-classes", "--node-name", "gpu-{}.rack", *words)
    assert up.returncode == 0, up.stderr
    config = home / "default" / "kubeconfig"
    assert fetched(config, "/apis/resource.k8s.io/v1/deviceclasses")["items"] == []
    [node] = fetched(config, "/api/v1/nodes")["items"]
    assert node["metadata"]["name"] == "gpu-1.rack"
    assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-L4"
    slices = fetched(config, "/apis/resource.k8s.io/v1/resourceslices")["items"]
    assert {each["spec"]["driver"] for each in slices} >= {"gpu.nvidia.com", "gpu.example.com"}
    assert "device classes" not in up.stderr


def test_a_config_can_say_what_nodes_have(home: Path, tmp_path: Path) -> None:
    """NodeDevices beside objects come to devices; a mistake in them has its line."""
    file = tmp_path / "world.yaml"
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: test1}\n---\n"
    devices = (
        "apiVersion: dryrack.dev/v1alpha1\nkind: NodeDevices\ndevices:\n- kind: %s\n  count: 2\n"
    )
    file.write_text(namespace + devices % "tpu")
    refused = dryrack("up", "--detach", "--nodes", "1", "--config", file)
    file.write_text(namespace + devices % "fake")
    up = dryrack("up", "--detach", "--nodes", "1", "--config", file)
    config = home / "default" / "kubeconfig"
    [slice_] = fetched(config, "/apis/resource.k8s.io/v1/resourceslices")["items"]

    assert f"{file}:8: devices[0]: unknown device kind" in refused.stderr
    assert up.returncode == 0, up.stderr
    assert [each["name"] for each in slice_["spec"]["devices"]] == ["fake-0", "fake-1"]
    assert fetched(config, "/api/v1/namespaces/test1")["kind"] == "Namespace"


def test_a_cluster_behaves_as_it_is_told(home: Path) -> None:
    """Versions of the API, a release and its gates: the scheduler and the API server start so."""
    off = "DRADeviceTaints=false,DRADeviceTaintRules=false"
    gates = ("--release", "1.37", "--feature-gates", off)
    served = ("--runtime-config", "resource.k8s.io/v1beta2=true")
    up = dryrack("up", "--detach", "--nodes", "1", *gates, *served)
    assert up.returncode == 0, up.stderr
    group = fetched(home / "default" / "kubeconfig", "/apis/resource.k8s.io")
    assert [each["version"] for each in group["versions"]] == ["v1", "v1beta2"]


def test_a_version_without_its_feature_gate_is_not_served(home: Path) -> None:
    """A warning names the gates of a version that `--runtime-config` alone does not serve."""
    version = "scheduling.k8s.io/v1alpha3"
    up = dryrack("up", "--detach", "--release", "1.37", "--runtime-config", f"{version}=true")
    assert up.returncode == 0, up.stderr
    assert (
        f"does not serve CompositePodGroup of {version}, because the feature gate "
        "CompositePodGroup is off; add --feature-gates=CompositePodGroup=true,"
        "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"
    ) in up.stderr
    group = fetched(home / "default" / "kubeconfig", "/apis/scheduling.k8s.io")
    assert [each["version"] for each in group["versions"]] == ["v1"]


def test_a_merged_kubeconfig_is_given_back(tmp_path: Path) -> None:
    """--merge adds the cluster to one's own file and makes it current; down takes it out."""
    own = tmp_path / "own" / "config"
    own.parent.mkdir()
    own.write_text(
        yaml.safe_dump({"clusters": [{"name": "mine", "cluster": {}}], "kind": "Config"})
    )
    assert dryrack("up", "--detach", "--merge").returncode == 0
    merged = yaml.safe_load(own.read_text())
    assert merged["current-context"] == "dryrack-default"
    assert [each["name"] for each in merged["clusters"]] == ["mine", "dryrack-default"]
    assert fetched(own, "/version")["gitVersion"] == DEFAULT_RELEASE.git_version
    assert dryrack("down").returncode == 0
    assert [each["name"] for each in yaml.safe_load(own.read_text())["clusters"]] == ["mine"]


def test_a_kubeconfig_of_others_is_not_overwritten(tmp_path: Path) -> None:
    """--kubeconfig writes a file of its own; one that names other clusters needs --merge."""
    path = tmp_path / "there"
    assert dryrack("up", "--detach", "--kubeconfig", path).returncode == 0
    assert fetched(path, "/version")["major"] == "1"
    assert dryrack("down").returncode == 0
    assert not path.exists()
    path.write_text(yaml.safe_dump({"clusters": [{"name": "mine", "cluster": {}}]}))
    refused = dryrack("up", "--detach", "--kubeconfig", path)
    assert refused.returncode == 2
    assert "--merge" in refused.stderr


def test_in_the_foreground_it_ends_with_its_signal(home: Path) -> None:
    """Ctrl-C ends it well: exit 0, and nothing left behind."""
    command = [sys.executable, "-m", "dryrack", "up"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "kubectl get namespaces" in line:
                break
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait() == 0
    assert "Stopped cluster default." in rest
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--name", "No/Path"), "cluster name"),
        (("--nodes", "-1"), "--nodes -1"),
        (("--port", "70000"), "--port 70000"),
        (("--node-name", "gpu"), "--node-name 'gpu': must contain {} once"),
        (("--node-name", "GPU-{}"), "'GPU-10000' is not a name of a node: a lowercase RFC 1123"),
        (("--node-name", f"{'a' * 60}-{{}}"), "must be no more than 63"),
        (("--without", "gravity"), "unknown component 'gravity'; use one of: kubelet"),
        (("--authorization", "trust"), "must be always-allow or rbac"),
        (("--host", "0.0.0.0"), "--expose"),
        (("--host", "example.com"), "an IP address"),
        (("--config", "nowhere.yaml"), "no such file"),
        (("--nodes", "1", "--instance-type", "p5.48xlrge"), "did you mean 'p5.48xlarge'"),
        (("--nodes", "1", "--instance-type", "h100"), "a device model, not an instance type"),
        (("--instance-type", "p5.48xlarge"), "needs --nodes, for example: --nodes 3"),
        (
            ("--nodes=1", "--instance-type=g4dn.xlarge", "--devices=catalogue:g4dn.xlarge"),
            "nodes of the instance type g4dn.xlarge already have devices of gpu.nvidia.com",
        ),
        (("--catalogue-file", "nowhere.yaml"), "no such file"),
        (("--devices", "gpus:8"), "--devices gpus: unknown device kind; use one of: "),
        (
            ("--devices", "gpu:0"),
            "--devices 'gpu:0': the count must be a positive integer, got '0'",
        ),
        (("--release", "1.20"), "--release '1.20': unknown release; use 1.36 or 1.37"),
        (("--feature-gates", "DRAMagic=true"), "unrecognized feature gate: DRAMagic; use one of"),
        (("--runtime-config", "resource.k8s.io=true"), "--runtime-config: invalid key"),
    ],
)
def test_wrong_calls_are_told_and_do_nothing(
    home: Path, words: tuple[str, ...], complaint: str
) -> None:
    """Exit 2, one line that says what would be right, and no trace."""
    done = dryrack("up", "--detach", *words)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert not home.exists()


@pytest.mark.parametrize("below", ["", "further/down"])
def test_data_that_cannot_be_kept_is_told(home: Path, tmp_path: Path, below: str) -> None:
    """A file is no data directory, nor is what would be in one: exit 2, one line, no trace."""
    file = tmp_path / "file"
    file.touch()
    done = dryrack("up", "--detach", "--data-dir", file / below)

    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line == (
        f"dryrack: --data-dir {file / below}: is not a directory; "
        "choose a directory that you can write to"
    )
    assert not home.exists()


def test_a_read_only_file_system_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory may be there and take nothing; so a write is tried."""

    def refuse(**_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(UsageError, match="read-only file system; choose a directory"):
        data_directory_of(str(tmp_path))


@pytest.mark.parametrize("option", ["--kubeconfig", "DRYRACK_HOME"])
def test_files_that_cannot_be_written_are_told(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    """Exit 1 and the file, instead of a traceback; the cluster is gone."""
    place = tmp_path / "file" / "below"
    place.parent.touch()
    if option == "DRYRACK_HOME":
        monkeypatch.setenv(option, str(place))
        done = dryrack("up", "--detach")
    else:
        done = dryrack("up", "--detach", option, place)
    assert done.returncode == 1
    assert f"dryrack: {place.parent}" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not home.exists() or not list(home.iterdir())


_INTERRUPTED = """
import os, runpy, signal, sys

module, sys.argv = sys.argv[1], ["dryrack", "up"]

class Interrupter:
    def find_spec(self, name, *_):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupter())
runpy.run_module("dryrack", run_name="__main__")
"""


@pytest.mark.parametrize("module", ["dryrack.cli.main", "typer", "dryrack.cli.output"])
def test_an_interrupted_start_says_nothing(home: Path, module: str) -> None:
    """Ctrl-C while modules are loaded ends the process as it would end any other."""
    command = [sys.executable, "-c", _INTERRUPTED, module]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
    assert not home.exists()


@pytest.mark.parametrize("command", ["down", "kubeconfig"])
def test_what_is_not_there_cannot_be_asked(command: str) -> None:
    """Exit 1, and what to do instead."""
    done = dryrack(command, "--name", "nobody")
    assert done.returncode == 1
    assert "cluster nobody " in done.stderr


def test_a_port_that_is_taken_is_told(home: Path) -> None:
    """A cluster at the same port is refused with the reason, and leaves nothing."""
    assert dryrack("up", "--detach").returncode == 0
    server = json.loads(dryrack("status", "-o", "json").stdout)[0]["server"]
    second = dryrack("up", "--detach", "--name", "second", "--port", server.rpartition(":")[2])
    assert second.returncode == 1
    assert "address already in use; choose another port, or 0 for a free one" in second.stderr
    assert not (home / "second").exists()

"""`dryrack publish`: what its options mean, and what it says when it cannot work."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.command import dryrack, example_path

from dryrack.base.errors import ContentError
from dryrack.cli import publish
from dryrack.cli.command import seconds_of
from dryrack.cli.files import UsageError
from dryrack.cli.options import PublishOptions
from dryrack.cli.output import Format
from dryrack.cli.publish import every_node, run, selected_nodes, settings_of
from dryrack.cli.service import address_of
from dryrack.client.client import Client
from dryrack.client.endpoints import LEASES
from dryrack.client.https import connected
from dryrack.client.informer import Name
from dryrack.client.kubeconfig import load
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane
from dryrack.cluster.initial_objects import add_objects
from dryrack.cluster.ports import SystemClock
from dryrack.cluster.process.serving import Address
from dryrack.cluster.rights import Publisher, definitions, publisher
from dryrack.controllers.slices import Shard
from dryrack.kinds.core import Node
from dryrack.kinds.decode import decode
from dryrack.kinds.documents import read
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.resource import ResourceSlice
from dryrack.kinds.selectors import parse_node_selector
from dryrack.kinds.validation.device_rules import validate

BAD = Path(__file__).parents[1] / "hardware" / "dialects" / "bad"
WRONG_OBJECTS = sorted((*BAD.glob("draconfig-*.yaml"), *BAD.glob("overlay-*.yaml")))


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30.0), ("1m30s", 90.0), ("500ms", 0.5), ("1.5h", 5400.0)]
)
def test_durations_are_as_go_has_them(text: str, seconds: float) -> None:
    """A sum of numbers with units."""
    assert seconds_of("--resync", text) == seconds


@pytest.mark.parametrize("text", ["", "30", "-1s", "0s", "1s2", "s", "1 s", "soon"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """The option is named, and an example given."""
    with pytest.raises(UsageError, match=r"--resync '.*': must be a duration, for example 30s"):
        seconds_of("--resync", text)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8082", Address("127.0.0.1", 8082)),
        (":8082", Address("0.0.0.0", 8082)),
        ("[::1]:8082", Address("::1", 8082)),
        ("0", None),
        ("", None),
    ],
)
def test_addresses_are_as_controllers_take_them(text: str, address: Address | None) -> None:
    """HOST:PORT; without a host everywhere; 0 is nowhere."""
    assert address_of("--metrics-address", text) == address


@pytest.mark.parametrize("text", ["8082", "host", "host:", "host:http", "host:70000"])
def test_what_is_no_address_is_refused(text: str) -> None:
    """The option is named, and an example given."""
    with pytest.raises(UsageError, match=r"HOST:PORT, for example 127.0.0.1:8082"):
        address_of("--metrics-address", text)


def node(**labels: str) -> Node:
    return Node(metadata=ObjectMeta(name="n", labels=labels))


def test_nodes_are_selected_by_labels_as_with_kubectl() -> None:
    """Every operator of a label selector means on nodes what it means for kubectl."""
    text = "a=1,b!=2,c in (x,y),d notin (z),e,!f,g>3"
    selected = parse_node_selector(selected_nodes(text))

    assert selected.matches(node(a="1", c="y", e="", g="4"))
    assert not selected.matches(node(a="1", c="y", e="", g="4", f=""))
    assert not selected.matches(node(a="1", b="2", c="y", e="", g="4"))
    assert not selected.matches(node(a="1", c="z", e="", g="4"))
    assert not selected.matches(node(a="1", c="y", e="", g="3"))


def test_every_node_is_every_node() -> None:
    """One without any labels too."""
    assert parse_node_selector(every_node()).matches(node())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (PublishOptions(node_selector="a in"), "--node-selector 'a in'"),
        (PublishOptions(node_selector="a", all_nodes=True), "mutually exclusive"),
        (PublishOptions(catalogue_file=("x.yaml",)), "x.yaml: no such file"),
        (PublishOptions(driver="Bad/Driver"), "--driver"),
        (PublishOptions(driver="a" * 64), "--driver"),
        (PublishOptions(namespace=""), "--namespace ''"),
        (PublishOptions(config_map="No_Name"), "--config-map 'No_Name'"),
        (PublishOptions(lease_namespace="a.b"), "--lease-namespace 'a.b'"),
        (PublishOptions(lease_name="-"), "--lease-name '-'"),
        (PublishOptions(key=""), "--key ''"),
        (PublishOptions(shard="4/4"), "--shard '4/4': the index must be between 0 and 3"),
    ],
)
def test_contradictory_options_are_refused(options: PublishOptions, words: str) -> None:
    """Before anything is done, and with the options that are meant."""
    with pytest.raises(UsageError, match=words):
        settings_of(options)


def test_options_are_those_of_the_engine() -> None:
    """The defaults are those of Karpenter's driver."""
    settings = settings_of(PublishOptions(namespace="ours", resync="1m", driver="gpu.example.com"))

    assert (settings.namespace, settings.config_map) == ("ours", "dra-kwok-configmap")
    assert (settings.resync_seconds, settings.driver) == (60.0, "gpu.example.com")
    assert (settings.nodes, settings.catalogue) == (None, None)


def test_rights_are_printed_for_the_names_that_are_used() -> None:
    """The ConfigMap and the lease that the rights are for are those of the options."""
    text = publisher(Publisher(config_map=Name("ours", "map"), lease=Name("leases", "one")))
    objects = list(yaml.safe_load_all(text))
    roles = {each["metadata"]["name"]: each for each in objects if each["kind"] == "Role"}

    assert roles["dryrack-publisher"]["metadata"]["namespace"] == "ours"
    assert roles["dryrack-publisher"]["rules"][0]["resourceNames"] == ["map"]
    assert roles["dryrack-publisher-election"]["metadata"]["namespace"] == "leases"
    assert roles["dryrack-publisher-election"]["rules"][1]["resourceNames"] == ["one"]
    assert "karpenter\n" not in text
    subjects = [each["subjects"][0] for each in objects if "subjects" in each]
    assert {each["namespace"] for each in subjects} == {"ours"}


def test_each_shard_has_a_lease_and_all_shards_one_role() -> None:
    """The name of a lease does not depend on the number of shards, so two counts share leases."""
    leases = {publish.lease_of(PublishOptions(shard=text)).name for text in ("1/2", "1/4")}
    assert leases == {"dryrack-publisher-1"}
    assert settings_of(PublishOptions(shard="1/4")).shard == Shard(1, 4)

    names = Publisher(config_map=Name("ours", "map"), lease=Name("leases", "one"), shards=3)
    objects = list(yaml.safe_load_all(publisher(names)))
    roles = {each["metadata"]["name"]: each for each in objects if each["kind"] == "Role"}
    rule = roles["dryrack-publisher-election"]["rules"][1]
    assert rule["resourceNames"] == ["one-0", "one-1", "one-2"]


def test_shards_are_named_in_printed_rights(capsys: pytest.CaptureFixture[str]) -> None:
    """The rights that one shard prints are for all shards."""
    assert run(PublishOptions(shard="1/2", print_rbac=True))

    assert "[dryrack-publisher-0, dryrack-publisher-1]" in capsys.readouterr().out


def test_rights_can_be_given_on_an_empty_cluster() -> None:
    """The namespaces that they are in come with them."""
    text = publisher(Publisher(config_map=Name("ours", "map"), lease=Name("leases", "one")))
    documents = read(text, "rights.yaml").documents

    created = asyncio.run(add_objects(build_control_plane(ControlPlaneOptions()), documents))

    assert created == len(documents)
    assert [each.kind for each in documents[:2]] == ["Namespace", "Namespace"]


def test_definitions_are_printed_together() -> None:
    """Both kinds, as one file that kubectl can apply."""
    names = [each["metadata"]["name"] for each in yaml.safe_load_all(definitions())]

    assert names == ["draconfigs.test.karpenter.sh", "nodeoverlays.karpenter.sh"]


def dry_run(
    capsys: pytest.CaptureFixture[str], *files: str, **options: Any
) -> tuple[bool, str, str]:
    """Run a dry run; return its success, its output and its messages."""
    paths = tuple(str(example_path(name)) for name in files)
    is_well = run(PublishOptions(dry_run=True, files=paths, **options))
    printed, said = capsys.readouterr()
    return is_well, printed, said


CONFIGS = {
    "gpu": ("karpenter-gpu/nodes.yaml", "karpenter-gpu/config.yaml"),
    "fpga": ("karpenter-fpga/nodes.yaml", "karpenter-fpga/config.yaml"),
    "multi": ("karpenter-multi/nodes.yaml", "karpenter-multi/config.yaml"),
    "cluster-wide": ("karpenter-cluster-wide/nodes.yaml", "karpenter-cluster-wide/config.yaml"),
    "counts": ("overlay-h100/nodes.yaml", "overlay-h100/config.yaml"),
    "overlay": ("overlay-h100/nodes.yaml", "overlay-h100/config.yaml", "overlay-h100/overlay.yaml"),
}


@pytest.mark.parametrize("files", CONFIGS.values(), ids=CONFIGS)
def test_files_alone_are_enough_to_know_what_would_be_published(
    capsys: pytest.CaptureFixture[str], files: tuple[str, ...]
) -> None:
    """The documents' examples give slices that the API takes, in pools that are whole."""
    is_well, printed, said = dry_run(capsys, *files)
    slices = [decode(each, ResourceSlice) for each in yaml.safe_load_all(printed)]
    pools = Counter((each.spec.driver, each.spec.pool.name) for each in slices)

    assert is_well
    assert slices
    assert [problem for each in slices for problem in validate(each)] == []
    assert all(each.spec.pool.resource_slice_count == pools[key(each)] for each in slices)
    assert said.endswith(f"{len(slices)} to create\n")


@pytest.mark.parametrize(
    ("node", "told"),
    [
        ("metadata: {nam: x}", "4: Node: metadata.name: Required value: name or generateName"),
        (
            "metadata: {name: x, labels: [gpu]}",
            "4: metadata.labels: expected an object, got a list",
        ),
        (
            "metadata: {name: x}\nspec: {taints: {}}",
            "5: spec.taints: expected a list, got an object",
        ),
        ("metadata: {name: X_y}", '4: Node X_y: metadata.name: Invalid value: "X_y"'),
    ],
)
def test_a_node_that_makes_no_sense_is_told_with_its_line(
    tmp_path: Path, node: str, told: str
) -> None:
    """It is not passed over as if it were a kind that publishing does not depend on."""
    file = tmp_path / "n.yaml"
    file.write_text(f"---\napiVersion: v1\nkind: Node\n{node}\n")

    with pytest.raises(ContentError) as refusal:
        run(PublishOptions(dry_run=True, files=(str(file),)))
    assert str(refusal.value).startswith(f"{file}:{told}")


def test_a_kind_that_there_is_not_is_told(tmp_path: Path) -> None:
    """One letter decides whether a node is one."""
    file = tmp_path / "n.yaml"
    file.write_text("apiVersion: v1\nkind: node\nmetadata: {name: x}\n")

    with pytest.raises(ContentError, match=r"n\.yaml:2: unknown kind 'node'; did you mean 'Node'"):
        run(PublishOptions(dry_run=True, files=(str(file),)))


def test_without_a_configuration_it_is_said_how_to_make_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The hint names the ConfigMap and the command; with --catalogue there is no hint."""
    is_well, printed, said = dry_run(capsys, "karpenter-gpu/nodes.yaml")
    _, _, with_catalogue = dry_run(capsys, "karpenter-gpu/nodes.yaml", catalogue=True)
    make = "kubectl create configmap dra-kwok-configmap -n karpenter --from-file=config.yaml=FILE"

    assert (is_well, printed) == (True, "")
    assert "ConfigMap karpenter/dra-kwok-configmap does not exist" in said
    assert make in said
    assert make not in with_catalogue


def key(each: ResourceSlice) -> tuple[str, str]:
    return each.spec.driver, each.spec.pool.name


def test_the_same_is_there_for_programs_and_at_a_glance(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """JSON is one list; a table has a line for each slice."""
    _, printed, _ = dry_run(capsys, *CONFIGS["gpu"], output=Format.JSON)
    listed = json.loads(printed)
    assert (listed["kind"], len(listed["items"])) == ("List", 2)

    _, printed, _ = dry_run(capsys, *CONFIGS["gpu"], output=Format.TABLE)
    assert [line.split()[1] for line in printed.splitlines()] == ["NODE", "kwok-1", "kwok-2"]


def test_the_catalogue_speaks_where_nothing_else_does(capsys: pytest.CaptureFixture[str]) -> None:
    """Only if it is switched on."""
    _, printed, said = dry_run(capsys, "catalogue/nodes.yaml", catalogue=True)
    drivers = {each["spec"]["driver"] for each in yaml.safe_load_all(printed)}
    assert drivers == {"gpu.nvidia.com", "dra.net", "dra.cpu"}
    assert "ignored DeviceClass gpu.nvidia.com" in said

    _, printed, said = dry_run(capsys, "catalogue/nodes.yaml")
    assert printed == ""
    assert said.endswith("0 slices for 0 nodes: nothing to write\n")


def test_a_mistake_is_told_with_its_line_and_nothing_is_published(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Line, field and fix; and the command does not succeed."""
    is_well, printed, said = dry_run(
        capsys, "karpenter-gpu/nodes.yaml", "karpenter-gpu/config-wrong.yaml"
    )

    assert not is_well
    assert printed == ""
    assert "karpenter-gpu/config-wrong.yaml:32: mappings[0].resourceSlice.devices[1].name" in said


@pytest.mark.parametrize("path", WRONG_OBJECTS, ids=lambda path: path.stem)
def test_objects_in_files_have_lines_too(capsys: pytest.CaptureFixture[str], path: Path) -> None:
    """Problems of a DRAConfig or a NodeOverlay have lines, like those of ConfigMaps."""
    is_well, printed, said = dry_run(capsys, str(path))
    told = [line.removeprefix("not applied: ") for line in said.splitlines()[:-1]]

    assert (is_well, printed) == (False, "")
    assert told == [
        line.replace(path.name, str(path), 1)
        for line in path.with_suffix(".txt").read_text().splitlines()
    ]


def test_a_config_map_of_another_name_takes_no_part(capsys: pytest.CaptureFixture[str]) -> None:
    """The one that is read is the one of the options."""
    _, printed, said = dry_run(capsys, *CONFIGS["gpu"], config_map="another")

    assert printed == ""
    assert "ignored ConfigMap dra-kwok-configmap: dryrack publish does not use it" in said


def test_what_the_command_cannot_do_is_one_line_and_an_exit_code(tmp_path: Path) -> None:
    """1 for a cluster that is not there, 2 for a call that makes no sense; no traceback."""
    nowhere = dryrack("publish", "--kubeconfig", tmp_path / "nowhere")
    assert nowhere.returncode == 1
    assert nowhere.stderr.endswith("or pass --kubeconfig FILE\n")

    senseless = dryrack("publish", "--resync", "often")
    assert senseless.returncode == 2
    problem = "must be a duration, for example 30s or 1m30s"
    assert senseless.stderr == f"dryrack: --resync 'often': {problem}\n"


def test_it_serves_until_it_is_told_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines of JSON, slices, exit 0 on SIGTERM, and a lease that others may take at once."""
    monkeypatch.setenv("DRYRACK_HOME", str(tmp_path))
    assert dryrack("up", "--detach", "--without", "slices").returncode == 0
    config = tmp_path / "default" / "kubeconfig"
    try:
        lines = told_by_publisher(config)
        rest = dryrack("publish", "--kubeconfig", config, "--dry-run", "-o", "table")
        lease = asyncio.run(lease_of(config))
    finally:
        dryrack("down")

    assert [each["message"] for each in lines][-1] == "stopped"
    assert {"time", "level", "logger", "message"} <= lines[0].keys()
    assert rest.returncode == 0
    assert rest.stderr.startswith("no node has devices: ConfigMap karpenter/dra-kwok-configmap")
    assert rest.stderr.endswith("0 slices for 0 nodes: nothing to write\n")
    assert lease["spec"]["holderIdentity"] == ""


def told_by_publisher(config: Path) -> list[dict[str, Any]]:
    """Return the log lines of a publisher, which is stopped when it leads."""
    words = ("publish", "--kubeconfig", str(config), "--log-format", "json", "-n", "default")
    nowhere = ("--metrics-address", "0", "--health-address", "0")
    command = [sys.executable, "-m", "dryrack", *words, *nowhere]
    lines = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(json.loads(line))
            if "held by" in lines[-1]["message"]:
                process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    return lines


async def lease_of(config: Path) -> dict[str, Any]:
    async with connected(load([config], SystemClock())) as transport:
        return await Client(transport).get(LEASES, "dryrack-publisher", "default")


def test_a_cluster_that_refuses_is_one_line(tmp_path: Path) -> None:
    """Nothing listens: what was asked, what came of it, and what to look at; exit 1."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        server = f"https://127.0.0.1:{unused.getsockname()[1]}"
        config = tmp_path / "config"
        config.write_text(
            f"current-context: a\ncontexts: [{{name: a, context: {{cluster: a}}}}]\n"
            f"clusters: [{{name: a, cluster: {{server: '{server}'}}}}]\n"
        )
        done = dryrack("publish", "--once", "--kubeconfig", config)
        lines = dryrack("publish", "--kubeconfig", config, "--log-format", "json")

    assert done.returncode == 1
    assert done.stderr == (
        f"dryrack: GET {server}/api/v1/nodes: connection refused; check that the cluster runs, "
        "and check --kubeconfig and --context\n"
    )
    assert lines.returncode == 1
    assert "connection refused; check that the cluster runs" in json.loads(lines.stderr)["message"]

"""`dryrack manifests`, and the objects of the chart without Helm and without a cluster."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.chart.variations import ALL, ALSO, NEW, WITHOUT_EFFECT, at, leaves, nested, schema
from tests.cli.command import dryrack

from dryrack.base.version import __version__
from dryrack.cluster.chart import (
    CHART,
    ChartError,
    Release,
    ValuesError,
    default_values,
    merge_values,
    render,
    set_value,
)

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

VALUES = Path(__file__).parents[2] / "deploy" / "values"
RELEASE = Release("dryrack", "dryrack-system")
LEAVES = [path for path, _ in leaves()]


def objects(values: Raw, release: Release = RELEASE, part: str = "") -> list[Raw]:
    """The objects of the chart with these values."""
    text = render(release, values, part)
    return [each for each in yaml.load_all(text, Loader=yaml.CSafeLoader) if each]


def by_name(found: list[Raw]) -> dict[str, Raw]:
    """The objects by kind and name."""
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in found}


def seed(name: str, namespace: str, release: str) -> dict[str, Raw]:
    """The objects of a values file."""
    values = yaml.safe_load((VALUES / f"{name}.yaml").read_text())
    return by_name(objects(values, Release(release, namespace)))


def changed(path: tuple[str, ...]) -> tuple[Raw, Raw]:
    """Values before and after the change of one value."""
    before = merge_values(ALL, ALSO.get(".".join(path), {}))
    return before, merge_values(before, nested(path, at(NEW, path)))


@pytest.mark.parametrize("path", LEAVES, ids=".".join)
def test_each_value_has_an_effect(path: tuple[str, ...]) -> None:
    """A value that changes nothing would be a promise that the chart does not keep."""
    if ".".join(path) in WITHOUT_EFFECT:
        return
    before, after = changed(path)

    assert render(RELEASE, before) != render(RELEASE, after)


def test_the_schema_and_the_values_are_the_same_and_each_value_is_described() -> None:
    """values.yaml has each value of the schema; no object of the schema takes unknown values."""
    values = default_values()

    def check(node: Raw, found: Any, path: str) -> None:
        if reference := node.get("$ref"):
            node = schema()["definitions"][reference.rpartition("/")[2]]
        assert re.match(r"[A-Z].*\.$", node["description"]), path
        if "properties" in node:
            assert node["additionalProperties"] is False, path
            assert set(node["properties"]) - {"global"} == set(found), path
            for key in found:
                check(node["properties"][key], found[key], f"{path}.{key}")

    check(schema(), values, "values")


def test_the_chart_has_the_version_of_dryrack() -> None:
    """The version of the chart is also the default tag of the image."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert chart["version"] == chart["appVersion"] == __version__


REFUSALS = [
    ({"allowDefaultNamespace": False}, "the release namespace is default; install with "),
    (
        {part: {"enabled": False} for part in ("publisher", "scheduler", "dashboard")},
        "all parts are ",
    ),
    ({"publisher": {"replicas": 2, "leaderElection": {"enabled": False}}}, "publisher.replicas is"),
    ({"scheduler": {"replicas": 2, "leaderElection": {"enabled": False}}}, "scheduler.replicas is"),
    ({"publisher": {"name": "x"}, "scheduler": {"name": "x"}}, "scheduler.name: another part also"),
    (
        {"publisher": {"leaderElection": {"name": "dryrack-scheduler"}}},
        "use the same lease dryrack-",
    ),
    (
        {"publisher": {"leaderElection": {"name": "dryrack-scheduler-gangs"}}},
        "use the same lease dryrack-scheduler-gangs",
    ),
    (
        {"publisher": {"nodes": {"all": True, "selector": "a=b"}, "policy": {"enabled": False}}},
        "publisher.nodes.all and publisher.nodes.selector are mutually exclusive",
    ),
    ({"publisher": {"nodes": {"all": True}}}, "the admission policy admits only KWOK nodes"),
    ({"publisher": {"policy": {"nodes": "pattern"}}}, "publisher.policy.pattern is empty"),
    ({"plugin": {"enabled": True}}, "the plugin has no devices; set plugin.devices"),
    (
        {"plugin": {"enabled": True, "devices": ["nvidia.com/gpu"]}},
        "nvidia.com/gpu is the resource name of a device plugin, not a device kind",
    ),
    (
        {"plugin": {"enabled": True, "devices": ["gpus:8"]}},
        "gpus:8 is not a device kind of dryrack",
    ),
    (
        {"plugin": {"enabled": True, "devices": ["catalogue:p5.48xlarge"]}},
        "the drivers of catalogue:p5.48xlarge are not known to the chart",
    ),
    ({"plugin": {"enabled": True, "config": "x"}}, "plugin.config defines devices whose drivers"),
    (
        {"plugin": {"enabled": True, "devices": ["gpu"], "maxUnavailable": 1}},
        "plugin.maxSurge and plugin.maxUnavailable are both greater than 0",
    ),
    (
        {"plugin": {"enabled": True, "devices": ["gpu"], "maxSurge": 0}},
        "plugin.maxSurge and plugin.maxUnavailable are both 0",
    ),
    (
        {"dashboard": {"ingress": {"enabled": True, "host": "a.b"}}},
        "dashboard.ingress needs a fixed",
    ),
    ({"dashboard": {"replicas": 2}}, "dashboard.replicas is greater than 1"),
    (
        {"dashboard": {"ingress": {"enabled": True}, "tokenSecret": {"name": "t"}}},
        "dashboard.ingress.host is empty",
    ),
]


@pytest.mark.parametrize(("values", "message"), REFUSALS, ids=[each[1][:40] for each in REFUSALS])
def test_impossible_combinations_are_refused(values: Raw, message: str) -> None:
    """A sentence names the values and the fix."""
    namespace = "default" if "allowDefaultNamespace" in values else "dryrack-system"
    with pytest.raises(ChartError) as refusal:
        render(Release("dryrack", namespace), values)

    assert message in str(refusal.value)
    assert ";" in str(refusal.value)


def test_a_permission_allows_what_is_refused() -> None:
    """The release namespace default needs allowDefaultNamespace."""
    assert objects({"allowDefaultNamespace": True}, Release("dryrack", "default"))


SCHEMA_REFUSALS = [
    ("bogus=1", "bogus: unknown value"),
    ("publisher.replica=2", "publisher.replica: unknown value; did you mean 'replicas'?"),
    ("publisher.replicas=0", "publisher.replicas: must be at least 1"),
    ("publisher.replicas=two", "publisher.replicas: must be of type integer"),
    ("publisher.driver=Gpu", "publisher.driver: 'Gpu' does not match "),
    (f"publisher.driver={'a' * 64}", "publisher.driver: must have at most 63 characters"),
    ("publisher.policy.nodes=all", "publisher.policy.nodes: must be one of params, pattern, off"),
    ("plugin.devices=gpu", "plugin.devices: must be of type array"),
    ("plugin.drivers={a/b}", "plugin.drivers[0]: 'a/b' does not match "),
    ("scheduler.schedulerNames={}", "scheduler.schedulerNames[0]: '' does not match ."),
    ("image.digest=latest", "image.digest: 'latest' does not match "),
    ("plugin.kubeletDir=var", "plugin.kubeletDir: 'var' does not match ^/"),
    ("commonLabels.a=1", "commonLabels.a: must be of type string"),
    ("crds.keep=1", "crds.keep: must be of type boolean"),
]


@pytest.mark.parametrize(("assignment", "message"), SCHEMA_REFUSALS)
def test_wrong_values_are_refused(assignment: str, message: str) -> None:
    """The error names the value."""
    with pytest.raises(ValuesError) as refusal:
        render(RELEASE, set_value(assignment))

    assert message in str(refusal.value)


NULLABLE = ("array", "object")


@pytest.mark.parametrize(("path", "node"), [*leaves()], ids=lambda each: str(each)[:60])
def test_a_value_of_null_is_empty_or_refused(path: tuple[str, ...], node: Raw) -> None:
    """Lists and maps can be removed; for other values, the error names the value."""
    values = merge_values(ALL, nested(path, None), keeps_null=True)
    if node["type"] not in NULLABLE or "minItems" in node:
        with pytest.raises(ValuesError) as refusal:
            render(RELEASE, values)
        assert f"{'.'.join(path)}: must not be null" in str(refusal.value)
    elif path == ("plugin", "drivers"):
        with pytest.raises(ChartError, match=r"plugin\.drivers"):
            render(RELEASE, values)
    else:
        assert render(RELEASE, values)


def test_seed_names() -> None:
    """The values files have the names that the commands of existing guides use."""
    fake = seed("fake", "fake-system", "fake-dra-driver")
    assert {
        "Deployment/fake-dra-driver-controller",
        "DaemonSet/fake-dra-driver-kubeletplugin",
    } < set(fake)
    daemon_set = fake["DaemonSet/fake-dra-driver-kubeletplugin"]
    labels = daemon_set["spec"]["template"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/name"] == labels["app.kubernetes.io/instance"]
    assert "fake-system" in args_of(daemon_set)
    assert "DeviceClass/fake.3-shake.com" in fake
    assert "CustomResourceDefinition/fakeclaimparameters.fake.resource.3-shake.com" in fake

    kwok = seed("dra-kwok", "karpenter", "dra-kwok-driver")
    publisher = args_of(kwok["Deployment/dra-kwok-driver"])
    assert publisher[1:7] == (
        *("--namespace", "karpenter", "--config-map", "dra-kwok-configmap", "--key", "config.yaml"),
    )
    assert not [each for each in kwok if each.startswith(("ConfigMap", "Namespace"))]

    file = seed("dra-file", "dra-system", "dra-file-driver")
    template = file["DaemonSet/dra-file-driver"]["spec"]["template"]
    assert template["metadata"]["labels"]["app"] == "dra-file-driver"
    assert template["spec"]["containers"][0]["name"] == "driver"
    assert template["spec"]["priorityClassName"] == "system-node-critical"
    assert template["spec"]["tolerations"] == [{"operator": "Exists"}]
    assert {"path": "/etc/dra", "type": "DirectoryOrCreate"} in [
        each["hostPath"] for each in template["spec"]["volumes"]
    ]
    assert {"DeviceClass/file-resource", "ClusterRole/dra-file-driver"} < set(file)

    gangs = seed("kubenexus", "kubenexus-system", "kubenexus-scheduler")
    deployment = gangs["Deployment/kubenexus-scheduler"]
    words = args_of(deployment)
    assert words[words.index("--lease-name") + 1] == "kubenexus-scheduler"
    assert words[words.index("--config") + 1] == "/etc/kubenexus/config.yaml"
    assert deployment["metadata"]["labels"]["app"] == "kubenexus-scheduler"
    assert gangs["Service/kubenexus-scheduler"]["spec"]["ports"][0]["port"] == 10251
    assert {"ConfigMap/kubenexus-config", "DeviceClass/gpu.example.com"} < set(gangs)


def args_of(workload: Raw) -> tuple[str, ...]:
    """The arguments of the container of a workload."""
    return tuple(workload["spec"]["template"]["spec"]["containers"][0]["args"])


def workloads(values: Raw) -> list[Raw]:
    """The Deployments and DaemonSets."""
    return [each for each in objects(values) if each["kind"] in ("Deployment", "DaemonSet")]


def test_no_pod_runs_on_a_node_of_kwok() -> None:
    """Each part requires nodes without the label of Karpenter's and of kwokctl's KWOK nodes."""
    for each in workloads(ALL):
        affinity = each["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
        [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert term["matchExpressions"] == [
            {"key": "kwok.x-k8s.io/node", "operator": "DoesNotExist"},
            {"key": "type", "operator": "NotIn", "values": ["kwok"]},
        ]


def test_device_kinds_of_the_chart_are_those_of_the_plugin() -> None:
    """The chart has the driver and the class that `dryrack plugin --print-classes` prints."""
    kinds = yaml.safe_load((CHART / "files" / "device-kinds.yaml").read_text())
    words = [word for kind in kinds for word in ("--devices", kind)]
    printed = yaml.safe_load(dryrack("plugin", *words, "--print-classes").stdout)["items"]
    plugin = {"enabled": True, "devices": list(kinds)}
    rendered = objects({"plugin": plugin}, part="classes")

    def plain(found: list[Raw]) -> dict[str, Raw]:
        return {each["metadata"]["name"]: each["spec"] for each in found}

    assert plain(rendered) == plain(printed)
    assert len(rendered) == len(kinds)


@pytest.mark.parametrize("part", ["publisher", "scheduler", "plugin", "dashboard"])
def test_print_rbac_prints_the_roles_of_the_chart(part: str) -> None:
    """The rules for the same names and devices are equal."""
    words = {
        "publisher": ("publish", "-n", "dryrack-system"),
        "scheduler": ("schedule", "-n", "dryrack-system", "--name", "dryrack"),
        "plugin": ("plugin", "--devices", "fake", "--nas-namespace", "dryrack-system"),
        "dashboard": ("dashboard",),
    }
    printed = list(yaml.safe_load_all(dryrack(*words[part], "--print-rbac").stdout))
    values = {
        "plugin": {
            "enabled": True,
            "devices": ["fake"],
            "allocationStates": {"enabled": True},
        }
    }
    rendered = objects(values, part=part)

    def rules(found: list[Raw]) -> dict[str, Any]:
        return {each["metadata"]["name"]: each["rules"] for each in found if "rules" in each}

    assert rules(printed) == rules(rendered)
    assert rules(printed)


def test_the_command_reads_files_and_assignments(tmp_path: Path) -> None:
    """--set takes precedence over files; null removes a default value."""
    file = tmp_path / "values.yaml"
    file.write_text("publisher: {replicas: 3, resources: null}\nscheduler: {enabled: false}\n")
    done = dryrack(
        *("manifests", "publisher", "-f", file, "--set", "publisher.replicas=2"),
        *("--set", "publisher.podAnnotations.example\\.com/a=b", "-n", "x", "-o", "json"),
    )
    found = by_name(json.loads(done.stdout)["items"])
    deployment = found["Deployment/dryrack-publisher"]
    template = deployment["spec"]["template"]

    assert deployment["metadata"]["namespace"] == "x"
    assert deployment["spec"]["replicas"] == 2
    assert template["metadata"]["annotations"] == {"example.com/a": "b"}
    assert "resources" not in template["spec"]["containers"][0]
    assert not [name for name in found if "scheduler" in name]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("plugn",), "no part 'plugn'; did you mean 'plugin'?"),
        (("plugin",), "the values disable plugin; to enable it, add --set plugin.enabled=true"),
        (("-n", "A"), "--namespace 'A': "),
        (("-n", "default"), "the release namespace is default"),
        (("--release", "a.b"), "--release 'a.b': "),
        (("--set", "x"), "--set 'x': must be KEY=VALUE"),
        (("--set", "publisher.x=1"), "publisher.x: unknown value"),
        (("-f", "none.yaml"), "none.yaml"),
    ],
)
def test_bad_input_gets_one_line(words: tuple[str, ...], message: str) -> None:
    """Nothing is printed, and the exit status is that of wrong usage."""
    done = dryrack("manifests", *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("content", ["a: [", "- a\n"])
def test_a_file_that_has_no_values_is_named(tmp_path: Path, content: str) -> None:
    """The error has the name of the file, and no traceback."""
    file = tmp_path / "values.yaml"
    file.write_text(content)
    done = dryrack("manifests", "-f", file)

    assert done.returncode == 2
    assert str(file) in done.stderr
    assert "Traceback" not in done.stderr


def test_objects_come_before_those_that_need_them() -> None:
    """As with Helm, namespaces and accounts are first, so that kubectl can apply all objects."""
    kinds = [each["kind"] for each in objects(ALL)]

    assert kinds.index("Deployment") > max(
        index for index, kind in enumerate(kinds) if kind in ("Namespace", "ServiceAccount")
    )

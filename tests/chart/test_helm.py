"""The chart with the real Helm: the same objects as `dryrack manifests`, and the same refusals."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.chart.helm import CHART, VALUES, Helm, load
from tests.chart.test_manifests import LEAVES, REFUSALS, SCHEMA_REFUSALS, changed
from tests.clients.served import ServedPlane

from dryrack.cluster.chart import Release, ValuesError, render, set_value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dryrack.kinds.raw import Raw

pytestmark = pytest.mark.real
SEEDS = {
    "fake": ("fake-system", "fake-dra-driver"),
    "dra-kwok": ("karpenter", "dra-kwok-driver"),
    "dra-file": ("dra-system", "dra-file-driver"),
    "kubenexus": ("kubenexus-system", "kubenexus-scheduler"),
}


def ours(
    values: Mapping[str, Raw], namespace: str = "dryrack-system", release: str = "dryrack"
) -> list[Raw]:
    """The objects that `dryrack manifests` prints."""
    return load(render(Release(release, namespace), values))


@pytest.mark.parametrize("name", SEEDS)
def test_lint_and_objects_of_each_values_file(tmp_path: Path, name: str) -> None:
    """Helm lints it strictly, and prints the objects of `dryrack manifests`."""
    namespace, release = SEEDS[name]
    helm = Helm(tmp_path)
    values = yaml.safe_load((VALUES / f"{name}.yaml").read_text())
    helm("lint", "--strict", CHART, "-n", namespace, "-f", VALUES / f"{name}.yaml")

    found = helm.objects(values, namespace=namespace, release=release)
    assert found == ours(values, namespace, release)


def test_default_values(tmp_path: Path) -> None:
    """The chart can be linted and rendered without values, and with any name of a release."""
    helm = Helm(tmp_path)
    helm("lint", "--strict", CHART, "-n", "dryrack-system")

    assert helm.objects({}) == ours({})
    assert helm.objects({}, release="a" * 50) == ours({}, release="a" * 50)


def test_the_removal_of_slices_is_a_hook(tmp_path: Path) -> None:
    """Helm runs the Job and its account only after the uninstallation, and deletes them."""
    helm = Helm(tmp_path)
    with_job = load(helm.template({}).stdout)
    hooks = [each for each in with_job if each not in ours({})]
    without = {"publisher": {"removeSlices": False}}

    assert sorted(each["kind"] for each in hooks) == [
        *("ClusterRole", "ClusterRoleBinding", "Job", "ServiceAccount"),
    ]
    assert {each["metadata"]["annotations"]["helm.sh/hook"] for each in hooks} == {"post-delete"}
    assert load(helm.template(without).stdout) == ours(without)


@pytest.mark.parametrize("path", LEAVES, ids=".".join)
def test_each_value_has_the_same_effect(tmp_path: Path, path: tuple[str, ...]) -> None:
    """`helm template` and `dryrack manifests` print the same objects for each value."""
    if path == ("global",):
        return
    _, values = changed(path)

    assert Helm(tmp_path).objects(values) == ours(values)


@pytest.mark.parametrize(("values", "message"), REFUSALS, ids=[each[1][:40] for each in REFUSALS])
def test_helm_refuses_the_same_combinations(tmp_path: Path, values: Raw, message: str) -> None:
    """The sentence is the same."""
    namespace = "default" if "allowDefaultNamespace" in values else "dryrack-system"
    done = Helm(tmp_path).template(values, namespace=namespace)

    assert done.returncode != 0
    assert message in done.stderr


@pytest.mark.parametrize(("assignment", "_"), SCHEMA_REFUSALS)
def test_helm_refuses_the_same_values(tmp_path: Path, assignment: str, _: str) -> None:
    """By the schema; `--set` has the same meaning for both."""
    helm = Helm(tmp_path)
    words = ("template", "dryrack", CHART, "-n", "dryrack-system", "--kube-version", "1.36.0")
    done = helm.run(*words, "--set", assignment)

    assert done.returncode != 0
    assert "values don't meet the specifications of the schema" in done.stderr
    with pytest.raises(ValuesError):
        render(Release("dryrack", "dryrack-system"), set_value(assignment))


@pytest.mark.parametrize("name", SEEDS)
def test_notes_name_objects_that_exist(tmp_path: Path, name: str) -> None:
    """The commands that Helm prints after the installation fit the objects."""
    namespace, release = SEEDS[name]
    words = (CHART, "-n", namespace, "-f", VALUES / f"{name}.yaml", "--dry-run=client")
    with ServedPlane(tmp_path, ("--nodes", "1"), f"notes-{name}") as plane:
        printed = Helm(tmp_path, plane.kubeconfig)("install", release, *words)
    manifest, _, notes = printed.partition("\nNOTES:\n")
    workloads = {
        f"{each['kind'].lower()}/{each['metadata']['name']}"
        for each in load(manifest.partition("MANIFEST:")[2])
    }

    found = set(re.findall(r"(?:deployment|daemonset)/\S+", notes))
    assert found or name == "dra-kwok"
    assert found <= workloads
    assert f"is installed in namespace {namespace}." in notes


def test_an_old_cluster_is_refused(tmp_path: Path) -> None:
    """Versions of providers, with a suffix, are admitted."""
    helm = Helm(tmp_path)
    words = ("template", "dryrack", CHART, "-n", "dryrack-system", "--kube-version")

    assert "chart requires kubeVersion: >=1.34.0-0" in helm.run(*words, "1.33.5").stderr
    assert helm(*words, "v1.34.1-eks-1234567")


def test_the_chart_can_be_packaged(tmp_path: Path) -> None:
    """`helm package` makes an archive of the whole chart."""
    from dryrack.base.version import __version__

    Helm(tmp_path)("package", CHART, "-d", tmp_path)

    assert (tmp_path / f"dryrack-{__version__}.tgz").stat().st_size > 10_000

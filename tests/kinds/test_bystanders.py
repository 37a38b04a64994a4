"""Bystanders, custom kinds and mistaken kinds in files."""

from __future__ import annotations

import pytest

from dryrack.kinds.documents import Document, read
from dryrack.kinds.other_kinds import Mistaken, Standing, standing
from dryrack.kinds.registry import builtin_kinds
from dryrack.kinds.releases import DEFAULT_RELEASE


def document(api_version: str, kind: str) -> Document:
    (found,) = read(
        f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n", "f"
    ).documents
    return found


@pytest.mark.parametrize(
    "each", builtin_kinds(DEFAULT_RELEASE), ids=lambda each: f"{each.group}/{each.kind}"
)
def test_no_kind_that_a_cluster_serves_is_a_mistake(each: object) -> None:
    """Every kind that our own control plane serves is ours or a bystander."""
    group, version, kind = (getattr(each, name) for name in ("group", "version", "kind"))
    found = standing(document(f"{group}/{version}" if group else version, kind))

    assert found in (Standing.OURS, Standing.BYSTANDER)


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("example.com/v1", "Foo"),
        ("kueue.x-k8s.io/v1beta1", "Workload"),
        ("scheduling.volcano.sh/v1beta1", "PodGroup"),
        ("serving.knative.dev/v1", "Service"),
    ],
)
def test_groups_of_others_have_kinds_of_their_own(api_version: str, kind: str) -> None:
    """A custom kind may have the name of one that Kubernetes has."""
    assert standing(document(api_version, kind)) is Standing.CUSTOM


@pytest.mark.parametrize(
    ("api_version", "kind", "message", "fix"),
    [
        ("apps/v1", "Pod", "Pod is not in 'apps/v1'", "write apiVersion: v1"),
        ("v1", "Deployment", "Deployment is not in 'v1'", "write apiVersion: apps/v1"),
        ("apps/v1", "Deploymant", "unknown kind 'Deploymant'", "known kinds"),
        ("v1", "pod", "unknown kind 'pod'", "did you mean 'Pod'?"),
        ("foo/v1", "Bar", "unknown kind 'Bar'", "known kinds"),
        ("resource.k8s.com/v1", "DeviceClass", "DeviceClass is not in", "resource.k8s.io/v1"),
        ("v1", "[Pod]", "kind: expected a string, got a list", ""),
        ("1", "Pod", "apiVersion: expected a string, got the number 1", ""),
    ],
)
def test_a_kind_where_it_is_not_is_a_mistake(
    api_version: str, kind: str, message: str, fix: str
) -> None:
    """The message says what is so, and the fix what to write."""
    found = standing(document(api_version, kind))

    assert isinstance(found, Mistaken)
    assert message in found.message
    assert fix in found.fix

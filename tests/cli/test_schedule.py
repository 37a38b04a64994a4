"""`dryrack schedule`: what its options mean, and what it says when it cannot work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from tests.cli.command import dryrack

from dryrack.cli.files import UsageError
from dryrack.cli.schedule import Wish, lease_of, options_of
from dryrack.client.informer import Name

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("names", "lease"),
    [
        ((), "dryrack-scheduler"),
        (("kubenexus-scheduler",), "kubenexus-scheduler"),
        (("gangs", "dryrack"), "gangs-scheduler"),
    ],
)
def test_schedulers_of_different_names_have_different_leases(
    names: tuple[str, ...], lease: str
) -> None:
    """So that each of them works; it is called by the first of its names."""
    wish = Wish(names=names)

    assert lease_of(wish, options_of(wish)) == Name("kube-system", lease)


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (Wish(names=("",)), "--name '': what pods have in schedulerName"),
        (Wish(names=("My_One",)), "--name 'My_One': .*; name the lease with --lease-name"),
        (Wish(lease_name="My_One"), "--lease-name 'My_One': "),
        (Wish(namespace="a.b"), "--namespace 'a.b': "),
    ],
)
def test_names_that_no_cluster_takes_are_told_before_one_is_asked(wish: Wish, words: str) -> None:
    """The option is named, and what would be right."""
    with pytest.raises(UsageError, match=words):
        options_of(wish)


def test_a_name_that_no_lease_can_have_needs_a_lease_of_another() -> None:
    """Pods may name a scheduler as they like."""
    wish = Wish(names=("My_One",), lease_name="mine")

    assert lease_of(wish, options_of(wish)).name == "mine"


def test_the_rights_are_printed_under_the_names_that_were_given() -> None:
    """Manifests that can be applied: the account, its lease, and the namespace if it is new."""
    done = dryrack("schedule", "--print-rbac", "--name", "kubenexus-scheduler", "-n", "gangs")
    objects = list(yaml.safe_load_all(done.stdout))
    places = [each["metadata"].get("namespace") for each in objects]

    assert done.returncode == 0
    assert objects[0] == {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gangs"}}
    assert {each["metadata"]["name"] for each in objects[1:]} == {"kubenexus-scheduler"}
    assert set(places) == {"gangs", None}
    assert "dryrack-scheduler" not in done.stdout


def test_every_cluster_has_the_usual_namespace() -> None:
    """It is not made again."""
    done = dryrack("schedule", "--print-rbac")

    assert "kind: Namespace" not in done.stdout


def test_a_cluster_that_is_not_there_is_told_in_a_line(tmp_path: Path) -> None:
    """With what to do about it, and no traceback."""
    done = dryrack("schedule", "--kubeconfig", tmp_path / "none")

    assert done.returncode == 1
    assert done.stderr.startswith("dryrack: kubeconfig ")
    assert "name one with --kubeconfig" in done.stderr
    assert done.stderr.count("\n") == 1

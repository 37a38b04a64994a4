"""`dryrack plan` on files: the nodes, the cost, and the errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.cli.command import dryrack, run

from dryrack.cli.files import UsageError

if TYPE_CHECKING:
    from pathlib import Path

TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one-gpu"},
    "spec": {
        "spec": {
            "devices": {
                "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]
            }
        }
    },
}


def deployment(replicas: int, **requests: str) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": {"requests": requests}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [container], "resourceClaims": claims},
            },
        },
    }


def written(folder: Path, *objects: dict[str, Any]) -> str:
    file = folder / "objects.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return str(file)


def planned(*words: str) -> tuple[int, dict[str, Any]]:
    """Return the exit status of a plan and its document."""
    status, out, _ = run("plan", "-o", "json", *words)
    return status, json.loads(out)


def test_plan_of_a_deployment_has_the_nodes_that_its_pods_fill(tmp_path: Path) -> None:
    """Nine pods with a GPU each need three nodes with four GPUs, and no plan is cheaper."""
    file = written(tmp_path, TEMPLATE, deployment(9, cpu="3"))
    status, answer = planned("-f", file, "--instance-types", "g6.12xlarge,p5.48xlarge")

    assert status == 0
    assert [each["instanceType"] for each in answer["nodes"]] == ["g6.12xlarge"] * 3
    assert sorted(len(each["devices"]) for each in answer["nodes"]) == [1, 4, 4]
    assert answer["cost"] == pytest.approx(3 * 4.6016)
    assert answer["bound"] <= answer["cost"]
    assert (answer["optimal"], answer["placement"], answer["unplaceable"]) == (True, "any", [])
    assert answer["oneFewer"]["change"] == "1 pod fewer like default/web-0"
    assert answer["prices"]["date"] == "2026-01-19"


def test_a_daemon_set_takes_its_part_of_each_new_node(tmp_path: Path) -> None:
    """A DaemonSet whose pods take two of four CPUs leaves no place for a pod with three."""
    daemon = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {
                    "containers": [
                        {"name": "c", "image": "x", "resources": {"requests": {"cpu": "2"}}}
                    ]
                },
            },
        },
    }
    file = written(tmp_path, TEMPLATE, deployment(1, cpu="3"), daemon)
    _, answer = planned("-f", file, "--instance-types", "g6.xlarge,g6.2xlarge")

    assert [each["instanceType"] for each in answer["nodes"]] == ["g6.2xlarge"]
    assert answer["nodes"][0]["left"]["cpu"] == "3"


def test_existing_nodes_take_pods_before_nodes_are_added(tmp_path: Path) -> None:
    """With --existing a node of the files serves four of five pods, and one node is added."""
    labels = {"node.kubernetes.io/instance-type": "g6.12xlarge"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "old", "labels": labels},
        "status": {"allocatable": {"cpu": "48", "memory": "192Gi", "pods": "110"}},
    }
    file = written(tmp_path, TEMPLATE, deployment(5, cpu="1"), node)
    _, kept = planned("-f", file, "--existing", "--instance-types", "g6.xlarge")
    _, fresh = planned("-f", file, "--instance-types", "g6.xlarge")

    assert [(each["node"], len(each["pods"])) for each in kept["existing"]] == [("old", 4)]
    assert [each["instanceType"] for each in kept["nodes"]] == ["g6.xlarge"]
    assert (fresh["existing"], len(fresh["nodes"])) == ([], 5)


def test_pods_beyond_the_greatest_cost_are_left_over(tmp_path: Path) -> None:
    """Two nodes of 0.8048 USD an hour are within 2 USD; the plan names the pods without one."""
    file = written(tmp_path, TEMPLATE, deployment(4, cpu="1"))
    status, answer = planned("-f", file, "--instance-types", "g6.xlarge", "--max-cost", "2")

    assert status == 1
    assert (len(answer["nodes"]), answer["cost"]) == (2, pytest.approx(1.6096))
    assert [each["pod"] for each in answer["unplaceable"]] == ["default/web-2", "default/web-3"]


def test_fewer_nodes_keep_to_a_limit(tmp_path: Path) -> None:
    """Four pods fit on one larger node, which costs more than four small ones."""
    file = written(tmp_path, TEMPLATE, deployment(4))
    status, answer = planned("-f", file, "--instance-types", "g6.*", "--max-nodes", "1")

    assert (status, answer["unplaceable"]) == (0, [])
    assert [each["instanceType"] for each in answer["nodes"]] == ["g6.12xlarge"]


def test_prices_of_unknown_types_are_reported(tmp_path: Path) -> None:
    """A typing mistake in a price list does not go unnoticed."""
    file = written(tmp_path, TEMPLATE, deployment(1))
    prices = tmp_path / "prices.yaml"
    head = "apiVersion: dryrack.dev/v1alpha1\nkind: PriceList\ndate: x\nsource: y\n"
    prices.write_text(head + "prices: {g6.xlage: 0.1}\n")
    done = dryrack("plan", "-f", file, "--instance-types", "g6.xlarge", "--prices", prices)

    assert done.returncode == 0
    assert "prices of unknown instance types are not used: g6.xlage" in done.stderr


def test_a_pod_that_no_type_takes_says_why(tmp_path: Path) -> None:
    """The reason is that of the decider on a node of the type."""
    file = written(tmp_path, TEMPLATE, deployment(1, cpu="1"))
    status, answer = planned("-f", file, "--instance-types", "trn1.2xlarge")

    assert status == 1
    assert answer["nodes"] == []
    assert "class gpu.nvidia.com selects none of 1 device" in answer["unplaceable"][0]["why"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--instance-types", "p5.48xlarg"], "did you mean 'p5.48xlarge'"),
        (["--instance-types", "p5e.48xlarge"], "its price is not known; add a price with --prices"),
        (["--max-cost", "0"], "--max-cost 0.0: must be a number greater than 0"),
        (["--max-cost", "nan"], "--max-cost nan: must be a number greater than 0"),
        (["--max-nodes", "-1"], "--max-nodes -1: must be 0 or more"),
        (["--zones", "a zone", "--spread", "zone"], "--zones 'a zone': a valid label must be"),
    ],
)
def test_wrong_options_say_what_is_right(tmp_path: Path, words: list[str], error: str) -> None:
    """An option that cannot be used ends the command with the remedy."""
    file = written(tmp_path, TEMPLATE, deployment(1))
    done = dryrack("plan", "-f", file, *words)

    assert done.returncode == 2
    assert error in done.stderr


def test_prices_of_a_file_replace_the_packaged_ones(tmp_path: Path) -> None:
    """A price list of the user has another price, and a type that had none."""
    prices = tmp_path / "prices.yaml"
    prices.write_text(
        "apiVersion: dryrack.dev/v1alpha1\nkind: PriceList\ndate: '2026-11-01'\n"
        "source: our contract\nprices:\n  p5e.48xlarge: 1\n  g6.xlarge: 2\n"
    )
    file = written(tmp_path, TEMPLATE, deployment(2, cpu="1"))
    words = ["--instance-types", "p5e.48xlarge,g6.xlarge", "--prices", str(prices)]
    _, answer = planned("-f", file, *words)

    assert [each["instanceType"] for each in answer["nodes"]] == ["p5e.48xlarge"]
    assert answer["prices"] == {"date": "2026-11-01", "source": "our contract"}


def bound(name: str, node: str, device: str, owner: str = "ReplicaSet") -> list[dict[str, Any]]:
    """Return a pod on a node, and its claim with a device of the node."""
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "web", "uid": "1"}]
    result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": node, "device": device}
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    exactly = {"deviceClassName": "gpu.nvidia.com"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "uid": name,
                "ownerReferences": [each | {"controller": True} for each in owners],
            },
            "spec": {
                "nodeName": node,
                "containers": [container],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
            },
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
            "status": {
                "allocation": {"devices": {"results": [result]}},
                "reservedFor": [{"resource": "pods", "name": name, "uid": name}],
            },
        },
    ]


def existing_node(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"node.kubernetes.io/instance-type": "g6.12xlarge"},
        },
        "status": {"allocatable": {"cpu": "48", "memory": "192Gi", "pods": "110"}},
    }


def test_defragment_names_the_pods_to_move_and_the_nodes_that_they_free(tmp_path: Path) -> None:
    """A pod of a ReplicaSet moves, and one of a DaemonSet keeps its node."""
    nodes = [existing_node(name) for name in ("a", "b")]
    pods = [*bound("web-1", "a", "gpu-0"), *bound("agent", "b", "gpu-0", owner="DaemonSet")]
    file = written(tmp_path, *nodes, *pods)
    status, out, _ = run("plan", "-f", file, "--defragment", "gpu.nvidia.com")
    _, answer = planned("-f", file, "--defragment", "gpu.nvidia.com")

    assert status == 0
    assert "moving 1 pod frees 1 whole node: a" in out
    assert "1 cannot be moved, for example default/agent: it belongs to its node" in out
    assert answer["moves"] == [{"pod": "default/web-1", "from": "a", "to": "b", "gang": ""}]
    assert (answer["freed"], answer["whole"], answer["placement"]) == (["a"], 0, "any")


def test_defragment_refuses_options_of_plans(tmp_path: Path) -> None:
    """They would have no effect."""
    file = written(tmp_path, existing_node("a"))
    with pytest.raises(UsageError, match="leave out --existing, --max-cost"):
        run("plan", "-f", file, "--defragment", "d", "--existing", "--max-cost", "3")

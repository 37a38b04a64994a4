"""A control plane in a process of its own, with pods that have their devices and pods that wait."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import yaml
from tests.cli.command import EXAMPLES, dryrack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dryrack.kinds.raw import Raw

LABELS = "pod-group.scheduling.kubenexus.io"
# Until pods are where they are going to be; each look takes some hundred milliseconds.
_LOOKS_MAX = 60


def claim(name: str, count: int) -> Raw:
    exactly = {"deviceClassName": "gpu.nvidia.com", "count": count}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }


def pod(name: str, *, claims: tuple[str, ...] = (), gang: str = "", **spec: Any) -> Raw:
    labels = {f"{LABELS}/name": gang, f"{LABELS}/min-available": "2"} if gang else {}
    entries = [{"name": f"c{n}", "resourceClaimName": each} for n, each in enumerate(claims)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "labels": labels},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            **({"resourceClaims": entries} if entries else {}),
            **spec,
        },
    }


OBJECTS = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}},
    *(claim(name, count) for name, count in (("two", 2), ("three", 3), ("four", 4), ("five", 5))),
    pod("train", claims=("three",)),
    # Of the four of rack-2 one is broken, and train has three of rack-1.
    pod("waits", claims=("four",)),
    pod("first", claims=("two",), gang="pair"),
    pod("second", claims=("five",), gang="pair"),
    pod("gated", schedulingGates=[{"name": "example.com/quota"}]),
    pod("lost", nodeSelector={"disk": "fast"}),
]


@contextmanager
def plane(directory: Path, objects: list[Raw] | None = None) -> Iterator[Path]:
    """The kubeconfig of a plane that lasts as long as the block, with `OBJECTS` on nodes.yaml."""
    config = directory / "objects.yaml"
    fleet = list(yaml.safe_load_all((EXAMPLES / "nodes.yaml").read_text()))
    config.write_text(yaml.safe_dump_all([*fleet, *(OBJECTS if objects is None else objects)]))
    before = os.environ.get("DRYRACK_HOME")
    os.environ["DRYRACK_HOME"] = str(directory / "home")
    try:
        up = dryrack("up", "--detach", "--config", config)
        assert up.returncode == 0, up.stderr
        yield directory / "home" / "default" / "kubeconfig"
    finally:
        dryrack("down", "--all")
        del os.environ["DRYRACK_HOME"]
        if before is not None:
            os.environ["DRYRACK_HOME"] = before


def settle(kubeconfig: Path) -> None:
    """Wait until `train` has its devices and the gang has an event with the reason."""
    for _ in range(_LOOKS_MAX):
        claims = dryrack("claims", "-A", "-o", "json", "--kubeconfig", kubeconfig).stdout
        gangs = dryrack("gangs", "-A", "-o", "json", "--kubeconfig", kubeconfig).stdout
        has = any(each["state"] == "reserved" for each in json.loads(claims)["claims"])
        if has and any(each["why"] for each in json.loads(gangs)["gangs"]):
            return
    raise AssertionError(f"it does not settle: {claims} {gangs}")

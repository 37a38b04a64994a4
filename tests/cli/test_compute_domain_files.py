"""A ComputeDomain in files: lint, allocate and the API server give one answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.cli.command import dryrack

from dryrack.base.errors import DryrackError
from dryrack.linter import Severity, lint
from dryrack.testing import Cluster

if TYPE_CHECKING:
    from pathlib import Path

_CHANNEL = {"resourceClaimTemplate": {"name": "channel"}}
_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "worker"},
    "spec": {
        "containers": [{"name": "main", "image": "i", "resources": {"claims": [{"name": "c"}]}}],
        "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "channel"}],
    },
}
SPECS: dict[str, Any] = {
    "usual": {"numNodes": 2, "channel": _CHANNEL},
    "none": {"numNodes": 0, "channel": _CHANNEL},
    "whole": {"numNodes": 2.0, "channel": _CHANNEL},
    "all-channels": {"numNodes": 1, "channel": {**_CHANNEL, "allocationMode": "All"}},
    "other-mode": {"numNodes": 1, "channel": {**_CHANNEL, "allocationMode": "Some"}},
    "text": {"numNodes": "2", "channel": _CHANNEL},
    "truth": {"numNodes": True, "channel": _CHANNEL},
    "half": {"numNodes": 0.5, "channel": _CHANNEL},
    "no-nodes": {"channel": _CHANNEL},
    "no-channel": {"numNodes": 1},
    "no-template": {"numNodes": 1, "channel": {}},
    "no-name": {"numNodes": 1, "channel": {"resourceClaimTemplate": {}}},
    "number-as-name": {"numNodes": 1, "channel": {"resourceClaimTemplate": {"name": 1}}},
    "list": [],
}


def domain(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": name},
        "spec": SPECS[name],
    }


def test_lint_and_allocate_refuse_the_domains_that_the_api_server_refuses(tmp_path: Path) -> None:
    """And no others."""
    refused: set[str] = set()
    with Cluster() as cluster:
        cluster.add_nodes("p6e-gb200.36xlarge", count=1)
        for name in SPECS:
            try:
                cluster.apply(domain(name))
            except DryrackError:
                refused.add(name)
    by_lint: set[str] = set()
    by_allocate: set[str] = set()
    for name in SPECS:
        file = tmp_path / f"{name}.json"
        both = {"apiVersion": "v1", "kind": "List", "items": [domain(name), _POD]}
        file.write_text(json.dumps(both))
        found = lint([(file.name, file.read_bytes())])
        if any(each.severity is Severity.ERROR for each in found):
            by_lint.add(name)
        machine = ("--instance-type", "p6e-gb200.36xlarge")
        if dryrack("allocate", *machine, "-f", file).returncode:
            by_allocate.add(name)

    assert len(refused) == 10
    assert by_lint == refused
    assert by_allocate == refused

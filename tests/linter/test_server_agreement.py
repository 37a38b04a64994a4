"""lint refuses what the API server refuses, and nothing else."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.linter.server_agreement import disagreements, is_refusal

from dryrack.linter import lint

CASES = 120


@pytest.mark.parametrize("seed", range(8))
def test_lint_and_the_server_agree_on_broken_documents(seed: int) -> None:
    """Neither accepts a document that the other refuses; there is no exception to that."""
    found = asyncio.run(disagreements(seed, CASES))
    assert [each.summary for each in found] == []


@pytest.mark.parametrize(
    ("request_fields", "field"),
    [
        ({"allocationMode": 0}, "spec.devices.requests[0].exactly.allocationMode"),
        ({"count": {}}, "spec.devices.requests[0].exactly.count"),
        ({"tolerations": [{"operator": False}]}, "tolerations[0].operator"),
    ],
)
def test_a_default_does_not_hide_a_value_of_the_wrong_type(
    request_fields: dict[str, object], field: str
) -> None:
    """The server decodes before it fills in defaults, so an empty value of another type counts."""
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {
            "devices": {
                "requests": [{"name": "a", "exactly": {"deviceClassName": "gpu", **request_fields}}]
            }
        },
    }
    (finding,) = filter(is_refusal, lint([("claim.json", json.dumps(claim).encode())]))
    assert finding.code == "DR002"
    assert finding.field.endswith(field)


def test_a_field_that_a_workload_does_not_have_is_an_error_outside_its_pods_too() -> None:
    """kubectl refuses the whole object."""
    text = b"""
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec:
  paralelism: 2
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: i}]}
"""
    (finding,) = lint([("job.yaml", text)])
    assert (finding.code, finding.line) == ("DR003", 6)
    assert finding.fix == "did you mean 'parallelism'?"


def test_a_whole_number_with_a_fraction_is_an_integer() -> None:
    """kubectl sends 2.0 as 2, whatever field it is in."""
    text = b"""
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec:
  parallelism: 2.0
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: i}]}
"""
    assert lint([("job.yaml", text)]) == ()

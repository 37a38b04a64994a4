"""lint refuses what the API server refuses, and nothing else."""

from __future__ import annotations

import asyncio
import copy
import json

import pytest
from tests.linter.server_agreement import VALID, disagreements, is_refusal, verdicts

from dryrack.linter import lint

CASES = 120


@pytest.mark.parametrize("seed", range(8))
def test_lint_and_the_server_agree_on_broken_documents(seed: int) -> None:
    """Neither accepts a document that the other refuses; there is no exception to that."""
    found = asyncio.run(disagreements(seed, CASES))
    assert [each.summary for each in found] == []


@pytest.mark.parametrize(
    ("time", "is_accepted"),
    [
        ("2026-01-02T3:04:05Z", True),
        ("0000-01-02T03:04:05Z", True),
        ("2026-01-02T03:04:05+24:60", True),
        ("2026-01-02T03:04:05+99:00", False),
        ("2026-13-01T00:00:00Z", False),
    ],
)
def test_lint_and_the_server_read_times_as_go_does(time: str, is_accepted: bool) -> None:
    """The expected verdicts are those of Go's time.Parse."""
    document = copy.deepcopy(VALID[0])
    document["spec"]["devices"][0]["taints"][0]["timeAdded"] = time
    (verdict,) = asyncio.run(verdicts([document]))
    assert (verdict.is_accepted, verdict.is_split) == (is_accepted, False)


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
    """kubectl sends 2.0 as 2 in every field."""
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

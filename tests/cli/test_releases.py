"""Answers of `dryrack allocate` for a release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.cli.command import dryrack

if TYPE_CHECKING:
    from pathlib import Path

TWICE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one, namespace: default}
spec:
  devices:
    requests:
    - {name: a, exactly: {deviceClassName: gpu.example.com}}
    - {name: a, exactly: {deviceClassName: gpu.example.com}}
"""


@pytest.mark.parametrize(
    ("options", "value"),
    [
        (("--release", "1.36"), 'Duplicate value: "a"'),
        (("--release", "1.37"), 'Duplicate value: {"name":"a","exactly":'),
        # Objects are checked with feature gates, too.
        (
            ("--release", "1.37", "--feature-gates=DRADerivedAttributes=true"),
            'Duplicate value: {"name":"a","exactly":',
        ),
    ],
)
def test_a_claim_is_refused_with_the_words_of_the_release(
    options: tuple[str, ...], value: str, tmp_path: Path
) -> None:
    """The message has the line of the second request."""
    (tmp_path / "claim.yaml").write_text(TWICE)
    done = dryrack("allocate", *options, "-f", "claim.yaml", cwd=tmp_path)

    assert done.returncode == 1
    assert f"claim.yaml:9: the API server would reject this: spec.devices.requests[1]: {value}" in (
        done.stderr
    )

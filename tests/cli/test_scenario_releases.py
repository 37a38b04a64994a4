"""The release of a scenario: from its file, and from `--release`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.cli.command import dryrack

from dryrack.kinds.releases import Release
from dryrack.scenario import DEMOS

if TYPE_CHECKING:
    from pathlib import Path

# A bound claim of 1.37 says that no pod uses it.
SCENARIO = """
apiVersion: dryrack.dev/v1alpha1
kind: Scenario
{release}
objects:
- apiVersion: v1
  kind: PersistentVolume
  metadata: {{name: volume}}
  spec:
    capacity: {{storage: 5Gi}}
    accessModes: [ReadWriteOnce]
    storageClassName: manual
    hostPath: {{path: /data}}
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata: {{name: idle}}
  spec:
    storageClassName: manual
    accessModes: [ReadWriteOnce]
    resources: {{requests: {{storage: 3Gi}}}}
steps:
- title: The claim is bound
  expect:
  - object: PersistentVolumeClaim/idle
    fields: {{"status.conditions[type=Unused].reason": NoPodsUsingPVC}}
"""


@pytest.mark.parametrize(
    ("line", "options", "code"),
    [
        ("release: '1.37'", (), 0),
        ("release: '1.36'", (), 1),
        ("", ("--release", "1.37"), 0),
        ("", ("--release", "1.36"), 1),
        ("release: '1.36'", ("--release", "1.37"), 0),
    ],
)
def test_a_scenario_runs_with_its_release(
    line: str, options: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    """The option precedes the field of the file."""
    (tmp_path / "s.yaml").write_text(SCENARIO.format(release=line))

    assert dryrack("scenario", "run", "s.yaml", *options, cwd=tmp_path).returncode == code


def test_two_releases_can_be_compared(tmp_path: Path) -> None:
    """B runs with the release of the option."""
    (tmp_path / "s.yaml").write_text(SCENARIO.format(release=""))
    done = dryrack("scenario", "diff", "s.yaml", "--release", "1.36", cwd=tmp_path)

    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "no difference in 0 pods")


def test_an_unknown_release_is_refused(tmp_path: Path) -> None:
    """In the file with its line; as an option as wrong usage."""
    (tmp_path / "s.yaml").write_text(SCENARIO.format(release="release: 1.35"))
    (tmp_path / "t.yaml").write_text(SCENARIO.format(release="release: '1.35'"))
    of_type = dryrack("scenario", "run", "s.yaml", cwd=tmp_path)
    of_file = dryrack("scenario", "run", "t.yaml", cwd=tmp_path)
    of_option = dryrack("scenario", "run", "t.yaml", "--release", "1.35", cwd=tmp_path)

    assert of_type.returncode == of_file.returncode == 1
    assert "s.yaml:4: release" in of_type.stderr
    assert "t.yaml:4: release: '1.35': unknown release; use 1.36 or 1.37" in of_file.stderr
    assert of_option.returncode == 2
    assert "--release '1.35': unknown release; use 1.36 or 1.37" in of_option.stderr


@pytest.mark.parametrize("release", [each.value for each in Release])
def test_the_demo_passes_with_each_release(release: str) -> None:
    """All scenarios but the largest, which takes longest and looks at no release."""
    names = [each for each in DEMOS if each != "fleet"]
    run = dryrack("demo", "--release", release, *names)

    assert (run.returncode, run.stderr.count("failed")) == (0, 0), run.stderr

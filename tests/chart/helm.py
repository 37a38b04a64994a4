"""The real Helm, with files for values."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from tests.realcluster import programs

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

CHART = Path(__file__).parents[2] / "deploy" / "chart"
VALUES = CHART.parent / "values"
_SECONDS_MAX = 120


@dataclass(frozen=True)
class Helm:
    """Helm with files in a directory of the test, and with a kubeconfig if there is a cluster."""

    directory: Path
    kubeconfig: Path | None = None

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """The finished process."""
        homes = ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")
        cluster = ("--kubeconfig", self.kubeconfig or self.directory / "none")
        return subprocess.run(
            [programs.helm(), *map(str, cluster), *map(str, words)],
            capture_output=True,
            text=True,
            timeout=_SECONDS_MAX,
            check=False,
            env={**os.environ, **dict.fromkeys(homes, str(self.directory / "helm"))},
        )

    def __call__(self, *words: str | Path) -> str:
        """The output; Helm must succeed."""
        done = self.run(*words)
        assert done.returncode == 0, f"helm {' '.join(map(str, words))}: {done.stderr}{done.stdout}"
        return done.stdout

    def template(
        self,
        values: Raw,
        *options: str,
        namespace: str = "dryrack-system",
        release: str = "dryrack",
    ) -> subprocess.CompletedProcess[str]:
        """`helm template` with these values."""
        file = self.directory / "values.yaml"
        file.write_text(yaml.safe_dump(values))
        words = ("template", release, CHART, "-n", namespace, "-f", file)
        return self.run(*words, "--kube-version", "1.36.0", *options)

    def objects(self, values: Raw, **where: str) -> list[Raw]:
        """The objects that `helm template` prints, without hooks."""
        done = self.template(values, "--no-hooks", **where)
        assert done.returncode == 0, done.stderr
        return load(done.stdout)


def load(text: str) -> list[Raw]:
    """The objects in YAML documents, in the order of their names."""
    found: list[dict[str, Any]] = [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]
    return sorted(found, key=lambda each: (each["kind"], str(each["metadata"])))

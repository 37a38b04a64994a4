"""The Go modules of `make real` use the same versions, so that Go compiles each package once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.programs import modules
from tests.realcluster.releases import MODULES, RELEASES

from dryrack.kinds.releases import NEWEST

if TYPE_CHECKING:
    from pathlib import Path

KUBERNETES = RELEASES[NEWEST.value].module
TOOLS = [MODULES / name for name in ("containerd", "etcd", "helm", "kwok")]
# What cannot have the version that Kubernetes uses, by module and path.
DIFFERENT = {
    # containerd 2.3 uses names that later versions have changed.
    ("containerd", "k8s.io/cri-api"),
    ("containerd", "k8s.io/cri-streaming"),
    # containerd 2.3 needs a later version, on Windows only.
    ("containerd", "github.com/Microsoft/go-winio"),
    # KWOK needs a later version. Few packages import it.
    ("kwok", "github.com/go-errors/errors"),
}
_REQUIRED = re.compile(r"^(?:require |\t)(\S+) (v\S+)", re.MULTILINE)
_REPLACED = re.compile(r"^\t(\S+) => \1 (v\S+)$", re.MULTILINE)


def _versions(module: Path) -> dict[str, str]:
    text = (module / "go.mod").read_text()
    return {**dict(_REQUIRED.findall(text)), **dict(_REPLACED.findall(text))}


@pytest.mark.parametrize("module", [*TOOLS, *modules()], ids=str)
def test_versions_are_those_of_kubernetes(module: Path) -> None:
    """Go compiles a package of another version again, and all packages that import it."""
    kubernetes = _versions(KUBERNETES)
    own = _versions(module)
    if own.get("k8s.io/api", kubernetes["k8s.io/api"]) != kubernetes["k8s.io/api"]:
        pytest.skip("the module has the code of another release")
    different = {name for name in own.keys() & kubernetes.keys() if own[name] != kubernetes[name]}

    assert {name for name in different if (module.name, name) not in DIFFERENT} == set()

"""Missing requirements of a node are reported before anything is started."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.realcluster import requirements
from tests.realcluster.cluster import Parts, start
from tests.realcluster.controlplane import Options
from tests.realcluster.requirements import NodeRequirementError

if TYPE_CHECKING:
    from pathlib import Path


def test_who_is_not_root_is_told_what_a_node_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root, and the packages that are missing, by name; and nothing was begun."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(requirements, "ROOTS_PATH", str(tmp_path))

    with pytest.raises(NodeRequirementError) as told:
        start(tmp_path / "bed", Options(), Parts(node=True))

    assert str(told.value).startswith("a node needs root (cgroups, mounts, network namespaces)")
    assert "and the packages runc busybox-static iproute2 iptables" in str(told.value)
    assert not (tmp_path / "bed").exists()


def test_programs_of_root_are_found_by_everybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's PATH often lacks them; that is no reason to ask for a package that is there."""
    (tmp_path / "iptables").write_text("")
    (tmp_path / "iptables").chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(requirements, "ROOTS_PATH", str(tmp_path))

    with pytest.raises(NodeRequirementError) as told:
        requirements.ensure()

    assert "and the packages runc busybox-static iproute2" in str(told.value)
    assert "iptables" not in str(told.value)

"""
The kinds that the API server serves are those of the release.

Recorded documents are compared on every run. A real control plane of the release (`make real`,
`make real RELEASE=1.36`) is asked for the same documents, and for all of `kubectl explain`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.apiserver.over_https import cluster
from tests.apiserver.replay import EmbeddedServer, embedded_server
from tests.apiserver.served_documents import read_real, recording_of
from tests.parity.server import Server

from dryrack.apiserver.runtime_config import RuntimeConfig
from dryrack.kinds.releases import Release

if TYPE_CHECKING:
    from tests.realcluster.controlplane import ControlPlane

# Metrics come from an add-on; the embedded server has them itself.
_OWN_GROUP = "metrics.k8s.io"
# The releases of which `served-*.json` is recorded.
_RECORDED = (Release.V1_37,)


def _ours(release: Release) -> dict[str, Any]:
    server: EmbeddedServer = embedded_server(RuntimeConfig(), release)
    try:
        return read_real(cast("Server", server))
    finally:
        server.close()


@pytest.mark.parametrize("release", _RECORDED, ids=lambda release: release.value)
def test_discovery_is_that_of_a_recorded_server(release: Release) -> None:
    """Version, groups, and resources are those of a real server with default options."""
    assert _differing(json.loads(recording_of(release).read_text()), _ours(release)) == []


@pytest.mark.real
def test_discovery_is_that_of_a_real_server(real_plane: ControlPlane) -> None:
    """Version, groups, and resources are those of a real server with default options."""
    release = Release(real_plane.options.release.minor)
    theirs = read_real(Server.of(real_plane.kubeconfig))

    assert _differing(theirs, _ours(release)) == []


@pytest.mark.real
def test_kubectl_sees_the_kinds_of_a_real_server(real_plane: ControlPlane) -> None:
    """`kubectl api-resources` and `kubectl explain` of every kind say what a real server says."""
    release = real_plane.options.release.minor
    with cluster("kubectl-sees", ("--release", release, "--no-dashboard")) as server:

        def ask(*arguments: str) -> tuple[list[str], list[str]]:
            ours = real_plane.kubectl(*arguments, kubeconfig=server.kubeconfig)
            theirs = real_plane.kubectl(*arguments)
            assert (ours.returncode, theirs.returncode) == (0, 0), (ours.stderr, theirs.stderr)
            return ours.stdout.splitlines(), theirs.stdout.splitlines()

        version, expected = ask("version")
        assert [line.partition("+")[0] for line in version] == expected
        ours, theirs = ask("api-resources", "--no-headers")
        kinds = [line.split() for line in ours if _OWN_GROUP not in line]
        assert kinds == [line.split() for line in theirs]
        for plural, *_, api_version, _, _ in kinds:
            told = ask("explain", plural, f"--api-version={api_version}", "--recursive")
            explained, expected = map(_without_prose, told)
            assert explained == expected, f"{api_version} {plural}"


def _without_prose(lines: list[str]) -> list[str]:
    """Return the lines of `kubectl explain` without the description of the kind."""
    start = lines.index("DESCRIPTION:")
    end = lines.index("FIELDS:") if "FIELDS:" in lines else len(lines)
    return [*lines[:start], *lines[end:]]


def _differing(theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """Return the paths whose documents differ."""
    paths = sorted({*theirs, *ours})
    return [path for path in paths if _plain(theirs.get(path)) != _plain(ours.get(path))]


def _plain(document: Any) -> Any:
    """Return a document without the address of its server."""
    if isinstance(document, dict):
        return {k: v for k, v in document.items() if k != "serverAddressByClientCIDRs"}
    return document

"""
Read what a server says that it serves: its version, discovery, and `kubectl api-resources`.

    python -m tests.apiserver.served_documents 1.37

This records the documents of a real server of the release in `served-1.37.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.parity.server import Server
from tests.realcluster.controlplane import Options
from tests.realcluster.guard import throw_away
from tests.realcluster.releases import RELEASES

from dryrack.kinds.releases import Release

if TYPE_CHECKING:
    from collections.abc import Callable

# Metrics come from an add-on; the embedded server has them itself.
_OWN_GROUP = "metrics.k8s.io"
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
# The part of a version that a release decides.
_VERSION = (
    *("major", "minor", "emulationMajor", "emulationMinor"),
    *("minCompatibilityMajor", "minCompatibilityMinor"),
)

Documents = dict[str, Any]


def recording_of(release: Release) -> Path:
    return Path(__file__).with_name(f"served-{release.value}.json")


def read_documents(get: Callable[[str, str], Any]) -> Documents:
    """Return the documents by path; `get` answers a path in a media type."""
    version = get("/version", "application/json")
    documents: Documents = {
        "/version": {
            **{key: version[key] for key in _VERSION},
            "gitVersion": version["gitVersion"].partition("+")[0],
        }
    }
    groups = get("/apis", "application/json")
    groups["groups"] = [each for each in groups["groups"] if _is_builtin(each["name"])]
    documents["/apis"] = groups
    paths = ["/api/v1"]
    for group in groups["groups"]:
        paths += [f"/apis/{each['groupVersion']}" for each in group["versions"]]
    for path in paths:
        documents[path] = get(path, "application/json")
    for path in ("/api", "/apis"):
        aggregated = get(path, _AGGREGATED)
        documents[f"{path} (aggregated)"] = [
            each for each in aggregated["items"] if _is_builtin(each["metadata"].get("name", ""))
        ]
    return documents


def _is_builtin(group: str) -> bool:
    """Return False for a group of dryrack, and of a custom resource that another test has left."""
    return group != _OWN_GROUP and not group.endswith(".example.com")


def read_real(server: Server) -> Documents:
    """Return the documents of a server that is asked by HTTP."""

    def get(path: str, accept: str) -> Any:
        status, _, body = server.send("GET", path, headers={"Accept": accept}, content=b"")
        assert status == 200, f"{path}: {status}"
        return json.loads(body)

    return read_documents(get)


def main(release: Release) -> int:
    options = Options(release=RELEASES[release.value], with_scheduler=False)
    with throw_away(options) as bed:
        documents = read_real(Server.of(bed.plane.kubeconfig))
    text = json.dumps(documents, indent=1, sort_keys=True)
    recording_of(release).write_text(f"{text}\n")
    sys.stderr.write(f"{len(documents)} documents\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Release(sys.argv[1])))

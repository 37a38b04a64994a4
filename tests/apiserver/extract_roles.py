"""
The roles and bindings that a real server makes for itself, as data for ours.

    KUBECONFIG=… python -m tests.apiserver.extract_roles KUBECTL 1.37

Run against a fresh test bed of the release. What differs from cluster to cluster (uids,
times, revisions) is left out, and so are the rules of aggregated roles, which follow from others.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

_DIRECTORY = Path(__file__).parents[2] / "src/dryrack/apiserver/authorization"
_KINDS = "clusterroles,clusterrolebindings,roles,rolebindings"
_VOLATILE = ("creationTimestamp", "resourceVersion", "uid", "managedFields")


def main() -> None:
    command = [sys.argv[1], "get", _KINDS, "-A", "-o", "json"]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    roles = [_plain(each) for each in found["items"]]
    content = json.dumps(roles, separators=(",", ":"), sort_keys=True).encode()
    target = _DIRECTORY / f"roles-{sys.argv[2]}.json.gz"
    target.write_bytes(gzip.compress(content, mtime=0))


def _plain(obj: Raw) -> Raw:
    kept = {key: value for key, value in obj.items() if value is not None}
    meta = {key: value for key, value in obj["metadata"].items() if key not in _VOLATILE}
    if "aggregationRule" in kept:
        kept.pop("rules", None)
    return {**kept, "metadata": meta}


if __name__ == "__main__":
    main()

"""
Takes the structure of the served kinds from a real API server.

    python -m tests.apiserver.extract_schemas

asks a real server for its OpenAPI documents and writes the definitions, without a word of their
prose, to the package. The file is data: it is written by this script and never edited.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

from tests.parity.server import Server
from tests.realcluster.controlplane import Options
from tests.realcluster.guard import throw_away

TARGET = Path(__file__).parents[2] / "src/dryrack/kinds/schemas/definitions.json.gz"

_DOCUMENTS = (
    "api/v1",
    "apis/admissionregistration.k8s.io/v1",
    "apis/apiextensions.k8s.io/v1",
    "apis/apiregistration.k8s.io/v1",
    "apis/apps/v1",
    "apis/authentication.k8s.io/v1",
    "apis/authorization.k8s.io/v1",
    "apis/autoscaling/v1",
    "apis/autoscaling/v2",
    "apis/batch/v1",
    "apis/certificates.k8s.io/v1",
    "apis/coordination.k8s.io/v1",
    "apis/discovery.k8s.io/v1",
    "apis/events.k8s.io/v1",
    "apis/flowcontrol.apiserver.k8s.io/v1",
    "apis/networking.k8s.io/v1",
    "apis/node.k8s.io/v1",
    "apis/policy/v1",
    "apis/rbac.authorization.k8s.io/v1",
    "apis/resource.k8s.io/v1",
    "apis/resource.k8s.io/v1beta1",
    "apis/resource.k8s.io/v1beta2",
    "apis/scheduling.k8s.io/v1",
    "apis/scheduling.k8s.io/v1alpha2",
    "apis/storage.k8s.io/v1",
)
_OPTIONS = Options(
    runtime_config={
        "resource.k8s.io/v1beta1": True,
        "resource.k8s.io/v1beta2": True,
        "scheduling.k8s.io/v1alpha2": True,
    },
    feature_gates={"DRADeviceTaintRules": True, "GenericWorkload": True},
    with_scheduler=False,
)
_PROSE = "description"
_KINDS = "x-kubernetes-group-version-kind"


def bare(value: Any, *, is_named: bool = False) -> Any:
    """The value without descriptions; below `properties` the keys are names, not keywords."""
    if isinstance(value, list):
        return [bare(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {
        key: bare(inner, is_named=key == "properties" and not is_named)
        for key, inner in sorted(value.items())
        if is_named or key != _PROSE
    }


def merged(name: str, known: Any, seen: Any) -> Any:
    """A definition is the same in each document, but for the groups that use a shared one."""
    kinds = [*(known or {}).get(_KINDS, ()), *seen.get(_KINDS, ())]
    assert known is None or {**known, _KINDS: ()} == {**seen, _KINDS: ()}, name
    distinct = {json.dumps(kind, sort_keys=True): kind for kind in kinds}
    return {**seen, _KINDS: [distinct[key] for key in sorted(distinct)]} if kinds else seen


def definitions(server: Server) -> dict[str, Any]:
    """All definitions of all documents by name."""
    found: dict[str, Any] = {}
    for document in _DOCUMENTS:
        status, _, body = server.send("GET", f"/openapi/v3/{document}", headers={}, content=b"")
        assert status == 200, f"{document}: {status}"
        for name, schema in json.loads(body)["components"]["schemas"].items():
            found[name] = merged(name, found.get(name), bare(schema))
    return dict(sorted(found.items()))


def main() -> int:
    with throw_away(_OPTIONS) as bed:
        found = definitions(Server.of(bed.plane.kubeconfig))
    content = json.dumps(found, separators=(",", ":")).encode()
    # No time and no name in the header: the same server gives the same bytes.
    TARGET.write_bytes(gzip.compress(content, compresslevel=9, mtime=0))
    sys.stderr.write(f"{len(found)} definitions, {TARGET.stat().st_size} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

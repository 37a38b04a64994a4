"""
Takes the structure of the served kinds from a real API server.

    python -m tests.apiserver.extract_schemas 1.37

This asks a real server of the release for its OpenAPI documents and writes the definitions,
without a word of their prose, to the package. The file is data: it is written by this script and
never edited. Run `extract_structs` afterwards.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.parity.server import Server
from tests.realcluster.controlplane import Options
from tests.realcluster.guard import throw_away
from tests.realcluster.releases import RELEASES

from dryrack.kinds.registry import builtin_kinds
from dryrack.kinds.releases import Release, gates_with_needs

if TYPE_CHECKING:
    from dryrack.kinds.registry import Kind

SCHEMAS = Path(__file__).parents[2] / "src/dryrack/kinds/schemas"

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


def everything_served(release: Release) -> Options:
    """Return the options of a real server that serves all kinds in all versions that we serve."""
    # 1.36 serves native gangs only with their gate, which the rows do not name.
    gates = {"GenericWorkload", *(kind.gate for kind in builtin_kinds(release) if kind.gate)}
    versions = {f"{each.group}/{each.version}" for each in builtin_kinds(release) if each.group}
    return Options(
        release=RELEASES[release.value],
        runtime_config=dict.fromkeys(sorted(versions), True),
        feature_gates=gates_with_needs(gates, release),
        with_scheduler=False,
    )


def definitions(server: Server, release: Release) -> dict[str, Any]:
    """All definitions of all documents by name."""
    found: dict[str, Any] = {}
    for document in sorted({_address(each) for each in builtin_kinds(release)}):
        status, _, body = server.send("GET", f"/openapi/v3/{document}", headers={}, content=b"")
        assert status == 200, f"{document}: {status}"
        for name, schema in json.loads(body)["components"]["schemas"].items():
            found[name] = merged(name, found.get(name), bare(schema))
    return dict(sorted(found.items()))


def _address(kind: Kind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def main(release: Release) -> int:
    with throw_away(everything_served(release)) as bed:
        found = definitions(Server.of(bed.plane.kubeconfig), release)
    content = json.dumps(found, separators=(",", ":")).encode()
    target = SCHEMAS / f"definitions-{release.value}.json.gz"
    # No time and no name in the header: the same server gives the same bytes.
    target.write_bytes(gzip.compress(content, compresslevel=9, mtime=0))
    sys.stderr.write(f"{len(found)} definitions, {target.stat().st_size} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Release(sys.argv[1])))

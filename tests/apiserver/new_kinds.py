"""
Record what a real server answers about kinds that are new in Kubernetes 1.37.

    python -m tests.apiserver.new_kinds

The requests are in `new_kinds.yaml`, in the order in which they are sent; the answers of
Kubernetes 1.37 are in `new_kinds.json`. Without uids, times and revisions, two servers give the
same answers.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from tests.apiserver.extract_schemas import everything_served
from tests.parity.server import Server
from tests.realcluster.guard import throw_away

from dryrack.kinds.releases import Release

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    class Asked(Protocol):
        """A server that is asked."""

        def send(
            self, method: str, path: str, *, headers: Mapping[str, str], content: bytes
        ) -> tuple[int, dict[str, str], bytes]: ...


RELEASE = Release.V1_37
GATES = {
    "CompositePodGroup": True,
    "DRAWorkloadResourceClaims": True,
    "GenericWorkload": True,
    "PodGroupPreemptionPolicy": True,
    "TopologyAwareWorkloadScheduling": True,
}
REQUESTS: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("new_kinds.yaml").read_text()
)
ANSWERS = Path(__file__).with_name("new_kinds.json")
_VOLATILE = (
    *("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "managedFields"),
    *("lastTransitionTime", "time"),
)
_GROUP = "/apis/scheduling.k8s.io"


def answers_of(server: Asked) -> list[Any]:
    """Return the code and the body of every answer."""
    answers = []
    for each in REQUESTS:
        method, place = each["request"].split()
        version, _, rest = place.partition("/")
        path = f"{_GROUP}/{version}/namespaces/default/{rest}" if version else place
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        code, _, body = server.send(
            method,
            path,
            headers={"Content-Type": kind},
            content=json.dumps(each["body"]).encode() if "body" in each else b"",
        )
        answers.append([code, _stable(json.loads(body))])
    return answers


def _stable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stable(inner) for key, inner in value.items() if key not in _VOLATILE}
    return [_stable(inner) for inner in value] if isinstance(value, list) else value


def main() -> int:
    options = replace(everything_served(RELEASE), feature_gates=GATES)
    with throw_away(options) as bed:
        answers = answers_of(Server.of(bed.plane.kubeconfig))
    lines = (json.dumps(each, separators=(",", ":"), sort_keys=True) for each in answers)
    ANSWERS.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    sys.stderr.write(f"{len(answers)} answers\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

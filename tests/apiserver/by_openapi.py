"""
Requests that the server's own OpenAPI documents allow, made up by schemathesis.

For every operation of every document some requests, right and wrong ones, are sent to a server
without sockets. By hand, as many as one likes:

    python -m tests.apiserver.by_openapi --examples 50
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.core.result import Ok
from tests.apiserver.barrage import NAMESPACE, Answered, Asked, Target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schemathesis import APIOperation, Case

DEFINITION = {
    "metadata": {"name": "racks.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "racks", "kind": "Rack"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.units",
                        "statusReplicasPath": ".status.units",
                    },
                },
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["units"],
                                "properties": {
                                    "units": {"type": "integer", "minimum": 0},
                                    "size": {"x-kubernetes-int-or-string": True},
                                    "rest": {
                                        "type": "object",
                                        "x-kubernetes-preserve-unknown-fields": True,
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"units": {"type": "integer"}},
                            },
                        },
                    }
                },
            }
        ],
    },
}


@dataclass(slots=True)
class Asking:
    """Sends cases to a server, and keeps what was not answered as it should be."""

    target: Target
    requests: int = 0
    wrong: list[Answered] = field(default_factory=list)

    def documents(self) -> dict[str, Any]:
        """Return all documents by address; one of them is of a custom kind."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        self._send(Asked("POST", path, {}, json.dumps(DEFINITION).encode()))
        addresses = sorted(self._json("/openapi/v3")["paths"])
        return {address: self._json(f"/openapi/v3/{address}") for address in addresses}

    def ask(self, operation: APIOperation[Any, Any, Any, Any], *, examples: int, of: int) -> None:
        """Some requests of an operation; the same number makes the same ones."""

        @seed(of)
        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        @given(operation.as_strategy())
        def try_all(case: Case[Any]) -> None:
            self.requests += 1
            answered = self._send(_asked(_placed(case) if self.requests % 2 else case))
            if not answered.is_well:
                self.wrong.append(answered)

        try_all()

    def _send(self, asked: Asked) -> Answered:
        return self.target.send(asked)

    def _json(self, path: str) -> Any:
        return json.loads(self._send(Asked("GET", path, {}, b"")).body)


def operations(document: Any) -> Iterator[APIOperation[Any, Any, Any, Any]]:
    for found in schemathesis.openapi.from_dict(document).get_all_operations():
        assert isinstance(found, Ok), f"an operation that cannot be read: {found}"
        yield found.ok()


def _placed(case: Case[Any]) -> Case[Any]:
    """About an object that may be there: what is made up would never meet another."""
    given = {"namespace": NAMESPACE, "name": "x"}
    for name in case.path_parameters or {}:
        case.path_parameters[name] = given.get(name, "x")
    body: Any = case.body
    if isinstance(body, dict) and case.method != "DELETE":
        case.body = {**body, "metadata": {"name": "x"}}
    return case


def _asked(case: Case[Any]) -> Asked:
    sent = case.as_transport_kwargs(base_url="http://server")
    headers = {str(name): str(value) for name, value in dict(sent["headers"]).items()}
    content = sent.get("data") or b""
    if "json" in sent:
        content = json.dumps(sent["json"]).encode()
    if case.media_type:
        headers["Content-Type"] = case.media_type
    path = str(sent["url"]).removeprefix("http://server")
    query = "&".join(f"{name}={value}" for name, value in (sent.get("params") or {}).items())
    # Nobody waits for the end of a watch that has none.
    where = f"{path}?{query}&timeoutSeconds=1"
    body = content.encode() if isinstance(content, str) else bytes(content)
    return Asked(str(sent["method"]), where, headers, body)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with Target(requests_max=10**9) as target:
        asking = Asking(target)
        for address, document in asking.documents().items():
            for operation in operations(document):
                asking.ask(operation, examples=options.examples, of=options.seed)
            sys.stdout.write(f"{address}: {asking.requests} requests so far\n")
            sys.stdout.flush()
        for answered in asking.wrong:
            sys.stdout.write(f"{answered}\n")
        return 1 if asking.wrong else 0


if __name__ == "__main__":
    sys.exit(main())

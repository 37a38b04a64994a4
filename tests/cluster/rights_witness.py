"""What an engine asks of a server, in the words that rights are given in."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

from tests.client.planes import refusal

from dryrack.client.endpoints import Endpoint
from dryrack.client.transport import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dryrack.client.transport import Response, Transport, User
    from dryrack.kinds.raw import Raw


_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True, order=True)
class Deed:
    """What was asked for: the words of a rule, and where; "" for the whole cluster."""

    verb: str
    group: str
    resource: str
    namespace: str = ""


@dataclass(slots=True)
class Witness:
    """A transport that keeps what was done, and what was forbidden."""

    to: Transport
    refuse: Callable[[Request], Response | None] = lambda _: None
    """What is refused before anybody is asked."""
    done: set[Deed] = field(default_factory=set)
    names: set[tuple[str, str]] = field(default_factory=set)
    """The resources and names of single objects, for rules with `resourceNames`."""
    forbidden: list[str] = field(default_factory=list)

    async def send(self, request: Request) -> Response:
        response = self.refuse(request) or await self.to.send(request)
        if response.status == 403:
            self.forbidden.append(f"{request.method} {request.path}?{request.query}")
        deed = deed_of(request)
        if deed is not None:
            self.done.add(deed)
            parts = unquote(request.path).split("/")
            parts += re.findall(r"metadata\.name=([^&,]+)", unquote(request.query))
            self.names |= {(deed.resource, each) for each in parts}
        return response


def refuse_initial_events(request: Request) -> Response | None:
    """Refuse watches that begin with the existing objects, as a server without them does."""
    refuses = "sendInitialEvents" in request.query
    return refusal(400, "BadRequest") if refuses else None


def granted_names(manifests: Iterable[Raw]) -> set[tuple[str, str]]:
    """The names in rules that are about single objects, with their resource."""
    return {
        (resource, name)
        for each in manifests
        for rule in each.get("rules", ())
        for resource in rule["resources"]
        for name in rule.get("resourceNames", ())
    }


def workloads_of_1_35() -> Raw:
    """A definition by which a newer server has the Workloads of Kubernetes 1.35."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True}
    approval = {"api-approved.kubernetes.io": "unapproved, for a test"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "workloads.scheduling.k8s.io", "annotations": approval},
        "spec": {
            "group": "scheduling.k8s.io",
            "names": {"kind": "Workload", "plural": "workloads"},
            "scope": "Namespaced",
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def deed_of(request: Request) -> Deed | None:
    """None for documents of discovery, which are everybody's."""
    parts = request.path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace = rest[1]
        rest = rest[2:]
    if not rest:
        return None
    verb = _VERBS.get(request.method) or ("get" if len(rest) > 1 else "list")
    if "watch=true" in request.query:
        verb = "watch"
    resource = f"{rest[0]}/{rest[2]}" if len(rest) > 2 else rest[0]
    return Deed(verb, group, resource, namespace)


class As:
    """The way of somebody else to a server in process."""

    def __init__(self, to: Transport, user: User) -> None:
        self._to = to
        self._user = user

    async def send(self, request: Request) -> Response:
        return await self._to.send(
            Request(
                request.method,
                request.path,
                request.query,
                request.headers,
                request.body,
                self._user,
            )
        )


def granted(manifests: Iterable[Raw]) -> Iterator[Deed]:
    """Every single thing that the rules of manifests allow."""
    for each in manifests:
        for rule in each.get("rules", ()):
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    place = each["metadata"].get("namespace", "")
                    yield Deed(verb, rule["apiGroups"][0], resource, place)


def endpoint_of(obj: Raw) -> Endpoint:
    group, _, version = obj["apiVersion"].rpartition("/")
    plural = f"{obj['kind'].lower()}s"
    return Endpoint(group, version, plural, obj["kind"], "namespace" in obj["metadata"])

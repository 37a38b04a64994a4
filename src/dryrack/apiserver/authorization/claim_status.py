"""
Granular permissions on the status of ResourceClaims, as in 1.36.

Permission to write `resourceclaims/status` is not enough. A change of the allocation or the
reservations needs the verb of the request on `resourceclaims/binding` in the whole cluster, which
the scheduler has. A change of the status of a driver's devices needs the verb with a prefix on
`resourceclaims/driver`, by the name of the driver: `associated-node:` is enough for an account
whose token is bound to the node of the allocation, all others need `arbitrary-node:`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dryrack.apiserver.answer.status import forbidden
from dryrack.apiserver.authorization import Authorization
from dryrack.apiserver.authorization.attributes import Attributes, denial
from dryrack.apiserver.registry import Resource
from dryrack.apiserver.strategy import Write
from dryrack.client.transport import User
from dryrack.kinds.paths import get, status_of
from dryrack.kinds.raw import Raw
from dryrack.kinds.validation import FieldProblem
from dryrack.kinds.validation.problems import forbidden as forbidden_field

_ACCOUNT = "system:serviceaccount:"
_NODE_NAME = "authentication.kubernetes.io/node-name"
_BINDING = ("allocation", "reservedFor")
_DEVICE = ("driver", "pool", "device", "shareID")


def claim_status_problems(
    authorization: Authorization,
    resource: Resource,
    new: Raw,
    *,
    old: Raw,
    write: Write,
    verb: str,
) -> Sequence[FieldProblem]:
    """Return problems for the parts of a status that the writer changed without permission."""
    check = _StatusCheck(authorization, resource, write, verb)
    after = status_of(new)
    before = status_of(old)
    return (*check.check_binding(after, before), *check.check_devices(after, before))


@dataclass(frozen=True, slots=True)
class _StatusCheck:
    authorization: Authorization
    resource: Resource
    write: Write
    verb: str

    def check_binding(self, after: Raw, before: Raw) -> Iterator[FieldProblem]:
        if all((after.get(key) or None) == (before.get(key) or None) for key in _BINDING):
            return
        refusal = self._refusal(self._attributes(self.verb, "binding"))
        if refusal:
            yield forbidden_field(
                "status.allocation",
                "changing status.allocation or status.reservedFor requires "
                f'resource="resourceclaims/binding", verb="{self.verb}" permission: {refusal}',
            )

    def check_devices(self, after: Raw, before: Raw) -> Iterator[FieldProblem]:
        if not after.get("allocation"):
            # The status of devices is removed with the allocation.
            return
        prefixes = ["arbitrary-node"]
        if _is_bound_to(self.write.user, _node_of(after["allocation"])):
            prefixes.insert(0, "associated-node")
        verbs = [f"{prefix}:{self.verb}" for prefix in prefixes]
        for driver in _changed_drivers(after, before):
            asked = [self._attributes(verb, "driver", driver) for verb in verbs]
            refusals = [self._refusal(each) for each in asked]
            if all(refusals):
                yield forbidden_field(
                    "status.devices",
                    'changing status.devices requires resource="resourceclaims/driver", '
                    f'verb="[{" ".join(verbs)}]" permission: {refusals[0]}',
                )

    def _attributes(self, verb: str, subresource: str, name: str = "") -> Attributes:
        """Return a question about a driver in the namespace of the claim, or about the cluster."""
        return Attributes(
            self.write.user,
            verb,
            group=self.resource.group,
            resource=self.resource.plural,
            subresource=subresource,
            namespace=self.write.namespace if name else "",
            name=name,
        )

    def _refusal(self, asked: Attributes) -> str:
        """Return the text of the refusal, or "" if the request is allowed."""
        if self.authorization.allows(asked):
            return ""
        return forbidden(self.resource.as_resource, asked.name, denial(asked)).status.message


def _changed_drivers(after: Raw, before: Raw) -> list[str]:
    """Return the drivers whose devices have a changed status."""
    new = {_device(each): each for each in get(after, "devices", ())}
    old = {_device(each): each for each in get(before, "devices", ())}
    changed = [device for device in {**old, **new} if new.get(device) != old.get(device)]
    return sorted({device[0] for device in changed})


def _device(status: Raw) -> tuple[str, ...]:
    return tuple(status.get(key) or "" for key in _DEVICE)


def _node_of(allocation: Raw) -> str:
    """Return the only node that an allocation selects, or ""."""
    terms = get(allocation, "nodeSelector.nodeSelectorTerms", [])
    if len(terms) != 1 or terms[0].get("matchExpressions"):
        return ""
    match terms[0].get("matchFields"):
        case [{"key": "metadata.name", "operator": "In", "values": [name]}]:
            return str(name)
        case _:
            return ""


def _is_bound_to(user: User, node: str) -> bool:
    """Return whether the token of an account is bound to a node."""
    return bool(node) and user.name.startswith(_ACCOUNT) and user.extra.get(_NODE_NAME) == (node,)

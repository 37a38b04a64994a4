"""
Granular rights on the status of ResourceClaims, as 1.36 has them.

The right to write `resourceclaims/status` is not enough there. Who changes the allocation or the
reservations needs the verb of the request on `resourceclaims/binding` in the whole cluster: that
is the scheduler's. Who changes what is told of a driver's devices needs the verb with a prefix on
`resourceclaims/driver`, by the name of the driver: `associated-node:` is enough for an account
whose token is bound to the node of the allocation, `arbitrary-node:` is for everybody else.
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
    """The parts of a claim's status that its writer has changed and may not change."""
    check = _Check(authorization, resource, write, verb)
    after = status_of(new)
    before = status_of(old)
    return (*check.binding(after, before), *check.devices(after, before))


@dataclass(frozen=True, slots=True)
class _Check:
    authorization: Authorization
    resource: Resource
    write: Write
    verb: str

    def binding(self, after: Raw, before: Raw) -> Iterator[FieldProblem]:
        if all((after.get(key) or None) == (before.get(key) or None) for key in _BINDING):
            return
        refusal = self._refusal(self._asked(self.verb, "binding"))
        if refusal:
            yield forbidden_field(
                "status.allocation",
                "changing status.allocation or status.reservedFor requires "
                f'resource="resourceclaims/binding", verb="{self.verb}" permission: {refusal}',
            )

    def devices(self, after: Raw, before: Raw) -> Iterator[FieldProblem]:
        if not after.get("allocation"):
            # What is told of devices goes with the allocation.
            return
        prefixes = ["arbitrary-node"]
        if _is_bound_to(self.write.user, _node_of(after["allocation"])):
            prefixes.insert(0, "associated-node")
        verbs = [f"{prefix}:{self.verb}" for prefix in prefixes]
        for driver in _changed_drivers(after, before):
            asked = [self._asked(verb, "driver", driver) for verb in verbs]
            refusals = [self._refusal(each) for each in asked]
            if all(refusals):
                yield forbidden_field(
                    "status.devices",
                    'changing status.devices requires resource="resourceclaims/driver", '
                    f'verb="[{" ".join(verbs)}]" permission: {refusals[0]}',
                )

    def _asked(self, verb: str, subresource: str, name: str = "") -> Attributes:
        """About a driver by its name in the namespace of the claim; or about the whole cluster."""
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
        """Why not, as a refused request would hear it; "" if it is allowed."""
        if self.authorization.allows(asked):
            return ""
        return forbidden(self.resource.as_resource, asked.name, denial(asked)).status.message


def _changed_drivers(after: Raw, before: Raw) -> list[str]:
    """Those of whose devices something else is told than before."""
    told = {_device(each): each for each in get(after, "devices", ())}
    known = {_device(each): each for each in get(before, "devices", ())}
    changed = [device for device in {**known, **told} if told.get(device) != known.get(device)]
    return sorted({device[0] for device in changed})


def _device(told: Raw) -> tuple[str, ...]:
    return tuple(told.get(key) or "" for key in _DEVICE)


def _node_of(allocation: Raw) -> str:
    """The one node that an allocation is for, if it is so for sure."""
    terms = get(allocation, "nodeSelector.nodeSelectorTerms", [])
    if len(terms) != 1 or terms[0].get("matchExpressions"):
        return ""
    match terms[0].get("matchFields"):
        case [{"key": "metadata.name", "operator": "In", "values": [name]}]:
            return str(name)
        case _:
            return ""


def _is_bound_to(user: User, node: str) -> bool:
    """Whether an account speaks from a node: its token says so."""
    return bool(node) and user.name.startswith(_ACCOUNT) and user.extra.get(_NODE_NAME) == (node,)

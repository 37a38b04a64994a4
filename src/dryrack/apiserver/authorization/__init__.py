"""
Authorization: decides which requests a user may make.

`AlwaysAllow` is the default of a cluster that listens on loopback and has one user. `Rbac`
decides by the roles and bindings in the store, and follows their changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dryrack.apiserver.authorization.attributes import Attributes, denial

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.apiserver.authorization.rbac import Policy, Rule
    from dryrack.apiserver.extension_points import Call
    from dryrack.client.transport import User
    from dryrack.store import Event, Store

__all__ = ["AlwaysAllow", "Attributes", "Authorization", "Rbac", "authorizer", "denial"]

RBAC_GROUP = "rbac.authorization.k8s.io"
_RESOURCES = ("roles", "clusterroles", "rolebindings", "clusterrolebindings")


class Authorization(Protocol):
    """Decides about requests, and answers reviews about its decisions."""

    def allows(self, asked: Attributes) -> bool: ...

    def reason(self, asked: Attributes) -> str:
        """Return the reason in the real server's reviews, or "" if they have none."""
        ...

    def rules(self, user: User, namespace: str) -> tuple[Rule, ...]: ...


class AlwaysAllow:
    """Allows every authenticated user everything."""

    def allows(self, asked: Attributes) -> bool:
        return True

    def reason(self, asked: Attributes) -> str:
        return ""

    def rules(self, user: User, namespace: str) -> tuple[Rule, ...]:
        from dryrack.apiserver.authorization.rbac import Rule

        everything = Rule(("*",), groups=("*",), resources=("*",))
        return (everything, Rule(("*",), paths=("*",)))


class Rbac:
    """Decides by stored roles and bindings; the index is built on demand after a change."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._policy: Policy | None = None
        for plural in _RESOURCES:
            store.subscribe(f"{plural}.{RBAC_GROUP}", self._forget_policy)

    def _forget_policy(self, event: Event) -> None:
        self._policy = None

    @property
    def policy(self) -> Policy:
        if self._policy is None:
            from dryrack.apiserver.authorization.rbac import Policy, Sources

            lists = [self._store.list(f"{each}.{RBAC_GROUP}", None)[0] for each in _RESOURCES]
            objects = [[stored.object for stored in stored_list] for stored_list in lists]
            self._policy = Policy.of(Sources(*objects))
        return self._policy

    def allows(self, asked: Attributes) -> bool:
        return self.policy.allows(asked)

    def reason(self, asked: Attributes) -> str:
        return self.policy.reason(asked)

    def rules(self, user: User, namespace: str) -> tuple[Rule, ...]:
        return tuple(self.policy.rules(user, namespace))


def authorizer(authorization: Authorization) -> Callable[[Call], str | None]:
    """Return a function that returns why a call is forbidden, or None if it is allowed."""

    def decide(call: Call) -> str | None:
        target = call.target
        name = target.name
        if not name and call.verb in ("list", "watch"):
            # A rule may allow the one object that the field selector names.
            name = _selected_name(call.parameter("fieldSelector"))
        asked = Attributes(
            call.request.user,
            call.verb,
            group=target.resource.group,
            resource=target.resource.plural,
            subresource=target.subresource,
            namespace=target.namespace,
            name=name,
        )
        return None if authorization.allows(asked) else denial(asked)

    return decide


def _selected_name(field_selector: str) -> str:
    if not field_selector:
        return ""
    from dryrack.apiserver.verbs import field_selectors
    from dryrack.apiserver.verbs.label_selectors import SelectorError

    try:
        name = field_selectors.parse(field_selector).exact("metadata.name") or ""
    except SelectorError:
        return ""
    is_segment = name not in (".", "..") and not set("/%") & set(name)
    return name if is_segment else ""

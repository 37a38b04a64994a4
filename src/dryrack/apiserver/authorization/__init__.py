"""
Who may do what.

`AlwaysAllow` is the default of a cluster that listens on loopback and knows one user. `Rbac`
decides by the roles and bindings in the store, and follows them as they change.
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
    """Decides, and tells what it would decide."""

    def allows(self, asked: Attributes) -> bool: ...

    def reason(self, asked: Attributes) -> str:
        """Why, in the words of the real server's reviews; "" where it says nothing."""
        ...

    def rules(self, user: User, namespace: str) -> tuple[Rule, ...]: ...


class AlwaysAllow:
    """Everybody who is known may do everything."""

    def allows(self, asked: Attributes) -> bool:
        return True

    def reason(self, asked: Attributes) -> str:
        return ""

    def rules(self, user: User, namespace: str) -> tuple[Rule, ...]:
        from dryrack.apiserver.authorization.rbac import Rule

        everything = Rule(("*",), groups=("*",), resources=("*",))
        return (everything, Rule(("*",), paths=("*",)))


class Rbac:
    """By what is stored. The index is made when it is asked for, and again after a change."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._policy: Policy | None = None
        for plural in _RESOURCES:
            store.subscribe(f"{plural}.{RBAC_GROUP}", self._changed)

    def _changed(self, event: Event) -> None:
        self._policy = None

    @property
    def policy(self) -> Policy:
        if self._policy is None:
            from dryrack.apiserver.authorization.rbac import Policy, Sources

            self._policy = Policy.of(Sources(*(self._objects(each) for each in _RESOURCES)))
        return self._policy

    def _objects(self, plural: str) -> list[dict[str, object]]:
        return [each.object for each in self._store.list(f"{plural}.{RBAC_GROUP}", None)[0]]

    def allows(self, asked: Attributes) -> bool:
        return self.policy.allows(asked)

    def reason(self, asked: Attributes) -> str:
        return self.policy.reason(asked)

    def rules(self, user: User, namespace: str) -> tuple[Rule, ...]:
        return tuple(self.policy.rules(user, namespace))


def authorizer(authorization: Authorization) -> Callable[[Call], str | None]:
    """As the pipeline asks: why a call is not allowed, or None."""

    def decide(call: Call) -> str | None:
        asked = attributes_of(call)
        return None if authorization.allows(asked) else denial(asked)

    return decide


def attributes_of(call: Call) -> Attributes:
    target = call.target
    return Attributes(
        call.request.user,
        call.verb,
        group=target.resource.group,
        resource=target.resource.plural,
        subresource=target.subresource,
        namespace=target.namespace,
        name=target.name or _selected_name(call),
    )


def _selected_name(call: Call) -> str:
    """The one object that a list or a watch is about: it may be allowed by its name."""
    text = call.parameter("fieldSelector") if call.verb in ("list", "watch") else ""
    if not text:
        return ""
    from dryrack.apiserver.verbs import field_selectors
    from dryrack.apiserver.verbs.label_selectors import SelectorError

    try:
        name = field_selectors.parse(text).exact("metadata.name") or ""
    except SelectorError:
        return ""
    is_segment = name not in (".", "..") and not set("/%") & set(name)
    return name if is_segment else ""

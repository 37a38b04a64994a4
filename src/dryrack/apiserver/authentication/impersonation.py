"""
Impersonation, as `kubectl --as` does.

Each name that is taken on needs the permission to impersonate it, asked for as the real server
asks: users, groups, service accounts, uids and extras are resources of their own.
"""

from collections.abc import Callable, Iterable
from urllib.parse import unquote

from multidict import CIMultiDict

from dryrack.apiserver.answer.status import StatusError, Subject, bad_request, forbidden
from dryrack.apiserver.authorization.attributes import Attributes, denial
from dryrack.client.transport import User

Allows = Callable[[Attributes], bool]

_USER = "Impersonate-User"
_GROUP = "Impersonate-Group"
_UID = "Impersonate-Uid"
_EXTRA = "impersonate-extra-"
_ACCOUNT = "system:serviceaccount:"
_AUTHENTICATION = "authentication.k8s.io"
_AUTHENTICATED = "system:authenticated"
_UNAUTHENTICATED = "system:unauthenticated"


def impersonate(user: User, headers: CIMultiDict[str], allows: Allows) -> User:
    """Return the user that the headers name, or the authenticated user if they name none."""
    name = headers.get(_USER, "")
    groups = tuple(headers.getall(_GROUP, ()))
    uid = headers.get(_UID, "")
    found: dict[str, tuple[str, ...]] = {}
    for header, value in headers.items():
        if header.lower().startswith(_EXTRA):
            key = unquote(header[len(_EXTRA) :].lower())
            found[key] = (*found.get(key, ()), value)
    extra = found
    if not name:
        if groups or uid or extra:
            raise bad_request("requested impersonation without impersonating a user")
        return user
    for each in _permissions_needed(user, User(name, groups, uid, extra)):
        if not allows(each):
            raise _refusal(each)
    return User(name, _with_implied_groups(name, groups), uid, extra)


def _permissions_needed(user: User, wanted: User) -> Iterable[Attributes]:
    def to(resource: str, name: str, **more: str) -> Attributes:
        return Attributes(user, "impersonate", resource=resource, name=name, **more)

    account = wanted.name.removeprefix(_ACCOUNT).split(":")
    if wanted.name.startswith(_ACCOUNT) and len(account) == 2:
        yield to("serviceaccounts", account[1], namespace=account[0])
    else:
        yield to("users", wanted.name)
    for group in wanted.groups:
        yield to("groups", group)
    if wanted.uid:
        yield to("uids", wanted.uid, group=_AUTHENTICATION)
    for key, values in wanted.extra.items():
        for value in values:
            yield to("userextras", value, group=_AUTHENTICATION, subresource=key)


def _refusal(attributes: Attributes) -> StatusError:
    subject = Subject(attributes.group, attributes.resource)
    return forbidden(subject, attributes.name, denial(attributes))


def _with_implied_groups(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Return the groups of an impersonate user, with those that its name implies."""
    account = name.removeprefix(_ACCOUNT).split(":")
    if name.startswith(_ACCOUNT) and len(account) == 2 and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
    if name == "system:anonymous":
        return groups if _UNAUTHENTICATED in groups else (*groups, _UNAUTHENTICATED)
    if _AUTHENTICATED in groups or _UNAUTHENTICATED in groups:
        return groups
    return (*groups, _AUTHENTICATED)

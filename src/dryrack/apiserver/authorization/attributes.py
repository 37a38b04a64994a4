"""The attributes of a request that an authorizer decides about."""

import msgspec

from dryrack.client.transport import User


class Attributes(msgspec.Struct, frozen=True):
    """A resource and its verb, or a path (then `resource` is "" and the verb an HTTP method)."""

    user: User
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def is_path(self) -> bool:
        return not self.resource


def denial(asked: Attributes) -> str:
    """Return the text after "is forbidden: " (or "forbidden: ", for a path)."""
    who = f'User "{asked.user.name}" cannot {asked.verb}'
    if asked.is_path:
        return _escape_markup(f'{who} path "{asked.path}"')
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    return _escape_markup(f'{who} resource "{resource}" in API group "{asked.group}" {where}')


def _escape_markup(text: str) -> str:
    """Escape markup, because a browser may show the text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

"""What an authorizer decides about: who wants to do what, with what."""

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
    """What the real server says after "is forbidden: " (or "forbidden: ", for a path)."""
    who = f'User "{asked.user.name}" cannot {asked.verb}'
    if asked.is_path:
        return _safe(f'{who} path "{asked.path}"')
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    return _safe(f'{who} resource "{resource}" in API group "{asked.group}" {where}')


def _safe(text: str) -> str:
    """What a browser would take for markup is written so that it does not."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

"""
The default roles and bindings, which a real server creates for itself.

The data comes from a real server. Only clusters with RBAC read it.
"""

import gzip
from importlib import resources

import msgspec

from dryrack.kinds.raw import Raw


def default_roles() -> list[Raw]:
    """Return the roles and bindings of the cluster and the system's namespaces."""
    data = resources.files(__package__).joinpath("roles.json.gz").read_bytes()
    roles: list[Raw] = msgspec.json.decode(gzip.decompress(data))
    return roles

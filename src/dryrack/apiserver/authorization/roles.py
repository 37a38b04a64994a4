"""
The roles and bindings that every cluster has: those that a real server makes for itself.

The data is taken from one. It is read only where it is needed, for a cluster that decides by
roles.
"""

import gzip
from importlib import resources

import msgspec

from dryrack.kinds.raw import Raw


def default_roles() -> list[Raw]:
    """Roles and bindings, cluster-wide and of the system's namespaces, without uids and times."""
    data = resources.files(__package__).joinpath("roles.json.gz").read_bytes()
    found: list[Raw] = msgspec.json.decode(gzip.decompress(data))
    return found

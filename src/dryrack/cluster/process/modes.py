"""What a cluster can be told to be."""

from enum import Enum


class AuthorizationMode(Enum):
    """Who decides what users may do."""

    ALWAYS_ALLOW = "always-allow"
    RBAC = "rbac"

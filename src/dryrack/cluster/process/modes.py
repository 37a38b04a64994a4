"""Modes of a cluster."""

from enum import Enum


class AuthorizationMode(Enum):
    """The authorization mode of the API server."""

    ALWAYS_ALLOW = "always-allow"
    RBAC = "rbac"

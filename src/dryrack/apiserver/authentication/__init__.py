"""
Who asks: client certificates, service account tokens, and whom they may speak for.

`Authentication` is what the HTTP server asks about every request. A certificate that the
cluster's authority signed comes first, then a bearer token; somebody with neither may look at the
health of the server and at nothing else.
"""

from collections.abc import Mapping

from multidict import CIMultiDict

from dryrack.apiserver.answer.status import unauthorized
from dryrack.apiserver.authentication.certificates import user_of_certificate
from dryrack.apiserver.authentication.impersonation import Allows, impersonated
from dryrack.apiserver.authentication.tokens import Tokens
from dryrack.client.transport import User

ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
AUTHENTICATED = "system:authenticated"

_OPEN_PATHS = ("/healthz", "/livez", "/readyz")
_BEARER = "bearer "

__all__ = ["ANONYMOUS", "Authentication"]


class Authentication:
    """Finds the user of a request; `allows` decides who may speak for somebody else."""

    def __init__(self, tokens: Tokens, allows: Allows) -> None:
        self._tokens = tokens
        self._allows = allows

    def user_of(
        self, path: str, headers: CIMultiDict[str], certificate: Mapping[str, object]
    ) -> User:
        user = self._proven(headers, certificate)
        if user is None:
            if not _is_open(path):
                raise unauthorized()
            return ANONYMOUS
        return impersonated(user, headers, self._allows)

    def _proven(self, headers: CIMultiDict[str], certificate: Mapping[str, object]) -> User | None:
        user = user_of_certificate(certificate)
        if user is None:
            user = self._by_token(headers.get("Authorization", ""))
        if user is None:
            return None
        return User(user.name, (*user.groups, AUTHENTICATED), user.uid, user.extra)

    def _by_token(self, authorization: str) -> User | None:
        if not authorization.lower().startswith(_BEARER):
            return None
        user = self._tokens.user_of(authorization[len(_BEARER) :].strip())
        if user is None:
            # A token that does not hold is a mistake to be told, also where none is needed.
            raise unauthorized()
        return user


def _is_open(path: str) -> bool:
    return any(path == each or path.startswith(f"{each}/") for each in _OPEN_PATHS)

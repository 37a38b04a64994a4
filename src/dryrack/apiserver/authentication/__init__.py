"""
Authentication by client certificates and service account tokens, and impersonation.

The HTTP server asks `Authentication` for the user of every request. A certificate that the
cluster's authority signed comes first, then a bearer token; a client with neither may read the
health pages and nothing else.
"""

import base64
from collections.abc import Mapping

from multidict import CIMultiDict

from dryrack.apiserver.answer.status import unauthorized
from dryrack.apiserver.authentication.impersonation import Allows, impersonate
from dryrack.apiserver.authentication.tokens import Tokens
from dryrack.apiserver.http import websocket
from dryrack.client.transport import User

__all__ = ["ANONYMOUS", "Authentication", "is_open_path"]

ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
AUTHENTICATED = "system:authenticated"

_OPEN_PATHS = ("/healthz", "/livez", "/readyz")
_BEARER = "bearer "
_BEARER_PROTOCOL = "base64url.bearer.authorization.k8s.io."


class Authentication:
    """Finds the user of a request; `allows` decides who may impersonate whom."""

    def __init__(self, tokens: Tokens, allows: Allows) -> None:
        self._tokens = tokens
        self._allows = allows

    def user_of(
        self, path: str, headers: CIMultiDict[str], certificate: Mapping[str, object]
    ) -> User:
        user = self._authenticate(headers, certificate)
        if user is None:
            if not is_open_path(path):
                raise unauthorized()
            return ANONYMOUS
        return impersonate(user, headers, self._allows)

    def _authenticate(
        self, headers: CIMultiDict[str], certificate: Mapping[str, object]
    ) -> User | None:
        user = user_of_certificate(certificate)
        if user is None:
            user = self._user_of_header(headers.get("Authorization", ""))
        if user is None and websocket.is_requested(headers):
            user = self._user_of_protocol(headers)
        if user is None:
            return None
        return User(user.name, (*user.groups, AUTHENTICATED), user.uid, user.extra)

    def _user_of_header(self, authorization: str) -> User | None:
        if not authorization.lower().startswith(_BEARER):
            return None
        return self._user_of_token(authorization[len(_BEARER) :].strip())

    def _user_of_protocol(self, headers: CIMultiDict[str]) -> User | None:
        """
        Return the user of the token that a WebSocket client sends as a subprotocol.

        Programs in a browser cannot set the header Authorization. The token is removed from the
        headers: the server answers with the subprotocol that is left.
        """
        offered = ",".join(headers.getall(websocket.PROTOCOL_HEADER, ())).split(",")
        protocols = [each.strip() for each in offered]
        tokens = [each for each in protocols if each.startswith(_BEARER_PROTOCOL)]
        others = [each for each in protocols if each and each not in tokens]
        if not tokens:
            return None
        if len(tokens) > 1 or not others:
            raise unauthorized()
        user = self._user_of_token(_decode_token(tokens[0].removeprefix(_BEARER_PROTOCOL)))
        headers[websocket.PROTOCOL_HEADER] = ",".join(others)
        return user

    def _user_of_token(self, token: str) -> User:
        user = self._tokens.user_of(token)
        if user is None:
            # An invalid token is an error, also where no token is needed.
            raise unauthorized()
        return user


def _decode_token(encoded: str) -> str:
    """Return a token from base64url without padding."""
    try:
        padded = encoded + "=" * (-len(encoded) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except ValueError:
        raise unauthorized() from None


def is_open_path(path: str) -> bool:
    """Return whether an anonymous client may read the page."""
    return any(path == each or path.startswith(f"{each}/") for each in _OPEN_PATHS)


def user_of_certificate(certificate: Mapping[str, object]) -> User | None:
    """
    Return the user of a certificate in the form of `ssl.SSLSocket.getpeercert()`, or None.

    The common name is the user, and organizations are groups. The signature was verified when the
    connection was made.
    """
    subject = certificate.get("subject", ())
    assert isinstance(subject, tuple), f"no subject of a certificate: {subject!r}"
    pairs = [pair for relative in subject for pair in relative]
    names = [value for name, value in pairs if name == "commonName"]
    if not names or not names[0]:
        return None
    groups = tuple(value for name, value in pairs if name == "organizationName")
    return User(names[0], groups)

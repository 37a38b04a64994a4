"""
Tokens of service accounts, which expire, and become invalid with their objects.

A token is a JSON web token signed with the cluster's own key (ES256). It is valid until it
expires, and as long as the account (and the pod, secret or node) that it names exists with the
same uid. Nothing about a token is stored.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from dryrack.base.ports import Chance, Clock
from dryrack.client.transport import User
from dryrack.kinds.raw import Raw

ISSUER = "https://kubernetes.default.svc.cluster.local"
# Clocks of client and server may differ by so much.
_LEEWAY_SECONDS = 60
_EXTRA = "authentication.kubernetes.io"


class Objects(Protocol):
    """Reads what is stored; `resource` is a plural of the core group."""

    def get(self, resource: str, namespace: str, name: str) -> Raw | None: ...


class SigningKey(Protocol):
    """A private key on the curve P-256."""

    def sign(self, content: bytes) -> bytes:
        """Return a signature of 64 bytes, r and s."""
        ...

    def verify(self, signature: bytes, content: bytes) -> bool: ...

    @property
    def public_der(self) -> bytes: ...


class InvalidTokenError(Exception):
    """A token that is not valid; the text is for the review of it."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(f"[invalid bearer token, {reason}]" if reason else "invalid bearer token")


@dataclass(frozen=True, slots=True)
class Bound:
    """The object that a token is bound to; `resource` is pods, secrets or nodes."""

    resource: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Holder:
    """The account of a token, and the objects that the token is bound to."""

    namespace: str
    name: str
    uid: str
    bound: tuple[Bound, ...] = ()


class Tokens:
    """Issues tokens, and finds the user of a token."""

    def __init__(self, key: SigningKey, objects: Objects, *, clock: Clock, chance: Chance) -> None:
        self._key = key
        self._objects = objects
        self._clock = clock
        self._chance = chance

    def issue(self, holder: Holder, *, audiences: Sequence[str], seconds: int) -> str:
        private: Raw = {"namespace": holder.namespace}
        for bound in holder.bound:
            private[bound.resource.removesuffix("s")] = _reference(bound.name, bound.uid)
        private["serviceaccount"] = _reference(holder.name, holder.uid)
        now = int(self._clock.now())
        claims = {
            "aud": list(audiences),
            "exp": now + seconds,
            "iat": now,
            "iss": ISSUER,
            "jti": self._chance.uuid(),
            "kubernetes.io": private,
            "nbf": now,
            "sub": _user_name(holder.namespace, holder.name),
        }
        key_id = _encode(hashlib.sha256(self._key.public_der).digest())
        header = {"alg": "ES256", "kid": key_id}
        content = f"{_encode(msgspec.json.encode(header))}.{_encode(msgspec.json.encode(claims))}"
        return f"{content}.{_encode(self._key.sign(content.encode()))}"

    def user_of(self, token: str) -> User | None:
        """Return the user of a token for this server, or None."""
        try:
            return self.review(token, audiences=(ISSUER,))[0]
        except InvalidTokenError:
            return None

    def review(self, token: str, *, audiences: Sequence[str]) -> tuple[User, tuple[str, ...]]:
        """Return the user and the matching audiences; raise an `InvalidTokenError`."""
        claims = self._verified_claims(token)
        meant = [each for each in audiences if each in _texts(claims.get("aud"))]
        if not meant:
            raise InvalidTokenError("token audiences do not match the expected ones")
        now = self._clock.now()
        if now - _LEEWAY_SECONDS > claims.get("exp", 0):
            raise InvalidTokenError("service account token has expired")
        if now + _LEEWAY_SECONDS < claims.get("nbf", 0):
            raise InvalidTokenError("service account token is not valid yet")
        private = claims.get("kubernetes.io")
        if claims.get("iss") != ISSUER or not isinstance(private, dict):
            raise InvalidTokenError("not a token of a service account")
        namespace = private["namespace"]
        account = private["serviceaccount"]
        stored = self._objects.get("serviceaccounts", namespace, account["name"])
        if stored is None:
            raise InvalidTokenError(f'serviceaccounts "{account["name"]}" not found')
        uid = stored["metadata"]["uid"]
        if uid != account["uid"]:
            raise InvalidTokenError(
                f"service account UID ({uid}) does not match claim ({account['uid']})"
            )
        # A pod's token names the node only for information.
        kinds = ["pod"] if "pod" in private else ["secret", "node"]
        for kind in kinds:
            bound = private.get(kind)
            if bound is not None:
                place = "" if kind == "node" else namespace
                self._check_bound(f"{kind}s", place, bound)
        return _user(private, str(claims.get("jti", ""))), tuple(meant)

    def _verified_claims(self, token: str) -> Raw:
        """Return the claims after the signature is verified."""
        content, _, signature = token.rpartition(".")
        header, _, payload = content.partition(".")
        try:
            algorithm = _decode(header).get("alg")
            signed = self._key.verify(_bytes(signature), content.encode())
            if algorithm == "ES256" and signed:
                return _decode(payload)
        except (ValueError, RecursionError):
            # Not a token; JSON that is nested too deep raises a RecursionError.
            pass
        raise InvalidTokenError

    def _check_bound(self, resource: str, namespace: str, reference: Mapping[str, str]) -> None:
        stored = self._objects.get(resource, namespace, reference["name"])
        if stored is None or stored["metadata"]["uid"] != reference["uid"]:
            raise InvalidTokenError("service account token has been invalidated")


def _reference(name: str, uid: str) -> Raw:
    return {"name": name, "uid": uid} if uid else {"name": name}


def _user(private: Raw, token_id: str) -> User:
    namespace = private["namespace"]
    account = private["serviceaccount"]
    extra = {f"{_EXTRA}/credential-id": (f"JTI={token_id}",)} if token_id else {}
    for kind in ("node", "pod"):
        for part in ("name", "uid"):
            value = private.get(kind, {}).get(part)
            if value:
                extra[f"{_EXTRA}/{kind}-{part}"] = (value,)
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return User(_user_name(namespace, account["name"]), groups, account["uid"], extra)


def _user_name(namespace: str, name: str) -> str:
    return f"system:serviceaccount:{namespace}:{name}"


def _texts(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else [value]


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _decode(text: str) -> Raw:
    found = msgspec.json.decode(_bytes(text))
    if not isinstance(found, dict):
        raise ValueError("not an object")  # noqa: TRY004 - what the caller sent is wrong
    return found

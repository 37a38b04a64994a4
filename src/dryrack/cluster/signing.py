"""The key that signs service account tokens, read when the first token needs it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cryptography.hazmat.primitives.asymmetric import ec

_HALF = 32


class EllipticKey:
    """ES256: ECDSA on P-256 with SHA-256; `load` is called at most once."""

    def __init__(self, load: Callable[[], ec.EllipticCurvePrivateKey]) -> None:
        self._load = load

    @classmethod
    def fresh(cls) -> EllipticKey:
        """Return a new key, which ends with the process."""

        def make() -> ec.EllipticCurvePrivateKey:
            from cryptography.hazmat.primitives.asymmetric import ec

            return ec.generate_private_key(ec.SECP256R1())

        return cls(make)

    @cached_property
    def _key(self) -> ec.EllipticCurvePrivateKey:
        return self._load()

    @cached_property
    def public_der(self) -> bytes:
        from cryptography.hazmat.primitives import serialization

        return self._key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def sign(self, content: bytes) -> bytes:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        r, s = decode_dss_signature(self._key.sign(content, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(_HALF, "big") + s.to_bytes(_HALF, "big")

    def verify(self, signature: bytes, content: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

        if len(signature) != 2 * _HALF:
            return False
        r, s = (int.from_bytes(half, "big") for half in (signature[:_HALF], signature[_HALF:]))
        try:
            public = self._key.public_key()
            public.verify(encode_dss_signature(r, s), content, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True

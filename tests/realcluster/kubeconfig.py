"""Kubeconfigs for the identities of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pathlib import Path

    from tests.realcluster.pki import Identity

_NAME = "dryrack-test-bed"


def write(path: Path, *, server: str, authority: Path, user: dict[str, Any]) -> Path:
    cluster = {"server": server, "certificate-authority": str(authority)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": user}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def by_certificate(identity: Identity) -> dict[str, Any]:
    return {
        "client-certificate": str(identity.certificate),
        "client-key": str(identity.key),
    }


def by_token(token: str) -> dict[str, Any]:
    return {"token": token}

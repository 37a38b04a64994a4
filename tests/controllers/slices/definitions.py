"""The definitions that `dryrack publish --print-crds` prints, as a server takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from dryrack.cluster import rights

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw


def definitions() -> list[Raw]:
    return list(yaml.safe_load_all(rights.definitions()))

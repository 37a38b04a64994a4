"""The releases of Kubernetes whose answers dryrack gives."""

import re
from enum import Enum
from functools import total_ordering

from dryrack.base.errors import DryrackError


@total_ordering
class Release(Enum):
    """A release of Kubernetes whose answers are reproduced; releases have an order."""

    V1_36 = "1.36"
    V1_37 = "1.37"

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        return self.minor < other.minor

    @classmethod
    def parse(cls, text: str) -> "Release":
        """Return the release with a name such as "1.37"; raise `ReleaseError` for another text."""
        for each in cls:
            if each.value == text:
                return each
        raise ReleaseError(f"{text!r}: unknown release; use {RELEASES}")

    @property
    def minor(self) -> int:
        """The second number of the version, for example 37."""
        return int(self.value.partition(".")[2])

    @property
    def patch_version(self) -> str:
        """The version of the binaries that dryrack follows, for example 1.37.1."""
        return _PATCH_VERSIONS[self]

    @property
    def git_version(self) -> str:
        """The version that servers and nodes report; the part after the plus names dryrack."""
        return f"v{self.patch_version}+dryrack"


class ReleaseError(DryrackError):
    """A text names no release that dryrack knows."""


_PATCH_VERSIONS = {Release.V1_36: "1.36.4", Release.V1_37: "1.37.1"}
RELEASES = " or ".join(each.value for each in Release)
"""The names of all releases, for messages."""
OLDEST, *_, NEWEST = Release
# The release whose answers a user gets without `--release`.
DEFAULT_RELEASE = Release.V1_37
_VERSION = re.compile(r"v?1\.([0-9]+)")


def nearest_release(version: str) -> Release:
    """
    Return the release that behaves most like a server of this version, such as v1.36.4.

    It is the newest one that is not newer than the server, or the oldest one.
    """
    match = _VERSION.match(version)
    if match is None:
        return NEWEST
    known = [each for each in Release if each.minor <= int(match[1])]
    return known[-1] if known else OLDEST

"""The releases of Kubernetes whose answers dryrack gives."""

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
DEFAULT_RELEASE = Release.V1_36

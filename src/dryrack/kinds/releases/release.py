"""The releases of Kubernetes whose answers dryrack gives."""

from enum import Enum


class Release(Enum):
    """A release of Kubernetes whose answers are reproduced."""

    V1_36 = "1.36"
    V1_37 = "1.37"


NEWEST = tuple(Release)[-1]
# The release whose answers a user gets without `--release`.
DEFAULT_RELEASE = Release.V1_36

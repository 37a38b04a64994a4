"""How the names of images are read, as far as the server reads them."""

import re

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_REFERENCE = re.compile(
    rf"(?:{_HOST}(?:\.{_HOST})*(?::[0-9]+)?/)?(?P<path>{_PART}(?:/{_PART})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?P<digest>@[A-Za-z][\w+.-]*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
# Of a name without a host a folder is meant that is not said.
_PATH_CHARS_MAX = 255 - len("library/")


def pull_policy(image: str) -> str:
    """Always for what may have moved on: the tag latest, said or meant."""
    found = _REFERENCE.fullmatch(image)
    if found is None or len(found["path"]) > _PATH_CHARS_MAX:
        return "IfNotPresent"
    tag = found["tag"] or ("" if found["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"

"""
Semantic versions 2.0.0, as the Go library that Kubernetes uses reads and orders them.

`Semver.parse` is strict. `Semver.parse_tolerant` is what CEL's `semver(text, true)` does: a
"v" in front, missing minor and patch numbers and leading zeros are put right first. Build
metadata is kept for printing and plays no part in order or equality.
"""

import re
from dataclasses import dataclass

from dryrack.base.errors import DryrackError
from dryrack.kinds.text.quoting import quoted

_DIGITS = re.compile(r"[0-9]*")
_IDENTIFIER = re.compile(r"[0-9A-Za-z-]*")
_UINT64_MAX = 2**64 - 1
# Longer than any uint64; beyond it Python's own limit on digits would raise first.
_NUMBER_DIGITS_MAX = 20

_Rank = tuple[int, int, str]
_Key = tuple[int, int, int, int, tuple[_Rank, ...]]


class SemverError(DryrackError, ValueError):
    """The text is not a version; the message is the Go library's."""


@dataclass(frozen=True, slots=True, eq=False)
class Semver:
    """One version; compared by semver precedence."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[int | str, ...]
    build: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> "Semver":
        """Read a version that follows semver 2.0.0 to the letter, or raise `SemverError`."""
        return _parse(text)

    @staticmethod
    def parse_tolerant(text: str) -> "Semver":
        """Read a version after the repairs that Kubernetes calls normalization."""
        return _parse(_normalize(text))

    def __str__(self) -> str:
        prerelease = "-" + ".".join(map(str, self.prerelease)) if self.prerelease else ""
        build = "+" + ".".join(self.build) if self.build else ""
        return f"{self.major}.{self.minor}.{self.patch}{prerelease}{build}"

    def precedence(self) -> _Key:
        """A key that orders versions: a release comes after its own prereleases."""
        ranks = tuple(_rank(part) for part in self.prerelease)
        return self.major, self.minor, self.patch, 0 if ranks else 1, ranks

    def __hash__(self) -> int:
        return hash(self.precedence())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Semver):
            return NotImplemented
        return self.precedence() == other.precedence()

    def __lt__(self, other: "Semver") -> bool:
        return self.precedence() < other.precedence()

    def __le__(self, other: "Semver") -> bool:
        return self.precedence() <= other.precedence()

    def __gt__(self, other: "Semver") -> bool:
        return self.precedence() > other.precedence()

    def __ge__(self, other: "Semver") -> bool:
        return self.precedence() >= other.precedence()


def _rank(part: int | str) -> _Rank:
    # Numbers come before words; words compare by their ASCII letters.
    return (0, part, "") if isinstance(part, int) else (1, 0, part)


def _parse(text: str) -> Semver:
    if not text:
        raise SemverError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise SemverError("No Major.Minor.Patch elements found")
    major = _core_number(parts[0], "major")
    minor = _core_number(parts[1], "minor")
    rest, plus, build = parts[2].partition("+")
    patch_text, dash, prerelease = rest.partition("-")
    patch = _core_number(patch_text, "patch")
    return Semver(
        major=major,
        minor=minor,
        patch=patch,
        prerelease=tuple(map(_prerelease, prerelease.split("."))) if dash else (),
        build=tuple(map(_build, build.split("."))) if plus else (),
    )


def _core_number(text: str, which: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise SemverError(f"Invalid character(s) found in {which} number {quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise SemverError(
            f"{which.capitalize()} number must not contain leading zeroes {quoted(text)}"
        )
    return _uint64(text)


def _uint64(text: str) -> int:
    if not text:
        raise SemverError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > _NUMBER_DIGITS_MAX or int(text) > _UINT64_MAX:
        raise SemverError(f"strconv.ParseUint: parsing {quoted(text)}: value out of range")
    return int(text)


def _prerelease(text: str) -> int | str:
    if not text:
        raise SemverError("Prerelease is empty")
    if _DIGITS.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise SemverError(
                f"Numeric PreRelease version must not contain leading zeroes {quoted(text)}"
            )
        return _uint64(text)
    if not _IDENTIFIER.fullmatch(text):
        raise SemverError(f"Invalid character(s) found in prerelease {quoted(text)}")
    return text


def _build(text: str) -> str:
    if not text:
        raise SemverError("Build meta data is empty")
    if not _IDENTIFIER.fullmatch(text):
        raise SemverError(f"Invalid character(s) found in build meta data {quoted(text)}")
    return text


def _normalize(text: str) -> str:
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise SemverError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _without_zeros(part: str) -> str:
    if len(part.encode(errors="surrogatepass")) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in tuple("0123456789") else "0" + stripped

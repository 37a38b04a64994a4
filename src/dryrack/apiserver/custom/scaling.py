"""The scale subresource of custom kinds, over the usual way of writing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.custom.scale import ScalePaths, found_in, rescaled
from dryrack.apiserver.managing.face import without_managed
from dryrack.apiserver.registry import Subresource
from dryrack.apiserver.scaling import Scaling, scale_from
from dryrack.apiserver.status import Status, StatusError, bad_request, internal_error

if TYPE_CHECKING:
    from collections.abc import Sequence

Raw = dict[str, Any]

_NOT_SET = -(2**31)
_NO_KIND = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
_NO_VERSION = "request to convert CR to an invalid group/version: autoscaling/v1"


def scale_subresource(paths: ScalePaths) -> Subresource:
    """Reads and writes the number of replicas where the definition says it stands."""
    scaling = Scaling(_Custom(paths))
    return Subresource(
        name="scale",
        kind="Scale",
        group="autoscaling",
        version="v1",
        handlers={"get": scaling.get, "update": scaling.update, "patch": scaling.patch},
    )


@dataclass(frozen=True, slots=True)
class _Custom:
    """The scale of a custom kind."""

    paths: ScalePaths

    @property
    def path(self) -> Sequence[str]:
        return self.paths.spec.removeprefix(".").split(".")

    @property
    def is_one_by_uid(self) -> bool:
        return False

    def shown(self, obj: Raw) -> Raw:
        if found_in(obj, self.paths).wanted is None:
            raise internal_error(f'the spec replicas field "{self.paths.spec}" does not exist')
        return self.scale_of(obj)

    def scale_of(self, obj: Raw) -> Raw:
        found = found_in(obj, self.paths)
        status: Raw = {"replicas": found.there}
        if found.selector:
            status["selector"] = found.selector
        return scale_from(obj, _NOT_SET if found.wanted is None else found.wanted, status)

    def rescaled(self, obj: Raw, scale: Raw) -> Raw:
        replicas = (scale.get("spec") or {}).get("replicas", 0)
        if replicas == _NOT_SET:
            raise bad_request(f'the spec replicas field "{self.paths.spec}" cannot be empty')
        given = scale.get("metadata") or {}
        named = {key: given[key] for key in ("resourceVersion", "uid") if given.get(key)}
        return {**rescaled(obj, self.paths, replicas), "metadata": {**obj["metadata"], **named}}

    def misread(self, error: StatusError) -> StatusError:
        """The server does not get to say what is wrong with it."""
        return bad_request(_NO_KIND) if error.status.code == 400 else error

    def inapplicable(self, old: Raw, made: Raw | StatusError) -> StatusError | None:
        """A server cannot convert what an apply makes of it: only what changes nothing passes."""
        if not old["metadata"].get("managedFields"):
            return None if _is_bad(made) else _unconvertible("live", "/")
        if not isinstance(made, dict) or without_managed(made) == without_managed(old):
            return None
        return _unconvertible("new", f"/{made['metadata']['name']}")


def _is_bad(made: Raw | StatusError) -> bool:
    return isinstance(made, StatusError) and made.status.code == 400


def _unconvertible(which: str, place: str) -> StatusError:
    what = f"failed to convert {which} object ({place}; autoscaling/v1, Kind=Scale) to proper"
    if which == "live":
        what = f"failed to create manager for existing fields: {what}"
    return StatusError(Status(500, "", f"{what} version: {_NO_VERSION}"))

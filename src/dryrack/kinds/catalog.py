"""
The models of kinds, by apiVersion and kind.

Older versions of resource.k8s.io are converted to v1, so that other modules know one shape. For an
unknown kind, the catalog suggests what was probably meant.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from dryrack.kinds import core, overlay, registry, resource, scheduling
from dryrack.kinds.convert import GROUP, V1ALPHA3, V1BETA1, V1BETA2, to_v1
from dryrack.kinds.decode import DecodeError, decode
from dryrack.kinds.defaults import with_defaults
from dryrack.kinds.documents import Document, Problem
from dryrack.kinds.meta import KubernetesObject, kind_of
from dryrack.kinds.migrations import KINDS_GONE, convert_command
from dryrack.kinds.releases import DEFAULT_RELEASE

_CORE = (core.Node, core.Pod, core.Namespace, core.ConfigMap)
_RESOURCE = (
    resource.ResourceSlice,
    resource.ResourceClaim,
    resource.ResourceClaimTemplate,
    resource.DeviceClass,
    resource.DeviceTaintRule,
)
_SCHEDULING = (
    scheduling.Workload,
    scheduling.PodGroup,
    scheduling.WorkloadV1Alpha1,
    scheduling.WorkloadV1Beta1,
    scheduling.PodGroupV1Beta1,
    scheduling.CompositePodGroup,
    scheduling.CoschedulingPodGroup,
)


def _own(models: Iterable[type[KubernetesObject]]) -> dict[tuple[str, str], type[KubernetesObject]]:
    return {(model.API_VERSION, kind_of(model)): model for model in models}


_MODELS: dict[tuple[str, str], type[KubernetesObject]] = {
    **_own((*_CORE, *_RESOURCE, *_SCHEDULING, overlay.NodeOverlay)),
    **{(V1BETA1, kind_of(model)): model for model in _RESOURCE[:4]},
    **{(V1BETA2, kind_of(model)): model for model in _RESOURCE},
    (V1ALPHA3, "DeviceTaintRule"): resource.DeviceTaintRule,
    # v1alpha3 of 1.37 repeats the kinds of v1beta1.
    ("scheduling.k8s.io/v1alpha3", "Workload"): scheduling.WorkloadV1Beta1,
    ("scheduling.k8s.io/v1alpha3", "PodGroup"): scheduling.PodGroupV1Beta1,
}
# The versions of device kinds that the default release serves by default.
CURRENT = {
    each.kind: each.api_version
    for each in registry.KINDS
    if each.group == GROUP and each.since <= DEFAULT_RELEASE <= each.until
}
KINDS = tuple(dict.fromkeys(kind for _, kind in _MODELS))


@dataclass(frozen=True, slots=True)
class Typed:
    """A document and its decoded object; `raw` is the document with defaults, in v1."""

    document: Document
    object: KubernetesObject
    raw: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Unknown:
    """The reason why a kind has no model, and a fix."""

    message: str
    fix: str


def model_of(api_version: str, kind: str) -> type[KubernetesObject] | Unknown:
    """Return the model of a kind in a version, or the reason why it has no model."""
    model = _MODELS.get((api_version, kind))
    if model is not None:
        return model
    versions = [version for version, known in _MODELS if known == kind]
    if versions:
        return Unknown(
            f"{kind} is not in {api_version!r}" if api_version else f"{kind} without apiVersion",
            f"write apiVersion: {CURRENT.get(kind) or ' or '.join(versions)}",
        )
    group = api_version.rpartition("/")[0]
    if group == GROUP and kind in KINDS_GONE:
        return Unknown(f"unknown kind {kind!r}", "run dryrack convert")
    folded = {each.lower(): each for each in KINDS}
    close = get_close_matches(kind.lower(), list(folded), n=1, cutoff=0.7)
    known = f"known kinds: {', '.join(KINDS)}"
    return Unknown(
        f"unknown kind {kind!r}" if kind else "an object without kind",
        f"did you mean {folded[close[0]]!r}?" if close else known,
    )


def is_modelled(kind: registry.Kind) -> bool:
    """Return whether a built-in kind has a model in the version that is served."""
    return (kind.api_version, kind.kind) in _MODELS


def fix_of(unknown: Unknown, document: Document) -> str:
    """Return what to do about a document without a model: convert one of an older version."""
    is_old = document.kind in CURRENT or document.kind in KINDS_GONE
    is_ours = document.api_version.startswith(f"{GROUP}/")
    return convert_command(document.file) if is_ours and is_old else unknown.fix


def typed(document: Document) -> Typed | tuple[Problem, ...]:
    """Return the object of a document, with defaults and in v1, or all its problems."""
    model = model_of(document.api_version, document.kind)
    if isinstance(model, Unknown):
        path = "kind" if document.api_version and document.kind else ""
        path = "apiVersion" if document.kind in KINDS else path
        return (document.problem(path, model.message, fix_of(model, document)),)
    raw = to_v1(with_defaults(document.raw))
    try:
        return Typed(document, decode(raw, model), raw)
    except DecodeError as error:
        return tuple(document.problem(each.path, str(each), each.fix) for each in error.mismatches)

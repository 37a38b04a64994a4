"""
DR0xx: files that do not say what they seem to say.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from dryrack.hardware.names import suggestion
from dryrack.kinds.catalog import CURRENT, Unknown, model_of
from dryrack.kinds.convert import GROUP, V1ALPHA3, V1BETA1, V1BETA2
from dryrack.kinds.documents import Document
from dryrack.kinds.expansion.compute_domains import faults, is_compute_domain
from dryrack.kinds.migrations import KINDS_GONE, moved
from dryrack.kinds.other_kinds import Mistaken, Standing, standing
from dryrack.kinds.registry import KINDS, builtin_kinds
from dryrack.kinds.releases import GATED_FIELDS, Release
from dryrack.kinds.text.source_positions import Tree, parse_path, spot
from dryrack.linter.finding import Problem, Severity
from dryrack.linter.registry import Registry
from dryrack.linter.world import Entry, is_own_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.documents import Problem as Fault
    from dryrack.linter.world import UnknownField, World

RULES = Registry()

# From this on two names differ by a slip of the pen.
_SLIP = 0.85
# Custom kinds that lint reads in part.
_READ = frozenset({"ComputeDomain", "DRAConfig"})


@RULES.rule(
    "DR001",
    "file-unreadable",
    Severity.ERROR,
    summary="A file or document cannot be read as YAML or JSON.",
)
def file_unreadable(world: World) -> Iterator[Problem]:
    """
    dryrack cannot check the document further. It reads all files that kubectl reads, except files
    of which kubectl silently drops a part: a key that occurs twice, `1` and `'1'` as keys of one
    object, and text after the end of a document, such as a second `{…}` without a line `---`
    before it, or text after `...`.
    """
    yield from map(_problem_at, world.faults)


def _problem_at(fault: Fault) -> Problem:
    document = Document(fault.file, {}, Tree(spot(fault.line, fault.column)))
    return Problem(Entry(document, None), (), fault.message, fault.fix or "correct the text")


@RULES.rule(
    "DR002",
    "wrong-type",
    Severity.ERROR,
    summary="A field has a value of the wrong type.",
)
def wrong_type(world: World) -> Iterator[Problem]:
    """The API server rejects the object before all other checks."""
    for document, mismatch in world.mismatches:
        yield Problem(
            Entry(document, None),
            parse_path(mismatch.path),
            f"expected {mismatch.expected}, got {mismatch.got}",
            mismatch.fix or f"write {mismatch.expected}",
        )


@RULES.rule(
    "DR003",
    "field-unknown",
    Severity.ERROR,
    summary="A field does not exist in the API.",
)
def field_unknown(world: World) -> Iterator[Problem]:
    """kubectl rejects an unknown field; other clients drop it. Names are case-sensitive."""
    for field in world.unknown_fields:
        if field.releases:
            continue
        yield Problem(
            Entry(field.document, None),
            field.path,
            f"{field.document.kind} has no field {str(field.path[-1])!r} here",
            right_place(field),
        )


def right_place(field: UnknownField) -> str:
    """Return the correct name or place of the field."""
    name = str(field.path[-1])
    # Go calls the field `int` IntValue, and so do many who write slices by hand.
    as_in_go = name.removesuffix("Value").removesuffix("Values")
    if as_in_go != name and as_in_go in field.siblings:
        return f"did you mean {as_in_go!r}?"
    return (
        moved(field.path, field.document.api_version)
        or _same_word(name, field.siblings)
        or field.home
        or suggestion(name, field.siblings)
        or "remove it"
    )


def _same_word(name: str, known: Sequence[str]) -> str:
    """Return a fix for a name that differs in a letter or two, or in case."""
    near = difflib.get_close_matches(name.lower(), [each.lower() for each in known], 1, _SLIP)
    meant = next((each for each in known if near and each.lower() == near[0]), "")
    return f"did you mean {meant!r}?" if meant else ""


@RULES.rule(
    "DR004",
    "kind-unknown",
    Severity.ERROR,
    summary="An object has a kind or version that does not exist.",
)
def kind_unknown(world: World) -> Iterator[Problem]:
    """The API server has no resource for the object and returns an error."""
    for document in world.documents:
        found = standing(document)
        if isinstance(found, Mistaken):
            fix = found.fix or "correct the value"
            is_old = document.api_version.startswith(f"{GROUP}/")
            if is_old and (document.kind in CURRENT or document.kind in KINDS_GONE):
                fix = _conversion(world, document)
            yield Problem(Entry(document, None), found.path, found.message, fix)


@RULES.rule(
    "DR005",
    "api-version-old",
    Severity.INFO,
    summary="An object is written for an API version that is not served by default.",
)
def api_version_old(world: World) -> Iterator[Problem]:
    """
    The object is checked as what it is in v1. A cluster serves the beta versions only if
    `--runtime-config` enables them. The fix is the whole conversion of this object.

    Kubernetes 1.36 has DeviceTaintRule in v1beta2, which `--runtime-config` and the feature gate
    DRADeviceTaintRules enable. Kubernetes 1.37 serves it in v1.
    """
    current_versions = {
        each.kind: each.api_version for each in KINDS if each.since <= world.release <= each.until
    }
    for document in world.documents:
        current = current_versions.get(document.kind) if document.kind in CURRENT else None
        is_old = document.api_version in (V1BETA1, V1BETA2, V1ALPHA3)
        is_there = not isinstance(model_of(document.api_version, document.kind), Unknown)
        if current and is_old and is_there and document.api_version != current:
            yield Problem(
                Entry(document, None),
                ("apiVersion",),
                f"clusters do not serve {document.api_version} by default",
                _conversion(world, document),
            )


def _conversion(world: World, document: Document) -> str:
    from dryrack.conversion import conversion_fix

    return conversion_fix(document, world.upgraded.get(id(document)))


@RULES.rule(
    "DR006",
    "object-twice",
    Severity.WARNING,
    summary="Two objects in the files have the same kind and name.",
)
def object_twice(world: World) -> Iterator[Problem]:
    """
    Applied to a cluster, the later one replaces the earlier. The same holds here and for
    `dryrack allocate`: findings about pools, classes, claims and pods are about the last of
    them. Each object is also checked by itself, because the API server gets each.

    Identical objects are not reported: examples often repeat their Namespace or DeviceClass.
    """
    for repeat in world.repeats:
        if repeat.before.raw == repeat.document.raw:
            continue
        yield Problem(
            Entry(repeat.document, None),
            ("metadata", "name"),
            repeat.message,
            "rename or remove one of them, unless one is intended to replace the other",
        )


@RULES.rule(
    "DR007",
    "kind-custom",
    Severity.INFO,
    summary="dryrack checks only the claims of pod templates in objects of a custom kind.",
)
def kind_custom(world: World) -> Iterator[Problem]:
    """
    The definition of a custom kind is only in the cluster. dryrack checks the claims of everything
    in the object that looks like a pod template. It reports each custom kind once per file. The
    exit status stays 0.
    """
    seen: set[tuple[str, str, str]] = set()
    for document in world.documents:
        key = (document.file, document.api_version, document.kind)
        is_read = document.kind in _READ or is_own_kind(document)
        if key in seen or is_read or standing(document) is not Standing.CUSTOM:
            continue
        seen.add(key)
        kind = f"{document.kind} of {document.api_version}"
        what = f"dryrack does not check objects of the custom kind {kind}"
        yield Problem(
            Entry(document, None),
            ("kind",),
            what,
            "check the spelling of kind and apiVersion",
        )


@RULES.rule(
    "DR008",
    "own-kind-wrong",
    Severity.ERROR,
    summary="A `Scenario`, `NodeDevices` or `Catalogue` document is invalid.",
)
def own_kind_wrong(world: World) -> Iterator[Problem]:
    """
    The command that reads the document, for example `dryrack scenario run`, rejects it with the
    same message. dryrack also checks the files that a Scenario uses. No cluster stores these
    kinds.
    """
    yield from map(_problem_at, world.own_kind_faults)


@RULES.rule(
    "DR009",
    "compute-domain-wrong",
    Severity.ERROR,
    summary="A ComputeDomain is not as its definition requires.",
)
def compute_domain_wrong(world: World) -> Iterator[Problem]:
    """
    The API server refuses the object, so no controller creates the ResourceClaimTemplate that the
    pods of the domain use. `dryrack allocate` refuses it as well.
    """
    for document in filter(is_compute_domain, world.documents):
        for fault in faults(document.raw):
            yield Problem(Entry(document, None), fault.path, fault.what, fault.fix)


@RULES.rule(
    "DR010",
    "field-of-other-release",
    Severity.ERROR,
    summary="Only other Kubernetes releases have the field.",
)
def field_of_other_release(world: World) -> Iterator[Problem]:
    """
    The API server of the release drops the field, and kubectl rejects it. The option `--release`
    names the release of your cluster.
    """
    for field in world.unknown_fields:
        if field.releases:
            name = str(field.path[-1])
            gated = next((each for each in GATED_FIELDS if each.path.endswith(f".{name}")), None)
            gate = f" with the feature gate {gated.gate}" if gated else ""
            fix = f"use {gated.replacement}" if gated and gated.replacement else "remove it"
            yield Problem(
                Entry(field.document, None),
                field.path,
                f"Kubernetes {world.release.value} has no field {name!r} here; "
                f"Kubernetes {_join_names(field.releases)} has it{gate}",
                f"{fix}, or check for that release with --release {field.releases[-1].value}",
            )


@RULES.rule(
    "DR011",
    "version-of-other-release",
    Severity.ERROR,
    summary="Only other Kubernetes releases have the kind in this version.",
)
def version_of_other_release(world: World) -> Iterator[Problem]:
    """
    The API server of the release has no resource for the object. The option `--release` names the
    release of your cluster.
    """
    served = {
        release: {(each.api_version, each.kind): each for each in builtin_kinds(release)}
        for release in Release
    }
    for document in world.documents:
        key = (document.api_version, document.kind)
        releases = [release for release, kinds in served.items() if key in kinds]
        if not releases or world.release in releases:
            continue
        own = [each for each in served[world.release].values() if each.kind == document.kind]
        fix = f"write apiVersion: {own[0].api_version}" if own else "remove it"
        if own and document.api_version.startswith("scheduling.k8s.io/"):
            fix = f"run: dryrack convert --gangs native --release {world.release.value}"
        yield Problem(
            Entry(document, None),
            ("apiVersion",),
            f"Kubernetes {world.release.value} has no {document.kind} in {document.api_version}; "
            f"Kubernetes {_join_names(releases)} has it",
            f"{fix}, or check for that release with --release {releases[-1].value}",
        )


def _join_names(releases: Sequence[Release]) -> str:
    return " and ".join(each.value for each in releases)

"""
What an API server would have against objects of the kinds that stand beside claims.

Slices, claims, templates, classes and taint rules are judged by `kinds.validation`. Pods, nodes,
deployments and all others that our own control plane serves in full are judged here by its
strategies: decoded, completed with defaults and validated, as if they were created in an empty
cluster. What depends on what a cluster has, admission and names that are taken, is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver import BUILTINS, Builtin, Depth, Write, strategy_of, tidied
from dryrack.client.transport import User
from dryrack.cluster import SeededChance
from dryrack.kinds import schemas
from dryrack.kinds.convert import GROUP
from dryrack.kinds.schemas import strict_decode
from dryrack.kinds.shape import render
from dryrack.kinds.validation.problems import OMITTED, FieldProblem, Reason, required

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.apiserver import Strategy
    from dryrack.kinds.documents import Document
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.schemas.strict_decode import Conformed

# Nothing that is judged here depends on when it is.
_NOW = "2026-01-01T00:00:00Z"


class _EmptyCluster:
    """Has nothing."""

    def get(self, resource: str, namespace: str, name: str) -> Raw | None:
        return None

    def list(self, resource: str, namespace: str | None) -> Sequence[Raw]:
        return ()


class Judge:
    """Knows the kinds that our control plane serves in full."""

    def __init__(self) -> None:
        self._strategies: dict[tuple[str, str], tuple[Builtin, Strategy]] = {}
        self._kinds = {
            (f"{each.group}/{each.version}" if each.group else each.version, each.kind): each
            for each in BUILTINS
            if each.depth is Depth.FULL and each.group != GROUP and "list" in each.verbs
        }

    def problems(self, document: Document) -> tuple[FieldProblem, ...] | None:
        """What is wrong with an object; None if it is of a kind that others judge."""
        key = (document.api_version, document.kind)
        if key not in self._kinds:
            return None
        if key not in self._strategies:
            self._strategies[key] = (self._kinds[key], strategy_of(self._kinds[key]))
        kind, strategy = self._strategies[key]
        schema = schemas.schema_of(kind.group, kind.version, kind.kind)
        if schema is None:
            return None
        conformed = strict_decode.conform(schema, document.raw)
        if conformed.mismatch:
            return (_mismatch(conformed),)
        return tuple(_judged(strategy, conformed.object, _namespace(kind, document)))


def _mismatch(conformed: Conformed) -> FieldProblem:
    """The decoder's words, at the place that they speak of."""
    field, sentence = render(conformed.mismatch_path), conformed.mismatch
    return FieldProblem(
        Reason.TYPE_INVALID, field, OMITTED, sentence, fix="write what the field expects"
    )


def _namespace(kind: Builtin, document: Document) -> str:
    return (document.namespace or "default") if kind.namespaced else ""


def _judged(strategy: Strategy, obj: Raw, namespace: str) -> Sequence[FieldProblem]:
    write = Write(
        now=_NOW,
        user=User("dryrack"),
        namespace=namespace,
        subresource="",
        dry_run=True,
        chance=SeededChance(),
        lookup=_EmptyCluster(),
        warn=lambda _: None,
    )
    new = tidied(obj)
    meta = {**new["metadata"], "uid": write.chance.uuid(), "creationTimestamp": write.now}
    if namespace:
        meta["namespace"] = namespace
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = f"{meta['generateName']}x"
    new = strategy.default({**new, "metadata": meta}, write)
    new = strategy.prepare_create(new, write)
    problems = strategy.validate_create(new, write)
    if not meta.get("name") and not problems:
        return (required("metadata.name", "name or generateName is required"),)
    return problems

"""
Device configuration of one publisher format to another.

The formats themselves are in `hardware`, which reads and writes them; this step replaces the
documents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.conversion.workspace import Workspace
    from dryrack.kinds.documents import Document, Problem
    from dryrack.kinds.raw import Raw


class PublisherDocuments(Protocol):
    """The documents of the new format, the fields that they do not have, and why there are none."""

    @property
    def documents(self) -> Sequence[Raw]: ...

    @property
    def losses(self) -> Sequence[Problem]: ...

    @property
    def problems(self) -> Sequence[Problem]: ...


def convert_publishers(
    workspace: Workspace,
    target: str,
    format_of: Callable[[Document], str],
    rewrite: Callable[[Document, str, str], PublisherDocuments],
) -> None:
    """Convert all documents with device configuration to the target format."""
    for item in workspace.items:
        if item.raw is None or format_of(item.document) in ("", target):
            continue
        result = rewrite(item.document, target, workspace.texts.get(item.document.file, ""))
        workspace.notes += result.losses
        workspace.problems += result.problems
        if result.documents:
            item.raw, *item.added = result.documents

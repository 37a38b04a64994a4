"""
How a patch is refused whose result is no object of the kind.

The server shows what it tried to read: the patched object as JSON.
"""

from __future__ import annotations

from dryrack.apiserver.answer.status import StatusError, Subject, invalid
from dryrack.kinds.validation.problems import invalid as invalid_value


def invalid_patch(shown: str, detail: str) -> StatusError:
    """The refusal; it names neither the kind nor the object."""
    return invalid(Subject("", ""), "", (invalid_value("patch", shown, detail),))

"""
How a patch is refused whose result is no object of the kind.

The server shows what it tried to read: the patched object as JSON, or, of a strategic merge patch,
the patch as Go prints it.
"""

from __future__ import annotations

import json
from typing import Any

from dryrack.apiserver.answer.status import StatusError, Subject, invalid
from dryrack.apiserver.ownership.server_side_apply.fieldsets import escaped_html
from dryrack.kinds.text import go_numbers
from dryrack.kinds.validation.problems import invalid as invalid_value


def invalid_patch(shown: str, detail: str) -> StatusError:
    """The refusal; it names neither the kind nor the object."""
    return invalid(Subject("", ""), "", (invalid_value("patch", shown, detail),))


def shown_object(made: Any, live: dict[str, Any]) -> str:
    """The patched object: what the patch went through has its keys sorted, the rest has not."""
    arranged = _sorted(made, live) if isinstance(made, dict) else made
    return escaped_html(json.dumps(arranged, separators=(",", ":"), ensure_ascii=False))


def _sorted(made: dict[str, Any], live: Any) -> dict[str, Any]:
    known = live if isinstance(live, dict) else {}
    return {name: _arranged(made[name], known.get(name)) for name in sorted(made)}


def _arranged(made: Any, live: Any) -> Any:
    if made == live:
        return live
    return _sorted(made, live) if isinstance(made, dict) else made


def shown_patch(patch: Any) -> str:
    """A strategic merge patch."""
    return go_numbers.plain(patch)

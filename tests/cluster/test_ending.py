"""What a cluster leaves behind when it ends, in whatever way it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dryrack.base.errors import DryrackError
from dryrack.cluster import launching, service
from dryrack.cluster.launching import Launch
from dryrack.cluster.state import state_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize(
    ("stages", "fails", "left"),
    [
        (("API server", ""), False, []),
        (("API server",), True, []),
        (("API server", ""), True, ["log"]),
    ],
    ids=["told to stop", "never served", "failed"],
)
def test_only_a_cluster_that_failed_leaves_its_log(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    stages: tuple[str, ...],
    fails: bool,
    left: list[str],
) -> None:
    """Before it serves its starter hears what is wrong; later nobody does but the log."""

    async def serve(_: Launch, __: object, tell: Callable[[str], None]) -> None:
        state.log.write_text("words")
        for stage in stages:
            tell(stage)
        if fails:
            raise DryrackError("the scheduler has failed")

    state = state_of("one", tmp_path)
    monkeypatch.setattr(service, "serve", serve)
    try:
        launching.run(Launch(state=state), lambda _: None)
    except DryrackError:
        assert fails
    remains = sorted(path.name for path in tmp_path.rglob("*") if path != state.directory)
    assert remains == left

"""What a cluster leaves behind when it ends, in whatever way it does."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from dryrack.base.errors import DryrackError
from dryrack.cluster.private_files import write_private
from dryrack.cluster.process import launching, service
from dryrack.cluster.process.launching import Launch
from dryrack.cluster.process.state import state_of

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


def refuse(*_: object) -> None:
    """What a disk does that is full."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_cannot_be_written_whole_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk the file stays as it was, with nothing beside it, and the error names it."""
    path = tmp_path / "config"
    path.write_text("theirs")
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space left") as caught:
        write_private(path, b"ours")

    assert caught.value.filename == str(path)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("config", "theirs")]


def test_a_link_to_a_kubeconfig_stays_a_link(tmp_path: Path) -> None:
    """Those who keep theirs elsewhere find it changed there."""
    kept = tmp_path / "kept"
    link = tmp_path / "config"
    kept.write_text("theirs")
    link.symlink_to(kept)
    write_private(link, b"ours")

    assert link.is_symlink()
    assert kept.read_text() == "ours"


def test_a_full_disk_leaves_a_kubeconfig_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster that could not write the file of its user does not remove it either."""
    path = tmp_path / "config"
    path.write_text("theirs")
    monkeypatch.setattr(os, "fsync", refuse)
    launch = Launch(state=state_of("one", tmp_path / "home"), kubeconfig=path)
    with pytest.raises(OSError, match="No space left"):
        launching.run(launch, lambda _: None)

    assert path.read_text() == "theirs"
    assert list((tmp_path / "home").iterdir()) == []


def test_an_order_that_is_taken_back_leaves_no_cluster(tmp_path: Path) -> None:
    """Ctrl-C while a cluster comes up in the background ends it, and those who make its keys."""

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launching.detach(Launch(state=state_of("one", tmp_path)), interrupt)

    assert list(tmp_path.iterdir()) == []

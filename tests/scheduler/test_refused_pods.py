"""What cannot be placed costs nothing until something changes that may help it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.scheduler.gang_scenes import Faulty, member, play

from dryrack.client.errors import TransportError
from dryrack.placement import place_gang

if TYPE_CHECKING:
    from tests.scheduler.gang_scenes import Scene

    from dryrack.client.transport import Request


@pytest.fixture
def gang_decisions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The gangs that were decided about, each time."""
    decided: list[str] = []

    def counted(gang: Any, *args: Any, **kwargs: Any) -> Any:
        decided.append(gang.key.name)
        return place_gang(gang, *args, **kwargs)

    monkeypatch.setattr("dryrack.scheduler.gang_cycle.place_gang", counted)
    return decided


async def make_large_gang(scene: Scene) -> None:
    """Three members, where there are two devices."""
    await scene.create(*(member(f"g{n}", "large", 3) for n in range(3)))
    # They get their claims.
    await scene.rest(5)


def test_members_that_are_listed_one_after_the_other_are_decided_about_once(
    gang_decisions: list[str],
) -> None:
    """Whoever starts anew does not wait for further members of a gang that it has decided."""

    async def story(scene: Scene) -> None:
        await make_large_gang(scene)
        scene.start()
        await scene.rest(30)
        assert gang_decisions == ["large"]

    play(story, devices=1)


def test_a_refusal_that_could_not_be_told_is_not_decided_anew_at_once(
    gang_decisions: list[str],
) -> None:
    """The others are told all the same, and the one that was not is after the back-off."""

    async def story(scene: Scene) -> None:
        await make_large_gang(scene)
        failures = iter([True])

        async def fail_once(_: int, request: Request) -> None:
            if request.path.endswith("/pods/g0/status") and next(failures, False):
                raise TransportError("the connection was lost before the request was sent")

        scene.start(Faulty(scene.cluster.transport, before=fail_once))
        await scene.rest(0.9)
        assert [bool(await scene.told(name)) for name in ("g0", "g1", "g2")] == [False, True, True]
        assert gang_decisions == ["large"]

        await scene.rest(1)
        assert await scene.told("g0") == await scene.told("g1")
        assert gang_decisions == ["large"] * 2

    play(story, devices=1)

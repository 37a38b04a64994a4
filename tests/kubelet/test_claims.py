"""Calls to drivers for the claims of pods, and the checkpoint, over real sockets."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.kubelet.programs import DRIVER, Program, claim, short_directory, until

from dryrack.cluster import SystemClock
from dryrack.kubelet import CheckpointError
from dryrack.kubelet.claims import CHECKPOINT, NodeClaims
from dryrack.kubelet.instance import CallError
from dryrack.kubelet.registration import Registrations

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

directory = pytest.fixture(short_directory)
PREPARE = "NodePrepareResources"
UNPREPARE = "NodeUnprepareResources"


@asynccontextmanager
async def node(program: Program) -> AsyncIterator[NodeClaims]:
    found = Registrations(
        "node-1", program.directory, clock=SystemClock(), on_change=lambda _: None
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(found.run())
        async with program.serving():
            await until(lambda: bool(found.drivers))
            yield NodeClaims(program.directory, found)
        task.cancel()


@pytest.mark.parametrize("version", ["v1.DRAPlugin", "v1beta1.DRAPlugin"])
def test_a_claim_is_prepared_once_for_all_its_pods(directory: Path, version: str) -> None:
    """The last pod unprepares it."""

    def answer(request: Any, response: Any) -> None:
        for each in request.claims if hasattr(response, "claims") else ():
            entry = response.claims[each.uid]
            if hasattr(entry, "devices"):
                entry.devices.add(
                    request_names=["gpu"],
                    pool_name="node-1",
                    device_name="gpu-0",
                    cdi_device_ids=["example.com/gpu=0"],
                )

    async def scenario() -> None:
        program = Program(directory, versions=(version,), answer=answer)
        async with node(program) as claims:
            await claims.prepare("pod-1", [claim()])
            await claims.prepare("pod-2", [claim()])
            await claims.prepare("pod-2", [claim()])
            info = claims.by_uid("uid-one")
            assert info is not None
            [device] = info.devices[DRIVER]
            assert (device.device, device.cdi_ids) == ("gpu-0", ("example.com/gpu=0",))
            again = NodeClaims(directory, None)  # type: ignore[arg-type]
            again.load()
            [kept] = again.infos
            assert (kept.pods, kept.devices) == ({"pod-1", "pod-2"}, info.devices)
            assert not kept.is_prepared
            await claims.unprepare("pod-1")
            assert [each for each, _ in program.calls] == [PREPARE]
            await claims.unprepare("pod-2")
            await claims.unprepare("pod-2")
            assert not claims.infos
        assert program.calls == [(PREPARE, ("uid-one",)), (UNPREPARE, ("uid-one",))]

    asyncio.run(scenario())


def fail(request: Any, response: Any) -> None:
    response.claims["uid-one"].error = "no power"


def skip(request: Any, response: Any) -> None:
    response.claims.clear()


def invent(request: Any, response: Any) -> None:
    response.claims["uid-two"].SetInParent()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (fail, f"{PREPARE} failed for ResourceClaim one: no power"),
        (skip, f"{PREPARE} skipped 1 ResourceClaims"),
        (invent, f"{PREPARE} returned result for unknown claim UID uid-two"),
    ],
)
def test_a_wrong_answer_has_the_text_of_the_kubelet(
    directory: Path, answer: Callable[[Any, Any], None], error: str
) -> None:
    """The claim is not prepared; the next try asks again, and the pod can be deleted."""

    async def scenario() -> None:
        program = Program(directory, answer=answer)
        async with node(program) as claims:
            with pytest.raises(CallError) as caught:
                await claims.prepare("pod-1", [claim()])
            assert str(caught.value) == error
            program.answer = None
            await claims.prepare("pod-1", [claim()])
            await claims.unprepare("pod-1")
        assert [each for each, _ in program.calls] == [PREPARE, PREPARE, UNPREPARE]

    asyncio.run(scenario())


def test_a_driver_that_does_not_exist_leaves_no_trace(directory: Path) -> None:
    """A pod that waits for it can be deleted without a call."""

    async def scenario() -> None:
        async with node(Program(directory)) as claims:
            with pytest.raises(CallError, match=r"^DRA driver other.com is not registered$"):
                await claims.prepare("pod-1", [claim(), claim("two", driver="other.com")])
            assert not claims.infos

    asyncio.run(scenario())


def test_a_claim_with_the_name_of_a_prepared_one_waits(directory: Path) -> None:
    """The old claim of this name has another UID, and must be unprepared first."""

    async def scenario() -> None:
        async with node(Program(directory)) as claims:
            await claims.prepare("pod-1", [claim()])
            with pytest.raises(CallError, match="different UID uid-one still exists"):
                await claims.prepare("pod-2", [claim("one", "uid-new")])
            await claims.unprepare("pod-1")
            await claims.prepare("pod-2", [claim("one", "uid-new")])

    asyncio.run(scenario())


def test_skipped_operations_are_not_called(directory: Path) -> None:
    """A driver whose devices all skip an operation gets no call for it."""

    async def scenario() -> None:
        program = Program(directory)
        async with node(program) as claims:
            await claims.prepare("pod-1", [claim(skipNodeOperations=["*"])])
            await claims.unprepare("pod-1")
            await claims.prepare("pod-1", [claim(skipNodeOperations=[UNPREPARE])])
            await claims.unprepare("pod-1")
        assert program.calls == [(PREPARE, ("uid-one",))]

    asyncio.run(scenario())


@pytest.mark.parametrize("text", ["", "{", '{"Data": "{}", "Checksum": 1}', '{"Data": 1}', "[]"])
def test_a_damaged_checkpoint_is_an_error_with_its_path(tmp_path: Path, text: str) -> None:
    """The message says how to go on."""
    (tmp_path / CHECKPOINT).write_text(text)
    with pytest.raises(CheckpointError) as caught:
        NodeClaims(tmp_path, None).load()  # type: ignore[arg-type]

    assert str(caught.value).startswith(f"{tmp_path}/{CHECKPOINT}: damaged checkpoint: ")
    assert "delete the file" in str(caught.value)


def test_the_checkpoint_has_the_format_of_the_kubelet(directory: Path) -> None:
    """Tools that read dra_manager_state of a real node read this one."""

    async def scenario() -> None:
        async with node(Program(directory)) as claims:
            await claims.prepare("pod-1", [claim()])

    asyncio.run(scenario())
    data = json.loads(json.loads((directory / CHECKPOINT).read_text())["Data"])

    assert data == {
        "kind": "DRACheckpoint",
        "apiVersion": "checkpoint.dra.kubelet.k8s.io/v1",
        "ClaimInfoStateList": [
            {
                "ClaimUID": "uid-one",
                "ClaimName": "one",
                "Namespace": "team",
                "PodUIDs": {"pod-1": {}},
                "DriverState": {DRIVER: {"Devices": []}},
            }
        ],
    }


@pytest.mark.parametrize("method", [PREPARE, UNPREPARE])
def test_an_answer_that_is_no_message_is_an_error_of_the_call(directory: Path, method: str) -> None:
    """The kubelet of the node goes on, and the next call can succeed."""

    async def scenario() -> None:
        program = Program(directory, garbage={method: b"\xff\xff\xff"})
        async with node(program) as claims:
            if method == UNPREPARE:
                await claims.prepare("pod-1", [claim()])
            with pytest.raises(CallError, match=f"{method}: rpc error: code = Internal desc"):
                await (
                    claims.unprepare("pod-1")
                    if method == UNPREPARE
                    else claims.prepare("pod-1", [claim()])
                )

    asyncio.run(scenario())

"""The plugin behind its sockets, called as a kubelet calls it."""

from __future__ import annotations

import asyncio
import json
import random
import re
import stat
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.protobuf import descriptor_pb2
from tests.kubeletplugin.nodes import NODE, bench

from dryrack import kubeletapi
from dryrack.client.endpoints import NODES, SLICES
from dryrack.client.timekeeping import settle
from dryrack.cluster.process.node_plugins import REGISTRATION_SECONDS, NodePlugins, NodeSite
from dryrack.kubeletapi import DRA_V1, DRA_V1BETA1, REGISTRATION, message
from dryrack.kubeletplugin import Sockets, serving_kubelet
from dryrack.kubeletplugin.kinds.fake import DRIVER

ODD_NAMES = ("../../../etc/passwd", "/", "..", "a\\b", "%2e%2e", "x" * 300, "")

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.kubeletplugin.nodes import Bench


@pytest.fixture
def short_path() -> Iterator[Path]:
    """The path of a socket has 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="dryrack-") as directory:
        yield Path(directory)


async def call(path: Path, method: str, request: Any, answer: Any) -> Any:
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        ask: Any = channel.unary_unary(
            method,
            request_serializer=lambda each: each.SerializeToString(),
            response_deserializer=answer.FromString,
        )
        return await ask(request, timeout=10)


async def dra(sockets: Sockets, package: str, verb: str, claims: list[Any]) -> Any:
    request = message(package, f"{verb}Request")()
    for claim in claims:
        request.claims.add(namespace=claim.namespace, name=claim.name, uid=claim.uid)
    method = f"/{package}.DRAPlugin/{verb}"
    return await call(sockets.dra, method, request, message(package, f"{verb}Response"))


def of(world: Bench) -> Sockets:
    return Sockets.of(world.directory, DRIVER)


def test_the_kubelet_is_told_where_the_driver_is(short_path: Path) -> None:
    """GetInfo has driver, socket and versions, the newest first; other users cannot connect."""

    async def scenario() -> tuple[Any, list[int]]:
        world = bench(short_path)
        async with serving_kubelet(world.plugin(), of(world)):
            modes = [path.stat().st_mode for path in (of(world).dra, of(world).registration)]
            path = of(world).registration
            name = f"/{REGISTRATION}.Registration/GetInfo"
            request = message(REGISTRATION, "InfoRequest")()
            info = await call(path, name, request, message(REGISTRATION, "PluginInfo"))
        return info, modes

    info, modes = asyncio.run(scenario())

    assert (info.type, info.name) == ("DRAPlugin", DRIVER)
    assert info.endpoint == str(short_path / "plugins" / DRIVER / "dra.sock")
    assert list(info.supported_versions) == ["v1.DRAPlugin", "v1beta1.DRAPlugin"]
    assert [(stat.S_ISSOCK(mode), stat.S_IMODE(mode)) for mode in modes] == [(True, 0o600)] * 2
    assert list(short_path.rglob("*.sock")) == []


@pytest.mark.parametrize("registers", [True, False])
def test_a_plugin_warns_if_no_kubelet_registers_it(
    short_path: Path, caplog: pytest.LogCaptureFixture, *, registers: bool
) -> None:
    """The warning names the driver and the socket; a registered plugin logs no warning."""

    async def scenario() -> None:
        world = bench(short_path)
        await world.site.client.create(NODES, {"metadata": {"name": NODE}})
        site = NodeSite(NODE, short_path, short_path / "cdi")
        clock = world.site.clock
        plugins = NodePlugins(
            world.site.client, [world.kind], site, clock=clock, chance=world.site.chance
        )
        stopping = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(plugins.run(stopping), name="plugin")
            while not (await world.site.client.list(SLICES)).items:
                await settle()
            if registers:
                status = message(REGISTRATION, "RegistrationStatus")(plugin_registered=True)
                name = f"/{REGISTRATION}.Registration/NotifyRegistrationStatus"
                answer = message(REGISTRATION, "RegistrationStatusResponse")
                await call(site.sockets(DRIVER).registration, name, status, answer)
            await clock.advance(REGISTRATION_SECONDS)
            stopping.set()

    asyncio.run(scenario())

    warnings = [each for each in caplog.records if "no kubelet has registered" in each.msg]
    expected = [] if registers else [(DRIVER, str(Sockets.of(short_path, DRIVER).registration))]
    assert [(vars(each)["driver"], vars(each)["socket"]) for each in warnings] == expected


@pytest.mark.parametrize("package", [DRA_V1, DRA_V1BETA1])
def test_a_claim_is_prepared_and_given_back(short_path: Path, package: str) -> None:
    """The answer names the CDI devices, their spec is on disk, and unprepare removes it."""

    async def scenario() -> tuple[Any, Any, Any, list[str]]:
        world = bench(short_path)
        claim = await world.claim("mine", ["fake-0", "fake-3"])
        plugin = world.plugin()
        plugin.recover()
        async with serving_kubelet(plugin, of(world)):
            prepared = await dra(of(world), package, "NodePrepareResources", [claim])
            [path] = world.cdi.iterdir()
            spec = json.loads(path.read_text())
            unprepared = await dra(of(world), package, "NodeUnprepareResources", [claim])
        return (prepared.claims[claim.uid], spec, unprepared, [p.name for p in world.cdi.iterdir()])

    answer, spec, unprepared, left = asyncio.run(scenario())

    assert answer.error == ""
    assert [(d.pool_name, d.device_name) for d in answer.devices] == [
        (NODE, "fake-0"),
        (NODE, "fake-3"),
    ]
    assert [list(d.request_names) for d in answer.devices] == [["req"], ["req"]]
    offered = [f"{spec['kind']}={device['name']}" for device in spec["devices"]]
    assert [list(d.cdi_device_ids) for d in answer.devices] == [[each] for each in offered]
    variables = [env for d in spec["devices"] for env in d["containerEdits"]["env"]]
    assert [env.split("=")[0] for env in variables if re.match(r"FAKE_DEVICE_\d", env)] == [
        "FAKE_DEVICE_0",
        "FAKE_DEVICE_1",
    ]
    assert [entry.error for entry in unprepared.claims.values()] == [""]
    assert left == []


def test_an_error_is_the_answer_for_its_claim_alone(short_path: Path) -> None:
    """The answer has every requested UID, with the error of those that failed."""

    async def scenario() -> tuple[Any, str, str]:
        world = bench(short_path)
        good = await world.claim("good", ["fake-0"])
        bad = await world.claim("bad", ["fake-99"])
        plugin = world.plugin()
        plugin.recover()
        async with serving_kubelet(plugin, of(world)):
            answer = await dra(of(world), DRA_V1, "NodePrepareResources", [good, bad])
        return answer, good.uid, bad.uid

    answer, good, bad = asyncio.run(scenario())

    assert set(answer.claims) == {good, bad}
    assert (answer.claims[good].error, len(answer.claims[good].devices)) == ("", 1)
    assert "fake-99 is not on node node-1" in answer.claims[bad].error


def test_messages_that_make_no_sense_do_no_harm(short_path: Path) -> None:
    """Bytes that are no message are refused, odd names are answered, and the next call is well."""

    async def scenario() -> tuple[list[str], list[str], Any]:
        world = bench(short_path)
        claim = await world.claim("mine", ["fake-0"])
        plugin = world.plugin()
        plugin.recover()
        dice = random.Random(1)
        odd = [replace(claim, name=name, namespace=name) for name in ODD_NAMES]
        async with serving_kubelet(plugin, of(world)):
            codes = [
                await _code(of(world), dice.randbytes(dice.randint(1, 200))) for _ in range(50)
            ]
            told = [
                (await dra(of(world), DRA_V1, "NodePrepareResources", [each])).claims[each.uid]
                for each in odd
            ]
            good = await dra(of(world), DRA_V1, "NodePrepareResources", [claim])
        return codes, [each.error for each in told], good.claims[claim.uid]

    codes, told, good = asyncio.run(scenario())
    files = [path for path in short_path.rglob("*") if path.is_file()]

    assert "INVALID_ARGUMENT" in codes
    assert set(codes) <= {"INVALID_ARGUMENT", "OK"}
    assert all(told)
    assert len(good.devices) == 1
    assert len(files) == 2


async def _code(sockets: Sockets, data: bytes) -> str:
    async with grpc.aio.insecure_channel(f"unix:{sockets.dra}") as channel:
        ask: Any = channel.unary_unary(f"/{DRA_V1}.DRAPlugin/NodePrepareResources")
        try:
            await ask(data, timeout=10)
        except grpc.aio.AioRpcError as error:
            return error.code().name
        return "OK"


def test_the_descriptor_set_is_what_the_proto_files_say() -> None:
    """Every message, field, number and method of the sources is in the compiled set."""
    folder = Path(kubeletapi.__file__).parent
    compiled = descriptor_pb2.FileDescriptorSet.FromString((folder / "kubelet.pb").read_bytes())
    written = {path.name: declared(path.read_text()) for path in folder.glob("*.proto")}

    assert {file.name: described(file) for file in compiled.file} == written
    assert all(len(each) >= 6 for each in written.values())


def declared(text: str) -> set[str]:
    found = {f"package {name}" for name in re.findall(r"^package (\S+);", text, re.M)}
    for name, body in re.findall(r"^message (\w+) \{\n(.*?)^\}", text, re.M | re.S):
        found.add(name)
        for field, number in re.findall(r"(\w+) = (\d+);", body):
            found.add(f"{name}.{field}={number}")
    for method, asked, answered in re.findall(
        r"rpc (\w+)\((\w+)\) returns \((?:stream )?(\w+)\)", text
    ):
        found.add(f"{method}: {asked} -> {answered}")
    return found


def described(file: descriptor_pb2.FileDescriptorProto) -> set[str]:
    found = {f"package {file.package}"}
    for each in file.message_type:
        found |= {each.name, *(f"{each.name}.{f.name}={f.number}" for f in each.field)}
    for service in file.service:
        for method in service.method:
            ends = (name.rpartition(".")[2] for name in (method.input_type, method.output_type))
            found.add(f"{method.name}: {' -> '.join(ends)}")
    return found

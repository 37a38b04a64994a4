"""The guarantees of prepare and unprepare, in any order and after any state."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

import pytest
from tests.kubeletplugin.nodes import NODE, bench, environment

from dryrack.client.endpoints import CLAIMS
from dryrack.kubeletplugin import DevicesError, read_devices
from dryrack.kubeletplugin.kinds.fake import DRIVER, FakeKind, uuid_of, uuids_of
from dryrack.kubeletplugin.kinds.file import FileKind

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kubeletplugin.nodes import Bench

    from dryrack.kubeletplugin import ClaimReference, NodePlugin

PARAMETERS = {"apiVersion": f"{DRIVER}/v1alpha1", "kind": "FakeClaimParameters"}


def started(world: Bench) -> NodePlugin:
    plugin = world.plugin()
    plugin.recover()
    return plugin


async def refusal(plugin: NodePlugin, claim: ClaimReference) -> str:
    answer = (await plugin.prepare([claim]))[claim.uid]
    assert not isinstance(answer, tuple), answer
    return str(answer)


def devices(environment: dict[str, str]) -> dict[str, str]:
    prefix = "FAKE_DEVICE_"
    return {
        key.removeprefix(prefix): value
        for key, value in environment.items()
        if key.startswith(prefix) and key != f"{prefix}MODEL"
    }


def test_a_container_learns_its_devices_node_and_driver(tmp_path: Path) -> None:
    """The variables are those of the fake driver, and UUIDs are those of the slices."""

    async def scenario() -> dict[str, str]:
        world = bench(tmp_path)
        claim = await world.claim("mine", ["fake-2"])
        await started(world).prepare([claim])
        return environment(world, claim.uid)

    published = {d.name: d.attributes["uuid"].string_value for d in FakeKind().devices(NODE)}

    assert asyncio.run(scenario()) == {
        "FAKE_DEVICE_0": published["fake-2"],
        "FAKE_NODE_NAME": NODE,
        "DRA_RESOURCE_DRIVER_NAME": DRIVER,
    }
    assert len(set(published.values())) == 8
    assert uuid_of("node-2", "fake-2") != published["fake-2"] == uuid_of(NODE, "fake-2")


async def test_asking_again_changes_nothing(tmp_path: Path) -> None:
    """Prepare and unprepare may be repeated, also by another process, and without the API."""
    world = bench(tmp_path)
    claim = await world.claim("mine", ["fake-0"])
    plugin = started(world)
    first = await plugin.prepare([claim])
    await world.site.client.delete(CLAIMS, "mine", namespace="default")
    again = [await plugin.prepare([claim]), await started(world).prepare([claim])]
    plugin = started(world)
    gone = [await plugin.unprepare([claim]) for _ in range(3)]

    assert isinstance(first[claim.uid], tuple)
    assert again == [first, first]
    assert gone == [{claim.uid: None}] * 3


def test_two_claims_in_a_container_never_share_a_number(tmp_path: Path) -> None:
    """Each device has a number of its own, whichever claim was prepared when."""

    async def scenario() -> list[set[str]]:
        world = bench(tmp_path)
        plugin = started(world)
        shared = await world.claim("shared", ["fake-0"], pods=["a"])
        other = await world.claim("other", ["fake-1", "fake-2"], pods=["b"])
        await plugin.prepare([shared])
        await plugin.prepare([other])
        own = await world.claim("own", ["fake-3"], pods=["c"], of_pod="c")
        second = await world.claim("second", ["fake-4"], pods=["c"], of_pod="c")
        # Pod c uses all four; the kubelet asks for those alone that are not prepared.
        await plugin.prepare([own, second])
        return [set(devices(environment(world, c.uid))) for c in (shared, other, own, second)]

    assert asyncio.run(scenario()) == [{"0"}, {"1", "2"}, {"3"}, {"4"}]


def test_pods_that_share_nothing_both_count_from_0(tmp_path: Path) -> None:
    """Claims made for different pods are never in one container."""

    async def scenario() -> list[set[str]]:
        world = bench(tmp_path)
        plugin = started(world)
        claims = [
            await world.claim(f"claim-{pod}", [f"fake-{place}"], pods=[pod], of_pod=pod)
            for place, pod in enumerate(("a", "b"))
        ]
        for claim in claims:
            await plugin.prepare([claim])
        return [set(devices(environment(world, claim.uid))) for claim in claims]

    assert asyncio.run(scenario()) == [{"0"}, {"0"}]


def test_split_devices_are_children_with_uuids_of_their_own(tmp_path: Path) -> None:
    """Four devices split in two are eight children; not split, they are themselves."""

    async def scenario(split: int) -> dict[str, str]:
        world = bench(tmp_path / str(split))
        parameters = PARAMETERS | {"spec": {"count": 4, "split": split}}
        names = [f"fake-{place}" for place in range(4)]
        claim = await world.claim("split", names, parameters=parameters)
        await started(world).prepare([claim])
        return devices(environment(world, claim.uid))

    parents = [uuid_of(NODE, f"fake-{place}") for place in range(4)]
    children = [child for place in range(4) for child in uuids_of(NODE, f"fake-{place}", 2)]

    assert list(asyncio.run(scenario(1)).values()) == parents
    assert asyncio.run(scenario(2)) == {str(n): child for n, child in enumerate(children)}
    assert len({*children, *parents}) == 12


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        (PARAMETERS | {"count": 0}, "invalid number of Fakes requested: count=0"),
        (PARAMETERS | {"count": 3}, "count=3, but the request has 1 devices"),
        (PARAMETERS | {"split": 0}, "split=0; use 1 to 1000"),
        (PARAMETERS | {"split": "x"}, "Expected `int | null`, got `str` - at `$.split`"),
        (PARAMETERS | {"splitt": 2}, "unknown field `splitt`"),
        (PARAMETERS | {"selector": {"model": "ULTRA_10"}}, "the parameters select 'ULTRA_10'"),
        (
            {"apiVersion": "v1", "kind": "GpuConfig"},
            "expected kind FakeClaimParameters, got 'GpuConfig'",
        ),
    ],
)
def test_parameters_that_make_no_sense_are_told(
    tmp_path: Path, parameters: dict[str, Any], complaint: str
) -> None:
    """The kubelet's event names claim, request, what is wrong and what would be right."""

    async def scenario() -> str:
        world = bench(tmp_path)
        claim = await world.claim("odd", ["fake-0"], parameters=parameters)
        return await refusal(started(world), claim)

    told = asyncio.run(scenario())

    assert told.startswith("claim default/odd: ")
    assert complaint in told
    assert list((tmp_path / "cdi").iterdir()) == []


def test_a_device_of_another_claim_is_refused_until_it_is_free(tmp_path: Path) -> None:
    """A device that is allocated twice is refused until the first claim ends."""

    async def scenario() -> tuple[str, Any]:
        world = bench(tmp_path)
        plugin = started(world)
        first, second = [await world.claim(name, ["fake-0"]) for name in ("first", "second")]
        await plugin.prepare([first])
        told = await refusal(plugin, second)
        await plugin.unprepare([first])
        return told, (await plugin.prepare([second]))[second.uid]

    told, answer = asyncio.run(scenario())

    assert "device node-1/fake-0 is prepared for claim default/first" in told
    assert isinstance(answer, tuple)


def test_a_claim_that_was_replaced_is_refused(tmp_path: Path) -> None:
    """A namesake is not the claim that the kubelet means."""

    async def scenario() -> str:
        world = bench(tmp_path)
        claim = await world.claim("mine", ["fake-0"])
        return await refusal(started(world), replace(claim, uid="0000-0000"))

    assert "claim default/mine: the claim was replaced" in asyncio.run(scenario())


@pytest.mark.parametrize("uid", ["", "../../etc/passwd", "a/b", ".", "a\0b", "x" * 64, "a b"])
def test_a_hostile_uid_reaches_no_file(tmp_path: Path, uid: str) -> None:
    """An invalid UID is refused by prepare and unprepare before any file changes."""

    async def scenario() -> list[Any]:
        world = bench(tmp_path)
        claim = await world.claim("mine", ["fake-0"])
        plugin = started(world)
        odd = replace(claim, uid=uid)
        return [(await plugin.prepare([odd]))[uid], (await plugin.unprepare([odd]))[uid]]

    answers = asyncio.run(scenario())

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert ["claim UID" in str(answer) for answer in answers] == [True, True]


def test_many_calls_at_once_give_every_claim_its_devices(tmp_path: Path) -> None:
    """Prepare and unprepare of many claims, each asked twice, at the same time, in one file."""

    async def scenario() -> tuple[list[Any], str, int]:
        world = bench(tmp_path, FileKind(1, str(tmp_path / "etc"), is_shared=True))
        plugin = started(world)
        claims = [
            await world.claim(f"claim-{n}", ["file1"], pods=[f"pod-{n}"], share_id=share(n))
            for n in range(20)
        ]
        answers = await asyncio.gather(*(plugin.prepare([c]) for c in (*claims, *claims)))
        lines = (tmp_path / "etc" / "file1").read_text()
        await asyncio.gather(*(plugin.unprepare([c]) for c in (*claims, *claims)))
        left = (tmp_path / "etc" / "file1").read_text()
        assert left == ""
        return [each for answer in answers for each in answer.values()], lines, len(claims)

    answers, lines, count = asyncio.run(scenario())

    assert all(isinstance(answer, tuple) for answer in answers)
    assert sorted(lines.splitlines()) == sorted(f"pod-{n}" for n in range(count))


def share(number: int) -> str:
    return f"00000000-0000-0000-0000-{number:012}"


def test_specs_that_a_reboot_took_are_written_again(tmp_path: Path) -> None:
    """/var/run is empty after a reboot; the checkpoint is not."""

    async def scenario() -> bool:
        world = bench(tmp_path)
        claim = await world.claim("mine", ["fake-0"])
        await started(world).prepare([claim])
        before = environment(world, claim.uid)
        for path in world.cdi.iterdir():
            path.unlink()
        world.cdi.rmdir()
        started(world)
        return environment(world, claim.uid) == before

    assert asyncio.run(scenario())


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"\xff\xfe", b'{"version":1,"checksum":1,"record":{}}', b'{"version":2}'],
)
async def test_a_damaged_checkpoint_is_set_aside_and_rebuilt(tmp_path: Path, damage: bytes) -> None:
    """The plugin starts, keeps the damaged file, and learns from the API what was in it."""
    world = bench(tmp_path)
    claim = await world.claim("mine", ["fake-0"])
    other = await world.claim("other", ["fake-1"])
    await started(world).prepare([claim, other])
    path = world.plugin_directory / "checkpoints" / f"{claim.uid}.json"
    path.write_bytes(damage)
    plugin = world.plugin()
    [told] = plugin.recover()
    assert (told.uid, told.set_aside.read_bytes()) == (claim.uid, damage)
    assert [record.uid for record in plugin.records] == [other.uid]
    await plugin.reconcile()
    assert {record.uid for record in plugin.records} == {claim.uid, other.uid}
    assert devices(environment(world, claim.uid))
    assert started(world).records == plugin.records


def test_a_spec_that_no_claim_has_is_removed_and_others_files_are_not(tmp_path: Path) -> None:
    """Also if the checkpoint is lost and the claim is gone, nothing of it is left for a runtime."""

    async def scenario() -> None:
        world = bench(tmp_path)
        claim = await world.claim("mine", ["fake-0"])
        await started(world).prepare([claim])
        (world.plugin_directory / "checkpoints" / f"{claim.uid}.json").write_bytes(b"")
        for name in (f"{DRIVER}.json", f"x-{DRIVER}-1.json", f".{DRIVER}-1.json.tmp"):
            (world.cdi / name).write_text("{}")
        await world.site.client.delete(CLAIMS, "mine", namespace="default")
        plugin = started(world)
        await plugin.reconcile()
        assert plugin.records == ()

    asyncio.run(scenario())

    assert sorted(path.name for path in (tmp_path / "cdi").iterdir()) == [
        f"{DRIVER}.json",
        f"x-{DRIVER}-1.json",
    ]


def test_claims_without_devices_here_are_unprepared(tmp_path: Path) -> None:
    """One that is gone, one that was replaced and one that was deallocated; the others stay."""

    async def scenario() -> list[str]:
        world = bench(tmp_path)
        client = world.site.client
        plugin = started(world)
        claims = {
            name: await world.claim(name, [f"fake-{place}"])
            for place, name in enumerate(("gone", "replaced", "deallocated", "used"))
        }
        await plugin.prepare(list(claims.values()))
        for name in ("gone", "replaced"):
            await client.delete(CLAIMS, name, namespace="default")
        await world.claim("replaced", ["fake-1"])
        raw = await client.get(CLAIMS, "deallocated", "default")
        await client.update(CLAIMS, raw | {"status": {}}, subresource="status")
        await plugin.reconcile()
        return [record.name for record in plugin.records]

    assert asyncio.run(scenario()) == ["used"]


def test_a_kind_of_another_package_is_found_by_its_entry_point() -> None:
    """`--devices NAME` names it as the package does; drivers and kinds are there once."""
    entry = EntryPoint("mine", "dryrack.kubeletplugin.kinds.fake:fake_kind", "dryrack.device_kinds")

    assert [kind.driver for kind in read_devices(["mine:3", "file"], [entry])] == [
        DRIVER,
        "file.dra.example.com",
    ]
    with pytest.raises(
        DevicesError,
        match="unknown device kind; use one of: catalogue, cpu, fake, file, gpu, mine, net",
    ):
        read_devices(["theirs"], [entry])
    with pytest.raises(DevicesError, match=r"mine:3 already provides driver"):
        read_devices(["mine:3", "fake"], [entry])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "for example fake:8"),
        ("fake:", "the count must be a positive integer, got ''"),
        ("fake:0", "a positive integer, got '0'"),
        ("fake:-1", "a positive integer, got '-1'"),
        ("fake:eight", "a positive integer, got 'eight'"),
        ("fake:10001", "a node has at most 10000"),
        ("fake:1,model", "'model' is not option=value"),
        ("fake:1,modell=x", "no option 'modell'; use one of: model, skip-node-operations, split"),
        ("fake:1,skip-node-operations=some", "unknown value; use none or all"),
        ("fake:1,split=0", "split='0': use a number from 1 to 1000"),
        ("fake:5000,split=4", "a node has at most 2000"),
        ("file,shared=maybe", "shared='maybe': use true or false"),
        ("file,directory=etc", "an absolute path"),
    ],
)
def test_devices_that_make_no_sense_are_told(text: str, complaint: str) -> None:
    """The error of an invalid value of --devices names a valid one."""
    with pytest.raises(DevicesError, match=complaint):
        read_devices([text], [])

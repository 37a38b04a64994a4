"""The tables of devices, claims and gangs: columns, rows and footer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.base.ages import human
from dryrack.cli.output import many
from dryrack.client.timekeeping import seconds_of
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.resource import DeviceTaintRule, ResourceClaim, ResourceSlice
from dryrack.placement import DeviceState, claims_of, devices_of, gangs_of, summary_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dryrack.kinds.meta import KubernetesObject
    from dryrack.placement import ClaimView, DeviceView, GangView, ModelSummary

NOTHING = "-"
# Maximum number of equal free devices in rows of their own, and of names in a cell.
_FREE_SHOWN_MAX = 8
_NAMES_MAX = 3
_WORDS_MAX = 60
_WIDE_COLUMNS = ("CLAIM", "POD", "LEFT", "TAINTS", "ATTRIBUTES")


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a row, and the key of its object."""

    key: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table with its footer, and the same data for programs."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    # The data for -o json and yaml.
    document: Callable[[], Any]
    names: tuple[str, ...]
    # Lines below the table.
    footer: tuple[str, ...] = ()
    # The text for a table without rows.
    empty: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The options of a table."""

    now: float
    is_wide: bool = False
    # True if the table has a column for the namespace.
    namespaces: bool = False
    node: str = ""


def device_sheet(objects: Sequence[KubernetesObject], look: Look) -> Sheet:
    """Return the devices by node, and how many are free by model."""
    nodes = [each for each in objects if isinstance(each, Node)]
    views = devices_of(
        [each for each in objects if isinstance(each, ResourceSlice)],
        [each for each in objects if isinstance(each, ResourceClaim)],
        [each for each in objects if isinstance(each, DeviceTaintRule)],
        nodes or None,
    )
    if look.node:
        views = tuple(each for each in views if each.node == look.node)
    summary = summary_of(views)
    columns: tuple[str, ...] = ("NODE", "DEVICE", "MODEL", "STATE", "HELD BY")
    if look.is_wide:
        columns = ("NODE", "DRIVER", "POOL", *columns[1:4], *_WIDE_COLUMNS)
    rows = map(_wide_device_row, views) if look.is_wide else _device_rows(views)
    where = f" on node {look.node}" if look.node else ""
    return Sheet(
        columns,
        tuple(rows),
        lambda: {
            "devices": [each.document() for each in views],
            "summary": [each.document() for each in summary],
        },
        tuple(each.name for each in views),
        (*map(_summary_line, summary), *_conflict_lines(views)),
        f"no devices{where}; a driver publishes devices as ResourceSlices (dryrack up, publish)",
    )


def claim_sheet(objects: Sequence[KubernetesObject], look: Look) -> Sheet:
    """Return the claims with their devices and pods."""
    views = claims_of(
        [each for each in objects if isinstance(each, ResourceClaim)],
        [each for each in objects if isinstance(each, Pod)],
    )
    columns: tuple[str, ...] = ("NAME", "STATE", "DEVICES", "NODE", "PODS", "AGE")
    columns = (*columns, "REQUESTS") if look.is_wide else columns
    return Sheet(
        ("NAMESPACE", *columns) if look.namespaces else columns,
        tuple(_claim_row(each, look) for each in views),
        lambda: {"claims": [each.document() for each in views]},
        tuple(f"resourceclaim.resource.k8s.io/{each.name}" for each in views),
        empty=f"no claims{_elsewhere(look)}",
    )


def gang_sheet(objects: Sequence[KubernetesObject], look: Look) -> Sheet:
    """Return the gangs with their placed and waiting pods."""
    pods = [each for each in objects if isinstance(each, Pod)]
    views = gangs_of(pods, [each for each in objects if not isinstance(each, Pod)])
    columns = ("NAME", "KIND", "MIN", "PLACED", "WAITING", "STATUS", "AGE", "WHY")
    return Sheet(
        ("NAMESPACE", *columns) if look.namespaces else columns,
        tuple(_gang_row(each, look) for each in views),
        lambda: {"gangs": [each.document() for each in views]},
        tuple(f"gang/{each.name}" for each in views),
        empty=f"no gangs{_elsewhere(look)}",
    )


def _elsewhere(look: Look) -> str:
    return "" if look.namespaces else " in this namespace; to show all namespaces, add -A"


def _device_rows(views: Iterable[DeviceView]) -> Iterable[Row]:
    """Yield a row for each device; many equal free devices share one row."""
    groups: dict[object, list[DeviceView]] = {}
    for each in views:
        groups.setdefault(_group_key(each), []).append(each)
    for alike in groups.values():
        shown = alike if len(alike) <= _FREE_SHOWN_MAX else alike[:1]
        for each in shown:
            more = len(alike) - 1 if shown is not alike else 0
            name = f"{each.device} and {more} like it" if more else each.device
            cells = (each.node or NOTHING, name, each.model or NOTHING, _states(each))
            yield Row(each.name, (*cells, _held_by(each)))


def _group_key(each: DeviceView) -> object:
    if each.holders:
        return each.name
    return each.node, each.driver, each.pool, each.model, each.state


def _wide_device_row(each: DeviceView) -> Row:
    left = ", ".join(f"{name} {amount}" for name, amount in each.left.items())
    attributes = ", ".join(f"{name}={value}" for name, value in each.attributes.items())
    first = (each.node or NOTHING, each.driver, each.pool, each.device, each.model or NOTHING)
    last = (left or NOTHING, ", ".join(each.taints) or NOTHING, attributes or NOTHING)
    return Row(each.name, (*first, _states(each), *_holders(each), *last))


def _states(each: DeviceView) -> str:
    """Return the state of a device; both states of one that is in use and tainted."""
    if each.takers and each.state is DeviceState.TAINTED:
        return f"{DeviceState.SHARED}, {each.state}"
    if each.state is DeviceState.ALLOCATED and each.is_tainted:
        return f"{each.state}, {DeviceState.TAINTED}"
    return str(each.state)


def _held_by(each: DeviceView) -> str:
    """Return the pods that hold a device, or the claims that no pod uses yet."""
    names: dict[str, None] = {}
    for holder in each.holders:
        mark = " (admin)" if holder.admin_access else ""
        names |= {f"{pod}{mark}": None for pod in holder.pods or [f"claim {holder.claim}"]}
    return _few(list(names))


def _holders(each: DeviceView) -> tuple[str, str]:
    claims = [f"{e.claim} (admin)" if e.admin_access else e.claim for e in each.holders]
    pods = dict.fromkeys(pod.rpartition("/")[2] for e in each.holders for pod in e.pods)
    return _few(claims), _few(list(pods))


def _summary_line(each: ModelSummary) -> str:
    groups = [(counts, nodes) for counts, nodes in each.nodes.items() if counts[0]]
    # Nodes with nothing free matter only if there are no others.
    groups = groups or list(each.nodes.items())[:1]
    spread = ", ".join(
        f"{many(count, 'node')} with {free} of {of} free"
        for (free, of), count in groups[:_NAMES_MAX]
    )
    others = sum(count for _, count in groups[_NAMES_MAX:])
    if others:
        spread += f", {many(others, 'more node')} with some free"
    what = f"{each.model} ({each.driver})" if each.model else each.driver
    least = "" if each.is_exact else "at least "
    return f"{what}: {least}{each.free} of {each.devices} free; {spread}"


def _conflict_lines(views: Sequence[DeviceView]) -> Iterable[str]:
    """Yield a line that counts the devices of which more is allocated than exists."""
    count = sum(each.state is DeviceState.CONFLICT for each in views)
    if count:
        verb = "is" if count == 1 else "are"
        yield f"{many(count, 'device')} {verb} in conflict; dryrack check names the claims"


def _claim_row(each: ClaimView, look: Look) -> Row:
    names = [device.rpartition("/")[2] for device in each.devices]
    devices = _by_pool(each.devices) if look.is_wide else _few(names)
    cells: tuple[str, ...] = (
        each.name,
        str(each.state),
        devices,
        each.node or NOTHING,
        ", ".join(each.pods) or NOTHING if look.is_wide else _few(each.pods),
        _age(each.created, look),
    )
    if look.is_wide:
        cells = (*cells, ", ".join(f"{name}: {asks}" for name, asks in each.requests.items()))
    key = f"{each.namespace}/{each.name}"
    return Row(key, (each.namespace, *cells) if look.namespaces else cells)


def _by_pool(devices: Sequence[str]) -> str:
    """Return all devices, grouped by driver and pool."""
    pools: dict[str, list[str]] = {}
    for pool, _, device in (each.rpartition("/") for each in devices):
        pools.setdefault(pool, []).append(device)
    return "; ".join(f"{pool}: {', '.join(views)}" for pool, views in pools.items()) or NOTHING


def _gang_row(each: GangView, look: Look) -> Row:
    why = each.why if look.is_wide else _short(each.why.removeprefix(str(each.key)).lstrip(": "))
    cells = (
        each.name,
        each.key.dialect.value,
        NOTHING if each.min_count is None else str(each.min_count),
        str(len(each.placed)),
        str(len(each.waiting)),
        str(each.status),
        _age(each.created, look),
        why or NOTHING,
    )
    return Row(str(each.key), (each.key.namespace, *cells) if look.namespaces else cells)


def _few(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_MAX
    shown = ", ".join(names[:_NAMES_MAX])
    return f"{shown} and {more} more" if more > 0 else shown or NOTHING


def _short(text: str) -> str:
    return text if len(text) <= _WORDS_MAX else f"{text[: _WORDS_MAX - 2].rstrip()} …"


def _age(created: str, look: Look) -> str:
    return human(look.now - seconds_of(created)) if created else NOTHING

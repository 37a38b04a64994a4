"""
Read a KubeSchedulerConfiguration from a file.

All mistakes are returned as problems, each with file, line, field and fix; then nothing of the file
is used. A setting that has an effect in kube-scheduler only is reported as a note. A plugin that
does not exist is refused, because the profile would not decide as its author expects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dryrack.base.durations import seconds_in
from dryrack.base.text import hint
from dryrack.kinds import shape
from dryrack.kinds.decode import DecodeError, decode
from dryrack.kinds.documents import Document, Problem, read
from dryrack.kinds.paths import get
from dryrack.kinds.text.source_positions import parse_path
from dryrack.placement.configuration.model import (
    API_VERSION,
    KIND,
    PLUGIN_ARGS,
    KubeSchedulerConfiguration,
    PluginEntry,
    Plugins,
    PluginSet,
)
from dryrack.placement.plugins import IN_TREE, SCHEDULER_PLUGINS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from dryrack.kinds.shape import Path, Shape
    from dryrack.placement.configuration.model import LeaderElectionSettings, SchedulerProfile
    from dryrack.placement.framework import Plugin


Decoded = TypeVar("Decoded", bound=msgspec.Struct)

EVERY = "*"
MULTI_POINT = "multiPoint"
# The extension points: the fields of `Plugins`, and their names in files.
POINTS: Mapping[str, str] = {
    each.name: each.encode_name for each in msgspec.structs.fields(Plugins)
}
# dryrack always runs these plugins.
ALWAYS = frozenset({"DefaultBinder", "PrioritySort", "SchedulingGates"})
# Plugins of kube-scheduler that dryrack accepts and ignores.
NEVER = frozenset(
    {"NodeDeclaredFeatures", "NodeVolumeLimits", "PodGroupPodsCount", "TopologyPlacementGenerator"}
    | {"VolumeBinding", "VolumeRestrictions", "VolumeZone"}
)
# Names of plugins in kubenexus.
OTHER_NAMES: Mapping[str, str] = {
    "BackfillScoring": "Backfill",
    "TopologyScoring": "TopologySpread",
    "WorkloadAwareScoring": "WorkloadAware",
}
# The extension points that plugins in Python can have, with their functions and their work.
_FUNCTIONS: Mapping[str, tuple[str, str]] = {
    "filter": ("filter", "filter nodes"),
    "score": ("score", "score nodes"),
    "reserve": ("reserve", "reserve"),
    "permit": ("permit", "permit pods"),
    "preBind": ("pre_bind", "work before pods are bound"),
    "postBind": ("post_bind", "work after pods are bound"),
}
_WEIGHED = ("score", MULTI_POINT)
# Fields without effect, with the reason.
_MEANINGLESS: Mapping[str, str] = {
    "parallelism": "dryrack uses one thread",
    "clientConnection": "use --kubeconfig; dryrack does not limit its requests",
    "enableProfiling": "dryrack has no profiling endpoints",
    "enableContentionProfiling": "dryrack has no profiling endpoints",
    "percentageOfNodesToScore": "dryrack always uses the default",
    "delayCacheUntilActive": "dryrack always fills its caches",
}
# Arguments without effect, by plugin, with the reason.
_IDLE_ARGS: Mapping[str, Mapping[str, str]] = {
    "Coscheduling": {
        "permitWaitingTimeSeconds": "a pending gang reserves nothing",
        "podGroupBackoffSeconds": "use podInitialBackoffSeconds",
    },
    "DefaultPreemption": {
        "minCandidateNodesPercentage": "the value is always 10",
        "minCandidateNodesAbsolute": "the value is always 100",
    },
    "DynamicResources": {"filterTimeout": "dryrack limits searches by steps, not by time"},
    "VolumeBinding": {"bindTimeoutSeconds": "pods wait until their volumes are bound"},
}


@dataclass(frozen=True, slots=True)
class ProfileConfig:
    """The configuration of one profile; plugins have their names in dryrack."""

    scheduler_name: str = ""
    """The schedulerName of its pods; "" if the file does not set it."""
    plugins: Mapping[str, PluginSet] = field(default_factory=dict)
    """By extension point, as it is written."""
    args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By plugin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The content of a file."""

    profiles: tuple[ProfileConfig, ...]
    leader_election: LeaderElectionSettings
    backoff_seconds: tuple[float, float]
    """The first and the longest backoff of an unschedulable pod."""


@dataclass(frozen=True, slots=True)
class ConfigurationReading:
    """A configuration, unless there are problems, and notes on fields without effect."""

    configuration: Configuration | None
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...] = ()


def read_configuration(
    data: bytes | str, name: str, available: Mapping[str, Plugin]
) -> ConfigurationReading:
    """Read the text of a file; `available` are the existing plugins."""
    reading = read(data, name)
    if reading.problems:
        return ConfigurationReading(None, reading.problems)
    if len(reading.documents) > 1:
        message = f"the file has a second document; keep only one {KIND}"
        problem = reading.documents[1].problem("", message)
        return ConfigurationReading(None, (problem,))
    reader = _Reader(reading.documents[0], available)
    configuration = reader.read()
    valid = None if reader.problems else configuration
    return ConfigurationReading(valid, tuple(reader.problems), tuple(reader.notes))


@dataclass(slots=True)
class _Reader:
    """Reads one document."""

    document: Document
    available: Mapping[str, Plugin]
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)

    def read(self) -> Configuration | None:
        expected = {"kind": KIND, "apiVersion": API_VERSION}
        for key, right in expected.items():
            value = self.document.raw.get(key, "")
            if value != right:
                self._problem((key,), f"{value!r} is not supported", f"use {right}")
        if self.problems:
            return None
        written = self._decode(self.document.raw, KubeSchedulerConfiguration, ())
        if written is None:
            return None
        for name, why in _MEANINGLESS.items():
            if self.document.raw.get(name) is not None:
                self._note((name,), f"has no effect: {why}")
        if written.extenders:
            self._problem(("extenders",), "extenders are not supported", "write a plugin")
        self._check_leader_election(written.leader_election)
        profiles = tuple(self._profile(*each) for each in enumerate(written.profiles))
        self._check_names(written.profiles)
        self._check_queue_sort(written.profiles)
        return Configuration(
            profiles=profiles or (ProfileConfig(),),
            leader_election=written.leader_election,
            backoff_seconds=self._backoff(written),
        )

    def _check_leader_election(self, settings: LeaderElectionSettings) -> None:
        lock = settings.resource_lock
        if lock not in ("", "leases"):
            path = ("leaderElection", "resourceLock")
            self._problem(path, f"{lock!r} is not a supported lock", "use leases")
        durations = {
            "leaseDuration": settings.lease_duration or "15s",
            "renewDeadline": settings.renew_deadline or "10s",
            "retryPeriod": settings.retry_period or "2s",
        }
        seconds = [seconds_in(text) or 0.0 for text in durations.values()]
        for name, text in durations.items():
            self._check_duration(("leaderElection", name), text)
        if all(seconds) and not seconds[0] > seconds[1] > seconds[2]:
            values = ", ".join(f"{name} {text}" for name, text in durations.items())
            self._problem(("leaderElection",), values, "make each longer than the next")

    def _check_duration(self, path: Path, text: str) -> None:
        if text and not seconds_in(text):
            self._problem(path, f"{text!r} is not a duration", "use, for example, 15s or 1m30s")

    def _backoff(self, written: KubeSchedulerConfiguration) -> tuple[float, float]:
        first = written.pod_initial_backoff_seconds
        most = written.pod_max_backoff_seconds
        first = 1 if first is None else first
        most = max(10, first) if most is None else most
        if first <= 0:
            self._problem(("podInitialBackoffSeconds",), f"{first} is not greater than 0")
        if most < first:
            message = f"{most} is less than podInitialBackoffSeconds, which is {first}"
            self._problem(("podMaxBackoffSeconds",), message)
        return float(first), float(most)

    def _check_names(self, profiles: Sequence[SchedulerProfile]) -> None:
        owners: dict[str, int] = {}
        for index, profile in enumerate(profiles):
            path = ("profiles", index, "schedulerName")
            name = profile.scheduler_name
            if name is None and len(profiles) > 1:
                self._problem(path, "the name is missing", "name each of several profiles")
            elif name == "":
                self._problem(path, "the name is empty", "use the schedulerName of the pods")
            elif name is not None and owners.setdefault(name, index) != index:
                self._problem(path, f"{name!r} is also the name of profiles[{owners[name]}]")

    def _check_queue_sort(self, profiles: Sequence[SchedulerProfile]) -> None:
        orders = [[each.name for each in it.plugins.queue_sort.enabled] for it in profiles]
        for index, order in enumerate(orders):
            path = ("profiles", index, "plugins", "queueSort")
            if len(order) > 1:
                self._problem(path, "the queue has only one order", "enable only one plugin")
            elif order != orders[0]:
                fix = "use the same plugin as in profiles[0]"
                self._problem(path, "all profiles share one queue", fix)

    def _profile(self, index: int, written: SchedulerProfile) -> ProfileConfig:
        path: Path = ("profiles", index)
        if written.percentage_of_nodes_to_score is not None:
            name = "percentageOfNodesToScore"
            self._note((*path, name), f"has no effect: {_MEANINGLESS[name]}")
        plugins = {
            point: self._plugin_set((*path, "plugins", point), getattr(written.plugins, attribute))
            for attribute, point in POINTS.items()
            if getattr(written.plugins, attribute) != PluginSet()
        }
        args: dict[str, Mapping[str, Any]] = {}
        for number, config in enumerate(written.plugin_config):
            within = (*path, "pluginConfig", number)
            name = self._name((*within, "name"), config.name)
            if name in args:
                self._problem((*within, "name"), f"{config.name!r} is configured twice")
            args[name] = self._args(name, config.args, (*within, "args"))
        on = {entry.name for each in plugins.values() for entry in each.enabled}
        if "DeviceGroups" in on and not args.get("DeviceGroups", {}).get("attribute"):
            fix = "add pluginConfig: [{name: DeviceGroups, args: {attribute: DOMAIN/NAME}}]"
            self._problem((*path, "pluginConfig"), "DeviceGroups needs an attribute", fix)
        return ProfileConfig(written.scheduler_name or "", plugins, args)

    def _plugin_set(self, path: Path, written: PluginSet) -> PluginSet:
        enabled = [
            self._read_enabled(entry, (*path, "enabled", number))
            for number, entry in enumerate(written.enabled)
        ]
        names = [entry.name for entry in enabled]
        for number, name in enumerate(names):
            if name in names[:number]:
                self._problem((*path, "enabled", number, "name"), f"{name!r} is enabled twice")
        disabled = []
        for number, entry in enumerate(written.disabled):
            name = entry.name
            if name != EVERY:
                name = self._name((*path, "disabled", number, "name"), name)
            if name in ALWAYS:
                self._note((*path, "disabled", number, "name"), f"dryrack cannot disable {name}")
            disabled.append(PluginEntry(name=name))
        return PluginSet(enabled=tuple(enabled), disabled=tuple(disabled))

    def _read_enabled(self, entry: PluginEntry, path: Path) -> PluginEntry:
        name = self._name((*path, "name"), entry.name)
        if name in NEVER and name not in self.available:
            self._note((*path, "name"), f"{name} has no effect in dryrack")
        if entry.weight is not None and entry.weight < 0:
            self._problem((*path, "weight"), f"{entry.weight} is less than 0")
        elif entry.weight and path[-3] not in _WEIGHED:
            self._note((*path, "weight"), "has no effect: only score plugins have weights")
        plugin = self.available.get(name)
        attribute, verb = _FUNCTIONS.get(str(path[-3]), ("", ""))
        # Plugins of kube-scheduler have work at points where dryrack does it elsewhere.
        is_known = path[-3] in ("filter", "score") or name not in IN_TREE
        if plugin is not None and attribute and is_known and getattr(plugin, attribute) is None:
            self._problem((*path, "name"), f"{name} does not {verb}", "remove it here")
        return PluginEntry(name=name, weight=entry.weight)

    def _name(self, path: Path, name: str) -> str:
        """Return the plugin's name in dryrack."""
        own = OTHER_NAMES.get(name, name)
        known = {*self.available, *SCHEDULER_PLUGINS, *ALWAYS, *NEVER}
        if own not in known:
            self._problem(path, f"unknown plugin {name!r}", hint(name, known))
        return own

    def _args(self, plugin: str, args: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
        """Return the arguments without nulls; those of a plugin from elsewhere are not checked."""
        model = PLUGIN_ARGS.get(plugin)
        if model is None:
            return args
        regular: Mapping[str, Any] = shape.regular(args, shape.of(model))
        if regular.get("kind", "") not in ("", f"{plugin}Args"):
            message = f"{regular['kind']!r} is not the kind of the arguments of {plugin}"
            self._problem((*path, "kind"), message, f"use {plugin}Args")
        elif self._decode(dict(regular), model, path) is not None:
            for within, message in _argument_problems(plugin, regular):
                self._problem((*path, *within), message)
            for name in ("filterTimeout", "bindingTimeout"):
                self._check_duration((*path, name), str(regular.get(name, "")))
            for name, why in _IDLE_ARGS.get(plugin, {}).items():
                if name in regular:
                    self._note((*path, name), f"has no effect: {why}")
        return regular

    def _decode(self, raw: dict[str, Any], model: type[Decoded], within: Path) -> Decoded | None:
        """Return the typed value; None with problems, for example for unknown fields."""
        form = shape.of(model)
        for path in shape.unknown(raw, form):
            fix = hint(str(path[-1]), _at(form, path))
            self._problem((*within, *path), "unknown field", fix)
        try:
            return decode(raw, model)
        except DecodeError as error:
            for each in error.mismatches:
                path = (*within, *parse_path(each.path))
                self._problem(path, f"expected {each.expected}, got {each.got}", each.fix)
            return None

    def _problem(self, path: Path, message: str, fix: str = "") -> None:
        text = f"{shape.render(path)}: {message}"
        self.problems.append(self.document.problem(path, text, fix))

    def _note(self, path: Path, message: str) -> None:
        self.notes.append(self.document.problem(path, f"{shape.render(path)}: {message}"))


def _at(form: Shape, path: Path) -> Collection[str]:
    """Return the fields of the object that contains the last step of the path."""
    for step in path[:-1]:
        match form:
            case shape.Fields(fields=fields):
                form = fields[str(step)]
            case shape.Items(item=inner) | shape.Entries(value=inner):
                form = inner
    return form.fields if isinstance(form, shape.Fields) else ()


_STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")


def _argument_problems(plugin: str, args: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the values that kube-scheduler would refuse; their types are right."""
    match plugin:
        case "InterPodAffinity":
            yield from _outside(args, "hardPodAffinityWeight", 100)
        case "DefaultPreemption":
            yield from _outside(args, "minCandidateNodesPercentage", 100)
            yield from _outside(args, "minCandidateNodesAbsolute", None)
        case "ResourceReservation":
            yield from _outside(args, "ttlSeconds", None)
        case "PodTopologySpread":
            yield from _defaulting_problems(args)
        case "NodeResourcesFit":
            yield from _strategy_problems(get(args, "scoringStrategy", {}))
        case "NodeResourcesBalancedAllocation":
            for index, each in enumerate(get(args, "resources", ())):
                if each.get("weight", 1) != 1:
                    message = f"{each['weight']} is invalid: it must be 1"
                    yield ("resources", index, "weight"), message
        case _:
            return


def _outside(args: Mapping[str, Any], name: str, most: int | None) -> Iterator[tuple[Path, str]]:
    value = args.get(name)
    if value is not None and (value < 0 or (most is not None and value > most)):
        bounds = "at least 0" if most is None else f"from 0 to {most}"
        yield (name,), f"{value} is invalid: it must be {bounds}"


def _defaulting_problems(args: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    kind = args.get("defaultingType") or "System"
    constraints = get(args, "defaultConstraints", ())
    if kind not in ("List", "System"):
        yield ("defaultingType",), f"{kind!r} is invalid: it must be List or System"
    elif kind == "System" and constraints:
        yield ("defaultConstraints",), "have no effect without defaultingType: List; add it"
    for index, each in enumerate(constraints):
        if each.get("labelSelector") is not None:
            message = "must not be set: each pod determines it; remove it"
            yield ("defaultConstraints", index, "labelSelector"), message


def _strategy_problems(strategy: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    kind = strategy.get("type") or "LeastAllocated"
    if kind not in _STRATEGIES:
        message = f"{kind!r} is invalid: it must be one of {', '.join(_STRATEGIES)}"
        yield ("scoringStrategy", "type"), message
    for index, each in enumerate(get(strategy, "resources", ())):
        if not 0 < each.get("weight", 1) <= 100:
            message = f"{each['weight']} is invalid: it must be from 1 to 100"
            yield ("scoringStrategy", "resources", index, "weight"), message
    ratio = strategy.get("requestedToCapacityRatio")
    if (kind == "RequestedToCapacityRatio") != (ratio is not None):
        message = "is required with type RequestedToCapacityRatio, and invalid with other types"
        yield ("scoringStrategy", "requestedToCapacityRatio"), message

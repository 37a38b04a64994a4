"""`dryrack plan`: find the cheapest nodes for the pods in files or of a cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dryrack.base.errors import ContentError
from dryrack.base.text import listed
from dryrack.cli.allocate import Settings, print_doubts
from dryrack.cli.command import join_lists
from dryrack.cli.files import UsageError, read_sources, without_pauses
from dryrack.cli.hardware import load as load_catalogue
from dryrack.cli.hardware import unknown_type
from dryrack.cli.objects import load
from dryrack.cli.output import Format, print_data, say, shown
from dryrack.cli.views.sources import Source
from dryrack.cluster import EXPLANATION_KINDS, SeededChance, load_prices, virtual_node
from dryrack.hardware import Inventory, Matcher, slices_of
from dryrack.hardware.catalogue import Catalogue
from dryrack.kinds.core import Node
from dryrack.kinds.decode import decode
from dryrack.kinds.documents import unwritten
from dryrack.kinds.validation.names import label_key, label_value
from dryrack.placement import World, supply_devices
from dryrack.planning import (
    ZONE,
    Limits,
    NewNode,
    NodeType,
    case_of,
    daemons_of,
    date_and_source,
    document_of,
    from_zero,
    move_daemon,
    one_of_each_daemon_set,
    parse_prices,
    plan,
    plan_for_zones,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.cli.options import PlanOptions
    from dryrack.hardware.catalogue import InstanceType
    from dryrack.kinds.documents import Document
    from dryrack.placement import Member
    from dryrack.planning import Case, Plan

_SOURCE = "--instance-types"
_SPREAD = "zone"
# If neither the options nor existing nodes name zones.
_ZONES = ("zone-a", "zone-b", "zone-c")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A plan with the case that it is for."""

    case: Case
    plan: Plan

    @property
    def rank(self) -> tuple[int, Fraction, int]:
        """Return the order among plans: most pods first, then the least cost."""
        unplaced = len(self.case.refused) + len(self.plan.unplaceable)
        return unplaced, self.plan.cost, len(self.plan.nodes)


def run(options: PlanOptions) -> bool:
    """Print the plan; return whether it has all pods."""
    files = (*options.files, *options.more)
    source = Source(
        kubeconfig=options.kubeconfig,
        context=options.context,
        cluster=options.cluster,
        files=files,
        all_namespaces=True,
    )
    if options.defragment:
        from dryrack.cli.plan.defragment import run_defragmentation

        run_defragmentation(options, source)
        return True
    planner = _Planner(options, source)
    outcome = planner.best()
    document = planner.document(outcome)
    if options.output is Format.TABLE:
        from dryrack.cli.plan.picture import print_plan

        print_plan(document)
    else:
        print_data(document, options.output)
    return planner.is_valid and not document["unplaceable"]


class _Planner:
    def __init__(self, options: PlanOptions, source: Source) -> None:
        self._options = options
        self._source = source
        gates = join_lists(options.feature_gates)
        self._settings = Settings.of(options.release, gates, options.scheduler_config)
        self._catalogue = load_catalogue(options.catalogue_file)
        sources = read_sources(options.prices) if options.prices else ()
        self._prices = load_prices({each.name: each.content for each in sources})
        own = parse_prices({each.name: each.content for each in sources})
        unknown = [name for name in own if name not in self._catalogue.instance_types]
        if unknown:
            names = listed(unknown)
            say(shown(f"note: prices of unknown instance types are not used: {names}"))
        if options.spread not in ("", _SPREAD):
            raise UsageError(f"--spread {options.spread}: use --spread {_SPREAD}")
        if options.max_cost is not None and not 0 < options.max_cost < float("inf"):
            raise UsageError(f"--max-cost {options.max_cost}: must be a number greater than 0")
        if options.max_cost is not None and options.fewest_nodes:
            raise UsageError("--max-cost limits a cost; leave out --fewest-nodes")
        if options.max_nodes is not None and options.max_nodes < 0:
            raise UsageError(f"--max-nodes {options.max_nodes}: must be 0 or more")
        self._labels = _parse_labels(options.node_labels)
        self._machines = self._chosen_machines()
        self.is_valid = True
        self._daemons: Mapping[str, Sequence[Member]] = {}
        self._daemons_anywhere: Sequence[Member] = ()

    def _chosen_machines(self) -> Sequence[InstanceType]:
        """Return the instance types of new nodes; raise `UsageError` if one cannot be used."""
        every = self._catalogue.instance_types
        wanted = [each for each in join_lists(self._options.instance_types).split(",") if each]
        if not wanted:
            return [each for each in every.values() if self._has_price(each.name)]
        names: dict[str, None] = {}
        for pattern in wanted:
            found = sorted(name for name in every if fnmatchcase(name, pattern))
            if not found:
                raise UsageError(unknown_type(f"{_SOURCE} {pattern}", pattern, self._catalogue))
            priced = [name for name in found if self._has_price(name)]
            unpriced = [name for name in found if name not in priced]
            if unpriced and (not priced or pattern in unpriced):
                fix = "add a price with --prices FILE, or find the fewest nodes with --fewest-nodes"
                raise UsageError(f"{_SOURCE} {unpriced[0]}: its price is not known; {fix}")
            if unpriced:
                say(shown(f"note: without {', '.join(unpriced)}, whose price is not known"))
            names |= dict.fromkeys(priced)
        return [every[name] for name in names]

    def _has_price(self, name: str) -> bool:
        return self._options.fewest_nodes or name in self._prices

    def best(self) -> Outcome:
        """Return the best plan; without chosen types, each provider has a plan of its own."""
        world = self._world()
        by_provider: dict[str, list[InstanceType]] = {}
        for each in self._machines:
            provider = "" if self._options.instance_types else each.provider
            by_provider.setdefault(provider, []).append(each)
        outcomes = [self._plan(world, machines) for machines in by_provider.values()]
        return min(outcomes, key=lambda each: each.rank)

    def _plan(self, world: World, machines: Sequence[InstanceType]) -> Outcome:
        settings = self._settings
        case = case_of(
            world,
            release=settings.release,
            features=settings.features,
            chance=SeededChance(),
        )
        zones = self._zones(world)
        types = [self._node_type(each, zone) for each in machines for zone in zones or ("",)]
        most = self._options.max_cost
        cost = None if most is None else Fraction(str(most))
        limits = Limits(cost=cost, nodes=self._options.max_nodes)
        profile = settings.placement_settings().profile_of(case.first_pod)
        if self._options.spread:
            result = plan_for_zones(
                case.workload, zones, types, case.cluster, limits, profile=profile
            )
        else:
            result = plan(case.workload, types, case.cluster, limits, profile=profile)
        return Outcome(case, result)

    def _zones(self, world: World) -> Sequence[str]:
        """Return the zones of new nodes; none if zones do not matter."""
        zones = [each for each in join_lists(self._options.zones).split(",") if each]
        for zone in zones:
            if problems := list(label_value(zone)):
                raise UsageError(f"--zones {zone!r}: {problems[0]}")
        known = sorted({each.metadata.labels.get(ZONE, "") for each in world.nodes} - {""})
        return zones or known or (_ZONES if self._options.spread else ())

    def _world(self) -> World:
        """Return the world to plan for, with the classes of the hardware catalog."""
        if self._source.files:
            with without_pauses():
                world = self._world_of_files()
        else:
            world = World.of(self._source.objects(EXPLANATION_KINDS))
            self._daemons_anywhere = one_of_each_daemon_set(world)
        present = {each.metadata.name for each in world.classes}
        classes = self._catalogue.device_classes.items()
        more = tuple(each for name, each in classes if name not in present)
        world = replace(world, classes=(*world.classes, *more))
        if self._options.existing:
            return world
        if world.nodes:
            say(
                f"note: planning from zero, without the {len(world.nodes)} existing nodes; "
                "to keep them, use --existing"
            )
        return from_zero(world)

    def _world_of_files(self) -> World:
        templates = {_template(each.name): each for each in self._machines}

        def more(documents: Sequence[Document]) -> Sequence[Document]:
            made = (self._node_document(name, machine) for name, machine in templates.items())
            return [unwritten(each, _SOURCE) for each in made]

        typed = load(self._source.files, more)
        self.is_valid = print_doubts(typed, self._settings)
        objects = [each.object for each in typed]
        own = [
            each
            for each in objects
            if not (isinstance(each, Node) and each.metadata.name in templates)
        ]
        supply = supply_devices(own, lambda: self._catalogue)
        if self._options.existing:
            for note in supply.notes:
                say(shown(note))
        world = World.of([*objects, *supply.objects])
        self._daemons = daemons_of(world)
        if not world.parties:
            fix = "add a Pod, a workload, or a ResourceClaim"
            raise ContentError(f"{', '.join(self._source.files)}: no pod found; {fix}")
        nodes = tuple(each for each in world.nodes if each.metadata.name not in templates)
        return replace(world, nodes=nodes)

    def _node_document(self, name: str, machine: InstanceType) -> dict[str, Any]:
        document = virtual_node(name, machine)
        document["metadata"]["labels"] |= self._labels
        return document

    def _node_type(self, machine: InstanceType, zone: str) -> NodeType:
        types = Catalogue(instance_types={machine.name: machine})
        matcher = Matcher(Inventory(instance_types=types.assignments()))
        daemons = self._daemons.get(_template(machine.name), self._daemons_anywhere)

        def make(name: str) -> NewNode:
            document = self._node_document(name, machine)
            document["metadata"]["labels"] |= {ZONE: zone} if zone else {}
            node = decode(document, Node)
            slices = [each for pool in matcher.pools_of(node).pools for each in slices_of(pool)]
            return NewNode(node, tuple(slices), tuple(move_daemon(each, name) for each in daemons))

        price = Fraction(1)
        if not self._options.fewest_nodes:
            price = self._prices[machine.name].amount
        return NodeType(machine.name, price, make, zone=zone)

    def document(self, outcome: Outcome) -> dict[str, Any]:
        """Return the plan as programs read it."""
        used = set(outcome.plan.types)
        date, source = date_and_source(e for name, e in self._prices.items() if name in used)
        document = document_of(
            outcome.plan,
            hourly={name: each.amount for name, each in self._prices.items()},
            prices={"date": date, "source": source},
            objective="nodes" if self._options.fewest_nodes else "cost",
            refused=outcome.case.refused,
        )
        return document | {"nodeLabels": self._labels}


def _parse_labels(lists: Sequence[str]) -> dict[str, str]:
    """Return the labels of an option; raise `UsageError` if one is invalid."""
    labels = {}
    for each in filter(None, join_lists(lists).split(",")):
        key, equals, value = each.partition("=")
        problems = (*label_key(key), *label_value(value))
        if not equals or problems:
            why = f" ({problems[0]})" if problems else ""
            raise UsageError(f"--node-labels {each!r}: must be KEY=VALUE{why}")
        labels[key] = value
    return labels


def _template(type_: str) -> str:
    """Return the name of the node of a type for which pods of DaemonSets are made."""
    return f"new-{type_.lower().replace('_', '-')}"

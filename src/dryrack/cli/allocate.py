"""`dryrack allocate`: print which devices the claims in files would get."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dryrack.allocation import Code, Features, Release, claim_name
from dryrack.base.errors import ContentError, DryrackError
from dryrack.base.text import hint, listed
from dryrack.cli.command import joined
from dryrack.cli.files import UsageError, without_pauses
from dryrack.cli.input_warnings import refusals, unknown_fields
from dryrack.cli.objects import load
from dryrack.cli.output import (
    NamedFormat,
    many,
    paint,
    print_data,
    print_json_lists,
    print_names,
    print_table,
    say,
    shown,
)
from dryrack.cli.views.fleet_options import FleetOptions
from dryrack.cluster import SeededChance
from dryrack.kinds.expansion.pod_claims import dump_problem
from dryrack.placement import Settings as Reckoning
from dryrack.placement import (
    World,
    asks_for_devices,
    explain_nodes,
    nodes_of,
    supply_devices,
    what_if_files,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from dryrack.cli.options import AllocateOptions, ExplainOptions
    from dryrack.kinds.catalog import Typed
    from dryrack.kinds.documents import Problem
    from dryrack.placement import ClaimAllocation, GangOutcome, NodeExplanation, Profile, WhatIf

COLUMNS = ("CLAIM", "NODE", "REQUEST", "DEVICE")
NOTHING = "-"
WAITS_FOR_GANG = "waits for its gang"
UNKNOWN = "unknown whether it fits"
REFUSED = "refused"
PREEMPTED = "preempted"
# As kubectl names it.
CLAIM_RESOURCE = "resourceclaim.resource.k8s.io"
_DOUBTS_TOLD_MAX = 5


@dataclass(frozen=True, slots=True)
class Settings:
    """The Kubernetes release to follow, and the nodes to try."""

    release: Release
    features: Features
    node: str | None = None
    # By scheduler name.
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    # The nodes that the command line adds to those of the files.
    fleet: FleetOptions = field(default_factory=FleetOptions)
    # Whether nodes that slices name are assumed; a cluster has those that are there.
    assumes_nodes: bool = True

    @classmethod
    def from_options(cls, options: AllocateOptions | ExplainOptions) -> Settings:
        """Return the settings of a command line; raise `UsageError` if an option is invalid."""
        fleet = FleetOptions(options.instance_type, options.nodes, options.catalogue_file)
        gates = joined(options.feature_gates)
        settings = cls.of(options.release, gates, options.scheduler_config)
        return replace(settings, node=options.node, fleet=fleet)

    @classmethod
    def of(
        cls, release: str = "1.36", feature_gates: str = "", scheduler_config: str = ""
    ) -> Settings:
        """Return the settings of these options; raise `UsageError` if one is invalid."""
        known = {each.value: each for each in Release}
        if release not in known:
            raise UsageError(f"--release {release!r}: unknown release; use {' or '.join(known)}")
        gates = {}
        for pair in filter(None, feature_gates.split(",")):
            name, _, value = pair.partition("=")
            if value not in ("true", "false"):
                raise UsageError(f"--feature-gates {pair!r}: use {name}=true or {name}=false")
            gates[name] = value == "true"
        try:
            settings = cls(known[release], Features.from_gates(gates, known[release]))
        except DryrackError as error:
            raise UsageError(str(error)) from None
        if not scheduler_config:
            return settings
        from dryrack.cli.scheduler_config import read_config, settings_of_plane

        configuration = read_config(scheduler_config)
        return replace(settings, profiles=settings_of_plane(configuration).profiles)

    def reckoning(self) -> Reckoning:
        return Reckoning(
            chance=SeededChance(),
            release=self.release,
            features=self.features,
            node=self.node,
            profiles=self.profiles,
            assumes_nodes=self.assumes_nodes,
        )


def run(options: AllocateOptions) -> bool:
    """Print the result; return whether all objects are valid and every claim is allocated."""
    form = options.output
    settings = Settings.from_options(options)
    loaded = load_world([*options.files, *options.more], settings)
    outcome = what_if_files(loaded.world, settings.reckoning)
    for note in outcome.notes:
        say(shown(note))
    if form is NamedFormat.TABLE:
        _print(outcome)
    elif form is NamedFormat.NAME:
        _print_names(loaded.world, outcome)
    elif form is NamedFormat.JSON:
        print_json_lists(outcome.lists())
    else:
        print_data(outcome.document(), form)
    is_whole = not any(gang.message for gang in outcome.gangs)
    return loaded.is_valid and is_whole and not outcome.refused and not outcome.rejected


@dataclass(frozen=True, slots=True)
class Loaded:
    """The world in the files, and whether a cluster would take all of it, as far as is known."""

    world: World
    is_valid: bool


def load_world(names: Sequence[str], settings: Settings) -> Loaded:
    """Return the world of the files, which must have something that asks for devices."""
    loaded = read_world(names, settings)
    if not asks_for_devices(loaded.world) and not loaded.world.templates:
        what = (
            "no Pod has a ResourceClaim"
            if loaded.world.parties
            else "no ResourceClaim, ResourceClaimTemplate or Pod found"
        )
        fix = "add a ResourceClaim, or a Pod that has one"
        raise ContentError(f"{', '.join(names)}: {what}; {fix}")
    return loaded


def read_world(names: Sequence[str], settings: Settings) -> Loaded:
    """Return the world of the files and of the nodes that options add to it."""
    with without_pauses():
        fleet = settings.fleet
        found = load(names, fleet.node_documents)
        problem = dump_problem(each.document for each in found)
        if problem:
            raise ContentError(f"{', '.join(names)}: {problem}")
        is_valid = tell_doubts(found, settings)
        objects = [each.object for each in found]
        chosen = {each.document.name for each in found if fleet.adds(each.document)}
        supply = supply_devices(objects, lambda: fleet.catalogue, chosen)
        world = World.of([*objects, *supply.objects])
    for note in supply.notes:
        say(shown(note))
    known = [node.metadata.name for node in nodes_of(world)[0]]
    if settings.node is not None and settings.node not in known:
        fix = hint(settings.node, known)
        raise UsageError(f"--node {settings.node!r}: the files have no such Node; {fix}")
    return Loaded(world, is_valid)


def tell_doubts(objects: Sequence[Typed], settings: Settings) -> bool:
    """
    Print the first problems of the objects, which may change the result.

    Return whether an API server would accept all objects, as far as dryrack can check.
    """
    refused: list[Problem] = []
    # What is refused depends on release and gates; it is known for the reference alone.
    if settings.features == Features.defaults() and settings.release is Release.V1_36:
        refused += refusals(objects)
    # What makes the answer fail comes first. The pods of a workload say the same, in one place.
    found = list(dict.fromkeys([*refused, *unknown_fields(objects)]))
    for problem in found[:_DOUBTS_TOLD_MAX]:
        say(shown(str(problem)))
    more = len(found) - _DOUBTS_TOLD_MAX
    if more > 0:
        say(f"and {many(more, 'more problem')}; to print all, run: dryrack lint")
    return not refused


# What is said of a claim where this is all that keeps it from devices.
_BY_CODE = {Code.GANG: WAITS_FOR_GANG, Code.ADMISSION: REFUSED, Code.PREEMPTED: PREEMPTED}


def _print(outcome: WhatIf) -> None:
    told = [(refused.claim, explain_nodes(refused.nodes)) for refused in outcome.refused]
    with_pods = {refused.claim for refused in outcome.refused if refused.is_with_pod}
    rows = [row for given in outcome.given for row in _rows(given)]
    rows += [(claim, NOTHING, NOTHING, verdict(nodes)) for claim, nodes in told]
    if rows:
        print_table(COLUMNS, rows)
    # What is said of the gang is true of all who wait for it, and so of pods that are refused.
    for claims, nodes in _alike((c, n) for c, n in told if c not in with_pods):
        if verdict(nodes) not in (WAITS_FOR_GANG, PREEMPTED):
            _tell(claims, nodes)
    for gang in outcome.gangs:
        tell_gang(gang)
    reasons: dict[str, list[str]] = {}
    for pod, why in outcome.rejected.items():
        reasons.setdefault(why, []).append(pod)
    for why, pods in reasons.items():
        more = f" and {many(len(pods) - 1, 'pod')} like it" if len(pods) > 1 else ""
        verb = "are" if more else "is"
        say(f"\n{shown(f'pod {pods[0]}')}{more} {verb} refused: {shown(why)}")
    for each in outcome.preemptions:
        say(f"\n{shown(each.message)}")


def tell_gang(gang: GangOutcome) -> None:
    """Whether a gang fits, for a person."""
    if gang.message:
        say(f"\n{shown(gang.message)}")
    elif gang.waiting:
        names = listed(list(gang.waiting))
        say(f"\n{shown(gang.gang)} fits, but no node has capacity for {shown(names)}")


def _print_names(world: World, outcome: WhatIf) -> None:
    """Who gets or has all that it asks for: pods with their claims, and claims by themselves."""
    there = {each.claim for each in outcome.given}
    there |= {claim_name(each) for each in world.claims if each.status.allocation is not None}
    for party in world.in_order():
        if not party.asks_for_devices:
            continue
        claims = [claim_name(claim) for claim in party.claims]
        if not party.missing and there.issuperset(claims):
            pod = party.pod.metadata.name if party.pod is not None else ""
            print_names("pod", [pod] if pod else [])
            print_names(CLAIM_RESOURCE, claims)
    if not asks_for_devices(world):
        print_names(CLAIM_RESOURCE, [each.claim for each in outcome.given])


def _rows(given: ClaimAllocation) -> list[tuple[str, str, str, str]]:
    results = given.allocation.devices.results
    if not results:
        return [(given.claim, given.node, NOTHING, "nothing to allocate")]
    return [
        (given.claim, given.node, each.request, f"{each.driver}/{each.pool}/{each.device}")
        for each in results
    ]


def verdict(nodes: Iterable[NodeExplanation]) -> str:
    """Return the result for a claim that is not allocated."""
    nodes = tuple(nodes)
    codes = {obstacle.code for story in nodes for obstacle in story.obstacles}
    for code, told in _BY_CODE.items():
        if codes == {code}:
            return told
    return UNKNOWN if any(story.undecided for story in nodes) else "does not fit"


def sentence(claim: str, told: str) -> str:
    """Return the verdict about a claim as a sentence."""
    if told in (REFUSED, PREEMPTED):
        return f"{claim} is {told}"
    return f"it is unknown whether {claim} fits" if told == UNKNOWN else f"{claim} {told}"


def _alike(
    told: Iterable[tuple[str, tuple[NodeExplanation, ...]]],
) -> list[tuple[list[str], tuple[NodeExplanation, ...]]]:
    """Return claims of which the same is said together, with what is said of the first."""
    together: dict[Hashable, tuple[list[str], tuple[NodeExplanation, ...]]] = {}
    for claim, nodes in told:
        own = claim.rpartition("/")[2]
        said = tuple(
            (place(story), each.code, each.request, each.fact.replace(own, ""), each.devices)
            for story in nodes
            for each in story.obstacles
        )
        together.setdefault(said, ([], nodes))[0].append(claim)
    return list(together.values())


def _tell(claims: Sequence[str], nodes: Sequence[NodeExplanation]) -> None:
    """Print why claims are not allocated, to stderr, so that the table stays one in a pipe."""
    claim = shown(claims[0])
    told = verdict(nodes)
    named = paint(claim, "bold") if sys.stderr.isatty() else claim
    if len(claims) > 1:
        named += f" and {many(len(claims) - 1, 'claim')} like it"
        told = {"does not fit": "do not fit"}.get(told, told)
    line = sentence(named, told)
    say(f"\n{line.replace(f'{named} is ', f'{named} are ') if len(claims) > 1 else line}:")
    for story in nodes:
        say(f"  {place(story)}:")
        for obstacle in story.obstacles:
            # What is missing is no matter of nodes; there is nothing to explain but what to add.
            say(f"    {shown(obstacle.sentence if story.node else obstacle.message)}")
    namespace, _, name = claims[0].rpartition("/")
    say(f"  for details, run: dryrack explain claim {shown(name)} -n {shown(namespace)} -f …")


def place(story: NodeExplanation) -> str:
    """The nodes that a story is about."""
    if not story.node:
        return "on any node"
    more = f" and {many(len(story.alike), 'node')} like it" if story.alike else ""
    return f"node {shown(story.node)}{more}"

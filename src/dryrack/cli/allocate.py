"""`dryrack allocate`: print which devices the claims in files would get."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dryrack.allocation import FEATURE_GATES, Code, Features, Release, claim_name
from dryrack.base.errors import ContentError
from dryrack.base.text import hint, listed
from dryrack.cli.command import join_lists
from dryrack.cli.files import UsageError, parse_release, without_pauses
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
from dryrack.kinds.releases import (
    DEFAULT_RELEASE,
    FeatureSet,
    GateError,
    gates_of,
    parse_gates,
    resolve_gates,
)
from dryrack.placement import Settings as PlacementSettings
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
    from dryrack.placement import GangOutcome, NodeExplanation, Profile, WhatIf

COLUMNS = ("CLAIM", "NODE", "REQUEST", "DEVICE")
NOTHING = "-"
WAITS_FOR_GANG = "waits for its gang"
UNKNOWN = "unknown whether it fits"
REFUSED = "refused"
PREEMPTED = "preempted"
# As kubectl names it.
CLAIM_RESOURCE = "resourceclaim.resource.k8s.io"
_DOUBTS_MAX = 5


@dataclass(frozen=True, slots=True)
class Settings:
    """The Kubernetes release to follow, and the nodes to try."""

    release: Release
    features: Features
    # All feature gates of the release.
    gates: Mapping[str, bool]
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
        gates = join_lists(options.feature_gates)
        settings = cls.of(options.release, gates, options.scheduler_config)
        return replace(settings, node=options.node, fleet=fleet)

    @classmethod
    def of(
        cls,
        release: str = DEFAULT_RELEASE.value,
        feature_gates: str = "",
        scheduler_config: str = "",
    ) -> Settings:
        """Return the settings of these options; raise `UsageError` if one is invalid."""
        followed = parse_release(release)
        try:
            changes = parse_gates(feature_gates)
            gates = resolve_gates(changes, followed)
            settings = cls(followed, Features.from_gates(changes, followed), gates)
        except GateError as error:
            raise UsageError(f"--feature-gates: {error}") from None
        defaults = gates_of(followed)
        for name in sorted(changes):
            if name not in FEATURE_GATES and name in gates and gates[name] != defaults[name].is_on:
                say(f"note: --feature-gates: {name} does not change how dryrack allocates devices")
        if not scheduler_config:
            return settings
        from dryrack.cli.scheduler_config import read_config, settings_of_plane

        configuration = read_config(scheduler_config)
        profiles = settings_of_plane(configuration, followed).profiles
        ignored = {it.name for profile in profiles.values() for it in profile.binding_plugins}
        for name in sorted(ignored):
            say(
                f"note: plugin {name}: only a scheduler calls Reserve, Permit, PreBind and PostBind"
            )
        return replace(settings, profiles=profiles)

    def placement_settings(self) -> PlacementSettings:
        return PlacementSettings(
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
    outcome = what_if_files(loaded.world, settings.placement_settings)
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
    """The world in the files, and whether an API server would accept all of it."""

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
        typed = load(names, fleet.node_documents)
        problem = dump_problem(each.document for each in typed)
        if problem:
            raise ContentError(f"{', '.join(names)}: {problem}")
        is_valid = print_doubts(typed, settings)
        objects = [each.object for each in typed]
        chosen = {each.document.name for each in typed if fleet.adds(each.document)}
        supply = supply_devices(objects, lambda: fleet.catalogue, chosen)
        world = World.of([*objects, *supply.objects])
    for note in supply.notes:
        say(shown(note))
    nodes = [node.metadata.name for node in nodes_of(world)[0]]
    if settings.node is not None and settings.node not in nodes:
        fix = hint(settings.node, nodes)
        raise UsageError(f"--node {settings.node!r}: the files have no such Node; {fix}")
    return Loaded(world, is_valid)


def print_doubts(objects: Sequence[Typed], settings: Settings) -> bool:
    """
    Print the first problems of the objects, which may change the result.

    Return whether an API server would accept all objects, as far as dryrack can check.
    """
    refused = list(refusals(objects, FeatureSet(settings.release, settings.gates)))
    # Refusals come first. The pods of a workload have equal problems, in the same place.
    problems = list(dict.fromkeys([*refused, *unknown_fields(objects, settings.gates)]))
    for problem in problems[:_DOUBTS_MAX]:
        say(shown(str(problem)))
    more = len(problems) - _DOUBTS_MAX
    if more > 0:
        say(f"and {many(more, 'more problem')}; to print all, run: dryrack lint")
    return not refused


# The result for a claim that fails only for this reason.
_BY_CODE = {Code.GANG: WAITS_FOR_GANG, Code.ADMISSION: REFUSED, Code.PREEMPTED: PREEMPTED}


def _print(outcome: WhatIf) -> None:
    """Print the table to standard output, and to standard error why claims get no devices."""
    refused = [(each.claim, explain_nodes(each.nodes)) for each in outcome.refused]
    rows: list[tuple[str, str, str, str]] = []
    for given in outcome.given:
        results = given.allocation.devices.results
        if not results:
            rows.append((given.claim, given.node, NOTHING, "nothing to allocate"))
        for each in results:
            device = f"{each.driver}/{each.pool}/{each.device}"
            rows.append((given.claim, given.node, each.request, device))
    rows += [(claim, NOTHING, NOTHING, verdict(nodes)) for claim, nodes in refused]
    if rows:
        print_table(COLUMNS, rows)
    # The message about a gang holds for all of its claims, and that about a refused pod, too.
    with_pods = {each.claim for each in outcome.refused if each.is_with_pod}
    groups = _group_by_reason((claim, nodes) for claim, nodes in refused if claim not in with_pods)
    for claims, nodes in groups:
        if verdict(nodes) not in (WAITS_FOR_GANG, PREEMPTED):
            _print_reason(claims, nodes)
    for gang in outcome.gangs:
        print_gang(gang)
    reasons: dict[str, list[str]] = {}
    for pod, why in outcome.rejected.items():
        reasons.setdefault(why, []).append(pod)
    for why, pods in reasons.items():
        more = f" and {many(len(pods) - 1, 'pod')} like it" if len(pods) > 1 else ""
        verb = "are" if more else "is"
        say(f"\n{shown(f'pod {pods[0]}')}{more} {verb} refused: {shown(why)}")
    for preempted in outcome.preemptions:
        say(f"\n{shown(preempted.message)}")


def print_gang(gang: GangOutcome) -> None:
    """Print why a gang does not fit, or which of its pods do not."""
    if gang.message:
        say(f"\n{shown(gang.message)}")
    elif gang.waiting:
        names = listed(list(gang.waiting))
        say(f"\n{shown(gang.gang)} fits, but no node has capacity for {shown(names)}")


def _print_names(world: World, outcome: WhatIf) -> None:
    """Print the pods whose claims are all allocated, with these claims, and other such claims."""
    allocated = {each.claim for each in outcome.given}
    allocated |= {claim_name(each) for each in world.claims if each.status.allocation is not None}
    for party in world.in_order():
        if not party.asks_for_devices:
            continue
        claims = [claim_name(claim) for claim in party.claims]
        if not party.missing and allocated.issuperset(claims):
            if party.pod is not None and party.pod.metadata.name:
                print_names("pod", [party.pod.metadata.name])
            print_names(CLAIM_RESOURCE, claims)
    if not asks_for_devices(world):
        print_names(CLAIM_RESOURCE, [each.claim for each in outcome.given])


def verdict(nodes: Iterable[NodeExplanation]) -> str:
    """Return the result for a claim that is not allocated."""
    nodes = tuple(nodes)
    codes = {obstacle.code for explanation in nodes for obstacle in explanation.obstacles}
    for code, result in _BY_CODE.items():
        if codes == {code}:
            return result
    return UNKNOWN if any(explanation.is_undecided for explanation in nodes) else "does not fit"


def sentence(claim: str, result: str) -> str:
    """Return the verdict about a claim as a sentence."""
    if result in (REFUSED, PREEMPTED):
        return f"{claim} is {result}"
    return f"it is unknown whether {claim} fits" if result == UNKNOWN else f"{claim} {result}"


def _group_by_reason(
    refused: Iterable[tuple[str, tuple[NodeExplanation, ...]]],
) -> list[tuple[list[str], tuple[NodeExplanation, ...]]]:
    """Return groups of claims with the same reasons, and the reasons of the first claim."""
    groups: dict[Hashable, tuple[list[str], tuple[NodeExplanation, ...]]] = {}
    for claim, nodes in refused:
        name = claim.rpartition("/")[2]
        reasons = tuple(
            (place(node), each.code, each.request, each.fact.replace(name, ""), each.devices)
            for node in nodes
            for each in node.obstacles
        )
        groups.setdefault(reasons, ([], nodes))[0].append(claim)
    return list(groups.values())


def _print_reason(claims: Sequence[str], nodes: Sequence[NodeExplanation]) -> None:
    """Print why claims are not allocated, to stderr, so that a pipe gets only the table."""
    claim = shown(claims[0])
    result = verdict(nodes)
    subject = paint(claim, "bold") if sys.stderr.isatty() else claim
    if len(claims) > 1:
        subject += f" and {many(len(claims) - 1, 'claim')} like it"
        result = {"does not fit": "do not fit"}.get(result, result)
    line = sentence(subject, result)
    if len(claims) > 1:
        line = line.replace(f"{subject} is ", f"{subject} are ")
    say(f"\n{line}:")
    for node in nodes:
        say(f"  {place(node)}:")
        for obstacle in node.obstacles:
            # Without a node, an object is missing; its message contains what to add.
            say(f"    {shown(obstacle.sentence if node.node else obstacle.message)}")
    namespace, _, name = claims[0].rpartition("/")
    say(f"  for details, run: dryrack explain claim {shown(name)} -n {shown(namespace)} -f …")


def place(explanation: NodeExplanation) -> str:
    """Return the nodes that an explanation is about."""
    if not explanation.node:
        return "on any node"
    more = f" and {many(len(explanation.alike), 'node')} like it" if explanation.alike else ""
    return f"node {shown(explanation.node)}{more}"

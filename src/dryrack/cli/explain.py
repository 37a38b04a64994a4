"""Explain why a claim, a Pod, or a gang of files gets no devices (`dryrack explain -f`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.base.errors import ContentError
from dryrack.cli.allocate import (
    CLAIM_RESOURCE,
    WAITS_FOR_GANG,
    Settings,
    place,
    read_world,
    sentence,
    verdict,
)
from dryrack.cli.files import UsageError
from dryrack.cli.output import (
    NamedFormat,
    many,
    paint,
    print_data,
    print_line,
    print_names,
    say,
    shown,
)
from dryrack.placement import (
    asks_for_devices,
    claim_document,
    document_of_gangs,
    explain_claim,
    explain_gang_claims,
    find_gang_outcomes,
    what_if,
    with_template_as_claim,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.cli.options import ExplainOptions
    from dryrack.placement import Explanation, GangOutcome, NodeExplanation, World

# -v prints more of them.
_OBSTACLES_MAX = 8

CLAIMS = ("claim", "claims", "resourceclaim", "resourceclaims")
PODS = ("pod", "pods", "po")
GANGS = ("gang", "gangs", "podgroup", "podgroups")
WORKLOADS = {
    "Job": ("job", "jobs"),
    "Deployment": ("deployment", "deployments", "deploy"),
    "ReplicaSet": ("replicaset", "replicasets", "rs"),
    "StatefulSet": ("statefulset", "statefulsets", "sts"),
    "DaemonSet": ("daemonset", "daemonsets", "ds"),
}


@dataclass(frozen=True, slots=True)
class Subject:
    """The object to explain."""

    kind: str
    namespace: str
    name: str
    # The kind of a workload, whose pods are explained.
    workload: str = ""

    @classmethod
    def of(cls, kind: str, name: str, namespace: str) -> Subject:
        """Return the subject of a command line such as `claim NAME` or `pod NAMESPACE/NAME`."""
        kinds = {word: words[0] for words in (CLAIMS, PODS, GANGS) for word in words}
        workloads = {word: each for each, words in WORKLOADS.items() for word in words}
        workload = workloads.get(kind.lower(), "")
        kinds |= dict.fromkeys(workloads, "workload")
        if kind.lower() not in kinds:
            what = "use claim, pod, gang, job, deployment, replicaset, statefulset, or daemonset"
            raise UsageError(f'unknown kind "{kind}"; {what}')
        if not name:
            raise UsageError(f"{kind}: name is missing; write: dryrack explain {kind} NAME")
        inside, slash, bare = name.rpartition("/")
        return cls(kinds[kind.lower()], inside if slash else namespace, bare, workload)

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"


def run(options: ExplainOptions) -> bool:
    """Explain an object of files or of a cluster; return whether its claims are allocated."""
    from dryrack.cli.views.explaining import run_on_cluster
    from dryrack.cli.views.sources import Source

    settings = Settings.from_options(options)
    kind, slash, name = options.kind.partition("/")
    more = options.more
    if not slash:
        name = options.name
    elif options.name:
        # After KIND/NAME, the next argument is a file.
        more = (options.name, *more)
    files = (*options.files, *more)
    source = Source(
        kubeconfig=options.kubeconfig,
        context=options.context,
        cluster=options.cluster,
        files=files,
        all_namespaces=True,
    )
    if files:
        subject = Subject.of(kind, name, options.namespace or "default")
        return explain_files(
            files, subject, settings=settings, form=options.output, verbose=options.verbose
        )
    if settings.fleet.is_given:
        option = "--instance-type" if options.instance_type else "--catalogue-file"
        raise UsageError(f"{option}: a cluster has nodes already; use the option with -f FILE")
    # Errors in KIND and NAME are found before the cluster is.
    Subject.of(kind, name, options.namespace)
    subject = Subject.of(kind, name, options.namespace or source.connection().namespace)
    return run_on_cluster(source, subject, settings, options.output, verbose=options.verbose)


def explain_files(
    names: Sequence[str],
    subject: Subject,
    *,
    settings: Settings,
    form: NamedFormat,
    verbose: bool = False,
) -> bool:
    """Print the explanation; return whether the claims are allocated."""
    loaded = read_world(names, settings)
    world = loaded.world
    if subject.kind == "claim" and not (asks_for_devices(world) or world.templates):
        raise ContentError(f'claim "{subject.name}" not found: the files contain no claims')
    if subject.kind == "gang":
        name = (subject.namespace, subject.name)
        return run_gang(world, name, settings, form) and loaded.is_valid
    if subject.kind == "claim":
        world = with_template_as_claim(world, subject.full_name)
        return _explain_claims(world, [subject.full_name], settings, form) and loaded.is_valid
    from dryrack.cli.views.explaining import Case

    case = Case(world, subject, settings, form, verbose=verbose, is_of_files=True)
    return case.run() and loaded.is_valid


def _explain_claims(
    world: World,
    claims: Sequence[str],
    settings: Settings,
    form: NamedFormat,
) -> bool:
    """Print the explanation of each claim; return whether all are allocated."""
    explanations = [explain_claim(world, claim, settings.placement_settings()) for claim in claims]
    for note in dict.fromkeys(note for explanation in explanations for note in explanation.notes):
        say(shown(note))
    fitting = [
        explanation.claim
        for explanation in explanations
        if explanation.given or explanation.settled
    ]
    if form is NamedFormat.NAME:
        print_names(CLAIM_RESOURCE, fitting)
    elif form is NamedFormat.TABLE:
        where = "any node" if settings.node is None else f"node {settings.node}"
        for explanation in explanations:
            print_explanation(explanation, where)
    else:
        print_data(claim_document(explanations[0]), form)
    return len(fitting) == len(explanations)


def run_gang(
    world: World,
    name: tuple[str, str],
    settings: Settings,
    form: NamedFormat,
    print_more: Callable[[str], None] | None = None,
) -> bool:
    """Print the nodes of a gang or what it lacks; `print_more` adds the scheduler's report."""
    outcome = what_if(world, settings.placement_settings())
    gangs = find_gang_outcomes(outcome, name)
    # In a cluster, the user knows which other objects exist.
    for note in outcome.notes if print_more is None else ():
        say(shown(note))
    if form is NamedFormat.NAME:
        print_names("pod", [pod.partition("/")[2] for gang in gangs for pod in gang.nodes])
    elif form is NamedFormat.TABLE:
        for gang in gangs:
            if gang.message:
                print_line(
                    paint(shown(gang.message), "bold yellow" if gang.is_unknown else "bold red")
                )
            else:
                print_line(f"{paint(shown(gang.gang), 'bold green')} fits:")
            if print_more is not None:
                print_more(gang.message)
            _print_members(
                gang, explain_gang_claims(world, gang, settings.placement_settings), settings
            )
    else:
        print_data(document_of_gangs(world, gangs, settings.placement_settings).document, form)
    return not any(gang.message for gang in gangs)


def _print_members(gang: GangOutcome, lacking: Sequence[Explanation], settings: Settings) -> None:
    for pod, node in gang.nodes.items():
        print_line(shown(f"  pod {pod}: node {node}"))
    for pod, message in gang.waiting.items():
        if not gang.message:
            print_line(shown(f"  pod {pod} is pending: {message}"))
    where = "any node" if settings.node is None else f"node {settings.node}"
    for explanation in lacking:
        print_line("")
        print_explanation(explanation, where)


def print_explanation(explanation: Explanation, where: str) -> None:
    """Print the devices of a claim, or why it gets none."""
    if explanation.given is not None:
        name = shown(explanation.given.node)
        print_line(f"{paint(shown(explanation.claim), 'bold green')} fits on node {name}:")
        for each in explanation.given.allocation.devices.results:
            print_line(shown(f"  {each.request}: {each.driver}/{each.pool}/{each.device}"))
    elif explanation.settled:
        print_line(f"{paint(shown(explanation.claim), 'bold green')} is already allocated")
    else:
        claim = paint(shown(explanation.claim), "bold red")
        result = verdict(explanation.nodes)
        at = "" if result == WAITS_FOR_GANG else f" on {shown(where)}"
        print_line(f"{sentence(claim, result)}{at}")
        for node in explanation.nodes:
            print_node(node)
        print_helps(explanation.helps)


def print_helps(helps: Sequence[str]) -> None:
    """Print changes that were tried, the smallest first."""
    if helps:
        print_line("\nany one of these would help, the smallest change first:")
        for help_ in helps:
            print_line(f"  {paint(shown(help_), 'green')}")


def print_node(node: NodeExplanation, *, verbose: bool = False) -> None:
    """Print what is missing on a node, and on the nodes like it."""
    lacking = f", {node.lacking} short" if node.lacking else ""
    print_line(f"\n{place(node)}{lacking}")
    for obstacle in node.obstacles if verbose else node.obstacles[:_OBSTACLES_MAX]:
        print_line(f"  {obstacle.code.text}: {shown(obstacle.message)}")
    more = len(node.obstacles) - _OBSTACLES_MAX
    if more > 0 and not verbose:
        print_line(f"  {many(more, 'further reason')}; see -v")

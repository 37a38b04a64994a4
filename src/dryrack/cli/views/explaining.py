"""
`dryrack explain` on a cluster: explain the present state of a pod, a claim or a gang.

The code of the scheduler makes the decision again, and dryrack writes nothing. The message of the
scheduler of the cluster is printed next to it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dryrack.base.ages import human
from dryrack.base.errors import ContentError
from dryrack.base.text import hint
from dryrack.cli.explain import print_explanation, print_helps, print_node, run_gang
from dryrack.cli.output import NamedFormat, many, paint, print_data, print_line, say, shown
from dryrack.cli.views.sources import on_cluster
from dryrack.cli.views.traces import print_trace, why_chosen
from dryrack.client.timekeeping import seconds_of
from dryrack.placement import (
    ExplainDocuments,
    SchedulerMessage,
    World,
    claims_of,
    creation_failure,
    describe_siblings,
    devices_of,
    explain_claim,
    explain_pod,
    find_gang,
    party_of,
    pending_gang_of,
    pods_of_workload,
    preparation_failure,
    scheduler_message_of,
    skipped_devices,
    what_if,
    with_only_pending,
    world_of_gang,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.cli.allocate import Settings
    from dryrack.cli.explain import Subject
    from dryrack.cli.views.sources import Source
    from dryrack.client.client import Client
    from dryrack.kinds.core import Pod
    from dryrack.kinds.resource import AllocationResult
    from dryrack.placement import ClaimView, DeviceView, GangView, PodExplanation

# Maximum number of reasons without -v.
_NODES_MAX = 8
_NODES_TRACED_MAX = 100
_PASSED_MAX = 4


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster or files, and the object to explain."""

    world: World
    subject: Subject
    settings: Settings
    form: NamedFormat
    verbose: bool = False
    # True if the objects come from files, where earlier pods are scheduled first.
    is_of_files: bool = False
    # The time on the clock of the cluster.
    now: float = field(default_factory=time.time)

    def run(self) -> bool:
        """Print the explanation; return whether the object is allocated or bound."""
        if self.form in (NamedFormat.JSON, NamedFormat.YAML) and not self.subject.workload:
            cases = ExplainDocuments(
                world=self.world,
                settings=self.settings.placement_settings,
                is_traced=self.verbose,
                is_of_files=self.is_of_files,
            )
            answer = cases.of(self.subject.kind, self.subject.full_name)
            for note in answer.notes:
                say(shown(note))
            print_data(answer.document, self.form)
            return answer.is_served
        if self.subject.kind == "pod":
            return self._pod(self.subject.full_name)
        if self.subject.kind == "claim":
            return self._claim(self.subject.full_name)
        if self.subject.workload:
            return self._workload()
        return self._gang(find_gang(self.world, self.subject.full_name))

    def _workload(self) -> bool:
        """Print how many pods of a workload fit, and why the first of the others does not."""
        kind = self.subject.workload
        name = self.subject.name
        world = self.world
        settings = self.settings.placement_settings()
        pods = pods_of_workload(world, kind, self.subject.namespace, name)
        if not pods:
            why = creation_failure(world, kind, self.subject.namespace, name)
            if not why:
                fix = "check its name, and that its controller runs"
                raise ContentError(f"{kind} {self.subject.full_name!r}: no pods found; {fix}")
            print_line(f"{paint(shown(f'{kind} {name}'), 'bold red')} has no pods: {shown(why)}")
            return False
        nodes = what_if(world, settings).nodes if self.is_of_files else {}
        placed = [each for each in pods if each.spec.node_name or each.full_name in nodes]
        waiting = [each for each in pods if each not in placed]
        if waiting:
            of_pod = replace(self, subject=replace(self.subject, kind="pod", workload=""))
            first = waiting[0].metadata.name
            return replace(of_pod, subject=replace(of_pod.subject, name=first)).run()
        if len(placed) > 1:
            all_ = f"all {len(placed)} pods {'fit' if self.is_of_files else 'have a node'}"
        else:
            all_ = f"its pod {'fits' if self.is_of_files else 'has a node'}"
        print_line(f"{paint(shown(f'{kind} {name}'), 'bold green')}: {all_}")
        return True

    def _pod(self, name: str) -> bool:
        pod = party_of(self.world, name).pod
        assert pod is not None, "it was found by its pod"
        gang = pending_gang_of(self.world, pod)
        if gang is not None:
            return self._gang(gang, of=pod)
        # With few nodes, the scores cost little.
        traced = self.verbose or len(self.world.nodes) <= _NODES_TRACED_MAX
        world = self.world if self.is_of_files else with_only_pending(self.world, {name})
        explanation = explain_pod(world, name, self.settings.placement_settings(), traced=traced)
        if self.form is NamedFormat.NAME:
            if explanation.node or explanation.chosen:
                print_line(shown(f"pod/{pod.metadata.name}"))
        else:
            self._print_pod(explanation, pod)
        return bool(explanation.node or (self.is_of_files and explanation.chosen))

    def _print_pod(self, explanation: PodExplanation, pod: Pod) -> None:
        name = shown(f"pod {explanation.pod}")
        if explanation.node:
            print_line(f"{paint(name, 'bold green')} is on node {shown(explanation.node)}")
            _print_devices(explanation.devices, self._passed_over(explanation))
            print_line(shown(why_chosen(explanation)))
            self._print_not_started(pod)
        elif pod.spec.scheduling_gates:
            gates = ", ".join(each.name for each in pod.spec.scheduling_gates)
            print_line(f"{paint(name, 'bold red')} has scheduling gates: {shown(gates)}")
            print_line("it is not scheduled before all of its scheduling gates are removed")
            _print_outlook(explanation)
        else:
            self._print_waiting(explanation, pod, name)
        for note in explanation.notes:
            say(shown(note))
        if self.verbose and explanation.trace is not None:
            print_line()
            print_trace(explanation.trace)

    def _print_not_started(self, pod: Pod) -> None:
        """Print why a pod that has a node has no running container."""
        if pod.status.phase != "Pending":
            return
        failure = preparation_failure(self.world, pod)
        if failure:
            print_line(shown(f"its node cannot prepare its claims: {failure}"))
            return
        if pod.status.start_time is None:
            print_line(
                "its node has not started it yet; check that the node is Ready and has a kubelet "
                "(a virtual node has the annotation kwok.x-k8s.io/node)"
            )
            return
        see = f"kubectl describe pod {pod.metadata.name} -n {pod.metadata.namespace}"
        print_line(shown(f"it has not started yet; to print its events, run: {see}"))

    def _print_waiting(self, explanation: PodExplanation, pod: Pod, name: str) -> None:
        said = scheduler_message_of(pod)
        if explanation.chosen and self.is_of_files:
            after = f" after preempting {explanation.preempted}" if explanation.preempted else ""
            where = shown(f"{explanation.chosen}{after}")
            print_line(f"{paint(name, 'bold green')} fits on node {where}:")
            _print_devices(explanation.devices)
            return
        if explanation.chosen:
            print_line(f"{paint(name, 'bold')} has no node yet")
            print_said(said, "", self.now)
            if said is not None and said.message.startswith("plugin "):
                print_line("a node is free for it, but a plugin of the scheduler rejects it")
                return
            _print_outlook(explanation)
            if pod.status.nominated_node_name:
                see = f"kubectl describe pod {pod.metadata.name} -n {pod.metadata.namespace}"
                nominated = pod.status.nominated_node_name
                print_line(shown(f"it waits for node {nominated}; to print its events, run: {see}"))
            elif said is None:
                scheduler = shown(pod.spec.scheduler_name or "default-scheduler")
                fix = "check that this scheduler runs"
                print_line(f"scheduler {scheduler} has not reported on it yet; {fix}")
            else:
                print_line(
                    "the scheduler's message may be out of date, or the scheduler may use another "
                    "configuration (--scheduler-config)"
                )
            return
        verb = "is refused" if explanation.is_refused else "is pending"
        print_line(
            f"{paint(name, 'bold red')} {verb}: {shown(explanation.cause or explanation.message)}"
        )
        siblings = describe_siblings(self.world, pod, self.settings.placement_settings())
        if siblings:
            print_line(shown(siblings))
        if said is not None and said.message:
            print_said(said, "", self.now)
        elif explanation.message != explanation.cause:
            print_line(paint(shown(explanation.message), "dim"))
        for node in explanation.nodes if self.verbose else explanation.nodes[:_NODES_MAX]:
            print_node(node, verbose=self.verbose)
        more = len(explanation.nodes) - _NODES_MAX
        if more > 0 and not self.verbose:
            print_line(f"\n{many(more, 'more reason')}; to print all, add -v")
        print_helps(explanation.helps)

    def _passed_over(self, explanation: PodExplanation) -> dict[str, list[str]]:
        """Return, by claim, the devices that come before those it has, with their holders."""
        views = devices_of(self.world.slices, self.world.claims, self.world.taint_rules)
        return {
            claim: [_whose(each) for each in skipped_devices(views, claim) if each.takers]
            for claim in explanation.devices
        }

    def _claim(self, name: str) -> bool:
        found = {
            f"{each.namespace}/{each.name}": each
            for each in claims_of(self.world.claims, self.world.pods)
        }
        if name not in found:
            raise ContentError(f"claim {name!r} not found; {hint(name, found)}")
        view = found[name]
        if view.devices or view.node:
            self._print_allocated(view)
            return True
        waiting = [f"{view.namespace}/{pod}" for pod in view.pods]
        if waiting:
            say(shown(f"claim {name} is not allocated, because its pod has no node:"))
            return self._pod(waiting[0])
        say(
            shown(f"claim {name} is not allocated, because no pod uses it. For a pod that uses it:")
        )
        explanation = explain_claim(
            with_only_pending(self.world, (), {name}), name, self.settings.placement_settings()
        )
        if self.form is NamedFormat.TABLE:
            print_explanation(explanation, "any node")
        return False

    def _print_allocated(self, view: ClaimView) -> None:
        if self.form is NamedFormat.NAME:
            print_line(shown(f"resourceclaim.resource.k8s.io/{view.name}"))
            return
        name = paint(shown(f"claim {view.namespace}/{view.name}"), "bold green")
        where = f" on node {view.node}" if view.node else ""
        print_line(f"{name} is allocated{shown(where)}:")
        for device in view.devices:
            print_line(shown(f"  {device}"))
        users = ", ".join(view.pods) or "no pod; the claim keeps its devices until you delete it"
        print_line(shown(f"used by: {users}"))

    def _gang(self, gang: GangView, of: Pod | None = None) -> bool:
        """Print the gang, for itself or for one of its pods; return whether it fits."""
        namespace = gang.key.namespace
        if not gang.waiting:
            self._print_gang(gang)
            return gang.is_placed
        world = world_of_gang(self.world, gang)
        is_table = self.form is NamedFormat.TABLE
        if of is not None and is_table:
            print_line(shown(f"pod {namespace}/{of.metadata.name} is pending with its gang:"))
        pod = of or self._pods_of(namespace)[gang.waiting[0]]
        fits = run_gang(
            world,
            (namespace, gang.key.name),
            self.settings,
            self.form,
            lambda message: print_said(scheduler_message_of(pod), message, self.now),
        )
        if of is not None and is_table and self.verbose:
            name = f"{namespace}/{of.metadata.name}"
            trace = explain_pod(world, name, self.settings.placement_settings(), traced=True).trace
            assert trace is not None, "it was asked for"
            print_line("\nthe pod without its gang:")
            print_trace(trace)
        return fits

    def _print_gang(self, gang: GangView) -> None:
        if self.form is NamedFormat.NAME:
            for name in gang.placed:
                print_line(shown(f"pod/{name}"))
        else:
            print_line(f"{paint(shown(str(gang.key)), 'bold green')}: {gang.status}")
            pods = self._pods_of(gang.key.namespace)
            for name in gang.placed:
                print_line(shown(f"  pod {name}: node {pods[name].spec.node_name}"))
            if gang.why:
                print_line(shown(gang.why))

    def _pods_of(self, namespace: str) -> dict[str, Pod]:
        pods = self.world.pods
        return {pod.metadata.name: pod for pod in pods if pod.metadata.namespace == namespace}


def run_on_cluster(
    source: Source, subject: Subject, settings: Settings, form: NamedFormat, *, verbose: bool
) -> bool:
    """Read the cluster once, and print the case."""
    from dryrack.cluster import EXPLANATION_KINDS

    world = World.of(source.objects(EXPLANATION_KINDS))
    settings = replace(settings, assumes_nodes=False)
    has_devices = Case(world, subject, settings, form, verbose=verbose).run()
    if subject.kind == "pod" and form is NamedFormat.TABLE:
        for pod in world.pods:
            is_meant = (pod.metadata.namespace, pod.metadata.name) == (
                subject.namespace,
                subject.name,
            )
            if is_meant and pod.spec.node_name and pod.spec.resource_claims:
                _print_injected(source, pod)
    return has_devices


def _print_injected(source: Source, pod: Pod) -> None:
    """Print what the containers of a pod get from CDI devices, which events show."""
    from dryrack.client.client import Selection
    from dryrack.client.endpoints import EVENTS
    from dryrack.client.errors import ApiError

    fields = f"involvedObject.uid={pod.metadata.uid},reason=CDIDevicesInjected"
    selection = Selection(namespace=pod.metadata.namespace, fields=fields)

    async def read(client: Client) -> list[str]:
        try:
            return [each["message"] for each in (await client.list(EVENTS, selection)).items]
        except ApiError:
            # The user may have no permission for events.
            return []

    for message in dict.fromkeys(on_cluster(source.connection(), read)):
        print_line(shown(f"  {message[:1].lower()}{message[1:]}"))


def _print_outlook(explanation: PodExplanation) -> None:
    if explanation.chosen:
        after = f" after preempting {explanation.preempted}" if explanation.preempted else ""
        print_line(shown(f"it now fits on node {explanation.chosen}{after}"))
        _print_devices(explanation.devices)
    else:
        print_line(shown(f"it now fits on no node: {explanation.message}"))


def _print_devices(
    devices: Mapping[str, AllocationResult], passed: Mapping[str, Sequence[str]] | None = None
) -> None:
    for claim, allocation in devices.items():
        print_line(shown(f"  claim {claim}"))
        for each in allocation.devices.results:
            print_line(shown(f"    {each.request}: {each.driver}/{each.pool}/{each.device}"))
        lines = (passed or {}).get(claim, ())
        for line in lines[:_PASSED_MAX]:
            print_line(shown(f"    skipped: {line}"))
        if len(lines) > _PASSED_MAX:
            print_line(f"    skipped: and {many(len(lines) - _PASSED_MAX, 'more device')}")


def _whose(device: DeviceView) -> str:
    return f"{device.device}, held by {', '.join(device.takers)}"


def print_said(said: SchedulerMessage | None, message: str, now: float) -> None:
    """Print the message of the scheduler, unless it repeats dryrack's message."""
    if said is None or not said.message:
        return
    # The part about preemption comes after the message.
    base = message.rstrip(".")
    if said.message == message:
        line = f"({said.scheduler} reported the same{_ago(said, now)})"
    elif base and said.message.startswith(f"{base}."):
        more = said.message.removeprefix(f"{base}.")
        line = f"({said.scheduler} reported the same{_ago(said, now)}, and:{more})"
    elif base and said.message.rstrip(".").endswith(f". {base}"):
        # The message about a native group comes before its cause.
        first = said.message.rstrip(".").removesuffix(f". {base}")
        line = f"({said.scheduler} reported the same{_ago(said, now)}, after: {first})"
    else:
        line = f"{said.scheduler} reported{_ago(said, now)}: {said.message}"
    print_line(paint(shown(line), "dim"))


def _ago(said: SchedulerMessage, now: float) -> str:
    """Return the age of the scheduler's message, to append to a text."""
    return f" {human(now - seconds_of(said.since))} ago" if said.since else ""

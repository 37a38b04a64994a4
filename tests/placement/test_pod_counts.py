"""Counts that are updated with each pod equal those of a recount."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode
from dryrack.placement import Fleet, Occupant
from dryrack.placement.index.affinity_terms import PodTerms
from dryrack.placement.index.pod_counts import PodCounts

if TYPE_CHECKING:
    from collections.abc import Sequence

TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
AFFINITIES: Sequence[dict[str, Any]] = (
    {},
    {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}},
    {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM, TERM]}},
    {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 3, "podAffinityTerm": TERM}
            ]
        }
    },
)

nodes = st.builds(
    lambda name, zone, cordoned: decode(
        {
            "metadata": {"name": name, "labels": {"zone": zone} if zone else {}},
            "spec": {"unschedulable": cordoned},
        },
        Node,
    ),
    st.sampled_from("mno"),
    st.sampled_from(["", "1", "2"]),
    st.booleans(),
)
pods = st.builds(
    lambda name, namespace, app, affinity: decode(
        {
            "metadata": {"name": name, "namespace": namespace, "labels": {"app": app}},
            "spec": {"affinity": affinity},
        },
        Pod,
    ),
    st.sampled_from("pqrs"),
    st.sampled_from("xy"),
    st.sampled_from("ab"),
    st.sampled_from(AFFINITIES),
)
events = st.one_of(
    nodes, st.sampled_from("mno"), st.tuples(pods, st.sampled_from("mno")), st.tuples(pods)
)


def told(fleet: Fleet, event: Any) -> None:
    match event:
        case Node():
            fleet.put(event)
        case str():
            fleet.drop(event)
        case (Pod() as pod, str() as node):
            fleet.add_pod(pod.metadata.name, node, Occupant.of(pod))
        case (Pod() as pod,):
            fleet.remove_pod(pod.metadata.name)


def questions() -> dict[str, PodCounts]:
    def has_app_a(occupant: Occupant) -> bool:
        return occupant.labels["app"] == "a"

    here = frozenset("x")
    return {
        "everywhere": PodCounts("zone", has_app_a),
        "here": PodCounts("zone", has_app_a, namespaces=here),
        "by node": PodCounts("", has_app_a, namespaces=here),
        "open nodes": PodCounts(
            "zone",
            has_app_a,
            namespaces=here,
            includes=lambda state: not state.node.spec.unschedulable,
        ),
    }


def _same(counts: PodCounts) -> PodCounts:
    return counts


def asked(fleet: Fleet) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, question in questions().items():
        counts = fleet.pods.counts(name, partial(_same, question))
        found[name] = (counts.domains, [counts.on(node) for node in "mno"], bool(counts))
    for terms in (fleet.pods.anti_affinity, fleet.pods.affinity, fleet.pods.preferred):
        found[f"terms {len(found)}"] = {key: counts.domains for key, counts in terms.items()}
    return found


@given(st.lists(events, max_size=20), st.lists(events, max_size=20))
def test_counts_that_are_kept_are_those_of_a_recount(before: list[Any], after: list[Any]) -> None:
    """Whatever came and went since it was first asked, the answer is that of asking only now."""
    kept = Fleet()
    fresh = Fleet()
    for event in before:
        told(kept, event)
    asked(kept)
    for event in after:
        told(kept, event)
    for event in (*before, *after):
        told(fresh, event)

    assert asked(kept) == asked(fresh)


def test_an_empty_domain_counts_where_nodes_are_chosen() -> None:
    """Spreading has to know of a zone in which there is nobody; affinity does not."""
    fleet = Fleet()
    fleet.put(decode({"metadata": {"name": "m", "labels": {"zone": "1"}}}, Node))

    assert asked(fleet)["open nodes"][0] == {"1": 0}
    assert asked(fleet)["everywhere"][0] == {}


def test_terms_are_about_the_pods_own_namespace_unless_they_say_otherwise() -> None:
    """A term that names no namespaces and selects none means the one that its pod is in."""
    pod = decode({"metadata": {"namespace": "x"}, "spec": {"affinity": AFFINITIES[1]}}, Pod)
    (term,) = PodTerms.of(pod.spec.affinity, "x").affinity

    assert term.matches("x", {"app": "a"})
    assert not term.matches("y", {"app": "a"})
    assert not term.matches("x", {"app": "b"})

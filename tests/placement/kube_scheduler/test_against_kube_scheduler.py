"""
Same nodes, same words and same scores as kube-scheduler's own plugins, on random small clusters.

The oracle runs the framework of kube-scheduler 1.37 with its default plugins. More cases by hand:
`python -m tests.placement.kube_scheduler.compare CASES SEED`, or `victims` for `compare`.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest
from tests.placement.kube_scheduler import victims
from tests.placement.kube_scheduler.compare import SHOWN_MAX, cases, differing, ours

CASES = 300
VICTIMS_CASES = 100
SEED = 79
VICTIMS_SEED = 75


@pytest.mark.real
@pytest.mark.timeout(1800)
def test_nodes_scores_and_words_are_those_of_kube_scheduler() -> None:
    """And the pod goes to one of the best nodes, or is told the same."""
    found = list(differing(CASES, SEED))

    shown = "\n---\n".join(found[:SHOWN_MAX])
    assert not found, f"{len(found)} of {CASES} differ (seed {SEED}):\n{shown}"


def test_the_cases_are_about_everything() -> None:
    """Every refusal and every score of the plugins comes up, so that comparing them says much."""
    words: Counter[str] = Counter()
    for case in islice(cases(SEED), CASES):
        answer = ours(case)
        words.update(each for told in answer.refusals.values() for each in told)
        words.update({name for scores in answer.scores.values() for name in scores})
        words[answer.unschedulable] += 1

    for expected in (
        "node(s) didn't match pod affinity rules",
        "node(s) didn't match pod anti-affinity rules",
        "node(s) didn't satisfy existing pods anti-affinity rules",
        "node(s) didn't match pod topology spread constraints",
        "node(s) didn't match pod topology spread constraints (missing required label)",
        "node(s) didn't match PersistentVolume's node affinity",
        "node(s) had no available volume zone",
        "node(s) didn't find available persistent volumes to bind",
        "node(s) didn't match scheduler-enforced node affinity",
        "pod has unbound immediate PersistentVolumeClaims",
        "InterPodAffinity",
        "PodTopologySpread",
        "TaintToleration",
        "NodeAffinity",
        "ImageLocality",
        "VolumeBinding",
    ):
        assert words[expected] >= 3, expected


@pytest.mark.real
@pytest.mark.timeout(1800)
def test_victims_and_words_of_preemption_are_those_of_kube_scheduler() -> None:
    """Every node has the same victims, and the chosen node is one of kube-scheduler's."""
    found = list(victims.differing(VICTIMS_CASES, VICTIMS_SEED))

    shown = "\n---\n".join(found[:SHOWN_MAX])
    assert not found, f"{len(found)} of {VICTIMS_CASES} differ (seed {SEED}):\n{shown}"


def test_the_cases_of_preemption_are_about_everything() -> None:
    """Budgets are broken, nodes compete, several go at once, and nobody can help."""
    seen: Counter[str] = Counter()
    for case in islice(victims.cases(VICTIMS_SEED), VICTIMS_CASES):
        answer = victims.preempted(case)
        candidates = answer.candidates.values()
        seen["nodes compete"] += len(candidates) > 1
        seen["several go"] += any(len(each.pods) > 1 for each in candidates)
        seen["a budget is broken"] += any(each.violations for each in candidates)
        for words in (
            "preemptionPolicy=Never",
            "No preemption victims found",
            "Preemption is not helpful",
            "Insufficient cpu",
            "anti-affinity rules",
        ):
            seen[words] += words in answer.message
    assert len(seen) == 8
    assert min(seen.values()) >= 2, seen

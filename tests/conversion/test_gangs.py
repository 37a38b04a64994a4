"""Gangs of every format become gangs of every other."""

from __future__ import annotations

from functools import partial
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conversion.converting import convert, notes, objects

from dryrack.conversion import convert_gangs, note_scheduler_names, set_scheduler_name
from dryrack.kinds.catalog import Typed, typed
from dryrack.kinds.core import Pod
from dryrack.kinds.documents import read
from dryrack.kinds.releases import Release
from dryrack.linter import Severity, lint
from dryrack.placement.gangs.dialects import definitions, gang_of, membership

FORMATS = ("native", "sigs", "kubenexus", "coscheduling", "volcano", "kueue")
# The formats that the scheduler of dryrack reads.
SCHEDULED = FORMATS[:4]
LABELS = """\
apiVersion: v1
kind: Pod
metadata:
  name: member-0
  labels:
    app: train
    # the gang
    pod-group.scheduling.sigs.k8s.io/name: gang # its name
    pod-group.scheduling.sigs.k8s.io/min-available: "2"
spec:
  containers: [{name: a, image: b}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: others}
spec:
  replicas: 2
  selector: {matchLabels: {app: others}}
  template:
    metadata:
      labels:
        app: others
        pod-group.scheduling.sigs.k8s.io/name: gang
        pod-group.scheduling.sigs.k8s.io/min-available: "2"
    spec:
      containers: [{name: a, image: b}]
"""
COSCHEDULING = """\
# the group
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata:
  name: gang # its name
spec:
  minMember: 3
  scheduleTimeoutSeconds: 10
---
apiVersion: v1
kind: Pod
metadata: {name: a, labels: {scheduling.x-k8s.io/pod-group: gang}}
spec:
  schedulerName: scheduler-plugins-scheduler
  containers: [{name: a, image: b}]
"""


def _to(target: str, release: str = "1.36") -> partial[None]:
    return partial(convert_gangs, target=target, release=release)


def _minimum(text: str) -> int:
    """Return the minimum of the one gang of the first pod, as the scheduler reads it."""
    objects_ = [typed(each) for each in read(text, "a.yaml").documents]
    known = {
        each.key: each
        for one in objects_
        if isinstance(one, Typed)
        for each in definitions(one.object)
    }
    pod = next(
        one.object for one in objects_ if isinstance(one, Typed) and isinstance(one.object, Pod)
    )
    found = membership(pod)
    assert found is not None
    assert not hasattr(found, "remedy"), found
    gang = gang_of(found.key, [pod], known)
    assert hasattr(gang, "min_count"), gang
    return gang.min_count


@pytest.mark.parametrize("release", Release)
@pytest.mark.parametrize(("first", "second"), list(permutations(FORMATS, 2)))
def test_every_format_survives_the_way_through_another(
    first: str, second: str, release: Release
) -> None:
    """The objects are the same afterwards, in the order of their text or in another."""
    start = convert(LABELS, _to(first, release.value))
    there = convert(start, _to(second, release.value))
    back = convert(there, _to(first, release.value))

    assert sorted(objects(back), key=str) == sorted(objects(start), key=str)
    assert convert(there, _to(second, release.value)) == there
    found = lint([("a.yaml", there.encode())], lambda *_: (), release=release)
    assert [each for each in found if each.severity is Severity.ERROR] == []


@given(st.integers(2, 9), st.sampled_from(SCHEDULED))
def test_the_scheduler_reads_the_same_minimum(minimum: int, target: str) -> None:
    """Every format that dryrack schedules has the gang of the labels."""
    text = LABELS.replace('"2"', f'"{minimum}"')

    assert _minimum(convert(text, _to(target))) == minimum


def test_labels_become_a_native_group() -> None:
    """The text changes only in the pods; the group follows its first pod."""
    assert (
        convert(LABELS, _to("native"))
        == """\
apiVersion: v1
kind: Pod
metadata:
  name: member-0
  labels:
    app: train
    # the gang
spec:
  containers: [{name: a, image: b}]
  schedulingGroup:
    podGroupName: gang
---
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata:
  name: gang
spec:
  schedulingPolicy:
    gang:
      minCount: 2
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: others}
spec:
  replicas: 2
  selector: {matchLabels: {app: others}}
  template:
    metadata:
      labels:
        app: others
    spec:
      containers: [{name: a, image: b}]
      schedulingGroup:
        podGroupName: gang
"""
    )


def test_a_group_of_the_plugin_becomes_native_in_place() -> None:
    """What native groups cannot say is reported with its line."""
    steps = (_to("native"), partial(note_scheduler_names, target="native"))

    assert convert(COSCHEDULING, *steps).startswith(
        "# the group\napiVersion: scheduling.k8s.io/v1alpha2\nkind: PodGroup\nmetadata:\n"
        "  name: gang # its name\nspec:\n  schedulingPolicy:\n    gang:\n      minCount: 3\n---\n"
    )
    assert notes(COSCHEDULING, *steps) == [
        "a.yaml:8: spec.scheduleTimeoutSeconds is dropped: the format native has no such field",
        (
            "a.yaml:14: spec.schedulerName stays 'scheduler-plugins-scheduler', which may not read"
            " these gangs; set another one with --scheduler-name"
        ),
    ]


def test_a_group_without_its_pods_stays_if_labels_replace_it() -> None:
    """The pods of other files may still name it."""
    group = COSCHEDULING.partition("---\n")[0]

    assert convert(group, _to("sigs")) == group
    assert notes(group, _to("sigs")) == [
        ("a.yaml:2: no pod in the files is in PodGroup 'gang'; convert its pods together with it")
    ]


def test_the_scheduler_of_pods_is_set() -> None:
    """Pods that name no scheduler stay as they are."""
    text = convert(COSCHEDULING + "---\n" + LABELS, partial(set_scheduler_name, name="dryrack"))

    assert text.count("schedulerName: dryrack\n") == 1
    assert text.count("schedulerName") == 1


def test_native_groups_of_one_release_become_those_of_another() -> None:
    """The way back gives the first text."""
    old = """\
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: g}
spec:
  # from a template
  podGroupTemplateRef:
    workload: {workloadName: w, podGroupTemplateName: t}
  schedulingPolicy: {gang: {minCount: 2}}
  disruptionMode: PodGroup # all
"""
    new = convert(old, _to("native", "1.37"))
    [group] = objects(new)

    assert group["apiVersion"] == "scheduling.k8s.io/v1beta1"
    assert group["spec"]["workloadRef"] == {"workloadName": "w", "templateName": "t"}
    assert group["spec"]["disruptionMode"] == {"all": {}}
    assert objects(convert(new, _to("native"))) == objects(old)


def test_a_workload_of_135_becomes_groups() -> None:
    """One for each replica that a pod names."""
    text = """\
apiVersion: scheduling.k8s.io/v1alpha1
kind: Workload
metadata: {name: w}
spec: {podGroups: [{name: g, policy: {gang: {minCount: 2}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  workloadRef: {name: w, podGroup: g, podGroupReplicaKey: "1"}
  containers: [{name: a, image: b}]
"""
    group, pod = objects(convert(text, _to("native")))

    assert group["kind"] == "PodGroup"
    assert group["metadata"]["name"] == "w-g-1"
    assert pod["spec"]["schedulingGroup"] == {"podGroupName": "w-g-1"}


@pytest.mark.parametrize(
    ("text", "target", "problem"),
    [
        (
            LABELS.replace('min-available: "2"', 'min-available: "x"', 1),
            "native",
            (
                'a.yaml:9: metadata.labels["pod-group.scheduling.sigs.k8s.io/min-available"]:'
                " 'x' is no positive number; write the number of pods that must run together"
            ),
        ),
        (
            LABELS.replace('min-available: "2"', 'min-available: "3"', 1),
            "native",
            (
                "a.yaml:24: spec.template.metadata.labels["
                '"pod-group.scheduling.sigs.k8s.io/min-available"]: 2, but another pod of gang'
                " 'gang' has 3; use one value for all its pods"
            ),
        ),
        (
            COSCHEDULING.partition("---\n")[2],
            "sigs",
            (
                "a.yaml:3: PodGroup 'gang', which states the minimum of the gang, is not in the"
                " files; convert it together with this object"
            ),
        ),
    ],
)
def test_a_gang_that_cannot_be_converted_is_refused(text: str, target: str, problem: str) -> None:
    """With the line of the value."""
    assert notes(text, _to(target)) == [problem]

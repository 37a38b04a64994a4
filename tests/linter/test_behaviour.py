"""
Behaviour of lint that the examples of the rules do not show.

Order, repetition, versions, broken neighbours, and the cases in which a rule must keep quiet.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.linter.examples import (
    CLAIM,
    CLASS,
    COUNTERS,
    NAMESPACE,
    POD,
    SLICE,
    TAINT_RULE,
    TEMPLATE,
    join,
)
from tests.linter.rule_examples import EXAMPLES

from dryrack.kinds.releases import Release
from dryrack.linter import Finding, Severity, lint
from dryrack.linter.objects import read_world

if TYPE_CHECKING:
    from collections.abc import Sequence

EVERYTHING = join(NAMESPACE, SLICE, TAINT_RULE, CLASS, CLAIM, TEMPLATE, POD)


def findings(text: str, file: str = "a.yaml") -> tuple[Finding, ...]:
    return lint([(file, text.encode())])


def codes(text: str) -> list[str]:
    return [finding.code for finding in findings(text)]


def test_a_sound_world_yields_nothing() -> None:
    """The pieces from which the examples are cut have no fault, alone or together."""
    assert codes(EVERYTHING) == []


def test_findings_come_by_file_line_and_code() -> None:
    """Findings are in the order of file names and lines, for any order of the files."""
    bad = [(code, example.bad.encode()) for code, example in EXAMPLES.items()]
    found = lint(reversed(bad))

    assert [each.order() for each in found] == sorted(each.order() for each in found)
    assert len(set(found)) == len(found)


def test_the_same_thing_is_said_once() -> None:
    """Two alternatives that a constraint covers are one finding about the constraint."""
    claim = join(SLICE, CLASS, CLAIM[: CLAIM.index("      exactly:")]) + (
        "      firstAvailable:\n"
        "      - {name: two, deviceClassName: gpu, count: 2}\n"
        "      - {name: one, deviceClassName: gpu}\n"
        "    constraints:\n"
        "    - {matchAttribute: gpu.example.com/rack}\n"
    )
    found = findings(claim)

    assert [finding.code for finding in found] == ["DR504", "DR504"]
    assert len(set(found)) == len(found)


def test_findings_do_not_depend_on_the_hash_seed() -> None:
    """Two processes with different hash seeds print the same bytes."""
    script = (
        "import sys; from dryrack.linter import lint;"
        "from tests.linter.rule_examples import EXAMPLES;"
        "sys.stdout.write(repr(lint([(c, e.bad.encode()) for c, e in EXAMPLES.items()])))"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]

    assert said[0]
    assert said[0] == said[1]


def test_a_broken_document_does_not_hide_its_neighbours() -> None:
    """Faults of later documents are reported although the first document has no end."""
    text = join(
        "kind: [\n",
        SLICE.replace("generation: 1", "generation: one"),
        SLICE.replace("Count: 1", "Count: 2").replace("rack-1-gpus", "rack-2-gpus"),
    )

    assert [(finding.line, finding.code) for finding in findings(text)][1:] == [
        (12, "DR002"),
        (38, "DR201"),
    ]
    assert findings(text)[0].code == "DR001"


def test_json_and_lists_are_read_like_yaml() -> None:
    """A List in JSON has the same findings, each at a line of the JSON."""
    objects = list(yaml.safe_load_all(join(CLASS, SLICE.replace("Count: 1", "Count: 2"))))
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=1)
    (finding,) = findings(text, "a.json")

    assert finding.code == "DR201"
    assert "resourceSliceCount" in text.splitlines()[finding.line - 1]


V1BETA1 = """\
apiVersion: resource.k8s.io/v1beta1
kind: ResourceSlice
metadata: {name: rack-1}
spec:
  driver: gpu.example.com
  nodeName: rack-1
  pool: {name: rack-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    basic:
      attributes:
        memory: {string: 80Gi}
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: training}
spec:
  devices:
    requests:
    - name: gpus
      deviceClassName: gpu
      count: 33
"""


def test_old_versions_are_judged_at_their_own_lines() -> None:
    """v1beta1 is converted, and a finding is still where the file has the field."""
    assert [(finding.line, finding.code) for finding in findings(V1BETA1)] == [
        (1, "DR005"),
        (12, "DR301"),
        (14, "DR005"),
        (19, "DR503"),
        (21, "DR501"),
    ]


@pytest.mark.parametrize(
    ("text", "fixes"),
    [
        ("requests: [{name: r, deviceClassName: gpu, count: 2}]", ["exactly"] * 3),
        ("requests: [{name: r, selectors: [], allocationMode: All}]", ["exactly"] * 3),
    ],
)
def test_a_request_of_v1beta1_is_moved_under_exactly(text: str, fixes: Sequence[str]) -> None:
    """Every field of it, and what the server says of the request; in v1beta1 itself it is right."""
    head = "kind: ResourceClaim\nmetadata: {name: c}\nspec: {devices: {"
    found = findings(f"apiVersion: resource.k8s.io/v1\n{head}{text}}}}}\n")
    told = [each.fix for each in found if each.severity is Severity.ERROR]
    older = codes(f"apiVersion: resource.k8s.io/v1beta1\n{head}{text}}}}}\n")

    assert len(told) == len(fixes)
    assert all(each.startswith("move ") and each.endswith(" under `exactly`") for each in told)
    assert "DR003" not in older


@pytest.mark.parametrize(
    ("text", "fixes"),
    [
        (
            (
                "kind: Pod\napiVersion: v1\nmetadata: {name: p}\n"
                "spec: {containers: [{name: c, image: i}], "
                "resourceClaims: [{name: g, source: {resourceClaimName: c}}]}\n"
            ),
            {
                "write what is in `source` one level up",
                "move its fields one level up, next to `name`",
            },
        ),
        (
            (
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n"
                "spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, "
                "spec: {containers: [{name: c, image: i}], "
                "resourceClaims: [{name: g, source: {resourceClaimName: c}}]}}}\n"
            ),
            {
                "write what is in `source` one level up",
                "move its fields one level up, next to `name`",
            },
        ),
        (
            (
                "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec: "
                "{driver: d, nodeName: a, pool: {name: a, generation: 1, resourceSliceCount: 1}, "
                "devices: [{name: g, basic: {attributes: {a: {int: 1}}}}]}\n"
            ),
            {"move its fields one level up, next to `name`"},
        ),
        (
            "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClass\nmetadata: {name: c}\n",
            {
                "run: dryrack convert -i a.yaml",
            },
        ),
        (
            (
                "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\n"
                "spec: {resourceClassName: gpu}\n"
            ),
            {"name a DeviceClass: spec.devices.requests[].exactly.deviceClassName"},
        ),
        (
            (
                "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\n"
                "metadata: {name: t}\nspec: {devices: {requests: []}}\n"
            ),
            {"move it under `spec`: a template has spec.spec"},
        ),
        (
            (
                "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: c}\n"
                "spec: {selectors: [{cel: {expression: 'device.driver = \"a\"'}}]}\n"
            ),
            {"compare with =="},
        ),
        (
            (
                "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: "
                "{containers: [{name: c, resources: {claims: [gpu]}}]}\n"
            ),
            {'write {name: "gpu"}'},
        ),
    ],
)
def test_what_older_versions_had_is_told_where_it_is_now(text: str, fixes: set[str]) -> None:
    """The fix of a field or kind that went says what to write instead, and not to remove it."""
    assert {each.fix for each in findings(text) if each.severity is Severity.ERROR} == fixes


def test_of_a_base_and_its_override_the_last_counts() -> None:
    """A pool is made of the later slice alone; both are judged by themselves."""
    override = SLICE.replace("- name: gpu-1\n", "- name: gpu-2\n")
    wrong = SLICE.replace("driver: gpu.example.com", "driver: gpu/example")
    twice = lint([("base.yaml", SLICE.encode()), ("over.yaml", override.encode())])
    refused = lint([("base.yaml", wrong.encode()), ("over.yaml", SLICE.encode())])

    assert [(each.file, each.code) for each in twice] == [("over.yaml", "DR006")]
    assert "is also at base.yaml:1, and this one counts" in twice[0].what
    assert [(each.file, each.code) for each in refused] == [
        ("base.yaml", "DR111"),
        ("over.yaml", "DR006"),
    ]


def test_objects_of_other_groups_are_others() -> None:
    """Two kinds of one name, as the gangs of Kubernetes and of the coscheduling plugin."""
    gang = "apiVersion: scheduling.k8s.io/v1alpha2\nkind: PodGroup\nmetadata: {name: g}\n"
    other = gang.replace("scheduling.k8s.io/v1alpha2", "scheduling.x-k8s.io/v1alpha1")

    assert "DR006" not in codes(join(gang, other))


def test_a_refusal_carries_the_reason_and_field_of_the_api() -> None:
    """A refusal of the API server is reported with the reason and field of its causes."""
    (finding,) = findings(SLICE.replace("driver: gpu.example.com", "driver: example.com/gpu"))

    assert (finding.reason, finding.field) == ("FieldValueInvalid", "spec.driver")
    assert finding.fix == "write 'example.com.gpu'"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("compute-capability", "compute_capability"),
        ("9lives", "_9lives"),
        ("gpu.example.com/pcie-root", "gpu.example.com/pcie_root"),
    ],
)
def test_a_forbidden_attribute_name_is_corrected(name: str, meant: str) -> None:
    """The fix is the nearest name that the API takes, at the line of the name."""
    text = SLICE.replace("numa: {int: 0}", f"{name}: {{int: 0}}")
    (finding,) = (each for each in findings(text) if each.code == "DR112")

    assert finding.fix == f"write {meant!r}"
    assert name in text.splitlines()[finding.line - 1]


def test_claims_alone_are_not_blamed_for_devices_elsewhere() -> None:
    """Rules about matching devices are silent if the files have no slice."""
    assert codes(join(CLASS, CLAIM, TEMPLATE, POD)) == []


def test_a_fleet_with_one_mistake_is_told_once() -> None:
    """An amount as text on every device of a driver is one finding that counts the others."""
    text = SLICE.replace("model: {string: h100}", "memory: {string: 80Gi}")
    (finding,) = findings(text)

    assert finding.code == "DR301"
    assert "1 more" in finding.what


OWN = 'device.driver == "gpu.example.com" && '
NIC = SLICE.replace("gpu.example.com", "nic.example.com").replace("rack-1-gpus", "rack-1-nics")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (OWN + 'device.attributes["gpu.example.com"].model == "h100"', []),
        ('"model" in device.attributes["gpu.example.com"]', []),
        ('has(device.attributes["gpu.example.com"].model)', []),
        ('device.attributes["gpu.example.com"].?model.orValue("") == "h100"', []),
        ('device.attributes["gpu.example.com"].model == "h100"', ["DR403"]),
        ('device.attributes["gpu.example.com"].memory == "80Gi"', ["DR403"]),
        ('device.attributes["gpu.example.com"].memory >= "80Gi"', ["DR403"]),
        ('device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("1Gi"))', ["DR403"]),
        (
            'device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].numa',
            ["DR404"],
        ),
        ('device.driver.startsWith("tpu")', ["DR401"]),
    ],
)
def test_an_expression_is_tried_on_devices_of_all_drivers(
    expression: str, expected: Sequence[str]
) -> None:
    """Guards count, and a device of another driver is a device like any other."""
    text = join(SLICE, NIC, CLASS.replace('device.driver == "gpu.example.com"', f"'{expression}'"))

    assert codes(text) == expected


def test_a_missing_attribute_is_looked_for_in_capacity() -> None:
    """A selector that reads memory from the attributes gets a hint to the capacity."""
    text = join(
        SLICE,
        CLASS.replace(
            'device.driver == "gpu.example.com"',
            'device.attributes["gpu.example.com"].memory == 80',
        ),
    )
    (finding,) = findings(text)

    assert (
        finding.fix
        == 'the devices have it in capacity; use device.capacity["gpu.example.com"].memory'
    )


def test_request_selectors_see_only_what_the_class_leaves() -> None:
    """An attribute that other drivers' devices lack is no fault where the class keeps them out."""
    assert codes(join(SLICE, NIC, CLASS, CLAIM)) == []


def test_request_selectors_are_not_blamed_without_their_class() -> None:
    """The class may keep away the devices on which the expression fails."""
    assert codes(join(SLICE, NIC, CLAIM)) == ["DR501"]


def test_counters_beside_devices_are_told_where_to_go() -> None:
    """A slice has devices or counters; the fix says so."""
    text = SLICE + "  sharedCounters:\n  - {name: a, counters: {memory: {value: 1Gi}}}\n"
    (finding,) = (each for each in findings(text) if each.code == "DR118")

    assert finding.fix == "put the counters into a separate slice of the same pool"


def test_a_loop_over_attributes_sees_every_device() -> None:
    """Devices are compared by all attributes if an expression reads all of them."""
    loop = 'device.attributes["gpu.example.com"].exists(name, name == "spare")'
    spare = SLICE.replace(
        "      numa: {int: 1}\n", "      numa: {int: 1}\n      spare: {bool: true}\n"
    )
    text = join(CLASS.replace('device.driver == "gpu.example.com"', f"'{loop}'"))

    assert codes(join(SLICE, text)) == ["DR401"]
    assert codes(join(spare, text)) == []


def test_requests_of_a_claim_share_the_devices_of_a_node() -> None:
    """Two requests for two of two devices fit one by one and not together."""
    claim = CLAIM + CLAIM[CLAIM.index("    - name: gpus") :].replace("name: gpus", "name: more")
    (finding,) = findings(join(SLICE, CLASS, claim))

    assert finding.code == "DR502"
    assert "together need 4 devices" in finding.what


def test_devices_of_all_nodes_count_for_each() -> None:
    """A node reaches its own devices and those that belong to no node."""
    everywhere = (
        SLICE.replace("nodeName: rack-1", "allNodes: true")
        .replace("rack-1-gpus", "fabric")
        .replace("name: rack-1\n", "name: fabric\n")
    )

    assert codes(join(SLICE, everywhere, CLASS, CLAIM.replace("count: 2", "count: 4"))) == []
    assert codes(join(SLICE, everywhere, CLASS, CLAIM.replace("count: 2", "count: 5"))) == ["DR502"]


def test_a_device_that_many_may_share_is_not_counted() -> None:
    """No count is too high if devices allow multiple allocations."""
    shared = SLICE.replace(
        "  - name: gpu-0\n", "  - name: gpu-0\n    allowMultipleAllocations: true\n"
    )

    assert codes(join(shared, CLASS, CLAIM.replace("count: 2", "count: 9"))) == []


def test_a_workload_is_judged_by_the_template_of_its_pods() -> None:
    """A Deployment whose containers do not use the claim is reported like a pod."""
    pod = yaml.safe_load(POD.replace("    resources:\n      claims:\n      - name: gpu\n", ""))
    workload = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": pod["metadata"],
        "spec": {
            "schedule": "@daily",
            "jobTemplate": {
                "spec": {"template": {"spec": pod["spec"] | {"restartPolicy": "Never"}}}
            },
        },
    }
    template = TEMPLATE.replace("deviceClassName: gpu", "deviceClassName: gpu.nvidia.com")
    (finding,) = findings(join(CLASS, template, yaml.safe_dump(workload)))

    assert finding.code == "DR601"
    assert finding.field == "spec.jobTemplate.spec.template.spec.resourceClaims[0]"


@pytest.mark.parametrize(
    ("pod", "fix"),
    [
        (
            POD.replace("resourceClaimTemplateName", "resourceClaimName"),
            "'one-gpu' is a template; use resourceClaimTemplateName: one-gpu",
        ),
        (
            POD.replace("namespace: team-a", "namespace: team-b"),
            "it is in namespace 'team-a'; a pod needs it in its own namespace",
        ),
        (POD.replace("one-gpu", "one-gpus"), "did you mean 'one-gpu'?"),
    ],
)
def test_a_claim_that_is_not_there_is_looked_for_elsewhere(pod: str, fix: str) -> None:
    """The fix names what was probably meant: the other kind, the other namespace, a near name."""
    (finding,) = findings(join(CLASS, TEMPLATE, pod))

    assert (finding.code, finding.fix) == ("DR602", fix)


def test_no_execute_on_everything_says_who_is_evicted() -> None:
    """An empty selector with NoExecute is reported with its consequence."""
    start = TAINT_RULE.index("  deviceSelector")
    end = TAINT_RULE.index("  taint:")
    rule = TAINT_RULE[:start] + "  deviceSelector: {}\n" + TAINT_RULE[end:]
    (finding,) = findings(rule.replace("NoSchedule", "NoExecute"))

    assert finding.code == "DR701"
    assert "evicts every pod" in finding.what


@pytest.mark.parametrize(
    ("version", "kind", "path"),
    [("v1", "Pod", "spec"), ("apps/v1", "Deployment", "spec.template.spec")],
)
def test_a_misspelt_field_of_a_pod_is_found(version: str, kind: str, path: str) -> None:
    """Also in a workload, of which only the pods are read."""
    pod = yaml.safe_load(POD)
    spec = {"resourceClaim": [], "hostIPC": True, **pod["spec"]}
    labels = {"a": "b"}
    template = {"template": {"metadata": {"labels": labels}, "spec": spec}}
    workload = {
        "apiVersion": version,
        "kind": kind,
        "metadata": pod["metadata"],
        "spec": spec if kind == "Pod" else {"selector": {"matchLabels": labels}, **template},
    }
    (finding,) = findings(join(CLASS, TEMPLATE, yaml.safe_dump(workload)))

    assert (finding.code, finding.field) == ("DR003", f"{path}.resourceClaim")
    assert finding.fix == "did you mean 'resourceClaims'?"


def test_kinds_of_others_are_passed_over() -> None:
    """Objects of unknown kinds are allowed; one finding says that they are not checked."""
    whatever = "apiVersion: example.com/v1\nkind: Whatever\nmetadata: {name: NAME}\n"
    both = f"{whatever.replace('NAME', 'a')}---\n{whatever.replace('NAME', 'b')}"

    assert codes(both) == ["DR007"]
    assert codes("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n") == []


def test_a_typo_in_a_kind_is_found() -> None:
    """A kind that no group of ours has is an error with what was meant."""
    (finding,) = findings(SLICE.replace("kind: ResourceSlice", "kind: ResourceSlise"))

    assert (finding.code, finding.severity) == ("DR004", Severity.ERROR)
    assert "did you mean 'ResourceSlice'?" in finding.fix


def alternatives(*lines: str) -> str:
    """The claim with alternatives instead of an exact request."""
    head = CLAIM[: CLAIM.index("      exactly:")] + "      firstAvailable:\n"
    return head + "".join(f"      - {{{line}}}\n" for line in lines)


LARGE = "name: large, deviceClassName: gpu, count: 8"
NONE = (
    "name: none, deviceClassName: gpu, selectors: [{cel: {expression: "
    """'device.attributes["gpu.example.com"].model == "b200"'}}]"""
)
ANY = "name: any, deviceClassName: gpu"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((NONE, LARGE, ANY), []),
        ((LARGE,), ["DR502"]),
        ((NONE,), ["DR402"]),
        ((NONE, LARGE), ["DR402", "DR502"]),
    ],
)
def test_an_alternative_may_fail_while_another_serves(
    lines: Sequence[str], expected: Sequence[str]
) -> None:
    """A request is reported only if none of its alternatives can be served."""
    assert codes(join(SLICE, CLASS, alternatives(*lines))) == expected


def test_what_a_missing_slice_may_bring_is_not_missed() -> None:
    """An incomplete pool is reported once, not for the contents of the missing slice."""
    assert codes(COUNTERS.split("---\n")[0]) == ["DR201"]
    assert codes(COUNTERS.split("---\n")[1]) == ["DR201"]


def test_a_template_that_a_controller_makes_is_not_missed() -> None:
    """A ComputeDomain brings the template that it names."""
    domain = """\
apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomain
metadata: {name: domain, namespace: team-a}
spec: {numNodes: 1, channel: {resourceClaimTemplate: {name: one-gpu}}}
"""
    assert codes(POD) == ["DR602"]
    assert codes(join(domain, POD)) == []


def test_devices_that_differ_in_what_nobody_reads_are_one_shape() -> None:
    """Unique names and serial numbers do not multiply the work of selectors."""
    serials = "".join(
        f"  - name: gpu-{n}\n    attributes: {{model: {{string: h100}}, uuid: {{string: u{n}}}}}\n"
        for n in range(100)
    )
    text = join(SLICE[: SLICE.index("  devices:")] + "  devices:\n" + serials, CLASS, CLAIM)
    world = read_world([("a.yaml", text.encode())], lambda *_: (), Release.V1_36)

    assert len(world.devices) == 100
    assert len(world.selection.everything.shapes) == 1
    assert codes(text) == []


def test_a_taint_rule_in_v1_is_for_a_later_release() -> None:
    """The API server of 1.36 has the kind in v1beta2, and refuses v1."""
    later = TAINT_RULE.replace("resource.k8s.io/v1beta2", "resource.k8s.io/v1")
    assert later != TAINT_RULE
    files = [("a.yaml", join(SLICE, later).encode())]
    (finding,) = lint(files, release=Release.V1_36)

    assert (finding.code, finding.severity) == ("DR011", Severity.ERROR)
    assert finding.what == (
        "Kubernetes 1.36 has no DeviceTaintRule in resource.k8s.io/v1; Kubernetes 1.37 has it"
    )
    assert finding.fix == (
        "write apiVersion: resource.k8s.io/v1beta2, or check for that release with --release 1.37"
    )
    assert lint(files, release=Release.V1_37) == ()

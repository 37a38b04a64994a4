"""What quotas count, beside what the scheduler reckons with."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.quota_usage.claims import ClaimContext
from dryrack.kinds.quota_usage.pods import totals, with_overhead
from dryrack.kinds.quota_usage.quotas import names_of, resources_of, usage_of
from dryrack.placement.demand import ONE, demand

AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/gpu"]),
    st.sampled_from(["1", "250m", "64Mi", "3"]),
    max_size=3,
)
CONTAINERS = st.builds(
    lambda requests, always: {
        "name": "c",
        "image": "i",
        "resources": {"requests": requests},
        **({"restartPolicy": "Always"} if always else {}),
    },
    AMOUNTS,
    st.booleans(),
)
SPECS = st.fixed_dictionaries(
    {
        "containers": st.lists(CONTAINERS, min_size=1, max_size=3),
        "initContainers": st.lists(CONTAINERS, max_size=3),
        "overhead": AMOUNTS,
    }
)


@given(SPECS)
def test_quotas_count_what_the_scheduler_sets_aside(spec: dict[str, Any]) -> None:
    """The requests of a pod are the same to both, though each reckons by itself."""
    pod = {"metadata": {"name": "p"}, "spec": spec}
    counted = with_overhead(spec, totals(spec, "requests"), "requests")
    reckoned = demand(decode(pod, Pod))

    assert {name: amount.nanos for name, amount in counted.items()} | {"pods": ONE} == reckoned


def test_every_amount_that_is_used_can_be_limited() -> None:
    """A kind answers to all the names by which it is counted, and is found by each of them."""
    request = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    devices = {"requests": [{"exactly": request}]}
    claim = {"metadata": {"name": "c"}, "spec": {"devices": devices}}
    for resource, obj in (
        ("pods", {"spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}}),
        ("services", {"spec": {"ports": [{"port": 80}]}}),
        ("resourceclaims.resource.k8s.io", claim),
        ("configmaps", {}),
        ("leases.coordination.k8s.io", {}),
    ):
        context = ClaimContext(classes={"gpu": "example.com/gpu"})
        names = list(usage_of(resource, obj, context=context))

        assert names_of(resource, names, context) == names
        assert all(resource in resources_of([name]) for name in names)

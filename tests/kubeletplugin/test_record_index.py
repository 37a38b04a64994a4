"""The index of prepared claims, beside a look at all of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dryrack.kubeletplugin.device_kind import ContainerEdits
from dryrack.kubeletplugin.record import ClaimRecord, PreparedDevice, RecordIndex, State

PODS = ("pod-0", "pod-1", "pod-2")


def record(number: int, first: int, *, is_of_one_pod: bool, pods: tuple[str, ...]) -> ClaimRecord:
    """A claim with a device that has two numbers, in one of two namespaces."""
    device = PreparedDevice(
        requests=("r",), pool="n", device=f"d-{number % 7}", edits=ContainerEdits(numbers=2)
    )
    return ClaimRecord(
        uid=f"u-{number}",
        namespace=f"ns-{number % 2}",
        name=f"c-{number}",
        state=State.PREPARED,
        devices=(device,),
        consumers=pods,
        is_of_one_pod=is_of_one_pod,
        first_number=first,
        sequence=number + 1,
    )


def first_free(claim: ClaimRecord, others: list[ClaimRecord]) -> int:
    """Return the same first number by a search over all records."""
    beside = [
        each.end_number
        for each in others
        if each.namespace == claim.namespace
        and (not each.is_of_one_pod or set(each.consumers) & set(claim.consumers))
    ]
    return max(beside, default=0)


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.booleans(), st.sampled_from(PODS), st.booleans()),
        max_size=120,
    )
)
def test_numbers_and_holders_are_those_of_a_look_at_all_claims(
    history: list[tuple[int, bool, str, bool]],
) -> None:
    """However claims come and go; and no number is ever had twice by one container."""
    index = RecordIndex()
    live = dict[str, ClaimRecord]()
    for number, is_of_one_pod, pod, goes in history:
        uid = f"u-{number}"
        if uid in live:
            if goes:
                index.drop(uid)
                del live[uid]
            continue
        asked = record(number, 0, is_of_one_pod=is_of_one_pod, pods=(pod,))
        first = index.first_number(asked)
        made = record(number, first, is_of_one_pod=is_of_one_pod, pods=(pod,))
        assert first == first_free(asked, list(live.values()))
        index.put(made)
        live[uid] = made
        name = f"d-{number % 7}"
        holders = {each.uid for each, _ in index.holders("n", name)}
        assert holders == {each.uid for each in live.values() if each.devices[0].device == name}
    assert dict(index.by_uid) == live

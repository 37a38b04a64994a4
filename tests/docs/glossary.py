"""What each reason means, for the reference page; one entry for each code."""

from dryrack.allocation.model.reasons import Code

MEANINGS: dict[Code, str] = {
    Code.CLASS_SELECTOR: "A selector of the device class does not match the device.",
    Code.REQUEST_SELECTOR: "A selector of the request does not match the device.",
    Code.SELECTOR_ERROR: "A selector cannot be evaluated on the device; in a cluster that stops "
    "scheduling of the pod.",
    Code.IN_USE: "Another claim has the device, or this one has it already.",
    Code.NODE: "The device, its pool or the pod does not go with the node.",
    Code.GATE_OFF: "The device needs a feature gate that is off.",
    Code.CAPACITY_ABSENT: "The request asks for a capacity that the device does not have.",
    Code.CAPACITY_POLICY: "The device's request policy does not allow the amount asked for.",
    Code.CAPACITY_SHORT: "Too little of a capacity is left on a device that is shared.",
    Code.COUNTER_SHORT: "Too little is left in a counter set that the device draws on.",
    Code.TAINTED: "The device has a taint that the request does not tolerate.",
    Code.CONSTRAINT: "The device does not go with those chosen for the same constraint.",
    Code.POOL_INCOMPLETE: "Slices of the pool are missing, so none of its devices is offered.",
    Code.POOL_INVALID: "The slices of the pool contradict each other.",
    Code.TOO_MANY_RESULTS: "The claim would need more devices than one allocation can hold.",
    Code.NOT_ENOUGH: "Fewer devices can be had than the request wants.",
    Code.NO_DEVICES: "The node has no devices of the kind that the request wants.",
    Code.COMBINATION: "Each request could be served, but not all of them together.",
    Code.OTHER_CLAIM: "Another claim that must be allocated together with this one does not fit.",
    Code.ERROR: "The claim itself is wrong, or a pool that it wants all of is not whole.",
    Code.UNDECIDED: "Unknown: the search stopped at its limit, because there are too many "
    "combinations of devices, or too many ways to place a gang.",
    Code.NOT_FOUND: "The pod names a claim or template that is not there, or asks for an extended "
    "resource that neither a class nor a node gives.",
    Code.GANG: "The pod is in a gang, of which not enough members fit together.",
    Code.ADMISSION: "The API server does not create the claim or its pod: a ResourceQuota is "
    "exceeded, a LimitRange is not kept, or the PriorityClass does not exist.",
    Code.PREEMPTED: "A pod of higher priority preempts the pod.",
}

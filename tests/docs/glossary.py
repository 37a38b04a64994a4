"""The meaning and the remedy of each reason, for the reference page."""

from dryrack.allocation.model.reasons import Code

MEANINGS: dict[Code, str] = {
    Code.CLASS_SELECTOR: "A selector of the device class does not match the device.",
    Code.REQUEST_SELECTOR: "A selector of the request does not match the device.",
    Code.SELECTOR_ERROR: "A selector fails with an error on the device. In a cluster, this stops "
    "the scheduling of the pod.",
    Code.IN_USE: "The device is allocated to another claim, or to another request of this claim.",
    Code.NODE: "The device, its pool or the pod does not match the node.",
    Code.GATE_OFF: "The device needs a feature gate that is off.",
    Code.CAPACITY_ABSENT: "The request needs a capacity that the device does not have.",
    Code.CAPACITY_POLICY: "The request policy of the device does not allow the requested amount.",
    Code.CAPACITY_SHORT: "A shared device has too little of a capacity left.",
    Code.COUNTER_SHORT: "A counter set that the device consumes has too little left.",
    Code.INCOMPATIBLE: "The device has no compatibility group in common with other devices of its "
    "counter set.",
    Code.TAINTED: "The device has a taint that the request does not tolerate.",
    Code.CONSTRAINT: "The device and the devices chosen before do not satisfy a constraint.",
    Code.POOL_INCOMPLETE: "Slices of the pool are missing, so its devices are not available.",
    Code.POOL_INVALID: "The slices of the pool contradict each other.",
    Code.TOO_MANY_RESULTS: "The claim needs more devices than one allocation can have.",
    Code.NOT_ENOUGH: "Fewer devices are available than the request needs.",
    Code.NO_DEVICES: "The node has no devices that match the class of the request.",
    Code.COMBINATION: "Each request fits alone, but not all of them together.",
    Code.OTHER_CLAIM: "Another claim of the pod, allocated together with this one, does not fit.",
    Code.ERROR: "The claim is invalid, or it requests all devices of an incomplete pool.",
    Code.UNDECIDED: "Unknown: the search stopped at its limit, because there are too many "
    "combinations of devices, or too many placements of a gang.",
    Code.NOT_FOUND: "The pod uses a claim or template that does not exist, or an extended resource "
    "that no class and no node provides.",
    Code.GANG: "Not enough members of the pod's gang fit together.",
    Code.ADMISSION: "The API server does not create the claim or its pod: it would exceed a "
    "ResourceQuota or violate a LimitRange, or the PriorityClass does not exist.",
    Code.PREEMPTED: "A pod of higher priority preempts the pod.",
}

REMEDIES: dict[Code, str] = {
    Code.CLASS_SELECTOR: "Compare the selectors of the DeviceClass with the attributes in the "
    "ResourceSlices, or use another class.",
    Code.REQUEST_SELECTOR: "Compare the selectors of the request with the attributes in the "
    "ResourceSlices.",
    Code.SELECTOR_ERROR: "Correct the expression. If only some devices have an attribute, test "
    "that it exists.",
    Code.IN_USE: "Wait for the other claim, delete it, or add devices.",
    Code.NODE: "Check `nodeSelector`, affinity, and taints of the Pod and the node, and the node "
    "selection of the ResourceSlice.",
    Code.GATE_OFF: "Enable the gate with `--feature-gates`.",
    Code.CAPACITY_ABSENT: "Correct the name of the capacity, or request another device.",
    Code.CAPACITY_POLICY: "Request an amount that the policy of the device allows.",
    Code.CAPACITY_SHORT: "Request less, or wait until another claim releases its part.",
    Code.COUNTER_SHORT: "Request a smaller partition, or wait until another claim releases one.",
    Code.INCOMPATIBLE: "Wait until another claim releases these devices, or request other devices.",
    Code.TAINTED: "Add a toleration to the request, or remove the taint.",
    Code.CONSTRAINT: "Remove the constraint, or request fewer devices.",
    Code.POOL_INCOMPLETE: "Let the driver publish the missing slices.",
    Code.POOL_INVALID: "Correct the slices. `dryrack lint` reports the contradiction.",
    Code.TOO_MANY_RESULTS: "Divide the claim into several claims.",
    Code.NOT_ENOUGH: "Request fewer devices, or add devices.",
    Code.NO_DEVICES: "Use another node or another DeviceClass.",
    Code.COMBINATION: "Request fewer devices, or relax a constraint.",
    Code.OTHER_CLAIM: "Read the reason of the other claim.",
    Code.ERROR: "Correct the claim. `dryrack lint` reports the line.",
    Code.UNDECIDED: "Make the claim simpler: fewer alternatives, constraints, or devices.",
    Code.NOT_FOUND: "Create the missing object, or correct its name.",
    Code.GANG: "Read the reasons of the other members, or lower the minimum of the gang.",
    Code.ADMISSION: "Change the quota, the limit, or the request, or create the PriorityClass.",
    Code.PREEMPTED: "Add devices, or give the Pod a higher priority.",
}

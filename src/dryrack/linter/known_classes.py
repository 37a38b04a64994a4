"""
DeviceClasses that drivers and dryrack's catalogue install.

Manifests of users name them and do not contain them, so a class of this list that is not in the
files is no reason for a warning.
"""

# The driver, or its chart, mounts the devices of these into the containers that name the claim;
# a container that does not name it has no device.
CONTAINER_CLASSES = frozenset(
    {
        "gaudi.intel.com",
        "gpu.amd.com",
        "gpu.amd.com-spx",
        "gpu.example.com",
        "gpu.intel.com",
        "gpu.nvidia.com",
        "mig.nvidia.com",
        "neuron.aws.com",
        "tpu.google.com",
    }
)
# With those of drivers that serve a whole pod, such as networks, or of which that is not known.
KNOWN_CLASSES = CONTAINER_CLASSES | {
    "compute-domain-daemon.nvidia.com",
    "compute-domain-default-channel.nvidia.com",
    "cpu.example.com",
    "dra.cpu",
    "dra.hugepages-1g",
    "dra.hugepages-2m",
    "dra.memory",
    "dra.net",
    "dranet",
    "efa.networking.k8s.aws",
    "fpga.dryrack.dev",
    "gpu-vfio.intel.com",
    "imex.nvidia.com",
    "net.example.com",
    "qat.intel.com",
    "rdma",
    "sriovnetwork.k8snetworkplumbingwg.io",
    "tenstorrent.com",
    "vfio.gpu.nvidia.com",
}

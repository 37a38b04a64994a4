"""A real kubelet of Kubernetes 1.37 starts pods whose devices need no preparation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.kubeletplugin.real_node import RealNode
from tests.kubeletplugin.test_real_node import FAKE, claim_spec, pod, template
from tests.realcluster.cluster import Parts
from tests.realcluster.controlplane import Options
from tests.realcluster.releases import RELEASE

if TYPE_CHECKING:
    from tests.realcluster.fixtures import StartModuleCluster


GATE = "DRAOptionalNodeOperations"
pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(400),
    pytest.mark.skipif(
        not RELEASE.knows([GATE]), reason=f"Kubernetes {RELEASE.minor} lacks {GATE}"
    ),
]


def test_a_kubelet_leaves_out_the_calls_that_a_slice_skips(
    start_module_cluster: StartModuleCluster,
) -> None:
    """The pod runs without the variables of its device, and the plugin never hears of the claim."""
    options = Options(feature_gates={GATE: True})
    real = RealNode(start_module_cluster(options, Parts(node=True)))
    plugin = real.start("fake:2,skip-node-operations=all")
    namespace = real.namespace("skip")
    command = "env | grep -c ^FAKE_DEVICE; sleep 9999"
    real.apply(template(namespace, claim_spec()) + pod(namespace, "pod0", command=command))
    real.wait_ready(namespace, "pod0")
    (slice_,) = json.loads(real.kubectl("get", "resourceslices", "-o", "json"))["items"]
    (claim,) = json.loads(real.kubectl("get", "resourceclaims", "-n", namespace, "-o", "json"))[
        "items"
    ]
    node = json.loads(real.kubectl("get", "node", real.node.name, "-o", "json"))
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    variables = real.kubectl("logs", "-n", namespace, "pod0").strip()
    checkpoints = real.checkpoints(FAKE)
    real.kubectl("delete", "namespace", namespace, "--timeout=90s")
    real.stop(plugin)

    assert slice_["spec"]["skipNodeOperations"] == ["*"]
    assert result["skipNodeOperations"] == ["*"]
    assert GATE in node["status"]["declaredFeatures"]
    assert variables == "0"
    assert checkpoints == []

"""Examples of the rules in `linter.rules.policy`."""

from __future__ import annotations

from tests.linter import examples
from tests.linter.examples import broken

_SELECTOR = """\
  deviceSelector:
    driver: gpu.example.com
    pool: rack-1
    device: gpu-1
"""

_ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: my-scheduler
rules:
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims/status, resourceclaims/binding]
  verbs: [update, patch]
"""

EXAMPLES = {
    "DR701": broken(examples.TAINT_RULE, (_SELECTOR, "  deviceSelector: {}\n")),
    "DR702": broken(examples.TAINT_RULE, (_SELECTOR, "")),
    "DR703": broken(
        examples.join(examples.SLICE, examples.TAINT_RULE),
        ("    device: gpu-1", "    device: gpu-8"),
    ),
    "DR704": broken(examples.NAMESPACE, ('admin-access: "true"', 'admin-access: "True"')),
    "DR705": broken(
        _ROLE, ("[resourceclaims/status, resourceclaims/binding]", "[resourceclaims/status]")
    ),
    "DR706": broken(
        examples.join(
            examples.NAMESPACE,
            examples.CLASS,
            examples.CLAIM.replace("count: 2", "allocationMode: All\n        adminAccess: true"),
        ),
        ("  name: team-a\n  labels", "  name: team-b\n  labels"),
    ),
}

"""Examples of the rules in `linter.rules.pods`."""

from __future__ import annotations

from tests.linter import examples
from tests.linter.examples import broken

_SOUND = examples.join(examples.CLASS, examples.TEMPLATE, examples.POD)

EXAMPLES = {
    "DR601": broken(
        _SOUND.replace("deviceClassName: gpu", "deviceClassName: gpu.example.com"),
        ("    resources:\n      claims:\n      - name: gpu\n  resourceClaims", "  resourceClaims"),
    ),
    "DR602": broken(
        _SOUND, ("resourceClaimTemplateName: one-gpu", "resourceClaimTemplateName: two-gpus")
    ),
    "DR603": broken(
        _SOUND.replace(
            "      - name: gpu\n  resourceClaims",
            "      - name: gpu\n        request: gpu\n  resourceClaims",
        ),
        ("        request: gpu\n  resourceClaims", "        request: gpus\n  resourceClaims"),
    ),
    "DR604": broken(
        examples.join(
            examples.CLASS,
            examples.CLAIM,
            examples.TEMPLATE,
            """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: trainer
  namespace: team-a
spec:
  replicas: 3
  selector: {matchLabels: {app: trainer}}
  template:
    metadata: {labels: {app: trainer}}
    spec:
      containers:
      - name: main
        image: example.com/train:1
        resources: {claims: [{name: gpu}]}
      resourceClaims:
      - name: gpu
        resourceClaimTemplateName: one-gpu
""",
        ),
        ("resourceClaimTemplateName: one-gpu", "resourceClaimName: training"),
    ),
}

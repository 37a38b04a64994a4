"""
The Helm chart of dryrack, and its objects without Helm.

The chart is the only source of the RBAC manifests and of the CustomResourceDefinitions that
dryrack prints. `go_template` interprets the part of Go's template language that the chart uses.
"""

from dryrack.cluster.chart.rendering import (
    CHART,
    PARTS,
    ChartError,
    Release,
    default_values,
    render,
    render_file,
)
from dryrack.cluster.chart.values import ValuesError, merge_values, set_value

__all__ = [
    "CHART",
    "PARTS",
    "ChartError",
    "Release",
    "ValuesError",
    "default_values",
    "merge_values",
    "render",
    "render_file",
    "set_value",
]

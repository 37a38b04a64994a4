"""
Validation of objects: the answers of an API server of a release of Kubernetes.

The functions of this package are handwritten checks, as in Kubernetes. `declared` runs the checks
that a release declares with its types, and merges the problems of both.

Problems have the reasons, fields and messages of the causes in the server's `Status`.
"""

from dryrack.kinds.validation.problems import FieldProblem, Reason

__all__ = ["FieldProblem", "Reason"]

"""
Validation of objects: the answers of an API server of Kubernetes 1.36 with default gates.

Problems have the reasons, fields and messages of the causes in the server's `Status`.
"""

from dryrack.kinds.validation.problems import FieldProblem, Reason

__all__ = ["FieldProblem", "Reason"]

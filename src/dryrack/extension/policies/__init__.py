"""Validating admission policies: their expressions, and what is wrong with them."""

from typing import TYPE_CHECKING

from dryrack.base.lazy import exports

if TYPE_CHECKING:
    from dryrack.extension.policies.compiled_policy import (
        CompiledPolicy,
        PolicyCompiler,
        Validation,
    )
    from dryrack.extension.policies.policy_environment import AUTHORIZER, REQUEST_RESOURCE
    from dryrack.extension.policies.policy_rules import (
        PolicyBindingRules,
        PolicyRules,
        with_matches,
        with_scopes,
    )
else:
    __getattr__ = exports(
        __name__,
        {
            "compiled_policy": "CompiledPolicy PolicyCompiler Validation",
            "policy_environment": "AUTHORIZER REQUEST_RESOURCE",
            "policy_rules": "PolicyBindingRules PolicyRules with_matches with_scopes",
        },
    )

__all__ = [
    "AUTHORIZER",
    "REQUEST_RESOURCE",
    "CompiledPolicy",
    "PolicyBindingRules",
    "PolicyCompiler",
    "PolicyRules",
    "Validation",
    "with_matches",
    "with_scopes",
]

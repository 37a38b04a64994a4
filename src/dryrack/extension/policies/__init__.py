"""Validating and mutating admission policies: their expressions, and their problems."""

from typing import TYPE_CHECKING

from dryrack.base.lazy import exports

if TYPE_CHECKING:
    from dryrack.extension.policies.compiled_policy import (
        CompiledPolicy,
        Mutation,
        PolicyCompiler,
        Validation,
    )
    from dryrack.extension.policies.policy_environment import AUTHORIZER, REQUEST_RESOURCE
    from dryrack.extension.policies.policy_rules import (
        MutatingPolicyBindingRules,
        MutatingPolicyRules,
        PolicyBindingRules,
        PolicyRules,
        with_matches,
        with_scopes,
    )
    from dryrack.extension.policies.webhook_clients import (
        WebhookRules,
        client_config_problems,
        url_problems,
    )
else:
    __getattr__ = exports(
        __name__,
        {
            "compiled_policy": "CompiledPolicy Mutation PolicyCompiler Validation",
            "policy_environment": "AUTHORIZER REQUEST_RESOURCE",
            "policy_rules": (
                "MutatingPolicyBindingRules MutatingPolicyRules PolicyBindingRules PolicyRules "
                "with_matches with_scopes"
            ),
            "webhook_clients": "WebhookRules client_config_problems url_problems",
        },
    )

__all__ = [
    "AUTHORIZER",
    "REQUEST_RESOURCE",
    "CompiledPolicy",
    "MutatingPolicyBindingRules",
    "MutatingPolicyRules",
    "Mutation",
    "PolicyBindingRules",
    "PolicyCompiler",
    "PolicyRules",
    "Validation",
    "WebhookRules",
    "client_config_problems",
    "url_problems",
    "with_matches",
    "with_scopes",
]

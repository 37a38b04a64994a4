"""The server under requests that its own OpenAPI documents allow: see `by_openapi`."""

from __future__ import annotations

import pytest
from tests.apiserver.barrage import Target
from tests.apiserver.by_openapi import Asking, operations

EXAMPLES = 2


@pytest.mark.real
@pytest.mark.timeout(600)
def test_every_operation_is_answered() -> None:
    """Objects of every kind and version are accepted or refused, without an internal error."""
    with Target(requests_max=10**9) as target:
        asking = Asking(target)
        for document in asking.documents().values():
            for operation in operations(document):
                asking.ask(operation, examples=EXAMPLES, of=0)

    assert asking.requests > 1000
    assert asking.wrong == []

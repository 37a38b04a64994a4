"""
The counting tier: for expressions that may be expensive.

It is the exact tier written out as Python statements with one counter. Without the few steps
that leave something behind on the exact tier's stack, the price of a step follows from its
arguments alone, so no stack is needed. Whatever raises, other than a failure of CEL's own and
the limit itself, is left to the exact tier.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from dryrack.cel.counting.calls import NO_OVERLOAD, over
from dryrack.cel.counting.lines import TooMuchError
from dryrack.cel.counting.sharing import Sharing, sharing_in
from dryrack.cel.counting.writer import Writer
from dryrack.cel.emission import FailedError, Unsupported
from dryrack.cel.runtime_cost import COST_LIMIT
from dryrack.cel.values import Err

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.cel.attributes import Step
    from dryrack.cel.values import Value

    Counted: TypeAlias = Callable[[Value], tuple[Value, int]]

__all__ = ["Counted", "Sharing", "count", "sharing_in"]


def count(step: Step, sharing: Sharing, limit: int = COST_LIMIT) -> Counted | None:
    """
    Make a function from the variable `device` to the result and its cost; None if it cannot be.

    It raises `CostLimitExceededError` if that is the end of it, and anything else to say that
    the exact tier must be asked.
    """
    for catches in (True, False):
        try:
            return _count(step, Writer(sharing, limit, catches=catches))
        except (TooMuchError, SyntaxError, MemoryError, RecursionError):
            # Without failures it is shorter.
            continue
        except Unsupported:
            break
    return None


def _count(step: Step, writer: Writer) -> Counted:
    result = writer.write(step)
    made = "; ".join(["k = 0", *writer.memories])
    body = "\n".join(writer.lines)
    source = f"def counted(device):\n {made}\n{body}\n return {result}, k\n"
    namespace: dict[str, Any] = {
        **writer.names.constants,
        "Err": Err,
        "Failed": FailedError,
        "no_overload": NO_OVERLOAD,
        "places": {},
        "over": partial(over, writer.limit),
        "unset": object(),
    }
    exec(compile(source, "<selector>", "exec"), namespace)
    counted: Counted = namespace["counted"]
    return counted

"""
What a step depends on, and whether it is worth remembering.

A step is a function of the variables that are free in it: asked again with the same values, it
has the same result at the same price. Nothing here is about values; it follows from the tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dryrack.cel import attributes as paths
from dryrack.cel import interpreter as steps

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.cel.attributes import Attribute, Qualifier, Step

# To do these again is as fast as to look up what came of them.
_LIGHT = frozenset(
    ("_+_", "_-_", "_*_", "_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_", "!_", "@not_strictly_false")
)


class Nature(NamedTuple):
    """The free variables of a step, and whether it takes long."""

    names: frozenset[str]
    heavy: bool


_NOTHING = Nature(frozenset(), heavy=False)


class Natures:
    """The nature of each step of one tree, worked out once."""

    def __init__(self) -> None:
        self._known: dict[int, Nature] = {}

    def of(self, step: Step) -> Nature:
        known = self._known.get(id(step))
        if known is None:
            known = self._known[id(step)] = self._of(step)
        return known

    def _of(self, step: Step) -> Nature:
        match step:
            case steps.AttributeStep():
                return self._of_attribute(step.attribute)
            case steps.Call():
                return self._all(step.args, heavy=step.where[0] not in _LIGHT)
            case steps.Logic():
                return self._all(step.terms)
            case steps.ListStep():
                return self._all(step.elements)
            case steps.MapStep():
                return self._all([part for entry in step.entries for part in entry[:2]])
            case steps.MessageStep():
                return self._all([value for _name, value, _optional in step.fields], heavy=True)
            case steps.OptionalOr():
                return self._all((step.left, step.right))
            case steps.Membership():
                return self._all((step.arg,), heavy=True)
            case steps.Fold():
                return self._of_fold(step)
            case _:
                return _NOTHING

    def _all(self, parts: Iterable[Step], *, heavy: bool = False) -> Nature:
        return _joined([self.of(part) for part in parts], heavy=heavy)

    def _of_attribute(self, attribute: Attribute) -> Nature:
        if isinstance(attribute, paths.ConditionalAttribute):
            branches = (attribute.truthy, attribute.falsy)
            parts = [self.of(attribute.condition), *map(self._of_attribute, branches)]
            return _joined(parts)
        if isinstance(attribute, paths.VariableAttribute):
            start = Nature(frozenset((attribute.name,)), heavy=False)
        else:
            start = self.of(attribute.operand)
        keys = map(self._of_qualifier, attribute.qualifiers)
        return _joined([start, *keys], heavy=bool(attribute.qualifiers))

    def _of_qualifier(self, qualifier: Qualifier) -> Nature:
        if isinstance(qualifier, paths.ConstantQualifier):
            return _NOTHING
        return self._of_attribute(qualifier.attribute)

    def _of_fold(self, fold: steps.Fold) -> Nature:
        """The accumulator begins outside; what a round has is gone when the result is made."""
        outside = self._all((fold.iter_range, fold.accu), heavy=not is_binding(fold))
        inside, result = self._all((fold.condition, fold.step)), self.of(fold.result)
        free = inside.names.difference(fold.names) | (result.names - {fold.names[2]})
        return _joined([outside, Nature(free, heavy=inside.heavy or result.heavy)])


def _joined(parts: Iterable[Nature], *, heavy: bool = False) -> Nature:
    parts = list(parts)
    names = frozenset().union(*(part.names for part in parts))
    return Nature(names, heavy=heavy or any(part.heavy for part in parts))


def is_binding(fold: steps.Fold) -> bool:
    """Whether it goes through nothing: all that is left is the accumulator's first value."""
    return isinstance(fold.iter_range, steps.Constant) and fold.iter_range.value in ([], {})

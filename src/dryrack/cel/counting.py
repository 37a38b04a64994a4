"""
The counting tier: for expressions that may be expensive.

It is the exact tier written out as Python statements with one counter. Without errors, and
without the few steps that leave something behind on the exact tier's stack, the price of a
step follows from its arguments alone, so no stack is needed. Whatever raises, other than the
limit itself, is left to the exact tier.

Cost only ever rises, so it is added up and compared with the limit once for many steps. If it
is too high then, the steps are gone through again, one by one, for the one at which the exact
tier stops.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from dryrack.cel import attributes as paths
from dryrack.cel import interpreter as steps
from dryrack.cel.emission import (
    Names,
    Unsupported,
    fast_call,
    look_up_or_raise,
    presence_or_raise,
)
from dryrack.cel.folds import entries_or_raise, iterate_dyn_or_raise, plain_or_raise
from dryrack.cel.functions.arithmetic import OPERATORS
from dryrack.cel.functions.equality import equal
from dryrack.cel.runtime_cost import (
    COST_LIMIT,
    LIST_COST,
    MAP_COST,
    CostLimitExceededError,
    costs_one,
)
from dryrack.cel.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    MutableList,
    MutableMap,
    Optional,
    Value,
    encode_key,
    size_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dryrack.cel.attributes import Attribute, Qualifier, Step

    Counted: TypeAlias = Callable[[Value], tuple[Value, int]]

_INT_OPERATORS = {"_+_": "+", "_-_": "-", "_*_": "*"}
_ORDERS = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
# Loops and branches; Python's own parser allows a hundred levels of indentation.
_DEPTH_MAX = 60
# A variable that is bound may have to be worked out in several branches.
_LINES_MAX = 4000
# What is made of more than this is made when the expression runs, if it can be paid.
_FOLDED_SIZE_MAX = 1000


def count(step: Step) -> Counted | None:
    """
    Make a function from the variable `device` to the result and its cost; None if it cannot be.

    It raises `CostLimitExceededError` if that is the end of it, and anything else to say that
    the exact tier must be asked.
    """
    writer = _Writer()
    try:
        result = writer.step(step)
        writer.flush()
        body = "\n".join(writer.lines)
        source = f"def counted(device):\n k = 0\n{body}\n return {result}, k\n"
        code = compile(source, "<selector>", "exec")
    except (Unsupported, SyntaxError, MemoryError, RecursionError):
        return None
    namespace: dict[str, Any] = {**writer.names.constants, "over": _over, "unset": object()}
    exec(code, namespace)
    made: Counted = namespace["counted"]
    return made


def _over(total: int, *prices: int) -> CostLimitExceededError:
    """The end of an evaluation whose last steps had these prices, and cost too much in all."""
    cost = total - sum(prices)
    for price in prices:
        cost += price
        if cost > COST_LIMIT:
            break
    return CostLimitExceededError(cost)


def _mutable_if_empty(value: Value) -> Value:
    if isinstance(value, list) and not value:
        return MutableList()
    if isinstance(value, dict) and not value:
        return MutableMap()
    return plain_or_raise(value)


def _finished(value: Value) -> Value:
    if type(value) is MutableList:
        return list(value)
    return dict(value) if type(value) is MutableMap else value


def _sum(prices: list[str]) -> str:
    """The prices that are known as one number, and the names of the others."""
    known = sum(int(price) for price in prices if price.isdigit())
    return " + ".join([str(known), *(price for price in prices if not price.isdigit())])


def _taken_apart(value: Value) -> Value:
    """What a path is that goes nowhere."""
    if type(value) is not Optional or not value.present:
        return value
    return Optional(paths.unwrapped(value.value))


def _present(value: Value, key: Value) -> tuple[Value, bool]:
    if type(key) not in paths.QUALIFIER_TYPES:
        raise TypeError("not a key, even of what is absent")
    found, present, error = paths.look_up_if_present(value, key)
    if error is not None:
        raise KeyError(error.message)
    return found, present


@dataclass(frozen=True, slots=True, eq=False)
class _Bound:
    """A variable of `cel.bind`, whose value is worked out where it is first asked for."""

    name: str
    value: Step
    scopes: tuple[dict[str, str | _Bound], ...]
    # The block that it is bound in.
    block: set[str]


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names = Names()
        self._indent = 1
        self._pending: list[str] = []
        self._known: dict[str, Value] = {}
        self._scopes: list[dict[str, str | _Bound]] = [{"device": "device"}]
        # For each block that is open, the bound variables that have their values for certain.
        self._blocks: list[set[str]] = [set()]
        self._perhaps: set[str] = set()

    # Lines, and the prices of the steps since cost was last compared with the limit.

    def _line(self, text: str) -> None:
        if self._indent > _DEPTH_MAX or len(self.lines) > _LINES_MAX:
            raise Unsupported("nested too deeply, or too long")
        self.lines.append(" " * self._indent + text)

    def flush(self) -> None:
        if self._pending:
            self._line(f"k += {_sum(self._pending)}")
            self._line(f"if k > {COST_LIMIT}: raise over(k, {', '.join(self._pending)})")
            self._pending = []

    def _charge(self, price: int | str) -> None:
        self._pending.append(str(price))

    def _assign(self, code: str) -> str:
        name = self.names.temporary()
        self._line(f"{name} = {code}")
        return name

    @contextmanager
    def _block(self, opening: str) -> Iterator[None]:
        """What is only done if, or as often as, the line says."""
        self._line(opening)
        self._indent += 1
        self._blocks.append(set())
        yield
        self.flush()
        self._blocks.pop()
        self._indent -= 1

    # Steps: each leaves its value in the name that is returned.

    def step(self, step: Step) -> str:
        match step:
            case steps.Constant():
                return self._constant(step.value)
            case steps.AttributeStep():
                return self._attribute_step(step)
            case steps.Call():
                return self._call(step)
            case steps.Logic():
                return self._logic(step)
            case steps.ListStep() if not step.optional:
                elements = [self.step(element) for element in step.elements]
                self._charge(LIST_COST)
                return self._assign(f"[{', '.join(elements)}]")
            case steps.MapStep() if not any(optional for _, _, optional in step.entries):
                return self._map(step)
            case steps.OptionalOr():
                return self._optional_or(step)
            case steps.Fold():
                return self._fold(step)
            case steps.Membership():
                members, key = self.names.constant(step.members), self.names.constant(encode_key)
                return self._assign(f"{key}({self.step(step.arg)}) in {members}")
            case _:
                raise Unsupported("a step that leaves something behind")

    def _constant(self, value: Value) -> str:
        # In parentheses a number can be asked for its class.
        name = f"({self.names.literal_or_constant(value)})"
        self._known[name] = value
        return name

    def _map(self, step: steps.MapStep) -> str:
        key = self.names.constant(encode_key)
        entries = [(self.step(name), self.step(value)) for name, value, _ in step.entries]
        self._charge(MAP_COST)
        written = ", ".join(f"{key}({name}): {value}" for name, value in entries)
        return self._assign(f"{{{written}}}")

    def _optional_or(self, step: steps.OptionalOr) -> str:
        value = self._assign(self.step(step.left))
        self.flush()
        with self._block(f"if {value}.__class__ is {self.names.constant(Optional)}:"):
            with self._block(f"if not {value}.present:"):
                self._line(f"{value} = {self.step(step.right)}")
            if step.unwraps:
                self._line(f"else: {value} = {value}.value")
        return value

    def _attribute_step(self, step: steps.AttributeStep) -> str:
        value = self._resolve(step.attribute)
        if isinstance(step.attribute, paths.ConditionalAttribute):
            if step.test_id is not None:
                raise Unsupported("a step that lowers the cost")
        elif step.test_id is None:
            self._charge(1)
        return value

    def _resolve(self, attribute: Attribute) -> str:
        if isinstance(attribute, paths.ConditionalAttribute):
            return self._conditional(attribute)
        if isinstance(attribute, paths.VariableAttribute):
            value = self._variable(attribute.name)
        else:
            start = self.names.constant(plain_or_raise if attribute.qualifiers else _taken_apart)
            value = self._assign(f"{start}({self.step(attribute.operand)})")
        for position, qualifier in enumerate(attribute.qualifiers):
            if qualifier.optional:
                return self._optional_path(value, attribute.qualifiers[position:])
            value = self._qualify(value, qualifier)
        return value

    def _optional_path(self, value: str, qualifiers: list[Qualifier]) -> str:
        """From here on nothing is wrong, only absent."""
        found, present = self.names.temporary(), self.names.temporary()
        chosen = self._assign(self.names.constant(NONE))
        with ExitStack() as blocks:
            for qualifier in qualifiers:
                look = f"{self.names.constant(_present)}({value}, {self._key(qualifier)})"
                self._line(f"{found}, {present} = {look}")
                self.flush()
                blocks.enter_context(self._block(f"if {present}:"))
                self._charge(1)
                value = found
            self._line(f"{chosen} = {self.names.constant(Optional)}({value})")
        return chosen

    def _variable(self, name: str) -> str:
        for scope in reversed(self._scopes):
            if name in scope:
                bound = scope[name]
                return bound if isinstance(bound, str) else self._value_of(bound)
        raise Unsupported("an unknown variable")

    def _value_of(self, bound: _Bound) -> str:
        if any(bound.name in block for block in self._blocks):
            return bound.name
        if bound.block is self._blocks[-1] and bound.name not in self._perhaps:
            self._work_out(bound)
        else:
            self.flush()
            with self._block(f"if {bound.name} is unset:"):
                self._work_out(bound)
        self._perhaps.add(bound.name)
        self._blocks[-1].add(bound.name)
        return bound.name

    def _work_out(self, bound: _Bound) -> None:
        here, self._scopes = self._scopes, list(bound.scopes)
        make = self.names.constant(_mutable_if_empty)
        self._line(f"{bound.name} = {make}({self.step(bound.value)})")
        self._scopes = here

    def _qualify(self, value: str, qualifier: Qualifier) -> str:
        tests = isinstance(qualifier, paths.ConstantQualifier) and qualifier.test_only
        look = self.names.constant(presence_or_raise if tests else look_up_or_raise)
        found = self._assign(f"{look}({value}, {self._key(qualifier)})")
        self._charge(1)
        return found

    def _key(self, qualifier: Qualifier) -> str:
        if isinstance(qualifier, paths.ConstantQualifier):
            return self.names.literal_or_constant(qualifier.key)
        return self._resolve(qualifier.attribute)

    def _conditional(self, attribute: paths.ConditionalAttribute) -> str:
        # Under a name, because Python warns of `1 is True`.
        condition = self._assign(self.step(attribute.condition))
        self.flush()
        chosen = self.names.temporary()
        for truth, branch in ((True, attribute.truthy), (False, attribute.falsy)):
            with self._block(f"{'if' if truth else 'elif'} {condition} is {truth}:"):
                self._line(f"{chosen} = {self._resolve(branch)}")
        self._line("else: raise TypeError")
        return chosen

    def _logic(self, step: steps.Logic) -> str:
        first, second = step.terms
        value = self.names.temporary()
        self._line(f"{value} = {self.step(first)}")
        self.flush()
        with self._block(f"if {value} is {not step.decisive}:"):
            self._line(f"{value} = {self.step(second)}")
            self.flush()
            self._line(f"if {value}.__class__ is not bool: raise TypeError")
        self._line(f"elif {value} is not {step.decisive}: raise TypeError")
        return value

    def _call(self, step: steps.Call) -> str:
        args = [self.step(arg) for arg in step.args]
        if not step.priced_first and all(arg in self._known for arg in args):
            folded = self._folded(step, [self._known[arg] for arg in args])
            if folded is not None:
                return folded
        listed = ", ".join(args)
        cost = None if costs_one(step.cost) else self.names.constant(step.cost)
        if step.priced_first and cost is not None:
            self.flush()
            price = self._assign(f"{cost}(({listed},), None)")
            self._line(f"if k + {price} > {COST_LIMIT}: raise over(k + {price}, {price})")
        value = self._applied(step, args)
        if cost is None:
            self._charge(1)
        elif step.where[0] in ("_==_", "_!=_"):
            price = f"1 if {args[0]}.__class__ is int else {cost}(({listed},), {value})"
            self._charge(self._assign(price))
        else:
            self._charge(self._assign(f"{cost}(({listed},), {value})"))
        if step.where[0] == "_+_" and cost is not None:
            # Texts that double must not go on doubling after they were too dear.
            self.flush()
        return value

    def _folded(self, step: steps.Call, values: list[Value]) -> str | None:
        """A call that is the same every time; None if that is a failure, or too much to do now."""
        if any(size_of(value) > _FOLDED_SIZE_MAX for value in values):
            return None
        try:
            result = fast_call(step.run)(*values)
            price = step.cost(values, result)
        except Exception:  # noqa: BLE001 - it happens when the expression runs, or not at all
            return None
        self._charge(price)
        return self._constant(result)

    def _applied(self, step: steps.Call, args: list[str]) -> str:
        """Integers have a shortcut, because bombs are made of them."""
        function = step.where[0]
        if function == "@not_strictly_false":
            return self._assign(f"{args[0]} if {args[0]}.__class__ is bool else True")
        run = self.names.constant(fast_call(equal if function == "_==_" else step.run))
        if len(args) == 2 and function in _INT_OPERATORS:
            return self._integers(_INT_OPERATORS[function], run, args)
        general = f"{run}({', '.join(args)})"
        if len(args) == 2 and function in _ORDERS:
            left, right = args
            return self._assign(
                f"{left} {_ORDERS[function]} {right} if {self._are_integers(args)} else {general}"
            )
        return self._assign(general)

    def _integers(self, operator: str, run: str, args: list[str]) -> str:
        left, right = args
        value = self.names.temporary()
        self._line(f"if {self._are_integers(args)}:")
        self._line(f" {value} = {left} {operator} {right}")
        self._line(f" if not {INT_MIN} <= {value} <= {INT_MAX}: raise OverflowError")
        self._line(f"else: {value} = {run}({left}, {right})")
        return value

    def _are_integers(self, args: list[str]) -> str:
        asked = [arg for arg in args if type(self._known.get(arg)) is not int]
        return " and ".join(f"{arg}.__class__ is int" for arg in asked) or "True"

    # Folds.

    def _fold(self, fold: steps.Fold) -> str:
        if isinstance(fold.iter_range, steps.Constant) and fold.iter_range.value in ([], {}):
            return self._binding(fold)
        if not isinstance(fold.accu, steps.Constant):
            raise Unsupported("an accumulator made on demand")
        first, second, accumulator = fold.names
        over = self.step(fold.iter_range)
        make = self.names.constant(_mutable_if_empty)
        accumulated = self._assign(f"{make}({self.step(fold.accu)})")
        element, other = self.names.temporary(), self.names.temporary()
        target = f"{element}, {other}" if second else element
        entries = self.names.constant(entries_or_raise if second else iterate_dyn_or_raise)
        self.flush()
        with self._block(f"for {target} in {entries}({over}):"):
            # The accumulator hides a variable of the same name, and the first variable the second.
            self._scopes.append({second: other, first: element, accumulator: accumulated})
            self._iteration(fold, accumulated)
        self._scopes[-1] = {accumulator: accumulated}
        result = self.step(fold.result)
        self._scopes.pop()
        return self._assign(f"{self.names.constant(_finished)}({result})")

    def _binding(self, fold: steps.Fold) -> str:
        """What goes through nothing: all that is left is the accumulator's first value."""
        name = self._assign("unset")
        bound = _Bound(name, fold.accu, tuple(self._scopes), self._blocks[-1])
        self._scopes.append({fold.names[2]: bound})
        result = self.step(fold.result)
        self._scopes.pop()
        return self._assign(f"{self.names.constant(_finished)}({result})")

    def _iteration(self, fold: steps.Fold, accumulated: str) -> None:
        if isinstance(fold.step, steps.Logic) and _is_quantifier(fold, fold.step):
            self._quantify(fold, fold.step, accumulated)
            return
        condition = self.step(fold.condition)
        self.flush()
        self._line(f"if {condition} is False: break")
        stepped = self.step(fold.step)
        if not isinstance(fold.step, steps.Logic):
            stepped = f"{self.names.constant(plain_or_raise)}({stepped})"
        self._line(f"{accumulated} = {stepped}")
        self.flush()

    def _quantify(self, fold: steps.Fold, step: steps.Logic, accumulated: str) -> None:
        """
        A round of `all` or `exists`.

        As long as it goes on, the accumulator is what it was at first: it need not be looked at,
        and what that costs is added to what the round costs.
        """
        mark = len(self.lines)
        self.step(fold.condition)
        del self.lines[mark:]
        asked, self._pending = self._pending, []
        with self._block(f"if {accumulated} is {step.decisive}:"):
            self._pending = list(asked)
            self.flush()
            self._line("break")
        self._pending = list(asked)
        self.step(step.terms[0])
        self._line(f"{accumulated} = {self.step(step.terms[1])}")
        self.flush()
        self._line(f"if {accumulated}.__class__ is not bool: raise TypeError")


def _is_quantifier(fold: steps.Fold, step: steps.Logic) -> bool:
    """Whether the rounds end as soon as the accumulator decides."""
    if not isinstance(fold.accu, steps.Constant) or fold.accu.value is not (not step.decisive):
        return False
    condition = fold.condition
    if not isinstance(condition, steps.Call) or condition.where[0] != "@not_strictly_false":
        return False
    [asked] = condition.args
    if step.decisive:
        if not isinstance(asked, steps.Call) or asked.where[0] != "!_":
            return False
        [asked] = asked.args
    return all(_is_accumulator(one, fold) for one in (asked, step.terms[0]))


def _is_accumulator(step: Step, fold: steps.Fold) -> bool:
    return (
        isinstance(step, steps.AttributeStep)
        and step.test_id is None
        and isinstance(step.attribute, paths.VariableAttribute)
        and step.attribute.name == fold.names[2]
        and not step.attribute.qualifiers
    )


assert set(_INT_OPERATORS) | set(_ORDERS) <= set(OPERATORS), "the shortcuts are of operators"

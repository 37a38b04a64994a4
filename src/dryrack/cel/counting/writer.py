"""Writes each kind of step out as Python statements."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from dryrack.cel import attributes as paths
from dryrack.cel import interpreter as steps
from dryrack.cel.counting import calls
from dryrack.cel.counting.lines import ERROR
from dryrack.cel.counting.natures import is_binding
from dryrack.cel.counting.remembering import Remembering
from dryrack.cel.counting.scopes import Bound, find
from dryrack.cel.counting.sharing import Sharing
from dryrack.cel.emission import Unsupported, fast_call, look_up_or_raise, presence_or_raise
from dryrack.cel.folds import entries_or_raise, iterate_dyn_or_raise, plain_or_raise
from dryrack.cel.functions.arithmetic import OPERATORS
from dryrack.cel.functions.equality import equal
from dryrack.cel.runtime_cost import LIST_COST, MAP_COST, costs_one
from dryrack.cel.values import INT_MAX, INT_MIN, NONE, Err, Optional, Value, encode_key, size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.cel.attributes import Attribute, Qualifier, Step

_INT_OPERATORS = {"_+_": "+", "_-_": "-", "_*_": "*"}
_COMPARISONS = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">=", "_==_": "==", "_!=_": "!="}
# What is made of more than this is made when the expression runs, if it can be paid.
_FOLDED_SIZE_MAX = 1000


class Writer(Remembering):
    """Statements for the steps of one tree."""

    def __init__(self, sharing: Sharing, limit: int, *, catches: bool) -> None:
        super().__init__(sharing, limit, catches=catches)
        self._known: dict[str, Value] = {}
        self._prices: dict[int, str] = {}
        self._perhaps: set[str] = set()
        # Variables that may be errors.
        self._failing: set[str] = set()

    def write(self, step: Step) -> str:
        """The whole tree; its value is an error if it failed."""
        value = self.names.temporary()
        with self._caught(value):
            self._line(f"{value} = {self.step(step)}")
        self.flush()
        return value

    def _written(self, step: Step) -> str:
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
                return self._list(step)
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
        if type(value) is Err:
            raise Unsupported("a constant that is none")
        # In parentheses a number can be asked for its class.
        name = f"({self.names.literal_or_constant(value)})"
        self._known[name] = value
        return name

    def _list(self, step: steps.ListStep) -> str:
        with self._around(str(LIST_COST)):
            elements = [self.step(element) for element in step.elements]
        self._charge(LIST_COST)
        return self._assign(f"[{', '.join(elements)}]")

    def _map(self, step: steps.MapStep) -> str:
        with self._around(str(MAP_COST)):
            entries = [self._entry(key, value) for key, value, _ in step.entries]
        self._charge(MAP_COST)
        return self._assign(f"{{{', '.join(entries)}}}")

    def _entry(self, key_step: Step, value_step: Step) -> str:
        key, value = self.step(key_step), self.step(value_step)
        # At once: what is no key is the end, whatever comes after it.
        encoded = self._assign(f"{self.names.constant(encode_key)}({key})")
        return f"{encoded}: {value}"

    def _optional_or(self, step: steps.OptionalOr) -> str:
        value = self._assign(self.step(step.left))
        self.flush()
        with self._block(f"if {value}.__class__ is {self.names.constant(Optional)}:"):
            with self._block(f"if not {value}.present:"):
                self._line(f"{value} = {self.step(step.right)}")
            if step.unwraps:
                self._line(f"else: {value} = {value}.value")
        if step.unwraps:
            # What does not come back when an optional is taken apart is an error inside of it.
            self._fail_if_failed(value)
        return value

    # Paths.

    def _attribute_step(self, step: steps.AttributeStep) -> str:
        attribute, tests = step.attribute, step.test_id is not None
        if isinstance(attribute, paths.ConditionalAttribute):
            if tests:
                raise Unsupported("a step that lowers the cost")
            return self._conditional(attribute)
        prices = () if tests else ("1",)
        with self._around(*prices):
            value = self._resolve(attribute)
        self._pending.extend(prices)
        if tests and any(qualifier.optional for qualifier in attribute.qualifiers):
            return self._assign(f"{value}.present")
        return value

    def _resolve(self, attribute: Attribute) -> str:
        if isinstance(attribute, paths.ConditionalAttribute):
            return self._conditional(attribute)
        if isinstance(attribute, paths.VariableAttribute):
            value = self._variable(attribute.name)
            if value == "device" and self._sharing is not Sharing.ALL:
                # As a key it is another one each time.
                value = self._assign("device.copy()")
        else:
            begin = plain_or_raise if attribute.qualifiers else calls.taken_apart
            operand = self.step(attribute.operand)
            value = self._assign(f"{self.names.constant(begin)}({operand})")
        holder = value
        for position, qualifier in enumerate(attribute.qualifiers):
            if qualifier.optional:
                return self._optional_path(value, attribute.qualifiers[position:])
            holder, value = value, self._qualify(value, qualifier)
        return self._handed_out(holder, value) if attribute.qualifiers else value

    def _handed_out(self, holder: str, value: str) -> str:
        if self._sharing is Sharing.ALL:
            return value
        return self._assign(f"{self.names.constant(paths.handed_out)}({holder}, {value})")

    def _optional_path(self, value: str, qualifiers: list[Qualifier]) -> str:
        """From here on nothing is wrong, only absent."""
        found, present = self.names.temporary(), self.names.temporary()
        chosen, holder = self._assign(self.names.constant(NONE)), value
        with ExitStack() as blocks:
            for qualifier in qualifiers:
                look = f"{self.names.constant(calls.present)}({value}, {self._key(qualifier)})"
                self._risky(f"{found}, {present} = {look}")
                self.flush()
                blocks.enter_context(self._block(f"if {present}:"))
                self._charge(1)
                holder, value = value, self._assign(found)
            value = self._handed_out(holder, value)
            self._line(f"{chosen} = {self.names.constant(Optional)}({value})")
        return chosen

    def _variable(self, name: str) -> str:
        bound = find(name, self._scopes)
        value = bound if isinstance(bound, str) else self._value_of(bound)
        if value in self._failing:
            self._fail_if_failed(value)
        return value

    def _value_of(self, bound: Bound) -> str:
        if self._is_certain(bound):
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

    def _work_out(self, bound: Bound) -> None:
        here, self._scopes = self._scopes, list(bound.scopes)
        make = self.names.constant(calls.mutable_if_empty)
        with self._caught(bound.name) as region:
            self._line(f"{bound.name} = {make}({self.step(bound.value)})")
        self.flush()
        self._scopes = here
        if region.sites:
            self._failing.add(bound.name)

    def _qualify(self, value: str, qualifier: Qualifier) -> str:
        look: Callable[[Value, Value], Value] = calls.look_up_computed
        if isinstance(qualifier, paths.ConstantQualifier):
            look = presence_or_raise if qualifier.test_only else look_up_or_raise
        with self._around("1"):
            key = self._key(qualifier)
        found = self._risk(f"{self.names.constant(look)}({value}, {key})", "1")
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
        self._risky("else: raise Failed(no_overload)")
        return chosen

    # Calls.

    def _logic(self, step: steps.Logic) -> str:
        first, second = step.terms
        value = self.names.temporary()
        with self._caught(value) as region:
            self._line(f"{value} = {self.step(first)}")
        self.flush()
        if region.sites:
            return self._second_chance(step, value)
        with self._block(f"if {value} is {not step.decisive}:"):
            self._line(f"{value} = {self.step(second)}")
            self.flush()
            self._line(f"if {value}.__class__ is not bool: raise TypeError")
        self._line(f"elif {value} is not {step.decisive}: raise TypeError")
        return value

    def _second_chance(self, step: steps.Logic, value: str) -> str:
        """The second term may decide although the first has failed."""
        decisive, other = step.decisive, self.names.temporary()
        with self._block(f"if {value} is not {decisive}:"):
            wrong = f"{value} is not {not decisive} and {value}.__class__ is not Err"
            self._line(f"if {wrong}: {value} = no_overload")
            with self._caught(other):
                self._line(f"{other} = {self.step(step.terms[1])}")
            self._absorb(value, other, decisive=decisive)
        self._fail_if_failed(value)
        return value

    def _absorb(self, value: str, other: str, *, decisive: bool) -> None:
        if self._region is None:
            self._line(f"if {other}.__class__ is not bool: raise TypeError")
            self._line(f"{value} = {other}")
            return
        absorbed = f"{self.names.constant(calls.absorbed)}({value}, {other}, {decisive})"
        self._line(f"if {other} is not {not decisive}: {value} = {absorbed}")

    def _call(self, step: steps.Call) -> str:
        args = self._arguments(step)
        if not step.priced_first and all(arg in self._known for arg in args):
            folded = self._folded(step, [self._known[arg] for arg in args])
            if folded is not None:
                return folded
        if step.priced_first and not costs_one(step.cost):
            self.flush()
            price = self._assign(self._price(step, args, "None"))
            self._line(f"if k + {price} > {self.limit}: raise over(k + {price}, {price})")
        value = self._applied(step, args)
        self._charge_call(step, args, value)
        return value

    def _arguments(self, step: steps.Call) -> list[str]:
        if self._region is not None and not step.strict:
            raise Unsupported("a step that takes failures")
        certain = [self._certain(arg) for arg in step.args]
        if self._region is None or step.stops or certain.count(None) < 2:
            return self._arguments_together(step, certain)
        return self._arguments_apart(step, certain)

    def _certain(self, arg: Step) -> str | None:
        """What an argument is called that cannot fail: a constant, or a variable."""
        if isinstance(arg, steps.Constant):
            return self._constant(arg.value)
        if not _is_variable(arg):
            return None
        assert isinstance(arg, steps.AttributeStep)
        assert isinstance(arg.attribute, paths.VariableAttribute)
        bound = find(arg.attribute.name, self._scopes)
        return bound if isinstance(bound, str) and bound not in self._failing else None

    def _arguments_together(self, step: steps.Call, certain: list[str | None]) -> list[str]:
        """The first that fails is the failure of the call, and what comes after it is known."""
        args: list[str] = []
        for position, arg in enumerate(step.args):
            with self._around(*self._if_failed(step, args, certain[position + 1 :])):
                args.append(self.step(arg))
        return args

    def _if_failed(
        self, step: steps.Call, before: list[str], after: Sequence[str | None]
    ) -> list[str]:
        """What is still to be paid if the argument between these fails."""
        if after and step.stops:
            return []
        names = [name for name in after if name is not None]
        variables = ["1" for name in names if name not in self._known]
        return [*variables, self._price(step, [*before, ERROR, *names], ERROR)]

    def _arguments_apart(self, step: steps.Call, certain: list[str | None]) -> list[str]:
        """All are worked out, whichever of them fail."""
        args: list[str] = []
        failing: list[str] = []
        for arg, name in zip(step.args, certain, strict=True):
            args.append(self.step(arg) if name is not None else self._apart(arg, failing))
        if failing:
            failed = " or ".join(f"{name}.__class__ is Err" for name in failing)
            first = f"{self.names.constant(calls.first_failure)}({', '.join(failing)})"
            self._risky(f"if {failed}: raise {first}", self._price(step, args, ERROR))
        return args

    def _apart(self, arg: Step, failing: list[str]) -> str:
        value = self.names.temporary()
        with self._caught(value) as region:
            self._line(f"{value} = {self.step(arg)}")
        if region.sites:
            failing.append(value)
        return value

    def _price(self, step: steps.Call, args: Sequence[str], result: str) -> str:
        if costs_one(step.cost):
            return "1"
        name = self._prices.get(id(step))
        if name is None:
            name = self._prices[id(step)] = self.names.constant(step.cost)
        return f"{name}(({', '.join(args)},), {result})"

    def _charge_call(self, step: steps.Call, args: list[str], value: str) -> None:
        price = self._price(step, args, value)
        if costs_one(step.cost):
            self._charge(price)
            return
        if step.where[0] in ("_==_", "_!=_"):
            price = f"1 if {self._are_integers(args)} else {price}"
        self._charge(self._assign(price))
        if step.where[0] == "_+_":
            # Texts that double must not go on doubling after they were too dear.
            self.flush()

    def _folded(self, step: steps.Call, values: list[Value]) -> str | None:
        """A call that is the same every time; None if that is a failure, or too much to do now."""
        if any(size_of(value) > _FOLDED_SIZE_MAX for value in values):
            return None
        try:
            result = fast_call(step.run)(*values)
            price = step.cost(values, result)
        except Exception:  # noqa: BLE001 - it happens when the expression runs, or not at all
            return None
        if self._sharing is not Sharing.ALL and type(result) not in calls.VALUES:
            return None
        self._charge(price)
        return self._constant(result)

    def _applied(self, step: steps.Call, args: list[str]) -> str:
        """Integers have a shortcut, because bombs are made of them."""
        function = step.where[0]
        if function == "@not_strictly_false":
            return self._assign(f"{args[0]} if {args[0]}.__class__ is bool else True")
        price = self._price(step, args, ERROR)
        run = equal if function == "_==_" else step.run
        if function in _COMPARISONS or (function in _INT_OPERATORS and len(args) == 2):
            return self._numbers(function, self.names.constant(fast_call(run)), args, price)
        value = self._assign(f"{self.names.constant(run)}({', '.join(args)})")
        self._fail_if_failed(value, price)
        return value

    def _numbers(self, function: str, run: str, args: list[str], price: str) -> str:
        if function in _INT_OPERATORS:
            return self._integers(_INT_OPERATORS[function], run, args, price)
        left, right = args
        general = f"{run}({left}, {right})"
        compared = f"{left} {_COMPARISONS[function]} {right}"
        return self._risk(f"{compared} if {self._are_integers(args)} else {general}", price)

    def _integers(self, operator: str, run: str, args: list[str], price: str) -> str:
        left, right = args
        value = self.names.temporary()
        self._line(f"if {self._are_integers(args)}:")
        self._line(f" {value} = {left} {operator} {right}")
        fits = f"{INT_MIN} <= {value} <= {INT_MAX}"
        self._risky(f" if not {fits}: {value} = {run}({left}, {right})", price)
        self._risky(f"else: {value} = {run}({left}, {right})", price)
        return value

    def _are_integers(self, args: list[str]) -> str:
        asked = [arg for arg in args if type(self._known.get(arg)) is not int]
        return " and ".join(f"{arg}.__class__ is int" for arg in asked) or "True"

    # Folds.

    def _fold(self, fold: steps.Fold) -> str:
        if is_binding(fold):
            return self._binding(fold)
        if not isinstance(fold.accu, steps.Constant):
            raise Unsupported("an accumulator made on demand")
        first, second, accumulator = fold.names
        over = self.step(fold.iter_range)
        make = self.names.constant(calls.mutable_if_empty)
        accumulated = self._assign(f"{make}({self.step(fold.accu)})")
        element, other = self.names.temporary(), self.names.temporary()
        target = f"{element}, {other}" if second else element
        entries = self.names.constant(entries_or_raise if second else iterate_dyn_or_raise)
        self.flush()
        with self._block(f"for {target} in {entries}({over}):"):
            self._enter_loop(element, other)
            # The accumulator hides a variable of the same name, and the first variable the second.
            self._scopes.append({second: other, first: element, accumulator: accumulated})
            self._iteration(fold, accumulated)
            self._loops.pop()
        self._scopes[-1] = {accumulator: accumulated}
        result = self.step(fold.result)
        self._scopes.pop()
        return self._assign(f"{self.names.constant(calls.finished)}({result})")

    def _enter_loop(self, *elements: str) -> None:
        self._elements.update(elements)
        self._loops.append(frozenset(elements))

    def _binding(self, fold: steps.Fold) -> str:
        name = self._assign("unset")
        bound = Bound(name, fold.accu, tuple(self._scopes), self._blocks[-1])
        self._scopes.append({fold.names[2]: bound})
        result = self.step(fold.result)
        self._scopes.pop()
        return self._assign(f"{self.names.constant(calls.finished)}({result})")

    def _iteration(self, fold: steps.Fold, accumulated: str) -> None:
        if isinstance(fold.step, steps.Logic) and _is_quantifier(fold, fold.step):
            self._quantify(fold, fold.step, accumulated)
            return
        with self._uncaught():
            condition = self.step(fold.condition)
        self.flush()
        self._line(f"if {condition} is False: break")
        if self._region is not None:
            self._failing.add(accumulated)
        make = self.names.constant(plain_or_raise)
        with self._caught(accumulated):
            self._line(f"{accumulated} = {make}({self.step(fold.step)})")
        self.flush()

    def _quantify(self, fold: steps.Fold, step: steps.Logic, accumulated: str) -> None:
        """
        A round of `all` or `exists`.

        As long as it goes on, the accumulator is what it was at first, or a failure: it need not
        be looked at, and what that costs is added to what the round costs.
        """
        mark = len(self.lines)
        with self._uncaught():
            self.step(fold.condition)
        del self.lines[mark:]
        asked, self._pending = self._pending, []
        with self._block(f"if {accumulated} is {step.decisive}:"):
            self._pending = list(asked)
            self.flush()
            self._line("break")
        self._pending = list(asked)
        self.step(step.terms[0])
        value = self.names.temporary()
        with self._caught(value):
            self._line(f"{value} = {self.step(step.terms[1])}")
        self.flush()
        self._absorb(accumulated, value, decisive=step.decisive)
        if self._region is not None:
            # What is no bool is a failure, too.
            self._failing.add(accumulated)


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
    return all(_is_variable(one, fold.names[2]) for one in (asked, step.terms[0], fold.result))


def _is_variable(step: Step, name: str | None = None) -> bool:
    """Whether it is a variable and nothing else; of this name, if one is given."""
    return (
        isinstance(step, steps.AttributeStep)
        and step.test_id is None
        and isinstance(step.attribute, paths.VariableAttribute)
        and name in (None, step.attribute.name)
        and not step.attribute.qualifiers
    )


assert set(_INT_OPERATORS) <= set(OPERATORS), "the shortcuts are of operators"

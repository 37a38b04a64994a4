"""
Build typer commands from dataclasses.

A command is one frozen dataclass, in a module that loads nothing else, and a function in a module
that is loaded when the command runs. `dryrack --help` needs only the first.

An option with one value can be given once; click alone would silently keep the last value. The
values of an option with a list add up.
"""

from __future__ import annotations

import inspect
from collections import Counter
from dataclasses import MISSING, fields
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from dryrack.base.durations import seconds_in
from dryrack.cli.files import UsageError
from dryrack.cli.output import Format

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from dataclasses import Field


EXIT_FAILED = 1

option = typer.Option
argument = typer.Argument


KUBECONFIG = "Kubeconfig file. Default: as kubectl, or the Pod's ServiceAccount."
CONTEXT = "Context in the kubeconfig. Default: the current context."
# Options of several commands.
Kubeconfig = Annotated[str, option(metavar="FILE", help=KUBECONFIG)]
Context = Annotated[str, option(help=CONTEXT)]
SelectedCluster = Annotated[
    str,
    option("--name", metavar="CLUSTER", help="Name of a running virtual cluster. See: dryrack up."),
]
Output = Annotated[Format, option("-o", "--output", help="Output format.")]


def panel(title: str) -> Callable[..., Any]:
    """Return `option` for options that the help shows together, below a title."""
    return partial(typer.Option, rich_help_panel=title)


def join_lists(lists: Sequence[str]) -> str:
    """Return the values of an option that takes a comma-separated list and may be repeated."""
    return ",".join(each for each in lists if each)


def command(options: type[Any], function: str) -> Callable[..., None]:
    """
    Return the callback of a typer command; its help is the docstring of `options`.

    `function` is "MODULE:NAME". It gets one instance of `options`. If it returns False, the exit
    status is 1. Each field of `options` is `Annotated` with `option(...)` or `argument(...)`. A
    field of strings is a `tuple[str, ...]`; its option can be repeated.
    """
    return _Callback(options, function)


class _Callback:
    """A callable that evaluates the types of the options when typer needs its signature."""

    def __init__(self, options: type[Any], function: str) -> None:
        self._options = options
        self._function = function
        self.__name__ = options.__name__
        self.__doc__ = options.__doc__
        # typer asks for type hints, and uses those of the signature.
        self.__annotations__: dict[str, Any] = {}

    @cached_property
    def _types(self) -> dict[str, Any]:
        return get_type_hints(self._options, include_extras=True)

    def _is_list(self, name: str) -> bool:
        return bool(self._types[name].__origin__ == tuple[str, ...])

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.Signature([self._parameter(each) for each in fields(self._options)])

    def _parameter(self, field: Field[Any]) -> inspect.Parameter:
        kind = inspect.Parameter.KEYWORD_ONLY
        type_ = self._types[field.name]
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        if self._is_list(field.name):
            # typer has a type for lists, and none for tuples of any length.
            type_ = Annotated[list[str] | None if default == () else list[str], *type_.__metadata__]
            default = None if default == () else default
        return inspect.Parameter(field.name, kind, default=default, annotation=type_)

    def __call__(self, **values: Any) -> None:
        module, _, name = self._function.partition(":")
        run = getattr(import_module(module), name)
        options = {
            name: tuple(value or ()) if self._is_list(name) else value
            for name, value in values.items()
        }
        if run(self._options(**options)) is False:
            raise typer.Exit(EXIT_FAILED)


class StrictCommand(TyperCommand):
    """A command that refuses an option with one value if it is given twice."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            _, _, given = self.make_parser(ctx).parse_args(args=list(args))
            for option, count in Counter(map(id, given)).items():
                parameter = next(each for each in given if id(each) == option)
                if count > 1 and _has_one_value(parameter):
                    name = max(parameter.opts, key=len)
                    raise UsageError(f"{name}: given {count} times; give it once")
        return super().parse_args(ctx, args)


def _has_one_value(parameter: Any) -> bool:
    """Return whether repeating the parameter would drop a value."""
    if parameter.param_type_name != "option" or parameter.multiple:
        return False
    # A flag has the same meaning twice, unless it has an opposite.
    return not parameter.is_flag or bool(parameter.secondary_opts)


def seconds_of(option: str, text: str) -> float:
    """Return the positive seconds of a duration; the option is for the error message."""
    seconds = seconds_in(text)
    if not seconds:
        raise UsageError(f"{option} {text!r}: must be a duration, for example 30s or 1m30s")
    return seconds

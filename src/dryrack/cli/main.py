"""
The command line, and the only place that turns an error into an exit status.

0: success. 1: something does not fit, or the content of a file is wrong. 2: wrong usage; nothing
was done. 130: interrupted. If the reader of a pipe stops reading, SIGPIPE ends the command, which
a shell shows as 141. A command imports the packages that it needs when it runs, so that
`dryrack --help` stays fast.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import Annotated, Any

import typer
import typer.main

from dryrack.base.errors import DryrackError
from dryrack.base.version import __version__
from dryrack.cli import hardware
from dryrack.cli.checks.options import CheckOptions
from dryrack.cli.command import EXIT_FAILED, Output, StrictCommand, command
from dryrack.cli.dashboard_options import DashboardOptions
from dryrack.cli.drivers import commands as drivers
from dryrack.cli.examples import commands as examples
from dryrack.cli.faults import commands as faults
from dryrack.cli.files import UsageError
from dryrack.cli.images import commands as images
from dryrack.cli.kubelets.options import KubeletOptions
from dryrack.cli.options import (
    AllocateOptions,
    ClaimsOptions,
    ConvertOptions,
    DevicesOptions,
    DoctorOptions,
    ExplainOptions,
    GangsOptions,
    LintOptions,
    ManifestsOptions,
    PlanOptions,
    PluginOptions,
    ProvisionOptions,
    PublishOptions,
    RecordOptions,
    ScheduleOptions,
)
from dryrack.cli.output import Format, print_data, print_line, say, shown
from dryrack.cli.scenarios import commands as scenarios
from dryrack.cli.simulate.options import SimulateOptions
from dryrack.cli.streams import ReaderGone, end_by_broken_pipe, only_own_styles, open_streams
from dryrack.cli.virtual.options import (
    DownOptions,
    KubeconfigOptions,
    RunOptions,
    ScaleOptions,
    StatusOptions,
    UpOptions,
)

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

_PANEL_COLUMNS_MIN = 60

_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}

# The groups of commands in the help.
_LEARN = "Learn"
_ON_FILES = "Answers from files"
_VIRTUAL = "Virtual clusters"
_ANY_CLUSTER = "Virtual and real clusters"
_MORE = "More"

# Name, options, function, and group of each command without subcommands, in the order of the help.
_COMMANDS: tuple[tuple[str, type[Any], str, str], ...] = (
    ("allocate", AllocateOptions, "allocate:run", _ON_FILES),
    ("explain", ExplainOptions, "explain:run", _ON_FILES),
    ("plan", PlanOptions, "plan.run:run", _ON_FILES),
    ("lint", LintOptions, "lint:run", _ON_FILES),
    ("simulate", SimulateOptions, "simulate.run:run", _ON_FILES),
    ("convert", ConvertOptions, "convert:run", _ON_FILES),
    ("up", UpOptions, "virtual.up:run", _VIRTUAL),
    ("scale", ScaleOptions, "virtual.scale:run", _VIRTUAL),
    ("down", DownOptions, "virtual.clusters:down", _VIRTUAL),
    ("status", StatusOptions, "virtual.clusters:status", _VIRTUAL),
    ("kubeconfig", KubeconfigOptions, "virtual.clusters:kubeconfig", _VIRTUAL),
    ("run", RunOptions, "virtual.run_operator:run", _VIRTUAL),
    ("publish", PublishOptions, "publish:run", _ANY_CLUSTER),
    ("schedule", ScheduleOptions, "schedule:run", _ANY_CLUSTER),
    ("provision", ProvisionOptions, "provision:run", _ANY_CLUSTER),
    ("plugin", PluginOptions, "plugin:run", _ANY_CLUSTER),
    ("kubelet", KubeletOptions, "kubelets.running:run", _ANY_CLUSTER),
    ("manifests", ManifestsOptions, "manifests:run", _ANY_CLUSTER),
    ("devices", DevicesOptions, "views.commands:devices", _ANY_CLUSTER),
    ("claims", ClaimsOptions, "views.commands:claims", _ANY_CLUSTER),
    ("gangs", GangsOptions, "views.commands:gangs", _ANY_CLUSTER),
    ("dashboard", DashboardOptions, "dashboard:run", _ANY_CLUSTER),
    ("check", CheckOptions, "checks.run:run", _ANY_CLUSTER),
    ("doctor", DoctorOptions, "doctor:run", _ANY_CLUSTER),
    ("record", RecordOptions, "scenarios.record:run", _ANY_CLUSTER),
    ("demo", scenarios.DemoOptions, "scenarios.running:run_demo", _LEARN),
)

# What to run instead of commands of similar tools.
_OTHER_NAMES = {
    "start": "dryrack up",
    "create": "dryrack up",
    "stop": "dryrack down",
    "delete": "dryrack down, or for objects: kubectl delete KIND NAME",
    "ls": "dryrack status",
    "get": "kubectl get KIND",
    "nodes": "kubectl get nodes",
}

app = typer.Typer(
    name="dryrack",
    help="Kubernetes Dynamic Resource Allocation without the hardware.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=_SETTINGS,
)

app.add_typer(examples.app, name="examples", rich_help_panel=_LEARN)
app.add_typer(hardware.app, name="hardware", rich_help_panel=_ON_FILES)
app.add_typer(scenarios.app, name="scenario", rich_help_panel=_VIRTUAL)
app.add_typer(faults.app, name="fault", rich_help_panel=_ANY_CLUSTER)
app.add_typer(drivers.app, name="driver", rich_help_panel=_ANY_CLUSTER)
app.add_typer(images.app, name="image", rich_help_panel=_ANY_CLUSTER)
for _name, _options, _function, _group in _COMMANDS:
    app.command(_name, rich_help_panel=_group)(command(_options, f"dryrack.cli.{_function}"))


@app.callback(invoke_without_command=True)
def every(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
    ] = False,
) -> None:
    if version:
        print_line(f"dryrack {__version__}")
        raise typer.Exit


@app.command(rich_help_panel=_MORE)
def version(output: Output = Format.TABLE) -> None:
    """Print the version."""
    if output is Format.TABLE:
        sys.stdout.write(f"dryrack {__version__}\n")
    else:
        print_data({"version": __version__}, output)


for _app in (app, drivers.app, examples.app, hardware.app, scenarios.app, faults.app, images.app):
    for _command in _app.registered_commands:
        _command.cls = StrictCommand


def _call(words: list[str]) -> None:
    """
    Run the command line.

    typer reads the signatures of all commands before it calls one. If the first word is a command,
    typer gets only that command, which is faster. Help, completion, and errors need all commands.
    """
    if os.environ.get("NO_COLOR"):
        # typer would still print bold and dim text, which uses the same escapes as colors.
        os.environ["_TYPER_FORCE_DISABLE_TERMINAL"] = "1"
    width = shutil.get_terminal_size().columns
    if width < _PANEL_COLUMNS_MIN:
        # Panels would cut the names of options, and click uses at least 50 columns by itself.
        app.rich_markup_mode = None
        _SETTINGS["terminal_width"] = width
    if words and words[0] in _OTHER_NAMES:
        raise UsageError(f"no command {words[0]}; run: {_OTHER_NAMES[words[0]]}")
    called = [each for each in app.registered_commands if words and each.name == words[0]]
    if not called or "_DRYRACK_COMPLETE" in os.environ:
        _guard_styles(typer.main.get_command(app))(prog_name="dryrack")
        return
    alone = typer.Typer(
        pretty_exceptions_enable=False,
        add_completion=False,
        rich_markup_mode=app.rich_markup_mode,
    )
    alone.registered_commands = called
    called_alone = _guard_styles(typer.main.get_command(alone))
    called_alone(words[1:], prog_name=f"dryrack {words[0]}", **_SETTINGS)


def _guard_styles(command: Any) -> Any:
    """Return the command; while it or a subcommand runs, only dryrack itself prints styles."""
    for each in getattr(command, "commands", {}).values():
        _guard_styles(each)
    callback = command.callback
    if callback is not None:

        def run_guarded(*arguments: object, **options: object) -> object:
            with only_own_styles():
                return callback(*arguments, **options)

        command.callback = run_guarded
    return command


def run() -> None:
    """Run the console script; an error becomes one line and an exit status."""
    open_streams()
    try:
        _call_and_complain(sys.argv[1:])
    except ReaderGone:
        end_by_broken_pipe()


def _call_and_complain(words: list[str]) -> None:
    try:
        try:
            _call(words)
        finally:
            # Errors in writing the output occur here.
            sys.stdout.flush()
    except UsageError as error:
        _complain(str(error))
        sys.exit(EXIT_USAGE)
    except DryrackError as error:
        _complain(str(error))
        sys.exit(EXIT_FAILED)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except OSError as error:
        # The disk may be full. A normal exit would try to write the rest of the output again.
        _complain(f"{error.filename or 'output'}: {(error.strerror or str(error)).lower()}")
        os._exit(EXIT_FAILED)


def _complain(text: str) -> None:
    say("\n".join(shown(line) for line in f"dryrack: {text}".split("\n")))

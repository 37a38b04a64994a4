"""
The command line, and the only place that turns an error into an exit code.

0: done, and all is well. 1: done, and something does not fit or is wrong in the content.
2: called wrongly, nothing was done. 130: interrupted. Whatever a room needs is imported inside
its command, so that `dryrack --help` stays quick.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dryrack import __version__
from dryrack.base.errors import DryrackError
from dryrack.cli.files import UsageError
from dryrack.cli.output import Format, print_data, say

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

app = typer.Typer(
    name="dryrack",
    help="Kubernetes devices that do not exist: allocate, explain and lint DRA without hardware.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Files = Annotated[
    list[str] | None,
    typer.Option("-f", "--filename", metavar="FILE", help="Kubernetes YAML or JSON; - is stdin."),
]
MoreFiles = Annotated[
    list[str] | None, typer.Argument(metavar="[FILE]...", help="More files, as after -f.")
]
Output = Annotated[Format, typer.Option("-o", "--output", help="How to print the answer.")]
Namespace = Annotated[
    str, typer.Option("-n", "--namespace", help="The namespace of NAME, where it names none.")
]
Release = Annotated[
    str, typer.Option("--release", help="Behave as this Kubernetes release: 1.36 or 1.37.")
]
Gates = Annotated[
    str,
    typer.Option(
        "--feature-gates",
        metavar="GATE=BOOL,...",
        help="Feature gates by Kubernetes' names, where they differ from the release's defaults.",
    ),
]


@app.command()
def allocate(
    more: MoreFiles = None,
    files: Files = None,
    node: Annotated[str | None, typer.Option("--node", help="Try this node alone.")] = None,
    output: Output = Format.TABLE,
    release: Release = "1.36",
    feature_gates: Gates = "",
) -> None:
    """What-if: which devices would the claims in FILES get, on which node, or why none."""
    from dryrack.cli import allocate as command

    settings = command.Settings.of(release=release, feature_gates=feature_gates, node=node)
    fits = command.run([*(files or []), *(more or [])], settings, output)
    raise typer.Exit(0 if fits else EXIT_FAILED)


@app.command()
def explain(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="What NAME is: claim or pod.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name, or NAMESPACE/NAME.")],
    more: MoreFiles = None,
    files: Files = None,
    namespace: Namespace = "default",
    node: Annotated[str | None, typer.Option("--node", help="Try this node alone.")] = None,
    output: Output = Format.TABLE,
    release: Release = "1.36",
    feature_gates: Gates = "",
) -> None:
    """Why a claim gets these devices, or none, and the smallest change that would help."""
    from dryrack.cli import allocate as settings_of
    from dryrack.cli import explain as command

    settings = settings_of.Settings.of(release=release, feature_gates=feature_gates, node=node)
    subject = command.Subject.of(kind, name, namespace)
    fits = command.run([*(files or []), *(more or [])], subject, settings=settings, form=output)
    raise typer.Exit(0 if fits else EXIT_FAILED)


@app.command()
def lint(
    more: MoreFiles = None,
    files: Files = None,
    output: Output = Format.TABLE,
) -> None:
    """Find what is wrong in FILES before a cluster does: codes, lines, fixes."""
    from dryrack.cli import lint as command

    clean = command.run([*(files or []), *(more or [])], output)
    raise typer.Exit(0 if clean else EXIT_FAILED)


Name = Annotated[str, typer.Option("--name", help="Which cluster.")]


@app.command()
def up(
    name: Name = "default",
    nodes: Annotated[int, typer.Option(help="Virtual nodes to start with.")] = 0,
    config: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Kubernetes objects to start with; - is stdin."),
    ] = None,
    port: Annotated[int, typer.Option(help="The port to listen at; 0 is any that is free.")] = 0,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    expose: Annotated[
        bool, typer.Option("--expose", help="Allow a --host that other machines can reach.")
    ] = False,
    data_dir: Annotated[
        str | None, typer.Option(metavar="DIR", help="Keep everything there; else in memory.")
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return when it serves; see: dryrack down.")
    ] = False,
    without: Annotated[
        str, typer.Option(metavar="ENGINE,...", help="Leave engines out, to run your own.")
    ] = "",
    authorization: Annotated[
        str, typer.Option(metavar="MODE", help="Who may do what: always-allow or rbac.")
    ] = "always-allow",
    kubeconfig: Annotated[
        str | None, typer.Option(metavar="PATH", help="Write the kubeconfig there as well.")
    ] = None,
    merge: Annotated[
        bool,
        typer.Option("--merge", help="Add the cluster to your kubeconfig and switch to it."),
    ] = False,
) -> None:
    """Start a Kubernetes control plane in one process, for kubectl and every client."""
    from dryrack.cli import up as command

    command.run(
        command.Wish(
            name=name,
            nodes=nodes,
            config=config,
            host=host,
            port=port,
            exposes=expose,
            data_directory=data_dir,
            detaches=detach,
            without=without,
            authorization=authorization,
            kubeconfig=kubeconfig,
            merges=merge,
        )
    )


@app.command()
def down(
    name: Name = "default",
    all_: Annotated[bool, typer.Option("--all", help="Every cluster that is there.")] = False,
) -> None:
    """End a cluster that `up --detach` left running."""
    from dryrack.cli import clusters as command

    if all_:
        command.down_all()
    else:
        command.down(name)


@app.command()
def status(
    name: Annotated[str | None, typer.Option("--name", help="One cluster; else all.")] = None,
    output: Output = Format.TABLE,
) -> None:
    """Tell which clusters are up, and where."""
    from dryrack.cli import clusters as command

    raise typer.Exit(0 if command.status(name, output) else EXIT_FAILED)


@app.command()
def kubeconfig(name: Name = "default") -> None:
    """Print the kubeconfig of a cluster that is up."""
    from dryrack.cli import clusters as command

    command.kubeconfig(name)


@app.command()
def demo(
    scenes: Annotated[
        list[str] | None, typer.Argument(metavar="[SCENE]...", help="Which; all if none is named.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the control plane up.")] = False,
) -> None:
    """Show what dryrack does, on example files and on a control plane, and check every answer."""
    from dryrack.cli import demo as command

    raise typer.Exit(0 if command.run(scenes or [], keep=keep) else EXIT_FAILED)


@app.command()
def version(output: Output = Format.TABLE) -> None:
    """Print the version."""
    if output is Format.TABLE:
        sys.stdout.write(f"dryrack {__version__}\n")
    else:
        print_data({"version": __version__}, output)


def run() -> None:
    """The console script: every mistake becomes one line and an exit code."""
    try:
        app()
    except UsageError as error:
        say(f"dryrack: {error}")
        sys.exit(EXIT_USAGE)
    except DryrackError as error:
        say(f"dryrack: {error}")
        sys.exit(EXIT_FAILED)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has enough; Python would complain once more at exit.
        sys.stderr.close()
        sys.exit(0)

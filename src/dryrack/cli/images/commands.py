"""
`dryrack image`: make the container image of this installation, and import it into a cluster.

No container engine and no registry is needed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from dryrack.base.version import __version__
from dryrack.cli.command import argument, option
from dryrack.cli.files import UsageError
from dryrack.cli.output import print_line, say, shown

app = typer.Typer(
    help="Make the container image of dryrack, and import it into a cluster.",
    no_args_is_help=True,
)

DEFAULT_NAME = f"localhost/dryrack:{__version__}"
# Runtimes expand short names, so that the name in a Pod would be another one.
_NAME = re.compile(
    r"(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+|[a-z0-9.-]+:[0-9]+)(:[0-9]+)?"
    r"(/[a-z0-9]+([._-]+[a-z0-9]+)*)+:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}"
)

ImageName = Annotated[
    str, option("--tag", metavar="NAME", help="Full name of the image, with registry and tag.")
]


@app.command()
def save(
    archive: Annotated[str, argument(metavar="FILE", help="Archive to write.")],
    tag: ImageName = DEFAULT_NAME,
) -> None:
    """
    Write the image of this installation to an archive.

    The image has the Python, the libraries, and the packages of this machine. The archive is an OCI
    layout and an archive of docker save, for one platform.
    """
    _check_name(tag)
    path = Path(archive)
    if not path.parent.is_dir():
        raise UsageError(f"{archive}: the directory {path.parent} does not exist; create it")
    partial = path.with_name(f".{path.name}.partial")
    try:
        digest = _save(partial, tag)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    size = path.stat().st_size / 1e6
    print_line(shown(f"{tag} {digest}"))
    say(shown(f"wrote {archive}, {size:.0f} MB; import it with: dryrack image load {archive}"))


@app.command()
def load(
    archive: Annotated[
        str,
        argument(metavar="[FILE]", help="Archive to import. Default: the image of save."),
    ] = "",
    to: Annotated[
        str,
        option(
            "--to",
            metavar="TOOL",
            help="kind, minikube, k3s or containerd. Default: that of the current context, or the "
            "first that is installed.",
        ),
    ] = "",
    cluster: Annotated[
        str,
        option("--cluster", help="Name of the kind cluster, or of the profile of minikube."),
    ] = "",
    tag: ImageName = DEFAULT_NAME,
) -> None:
    """
    Import the image into the nodes of a cluster.

    The command prints the command of kind, minikube, k3s or containerd that it runs.
    """
    from dryrack.cli.images import archive as archives
    from dryrack.cli.images import loading

    _check_name(tag)
    if archive and tag != DEFAULT_NAME:
        raise UsageError("--tag names the image of this installation; leave out FILE or --tag")
    context = _current_context()
    if to and to not in {*loading.Tool}:
        raise UsageError(f"--to {to!r}: must be {', '.join(loading.Tool)}")
    tool = loading.Tool(to) if to else loading.find_tool(context, loading.has_program)
    if cluster and tool not in (loading.Tool.KIND, loading.Tool.MINIKUBE):
        raise UsageError(f"--cluster is for kind and minikube, not for {tool}")
    loading.check_tool(tool)
    with TemporaryDirectory(prefix="dryrack-image-") as directory:
        path = Path(archive) if archive else Path(directory) / "dryrack.tar"
        if archive:
            names = archives.image_names(path)
            if names is False:
                raise UsageError(f"{archive}: not an archive of an image; see dryrack image save")
        else:
            _save(path, tag)
            names = (tag,)
        loading.import_archive(loading.command_of(tool, path, cluster, context))
    for name in names:
        print_line(shown(name))
    say("Pods find the image if their imagePullPolicy is IfNotPresent or Never.")


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"--tag {name!r}: must be a full name, such as {DEFAULT_NAME} or "
            "registry.example.com/team/dryrack:1"
        )


def _save(path: Path, name: str) -> str:
    """Write the image of this installation, and return its digest."""
    from dryrack.cli.images.archive import write_archive
    from dryrack.cli.images.installation import image_config, write_layers

    config = image_config()
    with TemporaryDirectory(prefix="dryrack-image-") as directory:
        return write_archive(path, name, config, write_layers(Path(directory)))


def _current_context() -> str:
    """Return the current context of the kubeconfig that kubectl reads; "" if it has none."""
    from dryrack.client.kubeconfig import KubeconfigError, current_context, kubeconfig_paths

    try:
        return current_context(kubeconfig_paths(os.environ, Path.home()))
    except KubeconfigError:
        return ""

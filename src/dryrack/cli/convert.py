"""
`dryrack convert`: print or write manifests in other versions and formats.

The converted manifests go to standard output, everything that they do not preserve to standard
error. With `-i`, all files are written next to the old ones before the first of them is replaced.
"""

from __future__ import annotations

import difflib
import os
import sys
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.cli.files import STDIN, UsageError, parse_release, read_sources, without_pauses
from dryrack.cli.output import DataFormat, many, print_data, say, shown
from dryrack.conversion import (
    add_extended_resources,
    convert_gangs,
    convert_manifests,
    convert_publishers,
    convert_to_claims,
    convert_versions,
    note_scheduler_names,
    set_scheduler_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.cli.options import ConvertOptions
    from dryrack.conversion import ConvertedFile, Workspace


def run(options: ConvertOptions) -> bool:
    """Convert the files; return whether all documents could be converted."""
    _check_usage(options)
    sources = read_sources([*options.files, *options.more])
    with without_pauses():
        result = convert_manifests([(each.name, each.content) for each in sources], _steps(options))
    for problem in result.problems:
        say(shown(f"{problem.file}:{problem.line}: error: {problem.message}{_fix(problem.fix)}"))
    if result.problems:
        say(f"{many(len(result.problems), 'problem')}; nothing is converted")
        return False
    for note in result.notes:
        say(shown(f"{note.file}:{note.line}: {note.message}{_fix(note.fix)}"))
    if options.diff:
        for each in result.files:
            _print_diff(each)
    elif options.in_place:
        write_all([each for each in result.files if each.after != each.before])
    elif options.output is DataFormat.JSON:
        objects = [raw for each in result.files for raw in each.objects]
        whole = {"apiVersion": "v1", "kind": "List", "items": objects}
        from dryrack.cli.output import Format

        print_data(objects[0] if len(objects) == 1 else whole, Format.JSON)
    else:
        _print_files(result.files)
    return True


def _fix(fix: str) -> str:
    return f"; {fix}" if fix else ""


def _check_usage(options: ConvertOptions) -> None:
    files = [*options.files, *options.more]
    if options.claims and options.extended_resources:
        raise UsageError("--claims and --extended-resources exclude each other; use one of them")
    if options.in_place and options.diff:
        raise UsageError("-i and --diff exclude each other; --diff changes no file")
    if options.in_place and STDIN in files:
        raise UsageError("-i cannot change standard input; name files, or leave out -i")
    if options.output is DataFormat.JSON and (options.in_place or options.diff):
        raise UsageError("-o json applies to standard output; leave out -i and --diff")
    parse_release(options.release)


def _steps(options: ConvertOptions) -> Sequence[Callable[[Workspace], None]]:
    """Return the steps of the conversion that the options ask for."""
    steps: list[Callable[[Workspace], None]] = []
    if options.claims:
        steps.append(convert_to_claims)
    if options.extended_resources:
        steps.append(add_extended_resources)
    if options.publisher is not None:
        from dryrack.cluster import load_catalogue
        from dryrack.kubeletplugin import format_of, rewrite

        steps.append(
            partial(
                convert_publishers,
                target=options.publisher.value,
                format_of=format_of,
                rewrite=partial(rewrite, catalogue=load_catalogue),
            )
        )
    if options.gangs is not None:
        target = options.gangs.value
        steps.append(partial(convert_gangs, target=target, release=options.release))
        if not options.scheduler_name:
            steps.append(partial(note_scheduler_names, target=target))
    if options.scheduler_name:
        steps.append(partial(set_scheduler_name, name=options.scheduler_name))
    # The last step: other steps add objects of v1.
    return [*steps, partial(convert_versions, target=options.to.value, release=options.release)]


def _print_files(files: Sequence[ConvertedFile]) -> None:
    """Print the files as one stream of documents."""
    previous = ""
    for each in files:
        text = each.after.removeprefix("\ufeff")
        if previous and not text.lstrip().startswith(("---", "{")) and text.strip():
            sys.stdout.write("---\n")
        sys.stdout.write(text if text.endswith("\n") or not text else f"{text}\n")
        previous = previous or text.strip()


def _print_diff(file: ConvertedFile) -> None:
    for line in difflib.unified_diff(
        file.before.splitlines(keepends=True),
        file.after.splitlines(keepends=True),
        file.name,
        file.name,
    ):
        sys.stdout.write(line)
        if not line.endswith("\n"):
            sys.stdout.write("\n\\ No newline at end of file\n")


def write_all(files: Sequence[ConvertedFile]) -> None:
    """Replace the files; if one of them cannot be written, none changes."""
    written: list[tuple[str, Path]] = []
    replaced: list[ConvertedFile] = []
    try:
        for each in files:
            # A link stays a link: the file that it names is replaced.
            path = Path(each.name).resolve()
            handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
            written.append((temporary, path))
            with os.fdopen(handle, "wb") as file:
                file.write(each.after.encode())
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(path.stat().st_mode & 0o7777)
        for each, (temporary, path) in zip(files, written, strict=True):
            Path(temporary).replace(path)
            replaced.append(each)
    except OSError:
        for each in replaced:
            Path(each.name).write_bytes(each.before.encode())
        raise
    finally:
        for temporary, _ in written:
            with suppress(FileNotFoundError):
                Path(temporary).unlink()
    say(f"{many(len(files), 'file')} changed")

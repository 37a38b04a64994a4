"""
The log of a container that was never executed.

No program ran, and the log shows that: it has the command that would have been executed, with its
environment and its devices. The environment that a driver would add comes from `Drivers`, because
only the driver knows it. If the command prints its environment, or a file that comes with a device,
these lines are in the log as that command would have written them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from dryrack.controllers.claims.references import claims_of_pod
from dryrack.controllers.objects import spec_of, status_of
from dryrack.controllers.pods.drivers import Drivers, Injection
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

_SCRIPT = re.compile(r"-[a-z]*c")
_QUOTED_BY_BASH = re.compile(r"([$`\"\\])")
_COMMAND_END = re.compile(r"[;&|\n]")


class Claims(Protocol):
    """Returns a claim by namespace and name."""

    def __call__(self, namespace: str, name: str) -> Raw | None: ...


def log_of(
    pod: Raw,
    container: str,
    claims: Claims,
    *,
    drivers: Drivers | None = None,
) -> str:
    """Return the log of an existing container, or "" if it never started."""
    spec = next(
        each
        for key in ("containers", "initContainers", "ephemeralContainers")
        for each in _list(spec_of(pod), key)
        if each["name"] == container
    )
    status = status_of(pod)
    statuses = [*_list(status, "containerStatuses"), *_list(status, "initContainerStatuses")]
    reported: Raw = next((each for each in statuses if each["name"] == container), {})
    is_waiting = "waiting" in reported.get("state", {"waiting": {}})
    if is_waiting and not reported.get("lastState"):
        return ""
    uses = list(claims_in_use(pod, spec, claims))
    devices = [device for claim, request in uses for device in _allocated(claim, request)]
    node = spec_of(pod).get("nodeName", "")
    words = [str(each) for each in (*_list(spec, "command"), *_list(spec, "args"))]
    injections: list[Injection] = []
    if drivers is not None:
        injections += drivers.injections(node, list(existing_claims(pod, claims)), uses)
    variables = [
        *_environment(pod, spec),
        *numbered_devices(uses, drivers),
        *(pair for each in injections for pair in each.env),
    ]
    lines = [
        f"# simulated: image {spec.get('image', '')}, no process runs",
        *([f"command: {' '.join(words)}"] if words else []),
        *map(_variable_form(words), dict.fromkeys(variables)),
        *(f"not prepared: {each.error}" for each in injections if each.error),
        *(f"mount: {path}" for each in injections for path in each.mounts),
        *_file_lines(words, [pair for each in injections for pair in each.lines]),
        *(f"device: {device}" for device in devices),
    ]
    return "".join(f"{line}\n" for line in lines)


def _variable_form(words: Sequence[str]) -> Callable[[tuple[str, str]], str]:
    """Return how the command prints a variable, or a form with a prefix if it prints none."""
    is_script = len(words) > 2 and _SCRIPT.fullmatch(words[1]) is not None
    commands = _commands_of(words[2:] if is_script else words)
    if is_script and any(each in (["export"], ["export", "-p"]) for each in commands):
        is_bash = words[0].rpartition("/")[2] == "bash"

        def show_export(variable: tuple[str, str]) -> str:
            name, value = variable
            if is_bash:
                quoted = _QUOTED_BY_BASH.sub(r"\\\1", value)
                return f'declare -x {name}="{quoted}"'
            quoted = value.replace("'", "'\"'\"'")
            return f"export {name}='{quoted}'"

        return show_export
    is_printed = any(
        len(each) == 1 and _program_of(each) in ("env", "printenv") for each in commands
    )
    prefix = "" if is_printed else "env: "
    return lambda variable: f"{prefix}{variable[0]}={variable[1]}"


def _commands_of(script: Sequence[str]) -> list[list[str]]:
    """Return the words of each command in a script of the shell."""
    commands = (each.split() for each in _COMMAND_END.split(" ".join(script)))
    return [each for each in commands if each]


def _program_of(command: Sequence[str]) -> str:
    return command[0].removeprefix("/usr").removeprefix("/bin/")


def _file_lines(words: Sequence[str], lines: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Return the lines of mounted files, without a prefix where the command prints the file."""
    commands = [words, *_commands_of(words[2:])]
    printed = {path for each in commands if each and _program_of(each) == "cat" for path in each}
    for path, line in lines:
        yield line if path in printed else f"file {path}: {line}"


def numbered_devices(
    uses: Iterable[tuple[Raw, str]], drivers: Drivers | None
) -> Iterator[tuple[str, str]]:
    """Yield variables for the devices without a driver; no driver decides their names."""
    if drivers is not None and drivers.processes is not None:
        # A program serves each device that is not simulated.
        return
    known = () if drivers is None else drivers.names
    devices = (device for claim, request in uses for device in _allocated(claim, request))
    others = (device for device in devices if device.partition("/")[0] not in known)
    for number, device in enumerate(others):
        yield f"DRYRACK_DEVICE_{number}", device


def existing_claims(pod: Raw, claims: Claims) -> Iterator[Raw]:
    """Yield the existing claims of a pod; the claim of its extended resources comes last."""
    extended = get(pod, "status.extendedResourceClaimStatus", {})
    names = [*(each.claim for each in claims_of_pod(pod)), extended.get("resourceClaimName")]
    for name in dict.fromkeys(names):
        claim = claims(pod["metadata"].get("namespace", ""), name) if name else None
        if claim is not None:
            yield claim


def claims_in_use(pod: Raw, container: Raw, claims: Claims) -> Iterator[tuple[Raw, str]]:
    """Yield the claims of a container, each with a request, or "" for all requests."""
    names = {each.name: each.claim for each in claims_of_pod(pod)}
    namespace = pod["metadata"].get("namespace", "")
    for wanted in _list(get(container, "resources", {}), "claims"):
        claim = claims(namespace, names.get(wanted["name"]) or "")
        if claim is not None:
            yield claim, wanted.get("request", "")
    extended = get(pod, "status.extendedResourceClaimStatus", {})
    for mapping in _list(extended, "requestMappings"):
        if mapping["containerName"] == container["name"]:
            claim = claims(namespace, extended["resourceClaimName"])
            if claim is not None:
                yield claim, mapping["requestName"]


def _allocated(claim: Raw, request: str) -> Iterator[str]:
    allocation = get(claim, "status.allocation", {})
    for result in _list(get(allocation, "devices", {}), "results"):
        # A result of a request with alternatives has the name request/alternative.
        if not request or result["request"].split("/")[0] == request:
            yield f"{result['driver']}/{result['pool']}/{result['device']}"


def _environment(pod: Raw, container: Raw) -> Iterable[tuple[str, str]]:
    """Yield the variables that have a value or refer to a field of the pod."""
    for variable in _list(container, "env"):
        source = get(variable, "valueFrom", {})
        if "fieldRef" in source:
            value = get(pod, source["fieldRef"].get("fieldPath", ""))
            yield variable["name"], "" if value is None else str(value)
        elif not source:
            yield variable["name"], variable.get("value", "")
        else:
            yield variable["name"], f"<from {next(iter(source))}>"


def _list(holder: Raw, key: str) -> Sequence[Any]:
    return holder.get(key) or ()

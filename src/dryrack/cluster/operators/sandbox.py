"""
The command, environment, ports, and files that a local program gets from its container.

The files are in a private folder, one folder for each volume. Where the machine permits, they are
mounted at the paths of the container, in a mount namespace that only the program is in. Otherwise
the program finds the folders by `DRYRACK_MOUNTS`, by the paths in its arguments, which are
replaced, and by a kubeconfig with its token.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import socket
import sys
import tempfile
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.cluster.operators import launcher, relay
from dryrack.cluster.operators.readiness import port_number
from dryrack.cluster.operators.volumes import files_of, host_path, mounts_of, write_files
from dryrack.cluster.operators.workloads import OperatorError
from dryrack.controllers.containers.environment import environment_of, expand
from dryrack.kinds.paths import get, status_of

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.cluster.operators.volumes import Contents, Mount
    from dryrack.kinds.raw import Raw

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The part of the command line and of this machine."""

    program: tuple[str, ...]
    """Empty: the command of the container."""
    adds_arguments: bool
    folders: Mapping[str, Path]
    """By the path of a mount: the folder for its files. With one, nothing is mounted."""
    environment: Mapping[str, str]
    directory: Path
    host: str
    port: int
    """The address of the API server."""
    authority: bytes


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is known before anything is written."""

    program: str
    words: tuple[str, ...]
    variables: Mapping[str, str]
    mounts: tuple[Mount, ...]
    ports: Mapping[int, int]
    port_problem: str = ""
    """Why the program needs its own network; "" if it does not."""


def plan_of(contents: Contents, machine: Machine, ports: Mapping[int, int]) -> Plan:
    """Return what to start; raise `OperatorError` if it cannot start on this machine."""
    container = contents.container
    where = f"container {container['name']}"
    pod = contents.pod
    # The address of a virtual pod exists nowhere, so that nothing could listen at it.
    address: Raw = {"podIP": _LOOPBACK, "podIPs": [{"ip": _LOOPBACK}]}
    local = {**pod, "status": {**status_of(pod), **address}}
    server: Raw = {"spec": {"clusterIP": machine.host, "ports": [{"port": machine.port}]}}

    def find(resource: str, namespace: str, name: str) -> Raw | None:
        return server if resource == "services" else contents.find(resource, namespace, name)

    variables = environment_of(local, container, find, ())
    variables.setdefault("KUBERNETES_SERVICE_HOST", machine.host)
    variables.setdefault("KUBERNETES_SERVICE_PORT", str(machine.port))
    for name in {"PATH", "HOME"} - {each["name"] for each in get(container, "env", ())}:
        # Those of an image would lead nowhere on this machine.
        variables.pop(name, None)
    command = machine.program or tuple(
        expand(each, variables) for each in get(container, "command", ())
    )
    if not command:
        raise OperatorError(
            f"{where}: has no command, because its image decides; name the program on this "
            "machine after --, for example: -- ./bin/manager"
        )
    path = {**machine.environment, **variables}.get("PATH")
    program = shutil.which(command[0], path=path)
    if program is None:
        origin = "" if machine.program else f"{where}: its command "
        raise OperatorError(
            f"{origin}{command[0]}: no such program on this machine, or it is not executable; "
            "name one after --, for example: -- ./bin/manager"
        )
    arguments = [expand(each, variables) for each in get(container, "args", ())]
    if not machine.adds_arguments:
        arguments = []
    local_ports, arguments, port_problem = _choose_ports(container, arguments, ports)
    mounts = mounts_of(pod, container, variables)
    for each in machine.folders:
        if each not in {mount.path for mount in mounts}:
            paths = ", ".join(mount.path for mount in mounts) or "none"
            raise OperatorError(f"--mount {each}: {where} has no mount there; it has: {paths}")
    program = str(machine.directory / program)
    words = (*command, *arguments)
    return Plan(program, words, variables, mounts, local_ports, port_problem)


def _choose_ports(
    container: Raw, arguments: Sequence[str], wished: Mapping[int, int]
) -> tuple[Mapping[int, int], list[str], str]:
    """
    Return the local port for each port of the container, and the arguments with these ports.

    A port that another program uses is replaced by a free one if an argument ends with it, as in
    `--health-probe-bind-address=:8081`. Otherwise the third value is the reason why the program
    needs its own network, where it has all its ports.
    """
    ports = {each["containerPort"]: each.get("name", "") for each in get(container, "ports", ())}
    for probe in ("readinessProbe", "livenessProbe"):
        for handler in get(container, probe, {}).values():
            if isinstance(handler, dict) and (port := port_number(handler.get("port"), container)):
                ports.setdefault(port, probe)
    for port in wished:
        if port not in ports:
            known = ", ".join(map(str, ports)) or "none"
            raise OperatorError(
                f"--port {port}: container {container['name']} has no such port; it has: {known}"
            )
    chosen = dict(wished)
    result = list(arguments)
    for port, name in ports.items():
        ending = re.compile(rf"(?<=[:=]){port}$")
        local = wished.get(port)
        if local is None:
            if _is_free(port):
                continue
            if not any(ending.search(each) for each in result):
                title = f" ({name})" if name else ""
                problem = (
                    f"container {container['name']}: another program listens at its port "
                    f"{port}{title}; stop that one, or let the program listen elsewhere and name "
                    f"the port, for example: --port {port}={_free_port()}"
                )
                everywhere = {each: wished.get(each) or _free_port() for each in ports}
                return everywhere, list(arguments), problem
            local = _free_port()
        chosen[port] = local
        result = [ending.sub(str(local), each) for each in result]
    return chosen, result, ""


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except PermissionError:
            # A port below 1024: the program finds out itself.
            return True
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _private_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="dryrack-run-")).resolve()


@dataclass(slots=True)
class Sandbox:
    """The files of one program on this machine; `remove` deletes them."""

    plan: Plan
    machine: Machine
    folder: Path
    is_isolated: bool = False
    problem: str = ""
    """Why nothing is mounted."""
    made: list[Path] = field(default_factory=list)
    relays: list[asyncio.Server] = field(default_factory=list)
    """Pass on the connections between this machine and the network of the program."""

    @classmethod
    async def prepare(cls, plan: Plan, machine: Machine, contents: Contents) -> Sandbox:
        """Write the files, and find out whether they can be mounted."""
        sandbox = cls(plan, machine, _private_folder())
        try:
            await sandbox._fill(contents)
        except BaseException:
            sandbox.remove()
            raise
        return sandbox

    async def _fill(self, contents: Contents) -> None:
        (self.folder / "root").mkdir()
        for path, folder in self.machine.folders.items():
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise OperatorError(
                    f"--mount {path}={folder}: is not an empty directory; name a new one"
                )
        for mount in self.plan.mounts:
            folder = self._folder_of(mount)
            if folder.is_relative_to(self.folder) or mount.path in self.machine.folders:
                folder.mkdir(parents=True, exist_ok=True)
        self.made = [folder.resolve() for folder in self.machine.folders.values()]
        self.write(contents)
        for mount in self.plan.mounts:
            source = self._location(mount)
            if mount.sub_path and not source.exists():
                # As the kubelet: a path that the volume lacks becomes a directory.
                source.mkdir(parents=True)
        if self.machine.folders:
            self.problem = "--mount names folders"
        elif sys.platform != "linux":
            self.problem = "only Linux has mount namespaces"
        else:
            process = await self._launch(checks=True)
            _, text = await process.communicate()
            self.is_isolated = process.returncode == 0
            self.problem = text.decode(errors="replace").strip().removeprefix("dryrack: ")
        if self.plan.port_problem:
            await self._open_relays()
        if not self.is_isolated and any(each.path == ACCOUNT for each in self.plan.mounts):
            (self.folder / "kubeconfig").write_text(json.dumps(self._kubeconfig()))

    async def _open_relays(self) -> None:
        if not self.is_isolated:
            raise OperatorError(self.plan.port_problem)
        if not ip_address(self.machine.host).is_loopback:
            raise OperatorError(self.plan.port_problem)
        server = f"tcp:{self.machine.host}:{self.machine.port}"
        self.relays.append(await relay.listen(f"unix:{self.folder}/server", server))
        for port, local in self.plan.ports.items():
            source = f"tcp:{_LOOPBACK}:{local}"
            self.relays.append(await relay.listen(source, f"unix:{self.folder}/{port}"))

    def _relay_plan(self) -> tuple[str, list[tuple[str, str]]] | None:
        """Return the script for the network of the program, and its pairs of addresses."""
        if not self.plan.port_problem:
            return None
        server = f"tcp:{self.machine.host}:{self.machine.port}"
        pairs = [(server, f"unix:{self.folder}/server")]
        pairs += [
            (f"unix:{self.folder}/{port}", f"tcp:{_LOOPBACK}:{port}") for port in self.plan.ports
        ]
        return relay.__file__, pairs

    def write(self, contents: Contents) -> None:
        """Make the files equal to what the cluster has now."""
        for mount in self.plan.mounts:
            files = files_of(mount.volume, contents)
            if files is not None:
                write_files(self._folder_of(mount), files)

    def _folder_of(self, mount: Mount) -> Path:
        """Return the folder of the mount's volume."""
        if mount.path in self.machine.folders:
            return self.machine.folders[mount.path].absolute()
        path = host_path(mount.volume)
        if path and Path(path).exists():
            return Path(path)
        return self.folder / "volumes" / str(mount.volume["name"])

    def _location(self, mount: Mount) -> Path:
        folder = self._folder_of(mount)
        return folder / mount.sub_path if mount.sub_path else folder

    def _mounts(self) -> Iterator[tuple[str, str]]:
        """Yield the sources and paths of mounts."""
        used = (Path(self.plan.program), self.machine.directory)
        for mount in self.plan.mounts:
            location = self._location(mount)
            # An emptyDir at /tmp must not hide the program.
            hides = any(each.is_relative_to(mount.path) for each in used)
            if not hides and str(location) != mount.path:
                yield str(location), mount.path

    @property
    def command(self) -> str:
        return shlex.join(self._words())

    def _words(self) -> tuple[str, ...]:
        if self.is_isolated:
            return self.plan.words
        given = len(self.machine.program)
        words = list(self.plan.words)
        for mount in sorted(self.plan.mounts, key=lambda each: len(each.path), reverse=True):
            escaped = re.escape(mount.path)
            path = re.compile(rf"(?<![\w./-]){escaped}(?![\w.-])")
            location = str(self._location(mount))
            words[given:] = [path.sub(lambda _, it=location: it, each) for each in words[given:]]  # type: ignore[misc]
        return tuple(words)

    def _environment(self) -> dict[str, str]:
        # A program would use the user's own rights instead of those of its account.
        usual = {key: text for key, text in self.machine.environment.items() if key != "KUBECONFIG"}
        environment = usual | dict(self.plan.variables)
        if not self.is_isolated:
            pairs = (f"{each.path}={self._location(each)}" for each in self.plan.mounts)
            environment["DRYRACK_MOUNTS"] = os.pathsep.join(pairs)
            if (self.folder / "kubeconfig").exists():
                environment.setdefault("KUBECONFIG", str(self.folder / "kubeconfig"))
        return environment

    async def launch(self) -> Process:
        """Start the program in a process group of its own."""
        return await self._launch(checks=False)

    async def _launch(self, *, checks: bool) -> Process:
        words = self._words()
        environment = self._environment()
        directory = self.machine.directory
        pipe = asyncio.subprocess.PIPE if checks else None
        if sys.platform != "linux":
            return await asyncio.create_subprocess_exec(
                *words,
                executable=self.plan.program,
                env=environment,
                cwd=directory,
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        plan = {
            "program": self.plan.program,
            "words": words,
            "environment": environment,
            "directory": str(directory),
            "host": self.plan.variables["HOSTNAME"],
            "root": str(self.folder / "root"),
            "mounts": list(self._mounts()) if self.is_isolated or checks else [],
            "relay": self._relay_plan(),
            "checks": checks,
        }
        path = self.folder / "plan.json"
        path.write_text(json.dumps(plan))
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            launcher.__file__,
            str(path),
            stdin=asyncio.subprocess.DEVNULL,
            stderr=pipe,
            start_new_session=True,
        )

    def _kubeconfig(self) -> Raw:
        account = next(each for each in self.plan.mounts if each.path == ACCOUNT)
        folder = self._location(account)
        host = f"[{self.machine.host}]" if ":" in self.machine.host else self.machine.host
        cluster = {
            "server": f"https://{host}:{self.machine.port}",
            "certificate-authority": str(folder / "ca.crt"),
        }
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "pod", "cluster": cluster}],
            "contexts": [{"name": "pod", "context": {"cluster": "pod", "user": "pod"}}],
            "current-context": "pod",
            "users": [{"name": "pod", "user": {"tokenFile": str(folder / "token")}}],
        }

    def description(self) -> Iterator[str]:
        """Yield lines about where the program finds its files and ports."""
        if self.plan.port_problem:
            yield (
                "another program uses a port of the container, so the program has its own "
                "network, from which it reaches only the API server"
            )
        for port, local in self.plan.ports.items():
            yield f"port {port} of the container is {local} on this machine"
        if self.is_isolated:
            paths = ", ".join(path for _, path in self._mounts())
            if paths:
                yield f"mounted for the program only: {paths}"
            return
        yield f"nothing is mounted ({self.problem}); the files are in these folders:"
        width = max((len(each.path) for each in self.plan.mounts), default=0)
        for mount in self.plan.mounts:
            yield f"  {mount.path:{width}}  {self._location(mount)}"
        yield "the variable DRYRACK_MOUNTS has them as PATH=FOLDER, separated by colons"
        if (self.folder / "kubeconfig").exists():
            yield "the variable KUBECONFIG names a kubeconfig with the token of the pod"

    def remove(self) -> None:
        """Delete all files, and close the relays."""
        for server in self.relays:
            server.close()
        for folder in (self.folder, *self.made):
            shutil.rmtree(folder, ignore_errors=True)

"""The files of a cluster: keys, kubeconfigs, and the record of its process."""

from __future__ import annotations

import base64
import os
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from dryrack.cluster import certificates, kubeconfig
from dryrack.cluster.certificates import write_private
from dryrack.cluster.process.serving import tls_context
from dryrack.cluster.process.state import (
    ClusterStateError,
    Process,
    Running,
    all_states,
    home,
    state_of,
)

NOW = 1_800_000_000.0
THEIRS = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "production", "cluster": {"server": "https://prod"}}],
    "contexts": [{"name": "production", "context": {"cluster": "production", "user": "me"}}],
    "users": [{"name": "me", "user": {"token": "secret"}}],
    "current-context": "production",
    "extensions": [{"name": "kept"}],
}


# A test may run beside threads of pytest; a start never does.
FORKS = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")


def test_keys_are_for_their_owner_alone(tmp_path: Path) -> None:
    """No key, certificate or directory of keys can be read by anybody else."""
    keys = certificates.ensure(tmp_path / "keys", ["127.0.0.1"], NOW)
    assert stat.S_IMODE(keys.directory.stat().st_mode) == 0o700
    private = (keys.authority.key, keys.server.key, keys.admin.key, keys.accounts)
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}


def test_keys_are_made_once(tmp_path: Path) -> None:
    """A second start finds the same authority and administrator; a new address, a new server."""
    keys = certificates.ensure(tmp_path, ["127.0.0.1"], NOW)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    certificates.ensure(tmp_path, ["127.0.0.1"], NOW)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    certificates.ensure(tmp_path, ["127.0.0.1", "10.0.0.7"], NOW)
    changed = {path.name for path in tmp_path.iterdir() if path.read_bytes() != before[path.name]}
    assert changed == {"server.crt", "server.key", "server.addresses"}
    assert isinstance(tls_context(keys), ssl.SSLContext)


def test_certificates_say_who_they_are_for(tmp_path: Path) -> None:
    """The administrator is in system:masters; the server has the names that clients use."""
    keys = certificates.ensure(tmp_path, ["127.0.0.1", "rack.example"], NOW)
    admin = x509.load_pem_x509_certificate(keys.admin.certificate.read_bytes())
    assert admin.subject.rfc4514_string() == "CN=kubernetes-admin,O=system:masters"
    server = x509.load_pem_x509_certificate(keys.server.certificate.read_bytes())
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"rack.example", "localhost", "kubernetes.default.svc"} <= set(
        names.get_values_for_type(x509.DNSName)
    )


def test_the_key_of_a_kubeconfig_is_sec1(tmp_path: Path) -> None:
    """Java's fabric8 reads it; a key that an earlier version stored as PKCS #8 is converted."""
    keys = certificates.ensure(tmp_path, ["127.0.0.1"], NOW)
    written = _client_key(keys)
    key = certificates.load_key(keys.admin.key)
    older = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    keys.admin.key.write_bytes(key.private_bytes(*older, serialization.NoEncryption()))

    assert written.startswith(b"-----BEGIN EC PRIVATE KEY-----\n")
    assert _client_key(keys) == written


def _client_key(keys: certificates.Keys) -> bytes:
    user = kubeconfig.kubeconfig("x", "https://127.0.0.1:1", keys)["users"][0]["user"]
    return base64.b64decode(user["client-key-data"])


def test_a_merged_kubeconfig_keeps_what_was_there(tmp_path: Path) -> None:
    """Our cluster is added and current; theirs, and what we do not know, stays; and goes again."""
    keys = certificates.ensure(tmp_path, ["127.0.0.1"], NOW)
    ours = kubeconfig.kubeconfig("x", "https://127.0.0.1:1", keys)
    both = kubeconfig.merged(THEIRS, ours)
    assert [each["name"] for each in both["clusters"]] == ["production", "dryrack-x"]
    assert (both["current-context"], both["extensions"]) == ("dryrack-x", [{"name": "kept"}])
    assert kubeconfig.merged(both, ours) == both
    rest = kubeconfig.without(both, "x")
    assert {key: rest[key] for key in ("clusters", "contexts", "users")} == {
        key: THEIRS[key] for key in ("clusters", "contexts", "users")
    }
    assert rest["current-context"] == ""


def test_the_own_kubeconfig_is_the_yaml_that_a_library_would_write(tmp_path: Path) -> None:
    """What is written by hand reads, and looks, as if it were not."""
    keys = certificates.ensure(tmp_path, ["127.0.0.1"], NOW)
    text = kubeconfig.own_text("x", "https://[::1]:65535", keys)
    assert text == kubeconfig.text(kubeconfig.kubeconfig("x", "https://[::1]:65535", keys))


@FORKS
def test_keys_are_made_by_another_process_meanwhile(tmp_path: Path) -> None:
    """They are whole once they were waited for, and are not made twice."""
    made = certificates.Meanwhile(tmp_path, ["127.0.0.1"], NOW)
    keys = made.keys()
    before = keys.server.certificate.read_bytes()
    again = certificates.Meanwhile(tmp_path, ["127.0.0.1"], NOW)
    assert again.keys() == keys
    again.close()
    assert keys.server.certificate.read_bytes() == before


@FORKS
def test_keys_that_cannot_be_made_meanwhile_are_told_of(tmp_path: Path) -> None:
    """What went wrong in the other process goes wrong here, where somebody hears it."""
    path = tmp_path / "file"
    path.write_text("no directory")
    made = certificates.Meanwhile(path / "keys", ["127.0.0.1"], NOW)
    with pytest.raises(NotADirectoryError):
        made.keys()


@pytest.mark.parametrize("content", ["a: [", "- a list", "just text"])
def test_somebodys_broken_kubeconfig_is_not_overwritten(tmp_path: Path, content: str) -> None:
    """What cannot be read is told, and left as it is."""
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(kubeconfig.KubeconfigError, match="config"):
        kubeconfig.read(path)
    assert path.read_text() == content


def test_a_private_file_is_replaced_whole(tmp_path: Path) -> None:
    """The old content or the new, never a part, and no leftovers."""
    path = tmp_path / "secret"
    write_private(path, b"old")
    write_private(path, b"new")
    assert path.read_bytes() == b"new"
    assert [each.name for each in tmp_path.iterdir()] == ["secret"]


def test_a_process_is_more_than_its_number() -> None:
    """Another process with the same number is not the one that was recorded."""
    ours = Process.of(os.getpid())
    assert ours.is_alive()
    assert not Process(ours.pid, "another time").is_alive()
    assert not Process(ours.pid, "").is_alive()


def test_a_record_of_a_dead_process_is_no_cluster(tmp_path: Path) -> None:
    """A cluster whose process was killed is down, whatever its files say."""
    state = state_of("x", tmp_path)
    state.make()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        running = Running(Process.of(child.pid), "https://127.0.0.1:1", "", "")
        state.write(running)
        assert state.running() == running
        running.process.stop()
        child.wait()
    assert state.running() is None
    assert [each.name for each in all_states(tmp_path)] == ["x"]
    state.forget()
    assert all_states(tmp_path) == ()


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "x" * 64, "-a"])
def test_names_cannot_lead_elsewhere(name: str) -> None:
    """A name is a label; nothing that could be a path."""
    with pytest.raises(ClusterStateError, match="cluster name"):
        state_of(name)


def test_clusters_live_where_the_environment_says() -> None:
    """DRYRACK_HOME first, then the directory for state of the desktop's rules."""
    assert home({"DRYRACK_HOME": "/a"}) == Path("/a")
    assert home({"XDG_STATE_HOME": "/b"}) == Path("/b/dryrack")
    assert home({}) == Path.home() / ".local/state/dryrack"

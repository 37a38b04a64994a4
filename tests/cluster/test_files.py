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

from dryrack.client.https import connected
from dryrack.client.kubeconfig import load
from dryrack.client.transport import Request
from dryrack.cluster import (
    ControlPlaneOptions,
    SystemClock,
    build_control_plane,
    certificates,
    kubeconfig,
)
from dryrack.cluster.private_files import (
    PrivateFileError,
    ensure_own_directory,
    write_private,
)
from dryrack.cluster.process import serving_on_loopback, with_keys
from dryrack.cluster.process.locks import hold
from dryrack.cluster.process.serving import LOOPBACK, tls_context
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


DAY = 86_400.0


def _certificates(keys: certificates.Keys) -> dict[str, x509.Certificate]:
    pairs = {"ca": keys.authority, "server": keys.server, "admin": keys.admin}
    return {name: certificates.load_certificate(pair.certificate) for name, pair in pairs.items()}


@pytest.mark.parametrize(
    ("days", "renewed"), [(200, set()), (250, {"server", "admin"}), (1000, {"server", "admin"})]
)
def test_a_start_renews_certificates_near_their_end(
    tmp_path: Path, days: int, renewed: set[str]
) -> None:
    """When less than a third is left; the keys of the authority and of tokens stay."""
    keys = certificates.ensure(tmp_path, ["127.0.0.1"], NOW)
    before = _certificates(keys)
    secrets = (keys.authority.key, keys.accounts)
    kept = [path.read_bytes() for path in secrets]
    certificates.ensure(tmp_path, ["127.0.0.1"], NOW + days * DAY)
    after = _certificates(keys)
    assert {name for name in before if before[name] != after[name]} == renewed
    assert [path.read_bytes() for path in secrets] == kept
    for name in renewed:
        after[name].verify_directly_issued_by(before["ca"])
        assert after[name].not_valid_after_utc.timestamp() == NOW + (days + 365) * DAY


def test_an_authority_is_renewed_with_its_key_and_name(tmp_path: Path) -> None:
    """Who trusts the old one trusts what the new one signs, and the other way round."""
    keys = certificates.ensure(tmp_path, ["127.0.0.1"], NOW)
    before = _certificates(keys)
    certificates.ensure(tmp_path, ["127.0.0.1"], NOW + 3500 * DAY)
    after = _certificates(keys)
    assert after["ca"] != before["ca"]
    assert after["ca"].not_valid_after_utc > before["ca"].not_valid_after_utc
    after["server"].verify_directly_issued_by(before["ca"])
    before["admin"].verify_directly_issued_by(after["ca"])


def test_an_authority_of_one_year_is_renewed_before_it_signs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Directories of earlier versions have one; no certificate outlives its authority."""
    with monkeypatch.context() as patch:
        patch.setattr(certificates, "_AUTHORITY_LIFETIME", certificates._LIFETIME)
        keys = certificates.ensure(tmp_path, ["127.0.0.1"], NOW)
    certificates.ensure(tmp_path, ["127.0.0.1"], NOW + 300 * DAY)
    after = _certificates(keys)
    assert after["ca"].not_valid_after_utc > after["server"].not_valid_after_utc


def test_a_pair_that_does_not_fit_is_replaced(tmp_path: Path) -> None:
    """A start mends a key without its certificate, and what another authority has signed."""
    keys = certificates.ensure(tmp_path, ["127.0.0.1"], NOW)
    certificates.write_key(keys.server.key, lasts=False)
    keys.authority.key.unlink()
    certificates.ensure(tmp_path, ["127.0.0.1"], NOW)
    after = _certificates(keys)
    for name in ("server", "admin"):
        after[name].verify_directly_issued_by(after["ca"])
    assert isinstance(tls_context(keys), ssl.SSLContext)


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "admin.crt", "accounts.key"])
def test_a_damaged_key_is_named(tmp_path: Path, name: str) -> None:
    """The message names the file and what to do; nothing is overwritten."""
    certificates.ensure(tmp_path, ["127.0.0.1"], NOW)
    (tmp_path / name).write_text("damaged")
    with pytest.raises(certificates.KeysError, match=f"{name}: not a .*; restore it, or remove"):
        certificates.ensure(tmp_path, ["127.0.0.1"], NOW)
    assert (tmp_path / name).read_text() == "damaged"


async def test_an_expired_data_directory_serves_again(tmp_path: Path) -> None:
    """After more than a year a start hands out a kubeconfig with which clients connect."""
    now = SystemClock().now()
    certificates.ensure(tmp_path, [LOOPBACK], now - 400 * DAY, lasts=False)

    options, keys = with_keys(ControlPlaneOptions(), tmp_path)
    plane = build_control_plane(options)
    async with serving_on_loopback(plane, keys, "old") as path:
        connection = load([path], SystemClock())
        async with connected(connection) as transport:
            assert (await transport.send(Request("GET", "/api/v1/namespaces"))).status == 200
    plane.expiry.stop()


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
    """The cluster is added and current; unknown fields stay; removal restores the original."""
    keys = certificates.ensure(tmp_path, ["127.0.0.1"], NOW)
    ours = kubeconfig.kubeconfig("x", "https://127.0.0.1:1", keys)
    both = kubeconfig.merge(THEIRS, ours)
    assert [each["name"] for each in both["clusters"]] == ["production", "dryrack-x"]
    assert (both["current-context"], both["extensions"]) == ("dryrack-x", [{"name": "kept"}])
    assert kubeconfig.merge(both, ours) == both
    rest = kubeconfig.without(both, "x")
    assert {key: rest[key] for key in THEIRS} == THEIRS


@pytest.mark.parametrize("order", [("x", "y"), ("y", "x")])
def test_clusters_can_be_removed_from_a_kubeconfig_in_any_order(
    tmp_path: Path, order: tuple[str, str]
) -> None:
    """The context from before the first cluster is current again after the last one."""
    keys = certificates.ensure(tmp_path, ["127.0.0.1"], NOW)
    config = THEIRS
    for name in ("x", "y"):
        ours = kubeconfig.kubeconfig(name, "https://127.0.0.1:1", keys)
        config = kubeconfig.merge(config, ours)
    first = kubeconfig.without(config, order[0])
    last = kubeconfig.without(first, order[1])

    assert first["current-context"] == f"dryrack-{order[1]}"
    assert {key: last[key] for key in THEIRS} == THEIRS


def test_a_context_that_the_user_chose_since_stays_current(tmp_path: Path) -> None:
    """Removal changes the current context only if it is that of the cluster."""
    keys = certificates.ensure(tmp_path, ["127.0.0.1"], NOW)
    ours = kubeconfig.kubeconfig("x", "https://127.0.0.1:1", keys)
    both = {**kubeconfig.merge({**THEIRS, "current-context": ""}, ours)}
    both["current-context"] = "production"
    without_previous = kubeconfig.merge({"contexts": []}, ours)

    assert kubeconfig.without(both, "x")["current-context"] == "production"
    assert kubeconfig.without(without_previous, "x")["current-context"] == ""


@pytest.mark.parametrize("text", ["contexts: [1]", "contexts: {a: 1}", "contexts: [{context: a}]"])
def test_a_kubeconfig_with_wrong_entries_is_refused(tmp_path: Path, text: str) -> None:
    """One line names the file and the list."""
    path = tmp_path / "config"
    path.write_text(text)

    with pytest.raises(kubeconfig.KubeconfigError, match=r"config: contexts: expected a list"):
        kubeconfig.read(path)


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


def test_a_private_file_is_written_under_a_name_that_cannot_be_predicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every temporary file is new, follows no link, and has a name of its own."""
    opened: list[tuple[str, int, int]] = []
    original = os.open

    def recorded(path: Path, flags: int, mode: int = 0o777) -> int:
        opened.append((os.fspath(path), flags, mode))
        return original(path, flags, mode)

    monkeypatch.setattr("dryrack.cluster.private_files.os.open", recorded)
    for _ in range(3):
        write_private(tmp_path / "secret", b"key")
    assert len({path for path, _, _ in opened}) == 3
    assert all(flags & os.O_EXCL and flags & os.O_NOFOLLOW for _, flags, _ in opened)
    assert {mode for _, _, mode in opened} == {0o600}


def test_a_private_file_that_cannot_be_written_keeps_its_content(tmp_path: Path) -> None:
    """A failure leaves the old content and no temporary file, and names the file."""
    (tmp_path / "secret").mkdir()
    with pytest.raises(OSError, match="secret") as failure:
        write_private(tmp_path / "secret", b"new")
    assert failure.value.filename == str(tmp_path / "secret")
    assert [each.name for each in tmp_path.iterdir()] == ["secret"]


def test_a_link_to_a_kubeconfig_stays_a_link(tmp_path: Path) -> None:
    """The file behind the link of its owner is replaced."""
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_private(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_a_link_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user cannot choose which file of yours is replaced."""
    (tmp_path / "victim").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    _give_away(tmp_path / "link", monkeypatch)
    with pytest.raises(PrivateFileError, match="symbolic link belongs to another user"):
        write_private(tmp_path / "link", b"new")
    assert (tmp_path / "victim").read_bytes() == b"old"


def _give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a file one of another user; without the right to do so, makes us the other user."""
    if os.geteuid() == 0:
        os.chown(path, 54321, -1, follow_symlinks=False)
    else:
        other = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: other)


def test_locks_and_logs_follow_no_link(tmp_path: Path) -> None:
    """A link at the place of a lock does not make the cluster empty the file behind it."""
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "lock").symlink_to(tmp_path / "victim")
    with pytest.raises(PrivateFileError, match="is a symbolic link; remove it"):
        hold(tmp_path / "lock")
    assert (tmp_path / "victim").read_text() == "precious"


def test_a_state_directory_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a start nor a command uses the files that another user has placed."""
    (tmp_path / "x").mkdir(mode=0o700)
    _give_away(tmp_path / "x", monkeypatch)
    state = state_of("x", tmp_path)
    with pytest.raises(PrivateFileError, match="directory belongs to another user"):
        state.make()
    with pytest.raises(PrivateFileError, match="directory belongs to another user"):
        state.running()
    assert all_states(tmp_path) == ()


def test_a_state_directory_below_that_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner of DRYRACK_HOME could put another directory in the place of the cluster's."""
    home = tmp_path / "home"
    state = state_of("x", home)
    state.make()
    assert state.running() is None
    home.chmod(0o777)
    with pytest.raises(PrivateFileError, match=r"home: all users can write .* \(mode 0777\)"):
        state.running()
    home.chmod(0o1777)
    assert state.running() is None
    home.chmod(0o775)
    state.make()
    if os.geteuid() == 0:
        _give_away(home, monkeypatch)
        with pytest.raises(PrivateFileError, match="home: this directory belongs to another user"):
            state.make()
        with pytest.raises(PrivateFileError, match="home: this directory belongs to another user"):
            state.running()


def test_a_directory_that_others_can_write_to_is_refused_unless_it_is_empty(tmp_path: Path) -> None:
    """As ssh does: others could have placed files; an empty directory only loses the permission."""
    directory = tmp_path / "data"
    directory.mkdir()
    directory.chmod(0o775)
    ensure_own_directory(directory)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o755
    directory.chmod(0o777)
    (directory / "objects.sqlite").write_bytes(b"")
    with pytest.raises(PrivateFileError, match=r"other users can write .* \(mode 0777\)"):
        ensure_own_directory(directory)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o777


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

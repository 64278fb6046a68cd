"""A bundle holds what was decided to leave the machine, is signed, and is read only when it is whole."""

import base64
import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from result_schemas import problems_of
from shared_results import (
    ANNA,
    OFFLINE,
    SENDER,
    bundle_of,
    change_json,
    key,
    members_of,
    packed,
    recorded,
    result_folder,
    signed_again,
)

from crowdperf.logs import found_runs
from crowdperf.store.bundle import MANIFEST, SIGNATURE, Bundle, NothingToShare, make_bundle, read_bundle
from crowdperf.store.consistency import results_of_bundle
from crowdperf.store.redaction import Sender, masked_text
from crowdperf.store.refusal import BundleRefused
from crowdperf.store.signatures import (
    SSH_NAMESPACE,
    is_bundle_signed_by,
    new_key,
    sign_withdrawal,
    ssh_public_key,
    ssh_signature,
)


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return result_folder(tmp_path_factory.mktemp("results"))


@pytest.fixture(name="bundle", scope="module")
def _bundle(folder: Path) -> Bundle:
    return bundle_of(folder)


@pytest.fixture(name="members")
def _members(bundle: Bundle) -> dict[str, bytes]:
    return members_of(bundle)


@pytest.fixture(name="few")
def _few(members: dict[str, bytes]) -> dict[str, bytes]:
    """The first members: enough where the runs do not matter."""
    return dict(list(members.items())[:3])


def _refusal(content: bytes) -> str:
    with pytest.raises(BundleRefused) as caught:
        read_bundle(io.BytesIO(content))
    return "; ".join(f"{one.rule} {one.file}: {one.found}" for one in caught.value.problems)


def test_a_bundle_begins_with_its_manifest_and_holds_the_files_of_every_run(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = list(members_of(bundle))
    assert names[:4] == ["manifest.json", "manifest.sig", "results.json", "environment.json"]
    assert set(names[2:]) == set(recorded())
    assert problems_of("manifest.json", json.loads(members_of(bundle)["manifest.json"])) == []
    found = read_bundle(io.BytesIO(bundle.content))
    assert found.manifest == bundle.manifest
    assert (found.signer.alias, found.signer.public_key) == ("swift otter", key().public_key)
    assert found.manifest.made_utc == "2026-11-23T10:29Z"
    assert found.files[f"{OFFLINE}/mlperf_log_detail.txt"] == recorded()[f"{OFFLINE}/mlperf_log_detail.txt"]
    monkeypatch.setattr(found_runs, "object_of", lambda content: pytest.fail("a JSON file is parsed a second time"))
    assert len(results_of_bundle(found)) == 4


def test_the_same_result_makes_the_same_bytes_and_tells_nothing_of_the_packing(folder: Path, bundle: Bundle) -> None:
    assert bundle_of(folder).content == bundle.content
    with tarfile.open(fileobj=io.BytesIO(bundle.content)) as tar:
        assert {(one.mtime, one.uid, one.uname, one.mode) for one in tar.getmembers()} == {(0, 0, "", 0o644)}
    assert bundle.content[4:8] == bytes(4)  # gzip's time


def test_names_paths_addresses_and_serial_numbers_are_masked_and_every_place_is_named(bundle: Bundle) -> None:
    text = b"\n".join(members_of(bundle).values()).decode("utf-8", "replace")
    for secret in ("annamaria", "anna-laptop", "example.org", "/mnt/fast", "12345678-1234", "10.0.0.7", "6.1.0-18"):
        assert secret not in text
    result = json.loads(members_of(bundle)[f"{OFFLINE}/result.json"])
    assert result["run"]["model_path"]["value"] == "<cache>/a69d/digits.onnx"
    assert result["run"]["dataset_path"]["value"] == "<path>/digits"
    assert result["run"]["output_dir"]["value"] == f"<result>/{OFFLINE}"
    assert result["machine"]["operating_system"] == "Linux 6.1.0"
    environment = json.loads(members_of(bundle)["environment.json"])
    assert environment["command"].endswith("--endpoint=http://<host>:8000/v1 --results_dir=<home>/results")
    assert "CM_HOST_SYSTEM_NAME" not in environment["host"]
    masked = {file.name: file.masked for file in bundle.manifest.files}
    assert "host.CM_HOST_SYSTEM_NAME" in masked["environment.json"]
    assert "run.model_path.value" in masked[f"{OFFLINE}/result.json"]


def test_a_log_that_gives_something_away_is_not_changed_but_refused(tmp_path: Path) -> None:
    folder = result_folder(tmp_path)
    log = folder / OFFLINE / "mlperf_log_summary.txt"
    log.write_text(log.read_text() + "made on anna-laptop\n")
    with pytest.raises(NothingToShare, match=r"mlperf_log_summary.txt: line \d+: name of the machine: made on <host>"):
        bundle_of(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "results.json").unlink(), "not a result folder"),
        (lambda folder: (folder / "results.json").write_text("{"), "is damaged"),
        (lambda folder: change_json(folder / "results.json", lambda row: row.update(run_id="../x")), "run_id '../x'"),
    ],
)
def test_no_bundle_of_a_folder_that_is_no_result(tmp_path: Path, change, message: str) -> None:
    folder = result_folder(tmp_path)
    change(folder)
    with pytest.raises(NothingToShare, match=message):
        bundle_of(folder)


def test_an_alias_is_a_plain_word(folder: Path) -> None:
    with pytest.raises(ValueError, match="--alias must be at most 40 letters"):
        make_bundle(folder, key(), "<b>", SENDER)


def test_a_changed_byte_is_refused_with_the_name_of_the_file(members: dict[str, bytes]) -> None:
    name = f"{OFFLINE}/mlperf_log_detail.txt"
    members[name] = members[name].replace(b"VALID", b"vALID", 1)
    assert _refusal(packed(members)).startswith(f"DIGEST {name}: ")


def test_a_manifest_of_another_key_is_refused(few: dict[str, bytes]) -> None:
    manifest = json.loads(few[MANIFEST])
    manifest["public_key"] = new_key().public_key.hex()
    few[MANIFEST] = json.dumps(manifest).encode()
    assert "SIGNATURE manifest.json" in _refusal(packed(few))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("results.json"), "not in both: results.json"),
        (lambda m: m.update({"digits/Offline/console.txt": b"x"}), "not in both: digits/Offline/console.txt"),
    ],
)
def test_members_are_exactly_those_of_the_manifest(members: dict[str, bytes], change, message: str) -> None:
    change(members)
    assert message in _refusal(packed(members))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("digits/Offline/console.txt", b"x", "NAME digits/Offline/console.txt: not a file of a bundle"),
        ("results.json", b'{"run_id": "x", "note": "/home/anna/x"}', "FIELD results.json: a field 'note'"),
        ("results.json", b'{"label": "at /home/anna/x"}', "PRIVATE results.json: line 1: path of a home folder"),
        ("results.json", b'{"label": "at /mnt/x/y"}', "PRIVATE results.json: line 1: absolute path"),
        ("results.json", b'{"label": "ghp_' + b"a" * 36 + b'"}', "PRIVATE results.json: line 1: access token"),
        ("results.json", b'{"label": "' + b"a" * 70_000 + b'"}', "LIMIT results.json: a text of 70000 characters"),
        ("results.json", b"[" * 100_000, "FORM results.json: not used: "),
        ("results.json", b'{"label": ' + b"[" * 40 + b"]" * 40 + b"}", "more than 32 brackets"),
        ("results.json", b'{"label": 1, "label": 2}', "an object has a name twice"),
        ("results.json", b'{"label": NaN}', "NaN is not JSON"),
        ("results.json", b'{"label": [-1e999]}', "a number is too large"),
        ("results.json", b'{"label": "\\ud800"}', "a text with half a character"),
        ("results.json", b'{"label": ' + b"1" * 5000 + b"}", "FORM results.json: not used: "),
    ],
)
def test_a_well_signed_bundle_with_other_contents_is_refused(
    few: dict[str, bytes], name: str, content: bytes, message: str
) -> None:
    few[name] = content
    assert message in _refusal(signed_again(few))


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "other"},
        {"alias": "<script>"},
        {"alias": 5},
        {"files": {}},
        {"files": [5]},
        {"run_id": "../../x"},
        {"run_id": None},
        {"public_key": "zz"},
        {"made_utc": "yesterday"},
        {"digests": {"x": "y"}},
    ],
)
def test_a_manifest_of_another_form_is_refused(few: dict[str, bytes], changes: dict[str, object]) -> None:
    few[MANIFEST] = json.dumps({**json.loads(few[MANIFEST]), **changes}).encode()
    assert _refusal(packed(few)).startswith("MANIFEST manifest.json: ")


@pytest.mark.parametrize("name", ["results.json", "of <b>anna</b>/x"])
def test_digests_are_of_other_files_with_plain_names(few: dict[str, bytes], name: str) -> None:
    few[MANIFEST] = json.dumps({**json.loads(few[MANIFEST]), "digests": {name: "ab" * 32}}).encode()
    assert f"MANIFEST manifest.json: digests: {name!r}" in _refusal(signed_again(few))


def test_the_sender_may_know_nothing_and_paths_are_masked_all_the_same(folder: Path) -> None:
    bundle = make_bundle(folder, key(), "", Sender())
    assert b"/home/annamaria" not in b"".join(members_of(bundle).values())
    assert ANNA.homes[0] == "/home/annamaria"


def test_a_withdrawal_is_no_bundle() -> None:
    assert "FORM" in _refusal(sign_withdrawal(key(), "abc"))


@pytest.mark.skipif(
    shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed: apt-get install openssh-client"
)
def test_openssh_checks_a_bundle_without_this_project(members: dict[str, bytes], tmp_path: Path) -> None:
    signers, signature = tmp_path / "allowed_signers", tmp_path / SIGNATURE
    signature.write_bytes(members[SIGNATURE])
    verify = ["ssh-keygen", "-Y", "verify", "-n", SSH_NAMESPACE, "-I", "sender", "-f", signers, "-s", signature]

    def status(message: bytes, public_key: bytes) -> int:
        signers.write_text(f"sender {ssh_public_key(public_key)}\n")
        return subprocess.run(verify, input=message, capture_output=True, check=False).returncode

    public_key = bytes.fromhex(json.loads(members[MANIFEST])["public_key"])
    assert status(members[MANIFEST], public_key) == 0
    assert status(members[MANIFEST] + b" ", public_key) != 0
    assert status(members[MANIFEST], new_key().public_key) != 0


@pytest.mark.skipif(
    shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed: apt-get install openssh-client"
)
def test_a_signature_that_openssh_made_is_the_same_text(tmp_path: Path) -> None:
    private, message = tmp_path / "id", tmp_path / "message"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", private], check=True)
    message.write_bytes(b"what is signed")
    command = ["ssh-keygen", "-q", "-Y", "sign", "-f", private, "-n", SSH_NAMESPACE, message]
    subprocess.run(command, check=True, capture_output=True)
    line = (tmp_path / "id.pub").read_text().split()
    public_key = base64.b64decode(line[1])[-32:]
    assert ssh_public_key(public_key) == " ".join(line[:2])
    assert is_bundle_signed_by(public_key, (tmp_path / "message.sig").read_bytes(), b"what is signed")


def test_a_signature_has_one_form_and_the_old_one_is_still_read() -> None:
    own, message = new_key(), b"what is signed"
    good = ssh_signature(own, message)
    assert is_bundle_signed_by(own.public_key, good, message)
    assert is_bundle_signed_by(own.public_key, own.sign(message), message), "64 bytes, until 2026-11-28"
    assert not is_bundle_signed_by(new_key().public_key, good, message)
    assert not is_bundle_signed_by(own.public_key, good, message + b"!")
    others = [good + b"\n", good.replace(b"\n", b"\r\n"), good[:-1], b"", b"x\n" * 9, good.replace(b"SSH", b"PGP")]
    others += [good.lower(), good.replace(b"U1NIU0lH", b"U1NIU0lI"), b"\x00" + good]
    for changed in others:
        assert not is_bundle_signed_by(own.public_key, changed, message), changed


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://box:8000/v1 https://box/x http://10.1.2.3/x http://[fe80::1]/x",
         "http://<host>:8000/v1 https://<host>/x http://<host>/x http://<host>/x"),
        ("https://example.org:8443/x https://example.org/x http://localhost:80 http://[::1]:80",
         "https://<host>:8443/x https://example.org/x http://localhost:80 http://[::1]:80"),
        ("10.1.2.3", "<address>"), ("10.1.2.3:22 as 1.2.3.4", "<address>:22 as 1.2.3.4"),
        ("torch 2.13.0 and driver 580.95.05.1", "torch 2.13.0 and driver 580.95.05.1"),
        ("mail jo@example.org", "mail <e-mail address>"), ("mac 0a:1B:2c:3d:4e:5f", "mac <MAC address>"),
        ("GPU-01234567-89ab-cdef-0123-456789abcdef", "<UUID>"),
    ],
)  # fmt: skip
def test_what_names_a_machine_or_a_person_is_masked(text: str, shown: str) -> None:
    assert masked_text(text, Sender()) == shown

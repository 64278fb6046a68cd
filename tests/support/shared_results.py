"""A results folder for the tests: eight recorded runs, with paths and names put in as older results have them."""

import functools
import gzip
import hashlib
import json
import lzma
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

from crowdperf.kit.path_redaction import KnownFolders
from crowdperf.kit.privacy import PrivateNames
from crowdperf.store.bundle import MANIFEST, SIGNATURE, Bundle, make_bundle
from crowdperf.store.redaction import Sender, as_file
from crowdperf.store.signatures import SigningKey, canonical, new_key

RECORDED = Path(__file__).resolve().parents[1] / "store" / "data" / "digits.tar.xz"
HOME = "/home/annamaria"
ANNA = PrivateNames(users=("annamaria",), hosts=("anna-laptop",), homes=(HOME,), emails=("anna@example.org",))
SENDER = Sender(KnownFolders({"<result>": f"{HOME}/results/call", "<cache>": f"{HOME}/CM/cache", "<home>": HOME}), ANNA)
OFFLINE = "digits/Offline/performance/run_1"
SERVER = "digits/Server/performance/run_1"
SINGLE_STREAM = "digits/SingleStream/performance/run_1"
MULTI_STREAM = "digits/MultiStream/performance/run_1"


@functools.cache
def recorded() -> dict[str, bytes]:
    """The recorded files by name, in the order of a bundle; the records as if they had been sealed so."""
    with tarfile.open(fileobj=BytesIO(lzma.decompress(RECORDED.read_bytes()))) as tar:
        found = {member.name: tar.extractfile(member).read() for member in tar.getmembers()}  # type: ignore[union-attr]
    return {name: _sealed(content) if name.endswith("/record.json") else content for name, content in found.items()}


def _sealed(content: bytes) -> bytes:
    """A record with the seals of the two parts that were masked before it was recorded here."""
    row = json.loads(content)
    row["seals"] |= {part: hashlib.sha256(canonical(row[part])).hexdigest() for part in ("made_utc", "machine")}
    return as_file(row)


@functools.cache
def key() -> SigningKey:
    """The key of these tests."""
    return new_key()


def result_folder(root: Path) -> Path:
    """Writes the recorded result below `root`, with what older results give away; returns its folder."""
    folder = root / "20261123T102923Z-digits-onnxruntime-cpu"
    for name, content in recorded().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    change_json(folder / "environment.json", _with_names)
    change_json(folder / OFFLINE / "result.json", _with_paths)
    return folder


def change_json(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the object in a JSON file."""
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")


def _with_names(content: dict[str, Any]) -> None:
    content["host"] |= {"CM_HOST_SYSTEM_NAME": "anna-laptop", "CM_HOST_OS_KERNEL_VERSION": "6.1.0-18-anna"}
    content["command"] += f" --endpoint=http://anna-laptop:8000/v1 --results_dir={HOME}/results"
    content["runs"][0]["command"] = [f"{HOME}/CM/cache/1/bin/python3", "-m", "crowdperf.harness"]


def _with_paths(content: dict[str, Any]) -> None:
    content["run"]["model_path"]["value"] = f"{HOME}/CM/cache/a69d/digits.onnx"
    content["run"]["dataset_path"]["value"] = "/mnt/fast/digits"
    content["run"]["output_dir"]["value"] = f"{HOME}/results/call/{OFFLINE}"
    content["error_messages"] = ["mail anna@example.org", "GPU-12345678-1234-1234-1234-123456789abc at 10.0.0.7:22"]
    content["machine"]["operating_system"] = "Linux 6.1.0-18-anna"


def bundle_of(folder: Path) -> Bundle:
    """The bundle of a folder that `result_folder` wrote."""
    return make_bundle(folder, key(), "swift otter", SENDER)


def packed(members: dict[str, bytes]) -> bytes:
    """A gzip tar of members, with whatever names."""
    raw = BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, content in members.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            tar.addfile(header, BytesIO(content))
    return gzip.compress(raw.getvalue(), mtime=0)


def members_of(bundle: Bundle) -> dict[str, bytes]:
    """The members of a bundle in their order."""
    with tarfile.open(fileobj=BytesIO(bundle.content)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar.getmembers()}  # type: ignore[union-attr]


def signed_again(members: dict[str, bytes], signer: SigningKey | None = None) -> bytes:
    """A bundle of these members whose manifest and signature were made to fit, as a forger would."""
    signer = signer or key()
    manifest = json.loads(members[MANIFEST])
    masked = {row["name"]: row["masked"] for row in manifest["files"]}
    files = {name: content for name, content in members.items() if name not in (MANIFEST, SIGNATURE)}
    manifest["public_key"] = signer.public_key.hex()
    manifest["files"] = [
        {"name": name, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content),
         "masked": masked.get(name, [])}
        for name, content in files.items()
    ]  # fmt: skip
    said = canonical(manifest)
    return packed({MANIFEST: said, SIGNATURE: signer.sign(said), **files})

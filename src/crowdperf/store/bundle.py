"""A bundle: the files of one result that may leave the machine, signed, as one gzip tar.

    manifest.json      what it is: run id, sender's public key and alias, and each file with its SHA-256 and size
    manifest.sig       SSHSIG (Ed25519) over the bytes of manifest.json; until 2026-11-28 the bare 64 bytes
    results.json, environment.json, digits/Offline/performance/run_1/result.json ...    exactly those of the manifest,
                       in its order

`make_bundle` reads a results folder, `read_bundle` what somebody sent. The same result makes the same bytes. Each run:
both LoadGen logs as they are, user.conf, the score, the load, result.json and record.json masked (redaction.py).
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any

from crowdperf.kit.records import Kind, Named, Record, matching, one_of
from crowdperf.kit.whole_file import file_sha256
from crowdperf.logs.found_runs import RunFiles, find_runs
from crowdperf.store.archive import DEFAULT_LIMITS, Limits, packed, read_json_object, read_members
from crowdperf.store.curve_bundles import NoCurve, is_allowed, members_of, started_of
from crowdperf.store.keys import key_id_of
from crowdperf.store.model import Problem, Signer
from crowdperf.store.redaction import (
    KEYS_OF,
    LOGS,
    OF_CALL,
    OF_RUN,
    TEXTS,
    Sender,
    as_file,
    find_private,
    mask_json,
    masked_text,
)
from crowdperf.store.refusal import BundleRefused, refused
from crowdperf.store.signatures import (
    ALLOWED_ALIAS,
    KEY_BYTES,
    SigningKey,
    canonical,
    is_alias,
    is_bundle_signed_by,
    ssh_signature,
)

FORMAT, CURVE_FORMAT = "crowdperf-bundle-1", "crowdperf-curve-1"
MANIFEST, SIGNATURE = "manifest.json", "manifest.sig"
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,119}")
_MEMBER = re.compile(r"[A-Za-z0-9._+/-]{1,200}")
_MADE = re.compile(r"^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)\d\dZ-")
Sha256 = Annotated[str, matching(re.compile(r"[0-9a-f]{64}"))]
_LONGEST_JSON = 64 << 20
LONGEST_FILES: Mapping[str, int] = {"user.conf": 16 << 10, "mlperf_log_detail.txt": 16 << 20}
"""Most bytes of files of which an honest run writes far less: as the submission gate reads them."""


class NothingToShare(Exception):
    """A folder of which no bundle can be made; the text says why, and what to do."""


_ALIAS: Kind[str] = Kind(ALLOWED_ALIAS, lambda value: value if isinstance(value, str) and is_alias(value) else None)


def _public_key(value: object) -> bytes | None:
    is_one = isinstance(value, str) and re.fullmatch(rf"[0-9a-f]{{{2 * KEY_BYTES}}}", value)
    return bytes.fromhex(value) if is_one and isinstance(value, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleFile:
    """A file of a bundle. masked: where something was taken out or replaced, by fields; of texts "text"."""

    name: Annotated[str, matching(_MEMBER)]
    sha256: Sha256
    size_bytes: Annotated[int, Named("bytes")]
    masked: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a bundle says of itself. made_utc: of the result, to the minute. recipes_sha256: of the list of recipes.
    digests: files that are not in it, by name. format: whether it is a call's or a curve's."""

    run_id: Annotated[str, matching(_RUN_ID)]
    made_utc: Annotated[str, matching(re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\dZ)?"))]
    recipes_sha256: Sha256
    public_key: Annotated[bytes, Kind(f"{2 * KEY_BYTES} hexadecimal digits", _public_key)]
    alias: Annotated[str, _ALIAS]
    files: tuple[BundleFile, ...]
    digests: Mapping[str, Sha256]
    format: Annotated[str, one_of((FORMAT, CURVE_FORMAT))] = FORMAT

    @property
    def is_curve(self) -> bool:
        """True for a curve of MLPerf Endpoints (curve_bundles.py)."""
        return self.format == CURVE_FORMAT


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A bundle as it is sent, with what is in it."""

    content: bytes
    manifest: Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBundle:
    """A bundle that was read: signed, whole, of the right shape. digest: SHA-256 of its manifest, which says it all.

    files: by their paths; each JSON file is parsed once, when the bundle is checked.
    """

    manifest: Manifest
    signer: Signer
    digest: str
    files: RunFiles


def _content(path: Path, sender: Sender) -> tuple[bytes, tuple[str, ...]] | None:
    """What goes of a file, and what is masked in it; None where there is no such file. Raises NothingToShare."""
    if not path.is_file():
        return None
    if path.stat().st_size > _LONGEST_JSON:
        raise NothingToShare(f"{path} has {path.stat().st_size} bytes, but at most {_LONGEST_JSON} can be sent")
    content = path.read_bytes()
    if path.name in LOGS:
        return content, ()
    try:
        text = content.decode("utf-8")
        if path.name in TEXTS:
            found = masked_text(text, sender)
            return found.encode(), ("text",) if found != text else ()
        value = mask_json(path.name, json.loads(text), sender)
    except (ValueError, AttributeError, RecursionError) as error:
        raise NothingToShare(f"{path} is damaged ({error})\nhint: rerun") from None
    return as_file(value.value), value.where


def _files(folder: Path, sender: Sender) -> Iterator[tuple[BundleFile, bytes]]:
    runs, _ = find_runs(folder)
    paths = [folder / name for name in OF_CALL]
    paths += [run.paths.folder / name for run in runs for name in OF_RUN]
    for path in paths:
        found = _content(path, sender)
        if found is None:
            continue
        content, masked = found
        yield _row(path.relative_to(folder).as_posix(), content, masked)


def _row(name: str, content: bytes, masked: tuple[str, ...]) -> tuple[BundleFile, bytes]:
    digest = hashlib.sha256(content).hexdigest()
    return BundleFile(name=name, sha256=digest, size_bytes=len(content), masked=masked), content


def _digests(folder: Path) -> dict[str, str]:
    runs, _ = find_runs(folder)
    paths = (run.paths.accuracy_log for run in runs)
    return {path.relative_to(folder).as_posix(): file_sha256(path) for path in paths if path.is_file()}


def make_bundle(folder: Path, key: SigningKey, alias: str = "", sender: Sender | None = None) -> Bundle:
    """Return the bundle of the result in a folder (that of one call, with results.json). Writes nothing.

    Raises NothingToShare for a folder that is none, or whose files give away what `sender` knows; ValueError for an
    alias that is not allowed; OSError.
    """
    sender = sender or Sender()
    if not (folder / OF_CALL[0]).is_file():
        raise NothingToShare(
            f"{folder} is not a result folder: {OF_CALL[0]} is missing\nhint: cm run script --tags=show,mlperf,results"
        )
    rows = list(_files(folder, sender))
    contents = {file.name: content for file, content in rows}
    results = json.loads(contents[OF_CALL[0]])
    run_id = str(results.get("run_id", ""))
    made = _MADE.match(run_id)
    if not _RUN_ID.fullmatch(run_id):
        raise NothingToShare(f"{folder / OF_CALL[0]} has the run_id {run_id!r}, expected the folder name of the run")
    environment = json.loads(contents.get(OF_CALL[1], b"{}"))
    manifest = Manifest(
        run_id=run_id,
        made_utc="{}-{}-{}T{}:{}Z".format(*made.groups()) if made else "",
        recipes_sha256=hashlib.sha256(canonical({"recipes": environment.get("recipes")})).hexdigest(),
        public_key=key.public_key,
        alias=alias,
        files=tuple(file for file, _ in rows),
        digests=_digests(folder),
    )
    return _signed(manifest, contents, key, sender)


def make_curve_bundle(
    folder: Path, key: SigningKey, alias: str = "", sender: Sender | None = None, *, with_events: bool = False
) -> Bundle:
    """Return the bundle of a curve in its folder, or in a submission tree. Writes nothing. Raises as `make_bundle`."""
    sender = sender or Sender()
    try:
        rows = [_row(*member) for member in members_of(folder, sender, with_events=with_events)]
    except NoCurve as error:
        raise NothingToShare(str(error)) from None
    contents = {file.name: content for file, content in rows}
    identity = hashlib.sha256(canonical({file.name: file.sha256 for file, _ in rows})).hexdigest()[:12]
    started = started_of(contents)
    manifest = Manifest(
        run_id=f"{(started or 'undated').replace(':', '').replace('-', '')}-curve-{identity}",
        made_utc=started,
        recipes_sha256=hashlib.sha256(canonical({"recipes": None})).hexdigest(),
        public_key=key.public_key,
        alias=alias,
        files=tuple(file for file, _ in rows),
        digests={},
        format=CURVE_FORMAT,
    )
    return _signed(manifest, contents, key, sender)


def _signed(manifest: Manifest, contents: Mapping[str, bytes], key: SigningKey, sender: Sender) -> Bundle:
    """The bundle of these files. Raises NothingToShare where one gives something away, ValueError for the alias."""
    if not is_alias(manifest.alias):
        raise ValueError(f"--alias must be {ALLOWED_ALIAS}, got {manifest.alias!r}")
    leaks = [f"{name}: {leak}" for name, one in contents.items() for leak in find_private(name, one, sender.known)]
    if leaks:
        shown = "\n  ".join(leaks[:10])
        raise NothingToShare(f"not made: {len(leaks)} places give something away\n  {shown}")
    said = canonical(_as_json(manifest))
    return Bundle(content=packed({MANIFEST: said, SIGNATURE: ssh_signature(key, said), **contents}), manifest=manifest)


def _as_json(manifest: Manifest) -> dict[str, Any]:
    return {
        "format": manifest.format,
        "run_id": manifest.run_id,
        "made_utc": manifest.made_utc,
        "recipes_sha256": manifest.recipes_sha256,
        "public_key": manifest.public_key.hex(),
        "alias": manifest.alias,
        "files": [
            {"name": one.name, "sha256": one.sha256, "bytes": one.size_bytes, "masked": list(one.masked)}
            for one in manifest.files
        ],
        "digests": dict(manifest.digests),
    }


def _manifest(content: bytes, limits: Limits) -> Manifest:
    record = Record(read_json_object(MANIFEST, content, limits))
    manifest = record.filled(Manifest, every_key=True, is_open=True)
    if manifest is None or record.problems:
        raise BundleRefused(
            *(
                Problem(rule="MANIFEST", file=MANIFEST, found=f"{one.key} = {one.found}", expected=one.allowed)
                for one in record.problems
            )
        )
    return manifest


def read_bundle(
    stream: IO[bytes], limits: Limits = DEFAULT_LIMITS, on_signed: Callable[[str], object] = lambda key_id: None
) -> ReadBundle:
    """Return what somebody sent: signature, digests, names, sizes and JSON checked, and nothing private found.

    on_signed: gets the id of the key once its signature fits, before what is dear.

    Raises BundleRefused with every problem of the files; what the logs say is `consistency`'s business.
    """
    members = RunFiles(read_members(stream, limits))
    if list(members)[:2] != [MANIFEST, SIGNATURE]:
        raise refused("FORM", "", f"begins with {', '.join(list(members)[:2])}", f"{MANIFEST}, {SIGNATURE}")
    said, signature = members.pop(MANIFEST), members.pop(SIGNATURE)
    manifest = _manifest(said, limits)
    if not is_bundle_signed_by(manifest.public_key, signature, said):
        raise refused("SIGNATURE", MANIFEST, "the signature does not match", "that of the key in the manifest")
    on_signed(key_id_of(manifest.public_key))
    problems = [*_wrong_members(manifest, members)]
    if not problems:
        problems += _wrong_contents(manifest, members, limits)
    if problems:
        raise BundleRefused(*problems)
    signer = Signer(key_id=key_id_of(manifest.public_key), public_key=manifest.public_key, alias=manifest.alias)
    digest = hashlib.sha256(said).hexdigest()
    return ReadBundle(manifest=manifest, signer=signer, digest=digest, files=members)


def _wrong_members(manifest: Manifest, members: Mapping[str, bytes]) -> Iterator[Problem]:
    names = [file.name for file in manifest.files]
    if names != list(members):
        extra = sorted(set(members) ^ set(names))
        found = f"not in both: {', '.join(extra)[:200]}" if extra else "another order"
        yield Problem(rule="MANIFEST", file=MANIFEST, found=found, expected="the members in the manifest's order")
        return
    for name in sorted(manifest.digests):
        if name in members or not _MEMBER.fullmatch(name):
            expected = "the name of a file that is not in the bundle"
            yield Problem(rule="MANIFEST", file=MANIFEST, found=f"digests: {name[:80]!r}", expected=expected)
    for file in manifest.files:
        folder, _, name = file.name.rpartition("/")
        content = members[file.name]
        digest = hashlib.sha256(content).hexdigest()
        allowed = ", ".join(OF_RUN if folder else OF_CALL)
        if not (is_allowed(file.name) if manifest.is_curve else name in (OF_RUN if folder else OF_CALL)):
            yield Problem(rule="NAME", file=file.name, found="not a file of a bundle", expected=allowed)
        elif len(content) > LONGEST_FILES.get(name, _LONGEST_JSON):
            expected = f"at most {LONGEST_FILES.get(name, _LONGEST_JSON):,} bytes"
            yield Problem(rule="LIMIT", file=file.name, found=f"{len(content):,} bytes", expected=expected)
        elif digest != file.sha256 or len(content) != file.size_bytes:
            yield Problem(rule="DIGEST", file=file.name, found=digest, expected=f"{file.sha256} of the manifest")


def _wrong_contents(manifest: Manifest, members: RunFiles, limits: Limits) -> Iterator[Problem]:
    left = limits.json_bytes_in_all
    for path, content in members.items():
        name = path.rpartition("/")[2]
        if name in KEYS_OF or (manifest.is_curve and name.endswith(".json")):
            left -= len(content)
            if left < 0:
                expected = f"at most {limits.json_bytes_in_all}"
                yield Problem(rule="LIMIT", file=path, found="too many bytes of JSON in all", expected=expected)
                return
            try:
                members.keep(path, row := read_json_object(path, content, limits))
            except BundleRefused as error:
                yield from error.problems
                continue
            unknown = [] if manifest.is_curve else [key for key in row if key not in KEYS_OF[name]]
            if unknown:
                expected = ", ".join(sorted(KEYS_OF[name]))
                yield Problem(rule="FIELD", file=path, found=f"a field {unknown[0][:80]!r}", expected=expected)
        for leak in find_private(path, content)[:3]:
            yield Problem(rule="PRIVATE", file=path, found=leak, expected="no private data")

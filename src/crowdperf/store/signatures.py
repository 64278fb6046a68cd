"""Signs bundles and withdrawals with Ed25519. A key is a pseudonym: it says whose two bundles are, not who that is.

The private key is 32 bytes in a file of the user's configuration folder that only the user can read. Who loses it can
no longer withdraw what was sent with it. Signatures are those of RFC 8032, by the package cryptography. That of a
bundle is written as OpenSSH writes one (SSHSIG), so that `ssh-keygen -Y` checks it without this project.
"""

import base64
import binascii
import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from crowdperf.kit.canonical_json import canonical_json
from crowdperf.kit.text_documents import given_bytes
from crowdperf.kit.user_paths import home_folder
from crowdperf.kit.whole_file import write_once
from crowdperf.store.keys import key_id_of
from crowdperf.store.model import Signer
from crowdperf.store.refusal import refused

KEY_BYTES = 32
SIGNATURE_BYTES = 64
KEY_FILE = "share.key"
NONCE_DIGITS = 32
WITHDRAWAL_FORMAT = "crowdperf-withdrawal-1"
_ALIAS = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,39}")
ALLOWED_ALIAS = (
    "at most 40 letters, digits, spaces, dots, hyphens or underscores, the first a letter or digit, or empty"
)


class KeyProblem(Exception):
    """A key file that cannot be used; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key; it is never shown."""

    private: Ed25519PrivateKey

    @property
    def public_key(self) -> bytes:
        """The 32 bytes that others check signatures with."""
        return self.private.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        """Return the signature, 64 bytes; the same message always has the same one."""
        return self.private.sign(message)


def new_key() -> SigningKey:
    """Return a key that nobody else has."""
    return SigningKey(Ed25519PrivateKey.generate())


def key_folder(environ: Mapping[str, str]) -> Path:
    """Return where the user's key lies: below XDG_CONFIG_HOME, without that ~/.config."""
    given = environ.get("XDG_CONFIG_HOME", "")
    return (Path(given) if given.startswith("/") else home_folder() / ".config") / "crowdperf"


def read_or_make_key(folder: Path) -> tuple[SigningKey, bool]:
    """Return the key in a folder, and whether it was made now. Raises KeyProblem, OSError.

    Two processes that make one at the same time end with the same one.
    """
    path = folder / KEY_FILE
    is_made = False
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        is_made = write_once(path, new_key().private.private_bytes_raw(), 0o600)
    return _read_key(path), is_made


def _read_key(path: Path) -> SigningKey:
    mode, content = path.stat().st_mode, given_bytes(path)
    if mode & 0o077:
        raise KeyProblem(f"{path} can be read by others (mode {mode & 0o777:o}); allowed: 600\nhint: chmod 600 {path}")
    if len(content) != KEY_BYTES:
        raise KeyProblem(
            f"{path} has {len(content)} bytes, a key has {KEY_BYTES}\n"
            "hint: restore it from a copy, or remove it: a new one is created, which cannot withdraw results of "
            "this one"
        )
    return SigningKey(Ed25519PrivateKey.from_private_bytes(content))


_SMALL_ORDER = frozenset(
    bytes.fromhex(text)
    for text in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
)
"""The encodings, without their sign bit, of the 8 points whose order divides 8 on the curve of RFC 8032, section 5.1,
those that are not reduced among them: one signature fits many messages of such a key."""


def is_of_small_order(public_key: bytes) -> bool:
    """Return whether a key is one of the 14 encodings of a point of order 1, 2, 4 or 8."""
    return public_key[:31] + bytes([public_key[31] & 0x7F]) in _SMALL_ORDER


def is_signed_by(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Return whether a signature is that of a key over a message."""
    if len(public_key) != KEY_BYTES or len(signature) != SIGNATURE_BYTES or is_of_small_order(public_key):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


SSH_NAMESPACE = "crowdperf-bundle"
"""What OpenSSH calls the purpose of a signature: `ssh-keygen -Y verify -n crowdperf-bundle`."""
_SSH_KEY_TYPE, _SSH_MAGIC, _SSH_HASH = b"ssh-ed25519", b"SSHSIG", b"sha512"
_SSH_BEGIN, _SSH_END, _SSH_WIDTH = b"-----BEGIN SSH SIGNATURE-----", b"-----END SSH SIGNATURE-----", 70


def _ssh_strings(*parts: bytes) -> bytes:
    """Byte strings as RFC 4251, section 5, writes them: each behind its length of four bytes."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def _ssh_signed(message: bytes) -> bytes:
    """What an SSHSIG signature is over (OpenSSH's PROTOCOL.sshsig, read November 2026)."""
    return _SSH_MAGIC + _ssh_strings(SSH_NAMESPACE.encode(), b"", _SSH_HASH, hashlib.sha512(message).digest())


def _ssh_armored(public_key: bytes, signature: bytes) -> bytes:
    """An SSHSIG signature, version 1, as the text that ssh-keygen reads."""
    key = _ssh_strings(_SSH_KEY_TYPE, public_key)
    signed = _ssh_strings(key, SSH_NAMESPACE.encode(), b"", _SSH_HASH, _ssh_strings(_SSH_KEY_TYPE, signature))
    text = base64.b64encode(_SSH_MAGIC + (1).to_bytes(4, "big") + signed)
    lines = [text[start : start + _SSH_WIDTH] for start in range(0, len(text), _SSH_WIDTH)]
    return b"\n".join([_SSH_BEGIN, *lines, _SSH_END, b""])


def ssh_public_key(public_key: bytes) -> str:
    """Return a public key as OpenSSH writes one: `ssh-ed25519 AAAA...`."""
    return f"{_SSH_KEY_TYPE.decode()} {base64.b64encode(_ssh_strings(_SSH_KEY_TYPE, public_key)).decode()}"


def ssh_signature(key: SigningKey, message: bytes) -> bytes:
    """Return the SSHSIG signature of a message, the content of manifest.sig; the same message has the same one."""
    return _ssh_armored(key.public_key, key.sign(_ssh_signed(message)))


def is_bundle_signed_by(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Return whether the content of manifest.sig is the signature of a key: SSHSIG, or the bare 64 bytes of bundles
    until 2026-11-28. An SSHSIG text must be exactly the one that the key writes, so that it has one form."""
    if len(signature) == SIGNATURE_BYTES:
        return is_signed_by(public_key, signature, message)
    try:
        found = base64.b64decode(b"".join(signature.split(b"\n")[1:-2]), validate=True)[-SIGNATURE_BYTES:]
    except binascii.Error:
        return False
    is_exact = _ssh_armored(public_key, found) == signature
    return is_exact and is_signed_by(public_key, found, _ssh_signed(message))


def is_alias(text: str) -> bool:
    """Return whether a text may stand beside results as their sender's name; the empty text means none."""
    return not text or _ALIAS.fullmatch(text) is not None


def canonical(value: Any) -> bytes:
    """Return the one form of a JSON object that is signed: keys sorted, no blanks, ASCII."""
    return canonical_json(value).encode("ascii")


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """A request to take a result back."""

    result_id: str
    signer: Signer


def sign_withdrawal(key: SigningKey, result_id: str) -> bytes:
    """Return the body that withdraws a result: a JSON object with what is signed, as a text, and the signature."""
    said = {
        "format": WITHDRAWAL_FORMAT,
        "result": result_id,
        "public_key": key.public_key.hex(),
        "nonce": secrets.token_hex(NONCE_DIGITS // 2),
    }
    signed = canonical(said)
    return canonical({"signed": signed.decode(), "signature": key.sign(signed).hex()})


def read_withdrawal(body: bytes) -> Withdrawal:
    """Return what a withdrawal asks for, its signature checked. Raises BundleRefused."""
    try:
        outer = json.loads(body)
        signed, signature = outer["signed"].encode(), bytes.fromhex(outer["signature"])
        said = json.loads(signed)
        public_key, result_id, nonce = bytes.fromhex(said["public_key"]), said["result"], said["nonce"]
        is_form_right = said["format"] == WITHDRAWAL_FORMAT and isinstance(result_id, str) and isinstance(nonce, str)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise refused("FORM", "withdrawal", f"cannot be read ({type(error).__name__})", WITHDRAWAL_FORMAT) from None
    if not is_form_right or len(nonce) != NONCE_DIGITS:
        raise refused("FORM", "withdrawal", "another format", WITHDRAWAL_FORMAT)
    if not is_signed_by(public_key, signature, signed):
        raise refused("SIGNATURE", "withdrawal", "the signature does not match", "that of its key")
    signer = Signer(key_id=key_id_of(public_key), public_key=public_key, alias="")
    return Withdrawal(result_id=result_id, signer=signer)

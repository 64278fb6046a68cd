"""A certificate authority for the tests of TLS."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "llm.example.test"
"""A name that only the proxy of the test knows."""


def authority(folder: Path) -> tuple[Path, Path]:
    """A certificate authority of the test, as a CA bundle, and a certificate with its key for HOST and 127.0.0.1."""
    today = datetime.datetime.now(datetime.timezone.utc)

    def certificate(name: str, key: ec.EllipticCurvePrivateKey, issuer: str, signer: ec.EllipticCurvePrivateKey):
        subject, by = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, one)]) for one in (name, issuer))
        names = [x509.DNSName(HOST), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        made = x509.CertificateBuilder().subject_name(subject).issuer_name(by).public_key(key.public_key())
        made = made.serial_number(x509.random_serial_number()).not_valid_before(today - datetime.timedelta(days=1))
        made = made.not_valid_after(today + datetime.timedelta(days=1))
        made = made.add_extension(x509.BasicConstraints(ca=name == issuer, path_length=None), critical=True)
        if name != issuer:
            made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return made.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    root, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    bundle, both = folder / "ca.pem", folder / "server.pem"
    bundle.write_bytes(certificate("test CA", root, "test CA", root))
    both.write_bytes(own.private_bytes(*form) + certificate(HOST, own, "test CA", root))
    return bundle, both

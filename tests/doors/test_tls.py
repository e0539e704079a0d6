"""A door that speaks TLS answers over it, and nobody without."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from doors import served
from holdfast.doors.http.serving import Listening, bind
from holdfast.errors import Refused
from holdfast.intake.connection import Connection

pytestmark = pytest.mark.anyio


def certify(folder: Path) -> tuple[Path, Path]:
    """Write a certificate for 127.0.0.1 that it signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    shown, kept = folder / "cert.pem", folder / "key.pem"
    pem = serialization.Encoding.PEM
    shown.write_bytes(certificate.public_bytes(pem))
    kept.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return shown, kept


async def test_with_a_certificate_the_door_answers_over_https_alone(
    connection: Connection, tmp_path: Path
) -> None:
    certificate, key = certify(tmp_path)
    async with served(connection, tls_cert=certificate, tls_key=key) as door:
        assert door.address.startswith("https://127.0.0.1:")
        trusting = ssl.create_default_context(cafile=str(certificate))
        caller = door.caller("ci", verify=trusting)
        assert (await caller.get("/runs")).status_code == 200
        assert (await door.bearing("", verify=trusting).get("/runs")).status_code == 401
        with pytest.raises(httpx2.ConnectError, match="certificate verify failed"):
            await door.caller("wary").get("/runs")
        plain = door.address.replace("https", "http")
        async with httpx2.AsyncClient(base_url=plain) as client:
            with pytest.raises(httpx2.TransportError):
                await client.get("/healthz")


def test_what_is_no_certificate_with_its_key_is_refused_before_anybody_is_told(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "other").mkdir()
    (certificate, key), (_, foreign) = certify(tmp_path / "mine"), certify(tmp_path / "other")
    bind(Listening(tls_cert=certificate, tls_key=key)).close()
    locked = tmp_path / "locked.pem"
    private = serialization.load_pem_private_key(key.read_bytes(), None)
    secret = serialization.BestAvailableEncryption(b"word")
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    locked.write_bytes(private.private_bytes(pem, form, secret))
    for wrong in (foreign, certificate, locked):
        with pytest.raises(Refused, match="are no certificate and its key, in PEM and without"):
            bind(Listening(tls_cert=certificate, tls_key=wrong))
    with pytest.raises(Refused, match=r"none.pem cannot be read: No such file"):
        bind(Listening(tls_cert=certificate, tls_key=tmp_path / "none.pem"))

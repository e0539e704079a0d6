"""Keys of receipts: Ed25519, private halves as PEM files, public ones in 64 hexadecimal digits.

Needs the extra `receipts`.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization as forms
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

SIGNED = {
    "signature": b"holdfast receipt 1\n",
    "countersignature": b"holdfast receipt 1, countersigned\n",
}
"""What stands before a root where it is signed: one kind of signature is none of the other."""


_PRIME = 2**255 - 19
_EIGHTH = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
_SMALL = {0, 1, _PRIME - 1, _EIGHTH, _PRIME - _EIGHTH}
"""The y of all points of an order up to 8: as keys of everybody, they sign anything."""


def make_key() -> bytes:
    """Return a new private key as PEM."""
    return Ed25519PrivateKey.generate().private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()
    )


def read_key(pem: bytes) -> Ed25519PrivateKey:
    """Return the private key in a PEM file. Raise ValueError for anything else."""
    try:
        key = forms.load_pem_private_key(pem, None)
    except TypeError:
        raise ValueError("it is locked by a password") from None
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("it is no private key in PEM") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("it is no Ed25519 key")
    return key


def read_public(pem: bytes) -> str:
    """Return the public key in a PEM file. Raise ValueError for anything else."""
    try:
        key = forms.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("it is no public key in PEM") from None
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError("it is no Ed25519 key")
    return key.public_bytes(forms.Encoding.Raw, forms.PublicFormat.Raw).hex()


def public_of(key: Ed25519PrivateKey) -> str:
    """Return the public half of a key."""
    return key.public_key().public_bytes(forms.Encoding.Raw, forms.PublicFormat.Raw).hex()


def sign(key: Ed25519PrivateKey, root: bytes, kind: str = "signature") -> str:
    """Return the signature of a root."""
    return key.sign(SIGNED[kind] + root).hex()


def has_signed(public: str, root: bytes, signature: str, kind: str = "signature") -> bool:
    """True if the owner of a public key has signed this root."""
    if int.from_bytes(bytes.fromhex(public), "little") % 2**255 % _PRIME in _SMALL:
        return False
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(signature), SIGNED[kind] + root)
    except (InvalidSignature, ValueError):
        return False
    return True

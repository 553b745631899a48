"""Certificates for tests: an authority, what it has signed, and what has expired."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key, as files in PEM form."""

    certificate: Path
    key: Path

    @property
    def both(self) -> Path:
        """One file with the key and the certificates, as Kafka's Java wants it."""
        file = self.key.with_suffix(".both.pem")
        file.write_text(self.key.read_text() + self.certificate.read_text())
        return file


class Authority:
    """A certificate authority of a test.

    Args:
        folder: Where its files are written.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._authority = folder, trustme.CA()
        self.file = folder / "ca.pem"
        self._authority.cert_pem.write_to_path(self.file)

    def issue(self, name: str, expired: bool = False) -> Certificate:
        """A certificate for this machine, whose owner has the name ``name``.

        Args:
            name: The common name; also that of the files.
            expired: True for a certificate that was valid until yesterday.
        """
        until = datetime.now(UTC) - timedelta(days=1) if expired else None
        issued = self._authority.issue_cert("127.0.0.1", "localhost", common_name=name, not_after=until)
        chain, key = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        loaded = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
        key.write_bytes(
            loaded.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return Certificate(chain, key)

"""The mail server of tests.

What it offers, that it is a stranger to other names, and that it is gone when it is killed.
"""

from __future__ import annotations

import imaplib
import smtplib
import ssl
from pathlib import Path

import pytest

from tests.servers.at_hand import at_hand
from tests.servers.dovecot import DOMAIN, PASSWORD, Dovecot
from tests.servers.server import HOST


def deliver(server: Dovecot, account: str, subject: str) -> None:
    """Hand one mail to LMTP."""
    with smtplib.LMTP(HOST, server.lmtp_port) as client:
        client.sendmail(
            f"u9@{DOMAIN}", [f"{account}@{DOMAIN}"], f"Subject: {subject}\r\n\r\ntext\r\n"
        )


def test_mail_that_was_accepted_outlives_a_crash_and_the_certificate_of_the_test_is_trusted() -> (
    None
):
    with at_hand(Dovecot) as server:
        assert server.process is not None
        assert Path(f"/proc/{server.process.pid}").stat().st_uid != 0, "a server never runs as root"
        deliver(server, "u1", "kept")
        session = imaplib.IMAP4(HOST, server.port)
        session.login("u1", PASSWORD)
        server.kill()
        with pytest.raises((imaplib.IMAP4.abort, OSError)):
            session.noop()
        assert not server.is_ready(), "nothing of it answers after a crash"
        server.start()
        trusting = ssl.create_default_context(cafile=str(server.certificate))
        with imaplib.IMAP4_SSL(HOST, server.imaps_port, ssl_context=trusting) as client:
            client.login("u1", PASSWORD)
            assert client.select("INBOX") == ("OK", [b"1"])
        with imaplib.IMAP4(HOST, server.port) as plain:
            assert "STARTTLS" in plain.capabilities
            plain.starttls(trusting)
            with pytest.raises(imaplib.IMAP4.error):
                plain.login("u1", "another word")
        with pytest.raises(ssl.SSLCertVerificationError):
            imaplib.IMAP4_SSL(HOST, server.imaps_port, ssl_context=ssl.create_default_context())
        folder = server.folder
    assert not folder.exists()

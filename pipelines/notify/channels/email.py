"""Sends messages as e-mail."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Collection
from email import policy
from email.message import EmailMessage
from email.utils import formatdate

from engine.explain.printing import visible
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings.notify import EmailChannel
from pipelines.notify.channels.sending import TIMEOUT, SendError
from pipelines.notify.message import Message
from pipelines.notify.news import News
from pipelines.notify.secrets import secret

_POLICY = policy.SMTP.clone(max_line_length=998)
"""Lines are as long as RFC 5322 allows: a folded subject would begin with a space."""

_OF_THE_MESSAGE = (552, 554)
"""Statuses that say that this message is wrong, not the account or the server."""


class EmailSender:
    """Sends each message as plain text. Mails on one incident are one conversation.

    Args:
        name: Name of the channel.
        channel: Its settings.
    """

    limited, repeats = True, False

    def __init__(self, name: str, channel: EmailChannel) -> None:
        self._name, self._channel = name, channel

    def escape(self, text: str) -> str:
        """The text: the mail is plain text."""
        return text

    def send(self, message: Message) -> str:
        """Sends the mail; its ``Message-ID`` is made of the deduplication id."""
        channel, where = self._channel, f"channel {self._name}, {self._channel.server}"
        key = password(self._name, channel)
        try:
            with self._server() as server:
                if key and channel.user:
                    server.login(channel.user, key)
                refused = server.send_message(self._mail(message))
        except smtplib.SMTPRecipientsRefused as error:
            raise _refused(next(iter(error.recipients.values())), where, key) from None
        except smtplib.SMTPResponseException as error:
            raise _refused((error.smtp_code, error.smtp_error), where, key) from None
        except (smtplib.SMTPException, OSError, UnicodeError) as error:
            what = str(error) or type(error).__name__
            raise SendError("NOTIFY_UNREACHABLE", visible(what.replace(key or "\0", "***")), where) from None
        return f"{where} took it for {len(channel.recipients) - len(refused)} of {len(channel.recipients)} recipients"

    def repeat(self, lasting: Collection[News]) -> None:
        """Nothing: people are told once."""

    def _server(self) -> smtplib.SMTP:
        host, _, port = self._channel.server.rpartition(":")
        host, context = host.strip("[]"), ssl.create_default_context()
        if self._channel.security == "tls":
            return smtplib.SMTP_SSL(host, int(port), timeout=TIMEOUT, context=context)
        server = smtplib.SMTP(host, int(port), timeout=TIMEOUT)
        if self._channel.security == "starttls":
            server.starttls(context=context)
        return server

    def _mail(self, message: Message) -> EmailMessage:
        channel, mail = self._channel, EmailMessage(policy=_POLICY)
        domain = channel.sender.partition("@")[2]
        mail["Subject"], mail["From"], mail["To"] = message.title, channel.sender, ", ".join(channel.recipients)
        mail["Date"], mail["Message-ID"] = formatdate(), f"<{message.id.replace(':', '.')}@{domain}>"
        mail["Auto-Submitted"], mail["X-Newnormal-Id"] = "auto-generated", message.id
        if len(message.news) == 1:
            mail["References"] = f"<{message.news[0].incident.id}@{domain}>"
        mail.set_content(message.text)
        return mail


def password(name: str, channel: EmailChannel) -> str | None:
    """The password of a channel; ``None`` if it has none. Raises ``NOTIFY_SECRET``."""
    return secret(f"notify.channels.{name}.password", channel.password_file, channel.password_variable)


def _refused(answer: tuple[int, bytes | str], where: str, key: str | None) -> NewnormalError:
    status, said = answer
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    what = f"it answered {status} {visible(text.replace(key or chr(0), '***'))}"
    code = "NOTIFY_UNREACHABLE" if 400 <= status < 500 else "NOTIFY_REFUSED"
    return SendError(code, what, where, hopeless=status in _OF_THE_MESSAGE)

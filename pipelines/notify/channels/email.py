"""Sends messages as e-mail."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Sequence
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import formatdate

import structlog

from engine.clock import now_ms
from engine.explain.redaction import redacted
from engine.printing import visible
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings.channels import EmailChannel
from pipelines.notify.channels.sending import TIMEOUT, Sender, SendError
from pipelines.notify.left import LeftMail, LeftMails
from pipelines.notify.message import Message
from pipelines.notify.secrets import secret

_POLICY = policy.SMTP.clone(max_line_length=998)
"""Lines are as long as RFC 5322 allows: a folded subject would begin with a space."""

_GIVEN_UP_MS = 5 * 86_400_000
"""A recipient is not asked again for longer, milliseconds: RFC 5321, section 4.5.4.1, says four to five days."""

Answer = tuple[int, bytes | str]
"""Status and text of a mail server."""

log = structlog.get_logger()

_OF_THE_MESSAGE = (552, 554)
"""Statuses that say that this message is wrong, not the account or the server."""


class EmailSender(Sender[EmailChannel]):
    """Sends each message as plain text. Mails on one incident are one conversation."""

    @property
    def _where(self) -> str:
        return f"channel {self._name}, {self._channel.server}"

    def send(self, message: Message, left: LeftMails) -> str:
        """Sends the mail; its ``Message-ID`` is made of the deduplication id.

        It counts as sent when a recipient has taken it. Recipients who are refused for the moment, and those who still
        wait for an earlier mail, get it later by `again`.
        """
        to = [recipient for recipient in self._channel.recipients if recipient not in left.recipients]
        if not to:
            raise SendError("NOTIFY_UNREACHABLE", "no recipient has taken the mails of before", self._where)
        mail = self._mail(message)
        refused = self._deliver(mail, to)
        later = {recipient: answer for recipient, answer in refused.items() if _for_the_moment(answer)}
        if len(refused) == len(to):
            raise _refused(next(iter((later or refused).values())), self._where, None)
        waiting = LeftMail(message.id, mail.as_bytes().decode(), now_ms())
        left.add([*later, *left.recipients], waiting)
        told = "".join(f"; {recipient}: {_in_words(answer)}" for recipient, answer in refused.items())
        if told:
            log.warning("some recipients have not taken a mail", channel=self._name, id=message.id, reason=told[2:])
        count = f"{len(to) - len(refused)} of {len(self._channel.recipients)}"
        return f"{self._where} took it for {count} recipients{told}"

    def again(self, left: LeftMails, now: int) -> list[str]:
        """Sends each recipient the mails that they have not taken yet, the oldest first."""
        return [why for each in sorted(left.recipients) if (why := self._catch_up(each, left, now))]

    def _catch_up(self, recipient: str, left: LeftMails, now: int) -> str:
        """Sends a recipient what waits; returns why they do not take it."""
        while first := left.first(recipient):
            if recipient in self._channel.recipients:
                why, hopeless = self._tried(first, recipient)
                if why and not hopeless and now - first.since < _GIVEN_UP_MS:
                    return f"{recipient}: {why}"
                facts = {"channel": self._name, "recipient": recipient, "id": first.id}
                if why:
                    log.error("a mail to one recipient is given up", reason=why, **facts)
                else:
                    log.info("told a recipient who was refused before", **facts)
            left.done(recipient)
        return ""

    def _tried(self, waiting: LeftMail, recipient: str) -> tuple[str, bool]:
        """Sends a mail to one recipient; returns why it was not taken, and whether it never will be."""
        mail = message_from_bytes(waiting.mail.encode(), EmailMessage, policy=_POLICY)
        try:
            answer = self._deliver(mail, [recipient]).get(recipient)
        except SendError as error:
            if not error.hopeless:
                raise
            return error.what, True
        return (_in_words(answer), not _for_the_moment(answer)) if answer else ("", False)

    def _deliver(self, mail: EmailMessage, to: Sequence[str]) -> dict[str, Answer]:
        """Sends a mail to some recipients; returns those who were refused, with the answer.

        Raises:
            SendError: If it was not taken for any recipient, for a reason that is not the recipients'.
            NewnormalError: ``NOTIFY_SECRET``.
        """
        channel, key = self._channel, password(self._name, self._channel)
        try:
            with self._server() as server:
                if key and channel.user:
                    server.login(channel.user, key)
                refused = server.send_message(mail, channel.sender, to)
        except smtplib.SMTPRecipientsRefused as error:
            refused = error.recipients
        except smtplib.SMTPResponseException as error:
            raise _refused((error.smtp_code, error.smtp_error), self._where, key) from None
        except (smtplib.SMTPException, OSError, UnicodeError) as error:
            what = str(error) or type(error).__name__
            raise SendError("NOTIFY_UNREACHABLE", visible(redacted(what, [key])), self._where) from None
        return {each: (answer[0], redacted(_text(answer), [key])) for each, answer in refused.items()}

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
        # some Pythons decode what looks encoded in a header, line breaks too (CVE-2024-6923): it must look like none
        title = message.title.replace("=?", "= ?")
        mail["Subject"], mail["From"], mail["To"] = title, channel.sender, ", ".join(channel.recipients)
        mail["Date"], mail["Message-ID"] = formatdate(), f"<{message.id.replace(':', '.')}@{domain}>"
        mail["Auto-Submitted"], mail["X-Newnormal-Id"] = "auto-generated", message.id
        if len(message.news) == 1:
            mail["References"] = f"<{message.news[0].incident.id}@{domain}>"
        mail.set_content(message.text)
        return mail


def password(name: str, channel: EmailChannel) -> str | None:
    """The password of a channel; ``None`` if it has none. Raises ``NOTIFY_SECRET``."""
    return secret(f"notify.channels.{name}.password", channel.password_file, channel.password_variable)


def _refused(answer: Answer, where: str, key: str | None) -> NewnormalError:
    what = f"it answered {answer[0]} {visible(redacted(_text(answer), [key]))}"
    code = "NOTIFY_UNREACHABLE" if _for_the_moment(answer) else "NOTIFY_REFUSED"
    return SendError(code, what, where, hopeless=answer[0] in _OF_THE_MESSAGE)


def _in_words(answer: Answer) -> str:
    return f"{answer[0]} {visible(_text(answer))}"


def _text(answer: Answer) -> str:
    return answer[1].decode("utf-8", "replace") if isinstance(answer[1], bytes) else answer[1]


def _for_the_moment(answer: Answer) -> bool:
    """Whether a server may take it later, as with greylisting or a full mailbox."""
    return 400 <= answer[0] < 500

"""One redactor over every message, excerpt and line of code that leaves the place where it was
read.
"""

from __future__ import annotations

import functools
import re

from detect_secrets.plugins.artifactory import ArtifactoryDetector
from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
from detect_secrets.plugins.base import RegexBasedDetector
from detect_secrets.plugins.basic_auth import BasicAuthDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.jwt import JwtTokenDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.npm import NpmDetector
from detect_secrets.plugins.openai import OpenAIDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector

REDACTED = "[redacted]"
LONGEST_LINE = 20_000
"""Characters; longer lines are cut for the detectors, whose patterns are not all linear."""

_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----"
    r"(?:[^-]|-(?!----END))*(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----)?"
)
_OWN = (
    # Anthropic and OpenAI keys, and everybody who copied their shape.
    re.compile(r"\b(sk-[A-Za-z0-9_-]{16,})"),
    re.compile(r"(?i)\bbearer\s{1,3}([A-Za-z0-9._~+/=-]{16,})"),
    # A signed web token with its signature, which is what makes it a credential.
    re.compile(r"\b(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)"),
    re.compile(r"\b(AIza[A-Za-z0-9_-]{30,})"),
    re.compile(
        r"(?i)(?:password|passwd|passphrase|secret|token|api_?key|access_?key|private_?key)"
        r"[\w.-]{0,40}[\"']?\s{0,4}(?::=|=>|==|[:=])\s{0,4}[rbfu]{0,2}[\"']([^\"'\n]{4,})[\"']"
    ),
    # What bandit quotes when it sees a password.
    re.compile(r"(?i)password: '([^'\n]+)'"),
)


@functools.cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    kinds: tuple[type[RegexBasedDetector], ...] = (
        ArtifactoryDetector, AWSKeyDetector, AzureStorageKeyDetector, BasicAuthDetector,
        DiscordBotTokenDetector, GitHubTokenDetector, GitLabTokenDetector, JwtTokenDetector,
        MailchimpDetector, NpmDetector, OpenAIDetector, PypiTokenDetector, SendGridDetector,
        SlackDetector, SquareOAuthDetector, StripeDetector, TelegramBotTokenDetector,
        TwilioKeyDetector,
    )  # fmt: skip
    return tuple(pattern for kind in kinds for pattern in kind().denylist)


def redact(text: str) -> str:
    """The text with everything that looks like a secret replaced by `[redacted]`. Line ends and
    line numbers stay as they are.
    """
    text = _KEY_BLOCK.sub(lambda block: REDACTED + "\n" * block[0].count("\n"), text)
    return "".join(_redact_line(line) for line in text.splitlines(keepends=True))


def _redact_line(line: str) -> str:
    if len(line) > LONGEST_LINE:
        pieces = range(0, len(line), LONGEST_LINE)
        return "".join(_redact_line(line[start : start + LONGEST_LINE]) for start in pieces)
    for pattern in _OWN:
        line = pattern.sub(lambda match: match[0].replace(match[1], REDACTED), line)
    # The whole match goes, as the groups of these patterns do not always hold the whole secret.
    for pattern in _patterns():
        line = pattern.sub(REDACTED, line)
    return line

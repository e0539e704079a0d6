"""What credentials of well-known services look like, as `detect-secrets` and we know them."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
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

_KINDS: tuple[type[RegexBasedDetector], ...] = (
    ArtifactoryDetector, AWSKeyDetector, AzureStorageKeyDetector, BasicAuthDetector,
    DiscordBotTokenDetector, GitHubTokenDetector, GitLabTokenDetector, JwtTokenDetector,
    MailchimpDetector, NpmDetector, OpenAIDetector, PypiTokenDetector, SendGridDetector,
    SlackDetector, SquareOAuthDetector, StripeDetector, TelegramBotTokenDetector,
    TwilioKeyDetector,
)  # fmt: skip
OURS: dict[str, str] = yaml.safe_load(
    Path(__file__).with_name("secret_kinds.yaml").read_text("utf-8")
)
SHAPES: tuple[re.Pattern[str], ...] = (
    *(shape for kind in _KINDS for shape in kind().denylist),
    *(re.compile(rf"\b{shape}") for shape in OURS.values()),
)

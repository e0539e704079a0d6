"""Credentials in files, by the detectors of detect-secrets and by patterns of ours."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from importlib import resources

from holdfast.activities.review.analysing.lens import (
    Analyser,
    CommandLine,
    Grade,
    parse_items,
    script,
)

_SALT = secrets.token_hex(16)
"""New in each process: equal values get equal marks within a review, and a mark is of no use to
anybody who wants the value.
"""

_KINDS = str(resources.files("holdfast.untrusted") / "secret_kinds.yaml")
"""The patterns that the library does not have."""
LIKELY = "Secret Keyword, likely"
"""A name that sounds like a secret, with a value that looks like one."""

GRADES = {
    "Private Key": Grade("critical", 90),
    # Worth as much as its passphrase.
    "Encrypted Private Key": Grade("warning", 70),
    "AWS Access Key": Grade("critical", 90),
    "Anthropic API Key": Grade("critical", 90),
    "Azure Storage Account access key": Grade("critical", 90),
    "GitHub Token": Grade("critical", 90),
    "GitLab Token": Grade("critical", 90),
    "Google API Key": Grade("critical", 90),
    "NPM tokens": Grade("critical", 90),
    "OpenAI Token": Grade("critical", 90),
    "PyPI Token": Grade("critical", 90),
    "SendGrid API Key": Grade("critical", 90),
    "Slack Token": Grade("critical", 90),
    "Square OAuth Secret": Grade("critical", 90),
    "Stripe Access Key": Grade("critical", 90),
    "Discord Bot Token": Grade("critical", 90),
    "Mailchimp Access Key": Grade("critical", 90),
    "Telegram Bot Token": Grade("critical", 90),
    "Twilio API Key": Grade("critical", 90),
    # Shapes of `secret_kinds.yaml`.
    "Google OAuth Secret": Grade("critical", 90),
    "GitHub Fine-grained Token": Grade("critical", 90),
    "OpenAI Project Key": Grade("critical", 90),
    "Stripe Restricted Key": Grade("critical", 90),
    "Stripe Webhook Secret": Grade("critical", 90),
    "DigitalOcean Token": Grade("critical", 90),
    "Hugging Face Token": Grade("critical", 90),
    "Shopify Token": Grade("critical", 90),
    "Databricks Token": Grade("critical", 90),
    "HashiCorp Vault Token": Grade("critical", 90),
    "Terraform Cloud Token": Grade("critical", 90),
    "Linear API Key": Grade("critical", 90),
    "Notion Token": Grade("critical", 90),
    "Figma Token": Grade("critical", 90),
    "Docker Hub Token": Grade("critical", 90),
    "Doppler Token": Grade("critical", 90),
    "Grafana Token": Grade("critical", 90),
    "Replicate Token": Grade("critical", 90),
    "PlanetScale Token": Grade("critical", 90),
    "Postman API Key": Grade("critical", 90),
    "New Relic Key": Grade("critical", 90),
    "Dynatrace Token": Grade("critical", 90),
    "RubyGems Token": Grade("critical", 90),
    "Sentry Token": Grade("critical", 90),
    "Age Secret Key": Grade("critical", 90),
    "Supabase Token": Grade("critical", 90),
    "Atlassian Token": Grade("critical", 90),
    "Groq API Key": Grade("critical", 90),
    "xAI API Key": Grade("critical", 90),
    "Perplexity API Key": Grade("critical", 90),
    "Airtable Token": Grade("critical", 90),
    "Pulumi Token": Grade("critical", 90),
    "EasyPost Key": Grade("critical", 90),
    "Heroku Token": Grade("critical", 90),
    "Mailgun Key": Grade("critical", 90),
    "Adafruit Key": Grade("critical", 90),
    "Slack App Token": Grade("critical", 90),
    "Telegram Bot Key": Grade("critical", 90),
    "LangSmith Key": Grade("critical", 90),
    "Buildkite Token": Grade("critical", 90),
    "Artifactory Credentials": Grade("warning", 70),
    "Basic Auth Credentials": Grade("warning", 10),
    "JSON Web Token": Grade("warning", 30),
    # A name that sounds like a secret, with a value: as often a test or a placeholder.
    "Secret Keyword": Grade("warning", 3),
    LIKELY: Grade("warning", 56, Grade("warning", 76)),
    "Base64 High Entropy String": Grade("info", 4),
    "Hex High Entropy String": Grade("info", 3),
}


def command(files: Sequence[str], honour: bool) -> CommandLine:
    """Run the detectors over files; suppressed secrets are reported as such in the same run."""
    del honour
    return script("find_secrets.py", files, _SALT, _KINDS)


ANALYSER = Analyser(
    name="secrets",
    looks_for="text files",
    grades=GRADES,
    command=command,
    parse=parse_items,
    module="detect_secrets",
    rules=tuple(kind.lower().replace(" ", "-") for kind in GRADES),
)

"""Made-up credentials of the shapes that services give theirs, put together when they are asked
for, so that no file here holds what a scanner takes for one; and what looks like one and is none.
"""

from __future__ import annotations

import base64
import hashlib
import random
from collections.abc import Iterator

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
HEX = "0123456789abcdef"
BECH = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"
DIGITS = "0123456789"

Part = str | tuple[str, int]
KINDS: dict[str, tuple[Part, ...]] = {
    "aws": ("AK" + "IA", (UPPER, 16)),
    "github": ("gh" + "p_", (LETTERS, 36)),
    "github fine-grained": ("github_" + "pat_", (LETTERS, 22), "_", (LETTERS, 59)),
    "gitlab": ("gl" + "pat-", (LETTERS, 20)),
    "slack bot": ("xo" + "xb-", (DIGITS, 12), "-", (DIGITS, 12), "-", (LETTERS, 24)),
    "slack app": ("xa" + "pp-1-", (UPPER, 11), "-", (DIGITS, 13), "-", (HEX, 64)),
    "stripe": ("sk_" + "live_", (LETTERS, 24)),
    "stripe restricted": ("rk_" + "live_", (LETTERS, 24)),
    "openai project": ("sk-" + "proj-", (LETTERS, 40), "T3Blb" + "kFJ", (LETTERS, 40)),
    "anthropic": ("sk-" + "ant-api03-", (LETTERS, 93)),
    "google": ("AI" + "za", (LETTERS, 35)),
    "google oauth": ("GOC" + "SPX-", (LETTERS, 28)),
    "npm": ("//registry.example.com/:_auth" + "Token=npm_", (LETTERS, 36)),
    "pypi": ("py" + "pi-AgEIcHlwaS5vcmc", (LETTERS, 80)),
    "sendgrid": ("S" + "G.", (LETTERS, 22), ".", (LETTERS, 43)),
    "twilio": ("S" + "K", (HEX, 32)),
    "mailgun": ("ke" + "y-", (HEX, 32)),
    "digitalocean": ("dop" + "_v1_", (HEX, 64)),
    "heroku": ("HR" + "KU-AA", (LETTERS, 58)),
    "shopify": ("shp" + "at_", (HEX, 32)),
    "databricks": ("da" + "pi", (HEX, 32)),
    "vault": ("hv" + "s.", (LETTERS, 92)),
    "terraform": ((LETTERS, 14), ".atlas" + "v1.", (LETTERS, 67)),
    "linear": ("lin_" + "api_", (LETTERS, 40)),
    "notion": ("nt" + "n_", (LETTERS, 46)),
    "figma": ("fi" + "gd_", (LETTERS, 40)),
    "docker hub": ("dckr" + "_pat_", (LETTERS, 27)),
    "doppler": ("dp." + "pt.", (LETTERS, 43)),
    "grafana": ("gl" + "sa_", (LETTERS, 32), "_", (HEX, 8)),
    "hugging face": ("h" + "f_", (LETTERS, 34)),
    "replicate": ("r" + "8_", (LETTERS, 37)),
    "planetscale": ("pscale" + "_tkn_", (LETTERS, 43)),
    "postman": ("PM" + "AK-", (HEX, 24), "-", (HEX, 34)),
    "new relic": ("NR" + "AK-", (UPPER, 27)),
    "dynatrace": ("dt0" + "c01.", (UPPER, 24), ".", (UPPER, 64)),
    "telegram": (("123456789", 9), ":A" + "A", (LETTERS, 33)),
    "rubygems": ("ruby" + "gems_", (HEX, 48)),
    "age": ("AGE-SECRET" + "-KEY-1", (BECH, 58)),
    "atlassian": ("ATA" + "TT3", (LETTERS, 180)),
    "groq": ("gs" + "k_", (LETTERS, 52)),
    "xai": ("xa" + "i-", (LETTERS, 80)),
    "perplexity": ("pp" + "lx-", (LETTERS, 48)),
    "airtable": ("pa" + "t", (LETTERS, 14), ".", (HEX, 64)),
    "pulumi": ("pu" + "l-", (HEX, 40)),
    "private key": (
        "-----BEGIN RSA " + r"PRIVATE KEY-----\nMII",
        (LETTERS, 61),
        r"\n",
        (LETTERS, 64),
        r"\n-----END RSA PRIVATE KEY-----",
    ),
    "connection": ("post" + "gres://app:", (LETTERS, 16), "@db.internal/x"),
}
WAYS = ('value = "{}"\n', "setting: {}\n")
"""How each stands in a file: in code, and in settings without quotes."""


def made_up(kind: str, seed: int = 0) -> str:
    """One credential of a kind; the same for the same seed."""
    chance = random.Random(f"{kind}{seed}")
    parts = KINDS[kind]
    return "".join(
        part if isinstance(part, str) else "".join(chance.choices(part[0], k=part[1]))
        for part in parts
    )


def planted() -> Iterator[tuple[str, str]]:
    """Kind and text of each."""
    for kind in KINDS:
        for seed, way in enumerate(WAYS):
            yield kind, way.format(made_up(kind, seed))


def look_alikes() -> Iterator[str]:
    """Texts that are no credentials."""
    digest = hashlib.sha256(b"a").hexdigest()
    yield f'checksum = "sha256:{digest}"\n'
    yield f"commit: {digest[:40]}\n"
    yield f'"integrity": "sha512-{base64.b64encode(hashlib.sha512(b"a").digest()).decode()}",\n'
    yield "id: 0f8fad5b-d9cb-469f-a165-70867728950e\n"
    yield f'logo = "data:image/png;base64,{base64.b64encode(bytes(range(90))).decode()}"\n'
    for kind in ("github", "stripe", "hugging face", "digitalocean", "linear", "groq", "shopify"):
        parts = KINDS[kind]
        yield f"token: {parts[0]}{'x' * int(parts[1][1])}\n"
    yield 'pattern = r"shp' + 'at_[a-fA-F0-9]{32}"\n'
    yield "from hf_transfer_of_large_model_files_and_folders import start\n"
    yield "def gsk_validate_all_of_the_fields_in_this_form_before_saving_it(): ...\n"
    yield "class='key-value-pair-list-of-things'\n"
    yield "export ANTHROPIC_API_" + "KEY=sk-" + "ant-api03-your-key-goes-here-please\n"
    yield "use the r8_ prefix, or dop" + "_v1_ followed by 64 digits\n"
    yield "registry: https://registry.example.com/npm_packages/from_a_mirror_of_ours\n"
    yield "pat" + "tern.matches(everything.that.is.here.and.there)\n"
    yield "time: 12:00:00, ratio 1234567890:1\n"
    yield "pul-request-review-comment-of-somebody-else-entirely\n"

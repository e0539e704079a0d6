"""Who may be told of a run: every address that would harm somebody is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from holdfast.deployment.settings import Settings
from holdfast.errors import Refused
from holdfast.intake.notices import notify_of
from holdfast.intake.requests import read_request
from hook_receiver import SECRET

URL = "https://ops.example/hook"


@pytest.fixture
def settings(bare_environment: Path) -> Settings:
    return Settings(state_dir=bare_environment, webhook_secret=SecretStr(SECRET))


BAD = {
    "http://ops.example/hook": "is not https",
    "ftp://ops.example/hook": "is no address",
    "ops.example": "is no address",
    "https://": "is no address",
    "https://[": "is no address",
    "https://2130706433/": "a number that is no IP address",
    "https://127.1/": "a number that is no IP address",
    "https://0x7f.0x1/": "a number that is no IP address",
    "https://ops.example:0/": "is no address",
    "https://ops.example/\n": "is no address",
    "https://ops.example/ä": "is no address",
    "https://ann:s3cret@ops.example/": "a user or a password",
    "https://ops.example/?access_token=s3cret": "a key in its query",
    "https://ops.example/" + "x" * 2_000: "is no address",
}


@pytest.mark.parametrize("url", BAD)
def test_an_address_that_may_not_be_told_is_refused_and_not_repeated(
    url: str, settings: Settings
) -> None:
    with pytest.raises(Refused) as refusal:
        notify_of((URL, url), (), settings, embedded=True)
    said = str(refusal.value)
    assert said.startswith("--notify: the address 2 ") and BAD[url] in said
    assert "\n" not in said and "s3cret" not in said


def test_on_takes_names_with_commas_and_refuses_others(settings: Settings) -> None:
    found = notify_of((URL, URL), ("waits,ended", "waits"), settings, embedded=True)
    assert found is not None and (found.urls, found.on) == ((URL,), ("waits", "ended"))
    found = notify_of((URL,), (), settings, embedded=True)
    assert found is not None and found.on == ("waits", "ended", "budget")
    with pytest.raises(Refused, match=r"'end'.*known: waits, ended, budget"):
        notify_of((URL,), ("end",), settings, embedded=True)
    with pytest.raises(Refused, match="give --notify URL with it"):
        notify_of((), ("ended",), settings, embedded=True)
    with pytest.raises(Refused, match="at most 5"):
        notify_of((URL,) * 6, (), settings, embedded=True)


def test_without_a_secret_nothing_is_promised(bare_environment: Path) -> None:
    with pytest.raises(Refused, match="HOLDFAST_WEBHOOK_SECRET is not set"):
        notify_of((URL,), (), Settings(state_dir=bare_environment), embedded=True)
    # A worker elsewhere has settings of its own.
    assert notify_of((URL,), (), Settings(state_dir=bare_environment), embedded=False)


@pytest.mark.parametrize(
    "secret", ["short", "whsec_", "whsec_AAAA", "whsec_!!", "whsec_" + "A" * 90]
)
def test_a_secret_that_is_none_is_refused(
    secret: str, bare_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_WEBHOOK_SECRET", secret)
    with pytest.raises(ValidationError) as refusal:
        Settings(state_dir=bare_environment)
    (mistake,) = refusal.value.errors()
    assert mistake["msg"] == "Value error, " + (
        "give it as whsec_ and 24 to 64 random bytes as base64"
    )


def test_a_request_of_any_door_says_the_same(settings: Settings) -> None:
    request = read_request({"goal": "x", "notify": [URL], "on": ["ended"]}, "here")
    wish = request.wish(settings)
    assert (wish.notify, wish.on) == ((URL,), ("ended",))
    with pytest.raises(Refused, match="on"):
        read_request({"goal": "x", "notify": [URL], "on": ["never"]}, "here")

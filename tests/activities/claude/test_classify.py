"""The failure table: what each failure means for the bill and for the next try."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.activities.claude.classify import LONGEST_WAIT, Meaning, Point, classify, retry_after
from holdfast.activities.gate.throttle import LONGEST_SHUT
from holdfast.contracts.errors import (
    AuthenticationRefused,
    CallRefused,
    EndpointUnreachable,
    NotBilled,
    OrchestrationError,
    PossiblyBilled,
    SpendLimitReached,
)
from holdfast.deployment.settings import HOME

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "error", "wait"),
    [
        (400, CallRefused, None),
        (401, AuthenticationRefused, None),
        (402, SpendLimitReached, None),
        (403, CallRefused, None),
        (404, EndpointUnreachable, None),
        (405, EndpointUnreachable, None),
        (408, PossiblyBilled, None),
        (409, PossiblyBilled, None),
        (412, CallRefused, None),
        (413, CallRefused, None),
        (422, CallRefused, None),
        (429, NotBilled, 1.0),
        (431, CallRefused, None),
        (500, NotBilled, None),
        (501, CallRefused, None),
        (502, PossiblyBilled, None),
        (503, EndpointUnreachable, None),
        (504, PossiblyBilled, None),
        (520, PossiblyBilled, None),
        (521, EndpointUnreachable, None),
        (522, PossiblyBilled, None),
        (523, EndpointUnreachable, None),
        (525, EndpointUnreachable, None),
        (526, EndpointUnreachable, None),
        (530, EndpointUnreachable, None),
        (524, PossiblyBilled, None),
        (529, NotBilled, 1.0),
    ],
)
def test_a_status_before_the_first_event_has_one_meaning(
    status: int, error: type[OrchestrationError], wait: float | None
) -> None:
    meant = classify("status", status, "", {})
    assert (meant.error, meant.retry_after) == (error, wait)


@pytest.mark.parametrize(
    ("point", "error"),
    [("connect", EndpointUnreachable), ("sent", PossiblyBilled), ("stream", PossiblyBilled)],
)
def test_only_a_connection_that_was_never_made_is_surely_not_billed(
    point: Point, error: type[OrchestrationError]
) -> None:
    assert classify(point, 0, "", {}).error == error


@pytest.mark.parametrize(
    "type", ["overloaded_error", "rate_limit_error", "api_error", "billing_error", "", "new_error"]
)
def test_an_error_inside_a_stream_may_have_been_billed_whatever_its_type(type: str) -> None:
    assert classify("stream", 200, type, {}).error == PossiblyBilled


@pytest.mark.parametrize(
    ("status", "error_code", "message"),
    [
        (429, "enforced_spend_limit_reached", ""),
        (429, "contract_spend_limit_reached", ""),
        (402, "", ""),
        (429, "", "You have reached your monthly spend limit"),
        (400, "", "You have reached your specified API usage limits. You will regain access on"),
        (400, "", "You have reached your specified workspace API usage limits."),
        (400, "", "Your credit balance is too low to access the API"),
    ],
)
def test_a_spend_limit_stops_the_run_and_says_what_to_do(
    status: int, error_code: str, message: str
) -> None:
    meant = classify(
        "status", status, "rate_limit_error", {}, error_code=error_code, message=message
    )
    assert meant.error == SpendLimitReached
    assert "Raise it" in meant.advice


def test_a_refused_key_says_which_variables_to_check() -> None:
    assert "ANTHROPIC_API_KEY" in classify("status", 401, "", {}).advice


@pytest.mark.parametrize("status", [400, 408])
def test_a_body_that_never_arrived_was_not_billed(status: int) -> None:
    meant = classify("status", status, "", {}, error_code="request_body_timeout")
    assert meant == Meaning(NotBilled, 2.0)


def test_who_names_a_wait_or_an_overload_is_at_home() -> None:
    asked = classify("status", 503, "", {"retry-after": "9"})
    assert asked == Meaning(NotBilled, 9.0, throttled=True)
    overloaded = classify("status", 503, "overloaded_error", {})
    assert overloaded == Meaning(NotBilled, 1.0, throttled=True)


@pytest.mark.parametrize("status", [429, 500, 503, 521, 529])
def test_a_server_that_forbids_retries_is_obeyed(status: int) -> None:
    assert classify("status", status, "", {"x-should-retry": "false"}).error == CallRefused


def test_a_server_that_asks_for_a_retry_is_obeyed() -> None:
    headers = {"x-should-retry": "true", "retry-after": "4"}
    assert classify("status", 400, "", headers) == Meaning(NotBilled, 4.0)


@pytest.mark.parametrize("status", [502, 504])
def test_a_server_that_asks_for_a_retry_does_not_make_a_lost_answer_free(status: int) -> None:
    assert classify("status", status, "", {"x-should-retry": "true"}).error == PossiblyBilled


@pytest.mark.parametrize(("status", "throttled"), [(429, True), (529, True), (500, False)])
def test_only_a_shortage_slows_the_tier_down(status: int, throttled: bool) -> None:
    assert classify("status", status, "", {}).throttled is throttled


def test_waits_that_the_server_does_not_name_double_with_each_attempt() -> None:
    waits = [classify("status", 529, "", {}, attempt=n).retry_after for n in (1, 2, 3, 10)]
    assert waits == [1.0, 2.0, 4.0, 60.0]


AHEAD = {
    "retry-after": "Sat, 21 Nov 2026 14:00:40 GMT",
    "date": "Sat, 21 Nov 2026 14:00:00 GMT",
}
"""Of an endpoint whose clock is two hours fast."""


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "30"}, 30.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Sat, 21 Nov 2026 12:00:40 GMT"}, 40.0),
        ({"retry-after": "Sat, 21 Nov 2026 11:00:00 GMT"}, None),
        (AHEAD, 40.0),
        ({"retry-after": "Sat, 21 Nov 2026 12:00:40 GMT", "date": "yesterday"}, 40.0),
        ({"retry-after": "Sat, 21 Nov 99999999999 12:00:40 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e300"}, 1e300),
        ({"retry-after-ms": "?", "retry-after": "2"}, 2.0),
        ({}, None),
    ],
)
def test_the_wait_that_a_server_asks_for_is_read(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(headers, NOW) == seconds


@pytest.mark.parametrize("headers", [{}, {"x-should-retry": "true"}])
@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_no_wait_is_longer_than_a_tier_is_shut_and_what_was_asked_is_known(
    status: int, headers: dict[str, str]
) -> None:
    for asked, beyond in (("300", None), ("604800", 604_800.0)):
        meant = classify("status", status, "", headers | {"retry-after": asked})
        assert (meant.error, meant.retry_after) == (NotBilled, LONGEST_SHUT)
        assert meant.beyond == beyond


@given(
    st.sampled_from(["connect", "sent", "status", "stream"]),
    st.integers(100, 999),
    st.text(max_size=20),
    st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms", "x-should-retry"]), st.text(max_size=12)
    ),
    st.integers(-5, 10_000),
)
def test_nothing_that_a_server_sends_escapes_the_table(
    point: Point, status: int, type: str, headers: dict[str, str], attempt: int
) -> None:
    meant = classify(point, status, type, headers, attempt=attempt, now=NOW)
    assert meant.retry_after is None or 0 < meant.retry_after <= LONGEST_WAIT


@given(st.integers(100, 999), st.text(max_size=20))
def test_only_known_statuses_are_taken_for_free_without_being_asked_to(
    status: int, type: str
) -> None:
    if classify("status", status, type, {}).error in (NotBilled, EndpointUnreachable):
        free = (404, 405, 429, 500, 503, 521, 523, 525, 526, 529, 530)
        assert status in free or type == "request_body_timeout"


def test_the_page_of_models_says_of_each_status_what_it_becomes() -> None:
    page = (HOME / "docs" / "models.md").read_text("utf-8")
    section = page.partition("## What a failure means")[2].partition("\n## ")[0]
    said = {
        int(status): errors
        for errors, when in re.findall(r"^\| (`\w+`.*?) \| (.*?) \|", section, re.MULTILINE)
        # 503 stands in two rows, and 200 is no failure of its own.
        for status in re.findall(r"\b[1-9]\d\d\b(?! that| without)", when)
    }
    assert {401, 402, 408, 429, 500, 502, 529, 530} <= said.keys()
    for status, errors in said.items():
        assert f"`{classify('status', status, '', {}).error.__name__}`" in errors, status

"""The failure table: what each failure means for the bill and for the next try."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.claude.classify import LONGEST_WAIT, Kind, Phase, Verdict, classify, retry_after
from activities.gate.flow import LONGEST_SHUT

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "kind", "wait"),
    [
        (400, "refused", None),
        (401, "authentication", None),
        (402, "spend_limit", None),
        (403, "refused", None),
        (404, "refused", None),
        (405, "refused", None),
        (408, "possibly_billed", None),
        (409, "possibly_billed", None),
        (412, "refused", None),
        (413, "refused", None),
        (422, "refused", None),
        (429, "not_billed", 5.0),
        (431, "refused", None),
        (500, "not_billed", None),
        (501, "refused", None),
        (502, "possibly_billed", None),
        (503, "unreachable", None),
        (504, "possibly_billed", None),
        (520, "possibly_billed", None),
        (521, "unreachable", None),
        (522, "possibly_billed", None),
        (523, "unreachable", None),
        (525, "unreachable", None),
        (526, "unreachable", None),
        (530, "unreachable", None),
        (524, "possibly_billed", None),
        (529, "not_billed", 15.0),
    ],
)
def test_a_status_before_the_first_event_has_one_verdict(
    status: int, kind: Kind, wait: float | None
) -> None:
    verdict = classify("status", status, "", {})
    assert (verdict.kind, verdict.retry_after) == (kind, wait)


@pytest.mark.parametrize(
    ("phase", "kind"),
    [("connect", "unreachable"), ("sent", "possibly_billed"), ("stream", "possibly_billed")],
)
def test_only_a_connection_that_was_never_made_is_surely_not_billed(
    phase: Phase, kind: Kind
) -> None:
    assert classify(phase, 0, "", {}).kind == kind


@pytest.mark.parametrize(
    "type", ["overloaded_error", "rate_limit_error", "api_error", "billing_error", "", "new_error"]
)
def test_an_error_inside_a_stream_may_have_been_billed_whatever_its_type(type: str) -> None:
    assert classify("stream", 200, type, {}).kind == "possibly_billed"


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
    verdict = classify(
        "status", status, "rate_limit_error", {}, error_code=error_code, message=message
    )
    assert verdict.kind == "spend_limit"
    assert "Raise it" in verdict.advice


def test_a_refused_key_says_which_variables_to_check() -> None:
    assert "ANTHROPIC_API_KEY" in classify("status", 401, "", {}).advice


@pytest.mark.parametrize("status", [400, 408])
def test_a_body_that_never_arrived_was_not_billed(status: int) -> None:
    verdict = classify("status", status, "", {}, error_code="request_body_timeout")
    assert verdict == Verdict("not_billed", 2.0)


def test_who_names_a_wait_or_an_overload_is_at_home() -> None:
    asked = classify("status", 503, "", {"retry-after": "9"})
    assert asked == Verdict("not_billed", 9.0, throttled=True)
    overloaded = classify("status", 503, "overloaded_error", {})
    assert overloaded == Verdict("not_billed", 15.0, throttled=True)


@pytest.mark.parametrize("status", [429, 500, 503, 521, 529])
def test_a_server_that_forbids_retries_is_obeyed(status: int) -> None:
    assert classify("status", status, "", {"x-should-retry": "false"}).kind == "refused"


def test_a_server_that_asks_for_a_retry_is_obeyed() -> None:
    headers = {"x-should-retry": "true", "retry-after": "4"}
    assert classify("status", 400, "", headers) == Verdict("not_billed", 4.0)


@pytest.mark.parametrize("status", [502, 504])
def test_a_server_that_asks_for_a_retry_does_not_make_a_lost_answer_free(status: int) -> None:
    assert classify("status", status, "", {"x-should-retry": "true"}).kind == "possibly_billed"


@pytest.mark.parametrize(("status", "throttled"), [(429, True), (529, True), (500, False)])
def test_only_a_shortage_slows_the_tier_down(status: int, throttled: bool) -> None:
    assert classify("status", status, "", {}).throttled is throttled


def test_waits_that_the_server_does_not_name_double_with_each_attempt() -> None:
    waits = [classify("status", 529, "", {}, attempt=n).retry_after for n in (1, 2, 3, 10)]
    assert waits == [15.0, 30.0, 60.0, 300.0]


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
        verdict = classify("status", status, "", headers | {"retry-after": asked})
        assert (verdict.kind, verdict.retry_after) == ("not_billed", LONGEST_SHUT)
        assert verdict.beyond == beyond


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
    phase: Phase, status: int, type: str, headers: dict[str, str], attempt: int
) -> None:
    verdict = classify(phase, status, type, headers, attempt=attempt, now=NOW)
    assert verdict.retry_after is None or 0 < verdict.retry_after <= LONGEST_WAIT


@given(st.integers(100, 999), st.text(max_size=20))
def test_only_known_statuses_are_taken_for_free_without_being_asked_to(
    status: int, type: str
) -> None:
    if classify("status", status, type, {}).kind in ("not_billed", "unreachable"):
        free = (429, 500, 503, 521, 523, 525, 526, 529, 530)
        assert status in free or type == "request_body_timeout"

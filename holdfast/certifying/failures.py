"""Every failure that a model endpoint can show, as rules of the simulator's script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]
SPEND_TEXT = "You have reached your specified API usage limits."
FAILURES: Mapping[str, Json] = {
    "400 invalid_request_error": {"status": 400},
    "400 own spend limit": {"status": 400, "message": SPEND_TEXT},
    "400 request_body_timeout": {"status": 400, "error_code": "request_body_timeout"},
    "400 with x-should-retry": {"status": 400, "headers": {"x-should-retry": "true"}},
    "401": {"status": 401},
    "402 billing_error": {"status": 402},
    "307": {"status": 307},
    "403": {"status": 403},
    "404 unknown model": {"status": 404},
    "408": {"status": 408},
    "409 conflict_error": {"status": 409},
    "412": {"status": 412},
    "413 request_too_large": {"status": 413},
    "422": {"status": 422},
    "429 with retry-after: 7": {"status": 429, "headers": {"retry-after": "7"}},
    "429 with retry-after-ms: 1500": {"status": 429, "headers": {"retry-after-ms": "1500"}},
    "429 without a wait": {"status": 429},
    "429 ramp_limit_exceeded": {
        "status": 429,
        "error_code": "ramp_limit_exceeded",
        "headers": {"retry-after": "3"},
    },
    "429 enforced_spend_limit_reached": {
        "status": 429,
        "error_code": "enforced_spend_limit_reached",
    },
    "429 contract_spend_limit_reached": {
        "status": 429,
        "error_code": "contract_spend_limit_reached",
    },
    "429 with x-should-retry: false": {"status": 429, "headers": {"x-should-retry": "false"}},
    "500 api_error": {"status": 500},
    "502 HTML": {"fault": "html_502"},
    "503": {"status": 503},
    "503 with retry-after: 20": {"status": 503, "headers": {"retry-after": "20"}},
    "503 overloaded_error": {"status": 503, "type": "overloaded_error"},
    "521": {"status": 521},
    "504 timeout_error": {"status": 504},
    "524": {"status": 524},
    "529 overloaded_error": {"status": 529},
    "529 with retry-after: 20": {"status": 529, "headers": {"retry-after": "20"}},
    "dropped before headers": {"fault": "drop_before_headers"},
    "dropped within headers": {"fault": "drop_mid_headers"},
    "no answer (hang)": {"fault": "hang"},
    "dropped mid-stream": {"fault": "drop_mid_stream"},
    "clean end mid-stream": {"fault": "end_mid_stream"},
    "stalled mid-stream": {"fault": "stall_mid_stream"},
    "overloaded_error mid-stream": {"fault": "error_mid_stream"},
    "api_error mid-stream": {"fault": "error_mid_stream", "type": "api_error"},
    "pings past the deadline": {"fault": "slow_pings"},
    "200 HTML": {"fault": "html_200"},
    "200 broken JSON": {"fault": "bad_json"},
    "200 JSON instead of a stream": {"fault": "json_not_stream"},
    "refusal": {"answer": "refusal"},
    "max_tokens": {"answer": "truncated"},
    "malformed JSON": {"answer": "malformed"},
    "empty answer": {"answer": "empty"},
}

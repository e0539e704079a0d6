"""Pass web hooks of holdfast on to people: to ntfy, to Teams, by mail, or onto the screen.

    HOLDFAST_WEBHOOK_SECRET=whsec_... python examples/relay.py PORT [ntfy|teams|mail ADDRESS]

It needs the package standardwebhooks. A hook that cannot be passed on is answered with 502, and
holdfast sends it again.
"""

import json
import os
import smtplib
import sys
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.request import Request, urlopen

from standardwebhooks import Webhook, WebhookVerificationError

SECRET = os.environ.get("HOLDFAST_WEBHOOK_SECRET", "")
MOST_BYTES = 10_000


def ntfy(address: str, text: str) -> None:
    urlopen(Request(address, text.encode()), timeout=10).close()


def teams(address: str, text: str) -> None:
    block = {"type": "TextBlock", "text": text, "wrap": True}
    card = {"type": "AdaptiveCard", "version": "1.4", "body": [block]}
    attached = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    body = json.dumps({"type": "message", "attachments": [attached]}).encode()
    urlopen(Request(address, body, {"Content-Type": "application/json"}), timeout=10).close()


def mail(address: str, text: str) -> None:
    message = EmailMessage()
    message["From"] = message["To"] = address
    message["Subject"] = text
    host, _, port = os.environ.get("SMTP", "localhost:25").partition(":")
    with smtplib.SMTP(host, int(port), timeout=10) as server:
        server.send_message(message)


def screen(_: str, text: str) -> None:
    print(text, flush=True)


WAYS = {"ntfy": ntfy, "teams": teams, "mail": mail, "screen": screen}


class Relay(BaseHTTPRequestHandler):
    timeout = 10

    def do_POST(self) -> None:
        self.send_response(self.pass_on())
        self.end_headers()

    def pass_on(self) -> int:
        """Return the status of the answer."""
        size = self.headers.get("Content-Length", "")
        if not size.isdigit() or int(size) > MOST_BYTES:
            return 413
        try:
            told = Webhook(SECRET).verify(self.rfile.read(int(size)), dict(self.headers))
        except (WebhookVerificationError, ValueError):
            return 401
        try:
            # What a run is about stays in it: this says which, and what happened.
            WAYS[way](address, f"{told['data']['id']}: {told['type']}")
        except (OSError, smtplib.SMTPException):
            return 502
        return 204

    def log_message(self, *_: object) -> None:
        pass


if not SECRET or not sys.argv[1:]:
    sys.exit(__doc__.strip())
port, way, address = (*sys.argv[1:], "screen", "")[:3]
HTTPServer(("127.0.0.1", int(port)), Relay).serve_forever()

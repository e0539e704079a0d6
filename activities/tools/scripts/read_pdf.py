"""The text of a PDF, page by page.

`main` takes a line of JSON (`first`, `last`, `letters`, `seconds`) and the bytes of the document
behind it, and returns JSON: `unit`, `total`, `parts` as [name, text], `notes`, `refused`. Runs
isolated in a bounded child, so it imports nothing of this project.
"""

import io
import json
import re
import time
from typing import Any

from pypdf import PageObject, PasswordType, PdfReader

SPACES, BLANKS = re.compile(r" {4,}"), re.compile(r"\n\s*\n\s*\n+")


def main(request: bytes) -> bytes:
    """Return the answer; what only one page is to blame for is a note."""
    head, _, content = request.partition(b"\n")
    asked = json.loads(head)
    answer: dict[str, Any] = {"unit": "page", "total": 0, "parts": [], "notes": [], "refused": ""}
    try:
        reader = PdfReader(io.BytesIO(content))
        locked = reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED
        if locked:
            answer["refused"] = "is encrypted, and opens only with its password: give it without"
        else:
            read_pages(reader, asked, answer)
    except MemoryError:
        raise
    except Exception as error:
        # What is broken in a PDF ends in errors of any kind.
        answer["refused"] = f"is not a PDF that can be read ({type(error).__name__})"
    return json.dumps(answer).encode()


def read_pages(reader: PdfReader, asked: dict[str, Any], answer: dict[str, Any]) -> None:
    """Read the pages asked for, as far as letters and seconds go."""
    until = time.monotonic() + asked["seconds"]
    total = answer["total"] = len(reader.pages)
    left = asked["letters"]
    empty: list[int] = []
    last = min(asked["last"] or total, total)
    for number in range(asked["first"], last + 1):
        if left <= 0 or time.monotonic() > until:
            answer["notes"].append(f"stopped before page {number}; first={number} reads on")
            break
        try:
            text = text_of(reader.pages[number - 1])
        except MemoryError:
            raise
        except Exception as error:
            answer["notes"].append(f"page {number} cannot be read ({type(error).__name__})")
            continue
        if not text:
            empty.append(number)
        left -= len(text)
        answer["parts"].append([f"page {number}", text[: asked["letters"]]])
    if empty and len(empty) == len(answer["parts"]):
        answer["refused"] = (
            f"has no text ({len(empty)} page{'s' * (len(empty) != 1)} looked at): pictures of text,"
            " as of a scanner, and nothing here reads letters in pictures"
        )
    elif empty:
        pages = ", ".join(map(str, empty[:20])) + (", …" if len(empty) > 20 else "")
        answer["notes"].append(f"no text, maybe pictures of it, on page {pages}")


def text_of(page: PageObject) -> str:
    """Return the text as it stands on the page, so that the rows of tables stay rows."""
    text = page.extract_text(extraction_mode="layout") or page.extract_text()
    return BLANKS.sub("\n\n", SPACES.sub("   ", text)).strip()

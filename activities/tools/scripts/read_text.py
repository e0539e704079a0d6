"""The rows of a table in CSV, and the text of a page in HTML.

`main` takes a line of JSON (`kind`, `first`, `last`, `letters`, `seconds`; for a page of the web,
whose links are to be told, its address as `links`) and behind it text in UTF-8, and returns JSON:
`unit`, `total`, `parts` as [name, text], `notes`, `refused`. Runs isolated in a bounded child, so
it imports nothing of this project.
"""

import csv
import json
import re
import time
from collections.abc import Iterator
from itertools import count
from typing import Any
from urllib.parse import urljoin

SNIFFED = 64 * 1024
CELL_LETTERS = 2_000
MOST_LINKS = 300
LINK_LETTERS = 500
DEEPEST = 2_000
"""Levels of elements: a parser's time grows with their square."""
TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
FLAT = set(
    """area base br col embed hr img input link meta source track wbr p li dt dd tr td th thead
    tbody tfoot option optgroup colgroup rp rt html head body""".split()  # noqa: SIM905
)
"""Elements that need not be closed, so that many of them in a row are no depth."""
UNSEEN = "script, style, template, noscript, head, [hidden], [style*='display:none' i],"
UNSEEN += " [style*='display: none' i]"
BLOCKS = set(
    """address article aside blockquote br dd div dl dt figcaption figure footer form h1 h2 h3 h4 h5
    h6 header hr li main nav ol p pre section table tr ul option""".split()  # noqa: SIM905
)


def main(request: bytes) -> bytes:
    """Return the answer; what is nested too deeply is refused in words."""
    head, _, content = request.partition(b"\n")
    asked = json.loads(head)
    text = content.decode("utf-8", "replace")
    answer: dict[str, Any] = {"unit": "", "total": 0, "parts": [], "notes": [], "refused": ""}
    if asked["kind"] == "csv":
        fill(answer, "row", rows_of(text, answer), asked)
    elif depth_of(text) > DEEPEST:
        answer["refused"] = f"is nested more than {DEEPEST:,} levels deep, and is not read"
    else:
        fill(answer, "line", lines_of(text, asked.get("links", "")), asked)
    return json.dumps(answer).encode()


def fill(answer: dict[str, Any], unit: str, texts: Iterator[str], asked: dict[str, Any]) -> None:
    """Add the parts asked for, as far as letters and seconds go."""
    answer["unit"] = unit
    until = time.monotonic() + asked["seconds"]
    left, last = asked["letters"], asked["last"] or 1 << 60
    for number, text in zip(count(1), texts):
        answer["total"] = number
        if not asked["first"] <= number <= last:
            continue
        if left <= 0 or time.monotonic() > until:
            answer["notes"].append(f"stopped before {unit} {number}; first={number} reads on")
            return
        left -= len(text) + 10
        answer["parts"].append([f"{unit} {number}", text[: asked["letters"]]])


def rows_of(text: str, answer: dict[str, Any]) -> Iterator[str]:
    """Yield each row with bars between its cells. What no dialect explains is read with commas."""
    csv.field_size_limit(1 << 30)
    dialect: type[csv.Dialect]
    try:
        dialect = csv.Sniffer().sniff(text[:SNIFFED], ",;\t|")
    except csv.Error:
        dialect = csv.excel
    lines = text.splitlines(keepends=True)
    try:
        for row in csv.reader(lines, dialect):
            yield " | ".join(" ".join(cell[:CELL_LETTERS].split()) for cell in row)
    except csv.Error as error:
        answer["notes"].append(f"the rest is not a table: {error}")


def depth_of(text: str) -> int:
    """Return about how deeply the elements are nested, without parsing them."""
    depth = deepest = 0
    for match in TAG.finditer(text):
        if match[2].lower() not in FLAT:
            depth = max(0, depth - 1) if match[1] else depth + 1
            deepest = max(deepest, depth)
    return deepest


def lines_of(text: str, address: str) -> Iterator[str]:
    """Yield the lines that a reader sees, headings marked, without what is hidden by its own mark.
    With the address of the page, each link has behind it where it leads.
    """
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(text)
    for node in tree.css(UNSEEN):
        node.decompose()
    for node in tree.css("a[href]")[:MOST_LINKS] if address else ():
        if target := target_of(node.attributes["href"] or "", address):
            node.insert_child(f" <{target}>")
    line = []
    for node in tree.root.traverse(include_text=True) if tree.root else ():
        if node.tag in ("-text", "#text"):
            line.append(node.text(deep=False))
        elif node.tag in BLOCKS:
            if said := " ".join("".join(line).split()):
                yield said
            line = ["#" * int(node.tag[1]) + " "] if re.fullmatch("h[1-6]", node.tag) else []
        elif node.tag in ("td", "th"):
            line.append(" | " if line else "")
    if said := " ".join("".join(line).split()):
        yield said


def target_of(link: str, address: str) -> str:
    """Return where a link leads to on the web; empty: nowhere but to its own page."""
    try:
        target = urljoin(address, link.strip())
    except ValueError:
        return ""
    target = target.partition("#")[0]
    web = target.startswith(("http://", "https://")) and len(target) <= LINK_LETTERS
    return target if web and target != address.partition("#")[0] else ""

"""What a tool says of files, cut to what a reader can use: a stranger's file can make it say
anything any number of times.

Runs the command in its arguments, after the kind of its output (`lines`: JSON lines of ruff;
`document`: JSON of bandit), and prints `{"items": […], "errors": […], "beyond": [[file, rule,
n]…]}`. Runs isolated, as a program of its own, so it imports nothing of this project: what is long,
or nested, is met here and not in the process that serves every run.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any

MOST_OUTPUT = 64 * 1024 * 1024
"""Bytes of a document, and of one line."""
MOST = 4_000
"""Items that are handed on; each file has a share, and each rule within it."""
OF_A_RULE = 2_000
"""Items of one rule in one file."""
LETTERS = 600
"""At most this many letters of a text are kept."""
Item = dict[str, Any]


def main() -> int:
    """The exit code of the tool."""
    kind, *command = sys.argv[1:]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as tool:
        assert tool.stdout is not None
        errors: list[str] = []
        kept, beyond = kept_of(
            lines(tool.stdout) if kind == "lines" else document(tool.stdout, errors)
        )
        code = tool.wait()
    listed = [[*key, count] for key, count in beyond.items()]
    json.dump({"items": kept, "errors": errors, "beyond": listed}, sys.stdout, ensure_ascii=True)
    return code


def lines(stream: IO[bytes]) -> Iterator[Item]:
    """The items of ruff, one a line."""
    while line := stream.readline(MOST_OUTPUT):
        item = json.loads(line)
        fix = item.get("fix") or {}
        yield {
            "file": item["filename"],
            "rule": item["code"] or "invalid-syntax",
            "line": item["location"]["row"],
            "column": item["location"]["column"],
            "message": cut(item["message"]),
            "suggestion": cut(fix.get("message") or ""),
        }


def document(stream: IO[bytes], errors: list[str]) -> Iterator[Item]:
    """The items of bandit; the files that it could not read go to `errors`."""
    text = stream.read(MOST_OUTPUT + 1)
    if len(text) > MOST_OUTPUT:
        raise SystemExit(f"wrote more than {MOST_OUTPUT >> 20} MiB")
    report = json.loads(text)
    errors += [error["filename"] for error in report["errors"]]
    for item in report["results"]:
        line = item["line_number"]
        yield {
            "file": item["filename"],
            "rule": item["test_id"],
            "line": line,
            "column": column_of(item),
            "last_line": max([line, *(item["line_range"] or ())]),
            "scale": f"{item['issue_severity']}/{item['issue_confidence']}",
            "message": cut(item["issue_text"]),
        }


def column_of(item: Item) -> int:
    """Where an item of bandit begins, 1-based, in characters; 0: on another line. Bandit counts
    bytes from 0 and quotes the line behind its number.
    """
    line = item["line_number"]
    quoted = str(item["code"]).split("\n")
    text = next((each for each in quoted if each.startswith(f"{line} ")), None)
    if text is None or line != min([line, *(item["line_range"] or ())]):
        return 0
    before = text[len(f"{line} ") :].encode("utf-8", "surrogatepass")[: item["col_offset"]]
    return len(before.decode("utf-8", "replace")) + 1


def cut(text: object) -> str:
    """The beginning of a text."""
    return str(text)[:LETTERS]


def kept_of(items: Iterator[Item]) -> tuple[list[Item], Counter[tuple[str, str]]]:
    """The items that are handed on, in their order, and by file and rule how many are not."""
    seen: Counter[tuple[str, str]] = Counter()
    listed: list[Item] = []
    for item in items:
        key = (item["file"], item["rule"])
        seen[key] += 1
        if seen[key] <= OF_A_RULE:
            listed.append(item)
    most = share([min(count, OF_A_RULE) for count in seen.values()], MOST)
    counted: Counter[tuple[str, str]] = Counter()
    kept: list[Item] = []
    for item in listed:
        key = (item["file"], item["rule"])
        if counted[key] < most and len(kept) < MOST:
            counted[key] += 1
            kept.append(item)
    return kept, seen - counted


def share(counts: list[int], most: int) -> int:
    """How many of each may be kept, so that all together are about `most`; at least one."""
    left = most
    for index, count in enumerate(sorted(counts)):
        fair = left // (len(counts) - index)
        if count > fair:
            return max(fair, 1)
        left -= count
    return max(counts, default=1)


if __name__ == "__main__":
    sys.exit(main())

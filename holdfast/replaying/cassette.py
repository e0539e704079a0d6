"""Cassettes: calls of models on file, so that a test is answered as a model once answered.

A call is known again by the digest of what it asks: model, effort, system prompt, messages, tools
and form of the answer, without today's date and without what only bounds it. What it asks stands in
words beside the answer, so that a changed prompt is seen as a difference.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from holdfast.storage.files import write_whole
from holdfast.text import visible
from holdfast.text.mistakes import mistakes
from holdfast.untrusted.folders import Unreadable, read_named

Json = Mapping[str, Any]
VERSION = 1
MODEL_SETTINGS = re.compile("HOLDFAST_(MODEL_[A-Z]+|CAPABILITIES)")
"""Settings that decide what a request looks like, kept for whoever asks it again."""
_TODAY = re.compile(r"^Today is \d{4}-\d\d-\d\d \(UTC\)\.$", re.MULTILINE)
_MATERIAL = re.compile(r'<material source="([^"\n]*)">\n(.*?)\n</material>', re.DOTALL)
_SAID = re.compile(
    "finding|subtask|result of (subtask|that)|the (answer|plan|remark|result)|your|what|why|errors"
    "|remark|statements"
)
"""Matches the sources of materials that models or we wrote, not those of an input."""
MOST_BYTES = 256 * 2**20
MOST_DEPTH = 200
DIFF_LINES = 40
LINE_LETTERS = 300


class CassetteError(ValueError):
    """A cassette that cannot be used; the message says what to do."""


class Answer(BaseModel):
    """What of a message comes back when it is asked for again."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    model: str
    content: list[dict[str, Any]]
    stop_reason: str
    usage: dict[str, Any]


class Recorded(BaseModel):
    """One call: which model was asked, the digest of what it was asked, that in words, and the
    message that answered.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    digest: str = Field(pattern="^[0-9a-f]{64}$")
    asked: str
    answer: Answer


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    cassette: int = Field(ge=VERSION, le=VERSION)
    inputs: bool = False
    settings: dict[Annotated[str, Field(pattern=f"^{MODEL_SETTINGS.pattern}$")], str] = {}
    calls: list[Recorded] = []


@dataclass
class Cassette:
    """Recorded calls, in the order in which they were answered."""

    inputs: bool = False
    """True if what is asked is kept with the contents of inputs and the results of tools; else
    these stand there by their length and digest.
    """
    settings: dict[str, str] = field(default_factory=dict)
    """Variables that whoever asks again has to have: names of models, capabilities."""
    calls: list[Recorded] = field(default_factory=list)
    unheard: list[str] = field(default_factory=list)
    """What was asked and is not recorded: each as `explain` says it."""

    def __post_init__(self) -> None:
        self._heard: defaultdict[str, int] = defaultdict(int)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that were asked, each once."""
        return tuple(dict.fromkeys(each.model for each in self.calls))

    @classmethod
    def read(cls, path: Path) -> Cassette:
        try:
            text = read_named(path, MOST_BYTES)
            _refuse_deep(text)
            kept = _File.model_validate(yaml.load(text, yaml.CSafeLoader))
        except ValidationError as error:
            wrong = "; ".join(mistakes(error, "cassette"))
            raise CassetteError(f"cassette {str(path)!r}: {wrong}") from error
        except Unreadable as error:
            raise CassetteError(f"cassette: {error}; record it") from error
        except yaml.YAMLError as error:
            why = visible(str(error).splitlines()[0])
            raise CassetteError(f"cassette {str(path)!r} cannot be read: {why}") from error
        return cls(kept.inputs, kept.settings, kept.calls)

    def write(self, path: Path) -> None:
        """Write the file, for its owner alone. Raise OSError."""
        kept = _File(cassette=VERSION, inputs=self.inputs, settings=self.settings, calls=self.calls)
        text = yaml.dump(
            kept.model_dump(), Dumper=_Readable, sort_keys=False, allow_unicode=True, width=100
        )
        write_whole(path, text.encode())

    def record(self, body: Json, answer: Json, blot: Callable[[str], str] = str) -> None:
        """Keep a request of the Messages API and the message that answered it. `blot` takes secrets
        out of what is asked.
        """
        recorded = Recorded(
            model=body["model"],
            digest=digest_of(body),
            asked=blot(in_words(body, inputs=self.inputs)),
            answer=Answer.model_validate(answer),
        )
        self.calls.append(recorded)

    def answer(self, body: Json) -> dict[str, Any] | None:
        """Return the recorded answer; None, and a line in `unheard`, if there is none. What was
        asked more than once has its answers in turn, and then the last one again.
        """
        digest = digest_of(body)
        found = [each.answer for each in self.calls if each.digest == digest]
        if not found:
            self.unheard.append(self.explain(body))
            return None
        turn = self._heard[digest]
        self._heard[digest] += 1
        return found[min(turn, len(found) - 1)].model_dump()

    def rewind(self) -> None:
        """Answer from the beginning again, as if nothing had been asked."""
        self._heard.clear()
        self.unheard.clear()

    def explain(self, body: Json) -> str:
        """Return how a request differs from the recorded one that is nearest to it."""
        asked = in_words(body, inputs=self.inputs)
        if not self.calls:
            return "the cassette has no calls at all; record it"
        lines = asked.splitlines()
        nearest = max(self.calls, key=lambda each: _likeness(each.asked, asked))
        changed = difflib.unified_diff(
            nearest.asked.splitlines(), lines, "recorded", "asked now", lineterm="", n=1
        )
        diff = [visible(each)[:LINE_LETTERS] for each in islice(changed, DIFF_LINES + 1)]
        more = [f"... (only the first {DIFF_LINES} lines)"] if len(diff) > DIFF_LINES else []
        if not diff:
            return "nothing that is shown differs from a recorded request, but its digest does"
        return "\n".join([*diff[:DIFF_LINES], *more])

    def complain(self) -> str:
        """Return what to say of all requests that were not recorded; empty if all were."""
        if not self.unheard:
            return ""
        others = len(self.unheard) - 1
        more = f"\n({others} more requests that it has not heard came after)" if others else ""
        head = "the cassette has not heard this request; against the nearest recorded one:"
        return f"{head}\n{self.unheard[0]}{more}\nIf this is what you want now, record it again."


def _likeness(one: str, other: str) -> tuple[float, float]:
    """Return the share of lines that two texts have in common, then that of letters."""
    lines = difflib.SequenceMatcher(None, one.splitlines(), other.splitlines(), autojunk=False)
    return lines.ratio(), difflib.SequenceMatcher(None, one, other).quick_ratio()


def digest_of(body: Json) -> str:
    """Return the digest of what a request asks."""
    asked = {
        "model": body.get("model"),
        "effort": _output(body).get("effort"),
        "form": _output(body).get("format"),
        "system": _text(body.get("system")),
        "tools": body.get("tools") or [],
        "messages": [[each["role"], _blocks(each["content"])] for each in body.get("messages", ())],
    }
    return hashlib.sha256(json.dumps(_bare(asked), sort_keys=True).encode()).hexdigest()


def in_words(body: Json, *, inputs: bool) -> str:
    """Return what a request asks, as lines that can be read and compared."""
    return "\n".join(_words(body, inputs))


def _words(body: Json, inputs: bool) -> Iterator[str]:
    yield f"model: {body.get('model')}"
    if effort := _output(body).get("effort"):
        yield f"effort: {effort}"
    yield "--- system"
    yield _undated(_text(body.get("system")))
    for message in body.get("messages", ()):
        yield f"--- {message['role']}"
        for block in _blocks(message["content"]):
            yield _withhold(_undated(_block_in_words(block, inputs)), inputs)
    for tool in body.get("tools") or ():
        yield f"--- tool {tool.get('name')}"
        yield str(tool.get("description", ""))
        yield json.dumps(tool.get("input_schema"), sort_keys=True)
    if form := _output(body).get("format"):
        yield "--- form of the answer"
        yield json.dumps(form.get("schema"), sort_keys=True, indent=1)


def _block_in_words(block: Json, inputs: bool) -> str:
    match block.get("type"):
        case "text":
            return str(block.get("text"))
        case "tool_use":
            return f"calls {block.get('name')}: {json.dumps(block.get('input'), sort_keys=True)}"
        case "tool_result":
            said = _text(block.get("content"))
            return f"result: {said if inputs else _measure(said)}"
        case "thinking" | "redacted_thinking":
            return "(thoughts)"
    return f"({block.get('type')})"


def _withhold(text: str, inputs: bool) -> str:
    if inputs:
        return text

    def shown(found: re.Match[str]) -> str:
        if _SAID.match(found[1]):
            return found[0]
        return f'<material source="{found[1]}">\n{_measure(found[2])}\n</material>'

    return _MATERIAL.sub(shown, text)


def _measure(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return f"[{len(text)} characters, sha256 {digest[:12]}]"


def _undated(text: str) -> str:
    return _TODAY.sub("Today is DATE (UTC).", text)


def _output(body: Json) -> dict[str, Any]:
    return body.get("output_config") or {}


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def _text(content: Any) -> str:
    """Return the text of a system prompt or of a tool's result."""
    return "\n".join(str(block.get("text", "")) for block in _blocks(content))


def _bare(value: Any) -> Any:
    """Return a document without marks of the cache, which change no answer, and undated."""
    if isinstance(value, str):
        return _undated(value)
    if isinstance(value, Mapping):
        return {name: _bare(each) for name, each in value.items() if name != "cache_control"}
    if isinstance(value, list | tuple):
        return [_bare(each) for each in value]
    return value


def _refuse_deep(text: str) -> None:
    """Raise YAMLError for what would end the loader by its depth, and for references."""
    depth = 0
    for event in yaml.parse(text, yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MOST_DEPTH:
            raise yaml.YAMLError(f"it is nested more than {MOST_DEPTH} levels deep")
        if getattr(event, "anchor", None):
            raise yaml.YAMLError("anchors and aliases (&, *) are not read")


class _Readable(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and everything where it stands."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Readable.add_representer(str, _represent)

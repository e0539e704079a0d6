"""Scripted answers: generated from the request, so that they fit it, and marked as scripted."""

from __future__ import annotations

import json
import re
from typing import Any

from holdfast.simulator.planning import MARK, planned
from holdfast.simulator.script import CALLS, Flaw, Rule, Script

FINDING = re.compile(r'<material source="(?:finding of )?subtask ([\w.-]+)')
REMARK = re.compile(r'<material source="remark (\d+)">')
GOAL = re.compile(r"<goal>\n(.*?)\n</goal>", re.DOTALL)
GROUP = re.compile(r"^- ([^:(\n]+?)(?::[^\n]*)? \([^\n]*\)$", re.MULTILINE)
TEMPLATE = re.compile(r"^Template: (.+)$", re.MULTILINE)
INSTRUCTION = re.compile(r"<instruction>\n(.*?)\n</instruction>", re.DOTALL)
CONFIDENCE = 90


def call_of(schema: dict[str, Any]) -> str:
    """The call that asks for this schema; empty if it is none of ours."""
    properties = schema.get("properties", {})
    return next((call for name, call in CALLS.items() if name in properties), "")


def schema_of(body: dict[str, Any], system: str) -> dict[str, Any]:
    """The schema that a request wants its answer in: declared, or written into its system prompt;
    empty if it wants text.
    """
    declared: dict[str, Any] | None = (body.get("output_config") or {}).get("format")
    if declared:
        schema: dict[str, Any] = declared["schema"]
        return schema
    start = system.find("{")
    for _ in range(100):
        if start < 0:
            break
        try:
            found, end = json.JSONDecoder().raw_decode(system, start)
        except ValueError:
            found, end = None, start + 1
        if isinstance(found, dict) and "properties" in found:
            return found
        start = system.find("{", end)
    return {}


def answer(
    schema: dict[str, Any], prompt: str, script: Script, rule: Rule | None
) -> dict[str, Any] | str:
    """The value of a scripted answer, with the flaw that a rule asks for; text without a schema."""
    said = f"{MARK} {rule.result}" if rule and rule.result else ""
    if not schema:
        return said or f"{MARK} {_excerpt(prompt)}"
    filled: dict[str, Any] = _fill(schema, schema.get("$defs", {}), "answer")
    call = call_of(schema)
    special = _special(call, prompt, script, rule)
    for name, value in special.items():
        if type(filled.get(name)) is type(value):
            filled[name] = value
    if call == "synthesize" and isinstance(filled["answer"], dict | list):
        filled["answer"] = _document(filled["answer"], schema, special["answer"])
    if rule and rule.answer:
        filled |= _flawed(rule.answer, filled)
    if call == "digest" and said:
        filled["claims"] = [{"claim": said, "sources": []}]
    main = {"work": "result", "synthesize": "answer"}.get(call, "")
    if said and isinstance(filled.get(main), str):
        filled[main] = said
    return filled | {name: rule.fields[name] for name in filled if rule and name in rule.fields}


def _special(call: str, prompt: str, script: Script, rule: Rule | None) -> dict[str, Any]:
    """What the request itself decides of an answer; the rest is filled in by its schema."""
    match call:
        case "choose":
            return {"reason": f"{MARK} all could help", "groups": GROUP.findall(prompt)}
        case "match":
            named = _first(TEMPLATE, prompt)
            return {"reason": f"{MARK} the same", "template_id": named, "confidence": CONFIDENCE}
        case "plan":
            goal = _first(GOAL, prompt)
            return planned(prompt, _excerpt(goal), script, rule)
        case "work":
            return _work(prompt)
        case "review":
            return {"verdict": "pass"}
        case "refine":
            asked = _excerpt(_first(INSTRUCTION, prompt).removeprefix(MARK).strip())
            return {"instruction": f"{MARK} In other words: {asked}"}
        case "judge":
            return {"winner": next(iter(_findings(prompt)), "none")}
        case "synthesize":
            return _synthesis(prompt)
        case "prove":
            nothing = {"shows": "", "script": "", "path": "", "fails_with": ""}
            return {"why": f"{MARK} what is simulated proves nothing", **nothing}
        case "digest":
            cited = [*_findings(prompt)]
            return {"claims": [{"claim": f"{MARK} What was found, in short", "sources": cited}]}
    return {}


def _work(prompt: str) -> dict[str, Any]:
    done = {"status": "complete", "confidence": CONFIDENCE, "reason": "", "why": ""}
    asked = _excerpt(_first(INSTRUCTION, prompt).removeprefix(MARK).strip())
    result = _verdicts(prompt) or f"{MARK} Result for: {asked}"
    return {**done, "result": result, "sources": []}


def _verdicts(prompt: str) -> dict[str, Any]:
    """All confirmed but the last of several, so that both outcomes are seen; empty if there is
    nothing to verify.
    """
    numbers = [int(number) for number in REMARK.findall(prompt)]
    if not numbers:
        return {}
    return {
        "verdicts": [
            {
                "remark": number,
                "verdict": "refuted" if number == len(numbers) > 1 else "confirmed",
                "why": f"{MARK} what the code around remark {number} shows",
            }
            for number in numbers
        ]
    }


def _synthesis(prompt: str) -> dict[str, Any]:
    cited = " ".join(f"[{subtask}]" for subtask in _findings(prompt))
    goal = _excerpt(_first(GOAL, prompt))
    return {
        "answer": f"{MARK} Answer to: {goal} {cited}".strip(),
        "confidence": CONFIDENCE,
        "conflicts": [],
        "gaps": [],
    }


def _document(filled: Any, schema: dict[str, Any], text: str) -> Any:
    """An answer that is data, as its schema fills it; of a table, a row that says the same as an
    answer in words.
    """
    wanted = schema["properties"]["answer"].get("properties", {})
    if [*wanted] != ["columns", "rows"]:
        return filled
    columns = wanted["columns"]["items"].get("enum") or ["what", "said"]
    return {"columns": columns, "rows": [[text, *[MARK] * (len(columns) - 1)]]}


def _flawed(flaw: Flaw, filled: dict[str, Any]) -> dict[str, Any]:
    flaws: dict[str, dict[str, Any]] = {
        "low_confidence": {"confidence": 10},
        "failed": {
            "status": "failed",
            "verdict": "fail",
            "why": f"{MARK} It does not meet the criteria.",
            "why_failed": f"{MARK} It cannot be done for this item.",
        },
        "escalation": {
            "status": "escalate",
            "reason": "ambiguous_input",
            "why": f"{MARK} The input can be read in two ways.",
        },
    }
    if flaw == "escalation" and "reason" not in filled:
        return {}
    return {name: value for name, value in flaws.get(flaw, {}).items() if name in filled}


def _fill(schema: dict[str, Any], definitions: dict[str, Any], name: str) -> Any:
    """The smallest value that a closed schema allows, with texts that say what they are."""
    if "$ref" in schema:
        return _fill(definitions[schema["$ref"].rsplit("/", 1)[-1]], definitions, name)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _fill(schema["anyOf"][0], definitions, name)
    match schema.get("type"):
        case "object":
            return {
                key: _fill(value, definitions, key)
                for key, value in schema.get("properties", {}).items()
            }
        case "array":
            return [_fill(schema["items"], definitions, name)] * schema.get("minItems", 0)
        case "integer" | "number":
            return CONFIDENCE if name == "confidence" else 1
        case "boolean":
            return True
        case "null":
            return None
    return f"{MARK} {name}"


def _findings(prompt: str) -> list[str]:
    return list(dict.fromkeys(FINDING.findall(prompt)))


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found.group(1) if found else text


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else f"{line[:200]}…"

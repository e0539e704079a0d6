"""Make a template of a finished run: what of its goal may differ, and what stays."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.library.digests import digest_playbook, digest_roles, roles_of
from holdfast.activities.library.template import (
    FORM,
    NAME,
    BadTemplate,
    Parameter,
    ParameterKind,
    Template,
    map_plan,
    read_template,
    single_value,
    texts_of,
    told_of,
    words_of,
    write_template,
)
from holdfast.activities.library.words import (
    MOST_LETTERS,
    NUMBER_WORDS,
    Token,
    plain,
    tokens_of,
    values_of,
)
from holdfast.contracts import Briefing, Goal, Plan
from holdfast.errors import Refused
from holdfast.plans.shape import shape_of
from holdfast.untrusted.redact import redact

_TOLD_SECRET = re.compile(
    r"(?i)(?:(?:password|passwort|passwd|pwd|passphrase|passcode|kennwort|contraseña|secret|token"
    r"|\bpin\b|mot de passe|api[ _-]?key|access[ _-]?key|authorization)\w*[^.\n]{0,40}[:=]\s*\S{4})"
    r"|\b(?:password|passwort|passphrase|passcode|kennwort|secret|token|api[ _-]?key)"
    r"(?:\s+is)?\s*[:=]?\s*[\"'`“„]?(?=[^\s\"'`]*\d)[^\s\"'`]{6,}"
)
"""A secret by the word before it, whatever its shape."""
_BRACES = re.compile(r"\{[a-z][a-z0-9_]*\}")
PARAMETER = re.compile(r"[a-z][a-z0-9_]{0,39}")
_NAME_WORDS = 4
"""Words of a goal in the name of its template, where none is given."""
_FORMS = {number: rf"\b{word}\b" for word, number in NUMBER_WORDS.items()}
_ORDINALS = [
    rf"\b{each}\b"
    for each in (
        "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
        "eleventh", "twelfth",
    )
]  # fmt: skip
_SHORT = frozenset(["of", "in", "on", "for", "and", "to", "is", "the", "a", "an", "by", "with"])


@dataclass(frozen=True)
class Ran:
    """A finished run, as far as a template is made of it."""

    run_id: str
    goal: Goal
    brief: Briefing
    plan: Plan


@dataclass(frozen=True)
class Drafted:
    """A template that nobody has saved yet."""

    template: Template
    kept: tuple[str, ...] = ()
    """Values of the goal that stay as they are, each with the reason."""


def draft(ran: Ran, catalogue: Catalogue, given: Mapping[str, str]) -> Drafted:
    """Return the template of a run, with the parameters that are `given` by name, and those that
    can be told by code. Refused says in a line why there can be none.
    """
    _check_texts(ran)
    _check_unchanged(ran, catalogue)
    _check_free(ran, catalogue)
    if [each.instruction for each in ran.plan.subtasks] == [ran.goal.text]:
        raise Refused(
            f"run {ran.run_id}: its plan is one agent with the whole goal, which --single does"
            " without a planner"
        )
    found = {name: _given(name, text, ran) for name, text in given.items()}
    kept: list[str] = []
    for token in values_of(ran.goal.text):
        text = _inner(ran.goal.text, token)
        if any(_occurrence(text).search(each.example) for each in found.values()):
            continue
        if why := _find_obstacle(token, text, ran):
            kept.append(f"{text!r} stays as it is: {why}")
            continue
        kind: ParameterKind = token.kind if token.kind in ("number", "date") else "text"
        found[_free_name(token, found)] = Parameter(kind=kind, example=text)
    for name in _told_inputs(ran):
        found[_free(re.sub(r"\W", "_", name.lower()), found)] = Parameter(
            kind="input", example=name
        )
    _check_inputs(ran, found)
    return Drafted(_template(ran, catalogue, found), tuple(kept))


def name_for(goal: str, taken: Iterable[str]) -> str:
    """Return a name for the template of a goal that none has yet."""
    words = [each.form.lower() for each in tokens_of(goal) if each.kind == "word"]
    words = [re.sub(r"[^a-z0-9]", "", each) for each in words if each not in _SHORT]
    name = "-".join([each for each in words if each][:_NAME_WORDS])[:50] or "template"
    names, free = {*taken}, name
    number = 1
    while free in names:
        number += 1
        free = f"{name}-{number}"
    return free


def check_name(name: str) -> str:
    """Return the name of a template. Refused if it is none."""
    if not re.fullmatch(NAME, name):
        raise Refused(f"template {name!r:.70}: a name is 1 to 60 of a-z, 0-9 and '-'")
    return name


# ---------------------------------------------------------------- what may become a template


def _check_texts(ran: Ran) -> None:
    if len(ran.goal.text) > MOST_LETTERS:
        raise Refused(f"run {ran.run_id}: a goal of more than {MOST_LETTERS:,} letters has no like")
    texts = (ran.goal.text, *texts_of(ran.plan))
    if any(redact(each) != each or _TOLD_SECRET.search(each) for each in texts):
        raise Refused(
            f"run {ran.run_id}: its goal or its plan holds what looks like a secret, and a template"
            " may hold none; start it again without"
        )
    if braces := next((found[0] for each in texts if (found := _BRACES.search(each))), ""):
        raise Refused(
            f"run {ran.run_id}: its goal or its plan has {braces}, which in a template stands for a"
            " parameter; start it again without the braces"
        )


def _check_unchanged(ran: Ran, catalogue: Catalogue) -> None:
    for name in roles_of(ran.plan):
        role = catalogue.roles.get(name)
        card = next((each for each in ran.brief.roles if each.name == name), None)
        prompt = hashlib.sha256(role.prompt.encode()).hexdigest() if role else ""
        same = role and card and role.card.description == card.description
        if not same or (card and card.prompt and card.prompt != prompt):
            raise _changed(ran, f"role {name}")
    card_then, now = ran.brief.playbook, catalogue.playbooks.get(ran.goal.playbook)
    if card_then and (now is None or now.guidance != card_then.guidance):
        raise _changed(ran, f"playbook {card_then.name}")


def _check_free(ran: Ran, catalogue: Catalogue) -> None:
    """Refuse a plan that was chosen by what the inputs say: for others it would be wrong."""
    chosen = next((each for each in roles_of(ran.plan) if catalogue.roles[each].card.cases), "")
    if chosen:
        raise Refused(
            f"run {ran.run_id}: role {chosen} was chosen by the case that its inputs hold, and"
            " another case needs another plan"
        )
    playbook = catalogue.playbooks.get(ran.goal.playbook)
    if playbook and ran.goal.text == playbook.words:
        raise Refused(
            f"run {ran.run_id}: its goal is the playbook's own, so its plan was made by what its"
            " inputs hold; give runs goals in words, and save one of these"
        )


def _changed(ran: Ran, what: str) -> Refused:
    return Refused(f"{what} has changed since run {ran.run_id}; run its goal again, and save that")


def _check_inputs(ran: Ran, found: Mapping[str, Parameter]) -> None:
    """Refuse a plan that says what its inputs hold: another input may hold other things."""
    own = {*ran.goal.text.split(), *(each.example for each in found.values())}
    for text in words_of(ran.plan):
        for word in _named(text):
            if word in ran.goal.text or word in own:
                continue
            for each in ran.brief.inputs:
                if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", each.preview):
                    raise Refused(
                        f"run {ran.run_id}: its plan names {word!r}, which stands in the input"
                        f" {each.name} and not in the goal: it holds for that input alone"
                    )


def _named(text: str) -> Iterator[str]:
    """Yield names and figures of a text."""
    for each in values_of(text):
        if each.kind != "number" or each.end - each.start > 1:
            yield _inner(text, each)
    for found in re.finditer(r"(?<=[^\W\d_,;] )[A-ZÄÖÜ][^\W_]+", text):
        yield found[0]


# ---------------------------------------------------------------- parameters


def _given(name: str, text: str, ran: Ran) -> Parameter:
    where = f"--param {name}"
    if not PARAMETER.fullmatch(name):
        raise Refused(f"{where}: a name is a to z, 0 to 9 and _, a letter first; at most 40")
    if not text or not _occurrence(text).search(ran.goal.text):
        raise Refused(f"{where}: {text!r:.80} does not stand in the goal of run {ran.run_id}")
    if not any(_occurrence(text).search(each) for each in told_of(ran.plan)):
        raise Refused(
            f"{where}: {text!r:.80} stands in no instruction of the plan: no agent would be told"
            " another value"
        )
    if left := _find_left_over(text, ran.plan):
        raise Refused(
            f"{where}: the plan also has {left!r:.80}, which would stay as it is for another value"
        )
    kind: ParameterKind = "text"
    if any(each.name == text for each in ran.goal.inputs):
        kind = "input"
    elif single_value(text, "date"):
        kind = "date"
    elif single_value(text, "number"):
        kind = "number"
    try:
        return Parameter(kind=kind, example=text)
    except ValueError:
        raise Refused(f"{where}: longer than 200 characters") from None


def _find_obstacle(token: Token, text: str, ran: Ran) -> str:
    """Return why a value of the goal cannot become a parameter by itself; empty: it can."""
    told = [*told_of(ran.plan)]
    places = [found for each in told for found in _occurrence(text).finditer(each)]
    if not places:
        return "no instruction of the plan has it"
    if left := _find_left_over(text, ran.plan):
        return f"the plan also has {left!r:.80}, which would stay for another value"
    if token.kind == "date":
        known = {each.form for each in values_of(ran.goal.text)}
        for each in texts_of(ran.plan):
            other = next(
                (d for d in values_of(each) if d.kind == "date" and d.form not in known), None
            )
            if other:
                return f"the plan also has {each[other.start : other.end]!r}, which may hang on it"
    if token.kind == "number":
        beside = _next_word(ran.goal.text, token.end)
        if any(_next_word(found.string, found.end()) != beside for found in places):
            return "the plan has the same number of other things"
    return ""


def _find_left_over(value: str, plan: Plan) -> str:
    """Return what the plan says of a value in another form, as `FY25` of 2025, `ACME` or `three`:
    it would go on saying that of another value. Empty if there is nothing of it.
    """
    forms = [_FORMS.get(value, "")] if value in _FORMS else []
    for part in re.findall(r"[^\W_]+", value):
        if part.isdecimal():
            # Who names the second and the third has three in mind.
            forms += _ORDINALS[: max(int(part[:3]) - 1, 0)] if len(part) < 3 else []
            forms.append(rf"\b{part}(?:st|nd|rd|th)\b")
            forms += [part] if len(part) > 1 else []
            forms += [rf"(?:(?<=FY)|(?<=['’/-])){part[2:]}(?!\d)"] if len(part) == 4 else []
        elif len(part) > 2 and plain(part) not in _SHORT:
            forms.append(re.escape(plain(part)))
    if not forms:
        return ""
    word = re.compile(rf"[\w.'’-]*(?:{'|'.join(forms)})[\w.'’-]*", re.IGNORECASE)
    for text in texts_of(plan):
        if found := word.search(_occurrence(value).sub(" ", text)):
            return found[0]
    return ""


def _next_word(text: str, end: int) -> str:
    found = re.match(r"\W*([^\W\d_]+)", text[end:])
    return plain(found[1]) if found else ""


def _told_inputs(ran: Ran) -> Iterator[str]:
    """Yield inputs that the goal and an instruction speak of by a name that is no usual word."""
    for each in ran.goal.inputs:
        place = _occurrence(each.name)
        if re.fullmatch(r"[^\W\d_]+", each.name) or not place.search(ran.goal.text):
            continue
        if any(place.search(text) for text in told_of(ran.plan)):
            yield each.name


def _free_name(token: Token, found: Mapping[str, Parameter]) -> str:
    usual = {"date": token.grain.partition("_")[0], "quote": "text"}
    return _free(usual.get(token.kind, token.kind), found)


def _free(name: str, found: Mapping[str, Parameter]) -> str:
    name = name if PARAMETER.fullmatch(name) else "input"
    number, free = 1, name
    while free in found:
        number += 1
        free = f"{name}{number}"
    return free


def _inner(text: str, token: Token) -> str:
    said = text[token.start : token.end]
    return said[1:-1] if token.kind == "quote" else said


def _occurrence(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w{{]){re.escape(text)}(?![\w}}])")


def _template(ran: Ran, catalogue: Catalogue, found: Mapping[str, Parameter]) -> Template:
    # The longest first: a shorter value may be a part of it.
    order = sorted(found, key=lambda name: -len(found[name].example))

    def put(text: str) -> str:
        for name in order:
            text = _occurrence(found[name].example).sub(f"{{{name}}}", text)
        return text

    inputs = {each.example: f"{{{n}}}" for n, each in found.items() if each.kind == "input"}
    playbook = catalogue.playbooks.get(ran.goal.playbook)
    template = Template(
        form=FORM,
        goal=put(ran.goal.text),
        parameters=dict(found),
        playbook=ran.goal.playbook,
        playbook_digest=digest_playbook(playbook) if playbook else "",
        roles=dict(digest_roles(ran.plan, catalogue)),
        inputs={each.name: each.kind for each in ran.goal.inputs},
        answer=ran.goal.form.kind,
        shape=shape_of(ran.goal, ran.plan),
        runs=(ran.run_id,),
        plan=map_plan(ran.plan, put, lambda name: inputs.get(name, name)),
    )
    try:
        # As whoever finds it will read it.
        return read_template(write_template(template))
    except BadTemplate as error:
        raise Refused(f"run {ran.run_id}: no template can be made of it: {error}") from None

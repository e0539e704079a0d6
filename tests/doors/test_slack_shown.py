"""What a thread shows: within Slack's limits, and nothing in it that mentions, links or hides."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from holdfast.cli.main import main
from holdfast.contracts import Report
from holdfast.contracts.view import Preview, PreviewRow, Question, Row, RunView
from holdfast.doors.slack import blocks, places
from holdfast.doors.slack.channels import read_channels
from holdfast.doors.slack.manifest import manifest
from holdfast.doors.slack.serving import Secrets
from holdfast.doors.slack.words import MOST_SECTION, divide, from_markdown, plain
from holdfast.errors import BadSettings, Refused
from shipped import shipped_catalogue
from slack_stand_in import check_dialog, check_message, texts_of

EVIL = "<!channel> <@U1> *x* <https://e.vil|bank> & \u202e `a` @here"
NOW = datetime(2026, 11, 26, tzinfo=UTC)


def view(**fields: object) -> RunView:
    common = {"run_id": "slack-C0-1.1", "goal": EVIL, "phase": "approval", "started": NOW}
    return RunView.model_validate({**common, "now": NOW, "use_models": True, **fields})


def sent(message: blocks.Message) -> str:
    """Return all texts of a message that Slack takes and reads as mrkdwn."""
    made = {"text": message.text, "blocks": [*message.blocks]}
    check_message({**made, "metadata": {"event_type": "x", "event_payload": {}}})
    assert "\u202e" not in "".join(texts_of(made["blocks"]))
    titles = (each for each in message.blocks if each["type"] not in ("header", "actions"))
    return "\n".join([message.text, *texts_of([*titles])])


def crowded() -> RunView:
    """A run with as much to show as there can be, all of it hostile."""
    rows = tuple(
        Row(
            id=f"t{n}",
            title=EVIL * 20,
            role="analyst",
            tier="haiku",
            status="failed",
            note=EVIL * 50,
        )
        for n in range(30)
    )
    priced = tuple(
        PreviewRow(id=row.id, title=row.title, role="analyst", tier="haiku") for row in rows
    )
    questions = tuple(
        Question(kind="decision", subtask_id=f"t{n}", text=EVIL * 200, roles=("a",) * 50)
        for n in range(20)
    )
    return view(
        rows=rows,
        waiting=(Question(kind="plan"), *questions),
        preview=Preview(rows=priced, leaves=(EVIL,) * 20),
        notes=(EVIL * 100,) * 9,
        dollars_cap=Decimal(1),
    )


def test_the_largest_and_most_hostile_run_is_a_message_that_slack_takes() -> None:
    shown = sent(blocks.board(crowded(), Decimal(2), (EVIL,), ()))
    for bad in ("<!", "<@", "<http"):
        assert bad not in shown
    report = Report(
        status="complete_with_gaps",
        run_id="slack-C0-1.1",
        goal=EVIL,
        answer=f"# {EVIL}\n\n```\n{EVIL * 400}\n```\n" + EVIL * 400,
        notes=(EVIL * 99,) * 9,
        conflicts=(EVIL * 99,) * 9,
    )
    shown = sent(blocks.report(report))
    assert "The answer goes on: `" in shown and "report slack-C0-1.1" in shown
    for bad in ("<!", "<@", "<http"):
        assert bad not in shown
    for name in ("reject", "answer", "raise"):
        question = crowded().waiting[1] if name == "answer" else None
        check_dialog(blocks.dialog(name, question, {"run": "r", "key": "k"}, "hint"))


def test_markdown_becomes_what_slack_shows_and_no_link_hides_where_it_leads() -> None:
    told = "# Head\n\nA **b** _c_ ~~d~~ `e<f` [g](https://h/i) <https://j>\n\n- k\n  1. l\n\n> m\n"
    told += "\n| n | o |\n|---|---|\n| p | <q> |\n\n```py\nr < s\n```\n\n![t](https://u/v)<b>"
    assert from_markdown(told) == (
        "*Head*\n\nA *b* _c_ ~d~ `e&lt;f` g (https://h/i) https://j\n\n• k\n    1. l\n\n> m\n\n"
        "```\nn  o\np  &lt;q&gt;\n```\n\n```\nr &lt; s\n```\n\nt (https://u/v)&lt;b&gt;"
    )


def test_a_long_answer_is_divided_between_its_lines_and_code_stays_code() -> None:
    parts = divide("```\n" + "a line of code\n" * 500 + "```\n" + "&amp;" * 2_000)
    assert len(parts) > 5 and all(len(each) <= MOST_SECTION for each in parts)
    assert all(each.count("```") % 2 == 0 for each in parts)
    assert not any(each.endswith(("&", "&a", "&am", "&amp")) for each in parts)


def test_what_people_write_in_slack_is_read_as_they_see_it() -> None:
    said = "<@U1|ada> &lt;b&gt; &amp;amp; <https://x.y|x.y> <https://a.b|see> <#C1|shop> <!here>"
    assert plain(said) == "@ada <b> &amp; https://x.y see (https://a.b) #shop @here"


def test_a_run_is_named_by_its_message_and_found_by_its_name() -> None:
    for message, thread in (("17.01", ""), ("17.01", "17.01"), ("18.2", "17.01")):
        place = places.of_mention("C0SHOP", message, thread)
        assert place and places.parse(place.run_id) == place
    command = places.of_command("G0SHOP", "13.x")
    assert command and places.parse(command.run_id) == command
    for wrong in (("c0shop", "1.1"), ("C0SHOP", "1"), ("C0SHOP", "1.1/..")):
        assert places.of_mention(*wrong) is None
    assert places.of_mention("C0SHOP", "1.1", "x") is None and places.parse("slack-x") is None


BAD_FILES = {
    "": "no channel may start runs yet",
    "slack = 1": "write each as [slack.NAME]",
    "[slack]\nC0SHOP = 1": "write it as a table",
    "[slack.shop]\npeople = ['U01']\ndollars = 1": "named by its id",
    "[slack.C0SHOP]\npeople = ['U01']": "dollars: say what",
    "[slack.C0SHOP]\npeople = []\ndollars = 1": "people: ",
    "[slack.C0SHOP]\npeople = ['@ada']\ndollars = 1": "people",
    "[slack.C0SHOP]\ndollars = 1": "people: field required",
    "[slack.C0SHOP]\npeople = ['U01']\ndollars = 1\nraise_to = 0.5": "raise_to: less than dollars",
    "[slack.C0SHOP]\npeople = ['U01']\ndollars = 1\nraise_to = 0": "raise_to: ",
    "[slack.C0SHOP]\npeople = ['U01']\ndollars = 1\ndolars = 2": "dolars: there is no such field",
    "[slack.C0SHOP]\npeople = ['U01']\ndollars = 1\nid = 'x'": "id: each message",
    "[slack.C0SHOP]\npeople = ['U01']\ndollars = 1\ngoal = 'x'": "goal: it is what",
    "[slack.C0SHOP]\npeople = ['U01']\ndollars = 1\nplaybook = 'x'": "unknown playbook 'x'",
}


@pytest.mark.parametrize("text", BAD_FILES)
def test_a_file_that_is_wrong_is_refused_in_a_line_that_names_the_place(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "holdfast.toml").write_text(text)
    with pytest.raises(BadSettings) as refused:
        read_channels(tmp_path, shipped_catalogue())
    assert BAD_FILES[text] in str(refused.value) and "\n" not in str(refused.value)
    assert str(tmp_path / "holdfast.toml") in str(refused.value)


def test_without_its_variables_the_door_is_off_and_with_them_no_other_process_has_them() -> None:
    for given, http, why in (
        ({}, False, "SLACK_BOT_TOKEN"),
        ({"SLACK_BOT_TOKEN": "xoxb-1"}, False, "SLACK_APP_TOKEN in the environment, or"),
        ({"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}, True, "SLACK_SIGNING_SECRET"),
        ({"SLACK_BOT_TOKEN": "xapp-1", "SLACK_APP_TOKEN": "xapp-1"}, False, "begins with xoxb-"),
    ):
        with pytest.raises(BadSettings, match=why):
            Secrets.taken(given, http=http)
    environment = {"SLACK_BOT_TOKEN": " xoxb-1", "SLACK_APP_TOKEN": "xapp-1", "PATH": "/"}
    assert Secrets.taken(environment, http=False).all == ("xoxb-1", "xapp-1")
    assert environment == {"PATH": "/"}


def test_the_manifest_is_for_socket_mode_or_for_the_address_that_is_named() -> None:
    settings = json.loads(manifest())["settings"]
    assert settings["socket_mode_enabled"] and "request_url" not in settings["interactivity"]
    made = json.loads(manifest("https://runs.example.com/slack/events"))
    urls = [
        made["settings"][each]["request_url"] for each in ("event_subscriptions", "interactivity")
    ]
    assert {*urls, made["features"]["slash_commands"][0]["url"]} == {urls[0]}
    assert not made["settings"]["socket_mode_enabled"]
    for wrong in ("http://x", "x", "https://", "https://a b", "https://a/?b", "https://a\x1b"):
        with pytest.raises(Refused, match="--url"):
            manifest(wrong)


def test_the_command_says_in_a_line_what_it_lacks_before_anything_starts(
    bare_environment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOLDFAST_PROJECT", "")
    tokens = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}
    for line, environment, why in (
        (["slack"], {}, "SLACK_BOT_TOKEN in the environment"),
        (["slack", "--url", "https://a"], {}, "--url is for --manifest"),
        (["slack"], tokens, "slack needs a project"),
        (["slack", "--port", "0"], tokens, "SLACK_SIGNING_SECRET"),
    ):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        assert main(line) == 2
        said = capsys.readouterr().err
        assert why in " ".join(said.split()) and "Traceback" not in said
    assert main(["slack", "--manifest"]) == 0
    assert json.loads(capsys.readouterr().out)["features"]["slash_commands"]
    assert not bare_environment.exists()


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("plan", ["approve", "reject"]),
        ("call", ["approve", "decline"]),
        ("subtask", ["answer"]),
        ("decision", ["answer"]),
        ("budget", []),
        ("paused", ["resume"]),
    ],
)
def test_each_question_has_its_buttons_and_the_cap_is_raised_only_where_there_is_room(
    kind: str, names: list[str]
) -> None:
    asked = view(waiting=(Question(kind=kind, subtask_id="t1", text="x"),), dollars_cap=1)
    for highest, steering in ((Decimal(2), ["raise", "cancel"]), (Decimal(1), ["cancel"])):
        message = blocks.board(asked, highest, (), ())
        sent(message)
        rows = (each["elements"] for each in message.blocks if each["type"] == "actions")
        shown = [each["action_id"].removeprefix("holdfast_") for row in rows for each in row]
        assert shown == names + steering
    closed = blocks.board(view(phase="closed", status="complete"), Decimal(2), (), ())
    assert not [each for each in closed.blocks if each["type"] == "actions"]

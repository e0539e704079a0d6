"""`.holdfast.toml` and baselines: they only narrow, and the report says what they narrowed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.activities.review import rule_names, taken_out
from holdfast.activities.review.analysing.advice import advice_of
from holdfast.activities.review.lenses import analysers
from holdfast.activities.review.scope import baseline, settings
from holdfast.activities.review.scope.narrowing import Narrower
from holdfast.activities.review.synthesis import review
from holdfast.calls.synthesize import SynthesisMaterial
from holdfast.contracts import Finding, Narrowing, Remark, Synthesis
from repositories import Bench, Repository, remarks_of

pytestmark = pytest.mark.usefixtures("secrets_found_here")

TOML = """\
[review]
paths_out = ["legacy/", "*.gen.py"]
threshold = 85
[review.rules_off]
F821 = "names come from a plug-in"
"""
NO = "no analyser is known to have such a rule"
BAD = "print(nope)\ndef f(x=[]):\n    return x\n"


def parsed(text: str | bytes) -> Narrowing:
    return settings.parse_settings(text.encode() if isinstance(text, str) else text, settings.NAME)


def test_the_settings_say_paths_rules_with_reasons_and_a_threshold() -> None:
    found = parsed(TOML)
    assert found.paths_out == ("legacy/", "*.gen.py") and found.threshold == 85
    assert found.rules_off == {"F821": "names come from a plug-in"} and not found.not_obeyed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[review]\nrules_off = {F821 = ''}", "rule 'F821', because it gives no reason"),
        ("[review]\nrules_off = {F821 = 3}", "rule 'F821', because it gives no reason"),
        ("[review]\nrules_off = ['F821']", "is not a table of RULE"),
        ("[review]\nthreshold = 101", "not a number from 0 to 100"),
        ("[review]\nthreshold = true", "not a number from 0 to 100"),
        ("[review]\npaths_out = 'x'", "is not a list of patterns"),
        ("[review]\npaths_out = [3]", "pattern 1, because"),
        ("[review]\npaths_out = ['ghp_%s']" % ("a1B2" * 9), "pattern 1: "),
        ("[review]\nmin_confidence = 0", "unknown key 'review.min_confidence'"),
        ("[reviews]\nthreshold = 90", "unknown key 'reviews' (did you mean 'review'?)"),
        ("[review]\nthreshhold = 90", "(did you mean 'review.threshold'?)"),
        ("review = 3", "[review] is not a table"),
        ("[review", "cannot be read as TOML"),
        (b"\xff\xfe", "cannot be read as TOML"),
        ("x = " + "[" * 8_000, "nests too deeply"),
        ("#" * (settings.MOST_BYTES + 1), "larger than 16 KiB"),
        ("x\u202e = 1", "all of it"),
    ],
)
def test_what_is_not_understood_is_said_and_takes_nothing_out(text: str | bytes, said: str) -> None:
    found = parsed(text)
    assert (found.paths_out, found.rules_off, found.threshold) == ((), {}, 0)
    assert said in " ".join(found.not_obeyed)
    assert all(each.isprintable() for each in found.not_obeyed)


@pytest.mark.long
def test_ten_thousand_unknown_keys_are_a_few_words() -> None:
    found = parsed("".join(f"k{n}=1\n" for n in range(2_000)))
    assert len(found.not_obeyed) == 11 and found.not_obeyed[-1] == "1990 more"


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * 8_000) + "=1",
        "\n".join("a." * 290 + f"b{n}=1" for n in range(27)),
        "x=" + "{a=" * 5_000,
        'x="' + "\\u0041" * 2_600 + '"',
        "x=" + "9" * 16_000,
        "\n".join(f"[a.b{n}.c]" for n in range(1_100)),
        "x=[" + "[]," * 5_000 + "]",
        "x='''" + "''" * 8_000,
    ],
    ids=[
        "too many dots",
        "dots",
        "inline tables",
        "escapes",
        "digits",
        "tables",
        "arrays",
        "quotes",
    ],
)
def test_the_worst_settings_are_read_in_no_time(text: str) -> None:
    assert len(text) <= settings.MOST_BYTES
    started = time.process_time()
    parsed(text)
    assert time.process_time() - started < 0.5


def remark(**fields: object) -> Remark:
    given = {"severity": "warning", "file": "a.py", "line": 1, "message": "m", "rule": "R1"}
    return Remark.model_validate({**given, "confidence": 90, "lens": "bugs", **fields})


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, ""),
        ({"file": "legacy/deep/a.py"}, "path legacy/"),
        ({"file": "src/legacy/a.py"}, "path legacy/"),
        ({"file": "legacy.py"}, ""),
        ({"file": "x/b.gen.py"}, "path *.gen.py"),
        ({"rule": "F821"}, "rule F821"),
        ({"confidence": 84}, "threshold"),
        ({"fingerprint": "0" * 16}, "known"),
        ({"fingerprint": "1" * 16}, ""),
        ({"file": ""}, ""),
    ],
)
def test_each_remark_is_taken_out_for_one_reason(fields: dict[str, object], why: str) -> None:
    assert Narrower(parsed(TOML), {"0" * 16}).why_hidden(remark(**fields)) == why


def test_the_answer_says_what_was_taken_out_and_how_much_that_hides() -> None:
    narrowing = Narrowing(
        source=".holdfast.toml",
        paths_out=("a*b",),
        rules_off={"F821": "be*cause"},
        threshold=50,
        not_obeyed=("unknown key 'x'",),
        changed=(".holdfast.toml is changed",),
        baselines=("a file",),
    )
    hidden = [remark(hidden="rule F821", severity="critical"), remark(hidden="known")]
    said = taken_out.describe_taken_out(narrowing, [*hidden, remark()], 80)
    assert "- By .holdfast.toml: files `a*b` (hides nothing more)" in said
    assert "because: be\\*cause (1 remark not listed, 1 of them critical)" in said
    assert "a threshold of 50, which has no effect" in said
    assert "**Known**: 1 remark not listed, by a file" in said
    assert "Not obeyed: unknown key" in said and "`.holdfast.toml` is changed." in said
    assert taken_out.describe_taken_out(Narrowing(), [remark()], 80) == ""


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("F281", "names like it: `F841`, `F821`, `F811`)"),
        ("b602", f"{NO}; names like it: `B602`"),
        (
            "securty:B602",
            f"{NO}; names like it: `security:B602`",
        ),
        ("bugs:B602", f"{NO}; names like it: `bugs:B"),
        (
            "complex-funktion",
            f"{NO}; names like it: `complex-function`",
        ),
        (
            "aws-acess-key",
            f"{NO}; names like it: `aws-access-key`",
        ),
        ("qqqqqqqqqq", f"{NO})"),
        ("F", f"{NO}; names"),
        ("F821", "hides nothing more)"),
        ("F501", "hides nothing more)"),
        ("PLE0101", "hides nothing more)"),
        ("security:B113", "hides nothing more)"),
        ("template-injection", "hides nothing more)"),
        ("complex-function", "hides nothing more)"),
        ("hot-spot", "hides nothing more)"),
        ("aws-access-key", "hides nothing more)"),
    ],
)
def test_a_rule_that_no_analyser_has_is_said_with_the_names_like_it(rule: str, said: str) -> None:
    narrowing = Narrowing(source=".holdfast.toml", rules_off={rule: "it is meant"})
    assert said in taken_out.describe_taken_out(narrowing, [remark()], 50)


def test_the_rules_of_the_page_s_tables_and_of_all_advice_are_known() -> None:
    for name, lens in analysers().items():
        rules = [
            *advice_of(name),
            *(row for row in lens.grades if " " not in row and not lens.rules),
        ]
        for rule in filter(None, rules):
            assert not rule_names.explain_unknown(f"{name}:{rule.partition('/')[0]}"), (
                f"{name}: {rule}"
            )


def test_a_rule_that_an_unknown_tool_reports_is_taken_out_without_a_word() -> None:
    narrowing = Narrowing(source=".holdfast.toml", rules_off={"new-rule": "it is meant"})
    said = taken_out.describe_taken_out(
        narrowing, [remark(rule="new-rule", hidden="rule new-rule")], 50
    )
    assert "(1 remark not listed)" in said


async def reviewed(bench: Bench, pinned: Any) -> Synthesis:
    draft = await bench.look_at("bugs", pinned)
    finding = Finding(subtask_id="bugs", status="complete", data=draft.data)
    return review(SynthesisMaterial(goal="x", min_confidence=0, findings=(finding,)))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.with_a_file(tmp_path / "repo")


@pytest.mark.anyio
async def test_settings_of_the_tree_count_for_all_of_it_and_lower_no_threshold(
    tmp_path: Path, repository: Repository
) -> None:
    repository.commit({"b.py": BAD, "legacy/c.py": BAD})
    bench = Bench(tmp_path)
    before = await reviewed(bench, await bench.pin(repository, scope="all"))
    repository.write(".holdfast.toml", TOML.replace("85", "1"))
    after = await reviewed(bench, await bench.pin(repository, scope="all"))
    assert len(before.data["remarks"]) == 4 and len(after.data["remarks"]) == 1  # type: ignore[arg-type]
    assert after.data["hidden"] == {"path legacy/": 2, "rule F821": 1}
    assert after.data["below_confidence"] == before.data["below_confidence"]
    assert "names come from a plug-in" in after.answer


@pytest.mark.anyio
async def test_a_change_of_the_settings_hides_nothing_of_the_same_change(
    tmp_path: Path, repository: Repository
) -> None:
    repository.commit({".holdfast.toml": "[review]\npaths_out = ['b.py']\n"})
    repository.git("checkout", "-q", "-b", "feature")
    repository.commit({"b.py": BAD, "c.py": BAD, ".holdfast.toml": "[review]\npaths_out=['*']\n"})
    bench = Bench(tmp_path)
    found = await reviewed(bench, await bench.pin(repository, scope="changed"))
    assert found.data["hidden"] == {"path b.py": 2}
    assert "`.holdfast.toml` is itself part of what changed: that of main counts." in found.answer
    assert "By .holdfast.toml of main: files `b.py`" in found.answer


@pytest.mark.anyio
async def test_a_clone_of_one_branch_hides_nothing_by_its_own_word(
    tmp_path: Path, repository: Repository
) -> None:
    repository.git("checkout", "-q", "-b", "pr")
    repository.commit({"b.py": BAD, ".holdfast.toml": "[review]\npaths_out = ['*']\n"})
    repository.git("checkout", "-q", "main")
    here = Repository(tmp_path / "here")
    address = f"file://{repository.path}"
    repository.git("clone", "-q", "--single-branch", "-b", "pr", address, str(here.path))
    bench = Bench(tmp_path)
    found = await reviewed(bench, await bench.pin(here, scope="changed"))
    assert found.data["hidden"] == {} and found.data["remarks"]
    assert ".holdfast.toml, because the clone lacks its main line" in found.answer
    assert "fetch it, or give base=REVISION" in found.answer


@pytest.mark.long
@pytest.mark.anyio
async def test_a_shallow_clone_without_a_base_hides_nothing_by_its_own_word(
    tmp_path: Path, repository: Repository
) -> None:
    repository.commit({"b.py": BAD})
    bench = Bench(tmp_path)
    finding = Finding(
        subtask_id="bugs", status="complete", data=(await bench.look("bugs", repository)).data
    )
    repository.git("checkout", "-q", "-b", "pr")
    repository.commit(
        {
            ".holdfast.toml": "[review]\npaths_out = ['*']\n",
            ".gitattributes": "*.py linguist-generated\n",
            baseline.NAME: baseline.write_baseline([finding], "")[0],
        }
    )
    here = Repository(tmp_path / "here")
    address = f"file://{repository.path}"
    repository.git("clone", "-q", "--depth", "1", "-b", "pr", address, str(here.path))
    found = await reviewed(bench, await bench.pin(here, scope="changed"))
    assert len(found.data["remarks"]) == 2 and found.data["hidden"] == {}  # type: ignore[arg-type]
    for name in (".holdfast.toml", baseline.NAME, ".gitattributes"):
        why = "the clone lacks its main line and nobody named a base: it may be part of the change"
        assert f"{name}, because {why}" in found.answer
    obeyed = await reviewed(bench, await bench.pin(here, scope="all"))
    assert obeyed.data["remarks"] == [], "whoever wants the whole tree gets it as it says"


@pytest.mark.anyio
async def test_settings_that_are_a_link_are_not_followed(
    tmp_path: Path, repository: Repository
) -> None:
    (tmp_path / "elsewhere").write_text(TOML)
    (repository.path / ".holdfast.toml").symlink_to(tmp_path / "elsewhere")
    repository.commit({"b.py": BAD})
    bench = Bench(tmp_path)
    found = await reviewed(bench, await bench.pin(repository, scope="all"))
    assert found.data["hidden"] == {}
    assert "Not obeyed: .holdfast.toml, because it is a link." in found.answer


# ---------------------------------------------------------------- baselines


def a_baseline(*known: str, **more: object) -> bytes:
    listed = dict.fromkeys(known, "bugs:F821 b.py")
    return json.dumps({"version": 1, "known": listed, **more}).encode()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"version": %s}' % (b"9" * 10_000), "not JSON"),
        (b"[]", "not a baseline of version 1"),
        (b'{"version": 2, "known": {}}', "not a baseline of version 1"),
        (b'{"version": 1, "known": []}', "lists nothing"),
        (b" " * (baseline.MOST_BYTES + 1), "larger than 1 MiB"),
    ],
)
def test_what_is_no_baseline_is_said(content: bytes, why: str) -> None:
    with pytest.raises(baseline.NoBaseline, match=why):
        baseline.read_fingerprints(content)


def test_of_a_baseline_only_fingerprints_are_taken() -> None:
    content = a_baseline("0123456789abcdef", "*", "0123456789ABCDEF", threshold=0)
    assert baseline.read_fingerprints(content) == {"0123456789abcdef"}


@pytest.mark.anyio
async def test_known_remarks_are_counted_when_lines_move_and_new_ones_are_listed(
    tmp_path: Path, repository: Repository
) -> None:
    repository.commit({"b.py": BAD})
    bench = Bench(tmp_path)
    draft = await bench.look("bugs", repository)
    finding = Finding(subtask_id="bugs", status="complete", data=draft.data)
    content, count = baseline.write_baseline([finding], "abc")
    assert count == len(remarks_of(draft)) == 2
    moved = f"# first\n\n{BAD}"
    repository.commit({"b.py": moved, baseline.NAME: content})
    found = await reviewed(bench, await bench.pin(repository, scope="all"))
    assert found.data["remarks"] == [] and found.data["hidden"] == {"known": 2}
    assert "**Known**: 2 remarks not listed" in found.answer
    # The same line once more is a defect more, and a line that was edited is another one.
    repository.write("b.py", f"{moved}print(nope)\ndef g(x=[]):\n    return x\n")
    found = await reviewed(bench, await bench.pin(repository, scope="changed"))
    remarks: Any = found.data["remarks"]
    assert [each["line"] for each in remarks] == [6, 7] and found.data["hidden"] == {}


@pytest.mark.anyio
async def test_a_change_of_the_baseline_hides_nothing_of_the_same_change(
    tmp_path: Path, repository: Repository
) -> None:
    bench = Bench(tmp_path)
    repository.git("checkout", "-q", "-b", "feature")
    repository.commit({"b.py": BAD})
    draft = await bench.look("bugs", repository)
    finding = Finding(subtask_id="bugs", status="complete", data=draft.data)
    repository.commit({baseline.NAME: baseline.write_baseline([finding], "")[0]})
    found = await reviewed(bench, await bench.pin(repository, scope="changed"))
    assert len(found.data["remarks"]) == 2 and found.data["hidden"] == {}  # type: ignore[arg-type]
    assert "`.holdfast-baseline.json` is itself part of what changed: main has none" in found.answer


@pytest.mark.anyio
async def test_the_fingerprint_of_a_credential_holds_nothing_of_its_line(
    tmp_path: Path, repository: Repository
) -> None:
    bench = Bench(tmp_path)
    marks = []
    for value in ("ghp_" + "a1B2" * 9, "ghp_" + "c3D4" * 9):
        repository.commit({"b.py": f'KEY = "{value}"\n'})
        (found,) = remarks_of(await bench.look("secrets", repository))
        marks.append(found.fingerprint)
    assert marks[0] == marks[1] != ""

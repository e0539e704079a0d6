"""`verify` and `countersign`: a file, a line for whatever is wrong with it, and an exit code."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from holdfast.cli.checks.kept import check_storage
from holdfast.cli.main import main
from holdfast.cli.screen.exits import Code
from holdfast.client.receipt_key import signing_key
from holdfast.deployment.settings import HOME, Settings
from holdfast.errors import EmbeddedError
from holdfast.receipts.signing import make_key, public_of, read_key
from receipted import OURS, receipt_of, report_of

CONTENT = receipt_of().dump()
KEY = public_of(OURS)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "receipt.json"
    path.write_bytes(CONTENT)
    return path


def test_a_whole_receipt_is_accounted_for(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(file), "--key", KEY, "--sentences"]) == Code.COMPLETE
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"✓ {file}: whole"
    assert said[2] == f"  signed by {KEY} (the key that you know)"
    assert "  anna approved the plan" in said and "“Rents fell [t2, t1].”" in said


def test_a_history_of_another_run_is_not_what_it_is_of(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = HOME / "tests" / "histories" / "a-steered-run.json"
    assert main(["verify", str(file), "--history", str(history)]) == Code.FAILED
    assert f"✗ {file}: it has no history of " in capsys.readouterr().err


def test_what_was_changed_is_said_and_ends_with_one(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_bytes(CONTENT.replace(b'"by":"anna","call":0', b'"by":"mallory","call":0'))
    assert main(["verify", str(file)]) == Code.FAILED
    changed = f"✗ {file}: order 1 was changed; it now says: approve by mallory\n"
    assert capsys.readouterr().err == changed
    file.write_bytes(CONTENT.replace(b"0", b"\xb0", 1))
    assert main(["verify", str(file)]) == Code.FAILED
    line = CONTENT[: CONTENT.index(b"0")].count(b"\n") + 1
    assert f"line {line} has a byte that is no ASCII, at column" in capsys.readouterr().err
    file.write_bytes(CONTENT)
    assert main(["verify", str(file), "--key", "0" * 64]) == Code.FAILED
    assert f"{KEY} signed it, which is not the key that you know" in capsys.readouterr().err


def test_a_signed_file_that_nobody_of_us_wrote_is_refused_in_a_line(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = receipt_of(report=report_of("r1", answer="It rose."), single="t7")
    file.write_bytes(odd.dump())
    assert main(["verify", str(file), "--sentences"]) == Code.FAILED
    assert capsys.readouterr() == ("", f"✗ {file}: it is signed, and no receipt of ours\n")
    file.write_bytes(receipt_of(steps=[]).dump().replace(b"{", b"[", 1))
    assert main(["verify", str(file)]) == Code.REFUSED
    assert "is no receipt: line 1 is not as in a receipt" in capsys.readouterr().err


def test_somebody_else_signs_too_and_can_be_asked_for(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pem = tmp_path / "auditor.pem"
    pem.write_bytes(make_key())
    auditor = public_of(read_key(pem.read_bytes()))
    assert main(["countersign", str(file), "--key-file", str(pem)]) == Code.COMPLETE
    assert main(["countersign", str(file), "--key-file", str(pem)]) == Code.COMPLETE
    assert main(["verify", str(file), "--countersigned-by", auditor]) == Code.COMPLETE
    assert capsys.readouterr().out.count("countersigned by") == 1
    assert main(["verify", str(file), "--countersigned-by", KEY]) == Code.FAILED
    assert "has not countersigned it" in capsys.readouterr().err
    lines = file.read_bytes().split(b"\n")
    assert json.loads(lines[4].rstrip(b",").partition(b":")[2])[0][0] == auditor
    file.write_bytes(b"\n".join(lines).replace(b"Rents fell", b"Rents rose"))
    assert main(["countersign", str(file), "--key-file", str(pem)]) == Code.FAILED
    assert "the answer was changed; nothing was signed" in capsys.readouterr().err


def test_keys_and_files_that_are_none_are_refused_in_a_line(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    big, text = tmp_path / "big.json", tmp_path / "text"
    text.write_text("words")
    with big.open("wb") as handle:
        handle.truncate(2**30)
    for arguments, why in (
        (["verify", str(big)], "big.json' is larger than 64 MiB; give a smaller one"),
        (["verify", str(text)], "is no receipt: line 1 is not as in a receipt"),
        (["verify", str(tmp_path / "none")], "there is no file"),
        (["verify", str(file), "--key", "abc"], "there is no file 'abc'; give 64 hexadecimal"),
        (["verify", str(file), "--key", str(text)], "is no public key: it is no public key in PEM"),
        (["verify", str(file), "--key", ""], "a public key is empty"),
        (["countersign", str(file), "--key-file", str(text)], "it is no private key in PEM"),
    ):
        assert main(arguments) == Code.REFUSED
        said = capsys.readouterr().err
        assert why in said and said.count("\n") == 1, said


def test_the_key_is_made_once_for_its_owner_alone_and_not_made_anew_when_it_is_damaged(
    tmp_path: Path,
) -> None:
    settings = Settings(state_dir=tmp_path / "state")
    first = public_of(signing_key(settings))
    path = tmp_path / "state" / "receipt.key"
    assert public_of(signing_key(settings)) == first and path.stat().st_mode & 0o777 == 0o600
    assert ("receipt key", "ok", first) in check_storage(settings)
    path.write_text("damaged")
    (line,) = (each for each in check_storage(settings) if each[0] == "receipt key")
    assert line[1] == "bad" and "it is no private key in PEM" in line[2]
    with pytest.raises(EmbeddedError, match="cannot be read"):
        signing_key(settings)
    path.unlink()
    os.symlink(tmp_path / "elsewhere", path)
    with pytest.raises(OSError):
        signing_key(settings)
    assert not (tmp_path / "elsewhere").exists()

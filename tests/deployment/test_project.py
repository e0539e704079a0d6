"""A folder of one's own: how it is found, what its settings do, and what is refused in it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.cli.commands.care import doctor
from holdfast.deployment import packages, project
from holdfast.deployment.packages import Brought
from holdfast.deployment.project import BadSettings
from holdfast.deployment.settings import HOME, Settings
from holdfast.embedded import EmbeddedError, identity, supervision
from holdfast.embedded.starting import first_endpoint
from holdfast.embedded.state import StateDir

pytestmark = pytest.mark.usefixtures("bare_environment")
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes a project with these settings, named on this machine unless it is a stranger's."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("HOLDFAST_STATE_DIR")
    monkeypatch.delenv("HOLDFAST_PROJECT", raising=False)

    def made(settings: str = "", name: str = "mine", *, trusted: bool = True) -> Path:
        folder = tmp_path / name
        (folder / "deep" / "er").mkdir(parents=True, exist_ok=True)
        (folder / project.FILE).write_text(settings)
        if trusted:
            project.trust(folder)
        return folder

    return made


def test_the_nearest_project_upwards_is_used_and_without_one_none(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert Settings().project is None
    outer = make('model_haiku = "outer"\n')
    monkeypatch.chdir(outer / "deep" / "er")
    assert (Settings().project, Settings().model_haiku) == (outer, "outer")
    inner = make('model_haiku = "inner"\n', "mine/deep")
    assert (Settings().project, Settings().model_haiku) == (inner, "inner")


def test_a_project_of_strangers_is_refused_until_somebody_names_it_or_goes_on_without(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(trusted=False)
    monkeypatch.chdir(folder)
    with pytest.raises(BadSettings, match=f"add --project {folder} once") as refused:
        Settings()
    assert "\n" not in str(refused.value)
    monkeypatch.setenv("HOLDFAST_PROJECT", "")
    assert Settings().project is None
    monkeypatch.setenv("HOLDFAST_PROJECT", str(folder))
    assert Settings().project == folder
    monkeypatch.delenv("HOLDFAST_PROJECT")
    project.trust(folder)
    assert Settings().project == folder


def test_neither_a_copy_of_a_trusted_project_is_trusted_nor_one_that_became_another_users(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make()
    assert project.is_trusted(folder)
    assert not project.is_trusted(make(name="copy", trusted=False))
    (project.state_of(folder) / "project").write_text("/another/of/that/name\n")
    assert not project.is_trusted(folder)
    project.trust(folder)
    if os.geteuid() == 0:
        os.chown(folder, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    assert not project.is_trusted(folder)


def test_the_environment_comes_before_the_secrets_file_and_that_before_the_shared_one(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make('model_haiku = "a"\nmodel_sonnet = "a"\nmodel_opus = "a"\nlog_level = ""\n')
    (folder / ".env").write_text("HOLDFAST_MODEL_SONNET=b\nHOLDFAST_MODEL_OPUS=b\n")
    monkeypatch.setenv("HOLDFAST_MODEL_OPUS", "c")
    monkeypatch.chdir(folder)
    found = Settings()
    assert (found.model_haiku, found.model_sonnet, found.model_opus) == ("a", "b", "c")
    assert found.log_level == "INFO", "empty is not set"


def test_a_setting_with_a_name_of_its_own_is_read_and_the_environment_still_comes_first(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(make('anthropic_base_url = "http://127.0.0.1:1"\n'))
    assert Settings().anthropic_base_url == "http://127.0.0.1:1"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:2")
    assert Settings().anthropic_base_url == "http://127.0.0.1:2"


def test_every_relative_path_starts_at_the_project_and_without_one_at_the_current_folder(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = 'price_file = "p.yaml"\nmcp_file = "m.json"\nstate_dir = "s"\nallowed_roots = ["r"]\n'
    folder = make(text)
    monkeypatch.chdir(folder / "deep")
    found = Settings()
    ours = (found.price_file, found.mcp_file, found.state_dir, *found.allowed_roots)
    assert ours == tuple(folder / name for name in ("p.yaml", "m.json", "s", "r"))
    assert not any(path.is_relative_to(HOME) for path in ours if path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_PRICE_FILE", "p.yaml")
    assert Settings().price_file == tmp_path / "p.yaml"
    monkeypatch.setenv("HOLDFAST_PROJECT", str(folder))
    assert Settings().price_file == folder / "p.yaml"


def test_a_worker_is_told_the_project_and_that_there_is_none(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert identity.worker_environment(Settings())["HOLDFAST_PROJECT"] == ""
    folder = make()
    monkeypatch.chdir(folder)
    told = identity.worker_environment(Settings())
    assert told["HOLDFAST_PROJECT"] == str(folder)
    assert told["HOLDFAST_MCP_FILE"] == str(folder / ".mcp.json")


def test_each_project_keeps_its_state_in_a_place_of_its_own(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    places = {Settings().state_dir}
    for folder in (make(), make(name="other"), make(name="deep/mine")):
        monkeypatch.chdir(folder)
        places.add(Settings().state_dir)
    assert len(places) == 4
    assert all(place.is_relative_to(tmp_path / "xdg" / "holdfast") for place in places)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model_haiku = ", "no TOML: "),
        pytest.param("workers = " + "[" * 9_000, "no TOML: ", id="nested"),
        pytest.param("workers = " + "9" * 9_000, "no TOML: ", id="long"),
        ('modl_haiku = "x"', "nothing reads modl_haiku (did you mean 'model_haiku'?)"),
        ('HOLDFAST_MODEL_HAIKU = "x"', "HOLDFAST_MODEL_HAIKU (did you mean 'model_haiku'?)"),
        ("[of]\nanother = 1", "nothing reads of; known: state_dir, "),
        ('idle_seconds = "soon"', "idle_seconds: input should be a valid integer"),
        ("idle_seconds = true", "idle_seconds: true and false say nothing here"),
        ("idle_seconds = 0", "idle_seconds: input should be greater than or equal to 1"),
        ('price_file = "~nobody-of-this-name/x"', "price_file: '~nobody-of-this-name/x' leads"),
        ('project = "."', "project: no effect, as the file is in that folder"),
        ('anthropic_api_key = "sk-ant-x"', "put it into .env beside it"),
        ('web_search = "brave:sk-ant-x"', "put it into .env beside it"),
        ('python_sandbox_key = "sk-ant-x"', "put it into .env beside it"),
        ('anthropic_base_url = "http://me:sk-ant-x@host"', "put it into .env beside it"),
    ],
)
def test_what_a_file_of_settings_cannot_say_is_refused_in_a_line_with_its_place_and_no_secret(
    text: str, said: str, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(text)
    monkeypatch.chdir(folder)
    # Although the environment says otherwise: it would be wrong the next time.
    monkeypatch.setenv("HOLDFAST_IDLE_SECONDS", "30")
    with pytest.raises(BadSettings) as refused:
        Settings()
    line = str(refused.value)
    assert str(folder / "holdfast.toml") in line and said in line
    assert "\n" not in line and "sk-ant-x" not in line


def test_a_project_that_is_named_and_is_none_is_refused(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for place in (tmp_path, tmp_path / "absent", Path("~nobody-of-this-name")):
        monkeypatch.setenv("HOLDFAST_PROJECT", str(place))
        with pytest.raises(BadSettings, match="is no project, as it holds no"):
            Settings()
    folder = make()
    monkeypatch.setenv("HOLDFAST_PROJECT", str(folder))
    (folder / ".env").write_text("HOLDFAST_PROJECT=elsewhere\n")
    with pytest.raises(BadSettings, match="HOLDFAST_PROJECT has no effect"):
        Settings()


def test_a_worker_is_another_one_when_a_file_of_the_project_or_a_package_is(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make()
    found = [identity.code_version(), identity.code_version(folder)]
    for name in ("roles/a.md", "playbooks/p/playbook.yaml", "tools/t.py", "tools/u/v.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
        found.append(identity.code_version(folder))
    (folder / "holdfast.toml").write_text("idle_seconds = 9\n")
    found.append(identity.code_version(folder))
    assert identity.code_version(folder) == found[-1]
    of = Brought("pack", "1.0", "holdfast.tools", "mine", "pack.tools")
    monkeypatch.setattr(identity, "list_entry_points", lambda: (of,))
    found.append(identity.code_version(folder))
    assert len({*found}) == len(found)


@pytest.mark.anyio
async def test_the_state_folder_of_one_project_serves_no_other(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    one, other = make(), make(name="other")
    ours = Settings(project=one, state_dir=shared)
    StateDir.of(ours).create()
    first = first_endpoint(StateDir.of(ours), str(one))
    StateDir.of(ours).write(first)
    supervision.refuse_other_project(StateDir.of(ours), first, ours)
    for theirs in (Settings(project=other, state_dir=shared), Settings(state_dir=shared)):
        with pytest.raises(EmbeddedError, match=f"is that of the project {one}"):
            supervision.ensure_up(theirs)
    assert supervision.status(ours).server_pid is None, "nothing was started"
    (told,) = [each async for each in doctor.check_deployment(Settings(state_dir=shared), True)]
    assert told.mark == "bad" and f"is that of the project {one}" in told.detail


def test_an_entry_point_that_names_no_folder_is_seen_without_running_it() -> None:
    def of(module: str) -> Brought:
        return Brought("pack", "1.0", "holdfast.roles", "mine", module)

    assert of("holdfast.activities").folder() == Path(packages.__file__).parents[1] / "activities"
    for module in ("holdfast.no_such", "no_such_package.roles", "holdfast.deployment.project"):
        assert of(module).folder() is None

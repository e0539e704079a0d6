"""A folder of one's own: how it is found, what its settings do, and what is refused in it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.cli.commands.care import doctor
from holdfast.cli.screen.exits import Code
from holdfast.deployment import packages, project
from holdfast.deployment.packages import Brought
from holdfast.deployment.settings import HOME, Settings
from holdfast.embedded import identity, supervision
from holdfast.embedded.starting import first_endpoint
from holdfast.embedded.state import StateDir
from holdfast.errors import BadSettings, EmbeddedError
from holdfast.intake.goals import Wish, goal_of
from holdfast.serving import worker

pytestmark = pytest.mark.usefixtures("bare_environment")
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes a project with these settings, named on this machine unless it is a stranger's."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("HOLDFAST_STATE_DIR")
    for name in ("HOLDFAST_PROJECT", "HOLDFAST_PROJECTS"):
        # Set first, so that it is taken away in the end whoever sets it.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)

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


@pytest.mark.parametrize("name", ["holdfast.toml", "prices.yaml", ".mcp.json"])
def test_a_file_of_a_project_that_is_a_link_to_itself_is_named_whatever_else_could_be_at_fault(
    name: str, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make()
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(name)
    monkeypatch.chdir(folder)
    with pytest.raises(
        BadSettings, match=rf"^settings: '{folder / name}' (cannot|leads)"
    ) as refused:
        Settings()
    assert "HOLDFAST_" not in str(refused.value) and "\n" not in str(refused.value)


def test_a_role_or_a_playbook_that_is_a_link_to_itself_is_named_and_stops_nothing_else(
    make: Make,
) -> None:
    folder = make()
    before = identity.code_version(folder)
    for name in ("roles/zz.md", "playbooks/zz/playbook.yaml"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).symlink_to(Path(name).name)
    assert identity.code_version(folder) == before, "a worker has no part of them"
    found = Catalogue.of(folder)
    bad = [*found.unusable_roles, *found.unusable_playbooks]
    named = sorted(each.why.partition(":")[0] for each in bad if each.source)
    assert named == ["playbook.yaml", "zz.md"]


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
        ("[of]\nanother = 1", "nothing reads of; known: project_name, state_dir, "),
        ('idle_seconds = "soon"', "idle_seconds: input should be a valid integer"),
        ('build_id = "a\\u0000b"', "build_id: holds a control character"),
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


@pytest.mark.parametrize("name", ["roles", "playbooks", "tools"])
def test_a_file_or_a_dead_link_where_a_folder_should_be_is_refused(
    name: str, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make()
    monkeypatch.chdir(folder)
    for put in (Path.touch, lambda path: path.symlink_to("nowhere")):
        put(folder / name)
        with pytest.raises(BadSettings, match=f"{name}' is not a folder; move it away"):
            Settings()
        (folder / name).unlink()
    Settings()


@pytest.mark.anyio
async def test_prices_of_ones_own_are_found_in_the_folder_and_doctor_says_what_they_price(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make()
    monkeypatch.chdir(folder)
    assert Settings().price_file is None
    (library,) = doctor.check_prices(Settings())
    assert library.mark == "ok" and "from genai-prices " in library.detail
    before = identity.code_version(folder)
    file = folder / "prices.yaml"
    file.write_text("mine: {input: 1, output: 2, cache_read: 0, cache_write: 1}\n")
    assert Settings().price_file == file
    assert identity.code_version(folder) != before, "its worker has other prices"
    assert doctor.check_prices(Settings())[0].detail == f"{file}: mine"
    file.write_text(f"dated: 2026-11-01\n{file.read_text()}")
    monkeypatch.setenv("HOLDFAST_MODEL_HAIKU", "nobodys")
    told, _, unknown = doctor.check_prices(Settings())
    assert (told.mark, told.detail) == ("ok", f"{file}: mine, of 2026-11-01")
    assert unknown.mark == "note" and "none known for nobodys:" in unknown.detail
    file.write_text("mine: {input: 1}\n")
    (told,) = doctor.check_prices(Settings())
    assert told.mark == "bad" and f"{str(file)!r}: mine" in told.detail
    make('price_file = "other.yaml"\n')
    assert Settings().price_file == folder / "other.yaml"
    make()
    file.unlink()
    file.symlink_to("nowhere")
    assert doctor.check_prices(Settings())[0].mark == "bad", "a link to nothing is not passed over"


# ---------------------------------------------------------------- one worker of several


@pytest.fixture
def several(make: Make, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two projects that one worker serves; one sets, and keeps secret, more than it can."""
    rich = make('model_haiku = "dear"\nmost_dollars_run = 3\ntask_queue = "rich"\n', "rich")
    (rich / ".env").write_text("ANTHROPIC_API_KEY=sk-ant-of-rich-alone\n")
    (rich / "prices.yaml").write_text("")
    plain = make(name="plain")
    monkeypatch.setenv("HOLDFAST_PROJECTS", f"{rich}{os.pathsep}{plain}")
    return rich, plain


def test_of_several_projects_each_has_its_prices_servers_and_cap_and_no_key_of_another(
    several: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rich, plain = several
    monkeypatch.setenv("HOLDFAST_MODEL_SONNET", "of-all")
    monkeypatch.chdir(tmp_path)
    found = Settings().by_project
    assert [*found] == ["", "plain", "rich"]
    for each in found.values():
        assert each.anthropic_api_key is None and each.secrets == ()
        assert (each.model_haiku, each.model_sonnet) == ("claude-haiku-5-5", "of-all")
        assert (each.task_queue, each.state_dir) == ("holdfast", project.state_of_several(several))
    assert found["rich"].mcp_file == rich / ".mcp.json"
    assert found["plain"].mcp_file == plain / ".mcp.json"
    assert found["rich"].price_file == rich / "prices.yaml"
    assert found["plain"].price_file is found[""].price_file is None
    assert found["rich"].most_dollars_run == 3
    assert found["plain"].most_dollars_run is found[""].most_dollars_run is None
    monkeypatch.chdir(rich)
    notes = {each.name: each.detail for each in doctor.list_folders(Settings())}
    assert notes["folder"] == f"{plain} (plain), served too"
    idle = "HOLDFAST_TASK_QUEUE, ANTHROPIC_API_KEY, HOLDFAST_MODEL_HAIKU"
    assert notes["settings"].endswith(f"several projects: {idle}")


def test_a_worker_of_several_is_the_same_whichever_of_them_a_command_is_typed_in(
    several: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-all-of-them")
    told = []
    for folder in (*several, several[0].parent):
        monkeypatch.chdir(folder)
        ours = Settings()
        environment = identity.worker_environment(ours)
        assert "HOLDFAST_MCP_FILE" not in environment
        told.append(
            (
                identity.code_version(*ours.folders),
                identity.model_environment(ours, "salt"),
                environment["HOLDFAST_PROJECT"],
                environment["HOLDFAST_PROJECTS"],
            )
        )
    assert len({*told}) == 1 and told[0][2] == ""
    (several[1] / "roles").mkdir()
    (several[1] / "roles" / "new.md").touch()
    assert identity.code_version(*Settings().folders) != told[0][0]
    (several[1] / ".mcp.json").write_text('{"mcpServers": {}}')
    assert identity.model_environment(Settings(), "salt") != told[0][1]


def test_two_projects_of_one_name_are_refused_until_one_is_called_otherwise(
    several: tuple[Path, Path], make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    rich, _ = several
    other = make(name="deep/rich")
    monkeypatch.setenv("HOLDFAST_PROJECTS", f"{rich}{os.pathsep}{other}")
    monkeypatch.chdir(rich)
    for caller in (supervision.ensure_up, supervision.up, supervision.status):
        with pytest.raises(BadSettings, match=f"{other} and {rich} are both called 'rich'; set"):
            caller(Settings())
    assert not Settings().state_dir.exists(), "nothing was started"
    make('project_name = "richer"\n', "deep/rich")
    assert [*Settings().by_project] == ["", "richer", "rich"]
    link = rich.parent / "link"
    link.symlink_to(rich)
    monkeypatch.setenv("HOLDFAST_PROJECTS", f"{rich}{os.pathsep}{link}")
    assert Settings().projects == (rich,), "a link is the folder that it leads to"


@pytest.mark.anyio
async def test_a_broken_tool_of_another_project_of_the_worker_refuses_runs_and_is_told_by_doctor(
    several: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rich, plain = several
    (plain / "tools").mkdir(exist_ok=True)
    (plain / "tools" / "bad.py").write_text("import no_such_module\n")
    monkeypatch.chdir(rich)
    settings = Settings()
    with pytest.raises(BadSettings, match=r"bad\.py:1: ModuleNotFoundError"):
        await goal_of(Wish("Count"), Catalogue.of(rich), settings, embedded=True)
    (rich / "tools").mkdir(exist_ok=True)
    (rich / "tools" / "worse.py").write_text("1 / 0\n")
    assert await doctor.run(settings, only_embedded=True) == Code.FAILED
    said = "".join(capsys.readouterr().out.split())
    assert "bad.py:1:ModuleNotFoundError" in said and "worse.py:1:ZeroDivisionError" in said
    assert "2thingsintheway" in said


def test_a_project_that_is_not_among_the_several_is_refused(
    several: tuple[Path, Path], make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make(name="other")
    monkeypatch.chdir(other)
    with pytest.raises(BadSettings, match=f"HOLDFAST_PROJECTS does not name the project {other}"):
        Settings()
    monkeypatch.setenv("HOLDFAST_PROJECTS", str(other / "absent"))
    with pytest.raises(BadSettings, match="is no project, as it holds no"):
        Settings()
    monkeypatch.setenv("HOLDFAST_PROJECTS", "")
    (other / ".env").write_text("HOLDFAST_PROJECTS=elsewhere\n")
    with pytest.raises(BadSettings, match=r"HOLDFAST_PROJECTS has no effect in \.env"):
        Settings()


def test_a_worker_serves_the_folders_that_it_is_told_and_no_others(
    several: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    rich, plain = several
    monkeypatch.setenv("HOLDFAST_PROJECT", str(rich))
    worker.serve_projects([])
    assert (Settings().projects, Settings().project) == ((plain, rich), None)
    worker.serve_projects([plain])
    assert (Settings().projects, Settings().project) == ((), plain)
    worker.serve_projects([plain, rich])
    assert (Settings().projects, Settings().project) == ((plain, rich), None)


def test_each_set_of_projects_has_a_state_folder_however_it_is_written(
    several: tuple[Path, Path], make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rich, plain = several
    other = make(name="other")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-all-of-them")

    def of(*folders: Path) -> tuple[Path, str]:
        monkeypatch.setenv("HOLDFAST_PROJECTS", os.pathsep.join(map(str, folders)))
        found = Settings()
        return found.state_dir, identity.model_environment(found, "salt")

    ours = of(rich, plain)
    assert ours == of(plain, rich) == of(rich, plain, rich), "the same worker, in the same place"
    sets = [ours, of(rich, other), of(plain, other), of(rich), of(rich, plain, other)]
    assert len({place for place, _ in sets}) == len(sets), "no command replaces another's worker"
    assert project.state_of(rich) not in {place for place, _ in sets}


def test_the_state_folder_of_several_is_neither_one_of_theirs_nor_another_sets(
    several: tuple[Path, Path], make: Make, tmp_path: Path
) -> None:
    rich, plain = several
    place = tmp_path / "shared"
    state = StateDir(place)
    state.create()
    state.write(first_endpoint(state, f"several projects: {plain}{os.pathsep}{rich}"))
    for each in (rich, plain):
        shared = Settings(project=each, projects=(rich, plain), state_dir=place)
        supervision.refuse_other_project(state, state.endpoint(), shared)
    alone = Settings(project=rich, projects=(), state_dir=place)
    others = Settings(project=rich, projects=(rich, make(name="other")), state_dir=place)
    for stranger in (alone, others):
        with pytest.raises(EmbeddedError, match=f"is that of several projects: {plain}:{rich}: "):
            supervision.ensure_up(stranger)


def test_an_entry_point_that_names_no_folder_is_seen_without_running_it() -> None:
    def of(module: str) -> Brought:
        return Brought("pack", "1.0", "holdfast.roles", "mine", module)

    assert of("holdfast.activities").folder() == Path(packages.__file__).parents[1] / "activities"
    for module in ("holdfast.no_such", "no_such_package.roles", "holdfast.deployment.project"):
        assert of(module).folder() is None

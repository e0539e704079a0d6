"""This deployment's environment: what an operator may set, by environment variable, in `.env` of
the project's folder, or, but for secrets, in its `holdfast.toml`; the first of them decides.

Workflows never read it; what varies between deployments enters a run through the Briefing.
Temporal's own variables (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS…,
TEMPORAL_PROFILE) are read by Temporal's client library; `uses_own_server` only asks whether any of
them is set.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from decimal import Decimal
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationInfo,
)
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from holdfast.deployment import project as own
from holdfast.deployment.address import in_headers, withheld_of
from holdfast.deployment.hooks import signable
from holdfast.deployment.pacing import read_in_flight, read_rates
from holdfast.deployment.places import (
    findable,
    level,
    listening,
    model_id,
    own_address,
    plain_name,
    safely_reached,
    searched_by,
    sendable,
    understood,
    web_address,
    with_test,
)
from holdfast.errors import BadSettings
from holdfast.text.mistakes import suggest
from holdfast.untrusted.folders import Unreadable, read_named

NAME = "holdfast"
PACKAGE = Path(__file__).resolve().parents[1]
HOME = PACKAGE if (PACKAGE / "roles").is_dir() else PACKAGE.parent
"""The folder of the shipped roles, prompts and playbooks, which a wheel carries inside the package:
the repository in a checkout.
"""
FILE_BYTES = 1024 * 1024
"""The largest file of settings, ours or Temporal's; a thousandth of it is usual."""
PREFIX = "HOLDFAST_"
OTHERS = ("HOLDFAST_DEBUG", "HOLDFAST_REPOSITORIES")
"""No settings, and no mistakes: the starter reads the one, docker-compose.yml the other."""
_SECRETS_OF_OTHERS = ("TEMPORAL_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy")
OF_MODELS = "decides which model is asked, for how much, and what its tools reach"
"""Marks a field: a worker is replaced where such a setting has changed."""
OF_PROJECT = "holds for the runs of its project alone"
"""Marks a field that each project sets for itself, also where one worker serves several."""


class UnknownSetting(BadSettings):
    """A variable with our prefix that nothing reads, so that it would have no effect."""


def _defaults_in(project: Path) -> dict[str, Path]:
    found = {"mcp_file": project / ".mcp.json"}
    # Also a link that leads nowhere: that a price is not found is said, not passed over.
    prices = project / own.PRICES
    found |= {"price_file": prices} if os.path.lexists(prices) else {}
    for path in found.values():
        try:
            findable(path)
        except ValueError as error:
            raise BadSettings(f"settings: {error}; put it right or move it away") from error
    return found | {"state_dir": own.state_of(project)}


def _half_of_the_cores() -> int:
    # The server computes about as much as the workers do.
    return min(64, max(1, (os.cpu_count() or 1) // 2))


def _split_paths(value: object) -> object:
    return tuple(value.split(os.pathsep)) if isinstance(value, str) else value


def _absolute(path: Path, info: ValidationInfo) -> Path:
    """Return a path below the project's folder, without one below the current folder: a worker has
    another working directory than the starter that hands its settings on.
    """
    path = findable(path).expanduser()
    if path.is_absolute():
        return path
    project = (info.data or {}).get("project")
    try:
        return Path(project or Path.cwd()) / path
    except OSError:
        raise ValueError("is a relative path, and the current folder is gone") from None


def _split_and_absolute(value: tuple[Path, ...], info: ValidationInfo) -> tuple[Path, ...]:
    return tuple(_absolute(each, info) for each in value)


_ModelId = Annotated[str, AfterValidator(model_id)]
_Dollars = Annotated[Decimal, Field(ge=0, le=1_000_000)]
_Place = Annotated[Path, AfterValidator(_absolute)]


class Settings(BaseSettings):
    """Each field is one variable: `HOLDFAST_` + its name, or its alias. Its description, and its
    example or else its default, are printed into `.env.example`.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=HOME / ".env",
        extra="ignore",
        frozen=True,
        env_ignore_empty=True,
    )

    project: Annotated[Path | None, OF_MODELS] = Field(
        None,
        examples=["~/reports"],
        description="Your project's folder. Unset: the nearest with a holdfast.toml, from the"
        " current folder upwards. Set to nothing: no project. Not read from .env.",
    )
    projects: Annotated[tuple[Path, ...], NoDecode, OF_MODELS] = Field(
        (),
        examples=["~/reports:~/letters"],
        description="Projects that one worker serves, separated by ':'. All settings but a"
        " project's name, prices, MCP servers and most_dollars_run are then the environment's.",
    )
    project_name: Annotated[str, AfterValidator(plain_name), OF_MODELS, OF_PROJECT] = Field(
        "",
        examples=["reports"],
        description="What runs call your project, and its worker too. Default: its folder's name.",
    )
    state_dir: _Place = Field(
        default_factory=own.state_home,
        description="Everything the embedded server keeps; each project has a folder of its own.",
    )
    store_url: str = Field(
        "",
        validation_alias=AliasChoices("STORE_URL", "store_url"),
        description="With a server of your own: the shared folder or bucket for payloads above"
        " 6 KiB. More addresses, after a space: where it was before, only read.",
        examples=["file:///srv/holdfast/store", "s3://bucket/prefix", "gs://bucket/prefix"],
    )
    shared_journal: bool = Field(
        False,
        description="Keep models' answers in STORE_URL, too: a worker on another machine finds what"
        " is paid. One request to the store a call.",
        examples=["true"],
    )
    payload_key_file: _Place | None = Field(
        None,
        examples=["~/holdfast.keys"],
        description="Keys that encrypt histories, store and journal: lines `ID KEY`, 32 bytes in"
        " Base64; all read, the last writes. Mode 0600.",
    )
    task_queue: str = Field(NAME, description="Task queue on a server of your own.")
    allowed_roots: Annotated[
        tuple[Path, ...],
        NoDecode,
        BeforeValidator(_split_paths),
        AfterValidator(_split_and_absolute),
    ] = Field(
        (),
        description="Folders from which a goal may name files and repositories, separated by ':'.",
    )
    anthropic_api_key: Annotated[SecretStr | None, AfterValidator(sendable), OF_MODELS] = Field(
        None,
        validation_alias=AliasChoices("ANTHROPIC_API_KEY", "anthropic_api_key"),
        description="Key of the model endpoint. Without key or address no model is asked.",
    )
    anthropic_base_url: Annotated[str, AfterValidator(web_address), OF_MODELS] = Field(
        "",
        validation_alias=AliasChoices("ANTHROPIC_BASE_URL", "anthropic_base_url"),
        description="Address of another endpoint with the Messages API, without /v1.",
        examples=["http://127.0.0.1:8080"],
    )
    model_haiku: Annotated[_ModelId, OF_MODELS] = Field(
        "claude-haiku-5-5", description="Model id of the haiku tier."
    )
    model_sonnet: Annotated[_ModelId, OF_MODELS] = Field(
        "claude-sonnet-5-5", description="Model id of the sonnet tier."
    )
    model_opus: Annotated[_ModelId, OF_MODELS] = Field(
        "claude-opus-5-5", description="Model id of the opus tier."
    )
    model_planner: Annotated[_ModelId | None, OF_MODELS] = Field(
        None,
        examples=["claude-opus-5-5"],
        description="Model id that plans and changes plans. Default: the sonnet tier's.",
    )
    rate: Annotated[str, AfterValidator(read_rates), OF_MODELS] = Field(
        "",
        examples=["haiku=60/min, sonnet=20/min"],
        description="Calls of a tier that leave at most, evenly, in a second (s), a minute (min) or"
        " an hour (h), for each state directory.",
    )
    in_flight: Annotated[str, AfterValidator(read_in_flight), OF_MODELS] = Field(
        "",
        examples=["haiku=5"],
        description="Calls of a tier that are under way at most, for each state directory.",
    )
    price_file: Annotated[_Place | None, OF_MODELS, OF_PROJECT] = Field(
        None,
        description="YAML with prices that override the library's. Default: the project's"
        " prices.yaml, if it has one.",
    )
    capabilities: Annotated[str, AfterValidator(understood), OF_MODELS] = Field(
        "auto",
        description="What the endpoint can do: auto, full, none, or a list of schemas, effort,"
        " counting, caching.",
    )
    web_search: Annotated[SecretStr | None, AfterValidator(searched_by), OF_MODELS] = Field(
        None, description="Provider of web_search: brave:KEY, tavily:KEY or searxng:ADDRESS."
    )
    endpoint_web: Annotated[bool, OF_MODELS] = Field(
        False,
        examples=["true"],
        description="Let the endpoint search and read the web itself, which it also bills.",
    )
    python_sandbox: Annotated[str, AfterValidator(safely_reached), OF_MODELS] = Field(
        "",
        examples=["https://sandbox.example/run"],
        description="A sandbox elsewhere for run_python; docs/tools.md has its protocol. Empty: the"
        " sandbox of this machine.",
    )
    python_sandbox_key: Annotated[SecretStr | None, AfterValidator(sendable), OF_MODELS] = Field(
        None, description="Bearer token for that sandbox."
    )
    test_command: Annotated[str, AfterValidator(with_test), OF_MODELS, OF_PROJECT] = Field(
        "",
        examples=["python3 -m pytest -q {test}"],
        description="Lets a review with models run a test that a model wrote, and so the code under"
        " review, without network in a tree of its own. {test} is the test's path.",
    )
    test_folders: Annotated[
        tuple[Path, ...],
        NoDecode,
        BeforeValidator(_split_paths),
        AfterValidator(_split_and_absolute),
        OF_MODELS,
        OF_PROJECT,
    ] = Field(
        (),
        examples=["~/.cargo"],
        description="Folders that this command may read beside the system's, separated by ':'.",
    )
    mcp_file: Annotated[_Place, OF_MODELS, OF_PROJECT] = Field(
        HOME / ".mcp.json",
        examples=[".mcp.json"],
        description="The MCP servers whose tools roles may name.",
    )
    webhook_secret: Annotated[SecretStr | None, AfterValidator(signable), OF_MODELS] = Field(
        None, description="Signs the web hooks of runs (--notify): whsec_ and random base64."
    )
    webhook_private: Annotated[bool, OF_MODELS] = Field(
        False,
        examples=["true"],
        description="Lets web hooks of runs go to addresses that are not public, and without TLS.",
    )
    idle_seconds: int = Field(
        60, ge=1, description="The embedded server stops after this many seconds without use."
    )
    keep_megabytes: int = Field(
        2_000,
        ge=50,
        description="MB to keep of store, journal, reports, edits and snapshots, each.",
    )
    most_dollars_run: Annotated[_Dollars | None, OF_MODELS, OF_PROJECT] = Field(
        None,
        examples=["5"],
        description="Dollars above which no run may go; models without a price are refused then.",
    )
    most_dollars_day: Annotated[_Dollars | None, OF_MODELS] = Field(
        None,
        examples=["50"],
        description="Dollars above which no call is sent in a day (UTC), by all workers together.",
    )
    most_dollars_month: Annotated[_Dollars | None, OF_MODELS] = Field(
        None, examples=["900"], description="The same for a calendar month (UTC)."
    )
    workers: int = Field(
        default_factory=_half_of_the_cores,
        ge=1,
        le=64,
        examples=["1"],
        description="Processes of a worker. Default: half as many as there are cores.",
    )
    serves: Literal["all", "runs", "tools"] = Field(
        "all",
        description="With a server of your own: what a worker takes from it. runs: runs and calls"
        " of models; tools: tools, lenses and preparations.",
    )
    pin_runs: bool = Field(
        False,
        examples=["true"],
        description="With a server of your own: a run is finished by the build of the worker that"
        " began it. `deploy` says which build takes new ones.",
    )
    health: Annotated[str, AfterValidator(listening)] = Field(
        "",
        examples=["127.0.0.1:8080"],
        description="ADDRESS:PORT at which a worker answers /live and /ready; empty: nowhere.",
    )
    metrics_port: int = Field(
        0, ge=0, le=65_000, description="Port at metrics_address for Prometheus; 0: none."
    )
    metrics_address: Annotated[str, AfterValidator(own_address)] = Field(
        "127.0.0.1",
        examples=["0.0.0.0"],
        description="Where Prometheus is answered: elsewhere only if all who reach it may read it.",
    )
    log_level: Annotated[str, AfterValidator(level)] = Field(
        "INFO", description="Level of the JSON log files."
    )
    web_ui: Annotated[str, AfterValidator(web_address)] = Field(
        "",
        examples=["http://localhost:8233"],
        description="With a server of your own: the address of its Web UI, for links.",
    )
    build_id: str = Field(
        "",
        description="Build id of the worker. Default: this version; with pin_runs and a digest of"
        " the code.",
    )

    def __init__(self, **given: Any) -> None:
        projects = given.setdefault("projects", own.find_several())
        project = own.resolve_named(Path(given["project"])) if given.get("project") else None
        given["project"] = project = project if "project" in given else own.find_project(projects)
        if project is not None and projects and project not in projects:
            raise BadSettings(
                f"settings: {own.SEVERAL} does not name the project {project}; add it there, or set"
                f" {own.SEVERAL}= to use it alone"
            )
        if project is not None and not projects:
            given.setdefault("_env_file", project / ".env")
        file = given.get("_env_file", self.model_config.get("env_file"))
        if file is not None:
            _check_file(Path(file))
        super().__init__(**given)

    @classmethod
    def of(cls, project: str | Path | None, **given: Any) -> Self:
        """Return the settings of a project's folder, or without one those of where this process
        is. BadSettings if it is none.
        """
        return cls(**given) if project is None else cls(project=Path(project), **given)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return pydantic's own sources after checking that each of their variables is read."""
        for source in (env_settings, dotenv_settings):
            if isinstance(source, EnvSettingsSource):
                _refuse_unknown(source.env_vars)
        _refuse_project(dotenv_settings)
        assert isinstance(init_settings, InitSettingsSource)
        project, projects = map(init_settings.init_kwargs.get, ("project", "projects"))
        file: dict[str, Any] = {}
        if project:
            file = _defaults_in(project) | own.read_values(project, cls.model_fields)
        if projects:
            # No key, cap or endpoint of one project is another's.
            file = {name: value for name, value in file.items() if cls.is_of_project(name)}
            file["state_dir"] = own.state_of_several(projects)
        ours = InitSettingsSource(settings_cls, init_kwargs=file)
        return init_settings, env_settings, dotenv_settings, ours, file_secret_settings

    @classmethod
    def variable(cls, name: str) -> str:
        """Return the environment variable that sets a field."""
        alias = cls.model_fields[name].validation_alias
        if isinstance(alias, AliasChoices):
            return str(alias.choices[0])
        return f"{cls.model_config['env_prefix']}{name.upper()}"

    def key(self, name: str) -> str:
        """Return the value of a setting that a tool needs; empty if it is not set. LookupError if
        there is no such setting.
        """
        if name not in type(self).model_fields:
            raise LookupError(
                f"there is no setting {name!r}{suggest(name, type(self).model_fields)}; a key of"
                " your own is read from os.environ"
            )
        value = getattr(self, name)
        return value.get_secret_value() if isinstance(value, SecretStr) else str(value or "")

    @classmethod
    def is_of_models(cls, name: str) -> bool:
        """True for a field that decides which model is asked, and at what price."""
        return OF_MODELS in cls.model_fields[name].metadata

    @classmethod
    def is_of_project(cls, name: str) -> bool:
        """True for a field that each project sets for itself."""
        return OF_PROJECT in cls.model_fields[name].metadata

    @property
    def folders(self) -> tuple[Path, ...]:
        """Projects that a worker with these settings serves. BadSettings as `by_project`."""
        return tuple(each.project for each in self.by_project.values() if each.project)

    @property
    def name(self) -> str:
        """What runs call the project; empty without one."""
        return self.project_name or (own.name_of(self.project) if self.project else "")

    @cached_property
    def by_project(self) -> Mapping[str, Settings]:
        """The settings for the runs of each project that a worker serves, by its name; of several,
        first those of runs that name none, under an empty one. BadSettings for two of one name.
        """
        if not self.projects:
            return {self.name: self}
        found = {"": self._for(None)}
        for each in map(self._for, self.projects):
            if other := found.get(each.name):
                raise BadSettings(
                    f"settings: the projects {other.project} and {each.project} are both called"
                    f" {each.name!r}; set project_name in the {own.FILE} of one"
                )
            found[each.name] = each
        return found

    def check_projects(self) -> None:
        """Raise BadSettings as `by_project`."""
        _ = self.by_project

    def _for(self, project: Path | None) -> Settings:
        theirs = type(self)(project=project, projects=self.projects)
        names = ["project", *filter(self.is_of_project, type(self).model_fields)]
        return self.model_copy(update={name: getattr(theirs, name) for name in names})

    def list_idle(self, project: Path) -> tuple[str, ...]:
        """Return the variables of what a project sets in vain, as its worker serves several."""
        _check_file(project / ".env")
        file = DotEnvSettingsSource(type(self), env_file=project / ".env")()
        made = {*file, *own.read_values(project, type(self).model_fields)}
        return tuple(
            self.variable(name)
            for name in type(self).model_fields
            if not self.is_of_project(name) and made & {name, self.variable(name)}
        )

    def as_variables(self) -> dict[str, str]:
        """Return every setting by its environment variable, secrets included; empty string for
        None.
        """
        return {
            self.variable(name): as_text(getattr(self, name)) for name in type(self).model_fields
        }

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the values that no log, screen or history may show: keys, and secret parts of
        addresses.
        """
        key = self.anthropic_api_key
        found = [key.get_secret_value()] if key else []
        if self.web_search:
            found.append(self.web_search.get_secret_value().partition(":")[2])
        if self.python_sandbox_key:
            found.append(self.python_sandbox_key.get_secret_value())
        if self.webhook_secret:
            found.append(self.webhook_secret.get_secret_value())
        found += [os.environ.get(name, "") for name in _SECRETS_OF_OTHERS]
        found += in_headers(os.environ)
        addresses = [
            self.anthropic_base_url,
            self.python_sandbox,
            *(os.environ.get(name, "") for name in _PROXIES),
        ]
        found += [value for url in addresses for value in withheld_of(url)]
        return tuple(dict.fromkeys(value for value in found if value))

    @property
    def uses_own_server(self) -> bool:
        """True if Temporal's own variables name a server, which is then not ours to start."""
        return any(
            os.environ.get(name)
            for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE")
        )

    @property
    def has_endpoint(self) -> bool:
        """True if a model can be asked at all."""
        return self.anthropic_api_key is not None or bool(self.anthropic_base_url)

    @property
    def key_file(self) -> str:
        """Return the file of the keys that encrypt; empty: nothing is encrypted."""
        return str(self.payload_key_file or "")

    @property
    def capped_by(self) -> str:
        """Return the variable that bounds the dollars of this deployment; empty if none does."""
        caps = ("most_dollars_day", "most_dollars_month", "most_dollars_run")
        held = (name for name in caps if getattr(self, name) is not None)
        return next(map(self.variable, held), "")


def as_text(value: object) -> str:
    """Return the value of a setting as its variable has it; empty for None."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, tuple):
        return os.pathsep.join(map(str, value))
    # Zero is an amount.
    return "" if value is None else str(value)


def _check_file(path: Path) -> None:
    """Raise BadSettings for a `.env` that is no readable text file: python-dotenv would block on a
    FIFO.
    """
    if not os.path.lexists(path):
        return
    try:
        text = read_named(path, FILE_BYTES)
    except Unreadable as error:
        raise BadSettings(f"settings: {error}; put it right or move it away") from error
    before, found, _ = text.partition("\0")
    if found:
        line = before.count("\n") + 1
        raise BadSettings(f"settings: {str(path)!r} holds a NUL in line {line}; take it out")


def _refuse_unknown(given: Mapping[str, str | None]) -> None:
    """Raise UnknownSetting for a variable that is set, has our prefix and is read by nothing."""
    read = [*(Settings.variable(name) for name in Settings.model_fields), *OTHERS]
    # On Linux and macOS the sources hand names on in small letters, and read them in any.
    names = [name.upper() for name, value in given.items() if value]
    unread = sorted(name for name in names if name.startswith(PREFIX) and name not in read)
    if unread:
        said = "; ".join(_unread(name, read) for name in unread)
        raise UnknownSetting(f"settings: {said}; correct the environment or .env")


def _refuse_project(file: PydanticBaseSettingsSource) -> None:
    for name in (own.VARIABLE, own.SEVERAL):
        if isinstance(file, EnvSettingsSource) and file.env_vars.get(name.lower()):
            raise BadSettings(
                f"settings: {name} has no effect in .env, which is the project's own; set it in"
                " the environment"
            )


def _unread(name: str, read: list[str]) -> str:
    bare = name.removeprefix(PREFIX)
    near = [bare] if bare in read else get_close_matches(name, read, 1)
    return f"nothing reads {name}" + (f" (the nearest is {near[0]})" if near else "")

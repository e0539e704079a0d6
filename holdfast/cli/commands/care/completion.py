"""`completion`: the function that lets a shell complete this program."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated, Literal

import typer

from holdfast.cli.screen.exits import Code
from holdfast.cli.screen.streams import put
from holdfast.cli.shared.completion import VARIABLE
from holdfast.deployment.invocation import STARTER
from holdfast.deployment.settings import HOME, NAME

SCRIPTS = {
    "bash": """\
{name}() {{ {program} "$@"; }}
_{name}() {{
  local IFS=$'\\n'
  COMPREPLY=($(COMP_WORDS="${{COMP_WORDS[*]}}" COMP_CWORD=$COMP_CWORD {variable}=complete_bash \\
    {name} 2>/dev/null))
  [[ ${{COMPREPLY[0]}} == *= ]] && compopt -o nospace
}}
complete -o default -F _{name} {name}
""",
    "zsh": """\
{name}() {{ {program} "$@"; }}
_{name}() {{
  eval "$(_TYPER_COMPLETE_ARGS="${{words[1,$CURRENT]}}" {variable}=complete_zsh {name} 2>/dev/null)"
}}
compdef _{name} {name}
""",
}


def command(
    shell: Annotated[Literal["bash", "zsh"], typer.Argument(metavar="SHELL", help="bash or zsh.")],
) -> int:
    """Print a shell function for this starter, with completion of commands, runs and subtasks."""
    program = f"{shlex.quote(sys.executable)} {shlex.quote(str(HOME / 'starter.py'))}"
    if STARTER == NAME:
        program = f"command {NAME}"
    put(SCRIPTS[shell].format(name=NAME, program=program, variable=VARIABLE).rstrip("\n"))
    return Code.COMPLETE

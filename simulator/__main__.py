"""`python -m holdfast.simulator [--script FILE | --cassette FILE]`: serve by hand until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import signal
import sys
from pathlib import Path

try:
    from holdfast.replaying.cassette import Cassette, CassetteError
    from holdfast.simulator.script import Script, ScriptError, read_script
    from holdfast.simulator.server import Simulator
except ModuleNotFoundError as error:
    sys.exit(f"{error.name} is not installed for {sys.executable}; run make setup")


def main() -> int:
    """Exit code 2 for a file that cannot be used and a port that is taken, 1 if
    something was asked that is not on the cassette.
    """
    parser = argparse.ArgumentParser(prog="python -m holdfast.simulator", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="an address of this machine")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument(
        "--script",
        type=Path,
        help="YAML; without it every call succeeds at once, and agents list their files first",
    )
    parser.add_argument("--cassette", type=Path, help="answers of models, from a file")
    parser.add_argument(
        "--memory", type=Path, help="file that keeps what was charged, should this be killed"
    )
    parser.add_argument(
        "--requests", type=Path, help="file that gets each request, a line of JSON each"
    )
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    try:
        script = read_script(arguments.script) if arguments.script else Script(looks=True)
        cassette = Cassette.read(arguments.cassette) if arguments.cassette else None
        if arguments.requests:
            arguments.requests.touch()
        asyncio.run(_serve(script, cassette, arguments))
    # A port that no machine has is an OverflowError.
    except (ScriptError, CassetteError, OSError, OverflowError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if cassette is not None and (said := cassette.complain()):
        sys.stderr.write(f"{said}\n")
        return 1
    return 0


async def _serve(script: Script, cassette: Cassette | None, arguments: argparse.Namespace) -> None:
    left = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, left.set)
    if arguments.child:
        # Its other end is closed with whoever started this, however that ends.
        loop.add_reader(sys.stdin, left.set)
    async with Simulator(
        script,
        host=arguments.host,
        port=arguments.port,
        memory=arguments.memory,
        requests=arguments.requests,
        cassette=cassette,
    ) as simulator:
        named = {
            "ANTHROPIC_BASE_URL": simulator.url,
            "ANTHROPIC_API_KEY": script.key or "scripted-key",
            **(cassette.settings if cassette else {}),
        }
        lines = [f"export {name}={shlex.quote(value)}" for name, value in named.items()]
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
        await left.wait()


if __name__ == "__main__":
    sys.exit(main())

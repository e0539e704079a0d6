"""Machines in one: a bridge, and network namespaces that reach nothing but it and each other."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from holdfast.errors import Refused

NET = "198.18.{}"
"""Of the addresses that are set aside for measurements (RFC 2544)."""


@dataclass(frozen=True)
class Network:
    """The machines by name: the first is for the server, the others for a worker each. Endpoint and
    store listen at the address of the bridge.
    """

    address: str
    names: tuple[str, ...]
    addresses: tuple[str, ...]

    def within(self, machine: int) -> tuple[str, ...]:
        """Return what stands before a command that this machine is to run; it keeps its pid."""
        return ("ip", "netns", "exec", self.names[machine])


@contextmanager
def networked(machines: int) -> Iterator[Network]:
    """Yield a machine for the server and so many for workers, gone when the block ends.
    Refused where that is not permitted.
    """
    mark = os.getpid()
    net = NET.format(mark % 256)
    bridge = f"hf{mark}"
    numbers = range(2, machines + 3)
    network = Network(
        f"{net}.1",
        tuple(f"holdfast-{mark}-{number}" for number in numbers),
        tuple(f"{net}.{number}" for number in numbers),
    )
    with ExitStack() as made:
        _ip("link", "add", bridge, "type", "bridge")
        made.callback(_undo, "link", "del", bridge)
        _ip("addr", "add", f"{network.address}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for number, name, address in zip(numbers, network.names, network.addresses, strict=True):
            outside, inside = f"hf{mark}.{number}", "eth0"
            _ip("netns", "add", name)
            made.callback(_undo, "netns", "del", name)
            _ip("link", "add", outside, "type", "veth", "peer", "name", inside, "netns", name)
            made.callback(_undo, "link", "del", outside)
            _ip("link", "set", outside, "master", bridge, "up")
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", inside)
            _ip("-n", name, "link", "set", inside, "up")
            _ip("-n", name, "link", "set", "lo", "up")
        yield network


def _ip(*arguments: str) -> None:
    try:
        done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Refused("no network namespaces here: there is no program `ip`") from None
    if done.returncode:
        said = " ".join(done.stderr.split())
        raise Refused(
            f"no network namespaces here: `ip {' '.join(arguments)}` says: {said}; run this as root"
            " on Linux"
        )


def _undo(*arguments: str) -> None:
    # What is gone already is no reason to leave the rest.
    subprocess.run(["ip", *arguments], capture_output=True, check=False)

"""The embedded server and worker: two background processes that belong to a state directory, not to
whoever started them.

    with lease(settings):                       # first: an idle server is not stopped under us
        endpoint = ensure_up(settings)          # blocking; from async code by asyncio.to_thread
        client = await connect(endpoint.target)
        ...                                     # and every 2 s: ensure_up(settings, "watcher")
"""

from holdfast.embedded.allowed import count_unreadable, read_registered, register_root
from holdfast.embedded.server import probe_local
from holdfast.embedded.state import Endpoint, StateDir, embedded_target, lease
from holdfast.embedded.supervision import Programs, Status, down, ensure_up, status, up

__all__ = [
    "Endpoint",
    "Programs",
    "StateDir",
    "Status",
    "count_unreadable",
    "down",
    "embedded_target",
    "ensure_up",
    "lease",
    "probe_local",
    "read_registered",
    "register_root",
    "status",
    "up",
]

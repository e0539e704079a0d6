"""The embedded server and worker: two background processes that belong to a state directory, not
to whoever started them.

    with lease(settings):                       # first: an idle server is not stopped under us
        endpoint = ensure_up(settings)          # blocking; from async code by asyncio.to_thread
        client = await connect(endpoint.target)
        ...                                     # and every 2 s: ensure_up(settings, "watcher")
"""

from orchestrator.embedded.allowed import register_root, registered, unreadable
from orchestrator.embedded.server import probe_local
from orchestrator.embedded.state import Endpoint, StateDir, lease
from orchestrator.embedded.supervision import Programs, Status, down, ensure_up, status, up
from orchestrator.embedded.trouble import EmbeddedError

__all__ = [
    "EmbeddedError",
    "Endpoint",
    "Programs",
    "StateDir",
    "Status",
    "down",
    "ensure_up",
    "lease",
    "probe_local",
    "register_root",
    "registered",
    "status",
    "unreadable",
    "up",
]

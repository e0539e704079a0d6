"""A server of the operator's own: what Temporal's variables or profile name, with the store that
worker and starter share.
"""

from __future__ import annotations

from holdfast.deployment.settings import Settings
from holdfast.errors import BadSettings
from holdfast.storage import BadStore, store_at
from holdfast.storage.keys import keyring
from holdfast.temporal.connection import Target, read_configuration

LOCAL_ADDRESS = "localhost:7233"
LOCAL_UI_OFFSET = 1000
"""`temporal server start-dev` puts its Web UI this many ports above its own."""


def configured_target(settings: Settings, otherwise: str = "") -> Target:
    """Return the server that Temporal's variables or profile name. BadSettings if they do not fit
    together; `otherwise` says what the user could do without such a server.
    """
    try:
        config = read_configuration()
    except (RuntimeError, ValueError, OSError) as error:
        why = " ".join(str(error).split())
        raise BadSettings(f"Temporal's configuration cannot be read: {why}") from error
    address = config.get("target_host", LOCAL_ADDRESS)
    return target_at(settings, address, config.get("namespace", "default"), otherwise)


def target_at(settings: Settings, address: str, namespace: str, otherwise: str = "") -> Target:
    """Return the server at an address, with the store of the settings. BadSettings without a
    store.
    """
    if not settings.store_url:
        raise BadSettings(
            f"STORE_URL is not set: with a server of your own ({address}) worker and starter need"
            " one store for big payloads; set STORE_URL=file:///PATH to a folder both can reach, or"
            " STORE_URL=s3://BUCKET/PREFIX or gs://BUCKET/PREFIX"
            f"{otherwise}"
        )
    try:
        store_at(settings.store_url)
    except BadStore as error:
        raise BadSettings(str(error)) from error
    keyring(settings.key_file)
    return Target(
        address=address,
        namespace=namespace,
        task_queue=settings.task_queue,
        store_url=settings.store_url,
        ui_url=settings.web_ui or web_ui_of(address),
        embedded=False,
        key_file=settings.key_file,
    )


def web_ui_of(address: str) -> str:
    """Return the usual Web UI address for a server's address; empty if none is known."""
    host, _, port = address.rpartition(":")
    if host in ("localhost", "127.0.0.1") and port.isdigit():
        return f"http://{host}:{int(port) + LOCAL_UI_OFFSET}"
    return "https://cloud.temporal.io" if host.endswith(".tmprl.cloud") else ""

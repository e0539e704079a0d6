"""A starter that is loaded already: each command is a process of its own, forked from this one.

`python zygote.py SOCKET EXECUTABLE`, with the project's folder as the working directory. Loading
takes a second of processor time, and the pages for people have some fifty commands. Whoever
connects hands over his three standard streams and, as JSON, what to run; he gets the exit code.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from pathlib import Path


def serve(path: str) -> None:
    """Answer forever; end this process to stop."""
    import holdfast.cli.main
    from holdfast import __main__ as starter

    ours = Path(holdfast.cli.main.__file__)
    assert ours.is_relative_to(Path.cwd()), "the copy's code is what runs"
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    while True:
        asked, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _become(asked)
            threading.Thread(target=_end_with, args=[asked], daemon=True).start()
            code = 1
            try:
                code = starter.start()
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                asked.sendall(b"%d" % code)
                os._exit(0)
        asked.close()


def _end_with(asked: socket.socket) -> None:
    """Whoever asked says nothing more; when he is killed, so is this."""
    asked.recv(1)
    os._exit(130)


def _become(asked: socket.socket) -> None:
    """Take over streams, arguments, folder and environment of whoever asked."""
    message, streams, _, _ = socket.recv_fds(asked, 1 << 20, 3)
    while not message.endswith(b"\n"):
        message += asked.recv(1 << 20)
    wanted = json.loads(message)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = os.fdopen(0)
    sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8")
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8")
    sys.argv = wanted["arguments"]
    os.environ.clear()
    os.environ.update(wanted["environment"])
    os.chdir(wanted["folder"])


CLIENT = '''#!{python} -IS
"""In place of the interpreter: starter.py by the one that is loaded, everything else by itself."""
import json, os, socket, sys
arguments = sys.argv[1:]
if arguments[:1] != ["starter.py"]:
    os.execv({python!r}, [{python!r}, *arguments])
asked = socket.socket(socket.AF_UNIX)
asked.connect({socket!r})
wanted = dict(arguments=arguments, environment=dict(os.environ), folder=os.getcwd())
socket.send_fds(asked, [b" "], [0, 1, 2])
asked.sendall(json.dumps(wanted).encode() + b"\\n")
code = asked.recv(64)
sys.exit(int(code or 1))
'''


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    # What a person is told to type names the interpreter as he would.
    sys.executable = sys.argv[2]
    serve(sys.argv[1])

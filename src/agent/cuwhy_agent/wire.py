"""
The socket to cuwhy: framed JSON out, commands in (docs/agent.md).

Nothing here may disturb the program: a send that takes longer than SEND_SECONDS or fails makes the
agent silent for good. A forked child has its own connection, made when it first has something to say.
"""
import json
import math
import os
import socket
import struct
import threading

SEND_SECONDS = 2.0
FRAME_MAX = 1 << 20  # bytes; cuwhy takes 8 MiB, and nothing we have to say needs more than this

_lock = threading.Lock()
_socket = None
_silent = False
_hello = None  # makes the fields of the `process` event that opens a connection


def plain(value):
    """As JSON can hold it: NaN and infinities are texts, and unknown values are left out."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if one is not None}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value


def open_with(hello):
    """Sets who says hello on connecting."""
    global _hello
    _hello = hello


def connect():
    """True when there is a connection; tries once in a process."""
    global _socket, _silent
    if _socket is None and not _silent:
        try:
            _socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            _socket.settimeout(SEND_SECONDS)
            _socket.connect(os.environ["CUWHY_SOCKET"])
            _send("process", _hello())
        except Exception:
            _stop()
    return not _silent


def connected():
    return _socket is not None and not _silent


def say(event, **fields):
    """Sends one event; never raises."""
    try:
        with _lock:
            if connect():
                _send(event, fields)
    except Exception:
        _stop()


def note(text):
    say("note", text=text)


def listen(timeout):
    """The next command; None when timeout (seconds) has passed; {"do": "release"} at the end."""
    try:
        _socket.settimeout(max(0.001, timeout))
        try:
            first = _socket.recv(1)
        except socket.timeout:
            return None
        _socket.settimeout(SEND_SECONDS)
        head = first + _receive(4 - len(first)) if first else b""
        if len(head) < 4:
            return {"do": "release"}
        (length,) = struct.unpack("<I", head)
        command = json.loads(_receive(min(length, FRAME_MAX)).decode("utf-8"))
        return command if isinstance(command, dict) else {"do": "release"}
    except Exception:
        return {"do": "release"}


def forked():
    """In a forked child: the parent's socket is the parent's."""
    global _socket, _lock
    _lock = threading.Lock()
    if _socket is not None:
        _socket.close()
    _socket = None


def _receive(length):
    data = b""
    while len(data) < length:
        part = _socket.recv(length - len(data))
        if not part:
            break
        data += part
    return data


def _send(event, fields):
    text = json.dumps(plain(dict(fields, event=event)), allow_nan=False, default=str)
    data = text.encode("utf-8", "replace")
    if len(data) <= FRAME_MAX:
        _socket.sendall(struct.pack("<I", len(data)) + data)


def _stop():
    global _socket, _silent
    _silent = True
    if _socket is not None:
        _socket.close()
    _socket = None

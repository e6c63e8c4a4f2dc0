# SPDX-License-Identifier: GPL-2.0
"""Frames of the control channel between the harness and the agent in a guest.

A frame is a header (stream, kind, length) and a payload. A stream is one
command. Streams begun by the harness have ids below GUEST_STREAM, those begun
by a guest (a command for the other machine) have ids from there on.
"""

import struct

HEADER = struct.Struct(">IBI")
GUEST_STREAM = 1 << 31
CHUNK = 1 << 16

(
    HELLO,  # guest: the agent is up
    START,  # begin a command: JSON {"argv", "env", "cwd", "tty"}
    STDIN,  # bytes for the command; none at all: end of file
    STDOUT,
    STDERR,
    EXIT,  # JSON {"status"}: the exit status, 128 + signal, or 126/127
    SIGNAL,  # one byte: send this signal to the command's process group
    RESIZE,  # JSON {"rows", "columns"}
) = range(8)


def pack(stream, kind, payload=b""):
    return HEADER.pack(stream, kind, len(payload)) + payload


class Parser:
    """Cuts a byte stream into frames."""

    def __init__(self):
        self.buffer = bytearray()

    def feed(self, data):
        self.buffer += data
        while len(self.buffer) >= HEADER.size:
            stream, kind, length = HEADER.unpack_from(self.buffer)
            end = HEADER.size + length
            if len(self.buffer) < end:
                return
            payload = bytes(self.buffer[HEADER.size : end])
            del self.buffer[:end]
            yield stream, kind, payload

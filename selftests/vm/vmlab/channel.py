# SPDX-License-Identifier: GPL-2.0
"""The harness's end of the control channel to one guest."""

import json
import os
import queue
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "guest"))
import frames  # noqa: E402


class Closed(Exception):
    """The guest is gone, or its agent is."""


class Timeout(Exception):
    """A command did not end in time."""


class Result:
    """What a command left: its exit status and what it wrote."""

    def __init__(self, argv, status, out, err):
        self.argv = argv
        self.status = status
        self.out = out
        self.err = err

    def __bool__(self):
        return self.status == 0


class Failed(Exception):
    """A command that had to succeed did not."""

    def __init__(self, where, result):
        command = result.argv[-1] if result.argv[:2] == ["/bin/bash", "-c"] else " ".join(result.argv)
        text = (result.err or result.out).strip()
        super().__init__(f"{where}: '{command}' ended with status {result.status}" + (f": {text}" if text else ""))


class Stream:
    """One command that runs in the guest."""

    def __init__(self, channel, number):
        self.channel = channel
        self.number = number
        self.events = queue.Queue()

    def send(self, kind, payload=b""):
        self.channel.send(self.number, kind, payload)

    def write(self, data):
        for start in range(0, len(data), frames.CHUNK):
            self.send(frames.STDIN, data[start : start + frames.CHUNK])

    def close_stdin(self):
        self.send(frames.STDIN)

    def signal(self, number):
        self.send(frames.SIGNAL, bytes([number]))

    def next(self, timeout=None):
        """The next (kind, payload); raises Timeout or Closed."""
        try:
            event = self.events.get(timeout=timeout)
        except queue.Empty:
            raise Timeout from None
        if event is None:
            self.events.put(None)
            raise Closed
        return event


class Channel:
    """A listening socket that QEMU connects to, and the frames that pass through it.

    peer is the channel of the other machine: commands that a program in this
    guest wants to run there are relayed to it.
    """

    def __init__(self, path, name):
        self.name = name
        self.peer = None
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(1)
        self.connection = None
        self.ready = threading.Event()
        self.closed = False
        self.lock = threading.Lock()
        self.streams = {}
        self.relayed = {}  # stream of this guest -> stream at the peer
        self.next_number = 1
        threading.Thread(target=self._receive, daemon=True).start()

    def close(self):
        with self.lock:
            if self.closed:
                return
            self.closed = True
            streams = list(self.streams.values())
        for sock in (self.listener, self.connection):
            if sock:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                sock.close()
        for stream in streams:
            stream.events.put(None)

    def _receive(self):
        try:
            self.connection, _ = self.listener.accept()
            parser = frames.Parser()
            while data := self.connection.recv(frames.CHUNK):
                for stream, kind, payload in parser.feed(data):
                    self._dispatch(stream, kind, payload)
        except OSError:
            pass
        self.close()

    def _dispatch(self, number, kind, payload):
        if kind == frames.HELLO:
            self.ready.set()
        elif number >= frames.GUEST_STREAM:
            self._relay(number, kind, payload)
        elif number in self.streams:
            self.streams[number].events.put((kind, payload))
            if kind == frames.EXIT:
                del self.streams[number]

    def _relay(self, number, kind, payload):
        if kind == frames.START:
            if self.peer is None or self.peer.closed:
                self._try_send(number, frames.STDERR, b"there is no other machine\n")
                self._try_send(number, frames.EXIT, json.dumps({"status": 126}).encode())
                return
            stream = self.peer.open()
            self.relayed[number] = stream
            stream.send(kind, payload)
            threading.Thread(target=self._relay_back, args=(number, stream), daemon=True).start()
        elif number in self.relayed:
            try:
                self.relayed[number].send(kind, payload)
            except Closed:
                pass

    def _relay_back(self, number, stream):
        kind = None
        while kind != frames.EXIT:
            try:
                kind, payload = stream.next()
            except Closed:
                kind, payload = frames.EXIT, json.dumps({"status": 125}).encode()
            self._try_send(number, kind, payload)
        self.relayed.pop(number, None)

    def _try_send(self, *frame):
        try:
            self.send(*frame)
        except Closed:
            pass

    def send(self, number, kind, payload=b""):
        with self.lock:
            if self.closed or not self.connection:
                raise Closed
            try:
                self.connection.sendall(frames.pack(number, kind, payload))
            except OSError:
                raise Closed from None

    def open(self):
        with self.lock:
            if self.closed:
                raise Closed
            number = self.next_number
            self.next_number += 1
            stream = self.streams[number] = Stream(self, number)
        return stream

    def start(self, argv, env=None, tty=False):
        """Begin a command: a list of arguments, or a string for bash."""
        if isinstance(argv, str):
            argv = ["/bin/bash", "-c", argv]
        stream = self.open()
        stream.argv = argv
        stream.send(frames.START, json.dumps({"argv": argv, "env": env or {}, "tty": tty}).encode())
        return stream

    def run(self, argv, timeout, env=None, stdin=b"", check=True, on_output=None):
        """Run a command to its end. on_output gets each piece of its output as it comes.

        Raises Failed on a status other than 0 (unless check is false), Timeout
        after that many seconds (the command is killed), Closed if the guest dies.
        """
        stream = self.start(argv, env)
        stream.write(stdin)
        stream.close_stdin()
        pieces = {frames.STDOUT: [], frames.STDERR: []}
        deadline = time.monotonic() + timeout
        while True:
            try:
                kind, payload = stream.next(max(0, deadline - time.monotonic()))
            except Timeout:
                stream.signal(9)
                raise Timeout(f"{self.name}: no end after {timeout:.0f} s: {stream.argv[-1]}") from None
            except Closed:
                raise Closed(f"{self.name}: the machine went away during: {stream.argv[-1]}") from None
            if kind == frames.EXIT:
                break
            pieces[kind].append(payload)
            if on_output:
                on_output(payload)
        text = {k: b"".join(v).decode(errors="replace") for k, v in pieces.items()}
        status = json.loads(payload)["status"]
        result = Result(stream.argv, status, text[frames.STDOUT], text[frames.STDERR])
        if check and not result:
            raise Failed(self.name, result)
        return result

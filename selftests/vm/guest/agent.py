#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The harness's hand inside a guest: runs commands that arrive on a virtio port.

usage: agent.py PORT_NAME SOCKET

Programs in the guest may connect to SOCKET and speak the same frames to run a
command on the *other* machine (see peer-exec); the harness relays these.
"""

import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import sys
import termios

import frames


def open_port(name):
    base = "/sys/class/virtio-ports"
    for port in os.listdir(base):
        with open(f"{base}/{port}/name", encoding="ascii") as f:
            if f.read().strip() == name:
                return os.open(f"/dev/{port}", os.O_RDWR)
    sys.exit(f"agent: no virtio port is called {name}")


class Command:
    """A process and the descriptors that connect it to its stream."""

    def __init__(self, spec):
        env = dict(os.environ, **spec.get("env", {}))
        self.outputs = {}  # descriptor -> kind of frame
        self.terminal = None
        if spec.get("tty"):
            self.terminal, slave = pty.openpty()
            ends = (slave, slave, slave)
            self.stdin = self.terminal
            self.outputs[self.terminal] = frames.STDOUT
        else:
            in_read, self.stdin = os.pipe()
            out_read, out_write = os.pipe()
            err_read, err_write = os.pipe()
            ends = (in_read, out_write, err_write)
            self.outputs[out_read] = frames.STDOUT
            self.outputs[err_read] = frames.STDERR
        try:
            self.process = subprocess.Popen(
                spec["argv"],
                stdin=ends[0],
                stdout=ends[1],
                stderr=ends[2],
                env=env,
                cwd=spec.get("cwd") or "/root",
                start_new_session=True,
                preexec_fn=self.take_terminal if self.terminal is not None else None,
            )
        except OSError:
            for fd in {self.stdin, *self.outputs}:
                os.close(fd)
            raise
        finally:
            for fd in set(ends):
                os.close(fd)
        if self.terminal is None:
            os.set_blocking(self.stdin, False)
        self.pidfd = os.pidfd_open(self.process.pid)
        self.pending = bytearray()  # not yet taken by the command
        self.ended = False  # nothing will follow what is pending

    @staticmethod
    def take_terminal():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def write(self, data):
        """Give the command input (none at all: the end); True if some has to wait."""
        self.pending += data
        self.ended = self.ended or not data
        return self.flush()

    def flush(self):
        if self.stdin is None:
            return False
        try:
            while self.pending:
                del self.pending[: os.write(self.stdin, self.pending)]
        except BlockingIOError:
            return True
        except OSError:
            self.pending.clear()
            self.ended = True
        if self.ended and self.terminal is None:
            os.close(self.stdin)
            self.stdin = None
        return False

    def resize(self, rows, columns):
        if self.terminal is not None:
            fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass


class Agent:
    def __init__(self, port, listener):
        self.port = port
        self.listener = listener
        self.poll = select.poll()
        self.parser = frames.Parser()
        self.handlers = {}  # descriptor -> function
        self.commands = {}  # stream -> Command
        self.peers = {}  # stream -> connection of a local program
        self.next_peer = frames.GUEST_STREAM

    def watch(self, fd, handler, events=select.POLLIN):
        self.handlers[fd] = handler
        self.poll.register(fd, events)

    def forget(self, fd):
        del self.handlers[fd]
        self.poll.unregister(fd)

    def send(self, stream, kind, payload=b""):
        data = frames.pack(stream, kind, payload)
        while data:
            data = data[os.write(self.port, data) :]

    def run(self):
        self.watch(self.port, self.on_port)
        self.watch(self.listener.fileno(), self.on_connect)
        self.send(0, frames.HELLO)
        while True:
            for fd, _ in self.poll.poll():
                if fd in self.handlers:
                    self.handlers[fd]()

    def on_port(self):
        data = os.read(self.port, frames.CHUNK)
        if not data:
            sys.exit("agent: the harness has closed the channel")
        for stream, kind, payload in self.parser.feed(data):
            if stream >= frames.GUEST_STREAM:
                self.to_peer(stream, kind, payload)
            elif kind == frames.START:
                self.start(stream, json.loads(payload))
            elif stream in self.commands:
                command = self.commands[stream]
                if kind == frames.STDIN:
                    self.input(command, payload)
                elif kind == frames.SIGNAL:
                    command.signal(payload[0])
                elif kind == frames.RESIZE:
                    command.resize(**json.loads(payload))

    def start(self, stream, spec):
        try:
            command = Command(spec)
        except OSError as error:
            self.send(stream, frames.STDERR, f"{spec['argv'][0]}: {error.strerror}\n".encode())
            self.send(stream, frames.EXIT, json.dumps({"status": 127}).encode())
            return
        self.commands[stream] = command
        for fd, kind in command.outputs.items():
            self.watch(fd, lambda fd=fd, kind=kind: self.on_output(stream, fd, kind))
        self.watch(command.pidfd, lambda: self.on_exit(stream))

    def input(self, command, data):
        fd = command.stdin
        waiting = fd in self.handlers and command.terminal is None
        if command.write(data):
            if not waiting:
                self.watch(fd, lambda: self.on_writable(command), select.POLLOUT)
        elif waiting:
            self.forget(fd)

    def on_writable(self, command):
        fd = command.stdin
        if not command.flush():
            self.forget(fd)

    def on_output(self, stream, fd, kind):
        try:
            data = os.read(fd, frames.CHUNK)
        except OSError:  # a terminal without processes
            data = b""
        if data:
            self.send(stream, kind, data)
        else:
            self.close_output(stream, fd)

    def close_output(self, stream, fd):
        command = self.commands[stream]
        self.forget(fd)
        del command.outputs[fd]
        os.close(fd)
        if fd == command.terminal:
            command.terminal = command.stdin = None

    def on_exit(self, stream):
        """The command is gone: hand over what it wrote, whoever still holds its pipes."""
        command = self.commands[stream]
        status = command.process.wait()
        self.forget(command.pidfd)
        os.close(command.pidfd)
        for fd in list(command.outputs):
            os.set_blocking(fd, False)
            kind = command.outputs[fd]
            while True:
                try:
                    data = os.read(fd, frames.CHUNK)
                except OSError:
                    break
                if not data:
                    break
                self.send(stream, kind, data)
            self.close_output(stream, fd)
        if command.stdin in self.handlers:
            self.forget(command.stdin)
        command.pending.clear()
        command.write(b"")
        del self.commands[stream]
        self.send(stream, frames.EXIT, json.dumps({"status": status if status >= 0 else 128 - status}).encode())

    def on_connect(self):
        connection, _ = self.listener.accept()
        stream = self.next_peer
        self.next_peer += 1
        self.peers[stream] = connection
        parser = frames.Parser()

        def on_data():
            try:
                data = connection.recv(frames.CHUNK)
            except OSError:
                data = b""
            for _, kind, payload in parser.feed(data):
                self.send(stream, kind, payload)
            if not data:
                self.send(stream, frames.SIGNAL, bytes([signal.SIGHUP]))
                self.drop_peer(stream)

        self.watch(connection.fileno(), on_data)

    def to_peer(self, stream, kind, payload):
        if stream not in self.peers:
            return
        try:
            self.peers[stream].sendall(frames.pack(0, kind, payload))
        except OSError:
            pass
        if kind == frames.EXIT:
            self.drop_peer(stream)

    def drop_peer(self, stream):
        connection = self.peers.pop(stream, None)
        if connection:
            self.forget(connection.fileno())
            connection.close()


def main():
    name, path = sys.argv[1:]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    Agent(open_port(name), listener).run()


main()

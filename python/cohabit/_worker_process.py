"""One process of a worker: its start, its sockets and memory, what it prints, its end."""
from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _native_frames, _worker_keeper
from . import _worker_main as wire
from ._worker_errors import WorkerCrashed, WorkerStartError
from ._worker_log import Log

TAIL = 64 << 10
LINE = 16 << 10  # longer lines are shown in parts
# What the caller's Python was told is not for another environment's.
_NOT_INHERITED = ("PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONEXECUTABLE", "PYTHONPLATLIBDIR",
                  "PYTHONUSERBASE", "PYTHONSAFEPATH", "PYTHONPYCACHEPREFIX", "__PYVENV_LAUNCHER__", "VIRTUAL_ENV")


@dataclass(frozen=True)
class Spec:
    """What every process of a worker is started with."""

    name: str
    python: str
    settings: dict[str, Any]
    environ: dict[str, str]
    directory: str
    log: Log


def interpreter_of(env: str | os.PathLike[str] | None) -> str:
    """The Python of an environment's directory, or the interpreter that is named itself."""
    if env is None:
        return sys.executable
    path = Path(env).absolute()  # not resolved: the link of a virtual environment is what makes it one
    for candidate in (path, path / "bin" / "python", path / "bin" / "python3"):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    raise WorkerStartError(f"no Python in {path}: expected an environment's directory, with bin/python, or an interpreter")


def environ_for(python: str, extra: Mapping[str, str | None] | None) -> dict[str, str]:
    result: dict[str, str | None] = {key: value for key, value in os.environ.items() if key not in _NOT_INHERITED}
    result["PATH"] = os.pathsep.join(filter(None, [os.path.dirname(python), os.environ.get("PATH")]))
    if os.path.realpath(os.path.dirname(os.path.dirname(python))) != os.path.realpath(sys.prefix):
        _leave_out_own_libraries(result)
    result.update(extra or {})
    for key, value in result.items():
        if not isinstance(key, str) or not isinstance(value, (str, type(None))) or "\0" in key + (value or "") or "=" in key or not key:
            raise WorkerStartError(f"environ holds {key!r}: {value!r}, which no environment can hold")
    return {key: value for key, value in result.items() if value is not None}


def _leave_out_own_libraries(environ: dict[str, str | None]) -> None:
    """What `cohabit run`, or the user, has put in front for this environment's packages would be taken by another's too."""
    own = tuple(os.path.realpath(sysconfig.get_path(kind)) + "/" for kind in ("purelib", "platlib"))
    for name, separator in (("LD_LIBRARY_PATH", ":"), ("LD_PRELOAD", "[: ]")):
        parts = re.split(separator, environ.get(name) or "")
        others = [part for part in parts if not part or not (os.path.realpath(part) + "/").startswith(own)]
        if len(others) < len(parts):
            environ[name] = ":".join(others) or None
    environ.pop("COHABIT_PRELOAD_RULES", None)


class Output:
    """Lines of a worker, prefixed, and the end of them."""

    def __init__(self, prefix: str, log: Callable[[str], None]):
        self.prefix, self.log = prefix, log
        self.tail: deque[bytes] = deque()
        self.kept = 0
        self.rest = b""

    def add(self, data: bytes) -> None:
        self.tail.append(data)
        self.kept += len(data)
        while self.kept - len(self.tail[0]) >= TAIL:
            self.kept -= len(self.tail.popleft())
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self._write(line)
        if len(self.rest) > LINE:
            self.end()

    def end(self) -> None:
        if self.rest:
            self._write(self.rest)
        self.rest = b""

    def _write(self, line: bytes) -> None:
        self.log(f"[{self.prefix}] {line.decode(errors='backslashreplace')}")

    def text(self) -> str:
        return b"".join(self.tail)[-TAIL:].decode(errors="replace")


class Keeper:
    """The process that ends what workers have started, should this one end without a word (_worker_keeper.py)."""

    def __init__(self, spec: Spec):
        command = [spec.python, "-I", "-S", os.path.realpath(_worker_keeper.__file__), str(os.getpid())]
        self.popen: subprocess.Popen[bytes] | None = None
        try:
            self.popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                          bufsize=0, start_new_session=True, env=spec.environ, cwd="/")
        except (OSError, ValueError):
            pass  # the workers end with the caller all the same

    def tell(self, sign: str, group: int) -> None:
        try:
            if self.popen is not None:
                self.popen.stdin.write(f"{sign}{group}\n".encode())  # type: ignore[union-attr]
        except OSError:
            pass  # it was ended by somebody

    def close(self) -> None:
        if self.popen is None:
            return
        self.popen.stdin.close()  # type: ignore[union-attr]
        try:
            self.popen.wait(2)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()


class Process:
    """Made, watched and ended by the supervisor's thread only; a caller that holds it may talk through `link`.

    The sockets are pairs that the child inherits: they have no name, so nobody else can connect.
    """

    def __init__(self, spec: Spec, prefix: str, keeper: Keeper | None):
        self.spec, self.prefix, self.keeper = spec, prefix, keeper
        self.reason: str | None = None
        self.status: int | None = None
        self.oom_kills = _oom_kills()
        self.status_is_taken = False  # by somebody else, or by nobody: SIGCHLD is ignored
        self.over = threading.Event()
        self.closing = self.lost = self.hangs = False
        self.unread = False  # its output is not read, because the log is full
        self.pinged: float | None = None
        self.heard = self.started = time.monotonic()
        self.crash_report = b""
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as undo:
            self._open(theirs, undo)
            undo.pop_all()
        self._tell_keeper("+")
        self.outputs = {self.popen.stdout: Output(prefix, spec.log), self.popen.stderr: Output(prefix, spec.log)}
        for pipe in self.outputs:
            os.set_blocking(pipe.fileno(), False)  # type: ignore[union-attr]
        self.pidfd = _pidfd(self.popen.pid)

    def _open(self, theirs: contextlib.ExitStack, undo: contextlib.ExitStack) -> None:
        """Sockets, memory and the process: all of them or none."""
        self.files = []
        for name in ("cohabit-arguments", "cohabit-results", "cohabit-crash"):
            self.files.append(wire.memory_file(name))
            undo.callback(os.close, self.files[-1])
        self.crash_file = self.files.pop()
        data, their_data = socket.socketpair()
        undo.enter_context(data)
        theirs.enter_context(their_data)
        self.control, their_control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        undo.enter_context(self.control)
        theirs.enter_context(their_control)
        self.control.setblocking(False)
        self.packets = wire.Packets(self.control)
        self.link = wire.Link(data, *self.files)
        try:
            self.popen = self._start(their_data, their_control)
        except OSError as error:
            raise WorkerStartError(f"cannot run {self.spec.python}: {error.strerror}") from error

    def _start(self, data: socket.socket, control: socket.socket) -> subprocess.Popen[bytes]:
        files = [data.fileno(), control.fileno(), self.files[1], self.files[0]]
        command = [self.spec.python, os.path.realpath(wire.__file__), *map(str, files), str(os.getpid())]
        library, environ = _native_frames.find_library(), self.spec.environ
        if library is not None:
            files.append(self.crash_file)
            command.append(str(self.crash_file))
            environ = _native_frames.with_library(environ, library, self.crash_file)
        # A session of its own: Ctrl-C at the terminal is for the caller, and the group can be ended as one.
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                bufsize=0, pass_fds=files, start_new_session=True, env=environ,
                                cwd=self.spec.directory if os.path.isdir(self.spec.directory) else "/")

    def _tell_keeper(self, sign: str) -> None:
        if self.keeper is not None:
            self.keeper.tell(sign, self.popen.pid)

    def begin(self) -> None:
        """Sends the settings; the answer to call 0 says that it is ready."""
        try:
            self.link.socket.sendall(self.link.encode(wire.CALL, 0, ("start", (self.spec.settings,), {})))
        except OSError:
            pass  # it is gone already: its end is seen

    def read_output(self, pipe: Any) -> bool:
        """Takes what is there; false at the end."""
        try:
            data = os.read(pipe.fileno(), 64 << 10)
        except BlockingIOError:
            return True
        if data:
            self.outputs[pipe].add(data)
        return bool(data)

    def ping(self, now: float) -> None:
        if self.pinged is not None:
            return
        self.pinged = now
        try:
            self.packets.send(wire.PING, 0, self.link.borrowed.take_released(1000))
        except OSError:
            pass  # its buffer is full or it is gone: the time without an answer tells

    def tell(self, kind: int, call: int = 0) -> None:
        try:
            self.packets.send(kind, call)
        except OSError:
            pass  # gone, or stuck: the time limit ends it

    def heard_control(self) -> bool:
        """Takes one packet; false if the other side is gone."""
        try:
            kind, _, released = self.packets.receive()
        except BlockingIOError:
            return True
        except (OSError, EOFError, wire.ProtocolError):
            return False
        self.link.arena.returned.extend(released)
        if kind == wire.PONG:
            self.heard, self.pinged = time.monotonic(), None
        return True

    def ask_where(self, reason: str) -> None:
        """Lets one that hangs write its Python frames, as it does for a crash, which ends it."""
        self.reason = self.reason or reason
        try:
            resource.prlimit(self.popen.pid, resource.RLIMIT_CORE, (0, 0))  # it is no crash
            self.popen.send_signal(signal.SIGABRT)
        except (OSError, ValueError):
            return
        end = time.monotonic() + 1  # one that is stopped, or blocks the signal, is killed as it is
        while not self.has_ended() and time.monotonic() < end:
            time.sleep(0.01)

    def kill(self, reason: str | None) -> None:
        self.reason = self.reason or reason
        try:
            os.killpg(self.popen.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            self.popen.kill()

    def has_ended(self) -> bool:
        """Looks at the status before it is taken: where SIGCHLD is ignored, or others wait for all children, there is none."""
        try:
            if self.popen.returncode is None:
                os.waitid(os.P_PID, self.popen.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:
            self.status_is_taken = True
        return self.popen.poll() is not None

    def bury(self) -> None:
        """Waits for the end, and wakes a caller that waits for an answer."""
        self.has_ended()
        try:
            self.popen.wait(0.2 if self.reason is None else 10)
        except subprocess.TimeoutExpired:  # it closed its control socket, and lives
            self.kill(self.reason or "it gave up its connection")
            self.popen.wait()
        self.status = self.popen.returncode
        if (self.status < 0 or self.status_is_taken) and self.reason is None:
            self.crash_report = _native_frames.read_report(self.crash_file)
        if self.status_is_taken:
            signals = re.findall(rb"^crash %d (\d+) " % self.popen.pid, self.crash_report, re.MULTILINE)
            self.status = -int(signals[-1]) if signals else None
        os.close(self.crash_file)
        try:  # what it started must not stay behind
            os.killpg(self.popen.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self._tell_keeper("-")
        for pipe, output in self.outputs.items():
            for _ in range(64):  # a child of it may still write: not until the end
                before = output.kept, output.rest
                if not self.read_output(pipe) or (output.kept, output.rest) == before:
                    break
            output.end()
            pipe.close()  # type: ignore[union-attr]
        if self.pidfd is not None:
            os.close(self.pidfd)
        self.control.close()
        try:
            self.link.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.over.set()

    def close(self) -> None:
        """Gives the socket and the memory back; arrays that somebody holds keep theirs."""
        if self.link.socket.fileno() >= 0:
            self.link.socket.close()
            self._close_files()

    def _close_files(self) -> None:
        for file in self.files:
            os.close(file)

    def crash(self) -> WorkerCrashed:
        """The end as an exception; asks the native command for names of frames, and `cohabit why` about the last words."""
        self.over.wait(30)
        status, number = self.status, -min(self.status or 0, 0)
        stderr = self.outputs[self.popen.stderr].text()
        frames = _native_frames.frames_of(self.crash_report, self.popen.pid, number)
        explanation = None
        if self.reason is None:
            end = signal.strsignal(number) if number else ""
            if number == signal.SIGKILL and self.oom_kills is not None and _oom_kills() == self.oom_kills:
                end = ""  # not the kernel, for want of memory: somebody's kill -9 says nothing
            words = [stderr, *(f"#{i} {frame}" for i, frame in enumerate(frames)), end]
            explanation = _explain("\n".join(filter(str.strip, map(str, words))))
        return WorkerCrashed(self.prefix, status, stderr, self.reason, explanation, tuple(frames))


def _oom_kills() -> int | None:
    """How many processes the kernel has ended because memory was used up, a container's too; None: it does not say."""
    try:
        with open("/proc/vmstat", encoding="ascii") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), None)
    except (OSError, ValueError):
        return None


def _explain(words: str) -> dict[str, Any] | None:
    from . import command

    import json
    if not words:
        return None
    try:
        answer = subprocess.run([command(), "why", "-", "--format", "json"], input=words.encode(errors="replace"),
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=10, check=False)
        return json.loads(answer.stdout) if answer.returncode in (0, 1) else None
    except (OSError, subprocess.SubprocessError, ValueError):
        return None  # no command in this installation: the crash is told all the same


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None

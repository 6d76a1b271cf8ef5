"""Wheels made by hand, a package index that serves them and counts, and environments to check."""
from __future__ import annotations

import base64
import hashlib
import http.server
import io
import os
import random
import re
import subprocess
import sys
import threading
import urllib.parse
import zipfile
from pathlib import Path

import venvs  # tests/conftest.py
from venvs import record_line

METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more}"


def noise(size: int, seed: int = 0) -> bytes:
    """Bytes that do not compress."""
    return random.Random(seed).randbytes(size)


def metadata_of(name: str, version: str, requires: tuple[str, ...], python: str) -> bytes:
    more = "".join(f"Requires-Dist: {text}\n" for text in requires)
    more += "".join(f"Provides-Extra: {extra}\n" for text in requires for extra in re.findall(r"extra == '(\w+)'", text))
    return METADATA.format(name=name, version=version,
                           more=more + (f"Requires-Python: {python}\n" if python else "")).encode()


def make_wheel(directory: Path, name: str, version: str, files: dict[str, bytes] | None = None,
               requires: tuple[str, ...] = (), python: str = "", stored: bool = False,
               tag: str = "py3-none-any") -> Path:
    """A wheel; beside it its metadata, as indexes serve it (PEP 658)."""
    directory.mkdir(parents=True, exist_ok=True)
    base = f"{name.replace('-', '_')}-{version}"
    info = f"{base}.dist-info"
    metadata = metadata_of(name, version, requires, python)
    content = {**(files or {f"{name.replace('-', '_')}/__init__.py": b""}), f"{info}/METADATA": metadata,
               f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n".encode()}
    record = "\n".join([*(record_line(path, data) for path, data in content.items()), f"{info}/RECORD,,", ""])
    path = directory / f"{base}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED) as archive:
        for member, data in {**content, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(zipfile.ZipInfo(member, (2024, 1, 1, 0, 0, 0)), data,
                             zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED)
    Path(f"{path}.metadata").write_bytes(metadata)
    return path


def make_sdist(directory: Path, name: str, version: str) -> None:
    import tarfile

    base = f"{name}-{version}"
    with tarfile.open(directory / f"{base}.tar.gz", "w:gz") as archive:
        for member, text in {"PKG-INFO": METADATA.format(name=name, version=version, more=""),
                             "setup.py": "raise SystemExit('built')\n"}.items():
            entry = tarfile.TarInfo(f"{base}/{member}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))


class Index:
    """Serves a directory of wheels as a simple index (PEP 503). Counts what it sends of wheels."""

    def __init__(self, directory: Path, ranges: bool = True, login: str = "", fails: str = ""):
        self.directory, self.ranges, self.login = directory, ranges, login
        self.fails, self.failed = fails, set()  # the first request of cohabit for a wheel: "cut" or "busy"
        self.sent: dict[str, int] = {}  # bytes of wheels, by the program that asked
        self.requests: list[str] = []
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                index.answer(self)

            def do_HEAD(self):
                index.answer(self)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def address(self, login: str = "") -> str:
        return f"http://{login + '@' if login else ''}127.0.0.1:{self.server.server_port}/simple/"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request):
        self.requests.append(f"{request.command} {request.path} {request.headers.get('Range', '')}")
        expected = "Basic " + base64.b64encode(self.login.encode()).decode()
        if self.login and request.headers.get("Authorization") != expected:
            return self.send(request, 401, b"", {"WWW-Authenticate": 'Basic realm="index"'})
        path = urllib.parse.urlsplit(request.path).path  # a whole address, where this is the proxy
        if path.startswith("/simple/"):
            return self.send_page(request, path.split("/")[2])
        file = self.directory / urllib.parse.unquote(path.split("/")[-1])
        if not file.is_file():
            return self.send(request, 404, b"no such file")
        self.send_file(request, file)

    def send_page(self, request, name: str):
        links = []
        for file in sorted(self.directory.iterdir()):
            if file.suffix not in (".whl", ".gz") or file.name.split("-")[0].replace("_", "-") != name:
                continue
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            has = Path(f"{file}.metadata").exists()
            links.append(f'<a href="/files/{file.name}#sha256={digest}"'
                         + (' data-dist-info-metadata="true" data-core-metadata="true"' if has else "") + f">{file.name}</a>")
        if not links:
            return self.send(request, 404, b"no such project")
        self.send(request, 200, f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>".encode(),
                  {"Content-Type": "text/html"})

    def send_file(self, request, file: Path):
        data = file.read_bytes()
        asked = request.headers.get("Range")
        status, more = 200, {}
        if self.ranges and asked:
            first, last = asked.removeprefix("bytes=").split("-")
            begin = len(data) - min(int(last), len(data)) if not first else int(first)
            end = len(data) if not first or not last else min(int(last) + 1, len(data))
            status, more = 206, {"Content-Range": f"bytes {begin}-{end - 1}/{len(data)}"}
            data = data[begin:end]
        if file.suffix == ".whl" and request.command == "GET":
            program = request.headers.get("User-Agent", "").split("/")[0]
            self.sent[program] = self.sent.get(program, 0) + len(data)
            if self.fails and program == "cohabit" and file not in self.failed:
                self.failed.add(file)
                if self.fails == "busy":
                    return self.send(request, 503, b"later")
                more["Content-Length"] = str(len(data))
                data, request.close_connection = data[:len(data) // 2], True
        self.send(request, status, data, {"Accept-Ranges": "bytes" if self.ranges else "none", **more})

    @staticmethod
    def send(request, status: int, data: bytes, headers: dict[str, str] | None = None):
        try:
            request.send_response(status)
            for key, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
                request.send_header(key, value)
            request.end_headers()
            if request.command == "GET":
                request.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            pass


class Environment:
    """A venv, and its installer: "pip" inside, or "uv" outside."""

    def __init__(self, root: Path, installer: str):
        self.root, self.installer = root, installer
        venvs.make_venv(root, pip=installer == "pip")
        self.site = next(root.glob("lib/python3*/site-packages"))
        home = root.parent / f"home-{installer}"
        home.mkdir(exist_ok=True)
        self.variables = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(home), "TMPDIR": str(home),
                          "PIP_CONFIG_FILE": os.devnull, "UV_CACHE_DIR": str(home / "uv"), "UV_NO_CONFIG": "1",
                          "PIP_NO_CACHE_DIR": "1"}

    def install(self, *wheels: Path | str) -> None:
        command = ([self.root / "bin/python", "-m", "pip"] if self.installer == "pip"
                   else ["uv", "pip"]) + ["install", "--no-index", "--no-deps"]
        if self.installer == "uv":
            command += ["--python", self.root / "bin/python", "--link-mode", "copy"]
        subprocess.run([*command, *wheels], check=True, env=self.variables, capture_output=True)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

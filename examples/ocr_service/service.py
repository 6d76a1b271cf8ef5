"""Text recognition over HTTP: PaddlePaddle reads, PyTorch says how legible it is.

  python service.py --mode process                       both frameworks in this process, repaired where needed
  python service.py --mode workers --paddle-env ENV --torch-env ENV    each in a process of its own environment

Open http://127.0.0.1:8000 and drop a picture. POST /read with a picture file as the body gives JSON.
"""
from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import cohabit

HERE = Path(__file__).resolve().parent
MOST_BYTES = 20 << 20


class InProcess:
    """Both frameworks here; they take turns.

    One thread makes the models and uses them: Paddle's predictors fail in others ("could not execute a primitive").
    """

    def __init__(self, manager: cohabit.FrameworkManager) -> None:
        self._manager = manager
        self._thread = ThreadPoolExecutor(1)
        self._thread.submit(self._make).result()

    def read(self, data: bytes) -> dict:
        return self._thread.submit(self._read, data).result()

    def _make(self) -> None:
        import judge
        import reader

        with self._manager.use("paddle"):
            self._manager.load("rapidocr_paddle")
            self._reader = reader.make()
        with self._manager.use("torch"):
            self._judge = judge.make()

    def _read(self, data: bytes) -> dict:
        with self._manager.use("paddle"):
            page = self._reader.read(data)
        with self._manager.use("torch"):
            return _joined(page, self._judge.judge(data, [line["box"] for line in page["lines"]]))


class InWorkers:
    """Each framework in a process of its own; they work at the same time for different requests."""

    def __init__(self, manager: cohabit.FrameworkManager, paddle_env: str | None, torch_env: str | None) -> None:
        self._reader = manager.worker("paddle", env=paddle_env, setup="reader:make", path=HERE)
        self._judge = manager.worker("torch", env=torch_env, setup="judge:make", path=HERE)
        self._reader.wait_ready(300)
        self._judge.wait_ready(300)

    def read(self, data: bytes) -> dict:
        page = self._reader.call("read", data, timeout=120)
        return _joined(page, self._judge.call("judge", data, [line["box"] for line in page["lines"]], timeout=120))


def _joined(page: dict, legibility: list) -> dict:
    page["lines"] = [{**line, **more} for line, more in zip(page["lines"], legibility)]
    return page


class Handler(BaseHTTPRequestHandler):
    service: InProcess | InWorkers
    protocol_version = "HTTP/1.1"
    timeout = 60  # seconds for a client to send what it announced

    def do_GET(self) -> None:
        if self.path == "/":
            self._answer(200, (HERE / "page.html").read_bytes(), "text/html; charset=utf-8")
        else:
            self._refuse(404, "there are / and /read")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if self.path != "/read":
            return self._refuse(404, "there are / and /read")
        if not length.isdecimal():
            return self._refuse(411, "a Content-Length is needed")
        if int(length) > MOST_BYTES:
            return self._refuse(413, f"at most {MOST_BYTES} bytes are read")
        data = self.rfile.read(int(length))
        if len(data) < int(length):
            return None  # the client is gone
        begin = time.monotonic()
        try:
            page = self.service.read(data)
        except ValueError as error:  # of a worker too: its exceptions are of the same builtin type
            return self._refuse(400, str(error).splitlines()[0].removeprefix("ValueError: "))
        except Exception as error:  # a worker that crashed, a framework that failed: the next request may be better
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            return self._refuse(503, "the picture could not be read now")
        page["milliseconds"] = round((time.monotonic() - begin) * 1000)
        self._answer(200, json.dumps(page).encode(), "application/json")

    def _refuse(self, status: int, why: str) -> None:
        self.close_connection = True  # what the client still sends is not read
        self._answer(status, json.dumps({"error": why}).encode(), "application/json")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=["process", "workers"], default="process")
    parser.add_argument("--port", type=int, default=8000, help="0: any that is free")
    parser.add_argument("--paddle-env", help="an environment with paddle and rapidocr-paddle (default: this one)")
    parser.add_argument("--torch-env", help="an environment with torch, numpy and pillow (default: this one)")
    options = parser.parse_args()
    with cohabit.FrameworkManager(frameworks=["paddle", "torch"] if options.mode == "process" else ()) as manager:
        if options.mode == "process":
            Handler.service = InProcess(manager)
            print(manager.report(), file=sys.stderr)
        else:
            Handler.service = InWorkers(manager, options.paddle_env, options.torch_env)
        with ThreadingHTTPServer(("127.0.0.1", options.port), Handler) as server:
            print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                pass


if __name__ == "__main__":
    main()

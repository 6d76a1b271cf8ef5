"""examples/ocr_service over HTTP: pictures that are drawn here, by one process and by workers."""
from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import threading
import urllib.error
import urllib.request

import pytest

import places

SERVICE = places.REPO / "examples" / "ocr_service"
DRAW = """
import io, sys
from PIL import Image, ImageDraw, ImageFont
image = Image.new("RGB", (640, 220), "white")
draw = ImageDraw.Draw(image)
draw.text((30, 30), "HELLO", font=ImageFont.load_default(48), fill="black")
draw.text((30, 120), "Cohabit 2026", font=ImageFont.load_default(48), fill=(190, 190, 190))
image.save(sys.stdout.buffer, "PNG")
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return places.with_rapidocr(tmp_path_factory.mktemp("ocr") / "env")


@pytest.fixture(scope="module")
def picture(environment):
    return subprocess.run([environment / "bin" / "python", "-c", DRAW], check=True, capture_output=True).stdout


@pytest.fixture(scope="module", params=["process", "workers"])
def service(request, environment, tmp_path_factory):
    package = places.package(tmp_path_factory.mktemp("package"))
    env = dict(os.environ, PYTHONPATH=str(package), CUDA_VISIBLE_DEVICES="")
    process = subprocess.Popen([environment / "bin" / "python", SERVICE / "service.py", "--port", "0", "--mode", request.param],
                               env=env, stdout=subprocess.PIPE, text=True,
                               # A shell's background job ignores it, and so would the service.
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    watch = threading.Timer(200, process.kill)
    watch.start()
    url = process.stdout.readline().strip()
    watch.cancel()
    assert url.startswith("http://127.0.0.1:"), "it did not start"
    yield url
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0


def post(url, data, path="/read"):
    try:
        with urllib.request.urlopen(urllib.request.Request(url + path, data=data), timeout=120) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_text_is_read_and_judged(service, picture) -> None:
    status, page = post(service, picture)
    assert status == 200 and (page["width"], page["height"]) == (640, 220)
    first, second = page["lines"]
    assert [first["text"], second["text"].replace(" ", "")] == ["HELLO", "Cohabit2026"]
    assert first["contrast"] > 0.9 and 0.1 < second["contrast"] < 0.4, "black, and light grey on white"
    left, top = first["box"][0]
    assert 20 < left < 45 and 25 < top < 60


def test_many_clients_get_their_own_answers(service, picture) -> None:
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(post(service, picture))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert [status for status, _ in answers] == [200] * 6
    assert {page["lines"][0]["text"] for _, page in answers} == {"HELLO"}


def test_what_is_refused(service, picture) -> None:
    for data in (b"no picture", picture[:100], b"GIF89a", b""):
        assert post(service, data) == (400, {"error": "this is not a picture that can be read"})
    assert post(service, b"", "/other")[0] == 404
    connection = http.client.HTTPConnection(service[len("http://"):], timeout=30)
    for headers, status in (({"Content-Length": str(1 << 40)}, 413), ({"Content-Length": "-1"}, 411), ({"Content-Length": "many"}, 411)):
        connection.putrequest("POST", "/read")
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        assert connection.getresponse().status == status
        connection.close()
    assert post(service, picture)[0] == 200, "and it goes on"


def test_the_page(service) -> None:
    with urllib.request.urlopen(service, timeout=30) as answer:
        assert answer.headers["Content-Type"].startswith("text/html") and b'id="drop"' in answer.read()

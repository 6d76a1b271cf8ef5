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
from pathlib import Path

import pytest

import browser
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


# --- in a browser

# What is drawn where, as the pictures' maker says it: name -> text, left, top, right, bottom of its ink.
PICTURES = """
import json, sys
from pathlib import Path
from PIL import Image, ImageDraw, ImageFont

def draw(size, lines):
    image, ink = Image.new("RGB", size, "white"), {}
    pen = ImageDraw.Draw(image)
    for text, at, height in lines:
        font = ImageFont.load_default(height)
        pen.text(at, text, font=font, fill="black")
        ink[text] = pen.textbbox(at, text, font=font)
    return image, ink

place, told = Path(sys.argv[1]), {}
for name, size, lines in (
    ("plain.png", (640, 220), [("HELLO", (30, 60), 48), ("Cohabit", (320, 130), 48)]),
    ("larger than the window.png", (2400, 1200), [("HELLO", (300, 200), 150), ("Cohabit", (1200, 800), 150)]),
    ("at the edge.png", (640, 220), [("HELLO", (30, -4), 48), ("Cohabit", (380, 160), 48)]),
):
    image, ink = draw(size, lines)
    image.save(place / name)
    told[name] = [size, ink]
# On its side in the file, upright by what the camera has noted.
image, ink = draw((640, 220), [("HELLO", (30, 60), 48), ("Cohabit", (320, 130), 48)])
exif = Image.Exif()
exif[0x0112] = 6
image.transpose(Image.Transpose.ROTATE_90).save(place / "turned.jpg", exif=exif, quality=95)
told["turned.jpg"] = [(640, 220), ink]
print(json.dumps(told))
"""
# How many pixels of a screenshot in each rectangle are red (the text), and blue (the box).
COLOURS = """
import io, json, sys
import numpy
from PIL import Image
pixels = numpy.asarray(Image.open(sys.argv[1]).convert("RGB")).astype(int)
def count(box):
    left, top, right, bottom = map(round, box)
    part = pixels[max(top, 0):bottom, max(left, 0):right]
    red, green, blue = part[..., 0], part[..., 1], part[..., 2]
    return [int(((red > 150) & (green < 100) & (blue < 100)).sum()), int(((blue > 150) & (red < 100)).sum())]
print(json.dumps([count(box) for box in json.loads(sys.argv[2])]))
"""


@pytest.fixture(scope="module")
def pictures(environment, tmp_path_factory):
    place = tmp_path_factory.mktemp("pictures")
    out = subprocess.run([environment / "bin" / "python", "-c", PICTURES, place], check=True, capture_output=True).stdout
    return place, json.loads(out)


@pytest.fixture
def page(service):
    page = browser.Page(service)
    yield page
    page.close()


def on_screen(seen: dict, size: list, ink: list) -> list[float]:
    """Where in the window ink of the picture has to be."""
    left, top, right, bottom = seen["picture"]
    across, down = (right - left) / size[0], (bottom - top) / size[1]
    return [left + ink[0] * across, top + ink[1] * down, left + ink[2] * across, top + ink[3] * down]


def colours(environment, screenshot: bytes, boxes: list, at) -> list[list[int]]:
    at.write_bytes(screenshot)
    return json.loads(subprocess.run([environment / "bin" / "python", "-c", COLOURS, at, json.dumps(boxes)], check=True,
                                     capture_output=True).stdout)


def drawn_right(environment, page, seen: dict, size: list, ink: dict, tmp_path) -> None:
    left, top, right, bottom = seen["picture"]
    assert right - left == pytest.approx(min(size[0], 868), abs=2), "no wider than the page"
    assert seen["status"].startswith("2 lines in ") and seen["rows"] == [text["text"] for text in seen["texts"]]
    found = {text["text"].strip(): (text["at"], polygon) for text, polygon in zip(seen["texts"], seen["polygons"])}
    assert set(found) == set(ink), seen
    near = 0.02 * (right - left) + 4
    boxes = []
    for text, box in ink.items():
        written, polygon = found[text]
        wanted = on_screen(seen, size, box)
        assert polygon == pytest.approx(wanted, abs=near), f"the box of {text} is not around it"
        assert written[0] == pytest.approx(polygon[0], abs=3), f"{text} does not begin where its line does"
        assert top - 3 <= written[1] and written[3] <= polygon[3] + 2, f"{text} is not at its line"
        boxes += [written, [value + side for value, side in zip(polygon, (-3, -3, 3, 3))]]
    counted = colours(environment, page.screenshot(), boxes, tmp_path / "screenshot.png")
    for (written, polygon), (text, _), box in zip(zip(counted[::2], counted[1::2]), ink.items(), boxes[1::2]):
        assert written[0] > 30, f"{text} is not to be seen: {counted}"
        assert polygon[1] > (box[2] - box[0]) + (box[3] - box[1]), f"the box of {text} is not to be seen: {counted}"


@pytest.mark.parametrize("name", ("plain.png", "larger than the window.png", "at the edge.png", "turned.jpg"))
def test_a_dropped_picture_has_its_text_drawn_over_it(page, pictures, environment, tmp_path, name: str) -> None:
    place, told = pictures
    page.drop(place / name)
    drawn_right(environment, page, page.wait(), *told[name], tmp_path)


def test_another_picture_takes_its_place_and_no_picture_is_said(page, pictures, environment, tmp_path) -> None:
    place, told = pictures
    (tmp_path / "note.png").write_text("no picture")
    page.drop(place / "plain.png")
    page.wait()
    page.drop(tmp_path / "note.png")
    seen = page.wait()
    assert seen["status"] == "That did not work: this is not a picture that can be read" and seen["polygons"] == []
    page.choose(place / "plain.png")
    drawn_right(environment, page, page.wait(), *told["plain.png"], tmp_path)


def test_drawing_that_is_broken_is_noticed(service, pictures, environment, tmp_path, page) -> None:
    """The test of the tests: each of these is seen by what they look at."""
    place, told = pictures
    for breakage in ("document.querySelectorAll('svg text').forEach(text => text.style.fill = 'none')",
                     "document.querySelector('.stage svg').style.visibility = 'hidden'",
                     "document.querySelector('.stage svg').setAttribute('viewBox', '0 0 800 220')",
                     "document.querySelector('.stage svg').style.transform = 'translate(0, 30px)'",
                     "document.querySelector('svg polygon').style.stroke = 'none'",
                     "document.querySelector('svg text').textContent = 'HELL'"):
        page.drop(place / "plain.png")
        drawn_right(environment, page, page.wait(), *told["plain.png"], tmp_path)
        page.evaluate(breakage)
        with pytest.raises(AssertionError):
            drawn_right(environment, page, page.wait(), *told["plain.png"], tmp_path)


RECEIPT = """
import sys
from PIL import Image, ImageDraw, ImageFilter, ImageFont
paper = Image.new("RGB", (360, 250), (250, 248, 240))
pen = ImageDraw.Draw(paper)
for y, text, height in ((16, "CORNER BAKERY", 30), (78, "2 rolls", 24), (118, "1 coffee", 24), (178, "TOTAL", 30)):
    pen.text((24, y), text, font=ImageFont.load_default(height), fill=(40, 40, 40))
for y, text, height in ((78, "1.90", 24), (118, "2.40", 24), (178, "4.30", 30)):
    pen.text((270, y), text, font=ImageFont.load_default(height), fill=(40, 40, 40))
table = Image.new("RGB", (640, 340), (134, 104, 78))
turned = paper.convert("RGBA").rotate(4, expand=True, resample=Image.Resampling.BICUBIC)
table.paste(turned, (130, 24), turned)
table.filter(ImageFilter.GaussianBlur(0.6)).save(sys.argv[1])
"""


def test_a_screenshot_is_small(service, environment, tmp_path, request) -> None:
    """The picture of the documentation; scripts/screenshot keeps it (COHABIT_SCREENSHOT)."""
    subprocess.run([environment / "bin" / "python", "-c", RECEIPT, tmp_path / "receipt.png"], check=True)
    page = browser.Page(service, 760, 900)
    try:
        page.drop(tmp_path / "receipt.png")
        seen = page.wait()
        picture = page.screenshot()
    finally:
        page.close()
    words = " ".join(text["text"] for text in seen["texts"])
    assert all(word in words for word in ("BAKERY", "coffee", "TOTAL", "4.30")), words
    assert len(picture) < 150_000 and picture.startswith(b"\x89PNG")
    if at := os.environ.get("COHABIT_SCREENSHOT"):
        Path(at).write_bytes(picture)


def test_the_documentation_shows_it() -> None:
    picture = (places.REPO / "docs" / "ocr_service.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and 10_000 < len(picture) < 150_000
    assert "](ocr_service.png)" in (places.REPO / "docs" / "manager.md").read_text()

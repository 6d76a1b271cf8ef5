"""The page of examples/ocr_service in Debian's Chromium, driven by its own driver (WebDriver, and the DevTools protocol for the drop)."""
from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

# Rectangles in the window, of the picture, of what is drawn over it, and what the page says besides.
LOOK = """
const box = element => { const b = element.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; };
const all = (what, then) => [...document.querySelectorAll(what)].map(then);
const image = document.querySelector('.stage img');
return {
  status: document.getElementById('status').textContent,
  picture: image && image.complete && image.naturalWidth ? box(image) : null,
  polygons: all('.stage svg polygon', box),
  texts: all('.stage svg text', element => ({text: element.textContent, at: box(element)})),
  rows: all('table td:first-child', element => element.textContent),
};
"""


class Page:
    """A window with the service's page."""

    def __init__(self, url: str, width: int = 900, height: int = 760):
        browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
        if not browser or not driver:
            pytest.skip("no Chromium on this machine: apt-get install chromium chromium-driver")
        webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium: scripts/setup test makes a tools environment with it")
        options = webdriver.ChromeOptions()
        options.binary_location = browser
        self._profile = tempfile.TemporaryDirectory(prefix="cohabit-browser-", ignore_cleanup_errors=True)
        # Without a sandbox: tests run as root in containers, and the page is our own.
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
                         "--disable-background-networking", "--force-device-scale-factor=1", f"--user-data-dir={self._profile.name}"):
            options.add_argument(argument)
        self._driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver, log_output=subprocess.DEVNULL))
        self._driver.set_page_load_timeout(60)
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                     {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self._driver.get(url)

    def drop(self, picture: Path) -> None:
        """As a hand does it: the browser itself makes the events and the DataTransfer with the file, where the mouse is."""
        x, y = self._driver.execute_script("const b = document.getElementById('drop').getBoundingClientRect();"
                                           "return [(b.left + b.right) / 2, (b.top + b.bottom) / 2]")
        self._forget()
        for kind in ("dragEnter", "dragOver", "drop"):
            data = {"items": [], "files": [str(picture)], "dragOperationsMask": 1}
            self._driver.execute_cdp_cmd("Input.dispatchDragEvent", {"type": kind, "x": x, "y": y, "data": data})

    def choose(self, picture: Path) -> None:
        """By the file dialog's input instead."""
        self._forget()
        self._driver.find_element("id", "file").send_keys(str(picture))

    def _forget(self) -> None:
        self._driver.execute_script("document.getElementById('status').textContent = ''; scrollTo(0, 0)")

    def wait(self, seconds: float = 120) -> dict[str, Any]:
        """What is there once the service has answered."""
        from selenium.webdriver.support.ui import WebDriverWait

        def answered(_: Any) -> Any:
            seen = self._driver.execute_script(LOOK)
            return seen if "lines in" in seen["status"] and seen["picture"] or "did not work" in seen["status"] else None

        return WebDriverWait(self._driver, seconds, 0.1).until(answered)

    def evaluate(self, script: str, *arguments: Any) -> Any:
        return self._driver.execute_script(script, *arguments)

    def screenshot(self) -> bytes:
        return self._driver.get_screenshot_as_png()

    def close(self) -> None:
        self._driver.quit()
        self._profile.cleanup()

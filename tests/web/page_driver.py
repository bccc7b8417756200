# SPDX-License-Identifier: MIT
"""Headless Chromium for the tests of the page: Debian's chromium, chromedriver
and python3-selenium. Where one is missing the tests skip, and say so."""

import base64
import glob
import json
import os
import shutil
import subprocess
import sys
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "cli"))

from tb_cli import Skip  # noqa: E402

PAGE = os.path.join(ROOT, "build", "web", "tollbooth.html")
SHOTS = os.path.join(ROOT, "build", "check", "page")  # screenshots land here


def missing(page=PAGE):
    """What stands in the way of a browser with this page, or None."""
    if page and not os.path.isfile(page):
        return "no build/web/tollbooth.html here (make web)"
    for program in ("chromium", "chromedriver"):
        if not shutil.which(program):
            return "no %s here" % program
    try:
        import selenium  # noqa: F401
    except ImportError:
        return debians_python()
    return None


def debians_python():
    """Goes on with the system's own python3, which has Debian's modules."""
    system = "/usr/bin/python3"
    probe = [system, "-c", "import selenium"]
    if os.path.isfile(system) and os.path.realpath(sys.executable) != \
            os.path.realpath(system) and \
            subprocess.run(probe, capture_output=True, check=False).returncode == 0:
        os.execv(system, [system] + sys.argv)
    return "no python3-selenium here"


class Browser:
    """One tab with the page."""

    def __init__(self):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu",
                     "--disable-dev-shm-usage", "--hide-scrollbars"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(
            service=Service(shutil.which("chromedriver")), options=options)
        self.driver.set_script_timeout(120)

    def close(self):
        self.driver.quit()

    def cdp(self, command, **args):
        return self.driver.execute_cdp_cmd(command, args)

    def run(self, script, *args):
        return self.driver.execute_script(script, *args)

    def wait(self, script, *args):
        """Runs an async script; its last argument is the callback."""
        return self.driver.execute_async_script(script, *args)

    def open(self, hash_="", ready=True):
        self.driver.get("about:blank")
        self.driver.get("file://%s%s" % (PAGE, hash_))
        if ready:
            self.wait("""const done = arguments[0];
              (function look() { document.documentElement.dataset.ready
                ? done(1) : setTimeout(look, 20); })();""")

    def load(self, path):
        self.driver.get("about:blank")
        self.driver.get("file://" + path)

    def size(self, width, height=900):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width,
                 height=height, deviceScaleFactor=1, mobile=width < 500)

    def media(self, media="", **features):
        self.cdp("Emulation.setEmulatedMedia", media=media, features=[
            {"name": k.replace("_", "-"), "value": v} for k, v in features.items()])

    def picture(self, name):
        os.makedirs(SHOTS, exist_ok=True)
        png = base64.b64decode(self.cdp("Page.captureScreenshot", format="png")["data"])
        with open(os.path.join(SHOTS, name + ".png"), "wb") as f:
            f.write(png)
        return png

    def errors(self):
        return [e["message"] for e in self.driver.get_log("browser")
                if e["level"] in ("SEVERE", "WARNING")]

    # --- figures ----------------------------------------------------------

    def figures(self):
        return self.run("return [...document.querySelectorAll('figure[data-shot]')]"
                        ".map(f => f.dataset.shot)")

    def settle(self, shot):
        """Brings a figure into view and waits until what it draws is what its
        controls say; then its settings, numbers, checks and error."""
        return json.loads(self.wait("""
          const [shot, done] = arguments;
          const f = document.querySelector(`figure[data-shot="${shot}"]`);
          f.scrollIntoView({ block: "center", behavior: "instant" });
          let frames = 0, left = 2000; // two frames: it knows that it is seen
          (function look() {
            if (frames++ < 3 || f.ariaBusy && left-- > 0)
              return requestAnimationFrame(look);
            const ids = {};
            for (const q of f.querySelectorAll("output[data-q]"))
              ids[q.dataset.q] = q.textContent;
            done(JSON.stringify({ numbers: ids,
              command: f.querySelector(".command code").textContent,
              error: f.querySelector(".error").textContent,
              says: f.querySelector(".says").textContent,
              checks: [...f.querySelectorAll(".checks li")].map((l) => l.className),
              svg: f.querySelector("svg.tb-figure").outerHTML }));
          })();""", shot))

    def put(self, shot, name, text):
        """Sets one input the way a reader would: by its native control."""
        return self.run("""
          const [shot, name, text] = arguments;
          const place = document.querySelector(
            `figure[data-shot="${shot}"] [data-input="${name}"]`);
          if (!place) return false;
          const send = (e, type) => e.dispatchEvent(new Event(type, { bubbles: true }));
          const box = place.querySelector("input[type=checkbox]");
          if (box && place.matches(".switch")) {
            if (box.checked !== (text === "1")) box.click();
            return true;
          }
          const texts = place.querySelector("select,textarea,input[type=text]");
          if (texts) {
            texts.value = text;
          } else {
            const fields = [...place.querySelectorAll("input[type=number]")];
            const values = text.replace(/[\\[\\]]/g, "").split(",");
            values.forEach((v, i) => { fields[i].value = v; send(fields[i], "input"); });
          }
          const last = texts ?? place.querySelector("input[type=number]");
          send(last, "input");
          send(last, "change");
          return true;""", shot, name, text)


AXE = os.path.join(ROOT, "build", "check", "axe")


def axe_files():
    found = [os.environ.get("AXE", ""), "/usr/share/javascript/axe-core/axe.min.js",
             "/usr/share/nodejs/axe-core/axe.min.js"]
    for folder in sys.path + [AXE]:
        found += glob.glob(os.path.join(folder, "axe_playwright_python", "axe.min.js"))
    return [f for f in found if f and os.path.isfile(f)]


def axe_source():
    """axe-core's script out of the package that carries it; Skip if none."""
    if not axe_files():
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                        "--dest", AXE, "axe-playwright-python"], check=False,
                       timeout=120, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for wheel in glob.glob(os.path.join(AXE, "axe_playwright_python*.whl")):
            zipfile.ZipFile(wheel).extract("axe_playwright_python/axe.min.js", AXE)
    for path in axe_files():
        with open(path, encoding="utf-8") as f:
            return f.read()
    raise Skip("no axe-core here: pip package axe-playwright-python, or $AXE")

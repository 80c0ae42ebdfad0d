"""The studio as a person meets it: the program in a process of its own, and a browser, if there is one."""

import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--enable-unsafe-swiftshader"),
    "--use-angle=swiftshader",
]


def missing():
    """What tests with a browser lack, as a sentence; empty if nothing."""
    if CHROMIUM is None:
        return "there is no chromium: install it, such as by apt-get install chromium"
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "the driver of the browser is missing: pip install playwright"
    return ""


@contextmanager
def program(table, *options):
    """Yield the address of `coxfield studio`, and its process. It is ended with the block, if it has not ended."""
    words = [sys.executable, "-m", "coxfield", "studio", str(table), "--no-browser", *map(str, options)]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    alarm = threading.Timer(300, process.kill)  # a test that hangs leaves no server behind
    alarm.start()
    try:
        lines = []
        for line in process.stderr:
            lines.append(line)
            if found := re.search(r"http://\S+", line):
                yield found[0], process
                break
        else:
            raise AssertionError("".join(lines))
    finally:
        alarm.cancel()
        process.kill()
        process.wait()
        process.stderr.close()


@contextmanager
def browser(width=1280, height=800, **options):
    """Yield a function that opens a page, and a list of what pages say and ask for that they should not."""
    from playwright.sync_api import sync_playwright

    complaints = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        context = driver.chromium.launch_persistent_context(
            folder,
            executable_path=CHROMIUM,
            args=FLAGS,
            viewport={"width": width, "height": height},
            **options,
        )

        def heard(text):
            if "GL Driver Message" not in text:  # the software renderer talks about itself
                complaints.append(text)

        def opened(address):
            page = context.new_page()
            home = re.match(r"http://[^/]+/", address)[0]
            page.on("console", lambda message: heard(f"console: {message.text}"))
            page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
            page.on(
                "request",
                lambda request: (
                    None if request.url.startswith((home, "data:")) else complaints.append(f"request: {request.url}")
                ),
            )
            page.goto(address)
            until(page, "document.body.dataset.row !== undefined")
            return page

        yield opened, complaints
        context.close()


def until(page, condition, patience=30):
    """Wait until an expression is true. Playwright's own way needs `eval`, which the page forbids."""
    end = time.monotonic() + patience
    while not page.evaluate(condition):
        assert time.monotonic() < end, f"still not: {condition}"
        page.wait_for_timeout(10)


def press(page, key):
    """Press a key and wait until its answer is shown: another card, or other labels."""
    until(page, "document.body.dataset.busy === 'no'")
    shown = "[document.body.dataset.row, document.body.dataset.labelled].join()"
    before = page.evaluate(shown)
    page.keyboard.press(key)
    until(page, f"document.body.dataset.busy === 'no' && {shown} !== '{before}'")


def answer(page, name):
    """Give the row that is asked a class of one digit, which is made if it is new."""
    until(page, "document.body.dataset.busy === 'no'")
    keys = page.evaluate("[...document.querySelectorAll('#classes kbd')].map((key) => key.textContent)")
    if name in keys:
        press(page, name)
        return
    page.keyboard.press("a")
    page.wait_for_selector("dialog[open] input")
    page.keyboard.type(name)
    press(page, "Enter")


def settled(page):
    """Wait until the model has learned everything."""
    until(page, "document.getElementById('thinking').hidden")
    page.wait_for_timeout(150)


def digits_table(folder: Path, rows=None):
    """A table of digits without a label, and the labels."""
    import polars as pl
    from sklearn.datasets import load_digits

    X, truth = load_digits(return_X_y=True)
    X, truth = X[:rows], truth[:rows]
    path = folder / "digits.csv"
    columns = {f"pixel{k}": X[:, k].astype(int) for k in range(64)}
    pl.DataFrame(columns | {"digit": pl.Series([None] * len(X), dtype=pl.String)}).write_csv(path)
    return path, truth.astype(str)


if __name__ == "__main__":  # for `make test-browser`
    sys.exit(missing())

"""The pictures of docs/studio.md, by a real browser: `python tools/studio_pictures.py`."""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import numpy as np  # noqa: E402
import polars as pl  # noqa: E402
from sklearn.datasets import load_wine  # noqa: E402

from studio_page import answer, browser, digits_table, press, program, settled, until  # noqa: E402

IMAGES = ROOT / "docs" / "images"


def shot(page, name):
    """One picture, when the page is at rest."""
    page.mouse.move(5, 5)
    page.wait_for_timeout(900)
    page.screenshot(path=IMAGES / f"studio_{name}.png")


def keys(page, truth, count):
    """Answer as many questions, by keys."""
    for _ in range(count):
        answer(page, truth[int(page.evaluate("document.body.dataset.row"))])
        settled(page)


def lasso(page, rows):
    """Draw around some rows."""
    page.keyboard.press("l")
    at = np.array(page.evaluate("(rows) => rows.map((row) => window.studioMap.toScreen(row))", rows))
    box = page.locator("#overlay").bounding_box()
    middle, radius = np.median(at, axis=0), 1.5 * np.quantile(np.linalg.norm(at - np.median(at, axis=0), axis=1), 0.8)
    angles = np.linspace(0, 2 * np.pi, 40)
    path = middle + (radius + 6 * np.sin(3 * angles))[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    page.mouse.move(box["x"] + path[0, 0], box["y"] + path[0, 1])
    page.mouse.down()
    for x, y in path[1:]:
        page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.up()
    until(page, "!document.getElementById('selection').hidden")


def digits(folder):
    """Pictures of digits, from nothing to the end."""
    table, truth = digits_table(folder)
    with program(table, "-t", "digit", "--pixels", "8x8") as (address, _), browser() as (opened, _):
        page = opened(address)
        settled(page)
        shot(page, "start")
        keys(page, truth, 14)
        shot(page, "map")
        page.keyboard.press("v")
        shot(page, "doubt")
        for _ in range(3):
            page.keyboard.press("v")
        lasso(page, np.flatnonzero(truth == "6").tolist())
        shot(page, "lasso")
        page.keyboard.press("Escape")
        keys(page, truth, 26)
        row = int(page.evaluate("document.body.dataset.row"))
        press(page, str((int(truth[row]) + 3) % 10))  # a slip
        keys(page, truth, 24)
        shot(page, "stop")
        page.locator("#theme").click()
        shot(page, "dark")


def narrow(folder):
    """A table of numbers, on a small screen."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    names = {"alcohol": "alcohol (%)", "magnesium": "magnesium (mg/l)"}
    path = folder / "wine.csv"
    frame = pl.DataFrame({names.get(name, name): X[name].to_numpy() for name in X.columns})
    frame.with_columns(maker=pl.Series([None] * len(X), dtype=pl.String)).write_csv(path)
    truth = [str(code + 1) for code in y]
    with program(path, "-t", "maker") as (address, _):
        with browser(1200, 760) as (opened, _):
            page = opened(address)
            keys(page, truth, 9)
            shot(page, "table")
        with browser(600, 1000) as (opened, _):
            page = opened(address)
            keys(page, truth, 2)
            page.screenshot(path=IMAGES / "studio_narrow.png")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        digits(Path(name))
        narrow(Path(name))

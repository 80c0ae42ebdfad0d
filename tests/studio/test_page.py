"""The page in a real browser: from an empty table to labels by keys alone, and nothing lost on the way."""

import csv
import os
import signal

import httpx
import polars as pl
import pytest

from studio_page import answer, browser, digits_table, missing, press, program, settled, until

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "all is there")

DIGITS = ("-t", "digit", "--pixels", "8x8")


def row_of(page):
    return int(page.evaluate("document.body.dataset.row"))


def lines(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def on_disk(path):
    """Row -> label, of the steps that are not undone."""
    undone = {line["other"] for line in lines(path) if line["action"] == "undo"}
    kept = [line for line in lines(path) if line["step"] not in undone and line["action"] in ("label", "check")]
    return {int(line["rows"]) - 1: line["label"] for line in kept if line["rows"].isdigit()}


def keys(page, truth, labels, count):
    """Answer questions by keys alone. Each label is in the file when the next card is there."""
    for _ in range(count):
        row = row_of(page)
        answer(page, truth[row])
        assert on_disk(labels)[row] == truth[row]


def drawn_around(page, share):
    """Draw a lasso around the middle of the map, with the mouse."""
    box = page.locator("#overlay").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    dx, dy = share * box["width"] / 2, share * box["height"] / 2
    page.keyboard.press("l")
    page.mouse.move(x - dx, y - dy)
    page.mouse.down()
    for corner in ((x + dx, y - dy), (x + dx, y + dy), (x - dx, y + dy), (x - dx, y - dy)):
        page.mouse.move(*corner, steps=4)
    page.mouse.up()
    until(page, "!document.getElementById('selection').hidden")


def test_forty_labels_by_keys_alone_and_nothing_is_lost(tmp_path):
    table, truth = digits_table(tmp_path, 900)
    labels = tmp_path / "digits.labels.csv"
    with browser() as (opened, complaints):
        with program(table, *DIGITS) as (address, process):
            page = opened(address)
            assert page.evaluate("document.body.dataset.renderer") == "webgl"
            keys(page, truth, labels, 15)

            last = list(on_disk(labels))[-1]
            press(page, "Backspace")
            assert row_of(page) == last
            assert last not in on_disk(labels)
            keys(page, truth, labels, 1)

            page.reload()
            until(page, "document.body.dataset.row !== undefined")
            assert page.evaluate("document.body.dataset.labelled") == "15"
            keys(page, truth, labels, 5)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            kept = on_disk(labels)
            page.close()

        with program(table, *DIGITS) as (address, _):
            page = opened(address)
            assert page.evaluate("document.body.dataset.labelled") == "20"
            assert on_disk(labels) == kept
            keys(page, truth, labels, 20)
            settled(page)
            second = opened(address)
            assert second.evaluate("document.body.dataset.labelled") == "40"
            assert row_of(second) != row_of(page)
            keys(second, truth, labels, 1)
            until(page, "document.body.dataset.labelled === '41'")
            httpx.post(address + "save", json={}, timeout=60)
            found = pl.read_csv(tmp_path / "digits.labelled.csv", schema_overrides={"digit": pl.String})
            wrong = (found["digit"] != pl.Series(truth)).sum()
            assert wrong <= 90, "a tenth of the rows after 41 keys; random classes would leave 770"
            assert (found["digit_source"] == "given").sum() == 41
    # The browser says by itself that a page has lost its server.
    assert [one for one in complaints if "ERR_" not in one] == []


def test_lasso_rename_find_and_close(tmp_path):
    table, truth = digits_table(tmp_path, 300)
    labels = tmp_path / "digits.labels.csv"
    with program(table, *DIGITS, "--check-every", "0") as (address, process), browser() as (opened, complaints):
        page = opened(address)
        keys(page, truth, labels, 12)
        settled(page)
        given = int(page.evaluate("document.body.dataset.labelled"))

        drawn_around(page, 0.6)
        inside = page.evaluate("[...window.studioMap.selected]")
        free = set(inside) - set(on_disk(labels))
        assert len(free) > 10
        press(page, page.locator("#classes kbd").first.inner_text())
        assert int(page.evaluate("document.body.dataset.labelled")) == given + len(free)
        press(page, "Backspace")
        assert int(page.evaluate("document.body.dataset.labelled")) == given

        page.keyboard.press("e")
        page.locator("dialog input").first.fill("<b>zero</b>")
        page.locator("dialog input").last.fill("later")
        page.keyboard.press("Enter")
        until(page, "document.querySelector('#classes .label').textContent === '<b>zero</b>'")
        assert lines(labels)[-1]["other"] == "<b>zero</b>"
        assert "later" in page.inner_text("#classes")
        assert page.evaluate("document.querySelectorAll('#classes b').length") == 0

        page.keyboard.press("/")
        page.wait_for_selector("dialog[open] input")
        page.keyboard.type("77")
        page.keyboard.press("Enter")
        until(page, "document.body.dataset.row === '76'")
        press(page, " ")
        assert lines(labels)[-1]["action"] == "skip"
        for _ in range(4):
            page.keyboard.press("v")
        page.keyboard.press("?")
        page.wait_for_selector("dialog[open] dl")
        page.keyboard.press("Escape")
        page.locator("#close").click()
        page.keyboard.press("Enter")
        until(page, "document.body.dataset.closed === 'yes'")
        assert process.wait(30) == 0
        assert (tmp_path / "digits.labelled.csv").exists()
        assert complaints == []


def test_a_mixed_table_with_markup_in_its_cells_on_a_canvas(tmp_path):
    path = tmp_path / "data.csv"
    frame = pl.DataFrame(
        {
            "size (cm)": [float(k % 7) for k in range(40)],
            "kind": [("<script>document.title='bad'</script>", "plain")[k % 2] for k in range(40)],
            "<img src=x onerror=alert(1)>": [k % 2 for k in range(40)],
            "label": pl.Series([None] * 40, dtype=pl.String),
        }
    )
    frame.write_csv(path)
    with program(path) as (address, _), browser(width=480, height=900) as (opened, complaints):
        page = opened(address)
        assert "<script>" in page.inner_text("#cells") or "plain" in page.inner_text("#cells")
        assert page.evaluate("document.querySelectorAll('#cells script, #cells img').length") == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert "cm" in page.inner_text("#cells")
        answer(page, "3")
        assert complaints == []

        # A file of labels that cannot be written to: the card comes back, and nothing is lost.
        labels = tmp_path / "data.labels.csv"
        whole, row = labels.read_bytes(), row_of(page)
        labels.write_bytes(whole[:-9])
        page.keyboard.press("3")
        until(page, "!document.getElementById('error').hidden")
        assert "another program has changed it" in page.inner_text("#error")
        until(page, f"document.body.dataset.row === '{row}' && document.body.dataset.busy === 'no'")
        labels.write_bytes(whole)
        press(page, "3")
        assert on_disk(labels)[row] == "3"
        assert len(on_disk(labels)) == 2

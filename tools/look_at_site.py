"""Visit every page of a built site in Chromium: at three widths, light and dark.

Run ``python tools/look_at_site.py site``. A page is opened in a frame of 1200, 768 and 390 pixels. It must write
nothing to the console, load nothing from another host, and be no wider than the frame; names beside and below the text
must not be cut. The tool prints what is wrong, one line each, and exits with 1 if there is anything. It needs Chromium,
and nothing else that Python does not have.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDTHS = (1200, 768, 390)
SECONDS_A_PAGE = 10

# Put at the beginning of each page: what it writes to the console is kept.
LISTEN = """<script>
window.said = [];
for (const kind of ["error", "warn", "log", "info"]) {
  console[kind] = (...words) => said.push(`console: ${words.join(" ")}`);
}
window.addEventListener("error", event => {
  said.push(`error: ${event.message || event.target.src || event.target.href}`);
}, true);
</script>"""
HARNESS = """<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">
<iframe id="view" height="900"></iframe><script>
const pages = PAGES, widths = WIDTHS, found = [], view = document.getElementById("view");
const pause = ms => new Promise(done => setTimeout(done, ms));
async function open(page, mode) {
  const note = what => found.push(`${page}, ${mode}: ${what}`);
  localStorage.setItem("mode", mode); localStorage.setItem("theme", mode);
  view.width = widths[0];
  await new Promise(done => { view.onload = done; view.src = page; });
  const inside = view.contentWindow, root = inside.document.documentElement;
  await inside.document.fonts.ready;
  if (!inside.document.querySelector("h1")) note("it has no title");
  if (root.dataset.theme && root.dataset.theme !== mode) note(`it is shown as ${root.dataset.theme}`);
  for (const entry of inside.performance.getEntriesByType("resource")) {
    const ours = entry.name.startsWith(location.origin) || entry.name.startsWith("data:");
    if (!ours) note(`loads ${entry.name}`);
    if (entry.responseStatus >= 400) note(`${entry.name} is missing`);
  }
  // The list beside the text opens as one scrolls; here it is looked at as a whole.
  inside.document.querySelectorAll(".bd-sidebar-secondary ul").forEach(list => { list.style.display = "block"; });
  for (const width of widths) {
    view.width = width; await pause(30);
    for (const box of [root, ...inside.document.querySelectorAll(".bd-article-container")]) {
      if (box.scrollWidth > Math.max(box.clientWidth, width - 20)) note(`${box.scrollWidth} pixels wide at ${width}`);
    }
    for (const box of inside.document.querySelectorAll(".bd-sidebar-secondary, .prev-next-area a")) {
      if (box.scrollWidth > box.clientWidth + 1) note(`${box.className} is cut at ${width}`);
    }
    for (const one of inside.document.querySelectorAll("dl.field-list dl dt strong")) {
      if (one.getClientRects().length > 1) note(`the name ${one.textContent} is broken at ${width}`);
    }
  }
  inside.said.forEach(note);
}
(async () => {
  for (const page of pages) for (const mode of ["light", "dark"]) {
    try { await open(page, mode); } catch (error) { found.push(`${page}, ${mode}: it cannot be looked at: ${error}`); }
  }
  await fetch("/__done__", {method: "POST", body: JSON.stringify([...new Set(found)])});
})();
</script>"""


class Handler(SimpleHTTPRequestHandler):
    """The files of a site, the page that looks at them, and a place where it reports."""

    harness = ""
    found: list[str] | None = None
    done = threading.Event()

    def do_GET(self) -> None:
        """Serve a file, or the page that looks at all others. Pages are listened to."""
        path = Path(self.translate_path(self.path))
        if self.path == "/__look__.html":
            content = type(self).harness
        elif path.suffix == ".html" and path.is_file():
            content = path.read_text(encoding="utf-8").replace("<head>", f"<head>{LISTEN}", 1)
        else:
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(content.encode())

    def do_POST(self) -> None:
        """Take the report."""
        size = int(self.headers["Content-Length"])
        type(self).found = json.loads(self.rfile.read(size))
        self.send_response(204)
        self.end_headers()
        type(self).done.set()

    def log_message(self, *_) -> None:
        """Say nothing."""


def look(site: Path, pages: list[str]) -> list[str]:
    """What is wrong with the pages of a site."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        raise SystemExit("there is no Chromium: install it, or leave this check out")
    Handler.harness = HARNESS.replace("PAGES", json.dumps(pages)).replace("WIDTHS", json.dumps(WIDTHS))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        address = f"http://127.0.0.1:{server.server_port}/__look__.html"
        command = [browser, *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-port=0", address]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        finished = Handler.done.wait(60 + SECONDS_A_PAGE * len(pages))
        process.terminate()
        process.wait(30)
    server.shutdown()
    server.server_close()
    if not finished or Handler.found is None:
        return ["the browser did not finish"]
    return Handler.found


def main() -> int:
    """Look at all pages of a folder, or at some."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("pages", nargs="*", help="pages to visit; default: all")
    given = parser.parse_args()
    pages = given.pages or sorted(path.relative_to(given.site).as_posix() for path in given.site.rglob("*.html"))
    pages = [page for page in pages if not page.startswith("_")]
    found = look(given.site, pages)
    print(*found, sep="\n" if found else "")
    print(f"{len(pages)} pages at {', '.join(map(str, WIDTHS))} pixels, light and dark: {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

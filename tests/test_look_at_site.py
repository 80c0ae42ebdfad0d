"""tools/look_at_site.py: what a browser finds on pages that are wrong, and nothing on pages that are right."""

import importlib.util
import shutil
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[1] / "tools" / "look_at_site.py"
spec = importlib.util.spec_from_file_location("look_at_site", TOOL)
look_at_site = importlib.util.module_from_spec(spec)
spec.loader.exec_module(look_at_site)

GOOD = (
    "<!doctype html><html><head><title>x</title><link rel='icon' href='data:,'></head><body><h1>Good</h1></body></html>"
)
WRONG = {
    "wide.html": ('<div style="width: 500px">wide</div>', "pixels wide at 390"),
    "loud.html": ("<script>console.log('hello')</script>", "console: hello"),
    "broken.html": ("<script>undefined.length</script>", "error: "),
    "absent.html": ('<img src="nowhere.png">', "nowhere.png"),
}


@pytest.mark.skipif(not any(map(shutil.which, look_at_site.BROWSERS)), reason="there is no Chromium")
def test_every_kind_of_mistake_is_found_and_nothing_else(tmp_path):
    (tmp_path / "good.html").write_text(GOOD)
    for name, (mistake, _) in WRONG.items():
        (tmp_path / name).write_text(GOOD.replace("<h1>", f"{mistake}<h1>"))
    found = look_at_site.look(tmp_path, ["good.html", *WRONG])
    for name, (_, sentence) in WRONG.items():
        for mode in ("light", "dark"):
            assert any(line.startswith(f"{name}, {mode}") and sentence in line for line in found), (name, found)
    assert not [line for line in found if line.startswith("good.html")]

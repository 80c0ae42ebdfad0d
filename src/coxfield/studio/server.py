"""The page of the studio, for this machine and this person alone.

The server listens on 127.0.0.1. All addresses begin with a random token, which no other page and no other user of the
machine knows. Requests whose Host or Origin is another one are refused, so that a foreign page cannot reach the studio
by a name that leads here. The page may load nothing but itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import sys
import tempfile
import threading
import time
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, Response, StreamingResponse
    from starlette.routing import Route
except ImportError:
    raise ImportError("the studio needs starlette and uvicorn: pip install 'coxfield[studio]'") from None

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from numpy.typing import NDArray
    from starlette.requests import Request

HOST = "127.0.0.1"
STATIC = Path(__file__).parent / "static"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
PAGES = {path.name: path for path in sorted(STATIC.iterdir()) if path.suffix in KINDS}
SAFE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
LARGEST = 4_000_000  # bytes of a request: a lasso around 500,000 rows
POLL = 0.5  # seconds between two looks at the file of labels, which others may write to
FIRST = 3  # seconds that the first question may wait for the model
HEARTBEAT = 15  # seconds after which a tab that is gone is noticed


class Studio:
    """A session and its page.

    Parameters
    ----------
    session : Session
    save : callable, optional
        Writes the result, and returns a sentence on what was written.
    port : int, default=0
        0 for one that is free.
    """

    def __init__(self, session: Any, save: Callable[[], str] | None = None, port: int = 0):
        self.session, self.save = session, save
        self.token = secrets.token_urlsafe(24)
        self.socket = _listening(port)
        self.port = self.socket.getsockname()[1]
        self.closed = threading.Event()
        self.tabs: dict[asyncio.Queue, str] = {}
        self.loop: asyncio.AbstractEventLoop | None = None
        self.app = Starlette(routes=self._routes())
        config = uvicorn.Config(
            _Guard(self.app, self), log_level="critical", lifespan="off", timeout_graceful_shutdown=1, ws="none"
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self._serve, name="studio server", daemon=True)
        session.listeners.append(self.tell)

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    @property
    def hosts(self) -> tuple[str, str]:
        """What this server may be called."""
        return f"{HOST}:{self.port}", f"localhost:{self.port}"

    def start(self) -> None:
        """Serve, in a thread."""
        self.session.start()
        self.thread.start()
        threading.Thread(target=self._watch, name="studio file", daemon=True).start()
        while not self.server.started and self.thread.is_alive():
            time.sleep(0.01)

    def stop(self) -> None:
        """End the server and the model."""
        self.closed.set()
        self.tell("closed")
        self.server.should_exit = True
        if self.thread.is_alive():
            self.thread.join(5)
        self.socket.close()
        self.session.end()

    def tell(self, news: str) -> None:
        """Send news to all tabs. Any thread may call it."""
        if self.loop is not None and not self.loop.is_closed():
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self._tell_all, news)

    def _tell_all(self, news: str) -> None:
        for queue in self.tabs:
            queue.put_nowait(news)

    def _serve(self) -> None:
        async def serve() -> None:
            self.loop = asyncio.get_running_loop()
            await self.server.serve(sockets=[self.socket])

        asyncio.run(serve())

    def _watch(self) -> None:
        """See what other programs add to the file of labels."""
        while not self.closed.wait(POLL):
            with suppress(OSError, ValueError):  # the next step of a person says what is wrong
                self.session.refresh()

    def _routes(self) -> list[Route]:
        gets = {
            "": self._page,
            "static/{name}": self._static,
            "state": self._state,
            "places": self._places,
            "colours": self._colours,
            "card/{row:int}": self._card,
            "why/{row:int}": self._why,
            "image/{row:int}": self._image,
            "find": self._find,
            "events": self._events,
        }
        posts = {"act": self._act, "save": self._save, "close": self._close}
        found = [Route(f"/{self.token}/{path}", handler) for path, handler in gets.items()]
        return found + [Route(f"/{self.token}/{path}", handler, methods=["POST"]) for path, handler in posts.items()]

    # Answers. Functions that are not `async` run in threads, so that a slow disk holds up nobody else.

    def _page(self, request: Request) -> Response:
        return _file("index.html")

    def _static(self, request: Request) -> Response:
        return _file(request.path_params["name"])

    def _state(self, request: Request) -> Response:
        return JSONResponse(self.session.state())

    def _places(self, request: Request) -> Response:
        places = np.ascontiguousarray(self.session.learner.places, dtype="<f4")
        return Response(places.tobytes(), media_type="application/octet-stream")

    def _colours(self, request: Request) -> Response:
        return Response(self.session.colours(), media_type="application/octet-stream")

    def _card(self, request: Request) -> Response:
        return self._answered(lambda: self.session.card(request.path_params["row"]))

    def _why(self, request: Request) -> Response:
        return self._answered(lambda: self.session.why(request.path_params["row"]))

    def _image(self, request: Request) -> Response:
        row = request.path_params["row"]
        picture = self.session.rows.picture(row) if row < len(self.session.rows) else None
        if picture is None:
            return _sentence(f"row {row + 1} has no picture", 404)
        return Response(picture[0], media_type=picture[1])

    def _find(self, request: Request) -> Response:
        return self._answered(lambda: self.session.find(request.query_params.get("q", "")))

    async def _act(self, request: Request) -> Response:
        body = await _body(request)
        if not isinstance(body, dict):
            return _sentence("the request is not understood", 400)
        return await asyncio.to_thread(self._answered, lambda: self._done(body))

    def _done(self, body: dict[str, Any]) -> dict[str, Any]:
        """Do what a tab asks, and answer with the next card, the one after it, and the new state."""
        session, tab = self.session, str(body.get("tab", ""))
        answer = self._obeyed(body, tab, np.asarray(body.get("rows", []), dtype=int))
        row = answer.pop("row", None)
        if row is None and body.get("stay") is not None:
            row = int(body["stay"])
        if row is None and body.get("next") is not None:
            row = session.prefer(tab, int(body["next"]))
        elif row is None:
            row = session.next(tab)
        ahead = session.peek(tab)
        return answer | {
            "card": None if row is None else session.card(row),
            "ahead": None if ahead is None else session.card(ahead),
            "state": session.state(),
        }

    def _obeyed(self, body: dict[str, Any], tab: str, rows: NDArray) -> dict[str, Any]:
        """What was done, and the row to show if it is a certain one."""
        session, label = self.session, str(body.get("label", ""))
        match body.get("do"):
            case "label":
                return {"count": len(session.label(rows, label, check=bool(body.get("check"))))}
            case "accept":
                return {"count": len(session.accept(rows))}
            case "clear":
                session.clear(rows)
            case "skip":
                session.skip(int(rows[0]))
            case "class":
                session.add_class(label)
            case "rename":
                session.rename(label, str(body.get("other", "")))
            case "undo":
                undone = session.undo()
                row = None if undone is None else undone["row"]
                if row is not None:
                    session.held[tab] = row
                return {"undone": undone, "row": row}
            case "show":
                session.hold(tab, int(rows[0]))
                return {"row": int(rows[0])}
            case "next":
                if not session.learner.turns:
                    session.learner.wait(FIRST)  # the first question is worth a moment
            case _:
                raise ValueError("the request is not understood")
        return {}

    async def _save(self, request: Request) -> Response:
        return await asyncio.to_thread(self._answered, self._saved)

    def _saved(self) -> dict[str, str]:
        self.session.learner.wait(60)
        return {"sentence": self.save() if self.save is not None else "the labels are kept until the studio closes"}

    async def _close(self, request: Request) -> Response:
        answer = await asyncio.to_thread(self._answered, self._saved)
        if answer.status_code == 200:
            self.closed.set()
        return answer

    async def _events(self, request: Request) -> Response:
        return StreamingResponse(
            self._stream(request.query_params.get("tab", "")), media_type="text/event-stream", headers=SAFE
        )

    async def _stream(self, tab: str) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[str] = asyncio.Queue()
        self.tabs[queue] = tab
        try:
            yield b"data: hello\n\n"
            while not self.server.should_exit:
                try:
                    news = await asyncio.wait_for(queue.get(), HEARTBEAT)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                yield f"data: {news}\n\n".encode()
                if news == "closed":
                    return
        finally:
            del self.tabs[queue]
            self.session.leave(tab)

    @staticmethod
    def _answered(answer: Callable[[], Any]) -> Response:
        """What a function gives, or the sentence of its error."""
        try:
            return JSONResponse(answer())
        except (ValueError, TypeError, IndexError) as error:
            return _sentence(str(error), 400)
        except OSError as error:
            return _sentence(str(error), 507)


class _Guard:
    """Refuse whoever does not know the token, or comes from another page."""

    def __init__(self, app: Any, studio: Studio):
        self.app, self.studio = app, studio

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        refused = self._refusal(scope)
        if refused is not None:
            await refused(scope, receive, send)
            return

        async def send_safely(message: Any) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                message["headers"] += [
                    (name.lower().encode(), value.encode())
                    for name, value in SAFE.items()
                    if name.lower().encode() not in present
                ]
            await send(message)

        await self.app(scope, receive, send_safely)

    def _refusal(self, scope: Any) -> Response | None:
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        if headers.get("host", []) not in [[host] for host in self.studio.hosts]:
            return _sentence("this is not the address of the studio", 403)
        origins = [f"http://{host}" for host in self.studio.hosts]
        if any(origin not in origins for origin in headers.get("origin", [])):
            return _sentence("another page may not use the studio", 403)
        if any(site in ("cross-site", "same-site") for site in headers.get("sec-fetch-site", [])) and (
            scope["method"] != "GET" or headers.get("sec-fetch-mode") != ["navigate"]
        ):
            return _sentence("another page may not use the studio", 403)
        token = scope["path"].split("/")[1] if scope["path"].startswith("/") else ""
        if not secrets.compare_digest(token.encode(), self.studio.token.encode()):
            return _sentence("the address needs the token that the studio printed when it started", 403)
        sizes = headers.get("content-length", ["0"])
        if not sizes[0].isdigit() or int(sizes[0]) > LARGEST:
            return _sentence("the request is too large", 413)
        return None


def _file(name: str) -> Response:
    path = PAGES.get(name)
    if path is None:
        return _sentence("there is no such file", 404)
    return Response(path.read_bytes(), media_type=KINDS[path.suffix])


def _sentence(text: str, status: int) -> Response:
    return JSONResponse({"error": " ".join(text.split())}, status_code=status, headers=SAFE)


async def _body(request: Request) -> Any:
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > LARGEST:
            return None
    try:
        return json.loads(content)
    except ValueError:
        return None


def _listening(port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":  # there it would let two programs share a port
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((HOST, port))
        found.listen(64)
    except (OSError, OverflowError):
        found.close()
        raise ValueError(f"port {port} is in use or not allowed: give another one, or 0 for any that is free") from None
    return found


def show(address: str) -> None:
    """Open a browser. Other users may read the command lines of programs, so the token goes by a private file."""
    text = f'<!doctype html><meta http-equiv="refresh" content="0; url={address}"><a href="{address}">studio</a>'
    number, name = tempfile.mkstemp(prefix="coxfield-studio-", suffix=".html")
    with os.fdopen(number, "w", encoding="utf-8") as stream:
        stream.write(text)
    webbrowser.open(Path(name).as_uri())
    remover = threading.Timer(20, lambda: Path(name).unlink(missing_ok=True))
    remover.daemon = True
    remover.start()


def run(studio: Studio, *, browser: bool = True, announce: Callable[[str], None] = lambda address: None) -> None:
    """Serve until the page is closed by its button, or by Ctrl-C. The result is written then, too."""
    quick = sys.getswitchinterval()
    sys.setswitchinterval(0.001)  # a key press does not wait for the model
    studio.start()
    announce(studio.address)
    try:
        if browser:
            show(studio.address)
        while not studio.closed.wait(0.2):
            pass
        time.sleep(0.2)  # the tab that has closed the studio reads the answer
    except KeyboardInterrupt:
        if studio.save is not None:
            studio.save()
    finally:
        studio.stop()
        sys.setswitchinterval(quick)

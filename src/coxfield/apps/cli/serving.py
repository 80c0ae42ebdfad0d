"""A model behind HTTP: `coxfield serve`.

A request is one row, or a list of rows, by the names of the columns. The answer has the same form: one answer, or a
list of answers. One prediction runs at a time, with all the threads that the model may take, so memory stays flat
however many clients wait. Errors are the sentences of the command line.
"""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import anyio
import numpy as np
import polars as pl
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from coxfield import __version__
from coxfield.apps.cli.console import label_text
from coxfield.apps.cli.options import features_for
from coxfield.apps.cli.predict import MOST_REASONS, is_exact, loudest
from coxfield.io.columns import Table, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

    from coxfield.io.model_file import SavedModel

ROW = "the request"
READING = 30.0  # seconds that a client may take to send its rows
SECURITY = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}
LOG = logging.getLogger("coxfield.serve")


class RefusedError(ValueError):
    """A request that is answered with a sentence and a status."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True)
class Served:
    """A model, and the work that requests ask of it."""

    saved: SavedModel
    name: str
    """What the file is called."""
    largest: int
    """Bytes of a request, at most."""
    busy: threading.Lock = field(default_factory=threading.Lock)
    """Held while a prediction runs."""

    @property
    def labels(self) -> list[str]:
        """The classes as text."""
        return [label_text(label) for label in self.saved.model.classes_.tolist()]

    def health(self) -> dict[str, Any]:
        """What is served."""
        return {
            "status": "ok",
            "model": self.name,
            "coxfield": __version__,
            "target": self.saved.target,
            "features": list(self.saved.features),
            "classes": self.saved.model.classes_.tolist(),
            "training_rows": len(self.saved.model.y_fit_),
        }

    def predict(self, X: Any, query: Mapping[str, str]) -> list[dict[str, Any]]:
        """The class of each row, and the probability of each class."""
        labels, probabilities = self.saved.model.predict_with_proba(X)
        return [
            {self.saved.target: label, "probabilities": dict(zip(self.labels, row, strict=True))}
            for label, row in zip(labels.tolist(), probabilities.tolist(), strict=True)
        ]

    def sets(self, X: Any, query: Mapping[str, str]) -> list[dict[str, Any]]:
        """Classes among which the true one is, with a probability that the request names."""
        coverage, per_class = _number(query, "coverage", 0.9), query.get("per_class", "false")
        if not 0 < coverage < 1:
            raise RefusedError(f"coverage must be between 0 and 1, such as 0.9; got {coverage:g}")
        if per_class not in ("true", "false"):
            raise RefusedError(f"per_class must be true or false, got {per_class!r}")
        model = self.saved.model
        found = model.predict_set(X, coverage, per_class=per_class == "true")
        exact = is_exact(model)
        return [{"set": model.classes_[row].tolist(), "guaranteed": exact} for row in found]

    def reasons(self, X: Any, query: Mapping[str, str]) -> list[dict[str, Any]]:
        """The class of each row, and the training rows that speak loudest for it."""
        top = _number(query, "top", 5)
        if top != int(top) or not 1 <= top <= MOST_REASONS:
            raise RefusedError(f"top must be from 1 to {MOST_REASONS}, got {top:g}")
        model, ids = self.saved.model, self.saved.ids
        labels = model.predict(X)
        codes = np.searchsorted(model.classes_, labels)
        rows, shares, rest = loudest(model.contributions(X, int(top)), codes)
        return [
            {
                self.saved.target: label,
                "reasons": [
                    {"row": row + 1 if ids is None else ids.texts[row], "share": share}
                    for row, share in zip(mine, loud, strict=True)
                    if row >= 0
                ],
                "rest": other,
            }
            for label, mine, loud, other in zip(
                labels.tolist(), rows.tolist(), shares.tolist(), rest.tolist(), strict=True
            )
        ]

    def answer(self, work: Callable, content: bytes, query: Mapping[str, str]) -> bytes:
        """The answer to a request, as JSON: as many entries as it has rows, or one entry for one row."""
        with self.busy:
            given = _parsed(content)
            rows = [given] if isinstance(given, dict) else given
            table = _table(rows, self.saved.features)
            found = work(features_for(self.saved.model, table, self.saved.features), query)
            kept = self.saved.id_column
            if kept is not None and kept in table.rows.columns:
                found = [{kept: one, **rest} for one, rest in zip(table.rows[kept].to_list(), found, strict=True)]
            return json.dumps(found[0] if isinstance(given, dict) else found, allow_nan=False).encode()


def _number(query: Mapping[str, str], name: str, default: float) -> float:
    try:
        return float(query.get(name, default))
    except ValueError:
        raise RefusedError(f"{name} must be a number, got {query[name]!r}") from None


def _parsed(content: bytes) -> Any:
    """What a request holds: one row, or a list of rows."""

    def refuse(constant: str) -> None:
        raise RefusedError(f"{ROW} holds {constant}, which is not JSON: leave the value blank with null")

    try:
        given = json.loads(content, parse_constant=refuse)
    except RefusedError:
        raise
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"{ROW} cannot be read as JSON: {' '.join(str(error).split())}") from None
    rows = [given] if isinstance(given, dict) else given
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise RefusedError(f'{ROW} must be one row, such as {{"length": 1.5}}, or a list of rows')
    if not rows:
        raise RefusedError(f"{ROW} has no rows")
    return given


def _table(rows: list[dict], features: tuple[str, ...]) -> Table:
    """The rows as a table. A row without a feature is refused, so that a wrong name is not taken for a blank."""
    for number, row in enumerate(rows, start=1):
        missing = [name for name in features if name not in row]
        if missing:
            kind = "column" if len(missing) == 1 else "columns"
            raise RefusedError(
                f"row {number} of {ROW} has no {kind} {listed(missing)}; it has {listed(list(row))}; null stands for a "
                "blank"
            )
        nested = [name for name in features if isinstance(row[name], list | dict)]
        if nested:
            raise RefusedError(
                f"row {number} of {ROW} holds a list or an object in column {nested[0]!r}, where a number or a text is "
                "needed"
            )
    names = list(dict.fromkeys(name for row in rows for name in row))
    return Table(ROW, pl.DataFrame([_column(name, [row.get(name) for row in rows]) for name in names]))


def _column(name: str, values: list) -> pl.Series:
    """A column of JSON values: of one type, or all as text, as a column of a CSV would be."""
    kinds = {type(value) for value in values if value is not None}
    try:
        if kinds == {int} and all(value is None or -(2**63) <= value < 2**63 for value in values):
            return pl.Series(name, values, dtype=pl.Int64)
        if kinds <= {int, float}:
            return pl.Series(name, [None if value is None else float(value) for value in values], dtype=pl.Float64)
        if kinds == {bool}:
            return pl.Series(name, values, dtype=pl.Boolean)
        texts = [None if value is None else value if isinstance(value, str) else json.dumps(value) for value in values]
        return pl.Series(name, texts, dtype=pl.String)
    except OverflowError:
        raise RefusedError(f"column {name!r} of {ROW} holds a number that is too large") from None


async def _body(request: Request, largest: int) -> bytes:
    """The bytes of a request. Too many are refused before they are read, or while they are."""
    too_large = RefusedError(
        f"{ROW} has more than {largest:,} bytes: send fewer rows at a time, or start coxfield serve with a larger "
        "--limit",
        413,
    )
    if int(request.headers.get("content-length") or 0) > largest:
        raise too_large
    parts, size = [], 0
    try:
        with anyio.fail_after(READING):
            async for part in request.stream():
                size += len(part)
                if size > largest:
                    raise too_large
                parts.append(part)
    except TimeoutError:
        raise RefusedError(f"{ROW} was not complete after {READING:g} seconds", 408) from None
    except ClientDisconnect:  # nobody reads the answer
        raise RefusedError(f"{ROW} was not complete when the client hung up") from None
    return b"".join(parts)


def application(served: Served, hosts: list[str]) -> Starlette:
    """The routes of a served model.

    Parameters
    ----------
    served : Served
    hosts : list of str
        Names under which clients may ask; ``["*"]`` for any. A page of the web that has its name point here is not
        answered.
    """

    def asked(work: Callable) -> Callable:
        async def endpoint(request: Request) -> Response:
            content = await _body(request, served.largest)
            answer = await run_in_threadpool(served.answer, work, content, request.query_params)
            return Response(answer, media_type="application/json")

        return endpoint

    async def health(_: Request) -> Response:
        return JSONResponse(served.health())

    async def described(_: Request) -> Response:
        return JSONResponse(description(served))

    async def page(_: Request) -> Response:
        return HTMLResponse(_page(served), headers=SECURITY)

    works = {"/predict": served.predict, "/reasons": served.reasons, "/sets": served.sets}
    return Starlette(
        routes=[
            Route("/", page),
            Route("/docs", page),
            Route("/openapi.json", described),
            Route("/health", health),
            *(Route(path, asked(work), methods=["POST"]) for path, work in works.items()),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=hosts)],
        exception_handlers={ValueError: _refused, HTTPException: _unknown, Exception: _failed},
    )


async def _refused(_: Request, error: Exception) -> Response:
    sentence = " ".join(str(error).split())
    return JSONResponse({"error": sentence}, getattr(error, "status", 400))


async def _unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    ways = "GET / lists what can be asked"
    sentence = {
        404: f"there is nothing at {request.url.path}: {ways}",
        405: f"{request.method} is not for {request.url.path}: {ways}",
    }.get(error.status_code, str(error.detail))
    return JSONResponse({"error": sentence}, error.status_code, headers=error.headers)


async def _failed(_: Request, error: Exception) -> Response:
    LOG.error("a request failed", exc_info=error)
    return JSONResponse({"error": f"the request failed ({type(error).__name__}); the server has written why"}, 500)


# What can be asked, for programs (OpenAPI) and for people (a page of that).


def _example(served: Served) -> dict[str, Any]:
    """A row by the names of the columns. It holds no training row: these may be private."""
    columns = getattr(served.saved.model, "columns_", None)
    kinds = {} if columns is None else {column.name: column for column in columns.columns}
    return {name: _typical(kinds.get(name)) for name in served.saved.features}


def _typical(column: Any) -> Any:
    if column is None or column.kind == "number":
        return 1.5
    return column.levels[0] if column.levels else {"yes or no": "yes", "date": "2024-12-31"}.get(column.kind)


def description(served: Served) -> dict[str, Any]:
    """The OpenAPI description."""
    row = {
        "type": "object",
        "required": list(served.saved.features),
        "properties": {name: {"type": ["number", "string", "boolean", "null"]} for name in served.saved.features},
        "example": _example(served),
    }
    body = {
        "required": True,
        "content": {"application/json": {"schema": {"oneOf": [row, {"type": "array", "items": row}]}}},
    }
    refusal = {
        "description": "One sentence that says what was wrong and what to do.",
        "content": {"application/json": {"schema": {"type": "object", "properties": {"error": {"type": "string"}}}}},
    }

    def post(summary: str, *parameters: tuple[str, str, Any, str]) -> dict[str, Any]:
        listed = [
            {"name": name, "in": "query", "description": text, "schema": {"type": kind, "default": default}}
            for name, kind, default, text in parameters
        ]
        answers = {"200": {"description": "One answer for one row, a list of answers for a list of rows."}}
        codes = {"400": refusal, "413": refusal}
        return {
            "post": {"summary": summary, "parameters": listed, "requestBody": body, "responses": {**answers, **codes}}
        }

    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"coxfield: {served.name}",
            "version": __version__,
            "description": f"Predicts {served.saved.target!r} from {len(served.saved.features)} columns.",
        },
        "paths": {
            "/predict": post("The class, and the probability of each class."),
            "/reasons": post(
                "The training rows that speak loudest for the predicted class.",
                ("top", "integer", 5, f"How many, from 1 to {MOST_REASONS}."),
            ),
            "/sets": post(
                "Classes among which the true one is, with a given probability.",
                ("coverage", "number", 0.9, "That probability."),
                ("per_class", "boolean", False, "Whether it holds in each class, not only in all together."),
            ),
            "/health": {"get": {"summary": "What is served.", "responses": {"200": {"description": "It works."}}}},
        },
    }


STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
pre { overflow-x: auto; padding: .75rem; border: 1px solid color-mix(in srgb, currentColor 25%, transparent) }
code { overflow-wrap: anywhere }
"""


def _page(served: Served) -> str:
    """The description as a page. It loads nothing."""
    row = escape(json.dumps(_example(served), ensure_ascii=False))
    sections = []
    for path, ways in description(served)["paths"].items():
        for method, what in ways.items():
            options = "".join(
                f"<li><code>{one['name']}</code> (default {json.dumps(one['schema']['default'])}): "
                f"{escape(one['description'])}</li>"
                for one in what.get("parameters", ())
            )
            data = f" \\\n  -H 'Content-Type: application/json' -d '{row}'" if method == "post" else ""
            sections.append(
                f"<h2><code>{method.upper()} {path}</code></h2><p>{escape(what['summary'])}</p>"
                f"<ul>{options}</ul><pre>curl -s ADDRESS{path}{data}</pre>"
            )
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<link rel='icon' href='data:,'><title>coxfield: {escape(served.name)}</title><style>{STYLE}</style>"
        f"<h1>{escape(served.name)}</h1><p>{escape(description(served)['info']['description'])} A request is one row, "
        "or a list of rows; the answer has the same form. <code>ADDRESS</code> is that of this page. For programs: "
        f"<a href='openapi.json'>openapi.json</a>.</p>{''.join(sections)}"
    )

"""`coxfield serve`: answer requests for predictions over HTTP."""

import socket
from typing import TYPE_CHECKING, Annotated

import typer

from coxfield.apps.cli import options

if TYPE_CHECKING:
    from coxfield.apps.cli.serving import Served

LOOPBACK = ("127.0.0.1", "::1", "localhost")
CLIENTS = 512  # connections at a time; further ones are told to come back
MEGABYTE = 10**6


def serve(
    model: options.ModelArgument,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to listen at; 0.0.0.0 for all.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen at; 0 for a free one.")] = 8000,
    limit: Annotated[
        float, typer.Option("--limit", metavar="MB", min=0.001, max=1000, help="Size of a request, at most.")
    ] = 10.0,
    jobs: options.JobsOption = None,
    quiet: options.QuietOption = False,
) -> None:
    """Answer requests for predictions over HTTP, until Ctrl-C.

    A request is a row as a JSON object, or a list of rows. Columns are found by their names, in any order, and null
    stands for a blank. /predict answers with classes and probabilities, /reasons with the training rows behind them,
    /sets with sets of classes that hold the true one, and /health with what is served. The address itself is a page
    that says more, and /openapi.json says it to programs. An error is a sentence under the name error.

    Only this computer can ask, unless --host names another address. There are no passwords: put a server that has them
    in front before others can reach it.

    \b
    Examples:
      coxfield serve model.skops
      coxfield serve model.skops --port 9000 --limit 50
      curl -s http://127.0.0.1:8000/predict -d '{"length": 5.1, "width": 3.5}'
    """  # noqa: D301
    try:
        from coxfield.apps.cli.serving import Served
    except ImportError as error:
        raise ValueError(f"coxfield serve needs {error.name}: pip install 'coxfield[serve]'") from None
    from coxfield.io import model_file

    saved = model_file.load(model)
    saved.model.set_params(n_jobs=jobs)
    listening = _listening(host, port)
    if not quiet:
        typer.echo(f"{model.name} is served at {_address(listening)} (Ctrl-C ends it)", err=True)
    run(Served(saved, model.name, int(limit * MEGABYTE)), host, listening)


def run(served: "Served", host: str, listening: socket.socket) -> None:
    """Serve until the process is told to stop."""
    import uvicorn

    from coxfield.apps.cli.serving import application

    hosts = [*LOOPBACK, "[::1]"] if host in LOOPBACK else ["*"]
    config = uvicorn.Config(
        application(served, hosts), log_level="warning", access_log=False, limit_concurrency=CLIENTS, lifespan="off"
    )
    uvicorn.Server(config).run(sockets=[listening])


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens, so that an address that is taken is a sentence before anything starts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(CLIENTS)  # so that who asks at once waits, and is not refused
    except OSError as error:
        listening.close()
        raise ValueError(f"{host}:{port} cannot be listened at ({error.strerror}): give another --port") from None
    return listening


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

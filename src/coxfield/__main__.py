"""The `coxfield` command, also as `python -m coxfield`: start the command line, or say what has to be installed.

The command line needs packages that the library does not need. This module imports none of them.
"""

import importlib.util
import sys

NEEDED = ("polars", "rich", "typer")


def main() -> None:
    """Run the command line: the entry point of the `coxfield` script."""
    try:
        missing = [name for name in NEEDED if not _installed(name)]
        if missing:
            sys.exit(f"The coxfield command needs {', '.join(missing)}: pip install 'coxfield[cli]'")
        from coxfield.apps.cli import interrupts

        interrupts.run(_command_line)
    except KeyboardInterrupt:  # in the milliseconds before `interrupts` listens, and after
        print("Stopped by Ctrl-C", file=sys.stderr)
        sys.exit(130)


def _command_line() -> None:
    from coxfield.apps.cli.app import main as run

    run()


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


if __name__ == "__main__":
    main()

"""Stop commands at random moments: `PYTHONPATH=tests python -m fuzz.interruptions --moments 50`.

The real command line runs in processes of its own, and gets SIGINT (Ctrl-C) or SIGKILL. Afterwards every output is the
old one or a whole new one, and the next run works.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.stoppable import COMMANDS, prepare

SECONDS = 1.0  # in which Ctrl-C must end a command
LINGER = 10.0  # seconds after which other processes of a command that has ended must be gone
SIGNALS = {"SIGINT": signal.SIGINT, "SIGKILL": signal.SIGKILL}
INTERRUPTED = 130


@dataclass(frozen=True)
class Ending:
    """How a process ended."""

    code: int
    errors: str
    seconds: float
    """From the signal to the end; from the start if there was no signal."""
    left: bool = False
    """Whether processes that it has started are still there."""


@dataclass
class Tally:
    """What happened to one command under one signal."""

    moments: int = 0
    old: int = 0
    whole: int = 0
    before_start: int = 0
    """Signals that came when Python itself was still starting, before any line of the package ran."""
    slowest: float = 0.0
    left: set = field(default_factory=set)
    """Hidden files that were left."""
    faults: list = field(default_factory=list)


def start(words, folder, errors):
    """Start a command in a group of processes of its own, as a terminal does."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    arguments = [sys.executable, "-m", "coxfield", *words]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": errors, "stdin": subprocess.DEVNULL}
    return subprocess.Popen(arguments, cwd=folder, env=environment, start_new_session=True, **pipes)


def finish(process, errors, since):
    """Wait for the end of a process, and for a while for those that it has started: they may say something too."""
    code = process.wait(timeout=600)
    seconds = time.perf_counter() - since
    until = time.perf_counter() + LINGER
    while (left := is_alive(process.pid)) and time.perf_counter() < until:
        time.sleep(0.05)
    errors.seek(0)
    return Ending(code, errors.read().decode(), seconds, left)


def is_alive(group):
    """Whether a group of processes has members."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def run(command, folder, moment=None, which=None):
    """Run a command. If a moment is given, send a signal to it and to all processes that it has started."""
    with tempfile.TemporaryFile() as errors:
        since, process = time.perf_counter(), start(command.words, folder, errors)
        if moment is not None:
            time.sleep(moment)
            since = time.perf_counter()
            if process.poll() is None:
                os.killpg(process.pid, SIGNALS[which])
        return finish(process, errors, since)


def undisturbed(command, folder):
    """Run a command to its end, and return how long it took."""
    ending = run(command, folder)
    assert ending.code == 0, ending.errors
    return ending.seconds


class Experiment:
    """One command, its folder, and what an undisturbed run makes of it."""

    def __init__(self, command, home, warm_up=True):
        self.command, self.home = command, home
        self.inputs = home / f"{command.name}-inputs"
        prepare(self.inputs)
        self.made = self.fresh()
        self.duration = undisturbed(command, self.made)
        if warm_up:  # the first run compiles and caches, and takes longer
            self.duration = undisturbed(command, self.fresh())

    def fresh(self):
        """A new folder with the inputs, and with old files where the outputs will be."""
        folder = Path(tempfile.mkdtemp(dir=self.home))
        shutil.copytree(self.inputs, folder, dirs_exist_ok=True)
        if self.command.before is not None:
            for name in self.command.outputs:
                (folder / name).write_bytes(self.command.before(folder))
        return folder

    def interrupt(self, moment, which, tally, again=True):
        """Stop the command once, judge what is left, and, if asked to, run it again."""
        folder = self.fresh()
        before = {path.name for path in folder.iterdir()}
        ending = run(self.command, folder, moment, which)
        tally.moments += 1
        tally.slowest = max(tally.slowest, ending.seconds)
        found = [*faults_of_ending(ending, which, tally), *self.faults_of_files(folder, before, which, tally)]
        found += self.faults_of_next_run(folder, tally) if again else []
        tally.faults += [f"{self.command.name}, {which} after {moment:.2f} s: {fault}" for fault in found]
        shutil.rmtree(folder)

    def faults_of_next_run(self, folder, tally):
        """The next run must do what the one that was stopped did not."""
        undisturbed(self.command, folder)
        if any(folder.rglob(".*.part")):
            tally.left.add("after the next run too")
        whole = all(self.is_whole(folder, name) for name in self.command.outputs)
        return [] if whole else ["the next run made something else"]

    def is_whole(self, folder, name):
        """Whether an output is what an undisturbed run makes."""
        return (folder / name).exists() and self.command.outputs[name](folder / name, self.made / name)

    def faults_of_files(self, folder, before, which, tally):
        """Outputs must be old or whole. After Ctrl-C nothing else is left, and after SIGKILL nothing that is seen."""
        new = {path.name for path in folder.iterdir()} - before - set(self.command.outputs)
        parts = {path.name for path in folder.rglob(".*.part")} | {name for name in new if name.startswith(".")}
        tally.left |= {f".*.{name.split('.')[-1]}" for name in parts}
        if new - parts or (which == "SIGINT" and parts):
            yield f"left {sorted(new | parts)}"
        whole = [self.is_whole(folder, name) for name in self.command.outputs]
        tally.whole += all(whole)
        tally.old += not all(whole)
        for name, done in zip(self.command.outputs, whole, strict=True):
            if not done and not self.command.is_old(folder, name):
                yield f"{name} is neither old nor whole"


def faults_of_ending(ending, which, tally):
    """Ctrl-C must end a command soon, with one line and its own exit code."""
    if ending.left:
        yield "processes are left"
    if which == "SIGKILL" or ending.code == 0:
        return
    if ending.code == -signal.SIGINT or ("Traceback" in ending.errors and "coxfield" not in ending.errors):
        tally.before_start += 1
        return
    if ending.code != INTERRUPTED:
        yield f"exit code {ending.code}"
    lines = [line for line in ending.errors.splitlines() if not line.startswith("Warning: ")]
    if len(lines) != 1 or "Traceback" in ending.errors:
        yield f"not one line but {ending.errors[-1500:]!r}"
    if ending.seconds > SECONDS:
        yield f"took {ending.seconds:.1f} seconds"


def main(arguments=None):
    """Interrupt every command, print a table, and return the number of faults."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=50, help="moments per command, half of them for each signal")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--command", choices=[command.name for command in COMMANDS], action="append")
    asked = parser.parse_args(arguments)
    rng, faults = random.Random(asked.seed), []
    print(f"{'command':10}{'signal':>9}{'moments':>9}{'old':>6}{'whole':>7}{'early':>7}{'slowest':>10}  left")
    with tempfile.TemporaryDirectory() as home:
        for command in (one for one in COMMANDS if one.name in (asked.command or [one.name])):
            experiment, tallies = Experiment(command, Path(home)), {which: Tally() for which in SIGNALS}
            for number in range(asked.moments):
                which = list(SIGNALS)[number % 2]
                experiment.interrupt(rng.uniform(0, experiment.duration), which, tallies[which])
            for which, tally in tallies.items():
                print(row(command.name, which, tally), flush=True)
                faults += tally.faults
    print(*faults, f"{len(faults)} faults", sep="\n")
    return len(faults)


def row(name, which, tally):
    """A line of the table."""
    numbers = f"{tally.moments:9}{tally.old:6}{tally.whole:7}{tally.before_start:7}{tally.slowest:9.2f}s"
    return f"{name:10}{which:>9}{numbers}  {', '.join(sorted(tally.left)) or 'nothing'}"


if __name__ == "__main__":
    sys.exit(1 if main() else 0)

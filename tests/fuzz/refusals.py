"""Whether an exception is a proper refusal: one sentence by this package or by scikit-learn, or the kernel's own."""

import traceback
from dataclasses import dataclass
from pathlib import Path

import sklearn

import coxfield
from fuzz.kernels import KernelFaultError

OURS, THEIRS = Path(coxfield.__file__).parent, Path(sklearn.__file__).parent
#: Words of NumPy, SciPy and Python about their own internals. A user cannot act on them.
INTERNAL = (
    *("broadcast", "operands", "out of bounds", "zero-size array", "cannot convert float", "overflow", "ufunc"),
    *("not supported between", "unhashable", "object has no attribute", "not subscriptable", "shapes ("),
    *(
        "reduction operation",
        "setting an array element",
        "ambiguous",
        "singular matrix",
        "did not converge",
        "<lambda>",
    ),
    *("unexpected keyword", "positional argument", "unsupported operand", "must be real number,", "not iterable"),
)
#: Parts of scikit-learn that may speak to the user. A refusal by another part means that we called it wrongly.
SPOKEN = ("utils/validation.py", "utils/multiclass.py", "gaussian_process/kernels.py", "base.py", "utils/_tags.py")


@dataclass(frozen=True)
class Refusal:
    """An exception, whose sentence it is, and what is wrong with it (or an empty string)."""

    who: str
    sentence: str
    fault: str
    where: str


def refusal(error):
    """Look at an exception of an estimator."""
    frames = traceback.extract_tb(error.__traceback__)
    sentence = str(error)
    if isinstance(error, KernelFaultError):
        return Refusal("kernel", sentence, "", "")
    who = speaker(frames)
    return Refusal(who, sentence, _fault(error, sentence, who), place(frames))


def speaker(frames):
    """Who raised: "ours" for a raise statement of this package, "scikit-learn" for its checks, or "nobody"."""
    last = frames[-1]
    if _below(last.filename, OURS):
        return "ours" if (last.line or "").lstrip().startswith("raise") else "nobody"
    first = next((frame for frame in frames if _below(frame.filename, THEIRS)), last)
    allowed = _below(first.filename, THEIRS) and str(Path(first.filename).relative_to(THEIRS)).endswith(SPOKEN)
    return "scikit-learn" if allowed else "nobody"


def place(frames):
    """The last line of this package that was running, by file, function and text: equal bugs have equal places."""
    ours = [frame for frame in frames if _below(frame.filename, OURS)]
    if not ours:
        return "outside of the package"
    last = ours[-1]
    return f"{Path(last.filename).relative_to(OURS)}:{last.lineno} {last.name}: {last.line}"


def _below(name, folder):
    return Path(name).is_relative_to(folder)


def _fault(error, sentence, who):
    """What is wrong with an exception as a refusal; empty if nothing is."""
    if not isinstance(error, ValueError | TypeError):
        return f"{type(error).__name__} instead of ValueError or TypeError"
    if who == "nobody":
        return "raised by nobody who speaks to users"
    if not sentence.strip():
        return "empty message"
    if who == "ours" and "\n" in sentence:
        return "message of several lines"
    said = [word for word in INTERNAL if word in sentence]
    return f"message speaks of internals: {said[0]!r}" if said else ""

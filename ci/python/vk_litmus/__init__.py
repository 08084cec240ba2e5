"""Litmus tests for GPU memory models and races in shaders, from Python.

Each function runs the program `vk-litmus` once and returns its JSON answer as dataclasses. Fields that a newer program adds are in
`raw`. Options of the command line are keyword arguments: `grid=(4, 1, 1)` is `--grid 4,1,1`, `seed=1` is `--seed 1`, `strict=True` is
`--strict`, and a list repeats its option.

    >>> import vk_litmus
    >>> [answer] = vk_litmus.check("mp/MP+rel-acq")
    >>> answer.race
    'free'
    >>> [str(outcome) for outcome in answer.outcomes if not outcome.allowed]
    ['P1:r0=1 P1:r1=0']
"""

import dataclasses
import importlib
import json
import os
import shutil
import subprocess
import sys
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional, Union

__all__ = [
    "CheckAnswer",
    "Finding",
    "InputError",
    "NeededInput",
    "Outcome",
    "ProgramError",
    "Query",
    "RaceAnswer",
    "SourcePlace",
    "TestResult",
    "check",
    "program",
    "race",
    "read_results",
    "report",
    "run",
    "to_dataframe",
]

Option = Union[None, bool, int, float, str, "os.PathLike[str]", typing.Tuple[Any, ...], List[Any]]


class ProgramError(Exception):
    """The program has no answer: it is not installed, it crashed, or no test could run (exit code 3)."""

    def __init__(self, message: str, code: Optional[int] = None) -> None:
        super().__init__(message)
        #: The exit code; negative for a signal, `None` if the program did not start.
        self.code = code


class InputError(ProgramError):
    """A file or an option is wrong (exit code 2). The text has the position and what was expected."""


@dataclass
class Outcome:
    """Final values of registers and memory, with the prediction of the model and the counts of a device."""

    state: Dict[str, Any] = field(default_factory=dict)
    allowed: Optional[bool] = None
    #: True if no interleaving of the threads has these final values.
    weak: bool = False
    #: Number of instances with this outcome; 0 if no device ran.
    count: int = 0
    raw: Dict[str, Any] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.state.items())


@dataclass
class Query:
    """The question of a litmus test or an assertion about a shader."""

    text: str = ""
    #: `None` if it is undecided.
    holds: Optional[bool] = None
    expected: Optional[bool] = None
    raw: Dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass
class SourcePlace:
    """A position in the source of a shader."""

    file: Optional[str] = None
    line: Optional[int] = None
    raw: Dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass
class Finding:
    """A defect of a shader."""

    #: Such as `race` or `divergent-barrier`; `vk-litmus race --help` lists them.
    kind: str = ""
    message: str = ""
    at: List[SourcePlace] = field(default_factory=list)
    raw: Dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass
class NeededInput:
    """A missing input on which the answer depends."""

    name: str = ""
    #: The assumed value.
    value: str = ""
    #: The option that supplies it.
    option: str = ""
    #: The source lines that were not reached because of it.
    lines: str = ""
    raw: Dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass
class CheckAnswer:
    """The answer of a model for a litmus test or an entry point of a shader."""

    id: str = ""
    file: str = ""
    model: str = ""
    #: `free`, `racy`, `unknown` or `needs-inputs`; `None` if the model has no race condition.
    race: Optional[str] = None
    queries: List[Query] = field(default_factory=list)
    outcomes: List[Outcome] = field(default_factory=list)
    findings: List[Finding] = field(default_factory=list)
    needs: List[NeededInput] = field(default_factory=list)
    raw: Dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass
class RaceAnswer:
    """The races and other defects of an entry point of a shader."""

    file: str = ""
    entry: str = ""
    #: `clean`, `racy`, `needs-inputs` or `refused`.
    verdict: str = ""
    #: The reason of a refusal.
    why: Optional[str] = None
    grid: List[int] = field(default_factory=list)
    local_size: List[int] = field(default_factory=list)
    findings: List[Finding] = field(default_factory=list)
    needs: List[NeededInput] = field(default_factory=list)
    raw: Dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass
class TestResult:
    """The verdict about one test on one device, with the histogram of its outcomes."""

    id: str = ""
    device: str = ""
    model: str = ""
    #: `conforms`, `violates`, `undefined`, `inconclusive`, `skipped`, `crashed` or `timeout`.
    verdict: str = ""
    reason: Optional[str] = None
    detail: Optional[str] = None
    instances: int = 0
    seconds: float = 0.0
    outcomes: List[Outcome] = field(default_factory=list)
    unexpected: List[Outcome] = field(default_factory=list)
    #: The command that repeats this run.
    replay: Optional[str] = None
    raw: Dict[str, Any] = field(default_factory=dict, repr=False)

    # pytest must not collect this class as a test.
    __test__ = False


Answer = typing.TypeVar("Answer")


def _decoded(kind: "typing.Type[Answer]", value: Dict[str, Any]) -> Answer:
    """Returns a dataclass with the known fields of a JSON object; null means the default."""
    hints = typing.get_type_hints(kind)
    known: Dict[str, Any] = {"raw": value}
    for each in dataclasses.fields(kind):  # type: ignore[arg-type]
        given = value.get(each.name)
        if each.name == "raw" or given is None:
            continue
        [inner, *_] = typing.get_args(hints[each.name]) or (None,)
        if isinstance(given, list) and dataclasses.is_dataclass(inner):
            given = [_decoded(inner, item) for item in given]  # type: ignore[arg-type]
        known[each.name] = given
    return kind(**known)


def program() -> str:
    """Returns the path of the program: `$VK_LITMUS`, else the one installed with this package, else the one on `$PATH`.

    Raises `ProgramError` if it is not found.
    """
    named = os.environ.get("VK_LITMUS")
    if named:
        return named
    beside = Path(sys.executable).parent / "vk-litmus"
    found = str(beside) if beside.exists() else shutil.which("vk-litmus")
    if not found:
        raise ProgramError("vk-litmus is not installed: pip install vk-litmus, or set VK_LITMUS to its path")
    return found


def _options(options: Dict[str, Option]) -> List[str]:
    """Returns keyword arguments as options of the command line."""
    words: List[str] = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        for item in value if isinstance(value, list) else [value]:
            if item is None or item is False:
                continue
            if item is True:
                words.append(flag)
            elif isinstance(item, tuple):
                words.append(f"{flag}={','.join(str(part) for part in item)}")
            else:
                words.append(f"{flag}={os.fspath(item) if isinstance(item, os.PathLike) else item}")
    return words


def _execute(command: str, subjects: typing.Iterable[Any], options: Dict[str, Option]) -> "subprocess.CompletedProcess[str]":
    """Runs a command; raises `InputError` for exit code 2 and `ProgramError` for a crash."""
    words = [program(), command, *_options(options), "--", *(os.fspath(subject) for subject in subjects)]
    try:
        ran = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, encoding="utf-8")
    except OSError as error:
        raise ProgramError(f"{words[0]} does not start: {error}") from error
    if ran.returncode == 2:
        raise InputError(ran.stderr.strip() or ran.stdout.strip(), 2)
    if ran.returncode not in (0, 1, 3):
        raise ProgramError(f"{words[0]} ended with {ran.returncode}: {ran.stderr.strip()}", ran.returncode)
    return ran


def _lines(ran: "subprocess.CompletedProcess[str]", kind: "typing.Type[Answer]") -> List[Answer]:
    """Returns an answer for each line of JSON; raises `ProgramError` if there is no answer."""
    values = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    if not values and ran.returncode != 0:
        raise ProgramError(ran.stderr.strip(), ran.returncode)
    return [_decoded(kind, value) for value in values]


def check(*files: "Union[str, os.PathLike[str]]", **options: Option) -> List[CheckAnswer]:
    """Checks litmus tests (by file or by name) and shaders under a model: `vk-litmus check`."""
    return _lines(_execute("check", files, {"format": "json", **options}), CheckAnswer)


def race(*files: "Union[str, os.PathLike[str]]", **options: Option) -> List[RaceAnswer]:
    """Finds data races and other defects in shaders: `vk-litmus race`."""
    return _lines(_execute("race", files, {"format": "json", **options}), RaceAnswer)


def run(*tests: "Union[str, os.PathLike[str]]", **options: Option) -> List[TestResult]:
    """Runs litmus tests on a device and judges their outcomes: `vk-litmus run`.

    `out="DIR"` also stores the results in a folder for `report` and `read_results`.
    """
    return _lines(_execute("run", tests, {"format": "json", "quiet": True, **options}), TestResult)


def report(*folders: "Union[str, os.PathLike[str]]", out: "Union[str, os.PathLike[str]]", **options: Option) -> Path:
    """Writes a page about the results in folders and returns its path: `vk-litmus report`."""
    ran = _execute("report", folders, {"out": out, **options})
    if not Path(out).exists():
        raise ProgramError(ran.stderr.strip(), ran.returncode)
    return Path(out)


def read_results(folder: "Union[str, os.PathLike[str]]") -> List[TestResult]:
    """Reads the results of `run` in a folder. An incomplete last line of a killed run is skipped.

    Raises `InputError` if the folder has no results, or a line is not JSON.
    """
    path = Path(folder) / "run.jsonl"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; vk-litmus run --out {folder} writes it") from error
    results = []
    for number, line in enumerate(text[: text.rfind("\n") + 1].splitlines(), 1):
        try:
            results.append(_decoded(TestResult, json.loads(line)))
        except (ValueError, AttributeError) as error:
            raise InputError(f"{path}:{number}: not a result: {error}") from error
    return results


def to_dataframe(results: typing.Iterable[TestResult]) -> Any:
    """Returns a pandas data frame with one row for each outcome of each test. Needs pandas."""
    pandas: Any = importlib.import_module("pandas")

    rows = [
        {
            "id": result.id,
            "device": result.device,
            "model": result.model,
            "verdict": result.verdict,
            "outcome": str(outcome),
            "count": outcome.count,
            "instances": result.instances,
            "allowed": outcome.allowed,
            "weak": outcome.weak,
        }
        for result in results
        for outcome in result.outcomes
    ]
    return pandas.DataFrame(rows)

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

import array
import collections.abc
import ctypes
import dataclasses
import importlib
import json
import numbers
import operator
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional, Union

__all__ = [
    "CheckAnswer",
    "Finding",
    "Image",
    "InputError",
    "NeededInput",
    "Outcome",
    "ProgramError",
    "Query",
    "RaceAnswer",
    "ShaderFailure",
    "ShaderResult",
    "SourcePlace",
    "TestResult",
    "check",
    "program",
    "race",
    "read_results",
    "report",
    "run",
    "run_shader",
    "to_dataframe",
]

Option = Union[None, bool, int, float, str, "os.PathLike[str]", typing.Tuple[Any, ...], List[Any], Dict[Any, Any]]


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


class ShaderFailure(AssertionError):
    """A shader has a finding, or a device left other contents. The text has these, their source lines, and the token of the schedule."""

    def __init__(self, result: "ShaderResult") -> None:
        super().__init__(str(result))
        self.result = result


@dataclass
class Image:
    """Texels of an image: an object with the buffer protocol, width, height and depth or layers, and a format of GLSL or WGSL."""

    texels: Any
    size: typing.Tuple[int, ...]
    #: Such as `rgba8` or `rgba8unorm`, `r32f` or `r32float`.
    format: str


@dataclass
class ShaderResult:
    """The contents that a dispatch left, and its findings."""

    #: `clean` or `racy`.
    verdict: str = ""
    #: The final contents by the names of the given buffers, with their types and shapes. Those of one schedule if something races.
    buffers: Dict[str, Any] = field(default_factory=dict)
    #: The final texels by the names of the given images.
    images: Dict[str, Any] = field(default_factory=dict)
    findings: List[Finding] = field(default_factory=list)
    #: The first element whose contents the schedule decides although nothing races.
    contents_vary: Optional[str] = None
    #: The first element that the device left with another value. Contents that vary are not compared.
    device_difference: Optional[str] = None
    #: The seed of the schedules.
    seed: int = 0
    #: The token of the first schedule with a finding: `replay="0:14"` runs only this one. `None` if the model found it in all at once.
    token: Optional[str] = None
    #: The text of the shader, if it is one.
    source: Optional[str] = field(default=None, repr=False)
    raw: Dict[str, Any] = field(default_factory=dict, repr=False)

    def check(self) -> "ShaderResult":
        """Returns the result; raises `ShaderFailure` if there is a finding, or a device left other contents."""
        if self.verdict == "racy" or self.device_difference is not None:
            raise ShaderFailure(self)
        return self

    def __str__(self) -> str:
        lines = [f"{self.raw.get('file', '')}: {self.verdict}"]
        texts = (self.source or "").splitlines()
        for found in self.findings:
            lines.append(f"{found.kind}: {found.message}")
            lines += [f"    {place.raw.get('access') or 'at'} {place.file}:{place.line}" for place in found.at]
            numbered = sorted({place.line for place in found.at if place.line is not None and place.file == self.raw.get("file")})
            lines += [f"{number:5} | {texts[number - 1]}" for number in numbered if number <= len(texts)]
        if self.device_difference is not None:
            lines.append(self.device_difference)
        if self.token is not None:
            lines.append(f"this schedule again: replay={self.token!r}")
        return "\n".join(lines)


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
    """Returns keyword arguments as options of the command line; a list and a mapping repeat the option."""
    words: List[str] = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if isinstance(value, dict):
            value = [f"{key}={item}" for key, item in value.items()]
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


Shader = Union[str, "os.PathLike[str]"]
Grid = Union[int, typing.Sequence[int]]


@typing.overload
def run(shader: Shader, *, buffers: typing.Mapping[str, Any] = ..., images: typing.Mapping[str, Image] = ..., **options: Any) -> ShaderResult: ...


@typing.overload
def run(*tests: Shader, **options: Option) -> List[TestResult]: ...


def run(*tests: Shader, **options: Any) -> Any:
    """Runs litmus tests on a device and judges their outcomes: `vk-litmus run`. Returns a list of `TestResult`.

    `out="DIR"` also stores the results in a folder for `report` and `read_results`. With `buffers` or `images`, executes a shader on arrays
    instead and returns a `ShaderResult`: see `run_shader`.
    """
    if "buffers" in options or "images" in options:
        if len(tests) != 1:
            raise TypeError(f"run: expected one shader with `buffers` or `images`, got {len(tests)}")
        return run_shader(tests[0], **options)
    return _lines(_execute("run", tests, {"format": "json", "quiet": True, **options}), TestResult)


def run_shader(
    shader: Shader,
    *,
    grid: Grid = 1,
    buffers: Optional[typing.Mapping[str, Any]] = None,
    images: Optional[typing.Mapping[str, Image]] = None,
    push: Any = None,
    seed: int = 0,
    replay: Optional[str] = None,
    language: Optional[str] = None,
    device: Optional[str] = None,
    ulps: int = 0,
    **options: Option,
) -> ShaderResult:
    """Executes a dispatch of a shader on arrays, without a device, and checks every access for races.

    With `device`, such as `"lavapipe"`, the dispatch runs there too and what it leaves is compared; floats may differ by `ulps` units in
    the last place.

    `shader` is a file, or a source text if `language` is its extension, such as `wgsl` or `comp`. `buffers` maps names of buffers, or
    `"SET.BINDING"`, to objects with the buffer protocol: NumPy arrays, `array.array`, `bytearray`, `bytes`. They are not changed: the
    result has new ones of the same type. `images` maps names to `Image`. `push` is such an object, also with fields, or a sequence of
    `int` and `float` for 32-bit words. Each that the shader uses has to be given, unless `inputs="zeros"`. `replay` is the token of a
    failure, whose schedule alone runs. Other options are those of `vk-litmus race`: `entry`, `subgroup_size`, `spec={"NAME": 7}`,
    `sampler={"NAME": "linear,clamp"}`, `schedules`, `time`, `steps`.

    Raises `InputError` or `TypeError`, `ValueError` for wrong arguments, and `ProgramError` if there is no answer, as for a kernel that
    does not end. A finding raises nothing: call `check()` on the result.
    """
    size = _grid(grid)
    if not isinstance(buffers or {}, collections.abc.Mapping):
        raise TypeError(f"buffers: expected a mapping of names to arrays, got {type(buffers).__name__}")
    for name in buffers or {}:
        if not isinstance(name, str) or not name or "=" in name:
            raise ValueError(f"buffers: expected names of buffers or 'SET.BINDING', got {name!r}")
    for what, value, kinds in (("shader", shader, (str, os.PathLike)), ("language", language, (str, type(None))), ("ulps", ulps, (int,)), ("replay", replay, (str, type(None)))):
        if not isinstance(value, kinds):
            raise TypeError(f"{what}: expected {' or '.join(kind.__name__ for kind in kinds)}, got {type(value).__name__}")
    given_arrays = dict(buffers or {})
    views = {name: _view(f"buffers[{name!r}]", value) for name, value in given_arrays.items()}
    formats: Dict[str, "_Format"] = {}
    for name, image in (images or {}).items():
        if not isinstance(image, Image):
            raise TypeError(f"images[{name!r}]: expected vk_litmus.Image, got {type(image).__name__}")
        if name in views:
            raise ValueError(f"images[{name!r}] and buffers[{name!r}] are one binding: expected one array for each")
        formats[name] = _Format.named(f"images[{name!r}]", image.format)
        views[name], given_arrays[name] = formats[name].view(f"images[{name!r}]", image), image.texels
    _reject_overlaps(views)
    with tempfile.TemporaryDirectory(prefix="vk-litmus-") as folder:
        if language is not None:
            file = Path(folder) / f"shader.{language.lstrip('.')}"
            file.write_text(os.fspath(shader), encoding="utf-8")
        elif isinstance(shader, str) and "\n" in shader:
            raise ValueError("shader: expected a file, or a source text with `language`, such as language='wgsl'")
        else:
            file = Path(shader)
        words: Dict[str, Option] = {"format": "json", "contents": True, "grid": tuple(size + [1] * (3 - len(size)))}
        words.update({"seed": seed} if replay is None else {"replay": replay})
        if not {"inputs", "case"} & set(options):
            words["inputs"] = "given"
        given: Dict[str, List[Any]] = {"buffer": [], "image": []}
        for number, (name, view) in enumerate(views.items()):
            path = Path(folder) / f"{number}.bin"
            path.write_bytes(view)
            if name in formats:
                axes = "x".join(str(axis) for axis in (images or {})[name].size)
                given["image"].append(f"{name}={axes},format={formats[name].name},file={path}")
            else:
                given["buffer"].append(f"{name}={path}")
        words.update(given)
        if push is not None:
            path = Path(folder) / "push.bin"
            path.write_bytes(_push_bytes(push))
            words["push"] = path
        words["device"] = device
        try:
            ran = _execute("race", [file], {**words, **options})
        except ProgramError as error:
            raise type(error)(_as_arguments(str(error), folder), error.code) from None
        is_text = file.suffix not in (".spv", ".spvasm") and file.exists()
        source = file.read_text(encoding="utf-8", errors="replace") if is_text else None
    ran.stdout, ran.stderr = _as_arguments(ran.stdout, folder), _as_arguments(ran.stderr, folder)
    answers = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    if len(answers) != 1:
        names = ", ".join(str(one.get("entry")) for one in answers)
        raise InputError(f"entry: expected the name of one entry point: {names}" if answers else ran.stderr.strip(), ran.returncode)
    raw = answers[0]
    verdict = raw["verdict"]
    if verdict not in ("clean", "racy"):
        needs = [f"{one['name']}: supply it with {one['option']}" for one in raw.get("needs", [])]
        rejected = raw.get("rejected")
        why = rejected["error"] if rejected else raw.get("why") or ""
        if rejected and rejected["line"] > 1:
            why = f"line {rejected['line']}: {why}"
        hints = ["expected a kernel that ends, a smaller grid, or a higher `time` or `steps`"] if verdict == "undecided" else []
        reason = "; ".join([why, *needs, *hints]).strip("; ") or ran.stderr.strip()
        is_input = ran.returncode == 2 or verdict == "needs-inputs"
        raise (InputError if is_input else ProgramError)(f"{raw['file']}: {verdict}: {reason}", ran.returncode)
    if raw.get("workgroups") and "workgroup" not in options:
        raise InputError(f"grid: {grid!r} is too large to run whole; expected a smaller one, or workgroup=['X,Y,Z', …]", ran.returncode)
    chosen = [one for inputs in raw["coverage"].get("inputs", []) for one in inputs]
    if chosen:
        raise InputError(f"{raw['file']}: expected values in buffers or push, or inputs='zeros', in place of {', '.join(chosen)}")
    findings = [_decoded(Finding, one) for one in raw["findings"]] if verdict == "racy" else []
    final: Dict[str, Any] = {}
    difference: Optional[str] = None
    bound: Dict[typing.Tuple[int, int], str] = {}
    for name, view in views.items():
        what = f"{'images' if name in formats else 'buffers'}[{name!r}]"
        left = next((one for one in raw.get("contents", []) if name in (one["name"], f"{one['set']}.{one['binding']}")), None)
        if left is None:
            # Nothing is known about a buffer that the entry point does not use, except that it does not change.
            final[name] = _same_type(given_arrays[name], view, view.tobytes())
            continue
        if name not in formats:
            _check_elements(what, view, left.get("scalar"))
        other = bound.setdefault((left["set"], left["binding"]), name)
        if other != name:
            raise ValueError(f"{what} and buffers[{other!r}] are one binding: expected one array for each")
        if left.get("unknown") is not None and verdict == "clean":
            raise ProgramError(f"{what}: byte {left['unknown']} is not computed: it is undefined or unspecified, as a texel without `sampler`")
        contents = bytes.fromhex(left["bytes"])[: view.nbytes]
        final[name] = _same_type(given_arrays[name], view, contents)
        if left.get("device") is not None and difference is None and verdict == "clean" and raw.get("order_dependent") is None:
            differing = _first_difference(view, contents, bytes.fromhex(left["device"]), ulps)
            if differing is not None:
                index, walk, other = differing
                difference = f"{what}, element {index}: {other} on {device}; expected {walk}, which the walk computes"
    texels = {name: final[name] for name in views if name in formats}
    arrays = {name: final[name] for name in views if name not in formats}
    found_in = ((raw["coverage"].get("schedules") or {}).get("finding")) if findings else None
    token = replay or (None if found_in is None else f"{seed}:{found_in}")
    return ShaderResult(verdict, arrays, texels, findings, raw.get("order_dependent"), difference, seed, token, source, raw)


def _as_arguments(text: str, folder: str) -> str:
    """Returns a text of the program with the names of arguments in place of options, and of files in place of temporary ones."""
    text = text.replace(folder + os.sep, "")
    if text.startswith("error: "):
        text = re.split(r"\n\n *(?:tip:|Usage:|For more)", text[len("error: ") :])[0]
    return re.sub(r"'--([a-z-]+)[^'\n]*'", lambda option: option[1].replace("-", "_"), text)


def _grid(grid: Any, what: str = "grid", unit: str = "numbers of workgroups") -> List[int]:
    """Returns one to three positive numbers."""
    size: List[int] = []
    try:
        size = [operator.index(grid)]
    except TypeError:
        try:
            size = [operator.index(one) for one in grid]
        except TypeError:
            pass
    if not 1 <= len(size) <= 3 or not all(0 < one < 1 << 32 for one in size):
        raise ValueError(f"{what}: expected one to three positive {unit}, got {grid!r}")
    return size


def _first_difference(view: memoryview, walk: bytes, device: bytes, ulps: int) -> "Optional[typing.Tuple[int, Any, Any]]":
    """Returns the first element that differs, with both values; floats may differ by `ulps` units in the last place."""
    kind = view.format.lstrip("@=<")
    size = view.itemsize
    known = min(len(walk), len(device)) // size * size
    pairs = zip(struct.iter_unpack("=" + kind, walk[:known]), struct.iter_unpack("=" + kind, device[:known]))
    for index, ([one], [other]) in enumerate(pairs):
        at = slice(index * size, (index + 1) * size)
        if walk[at] == device[at] or kind in "efd" and one != one and other != other:
            continue
        ranks = [_rank(data[at]) for data in (walk, device)]
        if kind not in "efd" or abs(ranks[0] - ranks[1]) > ulps:
            return index, one, other
    return None


def _rank(data: bytes) -> int:
    """Returns a number of the bits of a float such that adjacent floats have adjacent numbers."""
    number, sign = int.from_bytes(data, sys.byteorder), 1 << 8 * len(data) - 1
    return number if number < sign else sign - number


@dataclass
class _Format:
    """A format of texels: its name in GLSL, the code of a component as in `struct`, and their number."""

    name: str
    code: str
    components: int

    @staticmethod
    def named(what: str, name: Any) -> "_Format":
        """Returns the format of a name of GLSL or WGSL."""
        match = re.fullmatch(r"(r|rg|rgba)(8|16|32)(float|f|unorm|_?snorm|sint|i|uint|ui|)", str(name))
        kind = match[3].lstrip("_") if match else None
        code = {"float": "ef", "f": "ef", "sint": "bhi", "i": "bhi", "uint": "BHI", "ui": "BHI", "unorm": "BH", "": "BH", "snorm": "bh"}
        widths = ["16", "32"] if kind in ("float", "f") else ["8", "16", "32"]
        if match is None or kind is None or match[2] not in widths[: len(code[kind])]:
            raise ValueError(f"{what}: expected a format such as 'rgba8unorm' or 'r32f', got {name!r}")
        short = {"float": "f", "sint": "i", "uint": "ui", "unorm": ""}.get(kind, kind)
        return _Format(match[1] + match[2] + short, code[kind][widths.index(match[2])], len(match[1]))

    def view(self, what: str, image: Image) -> memoryview:
        """Returns the memory of an image; raises `ValueError` or `TypeError` if it is not one of this format and size."""
        view = _view(what, image.texels, 1)
        size = _grid(image.size, f"{what}.size", "sizes")
        expected = struct.calcsize(self.code) * self.components
        for axis in size:
            expected *= axis
        if view.nbytes != expected:
            raise ValueError(f"{what}: expected {expected} bytes for {'x'.join(map(str, size))} texels of {self.name}, got {view.nbytes}")
        scalar = f"{'f' if self.code in 'ef' else 'u' if self.code.isupper() else 'i'}{8 * struct.calcsize(self.code)}"
        _check_elements(what, view, scalar, self.name)
        return view


def _view(what: str, value: Any, unit: int = 4) -> memoryview:
    """Returns the memory of an argument."""
    try:
        view = memoryview(value)
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"{what}: expected a NumPy array, array.array, bytearray or bytes, got {kind}") from None
    if not view.c_contiguous:
        raise ValueError(f"{what}: expected contiguous memory in C order, as numpy.ascontiguousarray returns it")
    if view.nbytes == 0 or view.nbytes % unit:
        raise ValueError(f"{what}: expected a positive multiple of {unit} bytes, got {view.nbytes}")
    if view.format[0] == (">" if sys.byteorder == "little" else "<"):
        raise TypeError(f"{what}: expected elements in the byte order of this machine, got format {view.format!r}")
    if view.format.lstrip("@=<>") not in ("b", "B", "c", "h", "H", "i", "I", "l", "L", "q", "Q", "e", "f", "d"):
        raise TypeError(f"{what}: expected elements that are integers or floats, got format {view.format!r}")
    return view


def _check_elements(what: str, view: memoryview, scalar: Optional[str], where: str = "the shader") -> None:
    """Raises `TypeError` if the elements of an array are not the numbers of the shader; bytes are any."""
    kind = view.format.lstrip("@=<>!")
    if scalar is None or kind in ("b", "B", "c"):
        return
    given = f"{'f' if kind in ('e', 'f', 'd') else 'i'}{8 * view.itemsize}"
    if given not in scalar.replace("u", "i").split():
        raise TypeError(f"{what}: expected elements of {scalar}, as in {where}, got format {view.format!r}")


def _reject_overlaps(views: "Dict[str, memoryview]") -> None:
    """Raises `ValueError` if two buffers share memory."""
    known: List[typing.Tuple[int, int, str]] = []
    for name, view in views.items():
        if view.readonly:
            continue
        start = ctypes.addressof(ctypes.c_char.from_buffer(view))
        for first, end, other in known:
            if start < end and first < start + view.nbytes:
                raise ValueError(f"buffers[{name!r}] shares memory with buffers[{other!r}]: expected separate arrays")
        known.append((start, start + view.nbytes, name))


def _push_bytes(push: Any) -> bytes:
    """Returns push constants as bytes."""
    if isinstance(push, (list, tuple)):
        for index, one in enumerate(push):
            if isinstance(one, numbers.Integral) and not -(2**31) <= int(one) < 2**32:
                raise ValueError(f"push[{index}]: {one} does not fit in 32 bits: expected bytes or an object with fields of other sizes")
        try:
            return b"".join(
                struct.pack("<I", int(one) & 0xFFFFFFFF) if isinstance(one, numbers.Integral) else struct.pack("<f", one) for one in push
            )
        except (TypeError, OverflowError, struct.error):
            raise TypeError(f"push: expected numbers or an object with the buffer protocol, got {push!r}") from None
    view = memoryview(push) if hasattr(push, "dtype") and push.dtype.names else _view("push", push)
    return view.tobytes()


def _same_type(value: Any, view: memoryview, data: bytes) -> Any:
    """Returns bytes as the type of an argument."""
    data += bytes(view.nbytes - len(data))
    if isinstance(value, bytes):
        return data
    if isinstance(value, array.array):
        return array.array(value.typecode, data)
    if type(value).__module__ == "numpy":
        numpy: Any = importlib.import_module("numpy")
        return numpy.frombuffer(bytearray(data), dtype=value.dtype).reshape(value.shape)
    return bytearray(data)


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

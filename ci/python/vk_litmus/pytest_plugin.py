"""A pytest plugin: the fixture `run_shader` executes a shader on arrays, and a finding fails the test.

The wheel registers it. Elsewhere, `-p vk_litmus.pytest_plugin` does. `--vk-litmus-seed N` tries other schedules,
`--vk-litmus-replay TOKEN` runs only that of a failure, and `--vk-litmus-device SEL` runs each dispatch on a device too and compares the contents.

    def test_scan(run_shader):
        result = run_shader("scan.wgsl", buffers={"data": array("I", [1, 2, 3, 4])})
        assert list(result.buffers["data"]) == [1, 3, 6, 10]
"""

from typing import Any, Callable

import pytest

import vk_litmus


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--vk-litmus-seed", type=int, default=0, help="Seed of the schedules of shaders [default: 0]")
    parser.addoption("--vk-litmus-replay", help="Token of the only schedule of shaders, as failures print it")
    parser.addoption("--vk-litmus-device", help="Device on which shaders run too, such as lavapipe")


@pytest.fixture
def run_shader(request: Any) -> Callable[..., vk_litmus.ShaderResult]:
    """Returns a function that executes a shader as `vk_litmus.run_shader` does, and raises `ShaderFailure` for a finding."""

    def checked(shader: Any, **options: Any) -> vk_litmus.ShaderResult:
        options.setdefault("seed", request.config.getoption("--vk-litmus-seed"))
        options.setdefault("replay", request.config.getoption("--vk-litmus-replay"))
        options.setdefault("device", request.config.getoption("--vk-litmus-device"))
        return vk_litmus.run_shader(shader, **options).check()

    return checked

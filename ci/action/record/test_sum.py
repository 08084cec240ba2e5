"""A test suite of a wgpu project: `vk-litmus record -- python3 -m pytest ci/action/record`.

The second test passes on most devices, although the shader races: `record` reports it.
"""
import struct

import pytest

wgpu = pytest.importorskip("wgpu")
from wgpu.utils.compute import compute_with_buffers  # noqa: E402

SHADER = """
@group(0) @binding(0) var<storage, read> values: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;
var<workgroup> tile: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>) {
    tile[lane] = values[group.x * 64u + lane];
    for (var step = 32u; step > 0u; step /= 2u) {
        workgroupBarrier();
        if (lane < step) { tile[lane] += tile[lane + step]; }
    }
    BARRIER
    if (lane == 63u) { sums[group.x] = tile[0]; }
}
"""


def sums(barrier):
    """Returns the sums of two groups of 64 values."""
    values = struct.pack("128I", *range(128))
    shader = SHADER.replace("BARRIER", barrier)
    out = compute_with_buffers(input_arrays={0: values}, output_arrays={1: (2, "I")}, shader=shader, n=(2, 1, 1))
    return list(out[1])


def test_with_a_barrier():
    assert sums("workgroupBarrier();") == [2016, 6112]


def test_without_a_barrier():
    assert sums("") == [2016, 6112]

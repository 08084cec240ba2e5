//! Vertex and fragment shaders of users: answers of `check` and `race` for invocations outside workgroups.

use std::fs;

use crate::common::{Ran, installed, vk_litmus};

const TALLY: &str = "layout(set = 0, binding = 0) buffer Tally { uint bins[4]; };
layout(location = 0) flat in uint material;
void main() {
    bins[material] = material;
}";

/// The name and text of a shader, arguments, substrings of the output, and the exit code.
type Case<'a> = (&'a str, &'a str, &'a [&'a str], &'a [&'a str], i32);

#[test]
fn answers_and_refusals() {
    if !installed("glslangValidator") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // One value per invocation; the list repeats if there are more invocations.
    fs::write(folder.path().join("apart.toml"), "[input.0]\nu32 = [0, 1, 2, 3]\n").unwrap();
    fs::write(folder.path().join("shared.toml"), "[input.0]\nu32 = [0, 1]\n").unwrap();
    let cases: [Case<'_>; 10] = [
        (
            "own.vert",
            "layout(set = 0, binding = 0) buffer X { uint x[]; };
            void main() { x[gl_VertexIndex] = 1; gl_Position = vec4(gl_VertexIndex); }",
            &["check", "--grid", "3"],
            &["own:main: race-free under vulkan"],
            0,
        ),
        (
            "instances.vert",
            "layout(set = 0, binding = 0) buffer X { uint x[]; };
            void main() { x[gl_VertexIndex] = 1; gl_Position = vec4(gl_InstanceIndex); }",
            &["check", "--grid", "1,2,1"],
            &[
                "data race on `X.x[0]`: invocation vertex 0 of instance 0 writes it, invocation vertex 0 of instance 1",
            ],
            1,
        ),
        (
            "pixel.frag",
            "layout(set = 0, binding = 0) buffer X { uint x[]; };
            void main() { x[uint(gl_FragCoord.x)] = uint(gl_PrimitiveID); }",
            &["check", "--grid", "2,1,2"],
            &["invocation fragment 0 of pixel (0,0) writes it, invocation fragment 1 of pixel (0,0)"],
            1,
        ),
        // Without a grid, two fragments of two pixels are tried: a single fragment shares no memory.
        (
            "pixel.frag",
            "layout(set = 0, binding = 0) buffer X { uint x[]; };
            void main() { x[uint(gl_FragCoord.x)] = uint(gl_PrimitiveID); }",
            &["race"],
            &["needs-inputs", "with 2 fragments of each of 2 pixels (--grid 2,1,2): data race on `X.x[0]`"],
            3,
        ),
        (
            "tally.frag",
            TALLY,
            &["race", "--grid", "4"],
            &["an index is computed from floats or opaque values"],
            2,
        ),
        ("tally.frag", TALLY, &["race", "--grid", "4", "--case", "apart.toml"], &["clean"], 0),
        ("tally.frag", TALLY, &["check", "--grid", "4", "--case", "apart.toml"], &["race-free"], 0),
        (
            "tally.frag",
            TALLY,
            &["check", "--grid", "4", "--case", "shared.toml"],
            &["data race on `Tally.bins[0]`: invocation fragment 0 of pixel (0,0)", "of pixel (2,0)"],
            1,
        ),
        (
            "lanes.frag",
            "#extension GL_KHR_shader_subgroup_arithmetic : require
            layout(set = 0, binding = 0) buffer X { uint x; };
            void main() { x = subgroupAdd(1); }",
            &["race", "--grid", "2"],
            &[
                "lanes.frag:4: cannot lift: OpGroupNonUniformIAdd in a fragment shader: the invocations of a subgroup are unknown",
            ],
            2,
        ),
        (
            "layers.vert",
            "void main() { gl_Position = vec4(0.0); }",
            &["race", "--grid", "1,1,2"],
            &["a grid of vertices counts vertices and instances: its third number is 1"],
            2,
        ),
    ];
    for (name, text, arguments, words, code) in cases {
        fs::write(folder.path().join(name), format!("#version 450\n{text}\n")).unwrap();
        let (command, rest) = arguments.split_first().unwrap();
        let ran = Ran::run(vk_litmus([*command, name]).args(rest).current_dir(&folder));
        let output = format!("{}{}", ran.stdout, ran.stderr);
        for word in words {
            assert!(output.contains(word), "{name} {arguments:?}: {word}\n{ran:?}");
        }
        assert_eq!(ran.code, code, "{name} {arguments:?}: {ran:?}");
    }
}

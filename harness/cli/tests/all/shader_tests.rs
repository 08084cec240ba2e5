//! Tests of shaders on arrays, as users of the library write them.

use vk_litmus::{AddressMode, PixelFormat, Sampler, ShaderTest, ShaderTestError, TestDevice};

use crate::common::{binary, installed, software_drivers};

const PREFIX_SUM: &str = include_str!("shader_tests/sum.wgsl");

const HISTOGRAM: &str = include_str!("shader_tests/histogram.wgsl");

const MATRIX: &str = include_str!("shader_tests/matrix.comp");

const COMPACTION: &str = include_str!("shader_tests/compaction.hlsl");

#[test]
fn arrays_have_the_contents_that_the_shader_leaves() -> Result<(), ShaderTestError> {
    let mut data = [1_u32; 64];
    ShaderTest::source("sum.wgsl", PREFIX_SUM).bind(0, 0, &mut data).run()?;
    assert!((1..).zip(data).all(|(expected, sum)| expected == sum), "{data:?}");

    let mut bins = [0_u32; 4];
    let numbers: Vec<u32> = (0..16).collect();
    let histogram = ShaderTest::source("histogram.wgsl", HISTOGRAM).grid([2, 1, 1]).push(&10_u32);
    histogram.bind_read(0, 0, &numbers).bind(0, 1, &mut bins).run()?;
    assert_eq!(bins, [3, 3, 2, 2]);

    let (a, mut c) = ([0.5_f32; 16], [0.0_f32; 16]);
    let matrix = ShaderTest::source("matrix.comp", MATRIX).grid([2, 2, 1]);
    matrix.bind_read(0, 0, &a).bind_read(0, 1, &a).bind(0, 2, &mut c).run()?;
    assert_eq!(c, [1.0; 16]);
    Ok(())
}

#[test]
fn contents_that_the_schedule_decides_are_named() -> Result<(), ShaderTestError> {
    let (mut kept, mut count) = ([0_u32; 8], [0_u32]);
    let compaction =
        ShaderTest::source("compact.hlsl", COMPACTION).bind_read(0, 0, &[1_u32, 2, 3, 4, 5, 6, 7, 8]);
    let run = compaction.bind(0, 1, &mut kept).bind(0, 2, &mut count).run()?;
    assert!(run.order_dependent.is_some_and(|element| element.contains("kept")));
    kept[..5].sort_unstable();
    assert_eq!((kept, count), ([4, 5, 6, 7, 8, 0, 0, 0], [5]));
    Ok(())
}

/// Computes a word from two floats by an expression of a language.
fn value_shader(language: &str, expression: &str) -> String {
    match language {
        "wgsl" => format!(
            "@group(0) @binding(0) var<storage, read> given: array<f32, 2>;
@group(0) @binding(1) var<storage, read_write> result: u32;
@compute @workgroup_size(1) fn main() {{ let x = given[0]; let y = given[1]; result = {expression}; }}"
        ),
        "hlsl" => format!(
            "[[vk::binding(0)]] StructuredBuffer<float> given; [[vk::binding(1)]] RWStructuredBuffer<uint> result;
[numthreads(1, 1, 1)] void main() {{ float x = given[0], y = given[1]; result[0] = {expression}; }}"
        ),
        _ => format!(
            "#version 450
#extension GL_KHR_shader_subgroup_arithmetic : enable
layout(local_size_x = 2) in;
layout(set = 0, binding = 0) readonly buffer Given {{ float given[2]; }};
layout(set = 0, binding = 1) buffer Result {{ uint result; }};
void main() {{ float x = given[0], y = given[1]; uint z = {expression}; if (gl_LocalInvocationIndex == 0u) result = z; }}"
        ),
    }
}

/// A device leaves the known values.
#[test]
fn values_that_vulkan_leaves_open_are_not_known() {
    for line in include_str!("shader_tests/values.tsv").lines().filter(|line| !line.starts_with('#')) {
        let [language, expression, x, y, expected] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        if !installed(match language {
            "hlsl" => "dxc",
            "wgsl" => "naga",
            _ => "glslangValidator",
        }) {
            continue;
        }
        let given: [f32; 2] = [x, y].map(|number| number.parse().unwrap());
        for device in std::iter::once(None).chain(software_drivers().into_iter().map(Some)) {
            let mut result = 7_u32;
            let test = ShaderTest::source(&format!("value.{language}"), &value_shader(language, expression));
            let test = test.bind_read(0, 0, &given).bind(0, 1, std::slice::from_mut(&mut result));
            let ran = match device {
                Some(device) => test.on(TestDevice::named(device).program(binary())).run(),
                None => test.run(),
            };
            let answer = match ran {
                Ok(_) => format!("{result:#x}"),
                Err(ShaderTestError::Unknown { .. }) => "unknown".to_owned(),
                Err(ShaderTestError::Finding { line, .. })
                    if line.findings[0].kind == "undefined-behaviour" =>
                {
                    "undefined".to_owned()
                }
                Err(error) => error.to_string(),
            };
            assert_eq!(answer, expected, "{line} {device:?}");
        }
    }
}

/// The race needs the ticket 9 of the invocation 3, so that few schedules have it.
#[test]
fn a_token_repeats_one_schedule() {
    let text = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> ticket: atomic<u32>;
@compute @workgroup_size(8) fn main(@builtin(global_invocation_id) id: vec3u) {
    let mine = atomicAdd(&ticket, 1u);
    if (mine == 5u || (mine == 9u && id.x == 3u)) { data[0] = id.x; }
}";
    let run = |replay: Option<&str>| {
        let (mut data, mut ticket) = ([0_u32; 2], [0_u32]);
        let test = ShaderTest::source("ticket.wgsl", text).grid([3, 1, 1]).seed(7);
        let test = replay
            .map_or(test, |token| ShaderTest::source("ticket.wgsl", text).grid([3, 1, 1]).replay(token));
        test.bind(0, 0, &mut data).bind(0, 1, &mut ticket).run()
    };
    let found = |error: ShaderTestError| match error {
        ShaderTestError::Finding { line, token: Some(token), smallest, .. } => {
            assert!(!line.contents.is_empty());
            let shown = (line.findings.clone(), line.contents.clone());
            (shown, token, line.coverage.schedules.unwrap().explored, smallest)
        }
        other => panic!("{other:?}"),
    };
    let (shown, token, explored, smallest) = found(run(None).unwrap_err());
    assert!(explored > 3 && token.starts_with("7:") && smallest.is_some(), "{explored} {token}");
    let (again, same, alone, smallest) = found(run(Some(&token)).unwrap_err());
    assert_eq!((again, same, alone, smallest), (shown, token, 1, None));
    assert!(run(Some("7:0")).is_ok());
    let wrong = run(Some("seven")).unwrap_err().to_string();
    assert_eq!(
        wrong,
        "ticket.wgsl: replay: `seven` names no schedule; expected a token of a failure, such as `0:14`"
    );
}

/// Each mistake is a finding at its line, and the same seed finds it again. The slice is unchanged.
#[test]
fn seeded_mistakes_fail_with_their_line() {
    let barrier = "        workgroupBarrier();\n        let left";
    let mistakes = [
        (PREFIX_SUM.replacen(barrier, "        let left", 1), "race", 7),
        (PREFIX_SUM.replacen("        workgroupBarrier();\n        part", "        part", 1), "race", 9),
        (PREFIX_SUM.replace("part[i - min(i, step)]", "part[i + 64u]"), "out-of-bounds", 8),
        (PREFIX_SUM.replace("part[i] = data[i]", "part[0] = data[i]"), "race", 5),
    ];
    for (text, kind, number) in mistakes {
        let mut data = [1_u32; 64];
        let seeds = [0, 7, 7].map(|seed| {
            match ShaderTest::source("sum.wgsl", &text).bind(0, 0, &mut data).seed(seed).run() {
                Err(ref error @ ShaderTestError::Finding { ref line, .. }) => {
                    let message = error.to_string();
                    let found = &line.findings[0];
                    assert_eq!(found.kind, kind, "{found:?}");
                    assert!(found.at.iter().any(|place| place.line == Some(number)), "{found:?}");
                    assert!(message.contains(&format!("{number:5} | ")), "{message}");
                    message
                }
                other => panic!("{kind}: {other:?}"),
            }
        });
        assert_eq!(seeds[1], seeds[2]);
        assert_eq!(data, [1; 64]);
    }
}

#[test]
fn wrong_inputs_name_what_was_expected() {
    let (mut first, mut second) = ([0_u32; 64], [0_u32; 64]);
    let cases = [
        (ShaderTest::source("sum.wgsl", PREFIX_SUM).bind(0, 3, &mut first).run(), "0.3"),
        (ShaderTest::source("sum.txt", PREFIX_SUM).run(), "sum.txt"),
        (ShaderTest::source("sum.wgsl", "fn main() { x }").run(), "sum.wgsl:1"),
        (ShaderTest::source("sum.wgsl", PREFIX_SUM).entry("first").run(), "first"),
        (ShaderTest::spirv("cut", *b"\x03\x02\x23\x07").run(), "cut"),
    ];
    for (result, word) in cases {
        let message = result.unwrap_err().to_string();
        assert!(message.contains(word), "{message}");
    }
    let twice =
        ShaderTest::source("sum.wgsl", PREFIX_SUM).bind(0, 0, &mut first).bind(0, 0, &mut second).run();
    assert!(matches!(twice, Err(ShaderTestError::BoundTwice(0, 0))), "{twice:?}");
    let empty = ShaderTest::source("sum.wgsl", PREFIX_SUM).grid([0, 1, 1]).bind(0, 0, &mut first).run();
    assert!(empty.as_ref().unwrap_err().to_string().contains("a grid without workgroups"), "{empty:?}");
    let pushed = ShaderTest::source("sum.wgsl", PREFIX_SUM).push(&[0_u32; 64]).bind(0, 0, &mut first).run();
    assert!(pushed.as_ref().unwrap_err().to_string().contains("push constants"), "{pushed:?}");
    let block = "#version 450
layout(push_constant) uniform P { uint a; uint b; };
layout(set = 0, binding = 0) buffer D { uint d[]; };
void main() { d[0] = a; }";
    let pushed = ShaderTest::source("two.comp", block).push(&1_u32).bind(0, 0, &mut first).run();
    assert!(
        pushed.as_ref().unwrap_err().to_string().contains("up to byte 3; expected 8 bytes"),
        "{pushed:?}"
    );
    let sized = ShaderTest::source("sum.wgsl", PREFIX_SUM).subgroup_size(3).bind(0, 0, &mut first).run();
    assert!(sized.unwrap_err().to_string().contains("subgroup_size: 3; expected a power of two"));
    let (mut floats, mut doubles) = ([0.0_f32; 64], [[0.0_f64; 2]; 16]);
    let typed = ShaderTest::source("sum.wgsl", PREFIX_SUM).bind(0, 0, &mut floats).run();
    let typed = typed.unwrap_err().to_string();
    assert_eq!(typed, "sum.wgsl: set 0, binding 0: elements of f32; expected u32, as in the shader");
    let typed = ShaderTest::source("sum.wgsl", PREFIX_SUM).bind(0, 0, &mut doubles).run();
    assert!(typed.unwrap_err().to_string().contains("elements of f64; expected u32"));
    let mut bins = [0_u32; 4];
    let typed = ShaderTest::source("histogram.wgsl", HISTOGRAM).push(&10_u32).bind(0, 1, &mut bins);
    let typed = typed.bind_read(0, 0, &[1.0_f32; 16]).run();
    assert!(typed.unwrap_err().to_string().contains("binding 0: elements of f32; expected u32"));
    let missing = [
        (ShaderTest::source("sum.wgsl", PREFIX_SUM).run(), "`data` at set 0, binding 0; expected a buffer"),
        (
            ShaderTest::source("histogram.wgsl", HISTOGRAM)
                .bind_read(0, 0, &[1_u32; 16])
                .bind(0, 1, &mut bins)
                .run(),
            "push constants; expected 4 bytes",
        ),
        (
            ShaderTest::source("blur.wgsl", BLUR).run(),
            "`source` at set 0, binding 0; expected an image; `blurred` at set 0, binding 2; expected an image",
        ),
    ];
    for (result, expected) in missing {
        let message = result.unwrap_err().to_string();
        assert!(message.ends_with(&format!("missing input: {expected}")), "{message}");
    }
    let mut short = [0_u32; 8];
    let beyond = ShaderTest::source("sum.wgsl", PREFIX_SUM).bind(0, 0, &mut short).run();
    assert!(beyond.unwrap_err().to_string().contains("out of bounds"));
    let endless = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(1) fn main() { loop { if (data[0] == 1u) { break; } } }";
    let mut zero = [0_u32];
    let hang = ShaderTest::source("wait.wgsl", endless).bind(0, 0, &mut zero).run();
    assert!(hang.unwrap_err().to_string().contains("hang"));
    let counting = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(1) fn main() {
    var i = 0u;
    loop { i++; data[0] = i; if (i == 0u) { break; } }
}";
    let long = ShaderTest::source("count.wgsl", counting).bind(0, 0, &mut zero).step_limit(100_000).run();
    let long = long.unwrap_err().to_string();
    assert!(
        long.contains("count.wgsl:4: the limit of 100000 steps was reached in this loop, after "),
        "{long}"
    );
    assert!(long.ends_with("or a higher `time_limit` or `step_limit`"), "{long}");
}

const BLUR: &str = "@group(0) @binding(0) var source: texture_2d<f32>;
@group(0) @binding(1) var smooth_sampler: sampler;
@group(0) @binding(2) var blurred: texture_storage_2d<rgba8unorm, write>;
@compute @workgroup_size(2, 2) fn main(@builtin(global_invocation_id) id: vec3u) {
    let at = vec2f(id.xy) / 2.0;
    textureStore(blurred, id.xy, textureSampleLevel(source, smooth_sampler, at + vec2f(0.5, 0.25), 0.0));
}";
/// Adds the red bytes of an image.
const RED: &str = "@group(0) @binding(0) var image: texture_2d<f32>;
@group(0) @binding(1) var<storage, read_write> sum: atomic<u32>;
@compute @workgroup_size(2, 2) fn main(@builtin(global_invocation_id) id: vec3u) {
    atomicAdd(&sum, u32(round(textureLoad(image, id.xy, 0).r * 255.0)));
}";

#[test]
fn images_pass_between_dispatches() -> Result<(), ShaderTestError> {
    let source: Vec<u8> = [0, 40, 80, 120].into_iter().flat_map(|red| [red, 7, 0, 255]).collect();
    let sampler = Sampler { is_linear: true, address_mode: AddressMode::Clamp };
    let (mut target, mut sum) = ([0_u8; 16], [5_u32]);
    let blur = |source: &[u8]| {
        ShaderTest::source("blur.wgsl", BLUR)
            .bind_texture(0, 0, PixelFormat::Rgba8Unorm, [2, 2, 1], source)
            .bind_sampler(0, 1, sampler)
    };
    let red = ShaderTest::source("red.wgsl", RED).rebind(0, 0, (0, 2)).bind(0, 1, &mut sum);
    blur(&source).bind_image(0, 2, PixelFormat::Rgba8Unorm, [2, 2, 1], &mut target).then(red).run()?;
    let row = |red: [u8; 2]| red.map(|red| [red, 7, 0, 255]).concat();
    assert_eq!(target.to_vec(), [row([20, 40]), row([100, 120])].concat());
    assert_eq!(sum, [5 + 20 + 40 + 100 + 120]);
    for (format, size, expected) in [
        (PixelFormat::Rgba8Unorm, [3, 2, 1], "expected 24 for an image of [3, 2, 1] texels of 4 bytes"),
        (PixelFormat::Rgba8Unorm, [2, 0, 1], "an image of [2, 0, 1] texels; expected positive sizes"),
        (PixelFormat::Rgba8Unorm, [2, 1, 2], "for `blurred` at set 0, binding 2; expected 2 dimensions"),
        (
            PixelFormat::R32Uint,
            [2, 2, 1],
            "the format r32ui for `blurred` at set 0, binding 2; expected rgba8, as in the shader",
        ),
    ] {
        let error = blur(&source).bind_image(0, 2, format, size, &mut target).run().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let mut target = [0_u8; 16];
    let blur = ShaderTest::source("blur.wgsl", BLUR)
        .bind_texture(0, 0, PixelFormat::R32Uint, [2, 2, 1], &source)
        .bind_image(0, 2, PixelFormat::Rgba8Unorm, [2, 2, 1], &mut target);
    let error = blur.run().unwrap_err().to_string();
    assert!(
        error.ends_with(
            "the format r32ui for `source` at set 0, binding 0; expected one of floats, as in the shader"
        ),
        "{error}"
    );
    Ok(())
}

/// `data[i]` of each invocation is read by the next one of the second dispatch.
#[test]
fn dispatches_without_a_barrier_between_them_must_not_conflict() -> Result<(), ShaderTestError> {
    let text = |change: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> copy: array<u32>;
@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) {{ {change} }}"
        )
    };
    let dispatch = |change: &str| ShaderTest::source("step.wgsl", &text(change));
    let (add, shift) = (dispatch("data[id.x] += 1u;"), "copy[id.x] = data[(id.x + 1u) % 4u];");
    let (mut data, mut copy) = ([1_u32, 2, 3, 4], [0_u32; 4]);
    let run = add.bind(0, 0, &mut data).then(dispatch(shift).bind(0, 1, &mut copy)).run()?;
    assert_eq!((data, copy, run.earlier.len()), ([2, 3, 4, 5], [3, 4, 5, 2], 1));
    let cases = [
        (
            "data[id.x] += 1u;",
            shift,
            Some("2 reads what is written by dispatch 1 at set 0, binding 0, byte 0"),
        ),
        (shift, "data[id.x] = 7u;", Some("2 writes what is read by dispatch 1 at set 0, binding 0, byte 0")),
        (
            shift,
            "if (id.x == 0u) { copy[3] = 7u; }",
            Some("written by dispatch 1 at set 0, binding 1, byte 12"),
        ),
        (shift, "if (data[id.x] == 99u) { copy[0] = 1u; }", None),
    ];
    for (first, second, hazard) in cases {
        let test = dispatch(first).bind(0, 0, &mut data).bind(0, 1, &mut copy);
        match (test.then_unsynchronized(dispatch(second)).run(), hazard) {
            (Err(error @ ShaderTestError::Hazard { .. }), Some(hazard)) => {
                let message = error.to_string();
                assert!(message.contains(hazard), "{message}");
                let lines = message.lines().filter(|line| line.contains("step.wgsl:3"));
                assert_eq!(lines.count(), 2, "{message}");
                assert!([first, second].iter().all(|text| message.contains(text)), "{message}");
            }
            (Ok(run), None) => {
                assert!(format!("{:?}", run.line.coverage.limits).contains("one walk"), "{run:?}")
            }
            (other, _) => panic!("{first} {second}: {other:?}"),
        }
    }
    let twice = dispatch(shift).bind(0, 0, &mut data).bind(0, 1, &mut copy).rebind(0, 1, (0, 0)).run();
    assert!(matches!(twice, Err(ShaderTestError::BoundTwice(0, 0))), "{twice:?}");
    Ok(())
}

/// The race needs two workgroups in the fourth layer, and the fifth element of `given`.
#[test]
fn a_failure_names_the_smallest_grid_and_slices() {
    let text = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@group(0) @binding(1) var<storage, read> given: array<i32>;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3u) {
    if (given[4] < -20 && id.y + 3u * id.z > 6u) { data[id.x / 4u] = id.y; }
}";
    let (mut data, given) = ([0_u32; 16], [-1000_i32; 64]);
    let mut run = || {
        let test = ShaderTest::source("race.wgsl", text).grid([9, 9, 4]).bind(0, 0, &mut data);
        test.bind_read(0, 1, &given).run().unwrap_err()
    };
    let (first, again) = (run(), run());
    assert_eq!(first.to_string(), again.to_string());
    let ShaderTestError::Finding { smallest: Some(smallest), .. } = first else { panic!("{first:?}") };
    assert_eq!(
        smallest.to_string(),
        "smallest failure found: `.grid([1, 2, 4])`, 1 element at set 0, binding 0: 0, 5 elements at set 0, binding 1: 0 0 0 0 -21"
    );
}

/// Devices leave the contents of the walk: numbers, floats, texels, push constants, two dispatches.
#[test]
fn software_drivers_leave_the_same_contents() -> Result<(), ShaderTestError> {
    for driver in software_drivers() {
        let device = || TestDevice::named(driver).program(binary());
        let mut data = [1_u32; 64];
        let doubled = ShaderTest::source("sum.wgsl", PREFIX_SUM);
        ShaderTest::source("sum.wgsl", PREFIX_SUM).bind(0, 0, &mut data).then(doubled).on(device()).run()?;
        assert_eq!(data[63], 2080);
        let (numbers, mut bins) = ((0..16).collect::<Vec<u32>>(), [0_u32; 4]);
        let histogram = ShaderTest::source("histogram.wgsl", HISTOGRAM).grid([2, 1, 1]).push(&10_u32);
        histogram.bind_read(0, 0, &numbers).bind(0, 1, &mut bins).on(device()).run()?;
        let (a, mut c) = ([0.5_f32; 16], [0.0_f32; 16]);
        let matrix = ShaderTest::source("matrix.comp", MATRIX).grid([2, 2, 1]);
        matrix.bind_read(0, 0, &a).bind_read(0, 1, &a).bind(0, 2, &mut c).on(device()).run()?;
        let store = "@group(0) @binding(0) var image: texture_storage_2d<rgba8unorm, write>;
@compute @workgroup_size(4, 2) fn main(@builtin(global_invocation_id) id: vec3u) {
    textureStore(image, id.xy, vec4f(f32(id.x) / 3.0, f32(id.y), 0.5, 1.0));
}";
        let mut texels = [0_u8; 32];
        let image = ShaderTest::source("store.wgsl", store);
        image.bind_image(0, 0, PixelFormat::Rgba8Unorm, [4, 2, 1], &mut texels).on(device()).run()?;
    }
    Ok(())
}

/// Reads images of every kind, and writes one whose texels have eight bytes.
const TEXTURES: &str = "#version 450
#extension GL_EXT_samplerless_texture_functions : require
layout(local_size_x = 4, local_size_y = 2) in;
layout(set = 0, binding = 0) uniform sampler2D combined;
layout(set = 0, binding = 1) uniform utexture2DArray layered;
layout(set = 0, binding = 2) uniform itexture3D volume;
layout(set = 0, binding = 3) uniform sampler linear;
layout(set = 1, binding = 4) uniform texture2D narrow;
layout(set = 1, binding = 5, rgba16f) uniform writeonly image2D stored;
layout(set = 0, binding = 6, r32ui) uniform uimage1D row;
layout(set = 0, binding = 7) buffer Words { uvec4 words[8]; };
void main() {
    ivec2 at = ivec2(gl_LocalInvocationID.xy);
    vec4 color = textureLod(combined, (vec2(at) + 0.5) / vec2(4.0, 2.0), 0.0);
    uint number = texelFetch(layered, ivec3(at.x % 2, 0, at.y), 0).y;
    int slice = texelFetch(volume, ivec3(0, at.y, at.x / 2), 0).w;
    float between = textureLod(sampler2D(narrow, linear), vec2(0.5, (float(at.y) + 0.5) / 2.0), 0.0).x;
    imageStore(stored, at, color * 0.5);
    imageAtomicAdd(row, at.x, number);
    words[at.y * 4 + at.x] = uvec4(floatBitsToUint(color.x), number, uint(slice), floatBitsToUint(between));
}";

#[test]
fn drivers_read_the_textures_of_the_walk() -> Result<(), ShaderTestError> {
    if !installed("glslangValidator") {
        return Ok(());
    }
    let colors: Vec<f32> = (0..32).map(|number| number as f32 - 7.5).collect();
    let layers: Vec<u8> = (0..16).map(|number| 3 * number).collect();
    let slices: Vec<i16> = (0..16).map(|number| 100 - 20 * number).collect();
    // Zeros, and ones in the last three texels.
    let halves: Vec<u16> = (0..16).map(|number| if number < 4 { 0 } else { 0x3c00 }).collect();
    let state = |is_linear| Sampler { is_linear, address_mode: AddressMode::Clamp };
    for device in std::iter::once(None).chain(software_drivers().into_iter().map(Some)) {
        let (mut stored, mut row, mut words) = ([0_u16; 32], [0_u32, 1, 2, 3], [0_u32; 32]);
        let test = ShaderTest::source("textures.comp", TEXTURES)
            .bind_texture(0, 0, PixelFormat::Rgba32Float, [4, 2, 1], &colors)
            .bind_sampler(0, 0, state(false))
            .bind_texture(0, 1, PixelFormat::Rgba8Uint, [2, 1, 2], &layers)
            .bind_texture(0, 2, PixelFormat::Rgba16Sint, [1, 2, 2], &slices)
            .bind_sampler(0, 3, state(true))
            .bind_texture(1, 4, PixelFormat::Rgba16Float, [2, 2, 1], &halves)
            .bind_image(1, 5, PixelFormat::Rgba16Float, [4, 2, 1], &mut stored)
            .bind_image(0, 6, PixelFormat::R32Uint, [4, 1, 1], &mut row)
            .bind(0, 7, &mut words);
        match device {
            Some(device) => test.on(TestDevice::named(device).program(binary())).run()?,
            None => test.run()?,
        };
        assert_eq!(words[..4], [(-7.5_f32).to_bits(), 3, 40, 0.5_f32.to_bits()], "{device:?}");
        // The texel (3, 1), the number of the second layer, and that of the last slice.
        assert_eq!(words[28..], [20.5_f32.to_bits(), 39, -200_i32 as u32, 1.0_f32.to_bits()], "{device:?}");
        assert_eq!(row, [30, 55, 32, 57], "{device:?}");
        // -3.75 as a half.
        assert_eq!(stored[0], 0xc380, "{device:?}");
    }
    Ok(())
}

/// Drivers approximate powers.
#[test]
fn a_device_that_differs_is_an_error_with_both_values() {
    let text = "@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { data[i] = pow(f32(i) + 1.1, 7.7); }";
    for driver in software_drivers() {
        let mut data = [0.0_f32; 4];
        let mut run = |ulps| {
            let device = TestDevice::named(driver).program(binary()).float_tolerance(ulps);
            ShaderTest::source("pow.wgsl", text).bind(0, 0, &mut data).on(device).run()
        };
        match run(0) {
            Err(ShaderTestError::DeviceDiffers { selector, index, walk, device, .. }) => {
                assert_eq!(selector, driver);
                let [walk, device] = [walk, device].map(|number| number.parse::<f32>().unwrap());
                assert!(walk != device && (walk / device - 1.0).abs() < 1e-3, "{index}: {walk} {device}");
            }
            other => panic!("{driver}: {other:?}"),
        }
        assert!(run(1 << 16).is_ok());
    }
    let mut data = [0.0_f32; 4];
    let missing = ShaderTest::source("pow.wgsl", text).bind(0, 0, &mut data);
    let missing = missing.on(TestDevice::named("no-such-device").program(binary())).run();
    assert!(missing.unwrap_err().to_string().contains("no-such-device"));
}

/// A sum without rounding is the same on every device; quotients may differ.
#[test]
fn exact_floats_are_those_of_every_device() {
    let text = |operation: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@compute @workgroup_size(2) fn main(@builtin(local_invocation_index) i: u32) {{ data[i] = data[i] {operation}; }}"
        )
    };
    let mut data = [0.5_f32, 3.0];
    ShaderTest::source("sum.wgsl", &text("+ 0.25")).exact_floats().bind(0, 0, &mut data).run().unwrap();
    assert_eq!(data, [0.75, 3.25]);
    let open = ShaderTest::source("quotient.wgsl", &text("/ 3.0")).exact_floats().bind(0, 0, &mut data).run();
    assert!(matches!(open, Err(ShaderTestError::Unknown { byte: 0, .. })), "{open:?}");
}

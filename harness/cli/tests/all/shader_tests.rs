//! Tests of shaders on arrays, as users of the library write them.

use vk_litmus::{ShaderTest, ShaderTestError};

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

/// Each mistake is a finding at its line, and the same seed finds it again. The slice is unchanged.
#[test]
fn seeded_mistakes_fail_with_their_line() {
    let barrier = "        workgroupBarrier();\n        let left";
    let mistakes = [
        ("sum.wgsl", PREFIX_SUM.replacen(barrier, "        let left", 1), "race", 7),
        (
            "sum.wgsl",
            PREFIX_SUM.replacen("        workgroupBarrier();\n        part", "        part", 1),
            "race",
            9,
        ),
        ("sum.wgsl", PREFIX_SUM.replace("part[i - min(i, step)]", "part[i + 64u]"), "out-of-bounds", 8),
        ("sum.wgsl", PREFIX_SUM.replace("part[i] = data[i]", "part[0] = data[i]"), "race", 5),
    ];
    for (file, text, kind, number) in mistakes {
        let mut data = [1_u32; 64];
        let seeds = [0, 7, 7].map(|seed| {
            match ShaderTest::source(file, &text).bind(0, 0, &mut data).seed(seed).run() {
                Err(ShaderTestError::Finding { line, text, seed }) => {
                    let found = &line.findings[0];
                    assert_eq!(found.kind, kind, "{found:?}");
                    assert!(found.at.iter().any(|place| place.line == Some(number)), "{found:?}");
                    let message = ShaderTestError::Finding { line, text, seed }.to_string();
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
    let mut short = [0_u32; 8];
    let beyond = ShaderTest::source("sum.wgsl", PREFIX_SUM).bind(0, 0, &mut short).run();
    assert!(beyond.unwrap_err().to_string().contains("out of bounds"));
    let endless = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(1) fn main() { loop { if (data[0] == 1u) { break; } } }";
    let mut zero = [0_u32];
    let hang = ShaderTest::source("wait.wgsl", endless).bind(0, 0, &mut zero).run();
    assert!(hang.unwrap_err().to_string().contains("hang"));
}

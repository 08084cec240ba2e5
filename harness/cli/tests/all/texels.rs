//! Texels that user shaders read and write on the simulated GPU and the installed software drivers.

use crate::common::{Ran, assert_valid, installed, schemas, software_drivers, vk_litmus};
use serde_json::Value;

/// The simulated GPU and the drivers.
fn devices() -> Vec<&'static str> {
    [&["sim"][..], &software_drivers()].concat()
}

fn run(device: &str, file: &str, more: &[&str]) -> (Ran, Value) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = vk_litmus(["run", file, "--device", device, "--seed", "1", "--format", "json"]);
    let ran = Ran::run(command.args(more).current_dir(folder.path()));
    let mut lines = ran.json_lines();
    assert_eq!(lines.len(), 1, "{device}: {ran:?}");
    let line = lines.remove(0);
    for schema in schemas("run.schema.json", "run.schema.json") {
        // The schema of the contract has no run without a judgement.
        if line["reason"] != "not judged" || schema.ends_with("schema/run.schema.json") {
            assert_valid(&schema, &line);
        }
    }
    (ran, line)
}

fn source(name: &str) -> String {
    format!("{}/tests/all/shaders/dispatch/{name}.comp", env!("CARGO_MANIFEST_DIR"))
}

/// Every 32-bit format is read and written with the same bits as by the drivers.
///
/// Exceptions: the drivers convert 8-bit components by a multiplication instead of a division, and lavapipe
/// rounds half-way values toward zero in writes.
#[test]
fn texels_of_users_are_read_and_written_as_by_drivers() {
    if !installed("glslangValidator") {
        return;
    }
    let formats = [
        ("r32f", "vec4"),
        ("rgba8", "vec4"),
        ("rgba8_snorm", "vec4"),
        ("rg16", "vec4"),
        ("rg16_snorm", "vec4"),
        ("rg16f", "vec4"),
        ("rgb10_a2", "vec4"),
        ("r32ui", "uvec4"),
        ("rgba8ui", "uvec4"),
        ("rg16ui", "uvec4"),
        ("r32i", "ivec4"),
        ("rgba8i", "ivec4"),
        ("rg16i", "ivec4"),
    ];
    // A soak takes every format, other runs one in two.
    let share = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { 2 };
    for (format, vector) in formats.into_iter().step_by(share) {
        let (image, bits, fill) = match vector {
            "vec4" => ("image2D", "floatBitsToUint", "floats"),
            "uvec4" => ("uimage2D", "", "iota"),
            _ => ("iimage2D", "uvec4", "iota"),
        };
        let flags = [
            format!("-DFORMAT={format}"),
            format!("-DVECTOR={vector}"),
            format!("-DIMAGE={image}"),
            format!("-DBITS={bits}"),
            "--grid=1".to_owned(),
            format!("--image=0.0=8x2,fill={fill}"),
            "--image=0.1=8x2".to_owned(),
            format!("--buffer=0.2={fill}:128"),
            "--instances".to_owned(),
            "120".to_owned(),
        ];
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let left: Vec<_> = devices()
            .into_iter()
            .map(|device| {
                let (ran, line) = run(device, &source("texels"), &flags);
                let exact = vector != "vec4" || format == "r32f";
                let expected = if exact { (0, "conforms") } else { (3, "inconclusive") };
                assert_eq!((ran.code, line["verdict"].as_str().unwrap()), expected, "{format}: {ran:?}");
                let contents = line["shader"]["contents"].as_array().unwrap();
                assert_eq!(contents.len(), 1, "{device}, {format}: {line}");
                (device, contents[0]["differs"].as_object().unwrap().clone())
            })
            .collect();
        let [(_, sim), drivers @ ..] = &left[..] else { panic!("no simulated GPU") };
        assert!(sim.keys().any(|name| name.starts_with("to[")), "{format}: {sim:?}");
        assert!(sim.keys().any(|name| name.starts_with("Read.read[")), "{format}: {sim:?}");
        for (device, driver) in drivers {
            assert!(sim.keys().eq(driver.keys()), "{device}, {format}");
            for (name, own) in sim {
                let (simulated, other) = (own.as_u64().unwrap(), driver[name].as_u64().unwrap());
                let near = match (format, name.starts_with("to[")) {
                    ("rgba8" | "rgba8_snorm", false) => simulated.abs_diff(other) <= 1,
                    ("rg16f", true) => (0..2).all(|half| {
                        (simulated >> (16 * half) & 0xffff).abs_diff(other >> (16 * half) & 0xffff) <= 1
                    }),
                    _ => simulated == other,
                };
                assert!(near, "{device}, {format}: {name} is {simulated}, there {other}");
            }
        }
    }
}

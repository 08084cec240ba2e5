//! The layer that captures the inputs of dispatches as cases.
//!
//! A captured case equals the input of the run. Dynamic offsets, an indirect dispatch and an address in push
//! constants, which the runner does not use, are captured from another program.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Layer, Ran, installed, software_drivers, validation_messages, vk_litmus};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/shaders/capture").join(name)
}

/// Returns the folders of dispatches in order, with their cases.
fn dispatches(captured: &Path) -> Vec<(PathBuf, String)> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(captured).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    let case = |folder: PathBuf| (folder.clone(), std::fs::read_to_string(folder.join("case.toml")).unwrap());
    found.into_iter().map(case).collect()
}

/// Returns the verdict and the findings of `race` for a kernel, without positions.
fn race_answer(kernel: &Path, case: &Path, more: &[&str]) -> serde_json::Value {
    let mut command = vk_litmus(["race", "--format", "json"]);
    let ran = Ran::run(command.args(more).arg(kernel).arg("--case").arg(case));
    let line = ran.json_lines().pop().unwrap();
    let findings = line["findings"].as_array().unwrap();
    let messages: Vec<&str> = findings.iter().map(|finding| finding["message"].as_str().unwrap()).collect();
    serde_json::json!([line["verdict"], line["grid"], messages])
}

fn words(folder: &Path, name: &str) -> Vec<u32> {
    let bytes = std::fs::read(folder.join(name)).unwrap();
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// Specialization and push constants, buffers and an image: the captured case of a `run` equals its input.
#[test]
fn a_captured_case_equals_the_dispatched_one() {
    if !installed("glslangValidator") {
        return;
    }
    let Some(layer) = Layer::build_below_validation("capture") else { return };
    let (kernel, case) = (data("given.comp"), data("given.toml"));
    for driver in software_drivers() {
        let captured = layer.folder().join(driver);
        std::fs::create_dir(&captured).unwrap();
        let mut command =
            vk_litmus(["run", "--device", driver, "--instances", "2", "--seed", "1", "--validate"]);
        command.arg(&kernel).arg("--case").arg(&case).current_dir(layer.folder());
        command.env("VK_LITMUS_CAPTURE", &captured);
        let ran = Ran::run(layer.with_validation(&mut command));
        assert!(validation_messages(&ran).is_empty(), "{driver}: {:#?}", validation_messages(&ran));
        assert!(ran.stdout.contains("2 dispatches"), "{driver}: {ran:?}");
        let all = dispatches(&captured);
        let with_image = all.iter().filter(|(_, case)| case.contains("[image.\"1.1\"]"));
        let (folder, text) = with_image.clone().next().expect("a dispatch of the shader");
        let subgroups = text.lines().find_map(|line| line.strip_prefix("subgroup_size = ")).unwrap();
        let given = race_answer(&kernel, &case, &["--subgroup-size", subgroups]);
        assert_eq!(given[0], "racy");
        assert_eq!(
            race_answer(&folder.join("kernel.spv"), &folder.join("case.toml"), &[]),
            given,
            "{driver}: {text}"
        );
        assert!(text.contains("grid = [2, 1, 1]\n") && !text.contains('#'), "{driver}: {text}");
        // Half, 1, 2 and 3 are unchanged; texels are rounded to their 8-bit format.
        assert_eq!(words(folder, "0.2.bin"), [0.5_f32, 1.0, 2.0, 3.0].map(f32::to_bits), "{driver}");
        let numbers = frontend::inputs::fill_bytes("random", 256).unwrap();
        assert_eq!(std::fs::read(folder.join("0.0.bin")).unwrap(), numbers, "{driver}");
        let floats = frontend::inputs::fill_bytes("floats", 16 * 2 * 16).unwrap();
        let texels = floats.chunks_exact(4).map(|word| {
            let value = f32::from_le_bytes(word.try_into().unwrap()).clamp(0.0, 1.0);
            ((value * 255.0).round() / 255.0).to_bits()
        });
        assert_eq!(words(folder, "1.1.bin"), texels.collect::<Vec<u32>>(), "{driver}");
    }
}

#[test]
fn bindings_by_offset_and_by_address_are_captured() {
    if !installed("glslangValidator") {
        return;
    }
    let Some(layer) = Layer::build_below_validation("capture") else { return };
    let (kernel, host) = (layer.folder().join("kernel.spv"), layer.folder().join("host"));
    let mut compiler = Command::new("glslangValidator");
    compiler.args(["-V", "--target-env", "vulkan1.2", "-g", "-o"]).arg(&kernel).arg(data("host.comp"));
    assert!(compiler.output().unwrap().status.success());
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-O1", "-Wall", "-o"]).arg(&host).arg(data("host.c")).arg("-lvulkan");
    let built = Ran::run(&mut compiler);
    if built.stderr.contains("vulkan.h: No such file") {
        return println!("1 skipped: libvulkan-dev is not installed");
    }
    assert_eq!(built.code, 0, "{built:?}");
    let captured = layer.folder().join("captured");
    std::fs::create_dir(&captured).unwrap();
    let mut command = Command::new(&host);
    command.arg(&kernel).env("VK_LITMUS_CAPTURE", &captured).env("NODEVICE_SELECT", "1");
    let ran = Ran::run(layer.with_validation(&mut command));
    // The validation layers print to standard output if the program has no callback.
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran:?}");
    let all = dispatches(&captured);
    assert_eq!(all.len(), 2, "{all:?}");
    for (turn, (folder, text)) in all.iter().enumerate() {
        assert!(text.contains("grid = [3, 1, 1]\n") && !text.contains('#'), "{text}");
        assert!(text.contains("[address.\"push8\"]\nat = \"push@8\"\n"), "{text}");
        // 128 bytes at 256 + 256, 128 at 256 + 1024, and from 3072 to the end.
        let first: Vec<u32> = (128..160).collect();
        let behind: Vec<u32> = (768..1024).collect();
        let mut second: Vec<u32> = (320..352).collect();
        if turn == 1 {
            for place in 0..24 {
                second[place] = first[place] * 7 + behind[place];
            }
        }
        assert_eq!(words(folder, "0.0.bin"), first);
        assert_eq!(words(folder, "1.0.bin"), second);
        assert_eq!(words(folder, "push8.bin"), behind);
        assert_eq!(race_answer(&folder.join("kernel.spv"), &folder.join("case.toml"), &[])[0], "clean");
    }
}

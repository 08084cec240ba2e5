//! `repro`: a bundle works without other files of this project.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Ran, installed, software_drivers, vk_litmus};

/// A test, and a fault of the simulated GPU that violates it.
const VIOLATING: &str = "avvis/MP+rel-acq.av-semvis";
const FAULT: &str = "acquire-no-invalidate";

fn bundle(arguments: &[&str], out: &Path) -> Ran {
    let ran = Ran::run(vk_litmus(["repro"].iter().chain(arguments).copied()).arg("--out").arg(out));
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
    ran
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn readme(folder: &Path) -> String {
    fs::read_to_string(folder.join("README.md")).unwrap()
}

#[test]
fn a_bundle_has_the_files_in_its_text() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("bundle");
    let ran = bundle(&["mp/MP+rel-acq@split"], &out);
    assert!(ran.messages().contains("files in "), "{}", ran.stderr);
    let there = files(&out);
    let expected = [
        "README.md",
        "explanation.svg",
        "explanation.txt",
        "host.c",
        "kernel.1.spv",
        "kernel.1.spvasm",
        "kernel.spv",
        "kernel.spvasm",
        "test.comp",
        "test.litmus",
    ];
    assert_eq!(there, expected);
    let text = readme(&out);
    for name in there.iter().filter(|name| *name != "README.md") {
        assert!(text.contains(&format!("`{name}`")), "{name} in {text}");
    }
    assert!(text.starts_with("# mp/MP+rel-acq@split: `vulkan` forbids 1 of 4 outcomes\n"), "{text}");
    if installed("spirv-val") {
        for kernel in ["kernel.spv", "kernel.1.spv"] {
            let ran =
                Ran::run(Command::new("spirv-val").args(["--target-env", "vulkan1.2"]).arg(out.join(kernel)));
            assert_eq!(ran.code, 0, "{}", ran.stderr);
        }
    }
    // The bundle has the requested test.
    let checked = Ran::run(vk_litmus(["check", "--format", "json"]).arg(out.join("test.litmus")));
    assert_eq!(
        (checked.code, &checked.json_lines()[0]["queries"][0]["holds"]),
        (0, &serde_json::json!(false))
    );
}

#[test]
fn tests_without_a_host_program_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    for (test, told) in [
        ("classes/MP+rel-acq.sc2", "No C program: the C program supports only storage buffers"),
        ("avvis/MP+rel-acq.address", "No C program: the C program supports only storage buffers"),
    ] {
        let out = folder.path().join(test.replace('/', "-"));
        bundle(&[test], &out);
        assert!(readme(&out).contains(told), "{}", readme(&out));
        assert!(!out.join("host.c").exists());
    }
}

#[test]
fn a_violation_of_a_run_is_reproduced_with_its_counts() {
    let folder = tempfile::tempdir().unwrap();
    let (results, out) = (folder.path().join("results"), folder.path().join("bundle"));
    let ran = Ran::run(
        vk_litmus(["run", VIOLATING, "sb/SB+rlx-rlx", "--fault", FAULT, "--instances", "2000"])
            .args(["--seed", "2", "--quiet", "--out"])
            .arg(&results),
    );
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let results = results.to_str().unwrap();
    bundle(&["--results", results], &out);
    let text = readme(&out);
    assert!(text.starts_with(&format!("# {VIOLATING}: sim shows what `vulkan` forbids\n")), "{text}");
    let replay =
        format!("vk-litmus run {VIOLATING} --device sim --seed 2 --instances 2000 --fault {FAULT}\n");
    for part in ["| **forbidden** |", " instances on `sim`: violates", &replay, "## Why\n"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // The explanation is about the observed outcome.
    assert!(text.contains("is forbidden"), "{text}");
    let other = folder.path().join("other");
    let missing = Ran::run(vk_litmus(["repro", "lb/LB+rlx-rlx", "--results", results, "--out"]).arg(&other));
    assert_eq!(missing.code, 2, "{}", missing.stderr);
    assert!(
        missing.messages().contains("the results have no verdict for `lb/LB+rlx-rlx`") && !other.exists()
    );
}

/// Returns true if a C compiler, the Vulkan headers and a loader are installed.
fn compiles() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("empty.c");
    fs::write(&source, "#include <vulkan/vulkan.h>\nint main(void) { return 0; }\n").unwrap();
    let made =
        Command::new("cc").arg(&source).arg("-o").arg(folder.path().join("empty")).arg("-lvulkan").output();
    let compiles = made.is_ok_and(|made| made.status.success());
    if !compiles {
        println!("1 skipped: no C compiler, or libvulkan-dev is not installed");
    }
    compiles
}

fn compile(out: &Path) {
    let ran = Ran::run(
        Command::new("cc")
            .args(["-O2", "-Wall", "-Werror", "-o", "host", "host.c", "-lvulkan"])
            .current_dir(out),
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// Returns the driver file of lavapipe.
fn lavapipe() -> Option<String> {
    if !software_drivers().contains(&"lavapipe") {
        return None;
    }
    let found = fs::read_dir("/usr/share/vulkan/icd.d")
        .ok()?
        .filter_map(|entry| entry.ok()?.path().into_os_string().into_string().ok());
    found.into_iter().find(|path| path.contains("/lvp_icd"))
}

fn host(out: &Path, driver: &str) -> Ran {
    Ran::run(
        Command::new("./host")
            .arg("1")
            .current_dir(out)
            .env("VK_ICD_FILENAMES", driver)
            .env("VK_DRIVER_FILES", driver),
    )
}

/// Returns the counts in the output of a host, with the text after them.
fn table(ran: &Ran) -> Vec<(u64, &str)> {
    let row = |line: &str| line.trim_start().split_once(' ')?.0.parse::<u64>().ok();
    ran.stdout.lines().skip(2).filter_map(|line| Some((row(line)?, line))).collect()
}

#[test]
fn the_host_in_c_runs_on_a_driver_and_counts_every_instance() {
    if !compiles() {
        return;
    }
    let Some(driver) = lavapipe() else { return };
    let folder = tempfile::tempdir().unwrap();
    let never = folder.path().join("never.cat");
    let text = "\"never\"\n(* options: asmo=plain *)\nlet fr = rf^-1; co\nempty rf \\ (IW * _) as never\n";
    std::fs::write(&never, text).unwrap();
    let never = never.to_str().unwrap();
    // Separate workgroups, separate kernels, one workgroup, several dispatches, memory in the outcome, and
    // loops.
    for (id, model, code) in [
        ("mp/MP+rel-acq", "vulkan", 0),
        ("mp/MP+rel-acq@split", "vulkan", 0),
        // This model forbids an outcome of every run, so threads need not overlap.
        ("sb/SB+rlx-rlx", never, 1),
        ("ssw/MP+ssw", "vulkan", 0),
        // Pipelines with a required subgroup size, with full subgroups, and with any size.
        ("mp/MP+rel-acq@subgroup-smallest", "vulkan", 0),
        ("mp/MP+rel-acq.wg", "vulkan", 0),
        ("mp/MP+rel-acq@subgroup-varying", "vulkan", 0),
        ("2+2w/2+2W+rlx-rlx", "vulkan", 0),
    ] {
        let out = folder.path().join(id.replace(['/', '@'], "-"));
        bundle(&[id, "--device", "lavapipe", "--model", model], &out);
        compile(&out);
        let ran = host(&out, &driver);
        assert_eq!(ran.code, code, "{id}: {}{}", ran.stdout, ran.stderr);
        let rows = table(&ran);
        let instances: u64 = ran.stdout.lines().nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(instances > 1000, "{id}: {}", ran.stdout);
        assert_eq!(rows.iter().map(|(count, _)| count).sum::<u64>(), instances, "{id}: {}", ran.stdout);
        let forbidden = rows.iter().any(|(_, line)| line.ends_with("forbidden"));
        assert_eq!(forbidden, code == 1, "{id}: {}", ran.stdout);
    }
}

//! Machine code of compile-only devices: Mesa's RADV, if installed. No test depends on time.

use std::path::Path;

use crate::common::{Ran, assert_valid, vk_litmus};
use serde_json::Value;

/// One family of each generation that every Mesa version can disassemble.
const FAMILIES: [&str; 5] = ["polaris10", "vega10", "navi10", "navi21", "navi31"];

/// Returns true if RADV is installed; otherwise prints a counted skip.
pub fn has_radv() -> bool {
    let there = Path::new("/usr/share/vulkan/icd.d").read_dir().is_ok_and(|entries| {
        entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("radeon_icd"))
    });
    if !there {
        println!("1 skipped: RADV is not installed: no compile-only device");
    }
    there
}

/// Names of the vendors.
const VENDORS: [&str; 8] = ["radv", "nvk", "anv", "hasvk", "turnip", "honeykrisp", "panvk", "v3dv"];

fn codegen(arguments: &[&str]) -> Ran {
    Ran::run(vk_litmus(["codegen"]).args(arguments))
}

/// Runs a command that must succeed and returns its lines.
#[track_caller]
fn lines(arguments: &[&str]) -> Vec<Value> {
    let ran = codegen(&[arguments, &["--format", "json"]].concat());
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
    ran.json_lines()
}

fn schema(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/schema").join(name)
}

fn devices(families: &[&str]) -> String {
    families.iter().map(|family| format!("radv:{family}")).collect::<Vec<_>>().join(",")
}

#[test]
fn the_quick_suite_compiles_for_every_generation() {
    if !has_radv() {
        return;
    }
    // The others compile a few tests in `committed_machine_code_is_current`.
    let families = match std::env::var_os("VK_LITMUS_SOAK") {
        Some(_) => &FAMILIES[..],
        None => &["polaris10", "navi31"],
    };
    let found = lines(&["--suite", "quick", "--device", &devices(families)]);
    let schema = schema("codegen.schema.json");
    assert_valid(&schema, &found[0]);
    let (compiled, left): (Vec<&Value>, Vec<&Value>) =
        found.iter().partition(|line| line["verdict"] == "compiles");
    for line in &compiled {
        let kernels = line["kernels"].as_array().unwrap();
        // Every kernel was disassembled: it has at least the store of its results.
        assert!(kernels.iter().all(|kernel| kernel["instructions"].as_u64().unwrap() > 2), "{line:#}");
    }
    // Tests with host threads, several queue families or a feature that these drivers lack are skipped by
    // name.
    for line in &left {
        assert_eq!(line["verdict"], "skipped", "{line:#}");
        assert!(line["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{line:#}");
    }
    let tests = found.len() / families.len();
    assert!(tests > 60 && compiled.len() > 9 * left.len(), "{tests} tests, {} skipped", left.len());
    assert_eq!(tests * families.len(), found.len());
    // Two threads, each in a workgroup: one kernel for both, and one for each.
    let mp = found.iter().find(|line| line["id"] == "mp/MP+rel-acq").unwrap();
    let kernels = mp["kernels"].as_array().unwrap();
    let verdicts: Vec<(&str, &str, &str)> = kernels
        .iter()
        .map(|kernel| {
            let word = |key: &str| kernel[key].as_str().unwrap();
            (word("form"), word("kernel"), word("role"))
        })
        .collect();
    let expected = [
        ("merged", "P0,P1", "both"),
        ("split", "P0", "producer"),
        ("split", "P1", "consumer"),
        ("split.restrict", "P0", "producer"),
        ("split.restrict", "P1", "consumer"),
        ("expression.restrict", "P0", "producer"),
        ("expression.restrict", "P1", "consumer"),
        ("vertex", "P0", "producer"),
        ("vertex", "P1", "consumer"),
        ("vertex.restrict", "P0", "producer"),
        ("vertex.restrict", "P1", "consumer"),
        ("fragment", "P0", "producer"),
        ("fragment", "P1", "consumer"),
        ("fragment.restrict", "P0", "producer"),
        ("fragment.restrict", "P1", "consumer"),
    ];
    assert_eq!(verdicts, expected);
}

#[test]
fn compile_only_devices_are_listed_and_never_the_default() {
    if !has_radv() {
        return;
    }
    let listed = Ran::run(&mut vk_litmus(["devices", "--compile-only", "--format", "json"]));
    let devices: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    let compile_only: Vec<&Value> =
        devices.iter().filter(|device| device["identity"]["kind"] == "compile-only").collect();
    assert!(compile_only.len() > 20, "{}", listed.stdout);
    for device in &compile_only {
        assert_eq!(device["capabilities"]["executes"], false);
        let name = device["identity"]["name"].as_str().unwrap();
        assert!(VENDORS.iter().any(|vendor| name.starts_with(&format!("{vendor}:"))), "{name}");
    }
    let indices: Vec<u64> = devices.iter().map(|device| device["index"].as_u64().unwrap()).collect();
    assert_eq!(indices, (0..devices.len() as u64).collect::<Vec<_>>());
    assert_ne!(devices[0]["identity"]["kind"], "compile-only");
    // An index refers to the list of `devices`.
    let last = devices.last().unwrap();
    let index = last["index"].to_string();
    let found = lines(&["mp/MP+rel-acq", "--device", &index, "--form", "merged"]);
    assert_eq!(found[0]["device"], last["identity"]["name"]);
}

/// The memory operations of a few tests, compiled by the Mesa version of the committed files.
#[test]
fn committed_machine_code_is_current() {
    if !has_radv() {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/codegen");
    let tests = [
        "mp/MP+rel-acq",
        "isa2/ISA2+rel-acqrel-acq.wg-dv",
        "barrier/ISA2+cbar-rel-acq.atomic",
        "rmw/RMW+addadd-addadd",
        "storage/MP+rel-acq.address",
        "classes/MP+cbar.sc1",
    ];
    let installed = lines(&[tests[0], "--device", "radv:vega10", "--form", "merged"]);
    let driver = installed[0]["driver"].as_str().unwrap();
    let made_by = std::fs::read_to_string(folder.join("radv-vega10.txt")).unwrap();
    let made_by = made_by.lines().nth(1).unwrap().trim_start_matches("# ").to_owned();
    if made_by != driver {
        println!("1 skipped: committed machine code is of {made_by}, and this is {driver}");
        return;
    }
    let folder = folder.to_str().unwrap();
    let ran = codegen(&[&tests[..], &["--device", &devices(&FAMILIES), "--baseline", folder]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        ran.stdout.lines().filter(|line| line.contains(": 0 of ")).count(),
        FAMILIES.len(),
        "{}",
        ran.stdout
    );
}

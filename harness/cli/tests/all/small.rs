//! Small devices: without the Vulkan memory model, with an older Vulkan version, low limits, or a portability
//! subset.

use std::path::Path;

use serde_json::Value;

use crate::common::{Ran, software_drivers, vk_litmus};

/// Limits similar to those of an older mobile GPU.
const SMALL: &str = "vulkanMemoryModel,shaderInt8,maxComputeWorkGroupInvocations=128,maxComputeWorkGroupCount=32,\
                     maxStorageBufferRange=65536,maxComputeSharedMemorySize=16384";

fn weak(line: &Value) -> &Value {
    let outcomes = line["outcomes"].as_array().unwrap();
    outcomes.iter().find(|outcome| outcome["weak"] == true).unwrap()
}

/// A device without the memory model runs tests in GLSL450 form, and is judged by its weaker guarantees.
#[test]
fn a_device_without_the_memory_model_runs_the_same_suite() {
    let folder = tempfile::tempdir().unwrap();
    let tests = [
        "mp/MP+rel-acq",
        "mp/MP+rel-acq@split",
        "mp/MP+rlx-rlx",
        "scopes/MP+rel-acq.dv-far",
        "avvis/MP+rel-acq.av-semvis",
        "guard/MP+rel-acq.guard@glsl450",
    ];
    let run = [
        "run",
        "--device",
        "sim",
        "--stress",
        "small",
        "--instances",
        "3000",
        "--seed",
        "1",
        "--format",
        "json",
        "--out",
        "masked",
    ];
    let ran = Ran::run(vk_litmus(run).args(tests).env("VK_LITMUS_MASK", SMALL).current_dir(folder.path()));
    assert_eq!(ran.code, 0, "{ran:?}");
    let lines = ran.json_lines();
    let line =
        |id: &str| lines.iter().find(|line| line["id"] == id).unwrap_or_else(|| panic!("no {id}: {ran:?}"));
    assert_eq!(lines.len(), tests.len());
    for id in ["mp/MP+rel-acq@glsl450.vulkan11", "mp/MP+rel-acq@split.glsl450.vulkan11"] {
        assert_eq!(line(id)["verdict"], "conforms");
        assert_eq!((&weak(line(id))["allowed"], &weak(line(id))["count"]), (&false.into(), &0.into()));
    }
    let relaxed = weak(line("mp/MP+rlx-rlx@glsl450.vulkan11"));
    assert!(relaxed["allowed"] == true && relaxed["count"].as_u64() > Some(0), "{relaxed}");
    // In this form, device scope is the queue family, so queues of different families race.
    let far = line("scopes/MP+rel-acq.dv-far@glsl450.vulkan11");
    assert_eq!((&far["verdict"], &weak(far)["allowed"]), (&"undefined".into(), &true.into()));
    let skipped = line("avvis/MP+rel-acq.av-semvis@glsl450.vulkan11");
    assert_eq!(skipped["reason"], "availability in semantics under GLSL450", "{skipped}");
    assert_eq!(line("guard/MP+rel-acq.guard@glsl450.vulkan11")["verdict"], "conforms");
    for line in &lines {
        assert!(line["instances"].as_u64() < Some(4000), "{line}");
    }
    // The plan records what is masked.
    let plan = std::fs::read_to_string(folder.path().join("masked/plan.json")).unwrap();
    let plan: Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["environment"]["variables"]["VK_LITMUS_MASK"], SMALL, "{plan}");
}

/// The validation layers accept the modules: each enables its features and has the right version.
#[test]
fn a_device_of_vulkan_1_1_runs_the_supported_tests() {
    let folder = tempfile::tempdir().unwrap();
    for driver in software_drivers() {
        let run = ["run", "sb/SB+rlx-rlx", "barrier/MP+cbar", "--device", driver, "--stress", "small"];
        let ran = Ran::run(
            vk_litmus(run)
                .args(["--instances", "2000", "--format", "json", "--validate"])
                .env("VK_LITMUS_MASK", "apiVersion=1.1")
                .current_dir(folder.path()),
        );
        if ran.stderr.contains("VK_LAYER_KHRONOS_validation") {
            println!("1 skipped: the validation layers are not installed");
            continue;
        }
        let lines = ran.json_lines();
        assert_eq!(lines.len(), 2, "{driver}: {ran:?}");
        for line in lines {
            assert!(line["id"].as_str().unwrap().ends_with("@glsl450.vulkan11"), "{line}");
            assert!(line["instances"].as_u64() >= Some(2_000), "{driver}: {line}");
            assert_ne!(line["verdict"], "violates", "{driver}: {line}");
        }
    }
}

/// Both devices run the common form, and the newer one also runs its own.
#[test]
fn devices_of_vulkan_1_1_and_1_3_run_together() {
    let folder = tempfile::tempdir().unwrap();
    let drivers = software_drivers();
    let [old, ..] = drivers[..] else { return println!("1 skipped: no software driver is installed") };
    let run = [
        "run",
        "mp/MP+rlx-rlx",
        "--device",
        old,
        "--device",
        "sim",
        "--instances",
        "3000",
        "--format",
        "json",
    ];
    let mask = format!("{old}:apiVersion=1.1");
    let ran =
        Ran::run(vk_litmus(run).args(["--seed", "1"]).env("VK_LITMUS_MASK", mask).current_dir(folder.path()));
    assert_eq!(ran.code, 0, "{ran:?}");
    let verdicts: Vec<(String, String, bool)> = ran
        .json_lines()
        .iter()
        .map(|line| {
            let word = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            (word("device"), word("id"), line["verdict"] == "skipped")
        })
        .collect();
    let row = |device: &str, id: &str, skipped| (device.to_owned(), id.to_owned(), skipped);
    let old_form = "mp/MP+rlx-rlx@glsl450.vulkan11";
    let expected = [
        row(old, "mp/MP+rlx-rlx", true),
        row(old, old_form, false),
        row("sim", "mp/MP+rlx-rlx", false),
        row("sim", old_form, false),
    ];
    assert_eq!(verdicts, expected, "{ran:?}");
}

/// Rates, including those of the classic scheme, are measured in the form that the device supports.
#[test]
fn a_device_without_the_memory_model_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let drivers = software_drivers();
    let [driver, ..] = drivers[..] else { return println!("1 skipped: no software driver is installed") };
    let bench = ["bench", "--device", driver, "--scale", "0.02", "--format", "json"];
    let ran = Ran::run(vk_litmus(bench).env("VK_LITMUS_MASK", "apiVersion=1.1").current_dir(folder.path()));
    assert_eq!(ran.code, 0, "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let runs = report["runs"].as_array().unwrap();
    assert!(runs.iter().all(|run| run["test"].as_str().unwrap().ends_with("@glsl450.vulkan11")), "{ran:?}");
    assert!(runs.iter().all(|run| run["error"].is_null()), "{ran:?}");
    let classic = &report["classic"]["runs"][0]["counts"];
    assert!(classic.as_array().unwrap().iter().any(|count| count.as_u64() > Some(0)), "{ran:?}");
}

#[test]
fn a_mask_that_cannot_be_read_is_refused() {
    for command in [["run", "--device", "sim"], ["devices", "--format", "json"]] {
        let ran = Ran::run(vk_litmus(command).env("VK_LITMUS_MASK", "maxLanes=3"));
        assert_eq!((ran.code, ran.messages().contains("unknown limit `maxLanes`")), (2, true), "{ran:?}");
    }
}

/// The loader hides portability drivers unless the application requests them.
#[test]
fn a_portability_driver_is_found() {
    let file = Path::new("/usr/share/vulkan/icd.d/lvp_icd.x86_64.json");
    let Ok(text) = std::fs::read_to_string(file) else {
        println!("1 skipped: {} is not there", file.display());
        return;
    };
    let mut driver: Value = serde_json::from_str(&text).unwrap();
    driver["ICD"]["is_portability_driver"] = true.into();
    let folder = tempfile::tempdir().unwrap();
    let portable = folder.path().join("portable.json");
    std::fs::write(&portable, driver.to_string()).unwrap();
    let devices = ["devices", "--format", "json"];
    let ran =
        Ran::run(vk_litmus(devices).env("VK_DRIVER_FILES", &portable).env("VK_ICD_FILENAMES", &portable));
    let listed: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    assert!(listed.iter().any(|device| device["identity"]["name"] == "lavapipe"), "{ran:?}");
}

//! Queues, queue families, ownership transfers and host threads under the validation layers with
//! synchronization validation.
//!
//! The software drivers have one queue; a layer below them adds two families of two queues each.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::{Layer, Ran, software_drivers, validation_messages, vk_litmus};

/// No test has a validation message.
#[test]
fn validation_reports_nothing_for_queues_transfers_and_hosts() {
    let Some(layer) = Layer::build_below_validation("families") else { return };
    let tests = ["families/*", "transfer/*", "host/*", "families/*@calls", "transfer/*@calls"];
    let max_drivers = if std::env::var_os("VK_LITMUS_SOAK").is_some() { usize::MAX } else { 1 };
    for driver in software_drivers().into_iter().take(max_drivers) {
        let log = layer.folder().join(driver);
        let mut command = vk_litmus(["run", "--device", driver, "--instances", "100", "--seed", "1"]);
        command.args(["--validate", "--format", "json"]).args(tests).current_dir(layer.folder());
        command.env("LITMUS_FAMILIES_LOG", &log);
        let ran = Ran::run(layer.with_validation(&mut command));
        let lines = ran.json_lines();
        let mut verdicts: BTreeMap<String, u32> = BTreeMap::new();
        let mut families = 0;
        for line in &lines {
            let id = line["id"].as_str().unwrap();
            let reason = line["reason"].as_str().unwrap_or_default();
            assert!(
                !reason.contains("queue famil") && !reason.contains("compute queues"),
                "{driver}: {line}"
            );
            assert!(!matches!(reason, "crashed" | "timed out" | "device lost"), "{driver}: {line}");
            assert_ne!(line["verdict"], "violates", "{driver}: {line}");
            families += u32::from(
                id.starts_with("transfer/")
                    && id.ends_with("@calls")
                    && reason != "no API calls to run as written",
            );
            let word = [line["verdict"].as_str().unwrap_or_default(), reason].join(" ");
            *verdicts.entry(word.trim().to_owned()).or_default() += 1;
        }
        println!("{driver}: {} rows, {verdicts:?}", lines.len());
        assert!(validation_messages(&ran).is_empty(), "{driver}: {:#?}", validation_messages(&ran));
        let transfers = halves(&log);
        println!("{driver}: {} transfers of ownership", transfers.len());
        assert!(!transfers.is_empty(), "{driver}");
        for (transfer, (released, acquired)) in transfers {
            assert!(released > 0 && released == acquired, "{driver}: {released}, {acquired} of {transfer}");
        }
        assert!(lines.len() >= 165 && families >= 11, "{driver}: {} rows, {families} transfers", lines.len());
    }
}

/// A layer adds memory of `VK_AMD_device_coherent_memory` to the software drivers. It is used only on request
/// and with its feature enabled; otherwise the validation layers would report it.
#[test]
fn device_coherent_memory_is_used_on_request() {
    let Some(layer) = Layer::build_below_validation("memory") else { return };
    let run = |driver: &str| {
        let mut command = vk_litmus(["run", "--device", driver, "--instances", "1000", "--seed", "1"]);
        command.args([
            "rmw/RMW+addadd-addadd@device-coherent",
            "mp/MP+rel-acq@device-coherent",
            "mp/MP+rel-acq",
        ]);
        command.args(["--validate", "--format", "json"]).current_dir(layer.folder());
        command
    };
    let named = |ran: &Ran, reason: &str| {
        let lines = ran.json_lines();
        lines.iter().filter(|line| line["reason"].as_str().unwrap_or_default() == reason).count()
    };
    let lacks = "memory type DEVICE_COHERENT_AMD";
    for driver in software_drivers() {
        let mut command = run(driver);
        let there = Ran::run(layer.with_validation(&mut command));
        assert!(validation_messages(&there).is_empty(), "{driver}: {:#?}", validation_messages(&there));
        for line in there.json_lines() {
            let verdict = (line["verdict"].as_str().unwrap(), line["reason"].as_str().unwrap_or_default());
            assert!(["conforms", "inconclusive"].contains(&verdict.0), "{driver}: {line}");
            assert!(["", "not exercised"].contains(&verdict.1), "{driver}: {line}");
        }
        // Without the feature and without the memory type.
        command.env("VK_LITMUS_MASK", "deviceCoherentMemory");
        assert_eq!(named(&Ran::run(&mut command), lacks), 2, "{driver}");
        assert_eq!(named(&Ran::run(&mut run(driver)), lacks), 2, "{driver}");
    }
}

/// A test with queues or host threads that a device does not support is skipped by the name of the rule. The
/// line after the name of each file in `refused/` has the rule and the variant.
#[test]
fn unsupported_queue_tests_are_skipped_by_rule() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/refused");
    let mut expected: BTreeMap<String, String> = BTreeMap::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let (variant, rule) = text.lines().nth(1).unwrap().split_once(", ").unwrap();
        let variant = variant.strip_prefix("Skipped").unwrap().trim_start_matches(" as ");
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        expected.insert(format!("{file}{variant}"), rule.to_owned());
    }
    let empty = tempfile::tempdir().unwrap();
    let out = empty.path().join("out");
    let mut command = vk_litmus(["run", "--device", "sim", "--instances", "64", "--seed", "1"]);
    command.args(["--format", "json", "--out"]).arg(&out).args(expected.keys()).current_dir(&folder);
    let found: BTreeMap<String, String> = Ran::run(&mut command)
        .json_lines()
        .iter()
        .map(|line| {
            let reason = line["reason"].as_str().unwrap_or_default();
            let name = line["id"].as_str().unwrap();
            let (name, variant) =
                name.split_once('@').map_or((name, String::new()), |(name, word)| (name, format!("@{word}")));
            (format!("{name}.litmus{variant}"), reason.to_owned())
        })
        .collect();
    assert_eq!(found, expected);
    assert!(expected.len() >= 29);
}

/// Returns the ownership transfers in the log of the layer: the numbers of releases and acquires by process,
/// buffer and families.
fn halves(log: &Path) -> BTreeMap<String, (u32, u32)> {
    let mut found: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for line in std::fs::read_to_string(log).unwrap().lines() {
        let (half, transfer) = line.split_once(' ').unwrap();
        let (released, acquired) = found.entry(transfer.to_owned()).or_default();
        assert!(["release", "acquire"].contains(&half), "{line}");
        *(if half == "release" { released } else { acquired }) += 1;
    }
    found
}

//! Counts of the simulated GPU are those of the host.

use std::path::Path;

use serde_json::Value;

use crate::common::{Ran, vk_litmus};

/// Writes the preset of the simulated GPU with another place for counting.
fn counted_by(folder: &Path, counter: &str) -> String {
    let preset = include_str!("../../../runner/presets/sim.toml");
    assert!(preset.contains("classify = \"host\""));
    let path = folder.join(format!("{counter}.toml"));
    let text = preset.replace("classify = \"host\"", &format!("classify = \"{counter}\""));
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn host_and_device_account_for_every_instance_of_the_quick_suite() {
    let folder = tempfile::tempdir().unwrap();
    let lines = |counter: &str| -> Vec<Value> {
        let stress = counted_by(folder.path(), counter);
        let mut command = vk_litmus(["run", "--format", "json", "--device", "sim", "--suite", "quick"]);
        command.args(["--instances", "600", "--seed", "4", "--stress", &stress]).current_dir(folder.path());
        let ran = Ran::run(&mut command);
        assert_ne!(ran.code, 1, "{}", ran.stderr);
        ran.json_lines()
    };
    let (host, both) = (lines("host"), lines("both"));
    assert!(host.len() > 100 && host.len() == both.len());
    let account = |line: &Value| -> Vec<Value> {
        let keys = ["id", "instances", "not_executed", "unresolved", "unexpected", "batches"];
        keys.iter().map(|key| line[key].clone()).collect()
    };
    for (host, both) in host.iter().zip(&both) {
        assert_ne!(both["verdict"], "violates", "{both}");
        // Any other difference would be a crash.
        assert_ne!(both["reason"], "crashed", "{both}");
        // A device cannot count observations of host threads, or outcomes in memory with an owner.
        let by_host = both["counted_by_host"].as_str();
        let expected_reasons = ["host threads report to the host", "its locations are in two buffers"];
        assert!(by_host.is_none_or(|why| expected_reasons.contains(&why)), "{both}");
        if host["verdict"] != "skipped" && host["unresolved"] == 0 && both["unresolved"] == 0 {
            assert_eq!(account(host), account(both));
        }
    }
}

//! Compares the answers about `ci/languages/idioms` with what the languages promise, and with `results/languages`.

use std::process::Command;

use crate::common::installed;

#[test]
fn verdicts_by_language_are_those_of_the_promises() {
    if !installed("python3") {
        return;
    }
    let matrix = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ci/languages/matrix");
    let mut command = Command::new("python3");
    command.args(["-B", matrix, "--check"]).env("VK_LITMUS", env!("CARGO_BIN_EXE_vk-litmus"));
    let ran = command.output().unwrap();
    let text = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && text.contains("rows compared, 0 differences"), "{text}");
}

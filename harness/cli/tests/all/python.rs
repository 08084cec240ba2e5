//! Runs the tests of the Python package.

use std::process::Command;

use crate::common::installed;

#[test]
fn the_package_answers_as_the_program_does() {
    if !installed("python3") {
        return;
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ci/python");
    // Runs without a folder write their results to the current folder.
    let scratch = tempfile::tempdir().unwrap();
    let mut command = Command::new("python3");
    command.args(["-B", "-m", "unittest", "discover", "-v", "-s", folder]).current_dir(&scratch);
    let ran = command.env("VK_LITMUS", env!("CARGO_BIN_EXE_vk-litmus")).output().unwrap();
    let text = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && text.contains("test_race_finds_two_writes"), "{text}");
}

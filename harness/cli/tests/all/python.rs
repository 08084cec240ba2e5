//! The Python package over the program, by its own tests.

use std::process::Command;

use crate::common::installed;

#[test]
fn the_package_answers_as_the_program_does() {
    if !installed("python3") {
        return;
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ci/python");
    let mut command = Command::new("python3");
    command.args(["-B", "-m", "unittest", "-v"]).current_dir(folder);
    let ran = command.env("VK_LITMUS", env!("CARGO_BIN_EXE_vk-litmus")).output().unwrap();
    let text = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && text.contains("test_race_finds_two_writes"), "{text}");
}

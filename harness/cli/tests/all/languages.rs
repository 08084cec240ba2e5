//! Compares the answers about `ci/languages/idioms` with what the languages promise, and with `results/languages`.

use std::process::Command;

use crate::common::{Ran, installed, vk_litmus};

/// An order that only the compiler lost is a warning of every command.
#[test]
fn a_lost_order_is_a_warning() {
    if !installed("naga") {
        return;
    }
    let shader =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../ci/languages/idioms/buffer-storage-barrier.wgsl");
    for command in ["race", "check"] {
        let ran = Ran::run(&mut vk_litmus([command, shader, "--grid", "1", "--format", "json"]));
        let line = &ran.json_lines()[0];
        assert_eq!((ran.code, &line["findings"][0]["kind"]), (0, &"lost-order".into()), "{ran:?}");
    }
}

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

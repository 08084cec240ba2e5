//! The program as `ci/test` starts it.

use std::process::Command;

#[test]
fn an_unknown_chore_is_refused_by_name() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let ran = command.arg("tidyy").output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    let message = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(message, "xtask: unknown chore \"tidyy\"; `cargo xtask` lists them\n");
}

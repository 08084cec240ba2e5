//! `bless`: accepts new snapshots, whose diff is then reviewed like code.

use std::path::Path;
use std::process::Command;

use crate::error::ChoreError;

/// Runs every test with insta configured to overwrite snapshots that differ.
pub fn run(root: &Path, _: &[String]) -> Result<(), ChoreError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--workspace", "--no-fail-fast"])
        .current_dir(root)
        .env("INSTA_UPDATE", "always")
        .env("INSTA_FORCE_PASS", "1")
        .status()
        .map_err(ChoreError::Start)?;
    if status.success() { Ok(()) } else { Err(ChoreError::Command(status)) }
}

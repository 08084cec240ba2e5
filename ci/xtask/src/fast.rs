//! `fast`: runs every test except those in `ci/slow-tests`.

use std::path::Path;
use std::process::Command;

use crate::ChoreError;
use crate::tidy::ReadError;

/// The list of slow tests.
pub const SLOW: &str = "ci/slow-tests";

/// Returns the names in a list with their line numbers, from 1; lines that begin with `#` are comments.
pub fn names(list: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = list.lines().map(str::trim).enumerate();
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(index, line)| (index + 1, line))
}

/// Runs every test that is not on the list.
pub fn run(root: &Path) -> Result<(), ChoreError> {
    let path = root.join(SLOW);
    let list = std::fs::read_to_string(&path).map_err(|source| ReadError { path, source })?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--workspace", "--no-fail-fast", "--", "--exact"])
        .args(names(&list).flat_map(|(_, name)| ["--skip", name]))
        .current_dir(root)
        .status()
        .map_err(ChoreError::Start)?;
    if status.success() { Ok(()) } else { Err(ChoreError::Command(status)) }
}

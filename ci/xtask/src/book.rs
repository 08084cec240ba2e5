//! `docs` and `book`: generated pages of the documentation, and the book that mdbook builds from all pages.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use crate::error::ChoreError;

/// Folder of the generated pages.
const REFERENCE: &str = "docs/reference";

/// Writes the pages that the program generates.
pub fn write_reference(root: &Path, _: &[String]) -> Result<(), ChoreError> {
    let mut command = Command::new("cargo");
    command.args(["run", "--quiet", "--package", "vk-litmus", "--", "reference", "--out", REFERENCE]);
    let status = command.current_dir(root).status().map_err(ChoreError::Start)?;
    if status.success() { Ok(()) } else { Err(ChoreError::Command(status)) }
}

/// Builds the book into `target/book`.
pub fn build(root: &Path, _: &[String]) -> Result<(), ChoreError> {
    match Command::new("mdbook").args(["build", "docs"]).current_dir(root).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(ChoreError::Command(status)),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(ChoreError::NoMdbook),
        Err(error) => Err(ChoreError::Start(error)),
    }
}

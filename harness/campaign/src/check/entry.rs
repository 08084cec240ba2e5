//! The line of an entry point before its findings are known.

use std::path::Path;
use std::time::Instant;

use litmus::Race;
use results::wire::{CHECK_SCHEMA, CheckLine};

/// Returns a line with only the race verdict and the time.
pub(super) fn entry_line(
    file: &str,
    entry: &str,
    model: &model::Model,
    race: Race,
    started: Instant,
) -> CheckLine {
    let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or(file);
    CheckLine {
        schema: CHECK_SCHEMA.to_owned(),
        id: format!("{stem}:{entry}"),
        file: file.to_owned(),
        name: entry.to_owned(),
        model: model.name().to_owned(),
        race: race.into(),
        micros: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
        outcomes_listed: Some(false),
        ..CheckLine::default()
    }
}

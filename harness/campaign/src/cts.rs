//! Selects tests by the names of the Vulkan CTS.

use globset::{Glob, GlobSet};
use litmus::cts::{self, CtsCase, NAME_PREFIX};

use crate::Failure;
use crate::source::{SourceOrigin, TestSource};

/// Returns the tests whose names match a full name or a glob over full names. `*` crosses dots, and
/// [`NAME_PREFIX`] is optional.
///
/// # Errors
/// If no name matches, or the glob is malformed.
pub fn find_by_name(pattern: &str) -> Result<Vec<TestSource>, Failure> {
    let bare = pattern.strip_prefix(NAME_PREFIX).unwrap_or(pattern);
    let matcher = |glob: &str| {
        let set = |glob| GlobSet::builder().add(glob).build();
        let to_failure = |error| Failure::input_message(format!("--cts-name: {error}"));
        Glob::new(glob).and_then(set).map_err(to_failure)
    };
    let (glob, full_glob) = (matcher(bare)?, matcher(pattern)?);
    let found: Vec<TestSource> = cts::all_cases()
        .filter(|case| {
            let name = case.cts_name();
            name == bare || glob.is_match(&name) || full_glob.is_match(format!("{NAME_PREFIX}{name}"))
        })
        .map(|case| test_source(&case, true))
        .collect();
    let layout =
        cts::EXCLUDED_GROUPS.iter().find(|(names, ..)| bare.starts_with(names.trim_end_matches('*')));
    if let (true, Some((names, _, why))) = (found.is_empty(), layout) {
        return Err(Failure::input_message(format!(
            "--cts-name: {names} cannot be expressed as a litmus test: {why}"
        )));
    }
    if found.is_empty() {
        return Err(Failure::input_message(format!(
            "--cts-name: no CTS test name matches `{pattern}`: `vk-litmus tests --cts` lists the names"
        )));
    }
    Ok(found)
}

/// Returns each chosen program once.
pub fn select_programs(is_selected: impl Fn(&str) -> bool) -> Vec<TestSource> {
    let mut found: Vec<TestSource> = cts::all_cases()
        .filter(|case| is_selected(&case.test_id()))
        .map(|case| test_source(&case, false))
        .collect();
    found.sort_by(|left, right| left.id.cmp(&right.id));
    found.dedup_by(|left, right| left.id == right.id);
    found
}

/// Lists each CTS name with the embedded test and its variant.
pub fn list_names() -> String {
    cts::all_cases().map(|case| format!("{NAME_PREFIX}{case} {}\n", embedded_id(&case))).collect()
}

/// Returns the embedded id of a CTS case, with its variant.
pub fn embedded_id(case: &CtsCase) -> String {
    let (id, variant) = (case.test_id(), case.variant());
    if variant.is_empty() { id } else { format!("{id}@{variant}") }
}

fn test_source(case: &CtsCase, with_variant: bool) -> TestSource {
    let id = if with_variant { embedded_id(case) } else { case.test_id() };
    let variant = if with_variant { case.variant() } else { String::new() };
    let origin = SourceOrigin::Embedded(case.test_id());
    TestSource {
        file: case.test_id(),
        argument: id.clone(),
        id,
        variant,
        origin,
        text: Ok(case.litmus_text()),
    }
}

//! Applies a suggested fix to the source of a test.

use model::{Explanation, FixSearchResult, InstructionChange};

/// Returns the source of a test with a fix applied; `None` if no fix was found.
///
/// It prefers the fix that forbids the outcome to the fix of a race. The expectations are removed, because
/// they belong to the original program.
pub fn apply_fix(source: &str, explanation: &Explanation) -> Option<String> {
    let changes_of = |mend: &FixSearchResult| match mend {
        FixSearchResult::Found { changes, .. } => Some(changes.clone()),
        FixSearchResult::Impossible | FixSearchResult::LimitReached => None,
    };
    let forbids = explanation.forbidding_fix.as_ref().and_then(changes_of);
    let mut changes =
        forbids.or_else(|| explanation.found_race.as_ref().and_then(|raced| changes_of(&raced.fix)))?;
    changes.sort_by_key(|change| change.span.offset);
    let mut text = source.to_owned();
    for change in changes.iter().rev() {
        replace_instruction(&mut text, change)?;
    }
    let mut in_header = true;
    let lines = text.split_inclusive('\n').filter(|line| {
        in_header &= !line.trim_start().starts_with('{');
        !(in_header && line.trim_start().starts_with("expect:"))
    });
    Some(lines.collect())
}

/// Replaces an instruction; later columns keep their positions if the blanks suffice.
fn replace_instruction(text: &mut String, change: &InstructionChange) -> Option<()> {
    let start = change.span.offset as usize;
    let end = start + change.span.length as usize;
    let before = text.get(start..end)?.chars().count();
    let room = text[end..].bytes().take_while(|byte| *byte == b' ').count().saturating_sub(1);
    let grown = change.after.chars().count().saturating_sub(before);
    let shrunk = before.saturating_sub(change.after.chars().count());
    let after = format!("{}{}", change.after, " ".repeat(shrunk));
    text.replace_range(start..end + grown.min(room), &after);
    Some(())
}

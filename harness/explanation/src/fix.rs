//! Applies a suggested fix to the source of a test.

use model::{Explanation, InstructionChange, Mend};

/// Returns the source of a test with a fix applied; `None` if no fix was found.
///
/// It prefers the fix that forbids the outcome to the fix of a race. The expectations are removed, because
/// they belong to the original program.
pub fn fixed(source: &str, explanation: &Explanation) -> Option<String> {
    let found = |mend: &Mend| match mend {
        Mend::Found { changes, .. } => Some(changes.clone()),
        Mend::None | Mend::Cut => None,
    };
    let forbids = explanation.forbidding_fix.as_ref().and_then(found);
    let mut changes =
        forbids.or_else(|| explanation.race_found.as_ref().and_then(|raced| found(&raced.fix)))?;
    changes.sort_by_key(|change| change.span.offset);
    let mut text = source.to_owned();
    for change in changes.iter().rev() {
        replace(&mut text, change)?;
    }
    let mut in_header = true;
    let lines = text.split_inclusive('\n').filter(|line| {
        in_header &= !line.trim_start().starts_with('{');
        !(in_header && line.trim_start().starts_with("expect:"))
    });
    Some(lines.collect())
}

/// Puts an instruction in the place of another; columns stay where they are as long as there is room.
fn replace(text: &mut String, change: &InstructionChange) -> Option<()> {
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

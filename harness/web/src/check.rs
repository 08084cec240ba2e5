//! The prediction of a model, as `check` publishes it.

use results::wire::{PlaygroundAnswer, PlaygroundQuestion, PlaygroundWarning, RejectedLine};
use verdicts::{CheckError, CheckNote, TestQuestion, check_test, name_without_chains};

use crate::question::{FILE, ParsedQuestion, mistake_at, mistake_without_position, shipped_model};

/// Predicts the outcomes of a test.
pub fn check(request: &PlaygroundQuestion) -> Result<PlaygroundAnswer, Vec<RejectedLine>> {
    let ParsedQuestion { test, model, budget } = &ParsedQuestion::parse(request)?;
    // Queries marked NOCHAINS are about another model.
    let chainless_model = match &test.khronos {
        Some(_) => name_without_chains(model.name()).and_then(|name| shipped_model(name).ok()),
        None => None,
    };
    let question = TestQuestion {
        test,
        text: &request.text,
        id: &test.name,
        file: FILE,
        model,
        nochains_model: chainless_model.as_deref(),
        unroll: None,
        progress: None,
        budget: *budget,
    };
    let answer = check_test(&question).map_err(|error: CheckError| match error.labelled_span() {
        Some((span, _)) => mistake_at(error.to_string(), span),
        None => mistake_without_position(error.to_string()),
    })?;
    // The line contains the notes without a position.
    let warning = |note: CheckNote| {
        let (line, column) = note.position?;
        Some(PlaygroundWarning { line, column, message: note.message })
    };
    let warnings = answer.notes.into_iter().filter_map(warning).collect();
    Ok(PlaygroundAnswer::Check { line: Box::new(answer.line), warnings })
}

//! The prediction of a model, as `check` publishes it.

use answers::{CheckError, CheckNote, TestQuestion, check_test, name_without_chains};
use results::wire::{PlaygroundAnswer, PlaygroundQuestion, PlaygroundWarning, RejectedLine};

use crate::question::{FILE, Question, placed, shipped_model, whole};

/// Predicts the outcomes of a test.
pub fn check(asked: &PlaygroundQuestion) -> Result<PlaygroundAnswer, Vec<RejectedLine>> {
    let Question { test, model, budget } = &Question::read(asked)?;
    // Queries marked NOCHAINS are about another model.
    let twin = match &test.khronos {
        Some(_) => name_without_chains(model.name()).and_then(|name| shipped_model(name).ok()),
        None => None,
    };
    let question = TestQuestion {
        test,
        text: &asked.text,
        id: &test.name,
        file: FILE,
        model,
        without_chains: twin.as_deref(),
        unroll: None,
        progress: None,
        budget: *budget,
    };
    let answer = check_test(&question).map_err(|error: CheckError| match error.place() {
        Some((span, _)) => placed(error.to_string(), span),
        None => whole(error.to_string()),
    })?;
    // The line contains the notes without a position.
    let warning = |note: CheckNote| {
        let (line, column) = note.position?;
        Some(PlaygroundWarning { line, column, message: note.message })
    };
    let warnings = answer.notes.into_iter().filter_map(warning).collect();
    Ok(PlaygroundAnswer::Check { line: Box::new(answer.line), warnings })
}

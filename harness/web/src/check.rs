//! The prediction of a model, as `check` publishes it.

use litmus::{Race, Test};
use model::{Options, answer_queries, predict, predict_growing};
use results::wire::{
    CheckContext, CheckLine, PlaygroundAnswer, PlaygroundQuestion, PlaygroundWarning, Query, RaceWord,
    RejectedLine,
};

use crate::question::{FILE, Question, refused};

/// Predicts the outcomes of a test.
pub fn check(asked: &PlaygroundQuestion) -> Result<PlaygroundAnswer, Vec<RejectedLine>> {
    let question = Question::read(asked)?;
    let Question { test, model, budget } = &question;
    let options = Options { budget: *budget, unroll: 1 };
    let prediction = predict_growing(test, model, &options).map_err(refused)?;
    let options = Options { unroll: prediction.bound, ..options };
    let outside = match (&test.filter, prediction.race) {
        (Some(_), Race::Free) => {
            let unfiltered = Test { filter: None, ..test.clone() };
            predict(&unfiltered, model, &options).map_err(refused)?.is_undefined()
        }
        _ => false,
    };
    let answers = answer_queries(test, model, None, &options).map_err(refused)?;
    let text = test.question.as_ref().map(|question| question.to_text(test)).unwrap_or_default();
    let context = CheckContext { id: &test.name, file: FILE, question: &text, micros: 0 };
    let mut line = CheckLine::new(test, &prediction, context);
    let decided = prediction.race != Race::Unknown || prediction.truncated_runs > 0;
    if decided && !model.has_race_condition(test).map_err(refused)? {
        line.race = RaceWord::NotDefined;
    }
    line.race_outside_filter = outside;
    for (query, holds) in test.khronos.iter().flat_map(|khronos| &khronos.queries).zip(answers) {
        line.queries.push(Query { text: query.text.clone(), holds, expected: Some(true) });
    }
    let warnings = litmus::text_warnings(test, &asked.text)
        .into_iter()
        .map(|warning| PlaygroundWarning {
            line: warning.span.line,
            column: warning.span.column,
            message: warning.message,
        })
        .collect();
    Ok(PlaygroundAnswer::Check { line: Box::new(line), warnings })
}

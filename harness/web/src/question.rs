//! A question of a request: the parsed test, its model and its limit.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use litmus::{ParseErrors, Span, Test};
use model::cat::{CatError, CatErrors};
use model::{Budget, Model, PredictError};
use results::wire::{PlaygroundQuestion, RejectedLine};

/// The name of the text in messages.
pub const FILE: &str = "test.litmus";

/// The name of a model of the request in messages.
pub const MODEL_FILE: &str = "model.cat";

/// The limit on steps without one in the request: some seconds for the largest tests.
const DEFAULT_STEPS: u64 = 500_000;

/// A test and its model.
pub struct ParsedQuestion {
    pub test: Test,
    pub model: Arc<Model>,
    pub budget: Budget<'static>,
}

impl ParsedQuestion {
    /// Parses the test and loads the model.
    ///
    /// # Errors
    /// Every mistake in the text, or one about the model.
    pub fn parse(request: &PlaygroundQuestion) -> Result<ParsedQuestion, Vec<RejectedLine>> {
        let test = litmus::parse(&request.text, FILE).map_err(|errors| parse_mistakes(&errors))?;
        let name = request.model.as_deref().unwrap_or(Model::default_for_test(&test));
        let model = match &request.cat {
            Some(text) => Arc::new(
                Model::from_text(MODEL_FILE, text, &|_| None).map_err(|errors| cat_mistakes(&errors))?,
            ),
            None => shipped_model(name)?,
        };
        if !model.supports_dialect(test.dialect) {
            return Err(mistake_without_position(format!(
                "the model `{}` does not judge tests of this dialect",
                model.name()
            )));
        }
        Ok(ParsedQuestion { test, model, budget: Budget::from_steps(request.steps.unwrap_or(DEFAULT_STEPS)) })
    }
}

/// Returns a shipped model, which later requests share: a page checks after each change of the text.
///
/// # Errors
/// The model is unknown.
pub fn shipped_model(name: &str) -> Result<Arc<Model>, Vec<RejectedLine>> {
    static LOADED: LazyLock<Mutex<HashMap<String, Arc<Model>>>> = LazyLock::new(Mutex::default);
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(model) = loaded.get(name) {
        return Ok(Arc::clone(model));
    }
    let model = Model::shipped(name)
        .ok_or_else(|| {
            mistake_without_position(format!("unknown model `{name}`: `catalogue` lists the models"))
        })?
        .map_err(|error| mistake_without_position(error.to_string()))?;
    Ok(Arc::clone(loaded.entry(name.to_owned()).or_insert(Arc::new(model))))
}

/// Returns every mistake of a text with its position.
pub fn parse_mistakes(errors: &ParseErrors) -> Vec<RejectedLine> {
    let messages = errors.messages();
    if messages.is_empty() {
        return mistake_without_position(errors.to_string());
    }
    let line = |message: litmus::error::Message| RejectedLine {
        file: FILE.to_owned(),
        error: message.text,
        line: message.line,
        column: message.column,
    };
    messages.into_iter().map(line).collect()
}

/// Returns every mistake of a model with its position.
fn cat_mistakes(errors: &CatErrors) -> Vec<RejectedLine> {
    let line = |error: &CatError| RejectedLine {
        file: error.file_name().to_owned(),
        error: error.to_string(),
        line: error.span.line.max(1),
        column: error.span.column.max(1),
    };
    errors.errors.iter().map(line).collect()
}

pub fn mistake_without_position(error: String) -> Vec<RejectedLine> {
    vec![RejectedLine { file: FILE.to_owned(), error, line: 1, column: 1 }]
}

/// Returns a mistake at a position.
pub fn mistake_at(error: String, span: Span) -> Vec<RejectedLine> {
    vec![RejectedLine { file: FILE.to_owned(), error, line: span.line.max(1), column: span.column.max(1) }]
}

/// Returns the mistake that a model found.
pub fn model_mistake(error: PredictError) -> Vec<RejectedLine> {
    match error {
        PredictError::TwoStorageClasses { span, .. } => mistake_at(error.to_string(), span),
        error => mistake_without_position(error.to_string()),
    }
}

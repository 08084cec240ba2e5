//! The answer of a model for a test as one published line: outcomes, races, queries and termination.

use litmus::{Prediction, Race, Span, Test, text_warnings};
use model::progress::{
    DecidingMemory, Fairness, PROGRESS_GUARANTEES, ProgressError, ProgressLimits, ProgressModel, Termination,
    check_termination,
};
use model::{Budget, GrowingPrediction, Model, PredictError, PredictOptions, answer_queries, predict};
use results::answer::{
    Answer, answer_question, expected_race, is_race_unexpected, is_uninitialised_unexpected,
};
use results::wire::{CheckContext, CheckLine, ProgressAnswer, Query, RaceWord, ScheduleStep};

use crate::command_outcome::CommandOutcome;
use litmus::similar::most_similar;

/// A test with the model and limits to check it with.
#[derive(Clone, Copy, Debug)]
pub struct TestQuestion<'a> {
    pub test: &'a Test,
    /// The text that the test was parsed from.
    pub text: &'a str,
    pub id: &'a str,
    pub file: &'a str,
    pub model: &'a Model,
    /// The model that answers queries marked NOCHAINS, if one is loaded.
    pub nochains_model: Option<&'a Model>,
    /// The bound of loops [default: as few iterations as needed].
    pub unroll: Option<u32>,
    /// The progress model under which termination is decided, if requested.
    pub progress: Option<(&'a ProgressModel, Fairness)>,
    /// The limit of the search.
    pub budget: Budget<'a>,
}

/// The answer to a [`TestQuestion`].
#[derive(Clone, Debug)]
pub struct TestAnswer {
    /// The published line; its time is 0.
    pub line: CheckLine,
    /// Remarks on the text and on the answer, in the order in which they are printed.
    pub notes: Vec<CheckNote>,
    /// The effect on the exit code.
    pub outcome: CommandOutcome,
}

/// A remark on a test or its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckNote {
    /// The line and column in the text, from 1, if the remark concerns a part of it.
    pub position: Option<(u32, u32)>,
    /// True if the remark does not change the exit code.
    pub is_warning: bool,
    /// The remark.
    pub message: String,
}

impl CheckNote {
    /// Formats the remark with its file and position.
    pub fn format_in_file(&self, file: &str) -> String {
        let position = self.position.map_or(String::new(), |(line, column)| format!(":{line}:{column}"));
        let warning = if self.is_warning { "warning: " } else { "" };
        format!("{file}{position}: {warning}{}", self.message)
    }
}

/// The reason why a test has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    #[error("unknown model `{name}`{}: expected {expected}", similar.map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default())]
    UnknownModel { name: String, similar: Option<&'static str>, expected: &'static str, span: Span },
    /// The header has a claim about the condition, but the test has no condition.
    #[error("an expectation for the test's condition, but the test has no condition")]
    NoQuestion { span: Span },
    #[error("the model does not support this dialect")]
    Dialect,
    /// The model has no prediction.
    #[error(transparent)]
    Predict(#[from] PredictError),
    /// Termination was not decided.
    #[error(transparent)]
    Progress(#[from] ProgressError),
}

impl CheckError {
    /// Returns true if the test is valid, but larger than the engine supports.
    pub fn is_limit_reached(&self) -> bool {
        matches!(self, CheckError::Predict(error) if error.is_limit())
    }

    /// Returns the part of the text that has the error, and a label for it.
    pub fn labelled_span(&self) -> Option<(Span, &'static str)> {
        match self {
            CheckError::UnknownModel { span, .. } | CheckError::NoQuestion { span } => {
                Some((*span, "an assertion that is not checked"))
            }
            CheckError::Predict(PredictError::TwoStorageClasses { span, .. }) => {
                Some((*span, "through a storage class other than before"))
            }
            CheckError::Dialect | CheckError::Predict(_) | CheckError::Progress(_) => None,
        }
    }
}

/// Returns the variant of a shipped model for devices without availability and visibility chains.
pub fn name_without_chains(name: &str) -> Option<&'static str> {
    let mut known = Model::shipped_models().iter().map(|(known, _)| *known);
    known.find(|known| known.strip_suffix("-nochains").is_some_and(|base| base == name))
}

/// Checks the claims of the header, and compiles the models for the features of the test. Later tests reuse
/// the compiled models.
pub fn prepare_test(question: &TestQuestion<'_>) -> Result<(), CheckError> {
    let TestQuestion { test, model, .. } = *question;
    if !model.supports_dialect(test.dialect) {
        return Err(CheckError::Dialect);
    }
    check_claims(test, model)?;
    model.prepare(test)?;
    let has_nochains =
        test.khronos.as_ref().is_some_and(|khronos| khronos.queries.iter().any(|query| query.without_chains));
    if let Some(nochains) = question.nochains_model.filter(|_| has_nochains) {
        nochains.prepare(test)?;
    }
    Ok(())
}

/// Predicts a test under a model.
///
/// # Errors
/// If a claim of the header cannot be checked, or the model has no prediction for the test.
pub fn check_test(question: &TestQuestion<'_>) -> Result<TestAnswer, CheckError> {
    prepare_test(question)?;
    let TestQuestion { test, model, nochains_model, budget, .. } = *question;
    let options = PredictOptions { budget, unroll: 1 };
    // A program with a data race is undefined, so its termination is not decided.
    let decide_termination = |prediction: &Prediction| match question.progress {
        Some((progress_model, fairness)) if !prediction.is_undefined() => {
            let limits = ProgressLimits::with_budget(budget);
            check_termination(test, model, progress_model, fairness, &limits).map(Some)
        }
        _ => Ok(None),
    };
    let (prediction, progress) = match question.unroll {
        Some(unroll) => {
            let prediction = predict(test, model, &PredictOptions { unroll, ..options })?;
            let progress = decide_termination(&prediction)?;
            (prediction, progress)
        }
        None => {
            let start = GrowingPrediction::start(test, model, &options)?;
            // Termination does not depend on the loop bound, whose growth may take the rest of the budget.
            let progress = decide_termination(start.prediction())?;
            let prediction = start.deepen();
            let is_undefined = prediction.is_undefined();
            (prediction, progress.filter(|_| !is_undefined))
        }
    };
    let options = PredictOptions { unroll: prediction.bound, ..options };
    // Devices do not apply the filter. `run` reports a test as undefined if executions outside the filter
    // race.
    let races_outside = match (&test.filter, prediction.race) {
        (Some(_), Race::Free) => {
            let unfiltered = Test { filter: None, ..test.clone() };
            predict(&unfiltered, model, &options)?.is_undefined()
        }
        _ => false,
    };
    // The queries of a `.test` file get the rest of the budget.
    let answers = answer_queries(test, model, nochains_model, &options)?;
    let condition = test.question.as_ref().map(|question| question.to_text(test)).unwrap_or_default();
    let context = CheckContext { id: question.id, file: question.file, question: &condition, micros: 0 };
    let mut line = CheckLine::new(test, &prediction, context);
    // An answer after the limit is not decided; one within a loop bound is.
    let is_decided = prediction.race != Race::Unknown || prediction.truncated_runs > 0;
    if is_decided && !model.has_race_condition(test)? {
        line.race = RaceWord::NotDefined;
    }
    line.race_outside_filter = races_outside;
    let mut answer = TestAnswer { line, notes: Vec::new(), outcome: CommandOutcome::Success };
    answer.add_text_warnings(question);
    answer.add_limit_warnings(&prediction);
    answer.check_expectation(test, &prediction, &condition, is_decided);
    answer.add_queries(test, answers);
    if let Some((progress_model, fairness)) = question.progress {
        answer.add_termination(question, progress_model, fairness, progress);
    }
    answer.add_difference_notes();
    Ok(answer)
}

impl TestAnswer {
    /// Adds a remark with its effect on the exit code.
    fn add_outcome(&mut self, outcome: CommandOutcome, message: String) {
        self.outcome.escalate_to(outcome);
        self.notes.push(CheckNote { position: None, is_warning: false, message });
    }

    /// Adds a remark that does not change the exit code.
    fn add_warning(&mut self, position: Option<(u32, u32)>, message: String) {
        self.notes.push(CheckNote { position, is_warning: true, message });
    }

    /// Adds the warnings about the text.
    fn add_text_warnings(&mut self, question: &TestQuestion<'_>) {
        for warning in text_warnings(question.test, question.text) {
            self.add_warning(Some((warning.span.line, warning.span.column)), warning.message);
        }
    }

    /// Warns about truncated runs, and about a search that ended early.
    fn add_limit_warnings(&mut self, prediction: &Prediction) {
        if prediction.truncated_runs > 0 {
            let (cut, runs, bound) = (prediction.truncated_runs, prediction.runs, prediction.bound);
            self.add_warning(
                None,
                format!("{cut} of {runs} runs were cut off at the bound (--unroll {bound})"),
            );
        } else if prediction.race == Race::Unknown {
            self.add_warning(None, format!("no answer under {} within the time limit", prediction.model));
        }
    }

    /// Compares the answer with the expectations of the test.
    fn check_expectation(&mut self, test: &Test, prediction: &Prediction, condition: &str, is_decided: bool) {
        let model = &prediction.model;
        let claim = answer_question(test, prediction).filter(|answer| answer.expected.is_some());
        let no_execution = self.line.no_execution;
        let is_known = is_decided && !no_execution;
        let is_unanswered = claim.is_some_and(|answer| answer.holds.is_none() || !is_known)
            || (prediction.race == Race::Unknown || no_execution) && expected_race(test, model).is_some();
        if is_unanswered {
            let message = format!("the expectation under {model} could not be checked");
            self.add_outcome(CommandOutcome::Environment, message);
        }
        if is_known && claim.is_some_and(Answer::is_unexpected) {
            let message = format!("`{condition}` differs from the expectation under {model}");
            self.add_outcome(CommandOutcome::RuleBroken, message);
        }
        if no_execution {
            self.add_outcome(
                CommandOutcome::Environment,
                format!(
                    "no execution is consistent under {model}, although every run of the program \
                     terminates: the model or the test is wrong; compare with another `--model`, and report \
                     it if `vk-litmus models` lists the model"
                ),
            );
        } else {
            self.line.differences = list_surprises(test, prediction);
        }
    }

    /// Adds the answers to the queries of a `.test` file, each of which is expected to hold.
    fn add_queries(&mut self, test: &Test, answers: Vec<Option<bool>>) {
        let model = self.line.model.clone();
        for (query, holds) in test.khronos.iter().flat_map(|khronos| &khronos.queries).zip(answers) {
            let text = &query.text;
            match holds {
                Some(true) => {}
                None => {
                    self.add_outcome(
                        CommandOutcome::Environment,
                        format!("`{text}` has no answer under {model}"),
                    );
                }
                Some(false) => {
                    self.add_outcome(
                        CommandOutcome::RuleBroken,
                        format!("`{text}` does not hold under {model}"),
                    );
                }
            }
            self.line.queries.push(Query { text: text.clone(), holds, expected: Some(true) });
        }
    }

    /// Adds the answer about termination.
    fn add_termination(
        &mut self,
        question: &TestQuestion<'_>,
        model: &ProgressModel,
        fairness: Fairness,
        termination: Option<Termination>,
    ) {
        let answer = progress_answer(question, model, fairness, termination);
        if answer.terminates.is_none() {
            let why = answer.why.as_deref().unwrap_or_default();
            let message = format!("termination under {model} is unknown: {why}");
            match answer.expected {
                Some(_) => self.add_outcome(CommandOutcome::Environment, message),
                None => self.add_warning(None, message),
            }
        } else if answer.expected.is_some_and(|expected| answer.terminates != Some(expected)) {
            self.line.differences.push(format!("termination under {model} differs from the expectation"));
        }
        self.line.progress = Some(answer);
    }

    /// Reports the differences from the expectations other than that of the condition.
    fn add_difference_notes(&mut self) {
        for difference in self.line.differences.clone() {
            self.add_outcome(CommandOutcome::RuleBroken, difference);
        }
    }
}

/// Checks that each claim of the header names a known model, and that the test has a condition.
fn check_claims(test: &Test, model: &Model) -> Result<(), CheckError> {
    let unknown_model = |name: &str, known: Vec<&'static str>, expected, span| CheckError::UnknownModel {
        name: name.to_owned(),
        similar: most_similar(name, known),
        expected,
        span,
    };
    let models = || Model::shipped_models().iter().map(|(name, _)| *name);
    for claim in &test.metadata.expectations {
        if claim.model != model.name() && !models().any(|known| known == claim.model) {
            let expected = "a model listed by `vk-litmus models`, or the name \
                 of the cat file given with `--model`";
            return Err(unknown_model(&claim.model, models().collect(), expected, claim.span));
        }
        if test.question.is_none() {
            return Err(CheckError::NoQuestion { span: claim.span });
        }
    }
    let guarantees = || PROGRESS_GUARANTEES.iter().map(|(name, _)| *name);
    for claim in &test.metadata.terminations {
        let is_unknown = |name: &&String| !guarantees().any(|known| known == name.as_str());
        if let Some(name) = claim.models.iter().find(is_unknown) {
            return Err(unknown_model(name, guarantees().collect(), "a progress model", claim.span));
        }
    }
    Ok(())
}

/// Returns a sentence for each difference from the expected races and uninitialized reads.
fn list_surprises(test: &Test, prediction: &Prediction) -> Vec<String> {
    let model = &prediction.model;
    let mut differences = Vec::new();
    if is_race_unexpected(test, prediction) {
        let expected = expected_race(test, model).map_or("", race_name);
        let found = race_name(prediction.race);
        differences.push(format!("{found} under {model}, but the test expects {expected}"));
    }
    if is_uninitialised_unexpected(test, prediction) {
        let found = if prediction.uninitialised_read == Some(true) { "an" } else { "no" };
        differences
            .push(format!("{found} uninitialised read under {model}, which differs from the expectation"));
    }
    differences
}

/// Converts a termination result to its published form; `None` is the result of a program with a data race.
fn progress_answer(
    question: &TestQuestion<'_>,
    model: &ProgressModel,
    fairness: Fairness,
    termination: Option<Termination>,
) -> ProgressAnswer {
    let TestQuestion { test, text, .. } = *question;
    let termination = termination.unwrap_or_else(|| Termination {
        memory: DecidingMemory::Axioms,
        terminates: None,
        details: Some("the program races: its behaviour is undefined".to_owned()),
        schedule: Vec::new(),
    });
    let schedule = termination
        .schedule
        .iter()
        .filter_map(|step| {
            let thread = test.thread(step.thread);
            let span = thread.instructions.get(usize::from(step.instruction))?.span;
            let (from, to) = (span.offset as usize, span.offset as usize + span.length as usize);
            Some(ScheduleStep {
                thread: format!("P{}", thread.number),
                line: span.line,
                instruction: text.get(from..to).unwrap_or_default().to_owned(),
                read: step.read.map(|value| value.0),
                written: step.written.map(|value| value.0),
                repeats: step.repeats,
            })
        })
        .collect();
    let name = model.to_string();
    let expected_models = test.metadata.terminating_models(fairness == Fairness::Strong);
    // A test's header can only name models that give every scope level the same guarantee.
    let is_uniform = PROGRESS_GUARANTEES.iter().any(|(known, _)| *known == name);
    ProgressAnswer {
        expected: expected_models.filter(|_| is_uniform).map(|models| models.contains(&name)),
        model: name,
        fairness: fairness.name().to_owned(),
        memory: termination.memory.name().to_owned(),
        terminates: termination.terminates,
        why: termination.details,
        schedule,
    }
}

fn race_name(race: Race) -> &'static str {
    match race {
        Race::Free => "race-free",
        Race::Racy => "racy",
        Race::Unknown => "not known",
    }
}

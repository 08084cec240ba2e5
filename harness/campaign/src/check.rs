//! `check`: a model's answer about a test or a shader as one published line: outcomes, races, queries that
//! fail, and termination.

mod entry;
pub mod kernel;
mod undecided;
mod walked;

use std::time::{Duration, Instant};

use litmus::{Dialect, Prediction, Race, Span, Test};
use model::progress::{
    DecidingMemory, Fairness, PROGRESS_GUARANTEES, ProgressLimits, ProgressModel, Termination,
    check_termination,
};
use model::{Budget, Model, Options, PredictError, answer_queries, predict, predict_growing};
use results::answer::{answer, expected_race, race_surprises, uninitialised_surprises};
use results::wire::{CheckContext, CheckLine, ProgressAnswer, Query, RaceWord, RejectedLine, ScheduleStep};
use runner::RunVariant;

use crate::choice::{self, Chosen};
use crate::kinds::progress::placements;
use crate::patience::patience;
use crate::similar::similar;
use crate::source::{Loaded, Rejected, TestSource};
use crate::{CommandOutcome, Failure};

pub use litmus::{TextWarning, text_warnings};

/// The result of checking one source.
#[derive(Debug)]
pub enum Checked {
    /// The model's answer, with its warnings and its effect on the exit code.
    Answered(Box<CheckLine>, Vec<String>, CommandOutcome),
    /// The source is not a test, or is one that the model cannot judge.
    Rejected(Rejected),
}

impl Checked {
    /// Returns true if the shader has a race or another finding.
    fn has_findings(&self) -> bool {
        matches!(self, Checked::Answered(line, ..) if line.findings.as_ref().is_some_and(|all| !all.is_empty()))
    }

    /// Returns true if the model could not decide about races.
    fn is_unknown(&self) -> bool {
        matches!(self, Checked::Answered(line, ..) if line.race == RaceWord::Unknown)
    }
}

/// The models of a `check`: the one given by the user, or the defaults ([`Model::default_for_test`]).
#[derive(Debug)]
pub struct CheckModels {
    /// The model of `--model`.
    pub asked: Option<Chosen>,
    /// The loaded default models, if there is no `--model`.
    defaults: Vec<Chosen>,
    /// The variant of the loaded model for queries marked NOCHAINS. None if the model has no such variant or
    /// is one.
    without_chains: Option<Chosen>,
}

impl CheckModels {
    /// Loads the model with this name, or the defaults.
    ///
    /// # Errors
    /// If there is no such model.
    pub fn load(asked: Option<&str>) -> Result<CheckModels, Failure> {
        let without_chains =
            |chosen: &Chosen| choice::without_chains(&chosen.argument).map(choice::load).transpose();
        if let Some(asked) = asked {
            let chosen = choice::load(asked)?;
            let without_chains = without_chains(&chosen)?;
            return Ok(CheckModels { asked: Some(chosen), defaults: Vec::new(), without_chains });
        }
        let defaults = Model::DEFAULTS.into_iter().map(choice::load).collect::<Result<Vec<_>, _>>()?;
        let vulkan = defaults.iter().find(|chosen| chosen.argument == Model::default_for(Dialect::Vulkan));
        let without_chains = vulkan.map(without_chains).transpose()?.flatten();
        Ok(CheckModels { asked: None, defaults, without_chains })
    }

    /// Returns the model of `--model`, or the loaded model with the name of a default.
    fn asked_or(&self, default: &str) -> Option<&Chosen> {
        self.asked.as_ref().or_else(|| self.defaults.iter().find(|chosen| chosen.argument == default))
    }

    /// Returns the model that answers queries marked NOCHAINS.
    fn for_nochains<'a>(&'a self, chosen: &'a Chosen) -> Option<&'a Model> {
        if chosen.argument.ends_with("-nochains") {
            return Some(&chosen.model);
        }
        self.without_chains.as_ref().map(|twin| &twin.model)
    }

    /// Returns the model for shaders.
    ///
    /// # Errors
    /// If the loaded model does not judge the Vulkan dialect.
    pub fn for_kernels(&self) -> Result<&Chosen, Failure> {
        match self.asked_or(Model::default_for(Dialect::Vulkan)) {
            Some(chosen) if chosen.model.judges(Dialect::Vulkan) => Ok(chosen),
            _ => Err(Failure::input_message("the model does not support shaders".to_owned())),
        }
    }

    /// Returns the model for a test.
    ///
    /// # Errors
    /// If the loaded model does not judge the dialect of the test.
    pub fn of(&self, loaded: &Loaded) -> Result<&Chosen, Failure> {
        match self.asked_or(Model::default_for_test(&loaded.test)) {
            Some(chosen) if chosen.model.judges(loaded.test.dialect) => Ok(chosen),
            _ => Err(Failure::input_message(format!(
                "{}: the model does not support this dialect",
                loaded.source.file
            ))),
        }
    }
}

/// An error in a test that only its check finds, with its position.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("{message}")]
struct Labelled {
    message: String,
    label: String,
    #[label("{label}")]
    at: (usize, usize),
    #[source_code]
    text: miette::NamedSource<String>,
}

/// An error in the claims of a test's header.
#[derive(Debug, thiserror::Error)]
enum ClaimError {
    /// No model has this name.
    #[error("unknown model `{name}`{}: expected {expected}", similar.map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default())]
    Unknown { name: String, similar: Option<&'static str>, expected: &'static str },
    /// The test has no question.
    #[error("an expectation for the test's condition, but the test has no condition")]
    NoQuestion,
}

/// Checks that a claim of the test names a known model and that the test has a question.
fn check_claim(test: &Test, model: &Model) -> Result<(), (ClaimError, Span)> {
    let unknown = |name: &str, known: Vec<&'static str>, expected| ClaimError::Unknown {
        name: name.to_owned(),
        similar: similar(name, known),
        expected,
    };
    let models = || Model::names().iter().map(|(name, _)| *name);
    for claim in &test.metadata.expectations {
        if claim.model != model.name() && !models().any(|known| known == claim.model) {
            let expected = "a model listed by `vk-litmus models`, or the name \
                 of the cat file given with `--model`";
            return Err((unknown(&claim.model, models().collect(), expected), claim.span));
        }
        if test.question.is_none() {
            return Err((ClaimError::NoQuestion, claim.span));
        }
    }
    let promises = || PROGRESS_GUARANTEES.iter().map(|(name, _)| *name);
    for claim in &test.metadata.terminations {
        if let Some(name) = claim.models.iter().find(|name| !promises().any(|known| known == name.as_str())) {
            return Err((unknown(name, promises().collect(), "a progress model"), claim.span));
        }
    }
    Ok(())
}

/// The options of a check.
#[derive(Clone, Copy, Debug)]
pub struct CheckOptions {
    /// How missing inputs of shaders are supplied.
    pub inputs: frontend::InputMode,
    /// Time limit for one test.
    pub timeout: Duration,
    /// The bound of loops.
    pub unroll: Option<u32>,
    /// The progress model under which termination is checked.
    pub progress: Option<(ProgressModel, Fairness)>,
}

/// Checks one test.
pub fn checked(source: TestSource, models: &CheckModels, asked: CheckOptions) -> Checked {
    let started = Instant::now();
    let file = source.file.clone();
    let loaded = match source.load() {
        Ok(loaded) => loaded,
        Err(rejected) => return Checked::Rejected(rejected),
    };
    // The variant does not change the answer, but an invalid one is an error.
    let variant = &loaded.source.variant;
    if let Some(error) = variant.parse::<RunVariant>().err().filter(|_| placements(variant).is_none()) {
        return Checked::Rejected(Rejected::whole(&loaded.source.argument, error.to_string()));
    }
    let refused = |failure: Failure| {
        let error = failure.report().to_string();
        let line = RejectedLine { file: file.clone(), error, line: 1, column: 1 };
        Checked::Rejected(Rejected { line, failure })
    };
    let chosen = match models.of(&loaded) {
        Ok(chosen) => chosen,
        Err(failure) => return refused(failure),
    };
    let test = &loaded.test;
    let misplaced = |error: String, label: &str, span: Span| {
        let labelled = Labelled {
            message: error.clone(),
            label: label.to_owned(),
            at: (span.offset as usize, span.length as usize),
            text: miette::NamedSource::new(&file, loaded.text.clone()),
        };
        let (line, column) = (span.line, span.column);
        let line = RejectedLine { file: file.clone(), error, line, column };
        Checked::Rejected(Rejected { line, failure: Failure::input(labelled) })
    };
    if let Err((error, span)) = check_claim(test, &chosen.model) {
        return misplaced(error.to_string(), "an assertion that is not checked", span);
    }
    let twin = models.for_nochains(chosen);
    let without_chains =
        test.khronos.as_ref().is_some_and(|khronos| khronos.queries.iter().any(|query| query.without_chains));
    let prepared = chosen.model.prepare(test).and_then(|()| match twin {
        Some(twin) if without_chains => twin.prepare(test),
        _ => Ok(()),
    });
    let asks = prepared.and_then(|()| {
        let stop = patience(asked.timeout.saturating_sub(started.elapsed()));
        let options = Options { budget: Budget::until(&stop), unroll: 1 };
        let since = Instant::now();
        let prediction = match asked.unroll {
            Some(unroll) => predict(test, &chosen.model, &Options { unroll, ..options })?,
            None => predict_growing(test, &chosen.model, &options)?,
        };
        // A device does not apply the filter. This finds the tests that `run` would call undefined because of
        // it.
        let outside = match (&test.filter, prediction.race) {
            (Some(_), Race::Free) => {
                let unfiltered = Test { filter: None, ..test.clone() };
                let options = Options { unroll: prediction.bound, ..options };
                predict(&unfiltered, &chosen.model, &options)?.is_undefined()
            }
            _ => false,
        };
        // The remaining time is for the queries of a `.test` file.
        let options = Options { unroll: prediction.bound, ..options };
        let answers = answer_queries(test, &chosen.model, twin, &options)?;
        let progress = match &asked.progress {
            // A program with a data race is undefined: its termination has no meaning.
            Some(_) if prediction.is_undefined() => None,
            Some((model, fairness)) => {
                let limits = ProgressLimits::with_budget(options.budget);
                Some(check_termination(test, &chosen.model, model, *fairness, &limits))
            }
            None => None,
        };
        let has_race_condition = chosen.model.has_race_condition(test)?;
        Ok((prediction, has_race_condition, outside, answers, progress, since.elapsed()))
    });
    let (prediction, has_race_condition, outside, answers, progress, took) = match asks {
        Ok(answered) => answered,
        Err(error @ PredictError::TwoStorageClasses { span, .. }) => {
            return misplaced(error.to_string(), "through a storage class other than before", span);
        }
        Err(error) => return refused(Failure::input_message(format!("{file}: {error}"))),
    };
    let question = test.question.as_ref().map(|question| question.to_text(test)).unwrap_or_default();
    let context = CheckContext {
        id: &loaded.source.id,
        file: &file,
        question: &question,
        micros: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
    };

    let mut outcome = CommandOutcome::Success;
    let mut warnings: Vec<String> = text_warnings(test, &loaded.text)
        .iter()
        .map(|warning| {
            let (line, column) = (warning.span.line, warning.span.column);
            format!("{file}:{line}:{column}: warning: {}", warning.message)
        })
        .collect();
    if prediction.truncated_runs > 0 {
        let (cut, runs, bound) = (prediction.truncated_runs, prediction.runs, prediction.bound);
        warnings.push(format!(
            "{file}: warning: {cut} of {runs} runs were cut off at the bound (--unroll {bound})"
        ));
    } else if prediction.race == Race::Unknown {
        warnings.push(format!("{file}: warning: no answer under {} within the time limit", prediction.model));
    }
    // An answer after the deadline counts for nothing; one within a bound of loops does count.
    let known = prediction.race != Race::Unknown || prediction.truncated_runs > 0;
    let claim = answer(test, &prediction).filter(|answer| answer.expected.is_some());
    let mut line = CheckLine::new(test, &prediction, context);
    let known = known && !line.no_execution;
    let unanswered = claim.is_some_and(|answer| answer.holds.is_none() || !known)
        || (prediction.race == Race::Unknown || line.no_execution)
            && expected_race(test, &prediction.model).is_some();
    if unanswered {
        outcome.note(CommandOutcome::Environment);
        warnings.push(format!("{file}: the expectation under {} could not be checked", prediction.model));
    }
    if known && claim.is_some_and(|answer| answer.surprises()) {
        outcome.note(CommandOutcome::RuleBroken);
        warnings
            .push(format!("{file}: `{question}` differs from the expectation under {}", prediction.model));
    }
    if !has_race_condition && (prediction.race != Race::Unknown || prediction.truncated_runs > 0) {
        line.race = RaceWord::NotDefined;
    }
    if line.no_execution {
        outcome.note(CommandOutcome::Environment);
        let model = &prediction.model;
        warnings.push(format!(
            "{file}: no execution is consistent under {model}, although every run of the program \
             terminates: the model or the test is wrong; compare with another `--model`, and report it if \
             `vk-litmus models` lists the model"
        ));
    }
    if !line.no_execution {
        line.differences = list_surprises(test, &prediction);
    }
    line.race_outside_filter = outside;
    for (query, holds) in test.khronos.iter().flat_map(|khronos| &khronos.queries).zip(answers) {
        if holds.is_none() {
            outcome.note(CommandOutcome::Environment);
            let model = &prediction.model;
            warnings.push(format!("{file}: `{}` has no answer under {model}", query.text));
        }
        if holds == Some(false) {
            outcome.note(CommandOutcome::RuleBroken);
            warnings.push(format!("{file}: `{}` does not hold under {}", query.text, prediction.model));
        }
        line.queries.push(Query { text: query.text.clone(), holds, expected: Some(true) });
    }
    let termination = match progress.transpose() {
        Ok(termination) => termination,
        Err(error) => return refused(Failure::input_message(format!("{file}: {error}"))),
    };
    if let Some((model, fairness)) = &asked.progress {
        let answer = progress_answer(&loaded, model, *fairness, termination);
        if answer.terminates.is_none() {
            let why = answer.why.as_deref().unwrap_or_default();
            let mut warning = "warning: ";
            if answer.expected.is_some() {
                outcome.note(CommandOutcome::Environment);
                warning = "";
            }
            warnings.push(format!("{file}: {warning}termination under {model} is unknown: {why}"));
        } else if answer.expected.is_some_and(|expected| answer.terminates != Some(expected)) {
            line.differences.push(format!("termination under {model} differs from the expectation"));
        }
        line.progress = Some(answer);
    }
    if !line.differences.is_empty() {
        outcome.note(CommandOutcome::RuleBroken);
        warnings.extend(line.differences.iter().map(|difference| format!("{file}: {difference}")));
    }
    Checked::Answered(Box::new(line), warnings, outcome)
}

/// Returns a sentence for each difference from the expected races and uninitialised reads.
fn list_surprises(test: &Test, prediction: &Prediction) -> Vec<String> {
    let model = &prediction.model;
    let mut unlike = Vec::new();
    if race_surprises(test, prediction) {
        let expected = expected_race(test, model).map_or("", race_word);
        let found = race_word(prediction.race);
        unlike.push(format!("{found} under {model}, but the test expects {expected}"));
    }
    if uninitialised_surprises(test, prediction) {
        let found = if prediction.uninitialised_read == Some(true) { "an" } else { "no" };
        unlike.push(format!("{found} uninitialised read under {model}, which differs from the expectation"));
    }
    unlike
}

/// Converts a termination result for publication; `None` is a program that races.
fn progress_answer(
    loaded: &Loaded,
    model: &ProgressModel,
    fairness: Fairness,
    termination: Option<Termination>,
) -> ProgressAnswer {
    let test = &loaded.test;
    let termination = termination.unwrap_or_else(|| Termination {
        memory: DecidingMemory::Axioms,
        terminates: None,
        why: Some("the program races: its behaviour is undefined".to_owned()),
        schedule: Vec::new(),
    });
    let text = &loaded.text;
    let schedule = termination
        .schedule
        .iter()
        .filter_map(|turn| {
            let thread = test.thread(turn.thread);
            let span = thread.instructions.get(usize::from(turn.instruction))?.span;
            let (from, to) = (span.offset as usize, span.offset as usize + span.length as usize);
            Some(ScheduleStep {
                thread: format!("P{}", thread.number),
                line: span.line,
                instruction: text.get(from..to).unwrap_or_default().to_owned(),
                read: turn.read.map(|value| value.0),
                written: turn.written.map(|value| value.0),
                repeats: turn.repeats,
            })
        })
        .collect();
    let name = model.to_string();
    let listed = test.metadata.terminates_under(fairness == Fairness::Strong);
    // A test's header can only name models that give every scope level the same guarantee.
    let uniform = PROGRESS_GUARANTEES.iter().any(|(known, _)| *known == name);
    ProgressAnswer {
        expected: listed.filter(|_| uniform).map(|models| models.contains(&name)),
        model: name,
        fairness: fairness.as_str().to_owned(),
        memory: termination.memory.as_str().to_owned(),
        terminates: termination.terminates,
        why: termination.why,
        schedule,
    }
}

fn race_word(race: Race) -> &'static str {
    match race {
        Race::Free => "race-free",
        Race::Racy => "racy",
        Race::Unknown => "not known",
    }
}

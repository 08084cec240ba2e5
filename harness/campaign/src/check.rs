//! `check`: a model's answer about a test or a shader as one published line: outcomes, races, queries that
//! fail, and termination.

mod entry;
pub mod kernel;
mod undecided;
mod walked;

use std::time::{Duration, Instant};

use answers::{TestAnswer, TestQuestion, check_test, prepare_test};
use litmus::Dialect;
use model::progress::{Fairness, ProgressModel};
use model::{Budget, Model};
use results::wire::{CheckLine, RaceWord, RejectedLine};
use runner::RunVariant;

use crate::choice::{self, Chosen};
use crate::kinds::progress::placements;
use crate::patience::patience;
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

    /// Returns true if the shader has no race and no other finding, in the schedules that were tried.
    fn is_clean(&self) -> bool {
        let is_clean = matches!(self, Checked::Answered(line, _, CommandOutcome::Success)
            if matches!(line.race, RaceWord::Free | RaceWord::Unknown));
        is_clean && !self.has_findings()
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
    /// If the model does not exist.
    pub fn load(asked: Option<&str>) -> Result<CheckModels, Failure> {
        if let Some(asked) = asked {
            return Ok(CheckModels::with_model(choice::load(asked)?));
        }
        let defaults = Model::DEFAULTS.into_iter().map(choice::load).collect::<Result<Vec<_>, _>>()?;
        let without_chains = answers::name_without_chains(Model::default_for(Dialect::Vulkan));
        let without_chains = without_chains.map(choice::load).transpose()?;
        Ok(CheckModels { asked: None, defaults, without_chains })
    }

    /// Returns the models of a check by one model.
    pub fn with_model(chosen: Chosen) -> CheckModels {
        let without_chains = answers::name_without_chains(&chosen.argument).and_then(choice::load_shipped);
        CheckModels { asked: Some(chosen), defaults: Vec::new(), without_chains }
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

/// Parses and checks one test; the time limit includes parsing.
pub fn checked(source: TestSource, models: &CheckModels, asked: CheckOptions) -> Checked {
    let started = Instant::now();
    match source.load() {
        Ok(loaded) => {
            let timeout = asked.timeout.saturating_sub(started.elapsed());
            check_loaded(&loaded, models, CheckOptions { timeout, ..asked })
        }
        Err(rejected) => Checked::Rejected(rejected),
    }
}

/// Checks one parsed test.
pub fn check_loaded(loaded: &Loaded, models: &CheckModels, asked: CheckOptions) -> Checked {
    let Loaded { source, text, test } = loaded;
    let file = &source.file;
    // The variant does not change the answer, but an invalid one is an error.
    let variant = &source.variant;
    if let Some(error) = variant.parse::<RunVariant>().err().filter(|_| placements(variant).is_none()) {
        return Checked::Rejected(Rejected::whole(&source.argument, error.to_string()));
    }
    let refused = |failure: Failure| {
        let error = failure.report().to_string();
        let line = RejectedLine { file: file.clone(), error, line: 1, column: 1 };
        Checked::Rejected(Rejected { line, failure })
    };
    let chosen = match models.of(loaded) {
        Ok(chosen) => chosen,
        Err(failure) => return refused(failure),
    };
    let stop = patience(asked.timeout);
    let question = TestQuestion {
        test,
        text,
        id: &source.id,
        file,
        model: &chosen.model,
        nochains_model: models.for_nochains(chosen),
        unroll: asked.unroll,
        progress: asked.progress.as_ref().map(|(model, fairness)| (model, *fairness)),
        budget: Budget::until(&stop),
    };
    let mut since = Instant::now();
    let answered = prepare_test(&question).and_then(|()| {
        // A model is compiled once for many tests, so its time counts for no test.
        since = Instant::now();
        check_test(&question)
    });
    match answered {
        Ok(TestAnswer { mut line, notes, outcome: conclusion }) => {
            line.micros = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
            let notes = notes.iter().map(|note| note.format_in_file(file)).collect();
            Checked::Answered(Box::new(line), notes, conclusion)
        }
        Err(error) => match error.labelled_span() {
            Some((span, label)) => {
                let labelled = Labelled {
                    message: error.to_string(),
                    label: label.to_owned(),
                    at: (span.offset as usize, span.length as usize),
                    text: miette::NamedSource::new(file, text.clone()),
                };
                let (line, column) = (span.line, span.column);
                let line = RejectedLine { file: file.clone(), error: labelled.message.clone(), line, column };
                Checked::Rejected(Rejected { line, failure: Failure::input(labelled) })
            }
            None => refused(Failure::input_message(format!("{file}: {error}"))),
        },
    }
}

//! `check`: a model's answer about a test or a shader as one published line: outcomes, races, queries that
//! fail, and termination.

pub mod kernel;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use litmus::{Dialect, Test};
use model::progress::{Fairness, ProgressModel};
use model::{Budget, Model};
use results::wire::{CheckLine, RejectedLine};
use runner::RunVariant;
use verdicts::{TestAnswer, TestQuestion, check_test, prepare_test};

use crate::kinds::progress::parse_placements;
use crate::models::{self, LoadedModel};
use crate::source::{LoadedTest, RejectedSource, TestSource};
use crate::time_limit::stop_after;
use crate::{CommandOutcome, Failure};

pub use litmus::{TextWarning, text_warnings};

/// The result of checking one source.
#[derive(Debug)]
pub enum CheckResult {
    /// The model's answer, with its warnings and its effect on the exit code.
    Answered(Box<CheckLine>, Vec<String>, CommandOutcome),
    /// The source is not a test, or is one that the model cannot judge.
    Rejected(RejectedSource),
}

/// The models of a `check`: the one given by the user, or the defaults ([`Model::default_for_test`]).
#[derive(Debug)]
pub struct CheckModels {
    /// The model of `--model`.
    pub requested: Option<LoadedModel>,
    /// The default models, used if there is no `--model`.
    defaults: [ShippedModel; Model::DEFAULTS.len()],
    /// The variant of the requested or Vulkan's model for queries marked NOCHAINS. None if the model has no such
    /// variant or is one.
    without_chains: Option<ShippedModel>,
}

/// A shipped model, loaded when a test needs it.
#[derive(Debug)]
struct ShippedModel {
    name: &'static str,
    loaded: OnceLock<Option<LoadedModel>>,
}

impl ShippedModel {
    fn new(name: &'static str) -> ShippedModel {
        ShippedModel { name, loaded: OnceLock::new() }
    }

    fn load(&self) -> Option<&LoadedModel> {
        self.loaded.get_or_init(|| models::load_shipped(self.name)).as_ref()
    }
}

impl CheckModels {
    /// Returns the model with this name, or the defaults.
    ///
    /// # Errors
    /// If the model does not exist.
    pub fn load(name: Option<&str>) -> Result<CheckModels, Failure> {
        Ok(CheckModels::new(name.map(models::load).transpose()?))
    }

    pub fn with_model(chosen: LoadedModel) -> CheckModels {
        CheckModels::new(Some(chosen))
    }

    fn new(requested: Option<LoadedModel>) -> CheckModels {
        let vulkan = Model::default_for_dialect(Dialect::Vulkan);
        let name = requested.as_ref().map_or(vulkan, |chosen| &chosen.argument);
        let without_chains = verdicts::name_without_chains(name).map(ShippedModel::new);
        CheckModels { requested, defaults: Model::DEFAULTS.map(ShippedModel::new), without_chains }
    }

    /// Returns the model of `--model`, or the default of this name.
    fn requested_or_default(&self, default: &str) -> Option<&LoadedModel> {
        match &self.requested {
            Some(chosen) => Some(chosen),
            None => self.defaults.iter().find(|model| model.name == default)?.load(),
        }
    }

    /// Returns the model that answers queries marked NOCHAINS.
    fn model_for_nochains<'a>(&'a self, test: &Test, chosen: &'a LoadedModel) -> Option<&'a Model> {
        if chosen.argument.ends_with("-nochains") {
            return Some(&chosen.model);
        }
        // Only Khronos' tests have such queries.
        self.without_chains.as_ref().filter(|_| test.khronos.is_some())?.load().map(|variant| &variant.model)
    }

    /// Returns the model for shaders.
    ///
    /// # Errors
    /// If the loaded model does not judge the Vulkan dialect.
    pub fn model_for_shaders(&self) -> Result<&LoadedModel, Failure> {
        match self.requested_or_default(Model::default_for_dialect(Dialect::Vulkan)) {
            Some(chosen) if chosen.model.supports_dialect(Dialect::Vulkan) => Ok(chosen),
            _ => Err(Failure::input_message("the model does not support shaders".to_owned())),
        }
    }

    /// Returns the model for a test.
    ///
    /// # Errors
    /// If the loaded model does not judge the dialect of the test.
    pub fn model_for_test(&self, loaded: &LoadedTest) -> Result<&LoadedModel, Failure> {
        match self.requested_or_default(Model::default_for_test(&loaded.test)) {
            Some(chosen) if chosen.model.supports_dialect(loaded.test.dialect) => Ok(chosen),
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
struct LabelledError {
    message: String,
    label: String,
    #[label("{label}")]
    span: (usize, usize),
    #[source_code]
    text: miette::NamedSource<String>,
}

#[derive(Clone, Copy, Debug)]
pub struct CheckOptions {
    /// How missing inputs of shaders are supplied.
    pub inputs: analysis::InputMode,
    /// Time limit for one test.
    pub timeout: Duration,
    /// The bound of loops.
    pub unroll: Option<u32>,
    /// The progress model under which termination is checked.
    pub progress: Option<(ProgressModel, Fairness)>,
}

/// Parses and checks one test; the time limit includes parsing.
pub fn check_source(source: TestSource, models: &CheckModels, options: CheckOptions) -> CheckResult {
    let started = Instant::now();
    match source.load() {
        Ok(loaded) => {
            let timeout = options.timeout.saturating_sub(started.elapsed());
            check_loaded(&loaded, models, CheckOptions { timeout, ..options })
        }
        Err(rejected) => CheckResult::Rejected(rejected),
    }
}

/// Checks one parsed test.
pub fn check_loaded(loaded: &LoadedTest, models: &CheckModels, options: CheckOptions) -> CheckResult {
    let LoadedTest { source, text, test } = loaded;
    let file = &source.file;
    // The variant does not change the answer, but an invalid one is an error.
    let variant = &source.variant;
    if let Some(error) = variant.parse::<RunVariant>().err().filter(|_| parse_placements(variant).is_none()) {
        return CheckResult::Rejected(RejectedSource::without_position(&source.argument, error.to_string()));
    }
    let reject = |failure: Failure| {
        let error = failure.report().to_string();
        let line = RejectedLine { file: file.clone(), error, line: 1, column: 1 };
        CheckResult::Rejected(RejectedSource { line, failure })
    };
    let chosen = match models.model_for_test(loaded) {
        Ok(chosen) => chosen,
        Err(failure) => return reject(failure),
    };
    let stop = stop_after(options.timeout);
    let question = TestQuestion {
        test,
        text,
        id: &source.id,
        file,
        model: &chosen.model,
        nochains_model: models.model_for_nochains(test, chosen),
        unroll: options.unroll,
        progress: options.progress.as_ref().map(|(model, fairness)| (model, *fairness)),
        budget: Budget::until(&stop),
    };
    let mut started = Instant::now();
    let answer = prepare_test(&question).and_then(|()| {
        // A model is compiled once for many tests, so its time counts for no test.
        started = Instant::now();
        check_test(&question)
    });
    match answer {
        Ok(TestAnswer { mut line, notes, outcome: conclusion }) => {
            line.micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
            let notes = notes.iter().map(|note| note.format_in_file(file)).collect();
            CheckResult::Answered(Box::new(line), notes, conclusion)
        }
        Err(error) => match error.labelled_span() {
            Some((span, label)) => {
                let labelled = LabelledError {
                    message: error.to_string(),
                    label: label.to_owned(),
                    span: (span.offset as usize, span.length as usize),
                    text: miette::NamedSource::new(file, text.clone()),
                };
                let (line, column) = (span.line, span.column);
                let line = RejectedLine { file: file.clone(), error: labelled.message.clone(), line, column };
                CheckResult::Rejected(RejectedSource { line, failure: Failure::input(labelled) })
            }
            None if error.is_limit_reached() => {
                let advice = "a smaller `--unroll` has fewer events and paths";
                reject(Failure::environment_message(format!("{file}: {error}; {advice}")))
            }
            None => reject(Failure::input_message(format!("{file}: {error}"))),
        },
    }
}

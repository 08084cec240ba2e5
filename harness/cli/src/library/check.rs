//! A model's answers for litmus tests and shaders.

use std::time::Duration;

use analysis::InputMode;
use campaign::check::{CheckModels, CheckOptions, CheckResult, check_loaded, kernel};
use campaign::{CommandOutcome, Failure};
use model::progress::{Fairness, ProgressModel};
use results::wire::CheckLine;

use super::error::Error;
use super::inputs::ShaderInputs;
use super::model::AxiomaticModel;
use super::shader::ShaderModule;
use super::test::LitmusTest;

/// Predicts the outcomes of litmus tests and shaders under a model, as `vk-litmus check` does.
///
/// ```
/// use std::time::Duration;
/// use vk_litmus::wire::RaceWord;
/// use vk_litmus::{CheckStatus, Checker, LitmusTest, ShaderInputs, ShaderModule};
///
/// let test = LitmusTest::find("mp/MP+rel-acq")?.remove(0)?;
/// let answer = Checker::new()?.unroll(3).progress_model("fair")?.check(&test)?;
/// assert_eq!((answer.line.model.as_str(), answer.status), ("vulkan", CheckStatus::Expected));
/// assert_eq!(answer.line.bound, 3);
/// assert_eq!(answer.line.progress.and_then(|progress| progress.terminates), Some(true));
/// let hasty = Checker::new()?.time_limit(Duration::ZERO);
/// assert_eq!(hasty.check(&test)?.status, CheckStatus::Undecided);
///
/// let test = LitmusTest::find("sb/SB+rlx-rlx")?.remove(0)?;
/// let line = Checker::new()?.check(&test)?.line;
/// let weak = line.outcomes.iter().filter(|outcome| outcome.allowed && outcome.weak).count();
/// assert_eq!((line.outcomes.len(), weak), (4, 1));
///
/// // Every invocation writes element 0.
/// let shader = ShaderModule::from_spirv("race.spvasm", std::fs::read("../../ci/action/race.spvasm")?);
/// for answer in Checker::new()?.check_shader(&shader, &ShaderInputs::new().grid([2, 1, 1])) {
///     assert_eq!(answer?.line.race, RaceWord::Racy);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Checker {
    pub(super) models: CheckModels,
    pub(super) options: CheckOptions,
}

/// The answer of a model for a test or an entry point of a shader.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckAnswer {
    /// Outcomes, race, queries, and for shaders findings, as `check --format json` prints them.
    pub line: CheckLine,
    /// Warnings and differences from expectations in words, each with its file.
    pub notes: Vec<String>,
    /// The comparison of the answer with the expectations.
    pub status: CheckStatus,
}

/// The comparison of an answer with the expectations of its test or shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckStatus {
    /// Every expectation is met, and a shader has no finding.
    Expected,
    /// A query is open because of a limit, a missing input or the model.
    Undecided,
    /// An expectation is not met, or a shader has a finding.
    Unexpected,
}

/// The time limit for each question.
const TIME_LIMIT: Duration = Duration::from_secs(5);

impl Checker {
    /// Creates a checker with the default model of each dialect: `vulkan`, `opencl` or `hsa`.
    ///
    /// # Errors
    /// If a shipped model cannot be loaded.
    pub fn new() -> Result<Checker, Error> {
        let models = CheckModels::load(None).map_err(|failure| Error::for_file("models", failure))?;
        Ok(Checker { models, options: default_limits() })
    }

    /// Creates a checker for one model.
    ///
    /// ```
    /// use vk_litmus::{Checker, LitmusTest, AxiomaticModel};
    ///
    /// // Store buffering: both threads read 0 although both wrote before.
    /// let test = LitmusTest::parse(
    ///     r"VULKAN SB
    /// { x = 0; y = 0; }
    /// P0@sg 0, wg 0, qf 0  | P1@sg 0, wg 1, qf 0  ;
    /// st.atom.dv.sc0 x, 1  | st.atom.dv.sc0 y, 1  ;
    /// ld.atom.dv.sc0 r0, y | ld.atom.dv.sc0 r0, x ;
    /// exists (P0:r0 == 0 /\ P1:r0 == 0)",
    /// )?;
    /// let is_allowed = |model: &str| -> Result<Option<bool>, vk_litmus::Error> {
    ///     let answer = Checker::with_model(AxiomaticModel::named(model)?).check(&test)?;
    ///     Ok(answer.line.queries[0].holds)
    /// };
    /// assert_eq!(is_allowed("vulkan")?, Some(true));
    /// assert_eq!(is_allowed("sc")?, Some(false));
    /// # Ok::<(), vk_litmus::Error>(())
    /// ```
    pub fn with_model(model: AxiomaticModel) -> Checker {
        Checker { models: CheckModels::with_model(model.chosen), options: default_limits() }
    }

    /// Sets the time limit for each test or entry point [default: 5 s].
    ///
    /// The unit is processor time of the calling thread; four times as much elapsed time ends it as well.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Checker {
        self.options.timeout = limit;
        self
    }

    /// Bounds the iterations of every loop [default: as few as needed within the time limit].
    #[must_use]
    pub fn unroll(mut self, iterations: u32) -> Checker {
        self.options.unroll = Some(iterations.max(1));
        self
    }

    /// Also decides if every run of a test terminates under a progress model with weak fairness, such as `obe`
    /// or `qf=obe,wg=fair,sg=hsa`.
    ///
    /// # Errors
    /// If the progress model is unknown.
    pub fn progress_model(mut self, model: &str) -> Result<Checker, Error> {
        let parsed = model.parse::<ProgressModel>();
        let parsed =
            parsed.map_err(|error| Error::for_file(model, Failure::input_message(error.to_string())))?;
        self.options.progress = Some((parsed, Fairness::Weak));
        Ok(self)
    }

    /// Predicts every outcome of a test, its races, and the answers to its queries.
    ///
    /// # Errors
    /// If the model does not judge this dialect, a claim of the header names an unknown model, or the test is
    /// larger than the engine supports.
    pub fn check(&self, test: &LitmusTest) -> Result<CheckAnswer, Error> {
        to_answer(check_loaded(&test.loaded, &self.models, self.options))
    }

    /// Checks each entry point of a shader, or the entry point in `inputs`: the findings are those of
    /// [`RaceDetector`](crate::RaceDetector), and the model decides claims.
    pub fn check_shader(
        &self,
        shader: &ShaderModule,
        inputs: &ShaderInputs,
    ) -> Vec<Result<CheckAnswer, Error>> {
        let chosen = match self.models.model_for_shaders() {
            Ok(chosen) => chosen,
            Err(failure) => return vec![Err(Error::for_file(&shader.file, failure))],
        };
        let options = entry_point::AnalysisOptions { unroll: self.options.unroll, ..inputs.options.clone() };
        let check_options = CheckOptions { inputs: inputs.mode, ..self.options };
        let source = Ok(shader.source.clone());
        let checked = kernel::check_module(&shader.file, source, &options, &chosen.model, check_options);
        checked.into_iter().map(to_answer).collect()
    }
}

fn default_limits() -> CheckOptions {
    CheckOptions { inputs: InputMode::Auto, timeout: TIME_LIMIT, unroll: None, progress: None }
}

pub(super) fn to_answer(checked: CheckResult) -> Result<CheckAnswer, Error> {
    match checked {
        CheckResult::Answered(line, notes, conclusion) => {
            Ok(CheckAnswer { line: *line, notes, status: CheckStatus::from_conclusion(conclusion) })
        }
        CheckResult::Rejected(rejected) => Err(rejected.into()),
    }
}

impl CheckStatus {
    fn from_conclusion(conclusion: CommandOutcome) -> CheckStatus {
        match conclusion {
            CommandOutcome::Success => CheckStatus::Expected,
            CommandOutcome::Environment | CommandOutcome::Untested | CommandOutcome::Input => {
                CheckStatus::Undecided
            }
            CommandOutcome::RuleBroken => CheckStatus::Unexpected,
        }
    }

    /// Returns its effect on the exit code of the program.
    #[cfg(feature = "cli")]
    pub(super) fn to_outcome(self) -> CommandOutcome {
        match self {
            CheckStatus::Expected => CommandOutcome::Success,
            CheckStatus::Undecided => CommandOutcome::Environment,
            CheckStatus::Unexpected => CommandOutcome::RuleBroken,
        }
    }
}

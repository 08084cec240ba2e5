//! The race detector: whole grids of shaders, interpreted.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use analysis::{EntryAnswer, ProofMode, refused_line};
use campaign::shader::race::{RaceOptions, analyze_module};
use campaign::shader::smt_solver::InstalledSolver;
use campaign::shader::source::{compile_edited_text, read_editable_text};
use entry_point::inputs::read_bound_module;
use entry_point::{AnalysisOptions, FindingKind, ScheduleToken};
use lint::LintRule;
use model::Model;
use repair::EditableSource;
use results::wire::{FindingRecord, RaceLine, RaceVerdict};
use spirv_reader::ShaderLanguage;
use walk::{GridFinding, trace_finding};

use super::error::Error;
use super::inputs::ShaderInputs;
use super::model::AxiomaticModel;
use super::shader::ShaderModule;
use super::test::LitmusTest;

/// Finds races and other undefined behaviour in shaders by interpreting whole grids: `vk-litmus race`.
///
/// Vector clocks order accesses by happens-before, not by the schedule, so one schedule detects races of
/// many. A finding is a proof for its inputs. `clean` holds for the scope in [`RaceLine::coverage`].
///
/// ```
/// use std::time::{Duration, Instant};
/// use vk_litmus::wire::RaceVerdict;
/// use vk_litmus::{CompileOptions, RaceDetector, ShaderInputs, ShaderModule};
///
/// let detector = RaceDetector::new()?
///     .time_limit(Duration::from_secs(10))
///     .model_time_limit(Duration::from_secs(1))
///     .ends_at(Instant::now() + Duration::from_secs(60))
///     .schedules(100)
///     .seed(7);
/// let inputs = ShaderInputs::new().grid([2, 1, 1]);
/// for module in ShaderModule::load("../../ci/action/race.spvasm", &CompileOptions::new()) {
///     for answer in detector.find_races(&module?, &inputs) {
///         assert_eq!(answer.line.verdict, RaceVerdict::Racy);
///         assert_eq!(answer.line.findings[0].kind, "race");
///     }
/// }
///
/// let shader = ShaderModule::load("../../ci/action/race.spvasm", &CompileOptions::new()).remove(0)?;
/// let detector = RaceDetector::new()?.replay(0, 0).max_steps(1 << 20).with_lints().with_tests().skip_proofs().with_trace(0);
/// let answer = detector.find_races(&shader, &inputs).remove(0);
/// assert!(answer.line.lints.is_empty() && answer.line.proof.is_none());
/// assert!(answer.tests[0].as_ref().is_some_and(|test| test.to_text().starts_with("VULKAN")));
/// assert_eq!(answer.line.trace.map(|trace| trace.invocations.len()), Some(2));
///
/// // Without a grid that is given, the answer names the one that it holds for.
/// let answers = RaceDetector::new()?.require_proofs().find_races(&shader, &ShaderInputs::new());
/// assert_eq!(answers[0].line.proof.as_ref().map(|proof| proof.grid), Some([Some(1); 3]));
///
/// // What is missing is an error, or a refused answer.
/// assert!(RaceDetector::new()?.smt_solver("no-such-solver").is_err());
/// for error in ShaderModule::load("missing.spv", &CompileOptions::new()).into_iter().filter_map(Result::err) {
///     let answer = detector.refuse(&error, &inputs);
///     assert_eq!(answer.line.verdict, RaceVerdict::Refused);
///     assert_eq!(answer.line.cause.as_deref(), Some("file cannot be read"));
/// }
/// # Ok::<(), vk_litmus::Error>(())
/// ```
#[derive(Debug)]
pub struct RaceDetector {
    model: Model,
    time_limit: Duration,
    model_time_limit: Duration,
    ends: Option<Instant>,
    schedules: Option<u64>,
    seed: u64,
    replay: Option<ScheduleToken>,
    max_steps: Option<u64>,
    has_lints: bool,
    has_tests: bool,
    proofs: ProofMode,
    solver: Option<InstalledSolver>,
    traced_finding: Option<usize>,
    case_file: Option<PathBuf>,
}

/// The findings of one entry point.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RaceAnswer {
    /// Verdict, findings and coverage, as `race --format json` prints them.
    pub line: RaceLine,
    /// The smallest litmus test of each finding that has one, if [`RaceDetector::with_tests`] was called.
    pub tests: Vec<Option<LitmusTest>>,
}

impl RaceDetector {
    /// Creates a detector with the limits of the program.
    ///
    /// # Errors
    /// If the shipped model `vulkan` cannot be loaded.
    pub fn new() -> Result<RaceDetector, Error> {
        Ok(RaceDetector {
            model: AxiomaticModel::named("vulkan")?.chosen.model,
            time_limit: Duration::from_secs(60),
            model_time_limit: Duration::from_secs(3),
            ends: None,
            schedules: None,
            seed: 0,
            replay: None,
            max_steps: None,
            has_lints: false,
            has_tests: false,
            proofs: ProofMode::Optional,
            solver: None,
            traced_finding: None,
            case_file: None,
        })
    }

    /// Sets the limit for all schedules of an entry point [default: 60 s]. The search for fixes has the same
    /// limit in addition.
    ///
    /// The unit is processor time of the calling thread; four times as much elapsed time ends it as well.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> RaceDetector {
        self.time_limit = limit;
        self
    }

    /// Sets the limit for the model, which decides small grids that schedules do not decide [default: 3 s].
    #[must_use]
    pub fn model_time_limit(mut self, limit: Duration) -> RaceDetector {
        self.model_time_limit = limit;
        self
    }

    /// Sets the time at which every answer ends [default: none].
    #[must_use]
    pub fn ends_at(mut self, end: Instant) -> RaceDetector {
        self.ends = Some(end);
        self
    }

    /// Sets the number of schedules, which are all tried even after a finding [default: a few, more for small
    /// grids].
    #[must_use]
    pub fn schedules(mut self, schedules: u64) -> RaceDetector {
        self.schedules = Some(schedules);
        self
    }

    /// Sets the seed of the schedules [default: 0].
    #[must_use]
    pub fn seed(mut self, seed: u64) -> RaceDetector {
        self.seed = seed;
        self
    }

    /// Explores only one schedule, by its seed and number: `line.coverage.schedules`.
    #[must_use]
    pub fn replay(mut self, seed: u64, schedule: u64) -> RaceDetector {
        self.replay = Some(ScheduleToken { seed, schedule });
        self
    }

    /// Sets the limit of the steps of all schedules [default: 150,000,000, or more for large grids].
    #[must_use]
    pub fn max_steps(mut self, steps: u64) -> RaceDetector {
        self.max_steps = Some(steps);
        self
    }

    /// Adds the findings of [`ShaderModule::lint`] to the first entry point.
    #[must_use]
    pub fn with_lints(mut self) -> RaceDetector {
        self.has_lints = true;
        self
    }

    /// Also reduces each finding to a litmus test of its two invocations, if the model also reports a race.
    #[must_use]
    pub fn with_tests(mut self) -> RaceDetector {
        self.has_tests = true;
        self
    }

    /// Reports a shader without a finding or a proof for every input as undecided.
    #[must_use]
    pub fn require_proofs(mut self) -> RaceDetector {
        self.proofs = ProofMode::Required;
        self
    }

    /// Attempts no proofs for other inputs than the given ones.
    #[must_use]
    pub fn skip_proofs(mut self) -> RaceDetector {
        self.proofs = ProofMode::None;
        self
    }

    /// Asks an installed SMT solver what the built-in solver of proofs leaves open: `z3`, `cvc5` or `bitwuzla`.
    ///
    /// # Errors
    /// If it is not installed, or too old.
    pub fn smt_solver(mut self, program: &str) -> Result<RaceDetector, Error> {
        let solver = InstalledSolver::find(program);
        self.solver = Some(solver.map_err(|failure| Error::for_file(program, failure))?);
        Ok(self)
    }

    /// Adds the steps of the two invocations up to a finding, by its number from 0: `line.trace`.
    #[must_use]
    pub fn with_trace(mut self, finding: usize) -> RaceDetector {
        self.traced_finding = Some(finding);
        self
    }

    /// Also writes the inputs that were used to a case file, which [`ShaderInputs::from_case`] reads.
    ///
    /// ```
    /// # use vk_litmus::{RaceDetector, ShaderInputs, ShaderModule};
    /// let shader = ShaderModule::from_spirv("race", std::fs::read("../../ci/action/race.spvasm")?);
    /// let case = std::env::temp_dir().join(format!("vk-litmus-doc-{}.toml", std::process::id()));
    /// RaceDetector::new()?.save_case(&case).find_races(&shader, &ShaderInputs::new());
    /// let no_file = |name: &str| Err(format!("unexpected file {name}"));
    /// assert!(ShaderInputs::from_case(&std::fs::read_to_string(&case)?, &no_file).is_ok());
    /// # std::fs::remove_file(&case)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn save_case(mut self, file: impl Into<PathBuf>) -> RaceDetector {
        self.case_file = Some(file.into());
        self
    }

    /// Interprets each entry point of a shader, or the one in `inputs`.
    ///
    /// A shader that cannot be analysed has one answer with the verdict `refused` and the reason.
    ///
    /// ```
    /// # use vk_litmus::{RaceDetector, ShaderInputs, ShaderModule, wire::RaceVerdict};
    /// let answers = RaceDetector::new()?.find_races(&ShaderModule::from_spirv("empty", []), &ShaderInputs::new());
    /// assert_eq!(answers[0].line.verdict, RaceVerdict::Refused);
    /// # Ok::<(), vk_litmus::Error>(())
    /// ```
    pub fn find_races(&self, shader: &ShaderModule, inputs: &ShaderInputs) -> Vec<RaceAnswer> {
        let ShaderModule { file, source, compilation } = shader;
        let text = compilation.as_ref().and_then(|given| read_editable_text(file, given));
        let compile =
            |text: &str| compile_edited_text(file, text, source.entry.as_deref(), compilation.as_ref()?);
        let (unset_overrides, language) = (source.unset.clone(), source.language);
        let given = source.with_given_inputs(&self.options(inputs));
        let options = AnalysisOptions { unset_overrides, language, ..given };
        let race_options = RaceOptions {
            walk_timeout: self.time_limit,
            model_timeout: self.model_time_limit,
            ends: self.ends,
            inputs: inputs.mode,
            case_file: self.case_file.as_deref(),
            with_smallest_tests: self.has_tests,
            proofs: self.proofs,
            solver: self.solver.as_ref(),
            with_fixes: true,
            source: text.as_deref().map(|text| EditableSource { text, compile: &compile }),
        };
        // A module that cannot be read is refused below.
        let has_rules = self.has_lints || source.language == Some(ShaderLanguage::Wgsl);
        let mut lints = if has_rules { shader.lint().unwrap_or_default() } else { Vec::new() };
        // Other compilers of WGSL reject what this rule reports.
        let rule = format!("lint:{}", LintRule::DivergentBarrier.name());
        lints.retain(|lint| self.has_lints || lint.kind == rule);
        let trace = |line: &RaceLine, options: &AnalysisOptions, findings: &[GridFinding]| {
            let finding = findings.get(self.traced_finding?)?;
            let module = read_bound_module(&source.bytes, options).ok()?;
            trace_finding(&line.file, &module, options, finding).ok()?
        };
        let answer = |EntryAnswer { mut line, tests, options, findings, .. }| {
            line.trace = trace(&line, &options, &findings);
            line.compiler.clone_from(&source.compiler);
            if line.verdict == RaceVerdict::Refused {
                line.cause = Some("not supported by the analysis".to_owned());
            }
            if let Some(entry) = source.entry.as_ref().filter(|_| line.entry.is_empty()) {
                line.entry.clone_from(entry);
            }
            // The findings are those of the module; its first entry point lists them.
            line.lints = std::mem::take(&mut lints);
            let is_known = |found: &FindingRecord| found.kind == FindingKind::DivergentBarrier.name();
            line.lints.retain(|_| self.has_lints || !line.findings.iter().any(is_known));
            let tests = tests.into_iter().map(|test| test.map(LitmusTest::from_generated)).collect();
            RaceAnswer { line, tests }
        };
        analyze_module(file, &source.bytes, &options, &self.model, race_options)
            .into_iter()
            .map(answer)
            .collect()
    }

    /// Returns the answer for a shader that could not be loaded, as the program prints it.
    pub fn refuse(&self, error: &Error, inputs: &ShaderInputs) -> RaceAnswer {
        let mut line = refused_line(error.file(), "", &self.options(inputs), error.record().error.clone());
        line.rejected = Some(error.record().clone());
        line.cause = error.cause().map(str::to_owned);
        RaceAnswer { line, tests: Vec::new() }
    }

    fn options(&self, inputs: &ShaderInputs) -> AnalysisOptions {
        let RaceDetector { schedules, seed, replay, max_steps, .. } = *self;
        AnalysisOptions { schedules, seed, replay, max_steps, ..inputs.options.clone() }
    }
}

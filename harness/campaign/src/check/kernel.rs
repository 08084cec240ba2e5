//! Checks shaders: one line for each entry point.
//!
//! The lifter translates an entry point to litmus tests that the model answers. If that leaves a question
//! open, the grid interpreter executes the whole grid. [`ShaderAnalysis`] has the steps that `check` shares with
//! `explain` and `run`.

pub mod explain;
mod interpreter;
mod undecided;

use std::path::Path;
use std::time::{Duration, Instant};

use answers::{finding_record, invalid_use_texts, placed_refusal_text, refusal_text, source_location};
use frontend::{
    AnalysisOptions, DeadlinePredicate, FindingKind, InputGrid, LiftFinding, Lifted, ModelQuery, Refusal,
    SourcePosition, SpirvModule, Spot,
};
use litmus::Race;
use model::Budget;
use model::progress::{ProgressLimits, check_termination};
use results::wire::{
    CHECK_SCHEMA, CheckLine, Executions, FindingPlace, FindingRecord, ProgressAnswer, Query, RaceWord,
    RejectedLine,
};

use results::write::race::describe_need;

use self::undecided::describe_refusal;
use super::{CheckOptions, CheckResult};
use crate::shader::shader_analysis::{AnswerStatus, ShaderAnalysis, is_interpreter_model, read_entry_points};
use crate::shader::source::{SourceError, SourceModule};
use crate::source::RejectedSource;
use crate::time_limit::stop_after;
use crate::{CommandOutcome, Failure};

/// Checks every entry point of a module, or the one in `options`.
pub fn check_module(
    file: &str,
    shader: Result<SourceModule, SourceError>,
    options: &AnalysisOptions,
    model: &model::Model,
    check_options: CheckOptions,
) -> Vec<CheckResult> {
    let shader = match shader {
        Ok(shader) => shader,
        Err(error) => {
            let (line, column) = error.position();
            let line = RejectedLine { file: file.to_owned(), error: error.to_string(), line, column };
            return vec![CheckResult::Rejected(RejectedSource { line, failure: error.to_failure() })];
        }
    };
    let (module, entries) = match read_entry_points(file, &shader, options) {
        Ok(read) => read,
        Err(refusal) => return vec![reject_refusal(file, &refusal, &[])],
    };
    let invalid = invalid_use_texts(file, &module);
    let check = |given: &AnalysisOptions| {
        match check_entry_point((file, &shader, &module), given, model, check_options) {
            Ok(mut checked) => {
                if let CheckResult::Answered(_, warnings, _) = &mut checked {
                    warnings.splice(0..0, invalid.iter().cloned());
                }
                checked
            }
            // A refused module has no answer to warn about.
            Err(refusal) => reject_refusal(file, &refusal, &invalid),
        }
    };
    entries.iter().map(check).collect()
}

/// Rejects a module, with its invalid uses.
fn reject_refusal(file: &str, refusal: &Refusal, invalid: &[String]) -> CheckResult {
    let line = match refusal.place {
        SourcePosition::Line(line) => line.max(1),
        SourcePosition::Word(_) | SourcePosition::Module => 1,
    };
    let with_invalid =
        |text: String| std::iter::once(text).chain(invalid.iter().cloned()).collect::<Vec<_>>().join("; ");
    let failure = Failure::input_message(with_invalid(placed_refusal_text(file, refusal)));
    let error = refusal_text(&Refusal { place: SourcePosition::Module, ..refusal.clone() });
    let line = RejectedLine { file: file.to_owned(), error: with_invalid(error), line, column: 1 };
    CheckResult::Rejected(RejectedSource { line, failure })
}

/// Checks one entry point.
///
/// # Errors
/// The refusal of the lifter, or that of the interpreter if it says more.
fn check_entry_point(
    source: (&str, &SourceModule, &SpirvModule),
    given: &AnalysisOptions,
    model: &model::Model,
    check_options: CheckOptions,
) -> Result<CheckResult, Refusal> {
    let started = Instant::now();
    let (_, _, module) = source;
    frontend::check_claim(module, given)?;
    let search_time = check_options.timeout / SEARCH_TIME_DIVISOR;
    let inputs = (check_options.inputs, InputGrid::One);
    let analysis = ShaderAnalysis::new(source, given, model, inputs, Some(search_time))?;
    let check = EntryPointCheck { analysis: &analysis, check_options, started };
    Ok(check.settle_answer(check.answer()?))
}

/// The part of the time that the search for inputs may take.
const SEARCH_TIME_DIVISOR: u32 = 4;

/// The check of an entry point.
pub(super) struct EntryPointCheck<'a> {
    pub(super) analysis: &'a ShaderAnalysis<'a>,
    pub(super) check_options: CheckOptions,
    started: Instant,
}

/// The model's answer, and true if it leaves every question open.
type ModelCheck = (Result<CheckResult, String>, bool);

impl EntryPointCheck<'_> {
    pub(super) fn remaining_time(&self) -> Duration {
        self.check_options.timeout.saturating_sub(self.started.elapsed())
    }

    /// Returns a line with only the race verdict and the time.
    pub(super) fn entry_line(&self, entry: &str, race: Race) -> CheckLine {
        let ShaderAnalysis { file, model, .. } = *self.analysis;
        let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or(file);
        CheckLine {
            schema: CHECK_SCHEMA.to_owned(),
            id: format!("{stem}:{entry}"),
            file: file.to_owned(),
            name: entry.to_owned(),
            model: model.name().to_owned(),
            race: race.into(),
            micros: u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX),
            outcomes_listed: Some(false),
            ..CheckLine::default()
        }
    }

    /// Answers by the model, or by a walk over the grid if the model leaves every question open.
    ///
    /// # Errors
    /// The refusal of the lifter, or that of the interpreter if it says more.
    fn answer(&self) -> Result<CheckResult, Refusal> {
        let file = self.analysis.file;
        let by_model = self.answer_with_growing_bound();
        let is_open = by_model.as_ref().map_or(true, |(_, is_open)| *is_open);
        let no_answer_reason = match &by_model {
            Err(refusal) => describe_refusal(refusal),
            Ok((answer, _)) => answer.as_ref().err().map(|why| format!(": {why}")).unwrap_or_default(),
        };
        let (by_walk, walk_refusal) = match is_open.then(|| self.check_by_walk(&no_answer_reason)) {
            Some(Ok(walked)) => (Some(walked), None),
            Some(Err(why)) => (None, why),
            None => (None, None),
        };
        let by_walk = by_walk.filter(|walked| !walked.is_unknown() || !matches!(&by_model, Ok((Ok(_), _))));
        let is_unknown = match (&by_walk, &by_model) {
            (Some(checked), _) | (None, Ok((Ok(checked), _))) => checked.is_unknown(),
            (None, _) => false,
        };
        // If a finding exists, a reason that the model cannot answer does not matter.
        let has_findings = by_walk.as_ref().is_some_and(CheckResult::has_findings);
        let needs_explanation =
            !(has_findings && matches!(&by_model, Err(refusal) if !refusal.what.is_limit()));
        let explain = || self.describe_limit(by_model.as_ref().map(|(answer, _)| answer));
        let explanation = (is_unknown && needs_explanation).then(explain).flatten();
        let mut checked = match (by_walk, by_model) {
            (Some(checked), _) | (None, Ok((Ok(checked), _))) => checked,
            (None, Ok((Err(why), _))) => CheckResult::Rejected(RejectedSource::without_position(file, why)),
            (None, Err(refusal)) => self.result_without_answer(refusal, walk_refusal)?,
        };
        if let (Some(explanation), CheckResult::Answered(_, warnings, _)) = (explanation, &mut checked) {
            warnings.push(format!("{file}: {explanation}"));
        }
        Ok(checked)
    }

    /// Answers by the model, with larger loop bounds while an unknown answer is due to the bound and time
    /// remains.
    fn answer_with_growing_bound(&self) -> Result<ModelCheck, Refusal> {
        let options = &self.analysis.options;
        let mut best = self.answer_by_model(options)?;
        for bodies in RETRY_LOOP_BOUNDS {
            let is_cut = best.0.as_ref().is_ok_and(is_cut_short);
            let time = self.check_options.timeout / 4;
            if !is_cut || options.unroll.is_some() || self.started.elapsed() > time {
                break;
            }
            match self
                .answer_by_model(&AnalysisOptions { max_open_iterations: Some(bodies), ..options.clone() })
            {
                Ok(deeper) if deeper.0.as_ref().is_ok_and(|deeper| !leaves_unknown(deeper)) => {
                    return Ok(deeper);
                }
                Ok(deeper) if deeper.0.as_ref().is_ok_and(is_cut_short) => best = deeper,
                // More bodies exceed the time or the lifter: keep the answer with fewer.
                Ok(_) | Err(_) => break,
            }
        }
        Ok(best)
    }

    fn answer_by_model(&self, options: &AnalysisOptions) -> Result<ModelCheck, Refusal> {
        let until = Some(DeadlinePredicate::new(stop_after(self.remaining_time())));
        let lifted =
            frontend::lift(self.analysis.module, &AnalysisOptions { deadline: until, ..options.clone() })?;
        let lifted_entry = LiftedEntryPoint { analysis: self.analysis, options, lifted: &lifted };
        let answer = lifted_entry.check_with_model(self);
        let is_open = answer.as_ref().map_or(true, |answered| lifted_entry.leaves_open(answered));
        Ok((answer, is_open))
    }

    /// Returns the result if neither the model nor the interpreter has an answer: it is undecided if a limit of
    /// time or steps is the reason.
    ///
    /// # Errors
    /// The refusal of the lifter, or that of the interpreter if it says more.
    fn result_without_answer(
        &self,
        refusal: Refusal,
        walk_refusal: Option<Refusal>,
    ) -> Result<CheckResult, Refusal> {
        // The grid may be too large for the model while another limit stops the interpreter.
        let is_exhausted = refusal.what.is_exhausted();
        let walk_refusal =
            walk_refusal.filter(|why| why.what.is_exhausted() || !is_exhausted && refusal.what.is_limit());
        let why = match walk_refusal {
            None if is_exhausted => self.describe_limit(Err(&refusal)).unwrap_or_default(),
            Some(why) if is_exhausted || why.what.is_exhausted() => self.describe_interpreter_limit(&why),
            walk_refusal => return Err(walk_refusal.unwrap_or(refusal)),
        };
        let ShaderAnalysis { file, ref options, .. } = *self.analysis;
        let unanswered =
            |claim| Query { text: format!("forall ({claim})"), holds: None, expected: Some(true) };
        let entry = options.entry.as_deref().unwrap_or("main");
        let line = CheckLine {
            queries: options.assertion.iter().map(unanswered).collect(),
            findings: Some(Vec::new()),
            bound: options.unroll.unwrap_or(options.max_open_iterations()),
            ..self.entry_line(entry, Race::Unknown)
        };
        let warnings = vec![format!("{file}: {why}")];
        Ok(CheckResult::Answered(Box::new(line), warnings, CommandOutcome::Environment))
    }

    /// Replaces an answer that depends on inputs that no option supplies, and names the chosen inputs.
    fn settle_answer(&self, checked: CheckResult) -> CheckResult {
        let status = if checked.is_clean() {
            AnswerStatus::Clean
        } else if checked.has_findings() {
            AnswerStatus::Findings
        } else {
            AnswerStatus::Open
        };
        let CheckResult::Answered(mut line, mut warnings, mut outcome) = checked else { return checked };
        let file = self.analysis.file;
        warnings.extend(self.analysis.choice_note().map(|note| format!("{file}: {note}")));
        let needs_grid = line.two_workgroup_finding.is_some();
        let time = self.check_options.progress.is_none().then(|| self.remaining_time());
        // A race that the model does not place has no finding, and stands.
        let is_unplaced_race = line.race == RaceWord::Racy && status != AnswerStatus::Findings;
        if !is_unplaced_race {
            line.needs = self.analysis.needed_inputs(status, needs_grid, time);
        }
        if !line.needs.is_empty() {
            let is_broken = |query: &Query| query.expected.is_some() && query.holds == Some(false);
            outcome = match line.queries.iter().any(is_broken) {
                true => CommandOutcome::RuleBroken,
                false => CommandOutcome::Environment,
            };
            (line.race, line.findings) = (RaceWord::NeedsInputs, Some(Vec::new()));
            warnings.extend(line.needs.iter().map(|needed| format!("{file}: {}", describe_need(needed))));
        }
        CheckResult::Answered(line, warnings, outcome)
    }
}

/// Loop bounds to try after the default one.
const RETRY_LOOP_BOUNDS: [u32; 2] = [4, 8];

/// Returns true if the race or a query is undecided.
fn leaves_unknown(checked: &CheckResult) -> bool {
    match checked {
        CheckResult::Answered(line, ..) => {
            line.race == RaceWord::Unknown || line.queries.iter().any(|query| query.holds.is_none())
        }
        _ => false,
    }
}

/// Returns true if an answer is undecided and runs were cut off at the loop bound.
fn is_cut_short(checked: &CheckResult) -> bool {
    matches!(checked, CheckResult::Answered(line, ..) if line.cut > 0) && leaves_unknown(checked)
}

struct LiftedEntryPoint<'a> {
    analysis: &'a ShaderAnalysis<'a>,
    /// The options of the lifter.
    options: &'a AnalysisOptions,
    lifted: &'a Lifted,
}

impl LiftedEntryPoint<'_> {
    fn check_with_model(&self, check: &EntryPointCheck<'_>) -> Result<CheckResult, String> {
        let ShaderAnalysis { file, module, model, .. } = *self.analysis;
        let lifted = self.lifted;
        let stop = stop_after(check.remaining_time());
        let budget = Budget::until(&stop);
        let query = ModelQuery { budget, decide_race: true, decide_question: true, locate_race: true };
        let answer = frontend::answer_with_model(lifted, model, &query).map_err(|error| error.to_string())?;
        let race = match &answer.race_spot {
            Some(found) => Some((found.describe(&lifted.invocations), self.finding_places(&found.at))),
            None if answer.race == Race::Racy => {
                Some(("data race at an unknown place (the time limit was reached)".to_owned(), Vec::new()))
            }
            None => None,
        };
        let mut findings: Vec<FindingRecord> =
            race.into_iter().map(|(message, at)| FindingRecord::new("race", message, at)).collect();
        findings.extend(answer.findings.iter().map(|finding| self.lift_finding_record(finding)));
        if findings.is_empty() && check.check_options.progress.is_none() {
            findings.extend(self.findings_outside_model());
        }
        let mut outcome =
            if findings.is_empty() { CommandOutcome::Success } else { CommandOutcome::RuleBroken };
        let mut warnings: Vec<String> = self.notes().iter().map(|note| format!("{file}: {note}")).collect();
        warnings.push(format!("{file}: {}", self.describe_coverage()));
        let probes_two_workgroups = findings.is_empty() && lifted.question.is_none();
        let two_workgroup_finding = if probes_two_workgroups {
            frontend::find_with_two_workgroups(module, self.options).map(answers::describe_wider_grid)
        } else {
            None
        };
        warnings.extend(two_workgroup_finding.iter().map(|wider| format!("{file}: {wider}")));
        if answer.is_out_of_time {
            warnings.push(format!("{file}: warning: not everything was answered within the time limit"));
        }
        let queries: Vec<Query> = lifted
            .question
            .clone()
            .map(|text| Query {
                text,
                holds: answer.holds,
                // A claim on the command line is expected to hold.
                expected: self.options.assertion.as_ref().map(|_| true),
            })
            .into_iter()
            .collect();
        for query in queries.iter().filter(|query| query.expected.is_some()) {
            if query.holds == Some(false) {
                outcome.escalate_to(CommandOutcome::RuleBroken);
                warnings.push(format!("{file}: `{}` does not hold", query.text));
            } else if query.holds.is_none() {
                outcome.escalate_to(CommandOutcome::Environment);
                warnings.push(format!("{file}: `{}` has no answer", query.text));
            }
        }
        let progress = self.check_progress(check.check_options, budget, answer.race)?;
        let line = CheckLine {
            queries,
            executions: Executions {
                candidate: answer.candidate_executions,
                consistent: answer.consistent_executions,
            },
            bound: self.options.unroll.unwrap_or(self.options.max_open_iterations()),
            cut: answer.cut_off_runs,
            runs: answer.runs,
            progress,
            findings: Some(findings),
            compiler: self.analysis.compiler.map(str::to_owned),
            two_workgroup_finding,
            ..check.entry_line(&lifted.entry, answer.race)
        };
        Ok(CheckResult::Answered(Box::new(line), warnings, outcome))
    }

    /// Returns true if the interpreter may answer more, because every question is open and no loop bound was
    /// given.
    fn leaves_open(&self, answered: &CheckResult) -> bool {
        let CheckResult::Answered(line, ..) = answered else { return true };
        // The interpreter continues after a barrier that not every invocation reaches.
        let divergent = FindingKind::DivergentBarrier.name();
        let has_no_place = |found: &FindingRecord| found.at.is_empty() || found.kind == divergent;
        let is_unplaced = line.findings.as_ref().is_none_or(|all| all.iter().all(has_no_place));
        let is_open = answered.is_unknown() || line.race == RaceWord::Racy;
        is_open && is_unplaced && line.queries.is_empty() && self.options.unroll.is_none()
    }

    /// Returns the findings other than races that only the interpreter sees: endless loops and uninitialised
    /// reads.
    fn findings_outside_model(&self) -> Vec<FindingRecord> {
        let ShaderAnalysis { file, module, model, .. } = *self.analysis;
        if !is_interpreter_model(model) {
            return Vec::new();
        }
        let found = frontend::findings_outside_model(module, self.options);
        found.iter().map(|found| finding_record(file, module, found)).collect()
    }

    /// Returns the notes about how the shader was read.
    fn notes(&self) -> Vec<String> {
        self.analysis.compiler_note().into_iter().chain(self.lifted.notes.iter().cloned()).collect()
    }

    /// Describes which inputs, invocations and loop bounds the answer covers.
    fn describe_coverage(&self) -> String {
        let count = self.lifted.invocations.len();
        let loops = match self.options.unroll {
            Some(bound) => format!("loops of at most {bound} iterations"),
            None => format!(
                "loops of known length not bounded, others at most {} iterations",
                self.options.max_open_iterations()
            ),
        };
        let values = if self.lifted.is_sampled {
            ", missing values tried as 0, 1 and values that the code or the assertion distinguishes"
        } else {
            ""
        };
        format!(
            "`{}` for these inputs, {count} invocation{}, {loops}{values}",
            self.lifted.entry,
            if count == 1 { "" } else { "s" }
        )
    }

    fn finding_place(&self, spot: &Spot) -> FindingPlace {
        let (file, line) = source_location(self.analysis.file, self.analysis.module, spot.line, spot.place);
        let invocation = self.lifted.invocations.get(usize::from(spot.thread));
        FindingPlace {
            file: Some(file),
            line,
            invocation: invocation.map(ToString::to_string),
            workgroup: invocation.map(|invocation| invocation.workgroup),
            access: spot.writes.map(|writes| if writes { "write" } else { "read" }.to_owned()),
        }
    }

    fn finding_places(&self, at: &[Spot]) -> Vec<FindingPlace> {
        at.iter().map(|spot| self.finding_place(spot)).collect()
    }

    fn lift_finding_record(&self, finding: &LiftFinding) -> FindingRecord {
        FindingRecord::new(finding.kind().name(), finding.message.clone(), self.finding_places(&finding.at))
    }

    fn check_progress(
        &self,
        check_options: CheckOptions,
        budget: Budget<'_>,
        race: Race,
    ) -> Result<Option<ProgressAnswer>, String> {
        let Some((progress_model, fairness)) = &check_options.progress else { return Ok(None) };
        let mut progress_answer = ProgressAnswer {
            model: progress_model.to_string(),
            fairness: fairness.name().to_owned(),
            memory: "axioms".to_owned(),
            terminates: None,
            expected: None,
            why: None,
            schedule: Vec::new(),
        };
        if race == Race::Racy {
            progress_answer.why = Some("the program races: its behaviour is undefined".to_owned());
            return Ok(Some(progress_answer));
        }
        progress_answer.terminates = Some(true);
        for case in &self.lifted.cases {
            let limits = ProgressLimits::with_budget(budget);
            let answer =
                check_termination(&case.test, self.analysis.model, progress_model, *fairness, &limits);
            let answer = answer.map_err(|error| error.to_string())?;
            progress_answer.memory = answer.memory.name().to_owned();
            if answer.terminates != Some(true) {
                progress_answer.terminates = match (answer.terminates, progress_answer.terminates) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    _ => None,
                };
                progress_answer.why = answer.details;
            }
        }
        Ok(Some(progress_answer))
    }
}

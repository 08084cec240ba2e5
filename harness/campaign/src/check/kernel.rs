//! Checks shaders: one line for each entry point.
//!
//! The lifter translates an entry point to litmus tests that the model answers. If that leaves a question
//! open, the grid interpreter ([`InterpretedEntryPoint`]) executes the whole grid.

pub mod explain;

use std::time::{Duration, Instant};

use answers::{finding_record, needed_record, placed_refusal_text, refusal_text, source_location};
use frontend::grid::NeededInput;
use frontend::{
    AnalysisOptions, DeadlinePredicate, FindingKind, InputGrid, InputMode, InputNeeds, LiftFinding, Lifted,
    ModelQuery, Refusal, SourcePosition, SpirvModule, Spot,
};
use litmus::Race;
use model::Budget;
use model::progress::{ProgressLimits, check_termination};
use results::wire::{
    CheckLine, Executions, FindingPlace, FindingRecord, ProgressAnswer, Query, RaceWord, RejectedLine,
};

use super::entry::entry_line;
use super::interpreter::{InterpretedEntryPoint, is_interpreter_model};
use super::undecided::{self, UndecidedShader};
use super::{CheckOptions, CheckResult};
use crate::shader::entry_point_options;
use crate::shader::source::{Compilation, SourceError, SourceModule, load_all};
use crate::source::RejectedSource;
use crate::time_limit::stop_after;
use crate::{CommandOutcome, Failure};

/// Checks every entry point of a shader, or the one in `options`.
pub fn check_shader(
    file: &str,
    compilation: &Compilation,
    options: &AnalysisOptions,
    model: &model::Model,
    check_options: CheckOptions,
) -> Vec<CheckResult> {
    let modules = load_all(file, compilation).into_iter();
    modules.flat_map(|module| check_module(file, module, options, model, check_options)).collect()
}

/// Checks the entry points of a module.
pub fn check_module(
    file: &str,
    shader: Result<SourceModule, SourceError>,
    options: &AnalysisOptions,
    model: &model::Model,
    check_options: CheckOptions,
) -> Vec<CheckResult> {
    let reject_refusal = |refusal: &Refusal| {
        let line = match refusal.place {
            SourcePosition::Line(line) => line.max(1),
            SourcePosition::Word(_) | SourcePosition::Module => 1,
        };
        let failure = Failure::input_message(placed_refusal_text(file, refusal));
        let error = refusal_text(&Refusal { place: SourcePosition::Module, ..refusal.clone() });
        let line = RejectedLine { file: file.to_owned(), error, line, column: 1 };
        CheckResult::Rejected(RejectedSource { line, failure })
    };
    let reject = |error: String| CheckResult::Rejected(RejectedSource::without_position(file, error));
    let shader = match shader {
        Ok(shader) => shader,
        Err(error) => {
            let (line, column) = error.position();
            let line = RejectedLine { file: file.to_owned(), error: error.to_string(), line, column };
            return vec![CheckResult::Rejected(RejectedSource { line, failure: error.to_failure() })];
        }
    };
    let module = match frontend::read_bound_module(&shader.bytes, options) {
        Ok(module) => module,
        Err(refusal) => return vec![reject_refusal(&refusal)],
    };
    let entries = match entry_point_options(file, &module, &shader.unset, options) {
        Ok(entries) => entries,
        Err(refusal) => return vec![reject_refusal(&refusal)],
    };
    if entries.is_empty() {
        return vec![reject(module.describe_missing_entry_point())];
    }
    let invalid: Vec<String> = frontend::invalid_uses(&module)
        .iter()
        .map(|invalid_use| {
            let (file, line) = source_location(file, &module, invalid_use.at.line, invalid_use.at.place);
            let line = line.map_or(String::new(), |line| format!(":{line}"));
            format!("{file}{line}: invalid SPIR-V: {}", invalid_use.message)
        })
        .collect();
    // A module that is also refused has no answer to warn about.
    let reject_refusal = |refusal: &Refusal| {
        let mut checked = reject_refusal(refusal);
        if let (false, CheckResult::Rejected(rejected)) = (invalid.is_empty(), &mut checked) {
            let all = invalid.join("; ");
            rejected.failure = Failure::input_message(format!("{}; {all}", rejected.failure.report()));
            rejected.line.error = format!("{}; {all}", rejected.line.error);
        }
        checked
    };
    entries
        .into_iter()
        .map(|entry_options| {
            let started = Instant::now();
            let options = entry_options.clone();
            if let Err(refusal) = frontend::check_claim(&module, &options) {
                return reject_refusal(&refusal);
            }
            let until = DeadlinePredicate::new(stop_after(check_options.timeout / SEARCH_TIME_DIVISOR));
            let search_options = AnalysisOptions { deadline: Some(until), ..options.clone() };
            let choice =
                match frontend::choose_inputs(&module, &search_options, check_options.inputs, InputGrid::One)
                {
                    Ok(choice) => choice,
                    Err(refusal) => return reject_refusal(&refusal),
                };
            let chosen_inputs = choice.description(&options);
            let options = choice.primary(&options);
            let compiler = shader.compiler.as_deref();
            // The grid interpreter takes the cases that are too large for the lifter or that the model leaves
            // open.
            let interpreted_entry =
                InterpretedEntryPoint { file, module: &module, compiler, options: &options };
            let answer_lifted = |options: &AnalysisOptions| -> Result<_, Refusal> {
                let until = Some(DeadlinePredicate::new(stop_after(
                    check_options.timeout.saturating_sub(started.elapsed()),
                )));
                let lifted =
                    frontend::lift(&module, &AnalysisOptions { deadline: until, ..options.clone() })?;
                let lifted_entry =
                    LiftedEntryPoint { file, module: &module, compiler, options, lifted: &lifted };
                let answer = lifted_entry.check_with_model(model, check_options, started);
                let is_open = answer.as_ref().map_or(true, |answered| lifted_entry.leaves_open(answered));
                Ok((answer, is_open))
            };
            let lifted_answer = retry_with_larger_bounds(&options, check_options, started, answer_lifted);
            let is_open = lifted_answer.as_ref().map_or(true, |(_, open)| *open);
            let no_answer_reason = match &lifted_answer {
                Err(refusal) => undecided::describe_refusal(refusal),
                Ok((answered, _)) => {
                    answered.as_ref().err().map(|why| format!(": {why}")).unwrap_or_default()
                }
            };
            let (interpreted, why) = match is_open
                .then(|| interpreted_entry.check(model, check_options, started, &no_answer_reason))
            {
                Some(Ok(walked)) => (Some(walked), None),
                Some(Err(why)) => (None, why),
                None => (None, None),
            };
            let interpreted = interpreted
                .filter(|walked| !walked.is_unknown() || !matches!(&lifted_answer, Ok((Ok(_), _))));
            let unknown = match (&interpreted, &lifted_answer) {
                (Some(checked), _) | (None, Ok((Ok(checked), _))) => checked.is_unknown(),
                (None, _) => false,
            };
            let undecided =
                UndecidedShader { module: &module, options: &options, model, timeout: check_options.timeout };
            // If a finding exists, a reason that the model cannot answer does not matter.
            let has_findings = interpreted.as_ref().is_some_and(CheckResult::has_findings);
            let needs_explanation =
                !(has_findings && matches!(&lifted_answer, Err(refusal) if !refusal.what.is_limit()));
            let explain = || undecided.describe_limit(lifted_answer.as_ref().map(|(answered, _)| answered));
            let explanation = (unknown && needs_explanation).then(explain);
            let mut checked = match (interpreted, lifted_answer) {
                (Some(walked), _) => walked,
                (None, Ok((answered, _))) => answered.unwrap_or_else(reject),
                (None, Err(refusal)) => {
                    // The grid may be too large for the model while another limit stops the interpreter.
                    let exhausted = refusal.what.is_exhausted();
                    let interpreter_refusal =
                        why.filter(|why| why.what.is_exhausted() || !exhausted && refusal.what.is_limit());
                    match interpreter_refusal {
                        None if exhausted => {
                            let words = undecided.describe_limit(Err(&refusal)).unwrap_or_default();
                            timed_out_result(file, &options, model, (started, words))
                        }
                        Some(why) if exhausted || why.what.is_exhausted() => timed_out_result(
                            file,
                            &options,
                            model,
                            (started, undecided.describe_interpreter_limit(&why)),
                        ),
                        interpreter_refusal => reject_refusal(&interpreter_refusal.unwrap_or(refusal)),
                    }
                }
            };
            if let (Some(explanation), CheckResult::Answered(_, warnings, _)) =
                (explanation.flatten(), &mut checked)
            {
                warnings.push(format!("{file}: {explanation}"));
            }
            if let (false, CheckResult::Answered(_, warnings, _)) = (chosen_inputs.is_empty(), &mut checked) {
                warnings.push(format!("{file}: inputs chosen by the tool: {chosen_inputs}"));
            }
            let mut needs = choice.needed_inputs(&module);
            if check_options.progress.is_none() {
                let walk = InputWalk {
                    module: &module,
                    given: &entry_options,
                    own: &options,
                    mode: check_options.inputs,
                    time: check_options.timeout.saturating_sub(started.elapsed()),
                };
                if checked.is_clean() {
                    walk.settle_clean_answer(&mut needs, model);
                } else if checked.has_findings() {
                    walk.settle_findings(&mut needs, model);
                }
            }
            apply_needed_inputs(file, &mut checked, needs);
            if let CheckResult::Answered(_, warnings, _) = &mut checked {
                warnings.splice(0..0, invalid.iter().cloned());
            }
            checked
        })
        .collect()
}

/// A walk over more inputs than those of one answer, with which `check`, `explain` and `run` agree with `race`.
pub(crate) struct InputWalk<'a> {
    pub module: &'a SpirvModule,
    /// The options of the user.
    pub given: &'a AnalysisOptions,
    /// The options of the answer.
    pub own: &'a AnalysisOptions,
    pub mode: InputMode,
    /// The time limit.
    pub time: Duration,
}

impl InputWalk<'_> {
    /// Replaces the inputs that a clean answer depends on by those with which the walk finds something, if any.
    pub(crate) fn settle_clean_answer(&self, needs: &mut InputNeeds, model: &model::Model) {
        let open_inputs = self.with_limits(model, |given, limits| {
            frontend::deciding_inputs(self.module, (given, self.own), self.mode, limits)
        });
        if let Some(open_inputs) = open_inputs.flatten() {
            needs.inputs = open_inputs;
        }
    }

    /// Removes the dependence of findings on inputs if the walk finds one whatever the assumed values are.
    pub(crate) fn settle_findings(&self, needs: &mut InputNeeds, model: &model::Model) {
        if needs.decide_findings {
            let is_certain = self.with_limits(model, |given, limits| {
                frontend::has_certain_finding(self.module, given, self.mode, limits)
            });
            needs.decide_findings = is_certain != Some(true);
        }
    }

    /// Calls a function with the user's options and the limits of the walk; `None` if the model has no walk.
    fn with_limits<T>(
        &self,
        model: &model::Model,
        walk: impl FnOnce(&AnalysisOptions, (&model::Model, Budget<'_>)) -> T,
    ) -> Option<T> {
        if !is_interpreter_model(model) {
            return None;
        }
        let (until, stop) = (DeadlinePredicate::new(stop_after(self.time)), stop_after(self.time));
        let given = AnalysisOptions { deadline: Some(until), ..self.given.clone() };
        Some(walk(&given, (model, Budget::until(&stop))))
    }
}

/// The part of the time that the search for inputs may take.
const SEARCH_TIME_DIVISOR: u32 = 4;

/// Replaces an answer that depends on inputs that no option supplies.
fn apply_needed_inputs(file: &str, checked: &mut CheckResult, mut needs: InputNeeds) {
    let CheckResult::Answered(line, warnings, outcome) = checked else { return };
    if line.two_workgroup_finding.is_some() && !needs.inputs.iter().any(|needed| needed.name == "grid") {
        needs.inputs.push(NeededInput::missing_grid());
    }
    let has_findings = line.findings.as_ref().is_some_and(|all| !all.is_empty());
    if needs.inputs.is_empty()
        || has_findings && !needs.decide_findings
        || !has_findings && line.race == RaceWord::Racy
    {
        return;
    }
    let is_assertion_broken =
        line.queries.iter().any(|query| query.expected.is_some() && query.holds == Some(false));
    (line.race, line.findings) = (RaceWord::NeedsInputs, Some(Vec::new()));
    *outcome = if is_assertion_broken { CommandOutcome::RuleBroken } else { CommandOutcome::Environment };
    line.needs = needs.inputs.into_iter().map(needed_record).collect();
    warnings.extend(line.needs.iter().map(|needed| format!("{file}: {}", needed.to_sentence())));
}

/// Returns the line of an entry point for which both the lifter and the interpreter ran out of time, with
/// the reason `why`.
fn timed_out_result(
    file: &str,
    options: &AnalysisOptions,
    model: &model::Model,
    (started, why): (Instant, String),
) -> CheckResult {
    let queries = options.assertion.iter();
    let queries =
        queries.map(|claim| Query { text: format!("forall ({claim})"), holds: None, expected: Some(true) });
    let entry = options.entry.as_deref().unwrap_or("main");
    let line = CheckLine {
        queries: queries.collect(),
        findings: Some(Vec::new()),
        bound: options.unroll.unwrap_or(options.max_open_iterations()),
        ..entry_line(file, entry, model, Race::Unknown, started)
    };
    CheckResult::Answered(Box::new(line), vec![format!("{file}: {why}")], CommandOutcome::Environment)
}

/// The answer about a shader, and true if it leaves every question open.
type EntryPointAnswer = (Result<CheckResult, String>, bool);

/// Repeats a question with larger loop bounds while an unknown answer is due to the bound and time remains.
fn retry_with_larger_bounds(
    options: &AnalysisOptions,
    check_options: CheckOptions,
    started: Instant,
    answer: impl Fn(&AnalysisOptions) -> Result<EntryPointAnswer, Refusal>,
) -> Result<EntryPointAnswer, Refusal> {
    let mut best = answer(options)?;
    for bodies in RETRY_LOOP_BOUNDS {
        let is_cut = best.0.as_ref().is_ok_and(is_cut_short);
        if !is_cut || options.unroll.is_some() || started.elapsed() > check_options.timeout / 4 {
            break;
        }
        match answer(&AnalysisOptions { max_open_iterations: Some(bodies), ..options.clone() }) {
            Ok(deeper) if deeper.0.as_ref().is_ok_and(|deeper| !leaves_unknown(deeper)) => return Ok(deeper),
            Ok(deeper) if deeper.0.as_ref().is_ok_and(is_cut_short) => best = deeper,
            // More bodies exceed the time or the lifter: keep the answer with fewer.
            Ok(_) | Err(_) => break,
        }
    }
    Ok(best)
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
    file: &'a str,
    module: &'a SpirvModule,
    /// The compiler, if the file is source code.
    compiler: Option<&'a str>,
    options: &'a AnalysisOptions,
    lifted: &'a Lifted,
}

impl LiftedEntryPoint<'_> {
    fn check_with_model(
        &self,
        model: &model::Model,
        check_options: CheckOptions,
        started: Instant,
    ) -> Result<CheckResult, String> {
        let lifted = self.lifted;
        let stop = stop_after(check_options.timeout.saturating_sub(started.elapsed()));
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
        if findings.is_empty() && check_options.progress.is_none() {
            findings.extend(self.findings_outside_model(model));
        }
        let mut outcome =
            if findings.is_empty() { CommandOutcome::Success } else { CommandOutcome::RuleBroken };
        let mut warnings: Vec<String> =
            self.notes().iter().map(|note| format!("{}: {note}", self.file)).collect();
        warnings.push(format!("{}: {}", self.file, self.describe_coverage()));
        let probes_two_workgroups = findings.is_empty() && lifted.question.is_none();
        let two_workgroup_finding = if probes_two_workgroups {
            frontend::find_with_two_workgroups(self.module, self.options)
        } else {
            None
        };
        warnings.extend(two_workgroup_finding.iter().map(|wider| format!("{}: {wider}", self.file)));
        if answer.is_out_of_time {
            warnings
                .push(format!("{}: warning: not everything was answered within the time limit", self.file));
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
                warnings.push(format!("{}: `{}` does not hold", self.file, query.text));
            } else if query.holds.is_none() {
                outcome.escalate_to(CommandOutcome::Environment);
                warnings.push(format!("{}: `{}` has no answer", self.file, query.text));
            }
        }
        let progress = self.check_progress(model, check_options, budget, answer.race)?;
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
            compiler: self.compiler.map(str::to_owned),
            two_workgroup_finding,
            ..entry_line(self.file, &lifted.entry, model, answer.race, started)
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
    fn findings_outside_model(&self, model: &model::Model) -> Vec<FindingRecord> {
        if !is_interpreter_model(model) {
            return Vec::new();
        }
        let found = frontend::findings_outside_model(self.module, self.options);
        found.iter().map(|found| finding_record(self.file, self.module, found)).collect()
    }

    /// Returns the notes about how the shader was read.
    fn notes(&self) -> Vec<String> {
        let compiled = self.compiler.map(|compiler| format!("compiled by {compiler}"));
        compiled.into_iter().chain(self.lifted.notes.iter().cloned()).collect()
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
        let (file, line) = source_location(self.file, self.module, spot.line, spot.place);
        let invocation = self.lifted.invocations.get(usize::from(spot.thread));
        FindingPlace {
            file: Some(file),
            line,
            invocation: invocation.map(ToString::to_string),
            access: spot.writes.map(|writes| if writes { "write" } else { "read" }.to_owned()),
        }
    }

    fn finding_places(&self, at: &[Spot]) -> Vec<FindingPlace> {
        at.iter().map(|spot| self.finding_place(spot)).collect()
    }

    fn lift_finding_record(&self, finding: &LiftFinding) -> FindingRecord {
        FindingRecord::new(finding.kind.name(), finding.message.clone(), self.finding_places(&finding.at))
    }

    fn check_progress(
        &self,
        model: &model::Model,
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
            let answer = check_termination(&case.test, model, progress_model, *fairness, &limits);
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

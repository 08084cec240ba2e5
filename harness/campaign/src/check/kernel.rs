//! Checks shaders: one line for each entry point.
//!
//! The answer of `race` ([`EntryPoint::find_races`]) decides about findings. The lifter and the model answer for one
//! choice of inputs what it leaves open: claims, termination, other models, and races that schedules decide.
//! [`PartialAnswer::combine`] holds the precedence of both.

pub mod explain;
mod undecided;

use std::time::{Duration, Instant};

use analysis::{EntryAnswer, InputGrid, ProofMode, invalid_use_texts, placed_refusal_text, refusal_text};
use entry_point::{
    AnalysisOptions, DEFAULT_UNROLL, DeadlinePredicate, FindingKind, LiftFinding, Refusal, Spot,
    source_location,
};
use litmus::Race;
use model::Budget;
use model::progress::{ProgressLimits, check_termination};
use results::wire::{
    CHECK_SCHEMA, CheckLine, CoverageLimit, Executions, FindingPlace, FindingRecord, ProgressAnswer, Query,
    RaceLine, RaceVerdict, RaceWord, RejectedLine, ScheduleReason,
};
use results::write::race::{describe_coverage, describe_limit, describe_need};
use spirv_reader::SourcePosition;
use symbolic::{Lifted, ModelQuery};

use self::undecided::describe_refusal;
use super::{CheckOptions, CheckResult};
use crate::shader::shader_analysis::{ChosenEntryPoint, EntryPoint, read_entry_points};
use crate::shader::source::{SourceError, SourceModule, shader_stem};
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
            let (line, column) = error.position().unwrap_or((1, 1));
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
        let entry =
            EntryPoint { file, source: &shader, module: &module, model, given, mode: check_options.inputs };
        match check_entry_point(entry, check_options) {
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
fn check_entry_point(entry: EntryPoint<'_>, check_options: CheckOptions) -> Result<CheckResult, Refusal> {
    let started = Instant::now();
    entry_point::question::check_claim(entry.module, entry.given)?;
    EntryPointCheck { entry, check_options, started }.answer()
}

/// The part of the time that the search for inputs may take.
const SEARCH_TIME_DIVISOR: u32 = 4;

/// The check of an entry point.
struct EntryPointCheck<'a> {
    entry: EntryPoint<'a>,
    check_options: CheckOptions,
    started: Instant,
}

/// The answer of one engine, with notes about its scope.
struct PartialAnswer {
    line: CheckLine,
    notes: Vec<String>,
}

/// The answer of the model, or why it has none.
type ModelAnswer = Result<PartialAnswer, String>;

impl PartialAnswer {
    fn findings(&self) -> &[FindingRecord] {
        self.line.findings.as_deref().unwrap_or_default()
    }

    /// Returns true if nothing was found and races are undecided.
    fn is_open(&self) -> bool {
        self.line.race == RaceWord::Unknown && self.findings().is_empty()
    }

    /// Returns true if the race or a query is undecided.
    fn leaves_unknown(&self) -> bool {
        self.line.race == RaceWord::Unknown || self.line.queries.iter().any(|query| query.holds.is_none())
    }

    /// Returns true if an answer is undecided and runs were cut off at the loop bound.
    fn is_cut_short(&self) -> bool {
        self.line.cut > 0 && self.leaves_unknown()
    }

    /// Adds the answer of the model for one choice of inputs to that of the analysis.
    ///
    /// Findings of the analysis come first, then the inputs that it needs, then findings of the model, then the inputs
    /// that these or a claim depend on.
    fn combine(self, by_model: PartialAnswer) -> PartialAnswer {
        let PartialAnswer { line: walked, mut notes } = self;
        let is_open = walked.race == RaceWord::Unknown && walked.findings.as_ref().is_none_or(Vec::is_empty);
        let depends = !by_model.line.queries.is_empty() || is_open && !by_model.findings().is_empty();
        let new_notes: Vec<String> =
            by_model.notes.into_iter().filter(|note| !notes.contains(note)).collect();
        notes.extend(new_notes);
        let CheckLine { race, findings, .. } = if is_open { &by_model.line } else { &walked };
        let (race, findings) = (*race, findings.clone());
        let is_settled = !walked.needs.is_empty() || !is_open && findings.iter().any(|all| !all.is_empty());
        let needs = if depends && !is_settled { by_model.line.needs } else { walked.needs };
        let (compiler, two_workgroup_finding) = (walked.compiler, walked.two_workgroup_finding);
        let line = CheckLine { race, findings, needs, compiler, two_workgroup_finding, ..by_model.line };
        PartialAnswer { line, notes }
    }

    /// Concludes: broken claims and findings, then needed inputs, then undecided claims.
    fn conclude(self, file: &str, no_answer_reason: &str) -> CheckResult {
        let PartialAnswer { mut line, notes } = self;
        let mut notes: Vec<String> = notes.iter().map(|note| format!("{file}: {note}")).collect();
        if !line.needs.is_empty() {
            (line.race, line.findings) = (RaceWord::NeedsInputs, Some(Vec::new()));
            notes.extend(line.needs.iter().map(|needed| format!("{file}: {}", describe_need(needed))));
        }
        // As for `race`, an order that only the compiler lost is a warning.
        let mut outcome = match line.findings.iter().flatten().any(|found| !found.is_of_compiler()) {
            true => CommandOutcome::RuleBroken,
            false if line.needs.is_empty() => CommandOutcome::Success,
            false => CommandOutcome::Environment,
        };
        for query in line.queries.iter().filter(|query| query.expected.is_some()) {
            if query.holds == Some(false) {
                outcome.escalate_to(CommandOutcome::RuleBroken);
                notes.push(format!("{file}: `{}` does not hold", query.text));
            } else if query.holds.is_none() {
                outcome.escalate_to(CommandOutcome::Environment);
                notes.push(format!("{file}: `{}` has no answer{no_answer_reason}", query.text));
            }
        }
        CheckResult::Answered(Box::new(line), notes, outcome)
    }
}

/// Returns true if an analysis without findings covers every schedule.
fn covers_every_schedule(line: &RaceLine) -> bool {
    if line.proof.as_ref().is_some_and(|proof| proof.conditions.is_empty()) {
        return true;
    }
    let is_every = |reason| match reason {
        None | Some(ScheduleReason::PartialSubgroups) => true,
        Some(ScheduleReason::Interlock | ScheduleReason::Atomics | ScheduleReason::Limit) => false,
    };
    line.coverage.schedules.as_ref().is_some_and(|schedules| is_every(schedules.reason))
}

impl EntryPointCheck<'_> {
    fn remaining_time(&self) -> Duration {
        self.check_options.timeout.saturating_sub(self.started.elapsed())
    }

    /// Returns a line without findings.
    fn entry_line(&self, entry: &str) -> CheckLine {
        let EntryPoint { file, model, source, .. } = self.entry;
        let stem = shader_stem(file);
        CheckLine {
            schema: CHECK_SCHEMA.to_owned(),
            id: format!("{stem}:{entry}"),
            file: file.to_owned(),
            name: entry.to_owned(),
            model: model.name().to_owned(),
            race: RaceWord::Unknown,
            findings: Some(Vec::new()),
            compiler: source.compiler.clone(),
            micros: u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX),
            outcomes_listed: Some(false),
            ..CheckLine::default()
        }
    }

    /// Answers by the analysis of `race`, and by the model about what it leaves open.
    ///
    /// # Errors
    /// The refusal of the lifter, or that of the interpreter if it says more.
    fn answer(&self) -> Result<CheckResult, Refusal> {
        let EntryPoint { file, given, .. } = self.entry;
        // The analysis knows only the newest model, and no fairness.
        let can_walk = self.entry.is_model_of_walk() && self.check_options.progress.is_none();
        let mut walked = (can_walk && !self.entry.is_annotated()).then(|| self.answer_by_walk());
        if given.assertion.is_none()
            && matches!(&walked, Some(Ok(answer)) if !answer.is_open())
            && let Some(Ok(answer)) = walked
        {
            return Ok(answer.conclude(file, ""));
        }
        let search_time = self.check_options.timeout / SEARCH_TIME_DIVISOR;
        let chosen = self.entry.choose_inputs(InputGrid::One, Some(search_time))?;
        let by_model = self.answer_with_growing_bound(&chosen);
        let is_answer = |answer: &PartialAnswer| !answer.is_open() || !answer.line.queries.is_empty();
        if can_walk && walked.is_none() && !matches!(&by_model, Ok(Ok(answer)) if is_answer(answer)) {
            walked = Some(self.answer_by_walk());
        }
        let (walked, walk_refusal) = match walked {
            Some(Ok(answer)) => (Some(answer), None),
            Some(Err(refusal)) => (None, refusal),
            None => (None, None),
        };
        let no_answer_reason = match &by_model {
            Err(refusal) => describe_refusal(refusal),
            Ok(Err(why)) => format!(": {why}"),
            Ok(Ok(_)) => String::new(),
        };
        let is_open = match (&walked, &by_model) {
            (Some(walked), Ok(Ok(answer))) => walked.is_open() && answer.is_open(),
            (Some(answer), _) | (None, Ok(Ok(answer))) => answer.is_open(),
            (None, _) => false,
        };
        let limit = if is_open { self.describe_limit(&chosen, by_model.as_ref()) } else { None };
        let mut answer = match (walked, by_model) {
            (Some(walked), Ok(Ok(answer))) => walked.combine(answer),
            (None, Ok(Ok(answer))) => answer,
            (Some(PartialAnswer { line, notes }), _) => {
                PartialAnswer { line: CheckLine { queries: self.unanswered_queries(), ..line }, notes }
            }
            (None, Ok(Err(why))) => {
                return Ok(CheckResult::Rejected(RejectedSource::without_position(file, why)));
            }
            (None, Err(refusal)) => return self.result_without_answer(&chosen, refusal, walk_refusal),
        };
        answer.notes.extend(limit);
        Ok(answer.conclude(file, &no_answer_reason))
    }

    /// Answers by the analysis of `race`.
    ///
    /// # Errors
    /// The reason if it is refused or undecided.
    fn answer_by_walk(&self) -> Result<PartialAnswer, Option<Refusal>> {
        let mut answer = self.entry.find_races(self.remaining_time(), None);
        if answer.line.verdict == RaceVerdict::Clean && !covers_every_schedule(&answer.line) {
            // A proof is about every schedule.
            answer = self.entry.find_races_with(self.remaining_time(), None, ProofMode::Optional);
        }
        let EntryAnswer { line: mut found, refusal, needs, .. } = answer;
        // A claim is about the contents that it is checked with.
        let mut is_kept = needs
            .iter()
            .map(|need| self.entry.given.assertion.is_none() || !need.is_contents || !need.lines.is_empty());
        found.needs.retain(|_| is_kept.next() != Some(false));
        let is_race =
            |found: &FindingRecord| FindingKind::from_name(&found.kind).is_some_and(FindingKind::is_race);
        let race = match found.verdict {
            RaceVerdict::Refused | RaceVerdict::Undecided => return Err(refusal),
            RaceVerdict::NeedsInputs if found.needs.is_empty() => RaceWord::Unknown,
            RaceVerdict::NeedsInputs => RaceWord::NeedsInputs,
            RaceVerdict::Racy if found.findings.iter().any(is_race) => RaceWord::Racy,
            RaceVerdict::Clean if covers_every_schedule(&found) => RaceWord::Free,
            // After undefined behaviour, and for schedules that were not tried, the result is unknown.
            RaceVerdict::Clean | RaceVerdict::Racy => RaceWord::Unknown,
        };
        let coverage = describe_coverage(&found).map(|coverage| format!("`{}` for {coverage}", found.entry));
        let notes = self.entry.compiler_note().into_iter().chain(coverage).collect();
        let schedules = found.coverage.schedules.as_ref().map_or(0, |schedules| schedules.explored);
        let is_wider = |limit: &&CoverageLimit| matches!(limit, CoverageLimit::WiderGrid { .. });
        let line = CheckLine {
            race,
            executions: Executions { candidate: schedules, consistent: schedules },
            bound: self.entry.given.unroll.unwrap_or(DEFAULT_UNROLL),
            runs: schedules,
            two_workgroup_finding: found.coverage.limits.iter().find(is_wider).map(describe_limit),
            findings: Some(found.findings),
            needs: found.needs,
            ..self.entry_line(&found.entry)
        };
        Ok(PartialAnswer { line, notes })
    }

    /// Answers by the model, with larger loop bounds while an unknown answer is due to the bound and time
    /// remains.
    fn answer_with_growing_bound(&self, chosen: &ChosenEntryPoint<'_>) -> Result<ModelAnswer, Refusal> {
        let options = &chosen.options;
        let mut best = self.answer_by_model(chosen, options)?;
        for bodies in RETRY_LOOP_BOUNDS {
            let is_cut = best.as_ref().is_ok_and(PartialAnswer::is_cut_short);
            let time = self.check_options.timeout / 4;
            if !is_cut || options.unroll.is_some() || self.started.elapsed() > time {
                break;
            }
            let longer = AnalysisOptions { max_open_iterations: Some(bodies), ..options.clone() };
            match self.answer_by_model(chosen, &longer) {
                Ok(Ok(deeper)) if !deeper.leaves_unknown() => return Ok(Ok(deeper)),
                Ok(Ok(deeper)) if deeper.is_cut_short() => best = Ok(deeper),
                // More bodies exceed the time or the lifter: keep the answer with fewer.
                Ok(_) | Err(_) => break,
            }
        }
        Ok(best)
    }

    fn answer_by_model(
        &self,
        chosen: &ChosenEntryPoint<'_>,
        options: &AnalysisOptions,
    ) -> Result<ModelAnswer, Refusal> {
        let deadline = Some(DeadlinePredicate::new(stop_after(self.remaining_time())));
        let lifted = symbolic::lift(self.entry.module, &AnalysisOptions { deadline, ..options.clone() })?;
        let lifted_entry = LiftedEntryPoint { entry: self.entry, options, lifted: &lifted };
        Ok(lifted_entry.check_with_model(self).map(|PartialAnswer { mut line, mut notes }| {
            notes.extend(chosen.choice_note());
            let has_findings = line.findings.as_ref().is_some_and(|all| !all.is_empty());
            line.needs = chosen.needed_inputs(has_findings, || false);
            PartialAnswer { line, notes }
        }))
    }

    /// Returns the claims without an answer.
    fn unanswered_queries(&self) -> Vec<Query> {
        let claims = self.entry.given.assertion.iter();
        let query = |claim| Query { text: format!("forall ({claim})"), holds: None, expected: Some(true) };
        claims.map(query).collect()
    }

    /// Returns the result if neither the model nor the interpreter has an answer: it is undecided if a limit of
    /// time or steps is the reason.
    ///
    /// # Errors
    /// The refusal of the lifter, or that of the interpreter if it says more.
    fn result_without_answer(
        &self,
        chosen: &ChosenEntryPoint<'_>,
        refusal: Refusal,
        walk_refusal: Option<Refusal>,
    ) -> Result<CheckResult, Refusal> {
        // The grid may be too large for the model while another limit stops the interpreter.
        let is_exhausted = refusal.what.is_exhausted();
        let walk_refusal =
            walk_refusal.filter(|why| why.what.is_exhausted() || !is_exhausted && refusal.what.is_limit());
        let why = match walk_refusal {
            None if is_exhausted => self.describe_limit(chosen, Err(&refusal)).unwrap_or_default(),
            Some(why) if is_exhausted || why.what.is_exhausted() => self.describe_interpreter_limit(&why),
            walk_refusal => return Err(walk_refusal.unwrap_or(refusal)),
        };
        let (file, options) = (self.entry.file, &chosen.options);
        let line = CheckLine {
            queries: self.unanswered_queries(),
            bound: options.unroll.unwrap_or(options.max_open_iterations()),
            ..self.entry_line(options.entry.as_deref().unwrap_or("main"))
        };
        Ok(CheckResult::Answered(Box::new(line), vec![format!("{file}: {why}")], CommandOutcome::Environment))
    }
}

/// Loop bounds to try after the default one.
const RETRY_LOOP_BOUNDS: [u32; 2] = [4, 8];

struct LiftedEntryPoint<'a> {
    entry: EntryPoint<'a>,
    /// The options of the lifter.
    options: &'a AnalysisOptions,
    lifted: &'a Lifted,
}

impl LiftedEntryPoint<'_> {
    fn check_with_model(&self, check: &EntryPointCheck<'_>) -> Result<PartialAnswer, String> {
        let lifted = self.lifted;
        let stop = stop_after(check.remaining_time());
        let budget = Budget::until(&stop);
        let query = ModelQuery { budget, decide_race: true, decide_question: true, locate_race: true };
        let answer = symbolic::answer_with_model(lifted, self.entry.model, &query);
        let answer = answer.map_err(|error| error.to_string())?;
        let race = match &answer.race_spot {
            Some(found) => Some((found.describe(&lifted.invocations), self.finding_places(&found.at))),
            None if answer.race == Race::Racy => {
                Some(("data race at an unknown place (the time limit was reached)".to_owned(), Vec::new()))
            }
            None => None,
        };
        let race = race.map(|(message, at)| FindingRecord::new("race", message, at));
        let found = answer.findings.iter().map(|finding| self.lift_finding_record(finding));
        let mut notes: Vec<String> = self.notes().into_iter().chain([self.describe_coverage()]).collect();
        if answer.is_out_of_time {
            notes.push("warning: not everything was answered within the time limit".to_owned());
        }
        // A claim on the command line is expected to hold.
        let expected = self.options.assertion.as_ref().map(|_| true);
        let query = |text: &String| Query { text: text.clone(), holds: answer.holds, expected };
        let line = CheckLine {
            race: answer.race.into(),
            queries: lifted.question.iter().map(query).collect(),
            executions: Executions {
                candidate: answer.candidate_executions,
                consistent: answer.consistent_executions,
            },
            bound: self.options.unroll.unwrap_or(self.options.max_open_iterations()),
            cut: answer.cut_off_runs,
            runs: answer.runs,
            progress: self.check_progress(check.check_options, budget, answer.race)?,
            findings: Some(race.into_iter().chain(found).collect()),
            ..check.entry_line(&lifted.entry)
        };
        Ok(PartialAnswer { line, notes })
    }

    /// Returns the notes about how the shader was read.
    fn notes(&self) -> Vec<String> {
        self.entry.compiler_note().into_iter().chain(self.lifted.notes.iter().cloned()).collect()
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
        let (file, line) = source_location(self.entry.file, self.entry.module, spot.line, spot.place);
        let invocation = self.lifted.invocations.get(usize::from(spot.thread));
        FindingPlace {
            file: Some(file),
            line,
            instruction: line.is_none().then(|| self.entry.module.describe_instruction(spot.place)).flatten(),
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
            ..ProgressAnswer::default()
        };
        if race == Race::Racy {
            progress_answer.why = Some("the program races: its behaviour is undefined".to_owned());
            return Ok(Some(progress_answer));
        }
        progress_answer.terminates = Some(true);
        for case in &self.lifted.cases {
            let limits = ProgressLimits::with_budget(budget);
            let answer = check_termination(&case.test, self.entry.model, progress_model, *fairness, &limits);
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

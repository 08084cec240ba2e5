//! Checks shaders: one line for each entry point.
//!
//! The lifter translates an entry point to litmus tests that the model answers. If that leaves a question
//! open, the grid interpreter ([`WalkedEntryPoint`]) executes the whole grid.

pub mod explain;

use std::time::Instant;

use answers::{finding_record, needed_record, placed_refusal_text, refusal_text, source_location};
use frontend::grid::NeededInput;
use frontend::{
    AnalysisOptions, FindingKind, InputGrid, InputNeeds, LiftFinding, Lifted, ModelQuery, Refusal,
    SourcePosition, SpirvModule, Spot, Until,
};
use litmus::Race;
use model::Budget;
use model::progress::{ProgressLimits, check_termination};
use results::wire::{
    CheckLine, Executions, FindingPlace, FindingRecord, ProgressAnswer, Query, RaceWord, RejectedLine,
};

use super::entry::entry_line;
use super::undecided::{self, Undecided};
use super::walked::{WalkedEntryPoint, has_walk};
use super::{CheckOptions, Checked};
use crate::patience::patience;
use crate::shader::entries;
use crate::shader::source::{Compilation, SourceError, SourceModule, load_all};
use crate::source::Rejected;
use crate::{CommandOutcome, Failure};

/// Checks every entry point of a shader, or the one in `options`.
pub fn check(
    file: &str,
    given: &Compilation,
    options: &AnalysisOptions,
    model: &model::Model,
    asked: CheckOptions,
) -> Vec<Checked> {
    let modules = load_all(file, given).into_iter();
    modules.flat_map(|module| check_module(file, module, options, model, asked)).collect()
}

/// Checks the entry points of a module.
pub fn check_module(
    file: &str,
    shader: Result<SourceModule, SourceError>,
    options: &AnalysisOptions,
    model: &model::Model,
    asked: CheckOptions,
) -> Vec<Checked> {
    let refused = |refusal: &Refusal| {
        let line = match refusal.place {
            SourcePosition::Line(line) => line.max(1),
            SourcePosition::Word(_) | SourcePosition::Module => 1,
        };
        let failure = Failure::input_message(placed_refusal_text(file, refusal));
        let error = refusal_text(&Refusal { place: SourcePosition::Module, ..refusal.clone() });
        let line = RejectedLine { file: file.to_owned(), error, line, column: 1 };
        Checked::Rejected(Rejected { line, failure })
    };
    let rejected = |error: String| Checked::Rejected(Rejected::whole(file, error));
    let shader = match shader {
        Ok(shader) => shader,
        Err(error) => {
            let (line, column) = error.place();
            let line = RejectedLine { file: file.to_owned(), error: error.to_string(), line, column };
            return vec![Checked::Rejected(Rejected { line, failure: error.failure() })];
        }
    };
    let module = match frontend::read_bound_module(&shader.bytes, options) {
        Ok(module) => module,
        Err(refusal) => return vec![refused(&refusal)],
    };
    let entries = match entries(file, &module, &shader.unset, options) {
        Ok(entries) => entries,
        Err(refusal) => return vec![refused(&refusal)],
    };
    if entries.is_empty() {
        return vec![rejected(module.no_entry_point())];
    }
    let invalid: Vec<String> = frontend::invalid_uses(&module)
        .iter()
        .map(|one| {
            let (file, line) = source_location(file, &module, one.at.line, one.at.place);
            let line = line.map_or(String::new(), |line| format!(":{line}"));
            format!("{file}{line}: invalid SPIR-V: {}", one.message)
        })
        .collect();
    // A module that is also refused has no answer to warn about.
    let refused = |refusal: &Refusal| {
        let mut checked = refused(refusal);
        if let (false, Checked::Rejected(rejected)) = (invalid.is_empty(), &mut checked) {
            let all = invalid.join("; ");
            rejected.failure = Failure::input_message(format!("{}; {all}", rejected.failure.report()));
            rejected.line.error = format!("{}; {all}", rejected.line.error);
        }
        checked
    };
    entries
        .into_iter()
        .map(|given| {
            let started = Instant::now();
            let options = given.clone();
            if let Err(refusal) = frontend::check_claim(&module, &options) {
                return refused(&refusal);
            }
            let until = Until::new(patience(asked.timeout / SEARCH_PART));
            let searched = AnalysisOptions { deadline: Some(until), ..options.clone() };
            let choice = match frontend::choose_inputs(&module, &searched, asked.inputs, InputGrid::One) {
                Ok(choice) => choice,
                Err(refusal) => return refused(&refusal),
            };
            let chosen = choice.description(&options);
            let options = choice.primary(&options);
            let compiler = shader.compiler.as_deref();
            // The grid interpreter takes the cases that are too large for the lifter or that the model leaves
            // open.
            let walked = WalkedEntryPoint { file, module: &module, compiler, options: &options };
            let lifted = |options: &AnalysisOptions| -> Result<_, Refusal> {
                let until = Some(Until::new(patience(asked.timeout.saturating_sub(started.elapsed()))));
                let lifted =
                    frontend::lift(&module, &AnalysisOptions { deadline: until, ..options.clone() })?;
                let kernel = LiftedEntryPoint { file, module: &module, compiler, options, lifted: &lifted };
                let answered = kernel.answered(model, asked, started);
                let open = answered.as_ref().map_or(true, |answered| kernel.leaves_open(answered));
                Ok((answered, open))
            };
            let found = deepened(&options, asked, started, lifted);
            let open = found.as_ref().map_or(true, |(_, open)| *open);
            let lacks = match &found {
                Err(refusal) => undecided::lacks(refusal),
                Ok((answered, _)) => {
                    answered.as_ref().err().map(|why| format!(": {why}")).unwrap_or_default()
                }
            };
            let (walked, why) = match open.then(|| walked.answered(model, asked, started, &lacks)) {
                Some(Ok(walked)) => (Some(walked), None),
                Some(Err(why)) => (None, why),
                None => (None, None),
            };
            let walked = walked.filter(|walked| !walked.is_unknown() || !matches!(&found, Ok((Ok(_), _))));
            let unknown = match (&walked, &found) {
                (Some(checked), _) | (None, Ok((Ok(checked), _))) => checked.is_unknown(),
                (None, _) => false,
            };
            let undecided = Undecided { module: &module, options: &options, model, timeout: asked.timeout };
            // If a finding exists, a reason that the model cannot answer does not matter.
            let wrong = walked.as_ref().is_some_and(Checked::has_findings);
            let told = !(wrong && matches!(&found, Err(refusal) if !refusal.what.is_limit()));
            let asks = || undecided.words(found.as_ref().map(|(answered, _)| answered));
            let words = (unknown && told).then(asks);
            let mut checked = match (walked, found) {
                (Some(walked), _) => walked,
                (None, Ok((answered, _))) => answered.unwrap_or_else(rejected),
                (None, Err(refusal)) => {
                    // The grid may be too large for the model while another limit stops the interpreter.
                    let exhausted = refusal.what.is_exhausted();
                    let told =
                        why.filter(|why| why.what.is_exhausted() || !exhausted && refusal.what.is_limit());
                    match told {
                        None if exhausted => {
                            let words = undecided.words(Err(&refusal)).unwrap_or_default();
                            endless(file, &options, model, (started, words))
                        }
                        Some(why) if exhausted || why.what.is_exhausted() => {
                            endless(file, &options, model, (started, undecided.walk(&why)))
                        }
                        told => refused(&told.unwrap_or(refusal)),
                    }
                }
            };
            if let (Some(words), Checked::Answered(_, warnings, _)) = (words.flatten(), &mut checked) {
                warnings.push(format!("{file}: {words}"));
            }
            if let (false, Checked::Answered(_, warnings, _)) = (chosen.is_empty(), &mut checked) {
                warnings.push(format!("{file}: inputs chosen by the tool: {chosen}"));
            }
            let mut needs = choice.needs(&module);
            if checked.is_clean() && asked.progress.is_none() && has_walk(model) {
                let left = asked.timeout.saturating_sub(started.elapsed());
                let (until, stop) = (Some(Until::new(patience(left))), patience(left));
                let given = AnalysisOptions { deadline: until, ..given };
                let limits = (model, Budget::until(&stop));
                let open = frontend::open_inputs(&module, (&given, &options), asked.inputs, limits);
                needs.inputs = open.unwrap_or(needs.inputs);
            }
            note_needs(file, &mut checked, needs);
            if let Checked::Answered(_, warnings, _) = &mut checked {
                warnings.splice(0..0, invalid.iter().cloned());
            }
            checked
        })
        .collect()
}

/// The part of the time that the search for inputs may take.
const SEARCH_PART: u32 = 4;

/// Replaces an answer that depends on inputs that no option supplies.
fn note_needs(file: &str, checked: &mut Checked, mut needs: InputNeeds) {
    let Checked::Answered(line, warnings, outcome) = checked else { return };
    if line.two_workgroup_finding.is_some() && !needs.inputs.iter().any(|needed| needed.name == "grid") {
        needs.inputs.push(NeededInput::grid());
    }
    let finds = line.findings.as_ref().is_some_and(|all| !all.is_empty());
    if needs.inputs.is_empty() || finds && !needs.decide_findings || !finds && line.race == RaceWord::Racy {
        return;
    }
    let broken = line.queries.iter().any(|query| query.expected.is_some() && query.holds == Some(false));
    (line.race, line.findings) = (RaceWord::NeedsInputs, Some(Vec::new()));
    *outcome = if broken { CommandOutcome::RuleBroken } else { CommandOutcome::Environment };
    line.needs = needs.inputs.into_iter().map(needed_record).collect();
    warnings.extend(line.needs.iter().map(|needed| format!("{file}: {}", needed.to_sentence())));
}

/// Returns the line of an entry point for which both the lifter and the interpreter ran out of time, with
/// `why`.
fn endless(
    file: &str,
    options: &AnalysisOptions,
    model: &model::Model,
    (started, why): (Instant, String),
) -> Checked {
    let queries = options.assertion.iter();
    let queries =
        queries.map(|claim| Query { text: format!("forall ({claim})"), holds: None, expected: Some(true) });
    let entry = options.entry.as_deref().unwrap_or("main");
    let line = CheckLine {
        queries: queries.collect(),
        findings: Some(Vec::new()),
        bound: options.unroll.unwrap_or(options.open_bodies()),
        ..entry_line(file, entry, model, Race::Unknown, started)
    };
    Checked::Answered(Box::new(line), vec![format!("{file}: {why}")], CommandOutcome::Environment)
}

/// The answer about a shader, and true if it leaves every question open.
type Answered = (Result<Checked, String>, bool);

/// Repeats a question with larger loop bounds while an unknown answer is due to the bound and time remains.
fn deepened(
    options: &AnalysisOptions,
    asked: CheckOptions,
    started: Instant,
    ask: impl Fn(&AnalysisOptions) -> Result<Answered, Refusal>,
) -> Result<Answered, Refusal> {
    let mut found = ask(options)?;
    for bodies in OPEN_BODIES {
        let cut = found.0.as_ref().is_ok_and(is_cut_short);
        if !cut || options.unroll.is_some() || started.elapsed() > asked.timeout / 4 {
            break;
        }
        match ask(&AnalysisOptions { open_bodies: Some(bodies), ..options.clone() }) {
            Ok(deeper) if deeper.0.as_ref().is_ok_and(|deeper| !leaves_unknown(deeper)) => return Ok(deeper),
            Ok(deeper) if deeper.0.as_ref().is_ok_and(is_cut_short) => found = deeper,
            // More bodies exceed the time or the lifter: keep the answer with fewer.
            Ok(_) | Err(_) => break,
        }
    }
    Ok(found)
}

/// Loop bounds to try after the default one.
const OPEN_BODIES: [u32; 2] = [4, 8];

/// Returns true if the race or a query is undecided.
fn leaves_unknown(checked: &Checked) -> bool {
    match checked {
        Checked::Answered(line, ..) => {
            line.race == RaceWord::Unknown || line.queries.iter().any(|query| query.holds.is_none())
        }
        _ => false,
    }
}

/// Returns true if an answer is undecided and runs were cut off at the loop bound.
fn is_cut_short(checked: &Checked) -> bool {
    matches!(checked, Checked::Answered(line, ..) if line.cut > 0) && leaves_unknown(checked)
}

/// A lifted entry point.
struct LiftedEntryPoint<'a> {
    file: &'a str,
    module: &'a SpirvModule,
    /// The compiler, if the file is source code.
    compiler: Option<&'a str>,
    options: &'a AnalysisOptions,
    lifted: &'a Lifted,
}

impl LiftedEntryPoint<'_> {
    fn answered(
        &self,
        model: &model::Model,
        asked: CheckOptions,
        started: Instant,
    ) -> Result<Checked, String> {
        let lifted = self.lifted;
        let stop = patience(asked.timeout.saturating_sub(started.elapsed()));
        let budget = Budget::until(&stop);
        let asking = ModelQuery { budget, race: true, question: true, places: true };
        let answer =
            frontend::answer_with_model(lifted, model, &asking).map_err(|error| error.to_string())?;
        let race = match &answer.race_found {
            Some(found) => Some((found.describe(&lifted.invocations), self.places(&found.at))),
            None if answer.race == Race::Racy => {
                Some(("data race at an unknown place (the time limit was reached)".to_owned(), Vec::new()))
            }
            None => None,
        };
        let mut findings: Vec<FindingRecord> =
            race.into_iter().map(|(message, at)| FindingRecord::new("race", message, at)).collect();
        findings.extend(answer.findings.iter().map(|finding| self.finding(finding)));
        if findings.is_empty() && asked.progress.is_none() {
            findings.extend(self.beside_races(model));
        }
        let mut outcome =
            if findings.is_empty() { CommandOutcome::Success } else { CommandOutcome::RuleBroken };
        let mut warnings: Vec<String> =
            self.notes().iter().map(|note| format!("{}: {note}", self.file)).collect();
        warnings.push(format!("{}: {}", self.file, self.coverage()));
        let asks_wider = findings.is_empty() && lifted.question.is_none();
        let wider = if asks_wider { frontend::wider(self.module, self.options) } else { None };
        warnings.extend(wider.iter().map(|wider| format!("{}: {wider}", self.file)));
        if answer.out_of_time {
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
        let progress = self.progress(model, asked, budget, answer.race)?;
        let line = CheckLine {
            queries,
            executions: Executions {
                candidate: answer.candidate_executions,
                consistent: answer.consistent_executions,
            },
            bound: self.options.unroll.unwrap_or(self.options.open_bodies()),
            cut: answer.cut,
            runs: answer.runs,
            progress,
            findings: Some(findings),
            compiler: self.compiler.map(str::to_owned),
            two_workgroup_finding: wider,
            ..entry_line(self.file, &lifted.entry, model, answer.race, started)
        };
        Ok(Checked::Answered(Box::new(line), warnings, outcome))
    }

    /// Returns true if the interpreter may answer more, because every question is open and no loop bound was
    /// given.
    fn leaves_open(&self, answered: &Checked) -> bool {
        let Checked::Answered(line, ..) = answered else { return true };
        // The interpreter continues after a barrier that not every invocation reaches.
        let divergent = FindingKind::DivergentBarrier.name();
        let nowhere = |found: &FindingRecord| found.at.is_empty() || found.kind == divergent;
        let nothing = line.findings.as_ref().is_none_or(|all| all.iter().all(nowhere));
        let open = answered.is_unknown() || line.race == RaceWord::Racy;
        open && nothing && line.queries.is_empty() && self.options.unroll.is_none()
    }

    /// Returns the findings other than races that only the interpreter sees: endless loops and uninitialised
    /// reads.
    fn beside_races(&self, model: &model::Model) -> Vec<FindingRecord> {
        if !has_walk(model) {
            return Vec::new();
        }
        let found = frontend::beside_races(self.module, self.options);
        found.iter().map(|found| finding_record(self.file, self.module, found)).collect()
    }

    /// Returns the notes about how the shader was read.
    fn notes(&self) -> Vec<String> {
        let compiled = self.compiler.map(|compiler| format!("compiled by {compiler}"));
        compiled.into_iter().chain(self.lifted.notes.iter().cloned()).collect()
    }

    /// Describes which inputs, invocations and loop bounds the answer covers.
    fn coverage(&self) -> String {
        let count = self.lifted.invocations.len();
        let loops = match self.options.unroll {
            Some(bound) => format!("loops of at most {bound} iterations"),
            None => format!(
                "loops of known length not bounded, others at most {} iterations",
                self.options.open_bodies()
            ),
        };
        let values = if self.lifted.sampled {
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

    fn place(&self, spot: &Spot) -> FindingPlace {
        let (file, line) = source_location(self.file, self.module, spot.line, spot.place);
        let invocation = self.lifted.invocations.get(usize::from(spot.thread));
        FindingPlace {
            file: Some(file),
            line,
            invocation: invocation.map(ToString::to_string),
            access: spot.access.map(|writes| if writes { "write" } else { "read" }.to_owned()),
        }
    }

    fn places(&self, at: &[Spot]) -> Vec<FindingPlace> {
        at.iter().map(|spot| self.place(spot)).collect()
    }

    fn finding(&self, finding: &LiftFinding) -> FindingRecord {
        FindingRecord::new(finding.kind.name(), finding.message.clone(), self.places(&finding.at))
    }

    fn progress(
        &self,
        model: &model::Model,
        asked: CheckOptions,
        budget: Budget<'_>,
        race: Race,
    ) -> Result<Option<ProgressAnswer>, String> {
        let Some((promises, fairness)) = &asked.progress else { return Ok(None) };
        let mut all = ProgressAnswer {
            model: promises.to_string(),
            fairness: fairness.as_str().to_owned(),
            memory: "axioms".to_owned(),
            terminates: None,
            expected: None,
            why: None,
            schedule: Vec::new(),
        };
        if race == Race::Racy {
            all.why = Some("the program races: its behaviour is undefined".to_owned());
            return Ok(Some(all));
        }
        all.terminates = Some(true);
        for case in &self.lifted.cases {
            let limits = ProgressLimits::with_budget(budget);
            let answer = check_termination(&case.test, model, promises, *fairness, &limits);
            let answer = answer.map_err(|error| error.to_string())?;
            all.memory = answer.memory.as_str().to_owned();
            if answer.terminates != Some(true) {
                all.terminates = match (answer.terminates, all.terminates) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    _ => None,
                };
                all.why = answer.why;
            }
        }
        Ok(Some(all))
    }
}

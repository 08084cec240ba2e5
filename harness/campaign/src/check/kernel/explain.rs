//! Explains shaders: each finding, its cause and a fix.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use answers::placed_refusal_text;
use explanation::ShaderAnswer;
use frontend::{AnalysisOptions, FindingKind, InputGrid, InputMode, ModelQuery, RaceSpot, Refusal};
use litmus::Race;
use model::Budget;
use results::wire::{ChangeRecord, FindingRecord, RaceLine};
use results::write::change::describe_placed_change;
use results::write::race::{describe_need, format_places, format_race as race_text};

use super::LiftedEntryPoint;
use super::interpreter::InterpreterExplanation;
use crate::shader::race::{findings_page, to_page};
use crate::shader::shader_analysis::{AnswerStatus, ShaderAnalysis, read_entry_points};
use crate::shader::source::{Compilation, load_all};
use crate::time_limit::stop_after;
use crate::{CommandOutcome, Failure};

#[derive(Default)]
pub struct ShaderExplanation {
    /// Each finding, its cause and a fix.
    pub text: String,
    /// The same for a page or a picture, for each entry point.
    pub answers: Vec<ShaderAnswer>,
    /// The conclusion over the entry points.
    pub outcome: CommandOutcome,
}

/// Explains every entry point of a shader, or the one in `options`: each finding, its cause and a fix.
///
/// # Errors
/// If the module is invalid or the lifter does not support it.
pub fn explain_shader(
    file: &str,
    compilation: &Compilation,
    options: &AnalysisOptions,
    model: &model::Model,
    (time, inputs): (Duration, InputMode),
) -> Result<ShaderExplanation, Failure> {
    let to_failure = |refusal: Refusal| Failure::input_message(placed_refusal_text(file, &refusal));
    let mut shader_explanation = ShaderExplanation::default();
    for shader in load_all(file, compilation) {
        let shader = shader.map_err(|error| error.to_failure())?;
        let (module, entries) = read_entry_points(file, &shader, options).map_err(to_failure)?;
        for given in &entries {
            let inputs = (inputs, InputGrid::One);
            let analysis = ShaderAnalysis::new((file, &shader, &module), given, model, inputs, None);
            let analysis = analysis.map_err(to_failure)?;
            let fixes = RaceFixes { analysis: &analysis, compilation, time, line: OnceCell::new() };
            let mut explanation =
                explain_entry_point(&analysis, &fixes, time).map_err(Failure::input_message)?;
            if let Some(note) = analysis.choice_note() {
                shader_explanation.text += &format!("{note}\n");
                explanation.page.notes.push(note);
            }
            let status = match explanation.outcome {
                CommandOutcome::RuleBroken => AnswerStatus::Findings,
                CommandOutcome::Success => AnswerStatus::Clean,
                CommandOutcome::Environment | CommandOutcome::Untested | CommandOutcome::Input => {
                    AnswerStatus::Open
                }
            };
            let needs = analysis.needed_inputs(status, explanation.needs_grid, Some(time));
            if !needs.is_empty() {
                let entry = analysis.options.entry.as_deref().unwrap_or("main");
                explanation.text = format!("{file} `{entry}`: needs-inputs under {}\n", model.name());
                explanation.outcome = CommandOutcome::Environment;
                (explanation.page.verdict, explanation.page.findings) =
                    ("needs-inputs".to_owned(), Vec::new());
                for sentence in needs.iter().map(describe_need) {
                    explanation.text += &format!("  {sentence}\n");
                    explanation.page.notes.push(sentence);
                }
            }
            shader_explanation.text += &explanation.text;
            shader_explanation.answers.push(explanation.page);
            shader_explanation.outcome.escalate_to(explanation.outcome);
        }
    }
    Ok(shader_explanation)
}

/// Explains an entry point by the model, or by a walk over the grid if the model leaves the question open.
///
/// # Errors
/// Why neither has an answer.
fn explain_entry_point(
    analysis: &ShaderAnalysis<'_>,
    fixes: &RaceFixes<'_>,
    time: Duration,
) -> Result<EntryExplanation, String> {
    let ShaderAnalysis { file, module, .. } = *analysis;
    let explain = |options: &AnalysisOptions| match frontend::lift(module, options) {
        Ok(lifted) => {
            let kernel = LiftedEntryPoint { analysis, options, lifted: &lifted };
            kernel.explain_with_model(fixes, time).map_err(|error| format!("{file}: {error}"))
        }
        Err(refusal) => Err(placed_refusal_text(file, &refusal)),
    };
    let by_model = explain(&analysis.options);
    // The interpreter does not bound loops, so it is not used if the user gave a bound.
    let is_open = by_model
        .as_ref()
        .map_or(true, |explanation| explanation.is_open && analysis.options.unroll.is_none());
    let by_walk = if is_open { analysis.explain_by_walk(time) } else { None };
    let Some(InterpreterExplanation { mut line, outcome, pairs, needs_grid }) = by_walk else {
        let mut explanation = by_model?;
        if let Some(found) = explanation.page.findings.first_mut() {
            found.reason = explanation.reason.take();
        }
        return Ok(explanation);
    };
    for finding in &mut line.findings {
        if let Some(changes) = fixes.find(finding) {
            finding.set_changes(changes);
        }
    }
    let (mut text, mut page) = (race_text(&line), to_page(&line));
    if let Some(note) = analysis.compiler_note() {
        text += &format!("  {note}\n");
        page.notes.push(note);
    }
    // Two racing invocations race with any others present, so cause and fix are computed for the pair only.
    let started = Instant::now();
    let mut is_first = true;
    for race in page.findings.iter_mut().filter(|found| found.kind == FindingKind::Race.name()) {
        race.reason = Some("Why: no synchronization orders the two accesses.".to_owned());
    }
    for (finding, only) in pairs.into_iter().take(MAX_PAIRS) {
        if started.elapsed() > time {
            break;
        }
        let pair_explanation =
            explain(&AnalysisOptions { only_invocations: only, ..analysis.options.clone() });
        let is_racy = |explanation: &EntryExplanation| {
            explanation.outcome == CommandOutcome::RuleBroken && !explanation.is_open
        };
        let Some(explanation) = pair_explanation.ok().filter(is_racy) else { continue };
        if let Some(page_finding) = page.findings.get_mut(finding) {
            page_finding.reason = explanation.reason.or(page_finding.reason.take());
        }
        if std::mem::take(&mut is_first) {
            text += &format!("\nThe two invocations alone are {}", explanation.text);
        }
    }
    Ok(EntryExplanation { text, page, reason: None, outcome, is_open: false, needs_grid })
}

/// The largest number of racing pairs that are explained.
const MAX_PAIRS: usize = 4;

struct EntryExplanation {
    text: String,
    page: ShaderAnswer,
    /// Why the accesses of the race are not ordered; the race is the first finding of the page.
    reason: Option<String>,
    outcome: CommandOutcome,
    /// True if nothing was found, or the position is unknown.
    is_open: bool,
    /// True if no grid was given and two workgroups have a finding that one has not.
    needs_grid: bool,
}

/// The fixes that `race` finds, searched when the first is needed.
struct RaceFixes<'a> {
    analysis: &'a ShaderAnalysis<'a>,
    compilation: &'a Compilation,
    time: Duration,
    line: OnceCell<Option<RaceLine>>,
}

impl RaceFixes<'_> {
    /// Returns the fix of the finding on the same lines, else of one about the same variable.
    fn find(&self, finding: &FindingRecord) -> Option<Vec<ChangeRecord>> {
        let line =
            self.line.get_or_init(|| self.analysis.find_races(self.compilation, self.time)).as_ref()?;
        let lines = |finding: &FindingRecord| {
            finding.at.iter().map(|place| (place.file.clone(), place.line)).collect::<BTreeSet<_>>()
        };
        let variable = |finding: &FindingRecord| {
            let element = finding.element.as_deref().unwrap_or_default();
            element.split(['[', '.']).next().unwrap_or_default().to_owned()
        };
        let is_race = |kind: &str| FindingKind::from_name(kind).is_some_and(FindingKind::is_race);
        let is_alike = |other: &&FindingRecord| {
            other.kind == finding.kind || is_race(&other.kind) && is_race(&finding.kind)
        };
        let mut alike = line.findings.iter().filter(is_alike);
        let on_lines = alike.clone().find(|other| lines(other) == lines(finding));
        let found = on_lines.or_else(|| alike.find(|other| variable(other) == variable(finding)))?;
        Some(found.changes().to_vec()).filter(|changes| !changes.is_empty())
    }
}

/// Returns whether a claim holds, in words.
fn describe_answer(holds: Option<bool>) -> &'static str {
    match holds {
        Some(true) => "holds",
        Some(false) => "does not hold",
        None => "is unknown",
    }
}

impl LiftedEntryPoint<'_> {
    fn explain_with_model(&self, fixes: &RaceFixes<'_>, time: Duration) -> Result<EntryExplanation, String> {
        let ShaderAnalysis { file, module, model, .. } = *self.analysis;
        let lifted = self.lifted;
        let (half, stop) = (stop_after(time / 2), stop_after(time));
        let query = ModelQuery {
            budget: Budget::until(&half),
            decide_race: true,
            decide_question: true,
            locate_race: true,
        };
        let failed = |error: model::PredictError| error.to_string();
        let answer = frontend::answer_with_model(lifted, model, &query).map_err(failed)?;
        let race = match answer.race {
            Race::Free => "race-free",
            Race::Racy => "racy",
            Race::Unknown => "not known to be race-free",
        };
        let mut text = format!("{race} under {}: {}\n", model.name(), self.describe_coverage());
        let mut outcome = CommandOutcome::Success;
        for note in self.notes() {
            text += &format!("  {note}\n");
        }
        if let Some(question) = &lifted.question {
            text += &format!("  {question} {}\n", describe_answer(answer.holds));
        }
        let mut findings: Vec<FindingRecord> =
            answer.findings.iter().map(|found| self.lift_finding_record(found)).collect();
        if findings.is_empty() && answer.race != Race::Racy {
            findings = self.findings_outside_model();
        }
        for record in &findings {
            outcome.escalate_to(CommandOutcome::RuleBroken);
            text += &format!("\n{}: {}\n{}", record.kind, record.message, format_places(&record.at));
        }
        let has_divergent_barrier =
            answer.findings.iter().any(|finding| finding.kind() == FindingKind::DivergentBarrier);
        let is_unplaced = answer.race == Race::Racy && answer.race_spot.is_none();
        let is_open = answer.findings.is_empty()
            && lifted.question.is_none()
            && (answer.race == Race::Unknown || is_unplaced);
        let is_broken =
            answer.race == Race::Racy || self.options.assertion.is_some() && answer.holds == Some(false);
        if is_broken {
            outcome.escalate_to(CommandOutcome::RuleBroken);
        }
        let is_unanswered = lifted.question.is_some() && answer.holds.is_none();
        if answer.race == Race::Unknown || is_unanswered {
            outcome.escalate_to(CommandOutcome::Environment);
        }
        let headline = match answer.race {
            Race::Racy => race,
            _ if !findings.is_empty() => "wrong",
            _ if is_broken => "the assertion does not hold",
            _ if is_unanswered => "the assertion is not decided",
            Race::Free | Race::Unknown => race,
        };
        let query = ModelQuery { budget: Budget::until(&stop), ..query };
        let mut reason = None;
        if let Some(found) = &answer.race_spot {
            let message = found.describe(&lifted.invocations);
            text += &format!("\n{message}\n{}", format_places(&self.finding_places(&found.at)));
            let record =
                FindingRecord::new(FindingKind::Race.name(), message, self.finding_places(&found.at));
            findings.insert(0, FindingRecord { element: Some(found.element.clone()), ..record });
            let missing_sync = frontend::find_missing_sync(lifted, model, &query).map_err(failed)?;
            let why = format!("Why: {}.", missing_sync.description());
            text += &format!("  {why}\n");
            reason = Some(why);
        }
        if is_broken && has_divergent_barrier {
            text += "  Fix the divergent barrier first.\n";
        } else if is_broken && !is_open {
            let by_race =
                findings.first().filter(|_| lifted.question.is_none()).and_then(|found| fixes.find(found));
            let changes = match by_race {
                Some(changes) => changes,
                None => self.find_litmus_fix(answer.race_spot.as_ref(), &query, &mut text)?,
            };
            if !changes.is_empty() {
                let claim =
                    if lifted.question.is_some() { ", so that the assertion holds as well" } else { "" };
                text += &format!("  Fix{claim}:\n");
            }
            for change in &changes {
                text += &format!("    {}\n", describe_placed_change(change));
            }
            if let Some(finding) = findings.first_mut() {
                finding.set_changes(changes);
            }
        }
        let is_clean = answer.race == Race::Free && lifted.question.is_none();
        let two_workgroup_finding =
            is_clean.then(|| frontend::find_with_two_workgroups(module, self.options)).flatten();
        let two_workgroup_finding = two_workgroup_finding.map(answers::describe_wider_grid);
        let holds =
            lifted.question.as_ref().map(|question| format!("{question} {}", describe_answer(answer.holds)));
        let notes = holds.into_iter().chain([self.describe_coverage()]).chain(self.notes()).collect();
        let title = format!("{file} {}", lifted.entry);
        let mut page = findings_page(title, headline.to_owned(), notes, &findings, file);
        let needs_grid = two_workgroup_finding.is_some();
        if let Some(words) = two_workgroup_finding {
            text += &format!("{words}\n");
            page.notes.push(words);
        }
        Ok(EntryExplanation { text, page, reason, outcome, is_open, needs_grid })
    }

    /// Searches changes of the litmus test, and says how many were tried if there are none.
    fn find_litmus_fix(
        &self,
        race: Option<&RaceSpot>,
        query: &ModelQuery<'_>,
        text: &mut String,
    ) -> Result<Vec<ChangeRecord>, String> {
        let ShaderAnalysis { file, module, model, .. } = *self.analysis;
        let options = AnalysisOptions { keep_all: true, ..self.options.clone() };
        let unreduced = frontend::lift(module, &options).map_err(|refusal| refusal.to_string())?;
        let fix =
            frontend::fix_races(module, &unreduced, model, race, query).map_err(|error| error.to_string())?;
        if fix.changes.is_empty() {
            *text += &format!("  No fix was found among {} changes.\n", fix.tried_candidates);
        }
        Ok(fix.changes.iter().map(|change| answers::change_record(file, module, change)).collect())
    }
}

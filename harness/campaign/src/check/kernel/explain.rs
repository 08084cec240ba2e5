//! Explains shaders: each finding, its cause and a fix.

use std::time::Duration;

use analysis::{EntryAnswer, InputGrid, InputMode, placed_refusal_text};
use entry_point::{AnalysisOptions, FindingKind, InvocationId, Refusal};
use explanation::ShaderAnswer;
use litmus::Race;
use model::Budget;
use repair::MissingSync;
use results::escape::escape_block;
use results::wire::{ChangeRecord, FindingRecord, RaceVerdict};
use results::write::change::describe_placed_change;
use results::write::race::{
    describe_need, format_finding, format_head, format_lints, format_needs, format_places,
};
use symbolic::{ModelQuery, RaceSpot};

use super::LiftedEntryPoint;
use crate::shader::race::{findings_page, to_page};
use crate::shader::shader_analysis::{EntryPoint, read_entry_points};
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
/// The findings and fixes are those of `race`. The model explains why accesses are not ordered, and answers claims and
/// questions about other models and bounded loops.
///
/// # Errors
/// If the module is invalid or not supported.
pub fn explain_shader(
    file: &str,
    compilation: &Compilation,
    options: &AnalysisOptions,
    model: &model::Model,
    time: Duration,
    mode: InputMode,
) -> Result<ShaderExplanation, Failure> {
    let to_failure = |refusal: Refusal| Failure::input_message(placed_refusal_text(file, &refusal));
    let mut shader_explanation = ShaderExplanation::default();
    for shader in load_all(file, compilation) {
        let shader = shader.map_err(|error| error.to_failure())?;
        let (module, entries) = read_entry_points(file, &shader, options).map_err(to_failure)?;
        for given in &entries {
            let entry = EntryPoint { file, source: &shader, module: &module, model, given, mode };
            let is_about_model = given.assertion.is_some() || given.unroll.is_some() || entry.is_annotated();
            let explanation = match is_about_model || !entry.is_model_of_walk() {
                true => explain_by_model(entry, time),
                false => explain_races(entry, compilation, time),
            };
            let explanation = explanation.map_err(Failure::input_message)?;
            shader_explanation.text += &escape_block(&explanation.text);
            shader_explanation.answers.push(explanation.page);
            shader_explanation.outcome.escalate_to(explanation.outcome);
        }
    }
    Ok(shader_explanation)
}

/// Explains the answer of `race`.
///
/// # Errors
/// Why it is refused.
fn explain_races(
    entry: EntryPoint<'_>,
    compilation: &Compilation,
    time: Duration,
) -> Result<EntryExplanation, String> {
    let EntryAnswer { line, options, findings, .. } = entry.find_races(time, Some(compilation));
    let pairs: Vec<_> = findings.iter().map(|finding| finding.racing_pair()).collect();
    let outcome = match line.verdict {
        RaceVerdict::Refused => return Err(line.why.unwrap_or_default()),
        RaceVerdict::Racy => CommandOutcome::RuleBroken,
        RaceVerdict::Clean => CommandOutcome::Success,
        RaceVerdict::NeedsInputs | RaceVerdict::Undecided => CommandOutcome::Environment,
    };
    let mut page = to_page(&line);
    let reasons = explain_pairs(entry, &options, &pairs, time).into_iter().chain(std::iter::repeat(None));
    let mut text = format_head(&line) + &format_needs(&line.needs);
    for ((record, found), reason) in line.findings.iter().zip(&mut page.findings).zip(reasons) {
        text += &format_finding(line.verdict, record);
        if record.kind == FindingKind::Race.name() {
            let missing = reason.unwrap_or(MissingSync::HappensBefore);
            text += &format!("    why: {}\n", missing.description());
            found.reason = Some(format!("Why: {}.", missing.description()));
        }
    }
    text += &format_lints(&line);
    if let Some(note) = entry.compiler_note() {
        text += &format!("  {note}\n");
        page.notes.push(note);
    }
    Ok(EntryExplanation { text, page, outcome })
}

/// Returns the synchronization that each pair of racing invocations lacks, by the model on these invocations alone:
/// they race with any others present. `None` for a finding without a pair, and beyond the time or [`MAX_PAIRS`].
fn explain_pairs(
    entry: EntryPoint<'_>,
    options: &AnalysisOptions,
    pairs: &[Option<[InvocationId; 2]>],
    time: Duration,
) -> Vec<Option<MissingSync>> {
    let stop = stop_after(time);
    let query = ModelQuery {
        budget: Budget::until(&stop),
        decide_race: true,
        decide_question: false,
        locate_race: true,
    };
    let explain = |pair: [InvocationId; 2]| {
        let options = AnalysisOptions { only_invocations: pair.to_vec(), ..options.clone() };
        let lifted = symbolic::lift(entry.module, &options).ok()?;
        symbolic::answer_with_model(&lifted, entry.model, &query).ok()?.race_spot?;
        repair::find_missing_sync(&lifted, entry.model, &query).ok()
    };
    let mut explained = 0;
    let reason = |pair: &Option<[InvocationId; 2]>| {
        let pair = pair.filter(|_| explained < MAX_PAIRS && !stop())?;
        explained += 1;
        explain(pair)
    };
    pairs.iter().map(reason).collect()
}

/// Explains the answer of the model for one choice of inputs.
///
/// # Errors
/// Why it has no answer.
fn explain_by_model(entry: EntryPoint<'_>, time: Duration) -> Result<EntryExplanation, String> {
    let EntryPoint { file, module, model, .. } = entry;
    let refused = |refusal: Refusal| placed_refusal_text(file, &refusal);
    let chosen = entry.choose_inputs(InputGrid::One, None).map_err(refused)?;
    let lifted = symbolic::lift(module, &chosen.options).map_err(refused)?;
    let lifted_entry = LiftedEntryPoint { entry, options: &chosen.options, lifted: &lifted };
    let explanation = lifted_entry.explain_with_model(time).map_err(|error| format!("{file}: {error}"))?;
    let EntryExplanation { mut text, mut page, mut outcome } = explanation;
    let choice = chosen.choice_note();
    page.notes.extend(choice.clone());
    let needs = chosen.needed_inputs(outcome == CommandOutcome::RuleBroken, || false);
    if !needs.is_empty() {
        text = format!("{file} `{}`: needs-inputs under {}\n", lifted.entry, model.name());
        outcome = CommandOutcome::Environment;
        (page.verdict, page.findings) = ("needs-inputs".to_owned(), Vec::new());
        for sentence in needs.iter().map(describe_need) {
            text += &format!("  {sentence}\n");
            page.notes.push(sentence);
        }
    }
    let text = choice.map(|note| format!("{note}\n")).unwrap_or_default() + &text;
    Ok(EntryExplanation { text, page, outcome })
}

/// The largest number of racing pairs that are explained.
const MAX_PAIRS: usize = 4;

struct EntryExplanation {
    text: String,
    page: ShaderAnswer,
    outcome: CommandOutcome,
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
    /// Explains the answer of the model, with changes of the test.
    fn explain_with_model(&self, time: Duration) -> Result<EntryExplanation, String> {
        let EntryPoint { file, model, .. } = self.entry;
        let lifted = self.lifted;
        let (half, stop) = (stop_after(time / 2), stop_after(time));
        let query = ModelQuery {
            budget: Budget::until(&half),
            decide_race: true,
            decide_question: true,
            locate_race: true,
        };
        let failed = |error: model::PredictError| error.to_string();
        let answer = symbolic::answer_with_model(lifted, model, &query).map_err(failed)?;
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
        for record in &findings {
            outcome.escalate_to(CommandOutcome::RuleBroken);
            text += &format!("\n{}: {}\n{}", record.kind, record.message, format_places(&record.at));
        }
        let has_divergent_barrier =
            answer.findings.iter().any(|finding| finding.kind() == FindingKind::DivergentBarrier);
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
            let missing_sync = repair::find_missing_sync(lifted, model, &query).map_err(failed)?;
            let why = format!("Why: {}.", missing_sync.description());
            text += &format!("  {why}\n");
            reason = Some(why);
        }
        if is_broken && has_divergent_barrier {
            text += "  Fix the divergent barrier first.\n";
        } else if is_broken {
            let changes = self.find_litmus_fix(answer.race_spot.as_ref(), &query, &mut text)?;
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
        let holds =
            lifted.question.as_ref().map(|question| format!("{question} {}", describe_answer(answer.holds)));
        let notes = holds.into_iter().chain([self.describe_coverage()]).chain(self.notes()).collect();
        let title = format!("{file} {}", lifted.entry);
        let mut page = findings_page(title, headline.to_owned(), notes, &findings, file);
        if let Some(found) = page.findings.first_mut() {
            found.reason = reason;
        }
        Ok(EntryExplanation { text, page, outcome })
    }

    /// Searches changes of the litmus test, and says how many were tried if there are none.
    fn find_litmus_fix(
        &self,
        race: Option<&RaceSpot>,
        query: &ModelQuery<'_>,
        text: &mut String,
    ) -> Result<Vec<ChangeRecord>, String> {
        let EntryPoint { file, module, model, .. } = self.entry;
        let options = AnalysisOptions { keep_all: true, ..self.options.clone() };
        let unreduced = symbolic::lift(module, &options).map_err(|refusal| refusal.to_string())?;
        let fix = repair::fix_races(module, &options, &unreduced, model, race, query)
            .map_err(|error| error.to_string())?;
        if fix.changes.is_empty() {
            *text += &format!("  No fix was found among {} changes.\n", fix.tried_candidates);
        }
        Ok(fix.changes.iter().map(|change| repair::change_record(file, module, change)).collect())
    }
}

//! Explains shaders: each finding, its cause and a fix.

use std::time::{Duration, Instant};

use answers::{needed_record, placed_refusal_text};
use explanation::ShaderAnswer;
use frontend::grid::NeededInput;
use frontend::{AnalysisOptions, FindingKind, InputGrid, InputMode, ModelQuery};
use litmus::Race;
use model::Budget;
use results::wire::{FindingPlace, FindingRecord, MendRecord};
use results::write::race::{format_places, format_race as race_text};

use super::{InputWalk, LiftedEntryPoint};
use crate::check::interpreter::{InterpretedEntryPoint, InterpreterExplanation};
use crate::shader::entry_point_options;
use crate::shader::race::{findings_page, to_page};
use crate::shader::source::{Compilation, SourceError, SourceModule, load_all};
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
    limits: (Duration, InputMode),
) -> Result<ShaderExplanation, Failure> {
    let mut shader_explanation = ShaderExplanation::default();
    for shader in load_all(file, compilation) {
        explain_module(&mut shader_explanation, file, shader, options, model, limits)?;
    }
    Ok(shader_explanation)
}

/// Explains the entry points of a module.
fn explain_module(
    shader_explanation: &mut ShaderExplanation,
    file: &str,
    shader: Result<SourceModule, SourceError>,
    options: &AnalysisOptions,
    model: &model::Model,
    (time, inputs): (Duration, InputMode),
) -> Result<(), Failure> {
    let shader = shader.map_err(|error| error.to_failure())?;
    let module = frontend::read_bound_module(&shader.bytes, options)
        .map_err(|refusal| Failure::input_message(placed_refusal_text(file, &refusal)))?;
    let entries = entry_point_options(file, &module, &shader.unset, options)
        .map_err(|refusal| Failure::input_message(placed_refusal_text(file, &refusal)))?;
    for entry_options in entries {
        let choice = frontend::choose_inputs(&module, &entry_options, inputs, InputGrid::One)
            .map_err(|refusal| Failure::input_message(placed_refusal_text(file, &refusal)))?;
        let (options, mut needs) = (choice.primary(&entry_options), choice.needed_inputs(&module));
        let entry = options.entry.as_deref().unwrap_or("main");
        let compiler = shader.compiler.as_deref();
        let explain = |options: &AnalysisOptions| match frontend::lift(&module, options) {
            Ok(lifted) => {
                let kernel = LiftedEntryPoint { file, module: &module, compiler, options, lifted: &lifted };
                kernel.explain_with_model(model, time).map_err(|error| format!("{file}: {error}"))
            }
            Err(refusal) => Err(placed_refusal_text(file, &refusal)),
        };
        let interpreted_entry = InterpretedEntryPoint { file, module: &module, compiler, options: &options };
        let answer = explain(&options);
        // The interpreter does not bound loops, so it is not used if the user gave a bound.
        let is_open =
            answer.as_ref().map_or(true, |explanation| explanation.is_open && options.unroll.is_none());
        let interpreted = if is_open { interpreted_entry.explain(model, time) } else { None };
        let (entry_text, mut page, entry_outcome) = match (interpreted, answer) {
            (Some(InterpreterExplanation { line, outcome, pairs, needs_grid }), _) => {
                if needs_grid {
                    needs.inputs.push(NeededInput::missing_grid());
                }
                let (mut text, mut page) = (race_text(&line), to_page(&line));
                if let Some(compiler) = compiler {
                    text += &format!("  compiled by {compiler}\n");
                    page.notes.push(format!("compiled by {compiler}"));
                }
                // Two racing invocations race with any others present, so cause and fix are computed for the
                // pair only.
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
                        explain(&AnalysisOptions { only_invocations: only, ..options.clone() });
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
                (text, page, outcome)
            }
            (None, Ok(explanation)) => {
                let (mut text, mut page) = (explanation.text, explanation.page);
                if let Some(words) = explanation.two_workgroup_finding {
                    text += &format!("{words}\n");
                    page.notes.push(words);
                    needs.inputs.push(NeededInput::missing_grid());
                }
                if let Some(found) = page.findings.first_mut() {
                    found.reason = explanation.reason;
                }
                (text, page, explanation.outcome)
            }
            (None, Err(why)) => return Err(Failure::input_message(why)),
        };
        let chosen_inputs = choice.description(&entry_options);
        if !chosen_inputs.is_empty() {
            let chosen = format!("inputs chosen by the tool: {chosen_inputs}");
            shader_explanation.text += &format!("{chosen}\n");
            page.notes.push(chosen);
        }
        let walk = InputWalk { module: &module, given: &entry_options, own: &options, mode: inputs, time };
        let is_broken = entry_outcome == CommandOutcome::RuleBroken;
        if is_broken {
            walk.settle_findings(&mut needs, model);
        } else if entry_outcome == CommandOutcome::Success {
            walk.settle_clean_answer(&mut needs, model);
        }
        if needs.inputs.is_empty() || is_broken && !needs.decide_findings {
            shader_explanation.text += &entry_text;
            shader_explanation.answers.push(page);
            shader_explanation.outcome.escalate_to(entry_outcome);
            continue;
        }
        shader_explanation.text += &format!("{file} `{entry}`: needs-inputs under {}\n", model.name());
        (page.verdict, page.findings) = ("needs-inputs".to_owned(), Vec::new());
        for needed in needs.inputs {
            let sentence = needed_record(needed).to_sentence();
            shader_explanation.text += &format!("  {sentence}\n");
            page.notes.push(sentence);
        }
        shader_explanation.answers.push(page);
        shader_explanation.outcome.escalate_to(CommandOutcome::Environment);
    }
    Ok(())
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
    /// The finding that appears with two workgroups, in words, if no grid was given.
    two_workgroup_finding: Option<String>,
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
    fn explain_with_model(&self, model: &model::Model, time: Duration) -> Result<EntryExplanation, String> {
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
            findings = self.findings_outside_model(model);
        }
        for record in &findings {
            outcome.escalate_to(CommandOutcome::RuleBroken);
            text += &format!("\n{}: {}\n{}", record.kind, record.message, format_places(&record.at));
        }
        let has_divergent_barrier =
            answer.findings.iter().any(|finding| finding.kind == FindingKind::DivergentBarrier);
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
            findings.insert(
                0,
                FindingRecord::new(FindingKind::Race.name(), message, self.finding_places(&found.at)),
            );
            let missing_sync = frontend::find_missing_sync(lifted, model, &query).map_err(failed)?;
            let why = format!("Why: {}.", missing_sync.description());
            text += &format!("  {why}\n");
            reason = Some(why);
        }
        if is_broken && has_divergent_barrier {
            text += "  Fix the divergent barrier first.\n";
        } else if is_broken && !is_open {
            let unreduced_options = AnalysisOptions { keep_all: true, ..self.options.clone() };
            let unreduced =
                frontend::lift(self.module, &unreduced_options).map_err(|refusal| refusal.to_string())?;
            let race = answer.race_spot.as_ref();
            let fix = frontend::fix_races(self.module, &unreduced, model, race, &query).map_err(failed)?;
            if fix.changes.is_empty() {
                text += &format!("  No fix was found among {} changes.\n", fix.tried_candidates);
            } else {
                text += "  Fix";
                text += if lifted.question.is_some() {
                    ", so that the assertion holds as well:\n"
                } else {
                    ":\n"
                };
            }
            for change in &fix.changes {
                let FindingPlace { file, line, .. } = self.finding_place(&change.at);
                let record = MendRecord { file, line, text: change.text.clone(), edits: Vec::new() };
                text += &format!("    {}\n", record.format_with_position());
                if let Some(finding) = findings.first_mut() {
                    finding.mend.push(record);
                }
            }
        }
        let is_clean = answer.race == Race::Free && lifted.question.is_none();
        let two_workgroup_finding =
            is_clean.then(|| frontend::find_with_two_workgroups(self.module, self.options)).flatten();
        let holds =
            lifted.question.as_ref().map(|question| format!("{question} {}", describe_answer(answer.holds)));
        let notes = holds.into_iter().chain([self.describe_coverage()]).chain(self.notes()).collect();
        let title = format!("{} {}", self.file, lifted.entry);
        let page = findings_page(title, headline.to_owned(), notes, &findings, self.file);
        Ok(EntryExplanation { text, page, reason, outcome, is_open, two_workgroup_finding })
    }
}

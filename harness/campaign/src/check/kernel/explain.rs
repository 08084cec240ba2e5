//! Explains shaders: each finding, its cause and a fix.

use std::time::{Duration, Instant};

use answers::{needed_record, placed_refusal_text};
use explanation::ShaderAnswer;
use frontend::grid::NeededInput;
use frontend::{AnalysisOptions, FindingKind, InputGrid, InputMode, ModelQuery, Until};
use litmus::Race;
use model::Budget;
use results::wire::{FindingPlace, FindingRecord, MendRecord};
use results::write::race::{format_places, format_race as race_text};

use super::LiftedEntryPoint;
use crate::check::walked::{ExplainedWalk, WalkedEntryPoint, has_walk};
use crate::patience::patience;
use crate::shader::entries;
use crate::shader::race::{page_of, shown};
use crate::shader::source::{Compilation, SourceError, SourceModule, load_all};
use crate::{CommandOutcome, Failure};

/// The explanation of a shader.
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
pub fn explained(
    file: &str,
    given: &Compilation,
    options: &AnalysisOptions,
    model: &model::Model,
    limits: (Duration, InputMode),
) -> Result<ShaderExplanation, Failure> {
    let mut all = ShaderExplanation::default();
    for shader in load_all(file, given) {
        explain_module(&mut all, file, shader, options, model, limits)?;
    }
    Ok(all)
}

/// Explains the entry points of a module.
fn explain_module(
    all: &mut ShaderExplanation,
    file: &str,
    shader: Result<SourceModule, SourceError>,
    options: &AnalysisOptions,
    model: &model::Model,
    (time, inputs): (Duration, InputMode),
) -> Result<(), Failure> {
    let shader = shader.map_err(|error| error.failure())?;
    let module = frontend::read_bound_module(&shader.bytes, options)
        .map_err(|refusal| Failure::input_message(placed_refusal_text(file, &refusal)))?;
    let entries = entries(file, &module, &shader.unset, options)
        .map_err(|refusal| Failure::input_message(placed_refusal_text(file, &refusal)))?;
    for given in entries {
        let choice = frontend::choose_inputs(&module, &given, inputs, InputGrid::One)
            .map_err(|refusal| Failure::input_message(placed_refusal_text(file, &refusal)))?;
        let (options, mut needs) = (choice.primary(&given), choice.needs(&module));
        let entry = options.entry.as_deref().unwrap_or("main");
        let compiler = shader.compiler.as_deref();
        let explain = |options: &AnalysisOptions| match frontend::lift(&module, options) {
            Ok(lifted) => {
                let kernel = LiftedEntryPoint { file, module: &module, compiler, options, lifted: &lifted };
                kernel.explained(model, time).map_err(|error| format!("{file}: {error}"))
            }
            Err(refusal) => Err(placed_refusal_text(file, &refusal)),
        };
        let walked = WalkedEntryPoint { file, module: &module, compiler, options: &options };
        let answer = explain(&options);
        // The interpreter does not bound loops, so it is not used if the user gave a bound.
        let open = answer.as_ref().map_or(true, |said| said.open && options.unroll.is_none());
        let walked = if open { walked.explained(model, time) } else { None };
        let (said, mut page, ended) = match (walked, answer) {
            (Some(ExplainedWalk { line, outcome, pairs, needs_grid }), _) => {
                if needs_grid {
                    needs.inputs.push(NeededInput::grid());
                }
                let (mut text, mut page) = (race_text(&line), page_of(&line));
                if let Some(compiler) = compiler {
                    text += &format!("  compiled by {compiler}\n");
                    page.notes.push(format!("compiled by {compiler}"));
                }
                // Two racing invocations race with any others present, so cause and fix are computed for the
                // pair only.
                let started = Instant::now();
                let mut is_first = true;
                for found in page.findings.iter_mut().filter(|found| found.kind == FindingKind::Race.name()) {
                    found.reason = Some("Why: no synchronization orders the two accesses.".to_owned());
                }
                for (finding, only) in pairs.into_iter().take(MAX_PAIRS) {
                    if started.elapsed() > time {
                        break;
                    }
                    let alone = explain(&AnalysisOptions { only_invocations: only, ..options.clone() });
                    let racy =
                        |said: &EntryExplanation| said.outcome == CommandOutcome::RuleBroken && !said.open;
                    let Some(said) = alone.ok().filter(racy) else { continue };
                    if let Some(found) = page.findings.get_mut(finding) {
                        found.reason = said.reason.or(found.reason.take());
                    }
                    if std::mem::take(&mut is_first) {
                        text += &format!("\nThe two invocations alone are {}", said.text);
                    }
                }
                (text, page, outcome)
            }
            (None, Ok(said)) => {
                let (mut text, mut page) = (said.text, said.page);
                if let Some(words) = said.two_workgroup_finding {
                    text += &format!("{words}\n");
                    page.notes.push(words);
                    needs.inputs.push(NeededInput::grid());
                }
                if let Some(found) = page.findings.first_mut() {
                    found.reason = said.reason;
                }
                (text, page, said.outcome)
            }
            (None, Err(why)) => return Err(Failure::input_message(why)),
        };
        let chosen = choice.description(&given);
        if !chosen.is_empty() {
            let chosen = format!("inputs chosen by the tool: {chosen}");
            all.text += &format!("{chosen}\n");
            page.notes.push(chosen);
        }
        if ended == CommandOutcome::Success && has_walk(model) {
            let (until, stop) = (Some(Until::new(patience(time))), patience(time));
            let given = AnalysisOptions { deadline: until, ..given };
            let limits = (model, Budget::until(&stop));
            let open = frontend::open_inputs(&module, (&given, &options), inputs, limits);
            needs.inputs = open.unwrap_or(needs.inputs);
        }
        if needs.inputs.is_empty() || ended == CommandOutcome::RuleBroken && !needs.decide_findings {
            all.text += &said;
            all.answers.push(page);
            all.outcome.escalate_to(ended);
            continue;
        }
        all.text += &format!("{file} `{entry}`: needs-inputs under {}\n", model.name());
        (page.verdict, page.findings) = ("needs-inputs".to_owned(), Vec::new());
        for needed in needs.inputs {
            let sentence = needed_record(needed).to_sentence();
            all.text += &format!("  {sentence}\n");
            page.notes.push(sentence);
        }
        all.answers.push(page);
        all.outcome.escalate_to(CommandOutcome::Environment);
    }
    Ok(())
}

/// The largest number of racing pairs that are explained.
const MAX_PAIRS: usize = 4;

/// The explanation of one entry point.
struct EntryExplanation {
    text: String,
    page: ShaderAnswer,
    /// Why the accesses of the race are not ordered; the race is the first finding of the page.
    reason: Option<String>,
    outcome: CommandOutcome,
    /// True if nothing was found, or the position is unknown.
    open: bool,
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
    fn explained(&self, model: &model::Model, time: Duration) -> Result<EntryExplanation, String> {
        let lifted = self.lifted;
        let (half, stop) = (patience(time / 2), patience(time));
        let asking = ModelQuery { budget: Budget::until(&half), race: true, question: true, places: true };
        let failed = |error: model::PredictError| error.to_string();
        let answer = frontend::answer_with_model(lifted, model, &asking).map_err(failed)?;
        let race = match answer.race {
            Race::Free => "race-free",
            Race::Racy => "racy",
            Race::Unknown => "not known to be race-free",
        };
        let mut text = format!("{race} under {}: {}\n", model.name(), self.coverage());
        let mut outcome = CommandOutcome::Success;
        for note in self.notes() {
            text += &format!("  {note}\n");
        }
        if let Some(question) = &lifted.question {
            text += &format!("  {question} {}\n", describe_answer(answer.holds));
        }
        let mut wrong: Vec<FindingRecord> = answer.findings.iter().map(|found| self.finding(found)).collect();
        if wrong.is_empty() && answer.race != Race::Racy {
            wrong = self.beside_races(model);
        }
        for record in &wrong {
            outcome.escalate_to(CommandOutcome::RuleBroken);
            text += &format!("\n{}: {}\n{}", record.kind, record.message, format_places(&record.at));
        }
        let divergent = answer.findings.iter().any(|finding| finding.kind == FindingKind::DivergentBarrier);
        let unplaced = answer.race == Race::Racy && answer.race_found.is_none();
        let open = answer.findings.is_empty()
            && lifted.question.is_none()
            && (answer.race == Race::Unknown || unplaced);
        let broken =
            answer.race == Race::Racy || self.options.assertion.is_some() && answer.holds == Some(false);
        if broken {
            outcome.escalate_to(CommandOutcome::RuleBroken);
        }
        let is_unanswered = lifted.question.is_some() && answer.holds.is_none();
        if answer.race == Race::Unknown || is_unanswered {
            outcome.escalate_to(CommandOutcome::Environment);
        }
        let headline = match answer.race {
            Race::Racy => race,
            _ if !wrong.is_empty() => "wrong",
            _ if broken => "the assertion does not hold",
            _ if is_unanswered => "the assertion is not decided",
            Race::Free | Race::Unknown => race,
        };
        let asking = ModelQuery { budget: Budget::until(&stop), ..asking };
        let mut reason = None;
        if let Some(found) = &answer.race_found {
            let message = found.describe(&lifted.invocations);
            text += &format!("\n{message}\n{}", format_places(&self.places(&found.at)));
            wrong.insert(0, FindingRecord::new(FindingKind::Race.name(), message, self.places(&found.at)));
            let lack = frontend::find_missing_sync(lifted, model, &asking).map_err(failed)?;
            let why = format!("Why: {}.", lack.description());
            text += &format!("  {why}\n");
            reason = Some(why);
        }
        if broken && divergent {
            text += "  Fix the divergent barrier first.\n";
        } else if broken && !open {
            let whole = AnalysisOptions { keep_all: true, ..self.options.clone() };
            let whole = frontend::lift(self.module, &whole).map_err(|refusal| refusal.to_string())?;
            let race = answer.race_found.as_ref();
            let mended = frontend::fix_races(self.module, &whole, model, race, &asking).map_err(failed)?;
            if mended.changes.is_empty() {
                text += &format!("  No fix was found among {} changes.\n", mended.tried);
            } else {
                text += "  Fix";
                text += if lifted.question.is_some() {
                    ", so that the assertion holds as well:\n"
                } else {
                    ":\n"
                };
            }
            for change in &mended.changes {
                let FindingPlace { file, line, .. } = self.place(&change.at);
                let record = MendRecord { file, line, text: change.text.clone(), edits: Vec::new() };
                text += &format!("    {}\n", record.format_with_position());
                if let Some(finding) = wrong.first_mut() {
                    finding.mend.push(record);
                }
            }
        }
        let is_clean = answer.race == Race::Free && lifted.question.is_none();
        let two_workgroup_finding = is_clean.then(|| frontend::wider(self.module, self.options)).flatten();
        let holds =
            lifted.question.as_ref().map(|question| format!("{question} {}", describe_answer(answer.holds)));
        let notes = holds.into_iter().chain([self.coverage()]).chain(self.notes()).collect();
        let title = format!("{} {}", self.file, lifted.entry);
        let page = shown(title, headline.to_owned(), notes, &wrong, self.file);
        Ok(EntryExplanation { text, page, reason, outcome, open, two_workgroup_finding })
    }
}

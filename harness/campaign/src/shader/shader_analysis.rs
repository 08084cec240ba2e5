//! Routes an entry point to its answer, in the same way for `check`, `explain` and `run`.
//!
//! 1. [`read_entry_points`] reads the module and the options of each entry point.
//! 2. [`ShaderAnalysis::new`] chooses the inputs that no option supplies.
//! 3. The command answers for these inputs: by the lifter and the model, and by a walk over the grid
//!    ([`frontend::judge`]) where the model leaves the question open.
//! 4. [`ShaderAnalysis::needed_inputs`] settles the answer against `race`, which walks every choice of inputs
//!    ([`frontend::judge_choice`]). An answer that further inputs would change becomes `needs-inputs`.
//!
//! `race` itself ([`answers::find_races`]) does 1 with the same function, and then only that walk.

use std::time::Duration;

use answers::{EditableSource, needed_record};
use frontend::grid::NeededInput;
use frontend::{
    AnalysisOptions, DeadlinePredicate, InputChoice, InputGrid, InputMode, InputNeeds, Refusal, SpirvModule,
};
use model::{Budget, Model};
use results::wire::{NeededRecord, RaceLine};

use super::entry_point_options;
use super::race::{RaceOptions, analyze_module};
use super::source::{Compilation, SourceModule, compile_edited_text, read_editable_text};
use crate::time_limit::stop_after;

/// Reads a module, and returns it with the options for each entry point or for the one that they name.
///
/// # Errors
/// If the module is malformed or has no entry point, or inputs do not fit it.
pub(crate) fn read_entry_points(
    file: &str,
    shader: &SourceModule,
    options: &AnalysisOptions,
) -> Result<(SpirvModule, Vec<AnalysisOptions>), Refusal> {
    let options = &AnalysisOptions { language: shader.language, ..options.clone() };
    let module = frontend::read_bound_module(&shader.bytes, options)?;
    let entries = entry_point_options(file, &module, &shader.unset, options)?;
    Ok((module, entries))
}

/// Returns true for the model that the grid interpreter implements.
pub(crate) fn is_interpreter_model(model: &Model) -> bool {
    model.name() == Model::default_for_dialect(litmus::Dialect::Vulkan)
}

/// An answer before it is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerStatus {
    /// Nothing was found.
    Clean,
    /// Something was found.
    Findings,
    /// The question is undecided, or not about races.
    Open,
}

/// An entry point with the inputs that its answer is about.
pub(crate) struct ShaderAnalysis<'a> {
    pub file: &'a str,
    pub module: &'a SpirvModule,
    source: &'a SourceModule,
    /// The compiler, if the file is source code.
    pub compiler: Option<&'a str>,
    pub model: &'a Model,
    /// The options of the user.
    given: &'a AnalysisOptions,
    /// The same with the chosen inputs.
    pub options: AnalysisOptions,
    mode: InputMode,
    choice: InputChoice,
}

impl<'a> ShaderAnalysis<'a> {
    /// Chooses the inputs that the options of an entry point do not supply, within `time` if it is bounded.
    ///
    /// # Errors
    /// Returns the position of what is malformed.
    pub fn new(
        (file, shader, module): (&'a str, &'a SourceModule, &'a SpirvModule),
        given: &'a AnalysisOptions,
        model: &'a Model,
        (mode, grid): (InputMode, InputGrid),
        time: Option<Duration>,
    ) -> Result<ShaderAnalysis<'a>, Refusal> {
        let deadline = time.map(|time| DeadlinePredicate::new(stop_after(time))).or(given.deadline.clone());
        let choice =
            frontend::choose_inputs(module, &AnalysisOptions { deadline, ..given.clone() }, mode, grid)?;
        let compiler = shader.compiler.as_deref();
        let options = choice.primary(given);
        Ok(ShaderAnalysis { file, module, source: shader, compiler, model, given, options, mode, choice })
    }

    /// Returns a note about the inputs that were chosen, if any.
    pub fn choice_note(&self) -> Option<String> {
        let chosen = self.choice.description(self.given);
        (!chosen.is_empty()).then(|| format!("inputs chosen by the tool: {chosen}"))
    }

    /// Returns a note about the compiler, if the file is source code.
    pub fn compiler_note(&self) -> Option<String> {
        self.compiler.map(|compiler| format!("compiled by {compiler}"))
    }

    /// Returns the inputs that an answer depends on; if there are none, it stands.
    ///
    /// `needs_grid` states that two workgroups have a finding and no grid was given. Without `time`, the answer
    /// is not compared with that of `race`.
    pub fn needed_inputs(
        &self,
        status: AnswerStatus,
        needs_grid: bool,
        time: Option<Duration>,
    ) -> Vec<NeededRecord> {
        let mut needs = self.choice.needed_inputs(self.module);
        if let Some(time) = time.filter(|_| is_interpreter_model(self.model)) {
            let (until, stop) = (DeadlinePredicate::new(stop_after(time)), stop_after(time));
            let given = AnalysisOptions { deadline: Some(until), ..self.given.clone() };
            self.settle(&mut needs, status, &given, Budget::until(&stop));
        }
        if needs_grid && !needs.inputs.iter().any(|needed| needed.name == "grid") {
            needs.inputs.push(NeededInput::missing_grid());
        }
        if status == AnswerStatus::Findings && !needs.decide_findings {
            return Vec::new();
        }
        needs.inputs.into_iter().map(|needed| needed_record(self.file, self.module, needed)).collect()
    }

    /// Returns the answer of `race` with the fixes of its findings; `None` for another model.
    pub fn find_races(&self, compilation: &Compilation, time: Duration) -> Option<RaceLine> {
        if !is_interpreter_model(self.model) {
            return None;
        }
        let text = read_editable_text(self.file, compilation);
        let compile =
            |text: &str| compile_edited_text(self.file, text, self.source.entry.as_deref(), compilation);
        let race_options = RaceOptions {
            walk_timeout: time,
            model_timeout: time,
            inputs: self.mode,
            case_file: None,
            with_smallest_tests: false,
            with_proofs: false,
            source: text.as_deref().map(|text| EditableSource { text, compile: &compile }),
        };
        let answers = analyze_module(self.file, &self.source.bytes, self.given, self.model, race_options);
        answers.into_iter().next().map(|(line, _)| line)
    }

    /// Compares an answer with that of `race`.
    fn settle(
        &self,
        needs: &mut InputNeeds,
        status: AnswerStatus,
        given: &AnalysisOptions,
        budget: Budget<'_>,
    ) {
        let limits = (self.model, budget);
        match status {
            // Other inputs may show a finding.
            AnswerStatus::Clean => {
                let own = (given, &self.options);
                if let Some(inputs) = frontend::deciding_inputs(self.module, own, self.mode, limits) {
                    needs.inputs = inputs;
                }
            }
            // Another finding may hold whatever the assumed values are.
            AnswerStatus::Findings => {
                needs.decide_findings = needs.decide_findings
                    && !frontend::has_certain_finding(self.module, given, self.mode, limits);
            }
            AnswerStatus::Open => {}
        }
    }
}

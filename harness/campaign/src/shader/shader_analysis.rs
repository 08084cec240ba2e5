//! Routes an entry point to its answer, in the same way for `check`, `explain` and `run`.
//!
//! 1. [`read_entry_points`] reads the module and the options of each entry point.
//! 2. [`EntryPoint::find_races`] returns the answer of `race` ([`analysis::analyze`]), which decides about findings.
//! 3. [`EntryPoint::choose_inputs`] chooses inputs for the questions that only the lifter and the model answer: claims,
//!    final contents, termination, and other models than that of the walk.

use std::time::Duration;

use analysis::{EntryAnswer, InputChoice, InputGrid, InputMode, ProofMode, needed_record};
use entry_point::{AnalysisOptions, DeadlinePredicate, Refusal};
use model::Model;
use repair::EditableSource;
use results::wire::NeededRecord;
use spirv_reader::SpirvModule;
use spirv_reader::annotations::Annotations;

use super::entry_point_options;
use super::race::RaceOptions;
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
    let options = &AnalysisOptions { language: shader.language, ..shader.with_given_inputs(options) };
    let module = entry_point::inputs::read_bound_module(&shader.bytes, options)?;
    let entries = entry_point_options(file, &module, &shader.unset, options)?;
    Ok((module, entries))
}

/// An entry point to analyze.
#[derive(Clone, Copy)]
pub(crate) struct EntryPoint<'a> {
    pub file: &'a str,
    pub source: &'a SourceModule,
    pub module: &'a SpirvModule,
    pub model: &'a Model,
    /// The options of the user.
    pub given: &'a AnalysisOptions,
    pub mode: InputMode,
}

impl<'a> EntryPoint<'a> {
    /// Returns true for the model that the grid interpreter implements.
    pub fn is_model_of_walk(&self) -> bool {
        self.model.name() == Model::default_for_dialect(litmus::Dialect::Vulkan)
    }

    /// Returns true if annotations of the module state its inputs and its question, which the model answers.
    pub fn is_annotated(&self) -> bool {
        self.module.annotations != Annotations::default()
    }

    /// Returns the answer of `race`, whatever a claim states; with fixes if there is a compilation to check them.
    pub fn find_races(&self, time: Duration, fixes: Option<&Compilation>) -> EntryAnswer {
        self.find_races_with(time, fixes, ProofMode::None)
    }

    /// As [`EntryPoint::find_races`], with proofs.
    pub fn find_races_with(
        &self,
        time: Duration,
        fixes: Option<&Compilation>,
        proofs: ProofMode,
    ) -> EntryAnswer {
        let text = fixes.and_then(|compilation| read_editable_text(self.file, compilation));
        let entry = self.source.entry.as_deref();
        let compile = |text: &str| compile_edited_text(self.file, text, entry, fixes?);
        let race_options = RaceOptions {
            with_fixes: fixes.is_some(),
            proofs,
            source: text.as_deref().map(|text| EditableSource { text, compile: &compile }),
            ..RaceOptions::new(time, self.mode)
        };
        let given = AnalysisOptions { assertion: None, ..self.given.clone() };
        let mut answer = race_options
            .with_request(self.file, self.model, |request| analysis::analyze(request, self.module, &given));
        answer.line.compiler.clone_from(&self.source.compiler);
        answer
    }

    /// Chooses the inputs that the options do not supply, within `time` if it is bounded.
    ///
    /// # Errors
    /// Returns the position of what is malformed.
    pub fn choose_inputs(
        self,
        grid: InputGrid,
        time: Option<Duration>,
    ) -> Result<ChosenEntryPoint<'a>, Refusal> {
        let deadline = time.map(|time| DeadlinePredicate::new(stop_after(time)));
        let deadline = deadline.or(self.given.deadline.clone());
        let given = AnalysisOptions { deadline, ..self.given.clone() };
        let choice = analysis::choose_inputs(self.module, &given, self.mode, grid)?;
        Ok(ChosenEntryPoint { entry: self, options: choice.primary(self.given), choice })
    }

    /// Returns a note about the compiler, if the file is source code.
    pub fn compiler_note(&self) -> Option<String> {
        self.source.compiler.as_ref().map(|compiler| format!("compiled by {compiler}"))
    }
}

/// An entry point with the inputs that an answer of the model is about.
pub(crate) struct ChosenEntryPoint<'a> {
    pub entry: EntryPoint<'a>,
    /// The options of the user with the chosen inputs.
    pub options: AnalysisOptions,
    choice: InputChoice,
}

impl ChosenEntryPoint<'_> {
    /// Returns a note about the inputs that were chosen, if any.
    pub fn choice_note(&self) -> Option<String> {
        let chosen = self.choice.description(self.entry.given);
        (!chosen.is_empty()).then(|| format!("inputs chosen by the tool: {chosen}"))
    }

    /// Returns the inputs that the answer depends on. `has_findings` states that the model has a finding, which
    /// `is_certain` confirms for all inputs.
    pub fn needed_inputs(&self, has_findings: bool, is_certain: impl FnOnce() -> bool) -> Vec<NeededRecord> {
        let needs = self.choice.needed_inputs(self.entry.module);
        if has_findings && (!needs.decide_findings || is_certain()) {
            return Vec::new();
        }
        let EntryPoint { file, module, .. } = self.entry;
        needs.inputs.into_iter().map(|needed| needed_record(file, module, needed)).collect()
    }
}

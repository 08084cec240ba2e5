//! Mutation test of the explorer: correct machine code with one instruction or bit removed.

use std::fmt;

use isa::edit::{self, EditKind};
use isa::opcode::{MemoryPath, Opcode};
use isa::survivor::{self, SurvivorClass};
use isa::text::MachineInstruction;
use isa::{FactTable, MachineProgram, MachineQuestion, MachineVerdict, Profile, explore};

/// Machine code with one instruction or bit removed.
#[derive(Clone, Debug)]
pub struct EditResult {
    /// Index of the kernel in the question.
    pub kernel: usize,
    /// The line that was changed.
    pub line: u32,
    /// The original instruction.
    pub text: String,
    pub kind: EditKind,
    /// The explorer's verdict on the rest.
    pub verdict: EditVerdict,
}

/// The explorer's verdict on an edit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EditVerdict {
    /// A forbidden outcome is reachable.
    Reachable,
    /// A register may be used before its load has returned.
    Hazard,
    /// Neither, with the reason.
    Survives(SurvivorClass),
    /// Neither: the barrier belongs to the kernel and not to the test. It follows the initialization of
    /// workgroup memory, or precedes the read of final values.
    KernelBarrier,
    /// Neither, without a known reason.
    Unexplained,
    /// The explorer does not support the rest.
    Unsupported(String),
}

impl EditVerdict {
    /// Returns true if the explorer detects the edit.
    pub fn is_detected(&self) -> bool {
        matches!(self, EditVerdict::Reachable | EditVerdict::Hazard)
    }
}

impl fmt::Display for EditVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EditVerdict::Reachable => f.write_str("reachable"),
            EditVerdict::Hazard => f.write_str("hazard"),
            EditVerdict::Survives(class) => write!(f, "survives: {class}"),
            EditVerdict::KernelBarrier => f.write_str("survives: the kernel's own"),
            EditVerdict::Unexplained => f.write_str("survives: unexplained"),
            EditVerdict::Unsupported(what) => write!(f, "unsupported: {what}"),
        }
    }
}

/// Returns every edit of a question's code; `None` unless the original is `unreachable`.
pub fn mutate_code(
    question: &MachineQuestion,
    profile: Profile,
    facts: &FactTable,
) -> Option<Vec<EditResult>> {
    if !matches!(explore(question, profile, facts), MachineVerdict::Unreachable(_)) {
        return None;
    }
    let generation = question.family.generation();
    let mut edited = Vec::new();
    for (kernel, code) in question.kernels.iter().map(|kernel| &kernel.program).enumerate() {
        for edit in edit::enumerate_edits(code, generation) {
            let mut edited_question = question.clone();
            if let Some(kernel) = edited_question.kernels.get_mut(kernel) {
                kernel.program = edit.program;
            }
            let verdict = match explore(&edited_question, profile, facts) {
                MachineVerdict::Reachable(_) => EditVerdict::Reachable,
                MachineVerdict::Hazard(_) => EditVerdict::Hazard,
                MachineVerdict::Unsupported(what) => EditVerdict::Unsupported(what.what),
                MachineVerdict::Unreachable(_)
                    if edit.kind == EditKind::Barrier && is_kernel_barrier(code, edit.line) =>
                {
                    EditVerdict::KernelBarrier
                }
                MachineVerdict::Unreachable(_) => {
                    let edit_key = (kernel, edit.line, edit.kind);
                    survivor::classify_survivor(question, &edited_question, edit_key, profile, facts)
                        .map_or(EditVerdict::Unexplained, EditVerdict::Survives)
                }
            };
            let text = code.instructions.iter().find(|instruction| instruction.line == edit.line);
            let text = text.map(|instruction| instruction.text.clone()).unwrap_or_default();
            edited.push(EditResult { kernel, line: edit.line, text, kind: edit.kind, verdict });
        }
    }
    Some(edited)
}

/// Returns true if a barrier belongs to the kernel.
///
/// With workgroup memory, kernels have one after its initialization and one before the read of final values.
fn is_kernel_barrier(code: &MachineProgram, line: u32) -> bool {
    let is_barrier = |instruction: &&MachineInstruction| {
        matches!(instruction.opcode, Opcode::Barrier | Opcode::BarrierWait)
    };
    let barrier_lines: Vec<u32> = code.instructions.iter().filter(is_barrier).map(|one| one.line).collect();
    let is_lds_access = |one: &MachineInstruction| matches!(&one.opcode, Opcode::Memory(memory) if memory.path == MemoryPath::Lds);
    barrier_lines.len() > 1
        && code.instructions.iter().any(is_lds_access)
        && [barrier_lines.first(), barrier_lines.last()].contains(&Some(&line))
}

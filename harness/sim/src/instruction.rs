//! An instruction of a function with its position, and the errors at positions.

use rspirv::spirv::Op;
use spirv_reader::{SpirvError, SpirvProblem, opcode};

/// The reason why a module cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The words are not a valid module.
    #[error("malformed SPIR-V at word {word}: {what}")]
    Malformed {
        word: usize,
        /// The error at this offset.
        what: String,
    },
    #[error("simulated GPU lacks {0}")]
    Unsupported(String),
}

impl From<SpirvError> for LoadError {
    fn from(error: SpirvError) -> LoadError {
        let word = match error.place {
            spirv_reader::SourcePosition::Word(word) => word as usize,
            spirv_reader::SourcePosition::Line(_) | spirv_reader::SourcePosition::Module => 0,
        };
        match error.what {
            SpirvProblem::Syntax(what)
            | SpirvProblem::Malformed(what)
            | SpirvProblem::EntryPoint(what)
            | SpirvProblem::Annotation(what) => LoadError::Malformed { word, what },
            SpirvProblem::Unsupported(what) => LoadError::Unsupported(what),
            SpirvProblem::Budget { what, bound } => {
                LoadError::Unsupported(format!("more than {bound} {what}"))
            }
        }
    }
}

impl From<SpirvProblem> for LoadError {
    fn from(problem: SpirvProblem) -> LoadError {
        problem.located_at(spirv_reader::SourcePosition::Module).into()
    }
}

/// Creates an error at a word.
pub(crate) fn malformed_module(word: usize, what: impl Into<String>) -> LoadError {
    LoadError::Malformed { word, what: what.into() }
}

/// An instruction of the legalized function.
#[derive(Clone, Debug)]
pub(crate) struct LocatedInstruction {
    /// The position in the function.
    pub index: usize,
    /// The word that it starts at, or that of the instruction that it replaces.
    pub word: usize,
    pub op: Op,
    /// 0 for none.
    pub ty: u32,
    /// 0 for none.
    pub result: u32,
    pub operands: Vec<u32>,
    /// The width of the selector of an `OpSwitch`.
    pub selector_bits: u32,
}

/// Creates an instruction that the module does not have.
pub(crate) fn new_instruction(op: Op, ty: u32, result: u32, operands: Vec<u32>) -> LocatedInstruction {
    LocatedInstruction { index: 0, word: 0, op, ty, result, operands, selector_bits: 32 }
}

impl LocatedInstruction {
    pub fn result_id(&self) -> Result<u32, LoadError> {
        (self.result != 0).then_some(self.result).ok_or_else(|| malformed_module(self.word, "no result id"))
    }

    pub fn result_type_id(&self) -> Result<u32, LoadError> {
        (self.ty != 0).then_some(self.ty).ok_or_else(|| malformed_module(self.word, "no result type"))
    }

    /// Returns a refusal of the instruction.
    pub fn unsupported_error(&self, why: &str) -> LoadError {
        LoadError::Unsupported(format!("Op{:?}{why}", self.op))
    }

    /// Returns the positions of the operands that are ids.
    pub fn id_positions(&self) -> Vec<usize> {
        opcode::id_positions(self.op, &self.operands, self.selector_bits)
    }

    /// Returns the operands that are ids.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        self.id_positions().into_iter().filter_map(|at| self.operands.get(at).copied())
    }
}

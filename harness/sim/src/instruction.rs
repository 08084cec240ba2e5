//! An instruction of a module with its position, and the errors at positions.

use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::Op;

/// The reason why a module cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The words are not a valid module.
    #[error("malformed SPIR-V at word {word}: {what}")]
    Malformed {
        /// The offset in words.
        word: usize,
        /// The error at this offset.
        what: String,
    },
    /// The module uses a feature that the machine does not support.
    #[error("simulated GPU lacks {0}")]
    Lacks(String),
}

/// Creates an error at a word.
pub(crate) fn malformed_module(word: usize, what: impl Into<String>) -> LoadError {
    LoadError::Malformed { word, what: what.into() }
}

/// An instruction and the word that it starts at.
#[derive(Clone, Debug)]
pub(crate) struct LocatedInstruction {
    pub word: usize,
    pub instruction: Instruction,
}

impl LocatedInstruction {
    pub fn opcode(&self) -> Op {
        self.instruction.class.opcode
    }

    /// Returns the result id.
    pub fn result_id(&self) -> Result<u32, LoadError> {
        self.instruction.result_id.ok_or_else(|| malformed_module(self.word, "no result id"))
    }

    /// Returns the result type id.
    pub fn result_type_id(&self) -> Result<u32, LoadError> {
        self.instruction.result_type.ok_or_else(|| malformed_module(self.word, "no result type"))
    }

    /// Returns operand number `index`, an id.
    pub fn id_operand(&self, index: usize) -> Result<u32, LoadError> {
        match self.instruction.operands.get(index) {
            Some(Operand::IdRef(id) | Operand::IdScope(id) | Operand::IdMemorySemantics(id)) => Ok(*id),
            _ => Err(malformed_module(self.word, format!("operand {index} is not an id"))),
        }
    }

    /// Returns operand number `index`, a literal.
    pub fn literal_operand(&self, index: usize) -> Result<u32, LoadError> {
        match self.instruction.operands.get(index) {
            Some(Operand::LiteralBit32(number)) => Ok(*number),
            _ => Err(malformed_module(self.word, format!("operand {index} is not a number"))),
        }
    }
}

//! The instruction grammar, by name and by number.

use std::collections::HashMap;
use std::sync::OnceLock;

use rspirv::grammar::{INSTRUCTION_TABLE, LogicalOperand, OperandKind};
use rspirv::spirv::Op;

/// The form of an instruction.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names are those of the SPIR-V specification")]
pub struct InstructionForm {
    pub op: Op,
    /// Including the `Op` prefix.
    pub name: &'static str,
    pub has_type: bool,
    pub has_result: bool,
    pub operands: &'static [LogicalOperand],
}

struct Tables {
    by_name: HashMap<&'static str, InstructionForm>,
    by_number: HashMap<u16, InstructionForm>,
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let mut tables = Tables { by_name: HashMap::new(), by_number: HashMap::new() };
        for instruction in INSTRUCTION_TABLE.iter() {
            let has = |kind| instruction.operands.iter().any(|operand| operand.kind == kind);
            let form = InstructionForm {
                op: instruction.opcode,
                name: instruction.opname,
                has_type: has(OperandKind::IdResultType),
                has_result: has(OperandKind::IdResult),
                operands: instruction.operands,
            };
            tables.by_name.insert(instruction.opname, form);
            tables.by_number.insert(instruction.opcode as u16, form);
        }
        tables
    })
}

/// Returns the instruction of a name with its `Op` prefix.
pub fn by_name(name: &str) -> Option<InstructionForm> {
    let name = name.strip_prefix("Op")?;
    let known = tables().by_name.get(name).copied();
    // Split barriers have two names with the same number.
    known.or_else(|| tables().by_name.get(format!("{}INTEL", name.strip_suffix("EXT")?).as_str()).copied())
}

/// Returns the instruction of a number.
pub fn by_number(number: u16) -> Option<InstructionForm> {
    tables().by_number.get(&number).copied()
}

/// Returns true for atomic instructions.
pub fn is_atomic(op: Op) -> bool {
    format!("{op:?}").starts_with("Atomic")
}

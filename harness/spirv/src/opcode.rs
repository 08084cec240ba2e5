//! The instruction grammar, by name and by number.

use std::collections::HashMap;
use std::sync::OnceLock;

use rspirv::grammar::{INSTRUCTION_TABLE, LogicalOperand, OperandKind, OperandQuantifier};
use rspirv::spirv::{MemoryAccess, Op};

#[derive(Clone, Copy, Debug)]
pub struct InstructionForm {
    pub op: Op,
    /// Without the `Op` prefix.
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

/// Returns true for the instructions that declare a type.
pub(crate) fn declares_type(op: Op) -> bool {
    by_number(op as u16).is_some_and(|form| form.name.starts_with("Type"))
}

pub fn by_number(number: u16) -> Option<InstructionForm> {
    tables().by_number.get(&number).copied()
}

/// Returns the words of a literal that is as wide as a selector.
pub(crate) fn literal_words(bits: u32) -> usize {
    if bits > 32 { 2 } else { 1 }
}

/// Returns the positions of the operands that are ids, for instructions in functions.
///
/// `selector_bits` is the width of the selector of an `OpSwitch`, which its literals have too.
pub fn id_positions(op: Op, operands: &[u32], selector_bits: u32) -> Vec<usize> {
    let scopes = MemoryAccess::MAKE_POINTER_AVAILABLE | MemoryAccess::MAKE_POINTER_VISIBLE;
    let aliases = MemoryAccess::ALIAS_SCOPE_INTEL_MASK | MemoryAccess::NO_ALIAS_INTEL_MASK;
    let mut ids = Vec::new();
    let mut at = 0;
    for operand in by_number(op as u16).map_or(&[][..], |form| form.operands) {
        if matches!(operand.kind, OperandKind::IdResultType | OperandKind::IdResult) {
            continue;
        }
        while let Some(word) = operands.get(at) {
            let (first, count) = match operand.kind {
                OperandKind::IdRef | OperandKind::IdScope | OperandKind::IdMemorySemantics => (at, 1),
                OperandKind::PairIdRefIdRef => (at, 2),
                OperandKind::PairLiteralIntegerIdRef => (at + literal_words(selector_bits), 1),
                OperandKind::MemoryAccess => {
                    let aligned = word & MemoryAccess::ALIGNED.bits() != 0;
                    let count = (word & (scopes | aliases).bits()).count_ones();
                    (at + 1 + usize::from(aligned), count as usize)
                }
                // The last operand: all its parameters are ids.
                OperandKind::ImageOperands => (at + 1, operands.len().saturating_sub(at + 1)),
                // The last operand: all its parameters are literals.
                OperandKind::LoopControl => (operands.len(), 0),
                _ => (at + 1, 0),
            };
            ids.extend(first..first + count);
            at = first + count;
            if operand.quantifier != OperandQuantifier::ZeroOrMore {
                break;
            }
        }
    }
    ids.retain(|at| *at < operands.len());
    ids
}

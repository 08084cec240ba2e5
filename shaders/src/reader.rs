//! A module as its reader sees it: constants, variables and the meaning of words. Shares nothing with the emitter.

use std::collections::BTreeMap;

use litmus::{Order, Scope, Semantics, StorageClass, StorageClassSet};
use rspirv::dr::{Instruction, Module, Operand};
use rspirv::spirv::{Decoration, Op, Word};

use crate::ModuleError;

/// A module with what is asked of it by id.
pub(crate) struct Reader {
    pub module: Module,
    constants: BTreeMap<Word, u32>,
    bindings: BTreeMap<Word, u32>,
    /// The variable that an access chain starts from.
    bases: BTreeMap<Word, Word>,
}

impl Reader {
    pub fn new(words: &[u32]) -> Result<Reader, ModuleError> {
        let module = crate::load(words)?;
        let mut constants = BTreeMap::new();
        let mut bindings = BTreeMap::new();
        let mut bases = BTreeMap::new();
        for instruction in module.all_inst_iter() {
            match (instruction.class.opcode, instruction.result_id, &instruction.operands[..]) {
                (Op::Constant, Some(id), [Operand::LiteralBit32(value)]) => {
                    constants.insert(id, *value);
                }
                (
                    Op::Decorate,
                    _,
                    [
                        Operand::IdRef(id),
                        Operand::Decoration(Decoration::Binding),
                        Operand::LiteralBit32(binding),
                    ],
                ) => {
                    bindings.insert(*id, *binding);
                }
                (Op::AccessChain, Some(id), [Operand::IdRef(base), ..]) => {
                    bases.insert(id, *base);
                }
                _ => {}
            }
        }
        Ok(Reader { module, constants, bindings, bases })
    }

    /// The value of a 32-bit constant.
    pub fn constant(&self, id: Word) -> Option<u32> {
        self.constants.get(&id).copied()
    }

    /// The binding that a pointer leads into; `None` for pointers elsewhere.
    pub fn binding(&self, pointer: Word) -> Option<u32> {
        let base = self.bases.get(&pointer).copied().unwrap_or(pointer);
        self.bindings.get(&base).copied()
    }
}

/// Id operands of an instruction, whatever their role.
pub(crate) fn ids(instruction: &Instruction) -> Vec<Word> {
    instruction.operands.iter().filter_map(Operand::id_ref_any).collect()
}

/// A scope word; `None` for those that have no name in a litmus test.
pub(crate) fn scope(word: u32) -> Option<Scope> {
    Some(match word {
        0 => Scope::CrossDevice,
        1 => Scope::Device,
        2 => Scope::Workgroup,
        3 => Scope::Subgroup,
        4 => Scope::Invocation,
        5 => Scope::QueueFamily,
        _ => return None,
    })
}

/// A memory semantics word; `None` for several orders, sequential consistency and bits that no litmus test has.
pub(crate) fn semantics(word: u32) -> Option<Semantics> {
    let order = match word & 0x1f {
        0x0 => Order::Relaxed,
        0x2 => Order::Acquire,
        0x4 => Order::Release,
        0x8 => Order::AcquireRelease,
        _ => return None,
    };
    let mut classes = StorageClassSet::EMPTY;
    for (bit, class) in [
        (0x40, StorageClass::Buffer),
        (0x100, StorageClass::Workgroup),
        (0x800, StorageClass::Image),
        (0x1000, StorageClass::Output),
    ] {
        if word & bit != 0 {
            classes = classes.with(class);
        }
    }
    const KNOWN: u32 = 0x1f | 0x40 | 0x100 | 0x800 | 0x1000 | 0x2000 | 0x4000;
    if word & !KNOWN != 0 {
        return None;
    }
    Some(Semantics { order, classes, make_available: word & 0x2000 != 0, make_visible: word & 0x4000 != 0 })
}

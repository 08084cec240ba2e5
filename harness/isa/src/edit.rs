//! One instruction deleted or one bit dropped: text that is wrong on purpose, to test who judges it.

use std::fmt;

use crate::family::Generation;
use crate::opcode::{Action, Counter, Opcode};
use crate::text::MachineProgram;

/// What an edit takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The barrier, or the wait of a split one.
    Barrier,
    /// A wait for vector memory: loads, and up to GFX9 stores.
    VectorWait,
    /// A wait for stores, from GFX10 on.
    StoreWait,
    /// A wait for LDS, or scalar memory where it has no counter of its own.
    LdsWait,
    /// A wait for scalar memory, GFX12.
    ScalarWait,
    /// `glc`, or the scope, of a load.
    LoadBit,
    /// `dlc` of a load.
    LoadArrayBit,
    /// `glc`, or the scope, of a store.
    StoreBit,
    /// An invalidation of a cache.
    Invalidate,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 9] = [
        Kind::Barrier,
        Kind::VectorWait,
        Kind::StoreWait,
        Kind::LdsWait,
        Kind::ScalarWait,
        Kind::LoadBit,
        Kind::LoadArrayBit,
        Kind::StoreBit,
        Kind::Invalidate,
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Barrier => "barrier",
            Kind::VectorWait => "vector wait",
            Kind::StoreWait => "store wait",
            Kind::LdsWait => "LDS wait",
            Kind::ScalarWait => "scalar wait",
            Kind::LoadBit => "load bit",
            Kind::LoadArrayBit => "load dlc",
            Kind::StoreBit => "store bit",
            Kind::Invalidate => "invalidate",
        })
    }
}

/// An edited program.
#[derive(Clone, Debug)]
pub struct Edit {
    /// What was taken away.
    pub kind: Kind,
    /// The line that it was taken from.
    pub line: u32,
    /// What is left.
    pub program: MachineProgram,
}

/// Every edit of a program.
pub fn edits(program: &MachineProgram, generation: Generation) -> Vec<Edit> {
    let mut all = Vec::new();
    for (index, instruction) in program.instructions.iter().enumerate() {
        let mut without = |kind: Kind, change: &dyn Fn(&mut MachineProgram)| {
            let mut edited = program.clone();
            change(&mut edited);
            all.push(Edit { kind, line: instruction.line, program: edited });
        };
        let nothing = |edited: &mut MachineProgram| {
            if let Some(instruction) = edited.instructions.get_mut(index) {
                instruction.opcode = Opcode::Nothing;
                instruction.modifiers = Default::default();
            }
        };
        let flag = |word: &'static str| {
            move |edited: &mut MachineProgram| {
                if let Some(instruction) = edited.instructions.get_mut(index) {
                    instruction.modifiers.flags.retain(|flag| flag != word);
                }
            }
        };
        let scope = |edited: &mut MachineProgram| {
            if let Some(instruction) = edited.instructions.get_mut(index) {
                instruction.modifiers.values.retain(|(key, _)| key != "scope");
            }
        };
        match &instruction.opcode {
            Opcode::Barrier | Opcode::BarrierWait => without(Kind::Barrier, &nothing),
            Opcode::Cache(_) => without(Kind::Invalidate, &nothing),
            Opcode::Waitcnt => {
                for (name, _) in &instruction.modifiers.values {
                    let kind = match name.as_str() {
                        "vmcnt" => Kind::VectorWait,
                        "lgkmcnt" => Kind::LdsWait,
                        "vscnt" => Kind::StoreWait,
                        _ => continue,
                    };
                    without(kind, &|edited: &mut MachineProgram| {
                        if let Some(instruction) = edited.instructions.get_mut(index) {
                            instruction.modifiers.values.retain(|(known, _)| known != name);
                        }
                    });
                }
            }
            Opcode::Wait(counters) => {
                let kind = match counters {
                    [Counter::Vector, ..] => Kind::VectorWait,
                    [Counter::Store, ..] => Kind::StoreWait,
                    [Counter::Lds, ..] => Kind::LdsWait,
                    [Counter::Scalar, ..] => Kind::ScalarWait,
                    _ => continue,
                };
                without(kind, &nothing);
            }
            Opcode::Memory(memory) if memory.is_data() => {
                let kind = match memory.action {
                    Action::Load { .. } => Kind::LoadBit,
                    Action::Store => Kind::StoreBit,
                    Action::Atomic(_) => continue,
                };
                if instruction.modifiers.has("glc") {
                    without(kind, &flag("glc"));
                }
                if instruction.modifiers.has("dlc")
                    && kind == Kind::LoadBit
                    && generation == Generation::Gfx10
                {
                    without(Kind::LoadArrayBit, &flag("dlc"));
                }
                if instruction.modifiers.value("scope").is_some() {
                    without(kind, &scope);
                }
            }
            _ => {}
        }
    }
    all
}

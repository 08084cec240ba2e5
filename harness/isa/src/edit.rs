//! Mutations of machine text: one instruction deleted or one bit dropped, to test the explorer.

use std::fmt;

use crate::family::Generation;
use crate::opcode::{AccessAction, Opcode, WaitCounter};
use crate::text::MachineProgram;

/// The removed instruction or bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EditKind {
    /// The barrier, or the wait of a split one.
    Barrier,
    /// A wait for vector memory: loads, and up to GFX9 stores.
    VectorWait,
    /// A wait for stores, from GFX10 on.
    StoreWait,
    /// A wait for LDS, or for scalar memory if it has no separate counter.
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

impl fmt::Display for EditKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EditKind::Barrier => "barrier",
            EditKind::VectorWait => "vector wait",
            EditKind::StoreWait => "store wait",
            EditKind::LdsWait => "LDS wait",
            EditKind::ScalarWait => "scalar wait",
            EditKind::LoadBit => "load bit",
            EditKind::LoadArrayBit => "load dlc",
            EditKind::StoreBit => "store bit",
            EditKind::Invalidate => "invalidate",
        })
    }
}

#[derive(Clone, Debug)]
pub struct Edit {
    pub kind: EditKind,
    pub line: u32,
    pub program: MachineProgram,
}

pub fn enumerate_edits(program: &MachineProgram, generation: Generation) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (index, instruction) in program.instructions.iter().enumerate() {
        let mut add_edit = |kind: EditKind, change: &dyn Fn(&mut MachineProgram)| {
            let mut edited = program.clone();
            change(&mut edited);
            edits.push(Edit { kind, line: instruction.line, program: edited });
        };
        let remove_instruction = |edited: &mut MachineProgram| {
            if let Some(instruction) = edited.instructions.get_mut(index) {
                instruction.opcode = Opcode::NoEffect;
                instruction.modifiers = Default::default();
            }
        };
        let remove_flag = |word: &'static str| {
            move |edited: &mut MachineProgram| {
                if let Some(instruction) = edited.instructions.get_mut(index) {
                    instruction.modifiers.flags.retain(|flag| flag != word);
                }
            }
        };
        let remove_scope = |edited: &mut MachineProgram| {
            if let Some(instruction) = edited.instructions.get_mut(index) {
                instruction.modifiers.values.retain(|(key, _)| key != "scope");
            }
        };
        match &instruction.opcode {
            Opcode::Barrier | Opcode::BarrierWait => add_edit(EditKind::Barrier, &remove_instruction),
            Opcode::Cache(_) => add_edit(EditKind::Invalidate, &remove_instruction),
            Opcode::Waitcnt => {
                for (name, _) in &instruction.modifiers.values {
                    let kind = match name.as_str() {
                        "vmcnt" => EditKind::VectorWait,
                        "lgkmcnt" => EditKind::LdsWait,
                        "vscnt" => EditKind::StoreWait,
                        _ => continue,
                    };
                    add_edit(kind, &|edited: &mut MachineProgram| {
                        if let Some(instruction) = edited.instructions.get_mut(index) {
                            instruction.modifiers.values.retain(|(known, _)| known != name);
                        }
                    });
                }
            }
            Opcode::Wait(counters) => {
                let kind = match counters[..] {
                    [WaitCounter::Vector, ..] => EditKind::VectorWait,
                    [WaitCounter::Store, ..] => EditKind::StoreWait,
                    [WaitCounter::Lds, ..] => EditKind::LdsWait,
                    [WaitCounter::Scalar, ..] => EditKind::ScalarWait,
                    _ => continue,
                };
                add_edit(kind, &remove_instruction);
            }
            Opcode::Memory(memory) if memory.is_data() => {
                let kind = match memory.action {
                    AccessAction::Load { .. } => EditKind::LoadBit,
                    AccessAction::Store => EditKind::StoreBit,
                    AccessAction::Atomic(_) => continue,
                };
                if instruction.modifiers.has_flag("glc") {
                    add_edit(kind, &remove_flag("glc"));
                }
                if instruction.modifiers.has_flag("dlc")
                    && kind == EditKind::LoadBit
                    && generation == Generation::Gfx10
                {
                    add_edit(EditKind::LoadArrayBit, &remove_flag("dlc"));
                }
                if instruction.modifiers.value("scope").is_some() {
                    add_edit(kind, &remove_scope);
                }
            }
            _ => {}
        }
    }
    edits
}

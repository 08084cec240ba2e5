//! A kernel with its parameters known: what is left when everything that a run draws is fixed to one round without a
//! meeting is the test itself, in a shader small enough to be read.
//!
//! The kernel that devices run takes its parameters as push constants, so that drivers must compile the permutation of
//! instances, the rounds and the rendezvous as well. Here each load of a parameter becomes a constant. Nothing else
//! changes: for these parameters the module means what it meant, and a driver's optimizer folds the rest away.

use rspirv::binary::Assemble;
use rspirv::dr::{Instruction, Module, Operand};
use rspirv::spirv::{Op, StorageClass, Word};
use shaders::{ModuleError, Parameters};

/// Words from one location of an instance to the next in a specialised kernel: farther than any cache line.
pub const SPACING: u32 = 64;

/// The parameters of one round of one group in which every slot plays the instance of its own number, and nobody waits.
pub fn one_round(storages: u32) -> Parameters {
    Parameters {
        groups: 1,
        rounds: 1,
        spin: 0,
        pairing: 1,
        group_multiplier: 1,
        group_offset: 0,
        lane_multiplier: 1,
        lane_offset: 0,
        stride: SPACING.saturating_mul(storages.max(1)),
        spacing: SPACING,
        poison: 0xa7c5_3d91,
        done: 1,
        interval: 1,
        hold: 0,
        turn: 0,
        party: 1,
    }
}

/// The words of a kernel in which loads of parameters are constants.
///
/// # Errors
/// [`ModuleError`] where the words are no SPIR-V module.
pub fn specialise(words: &[u32], parameters: &Parameters) -> Result<Vec<u32>, ModuleError> {
    let mut module = shaders::load(words)?;
    let values: Vec<u32> =
        parameters.to_bytes().chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    let constants = constants(&module);
    let blocks: Vec<Word> = push_constant_variables(&module);
    let mut next = module.header.as_ref().map_or(0, |header| header.bound);
    let mut made: Vec<(u32, Word)> = Vec::new();
    // Pointers to parameters, with the number of the word.
    let mut pointers: Vec<(Word, u32)> = Vec::new();
    let mut word_type = None;
    for instruction in
        module.functions.iter_mut().flat_map(|f| &mut f.blocks).flat_map(|b| &mut b.instructions)
    {
        match instruction.class.opcode {
            Op::AccessChain => {
                let [Operand::IdRef(base), Operand::IdRef(member)] = instruction.operands.as_slice() else {
                    continue;
                };
                let number = constants.iter().find(|(id, _)| id == member).map(|(_, value)| *value);
                if let (true, Some(id), Some(number)) = (blocks.contains(base), instruction.result_id, number)
                    && (number as usize) < values.len()
                {
                    pointers.push((id, number));
                }
            }
            Op::Load => {
                let Some(Operand::IdRef(pointer)) = instruction.operands.first() else { continue };
                let Some((_, number)) = pointers.iter().find(|(id, _)| id == pointer) else { continue };
                let value = values.get(*number as usize).copied().unwrap_or_default();
                let constant = match made.iter().find(|(known, _)| *known == value) {
                    Some((_, id)) => *id,
                    None => {
                        next += 1;
                        made.push((value, next - 1));
                        next - 1
                    }
                };
                word_type = instruction.result_type;
                *instruction = Instruction::new(
                    Op::CopyObject,
                    instruction.result_type,
                    instruction.result_id,
                    vec![Operand::IdRef(constant)],
                );
            }
            _ => {}
        }
    }
    for (value, id) in made {
        module.types_global_values.push(Instruction::new(
            Op::Constant,
            word_type,
            Some(id),
            vec![Operand::LiteralBit32(value)],
        ));
    }
    if let Some(header) = &mut module.header {
        header.bound = next;
    }
    Ok(module.assemble())
}

/// Ids of 32-bit constants with their values.
fn constants(module: &Module) -> Vec<(Word, u32)> {
    let constant = |instruction: &Instruction| match instruction.operands.as_slice() {
        [Operand::LiteralBit32(value)] if instruction.class.opcode == Op::Constant => {
            Some((instruction.result_id?, *value))
        }
        _ => None,
    };
    module.types_global_values.iter().filter_map(constant).collect()
}

fn push_constant_variables(module: &Module) -> Vec<Word> {
    let is_block = |instruction: &&Instruction| {
        instruction.class.opcode == Op::Variable
            && instruction.operands.first() == Some(&Operand::StorageClass(StorageClass::PushConstant))
    };
    module
        .types_global_values
        .iter()
        .filter(is_block)
        .filter_map(|instruction| instruction.result_id)
        .collect()
}

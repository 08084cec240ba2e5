//! Infers the initial contents of registers from their uses, because drivers change the register numbers.

use crate::opcode::{Opcode, ScalarOperation};
use crate::text::{MachineInstruction, MachineOperand, MachineProgram, special};

/// The initial content of an ordinary scalar register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryValue {
    /// The low half of the address of descriptor set 0.
    Descriptors,
    /// Half of the device address in the push constants.
    Address { high: bool },
    /// The workgroup's index in x.
    WorkgroupId,
    /// The wave's index in its workgroup, from this bit on.
    WaveInWorkgroup {
        /// The lowest bit.
        shift: u8,
    },
}

/// Returns the initialized registers by number, or the reason why the layout is unknown.
///
/// RADV fills `s[0:1]` with data for scratch memory, then descriptor sets, then the used push constants, then
/// workgroup and wave indices if used. From GFX11 on, Mesa 26 has no data for scratch memory there, so that
/// descriptor sets are in `s0`. The kernels of tests do not use scratch memory.
pub fn infer_entry(program: &MachineProgram, has_address: bool) -> Result<Vec<(u16, EntryValue)>, String> {
    let live_registers = live_at_entry(program);
    let mut assigned: Vec<(u16, EntryValue)> = Vec::new();
    let mut unassigned: Vec<u16> = Vec::new();
    let first = if live_registers.contains(&0) { 0 } else { 2 };
    for register in live_registers.into_iter().filter(|register| *register >= first) {
        match program.instructions.iter().find_map(|instruction| wave_index_shift(instruction, register)) {
            Some(shift) => assigned.push((register, EntryValue::WaveInWorkgroup { shift })),
            None if register == first => assigned.push((register, EntryValue::Descriptors)),
            None => unassigned.push(register),
        }
    }
    let (low, high) = (EntryValue::Address { high: false }, EntryValue::Address { high: true });
    match (unassigned.as_slice(), has_address) {
        ([], _) => {}
        ([id], _) => assigned.push((*id, EntryValue::WorkgroupId)),
        ([first, second], true) if *second == first + 1 => assigned.extend([(*first, low), (*second, high)]),
        ([first, second, id], true) => {
            assigned.extend([(*first, low), (*second, high), (*id, EntryValue::WorkgroupId)])
        }
        _ => {
            let names: Vec<String> = unassigned.iter().map(|register| format!("s{register}")).collect();
            return Err(format!("what {} hold at entry", names.join(", ")));
        }
    }
    Ok(assigned)
}

/// Recognizes how RADV extracts the wave index: `s_bfe_u32 d, s, 0x60006` up to RDNA 1, `0x50014` after it.
fn wave_index_shift(instruction: &MachineInstruction, register: u16) -> Option<u8> {
    let source = MachineOperand::Scalar(crate::text::RegisterRange { first: register, count: 1 });
    match instruction.operands.as_slice() {
        [_, source_operand, MachineOperand::Number(bit_field)]
            if instruction.mnemonic == "s_bfe_u32" && *source_operand == source =>
        {
            match bit_field {
                0x6_0006 => Some(6),
                0x5_0014 => Some(20),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Returns ordinary scalar registers that some path reads before writing them.
fn live_at_entry(program: &MachineProgram) -> Vec<u16> {
    // A forward must-analysis: the registers that are certainly written before each instruction.
    let count = program.instructions.len();
    let mut written: Vec<Option<[bool; 128]>> = vec![None; count + 1];
    if let Some(first) = written.first_mut() {
        *first = Some([false; 128]);
    }
    let mut live = [false; 128];
    let mut worklist = vec![0_usize];
    while let Some(index) = worklist.pop() {
        let (Some(instruction), Some(Some(before))) =
            (program.instructions.get(index), written.get(index).copied())
        else {
            continue;
        };
        let mut written_after = before;
        for half in [Some(instruction), instruction.dual_half.as_deref()].into_iter().flatten() {
            let (reads, writes) = register_uses(half);
            for register in reads {
                if let (Some(is_written), Some(live)) =
                    (before.get(usize::from(register)), live.get_mut(usize::from(register)))
                    && !is_written
                {
                    *live = true;
                }
            }
            for register in writes {
                if let Some(slot) = written_after.get_mut(usize::from(register)) {
                    *slot = true;
                }
            }
        }
        let mut next = Vec::new();
        if !matches!(instruction.opcode, Opcode::End | Opcode::Branch(crate::opcode::JumpCondition::Always)) {
            next.push(index + 1);
        }
        if let (Opcode::Branch(_), Some(MachineOperand::Name(label))) =
            (&instruction.opcode, instruction.operands.first())
        {
            next.extend(program.label_target(label));
        }
        for to in next {
            let Some(slot) = written.get_mut(to) else { continue };
            let merged = match slot {
                None => written_after,
                Some(known) => std::array::from_fn(|register| {
                    known.get(register).copied().unwrap_or(false)
                        && written_after.get(register).copied().unwrap_or(false)
                }),
            };
            if *slot != Some(merged) {
                *slot = Some(merged);
                worklist.push(to);
            }
        }
    }
    (0..special::VCC).filter(|register| live.get(usize::from(*register)).copied().unwrap_or(false)).collect()
}

/// Returns the scalar registers that an instruction reads and writes.
fn register_uses(instruction: &MachineInstruction) -> (Vec<u16>, Vec<u16>) {
    let first_is_read = match &instruction.opcode {
        Opcode::Scalar(ScalarOperation::Compare { .. } | ScalarOperation::TestBit { .. }) => true,
        Opcode::Scalar(ScalarOperation::Constant { accumulates, .. }) => *accumulates,
        Opcode::Scalar(_) | Opcode::Vector(_) => false,
        Opcode::Memory(memory) => !matches!(
            memory.path,
            crate::opcode::MemoryPath::Scalar | crate::opcode::MemoryPath::ScalarBuffer
        ),
        Opcode::NoEffect
        | Opcode::End
        | Opcode::Branch(_)
        | Opcode::Waitcnt
        | Opcode::DependencyWait
        | Opcode::Wait(_)
        | Opcode::Barrier
        | Opcode::BarrierSignal
        | Opcode::BarrierWait
        | Opcode::Cache(_)
        | Opcode::Unknown => true,
    };
    let mut reads = Vec::new();
    let mut writes = Vec::new();
    for (index, operand) in instruction.operands.iter().enumerate() {
        if let MachineOperand::Scalar(registers) = operand {
            let all = registers.first..registers.first.saturating_add(registers.count);
            let is_carry_out = index == 1
                && matches!(
                    &instruction.opcode,
                    Opcode::Vector(crate::opcode::VectorOperation::Sum { carry_out: true, .. })
                );
            if is_carry_out || (index == 0 && !first_is_read) {
                writes.extend(all)
            } else {
                reads.extend(all)
            }
        }
    }
    (reads, writes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    /// Returns the values at entry of a kernel with one buffer, whose descriptor sets begin in `s[first:first + 1]`.
    fn infer_entry_of_kernel(first: u16, id: u16) -> Result<Vec<(u16, EntryValue)>, String> {
        let high = first + 1;
        let text = format!(
            "BB0:\n  s_bitcmp0_b32 s{id}, 0\n  s_cbranch_scc0 BB1\n  s_movk_i32 s{high}, 0x8000\n  \
             s_load_b128 s[4:7], s[{first}:{high}], 0x20\nBB1:\n  s_endpgm\n"
        );
        infer_entry(&parse(&text).map_err(|error| error.to_string())?, false)
    }

    #[test]
    fn descriptor_sets_are_in_the_first_register_that_is_read() {
        let expected = |first, id| Ok(vec![(first, EntryValue::Descriptors), (id, EntryValue::WorkgroupId)]);
        // Mesa 22 to 25 have scratch memory in s[0:1], Mesa 26 has not.
        assert_eq!(infer_entry_of_kernel(2, 3), expected(2, 3));
        assert_eq!(infer_entry_of_kernel(0, 1), expected(0, 1));
    }
}

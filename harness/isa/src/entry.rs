//! Infers the initial contents of registers from their uses, because drivers change the register numbers.

use crate::opcode::{Opcode, Scalar};
use crate::text::{MachineInstruction, MachineOperand, MachineProgram, special};

/// The initial content of an ordinary scalar register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryValue {
    /// The low half of the address of descriptor set 0.
    Descriptors,
    /// Half of the device address in the push constants.
    Address {
        /// The upper half.
        high: bool,
    },
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
pub fn infer_entry(program: &MachineProgram, address: bool) -> Result<Vec<(u16, EntryValue)>, String> {
    let live = live_at_entry(program);
    let mut found: Vec<(u16, EntryValue)> = Vec::new();
    let mut rest: Vec<u16> = Vec::new();
    let first = if live.contains(&0) { 0 } else { 2 };
    for register in live.into_iter().filter(|register| *register >= first) {
        match program.instructions.iter().find_map(|instruction| wave_number(instruction, register)) {
            Some(shift) => found.push((register, EntryValue::WaveInWorkgroup { shift })),
            None if register == first => found.push((register, EntryValue::Descriptors)),
            None => rest.push(register),
        }
    }
    let (low, high) = (EntryValue::Address { high: false }, EntryValue::Address { high: true });
    match (rest.as_slice(), address) {
        ([], _) => {}
        ([id], _) => found.push((*id, EntryValue::WorkgroupId)),
        ([first, second], true) if *second == first + 1 => found.extend([(*first, low), (*second, high)]),
        ([first, second, id], true) => {
            found.extend([(*first, low), (*second, high), (*id, EntryValue::WorkgroupId)])
        }
        _ => {
            let names: Vec<String> = rest.iter().map(|register| format!("s{register}")).collect();
            return Err(format!("what {} hold at entry", names.join(", ")));
        }
    }
    Ok(found)
}

/// Recognizes how RADV extracts the wave index: `s_bfe_u32 d, s, 0x60006` up to RDNA 1, `0x50014` after it.
fn wave_number(instruction: &MachineInstruction, register: u16) -> Option<u8> {
    let source = MachineOperand::Scalar(crate::text::RegisterRange { first: register, count: 1 });
    match instruction.operands.as_slice() {
        [_, from, MachineOperand::Number(field)]
            if instruction.mnemonic == "s_bfe_u32" && *from == source =>
        {
            match field {
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
    let mut work = vec![0_usize];
    while let Some(at) = work.pop() {
        let (Some(instruction), Some(Some(before))) =
            (program.instructions.get(at), written.get(at).copied())
        else {
            continue;
        };
        let mut after = before;
        for half in [Some(instruction), instruction.second.as_deref()].into_iter().flatten() {
            let (reads, writes) = register_uses(half);
            for register in reads {
                if let (Some(known), Some(live)) =
                    (before.get(usize::from(register)), live.get_mut(usize::from(register)))
                    && !known
                {
                    *live = true;
                }
            }
            for register in writes {
                if let Some(slot) = after.get_mut(usize::from(register)) {
                    *slot = true;
                }
            }
        }
        let mut next = Vec::new();
        if !matches!(instruction.opcode, Opcode::End | Opcode::Branch(crate::opcode::JumpCondition::Always)) {
            next.push(at + 1);
        }
        if let (Opcode::Branch(_), Some(MachineOperand::Name(label))) =
            (&instruction.opcode, instruction.operands.first())
        {
            next.extend(program.label_target(label));
        }
        for to in next {
            let Some(slot) = written.get_mut(to) else { continue };
            let merged = match slot {
                None => after,
                Some(known) => std::array::from_fn(|register| {
                    known.get(register).copied().unwrap_or(false)
                        && after.get(register).copied().unwrap_or(false)
                }),
            };
            if *slot != Some(merged) {
                *slot = Some(merged);
                work.push(to);
            }
        }
    }
    (0..special::VCC).filter(|register| live.get(usize::from(*register)).copied().unwrap_or(false)).collect()
}

/// Returns the scalar registers that an instruction reads and writes.
fn register_uses(instruction: &MachineInstruction) -> (Vec<u16>, Vec<u16>) {
    let first_is_read = match &instruction.opcode {
        Opcode::Scalar(Scalar::Compare { .. } | Scalar::TestBit { .. }) => true,
        Opcode::Scalar(Scalar::Constant { accumulates, .. }) => *accumulates,
        Opcode::Scalar(_) | Opcode::Vector(_) => false,
        Opcode::Memory(memory) => !matches!(
            memory.path,
            crate::opcode::MemoryPath::Scalar | crate::opcode::MemoryPath::ScalarBuffer
        ),
        Opcode::Nothing
        | Opcode::End
        | Opcode::Branch(_)
        | Opcode::Waitcnt
        | Opcode::Wait(_)
        | Opcode::Barrier
        | Opcode::BarrierSignal
        | Opcode::BarrierWait
        | Opcode::Cache(_)
        | Opcode::Unknown => true,
    };
    let mut reads = Vec::new();
    let mut writes = Vec::new();
    for (number, operand) in instruction.operands.iter().enumerate() {
        if let MachineOperand::Scalar(registers) = operand {
            let all = registers.first..registers.first.saturating_add(registers.count);
            let carry = number == 1
                && matches!(
                    &instruction.opcode,
                    Opcode::Vector(crate::opcode::Vector::Sum { carry_out: true, .. })
                );
            if carry || (number == 0 && !first_is_read) { writes.extend(all) } else { reads.extend(all) }
        }
    }
    (reads, writes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    /// Returns the values at entry of a kernel with one buffer, whose descriptor sets begin in `s[first:first + 1]`.
    fn entry(first: u16, id: u16) -> Result<Vec<(u16, EntryValue)>, String> {
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
        assert_eq!(entry(2, 3), expected(2, 3));
        assert_eq!(entry(0, 1), expected(0, 1));
    }
}

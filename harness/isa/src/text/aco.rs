//! The hardware program that ACO prints if RADV has no disassembler (GFX6 and GFX7), rewritten as machine
//! text.
//!
//! `s4: %10:s[4-7] = s_load_dwordx4 %9:s[0-1], 16` means `s_load_dwordx4 s[4:7], s[0:1], 16`: each temporary
//! is printed with its register. Buffer accesses have another operand order.

use super::{
    MachineInstruction, MachineOperand, MachineProgram, MachineTextError, OperandModifiers, RegisterRange,
    is_mnemonic, parse_operand, parse_wait_counts, special,
};
use crate::opcode::{AccessAction, MemoryInstruction, MemoryPath, Opcode, ScalarOperation, VectorOperation};

/// The heading of such a program.
pub(crate) const PROGRAM_HEADING: &str = "After lowering to hw instructions:";

/// Words between operands that matter to ACO only.
const REMARKS: &[&str] = &["disable_wqm", "(is16bit)", "(is24bit)", "(kill)", "(latekill)", "(noCSE)"];

/// Dimensions of images; on these generations they are in the descriptor.
const DIMENSIONS: &[&str] = &["1d", "2d", "3d", "cube", "1darray", "2darray", "2dmsaa", "2darraymsaa"];

/// A missing operand.
const UNDEFINED_OPERAND: &str = "undef";

/// Parses the program from its heading on, after `skipped` other lines.
pub(crate) fn parse(text: &str, skipped: u32) -> Result<MachineProgram, MachineTextError> {
    let mut program = MachineProgram { instructions: Vec::new(), labels: Vec::new() };
    for (number, raw) in (skipped + 1..).zip(text.lines()) {
        let code = raw.trim();
        if code.is_empty()
            || code == PROGRAM_HEADING
            || code.starts_with("ACO shader stage:")
            || code.starts_with("/*")
        {
            continue;
        }
        if code.strip_prefix("BB").is_some_and(|n| n.parse::<u32>().is_ok()) {
            program.add_label(code, number)?;
            continue;
        }
        let instruction = parse_instruction(code, number);
        program.instructions.push(
            instruction
                .ok_or_else(|| MachineTextError::NotAnInstruction { line: number, text: code.to_owned() })?,
        );
    }
    if program.instructions.is_empty() {
        return Err(MachineTextError::Empty);
    }
    Ok(program)
}

fn parse_instruction(code: &str, line: u32) -> Option<MachineInstruction> {
    let (results, rest) = match code.split_once(" = ") {
        Some((results, rest)) => (results, rest),
        None => ("", code),
    };
    let rest = rest.trim();
    let (mnemonic, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if !is_mnemonic(mnemonic) {
        return None;
    }
    let opcode = Opcode::from_mnemonic(mnemonic);
    let mut operands: Vec<MachineOperand> = results
        .split(',')
        .filter(|word| !word.trim().is_empty())
        .map(parse_result_operand)
        .collect::<Option<_>>()?;
    let result_count = operands.len();
    let mut modifiers = OperandModifiers::default();
    match &opcode {
        Opcode::Waitcnt => modifiers = parse_wait_counts(rest),
        Opcode::NoEffect | Opcode::DependencyWait | Opcode::Unknown => {}
        Opcode::Branch(_) => {
            operands.push(MachineOperand::Name(rest.trim().strip_prefix("block:")?.to_owned()));
        }
        _ => {
            // Lists after `semantics:` contain commas.
            let words: Vec<&str> = rest.split_whitespace().filter(|word| !is_remark(word)).collect();
            for piece in words.join(" ").split(',') {
                let mut words = piece.split_whitespace().map(strip_remarks).filter(|word| !word.is_empty());
                match words.next() {
                    // `s4: undef` has a type but no register.
                    Some(first) if first.ends_with(':') => {
                        operands.push(MachineOperand::Unknown(words.next()?.to_owned()));
                    }
                    Some(first) => operands.push(parse_source_operand(first)),
                    None => {}
                }
                for word in words {
                    match word {
                        "unrm" => modifiers.add_modifier("unorm"),
                        _ if !DIMENSIONS.contains(&word) => modifiers.add_modifier(word),
                        _ => {}
                    }
                }
            }
        }
    }
    // Implicit operands are not listed in machine text; only a move out of scc names it.
    let special = |first, count| MachineOperand::Scalar(RegisterRange { first, count });
    let scc = special(special::SCC, 1);
    let sources = operands.split_off(result_count);
    operands.retain(|operand| *operand != scc);
    operands.extend(sources);
    if matches!(
        opcode,
        Opcode::Scalar(ScalarOperation::Select { .. } | ScalarOperation::Sum { carry_in: true, .. })
    ) {
        operands.pop_if(|last| *last == scc);
    }
    match &opcode {
        Opcode::Scalar(ScalarOperation::SaveExec { .. })
        | Opcode::Vector(VectorOperation::Compare { writes_exec: true, .. }) => {
            operands.retain(|operand| *operand != special(special::EXEC, 2));
        }
        Opcode::Memory(memory) => {
            if memory.path == MemoryPath::Image {
                let bits = component_mask(modifiers.value("dmask"), &operands, result_count)?;
                modifiers.values.retain(|(key, _)| key != "dmask");
                modifiers.values.push(("dmask".to_owned(), bits));
            }
            operands = reorder_operands(*memory, operands)?;
            // With one offset, an operation on workgroup memory names it `offset`, not `offset0`.
            if memory.path == MemoryPath::Lds && memory.pair_stride.is_none() {
                for (key, _) in modifiers.values.iter_mut().filter(|(key, _)| key == "offset0") {
                    *key = "offset".to_owned();
                }
            }
        }
        _ => {}
    }
    Some(MachineInstruction {
        line,
        text: code.to_owned(),
        mnemonic: mnemonic.to_owned(),
        opcode,
        operands,
        modifiers,
        dual_half: None,
    })
}

/// Parses `s4: %10:s[4-7]`: the register follows the temporary.
fn parse_result_operand(word: &str) -> Option<MachineOperand> {
    let (_, named) = word.trim().split_once(": ")?;
    Some(parse_source_operand(strip_remarks(named.trim())))
}

/// Strips remarks in parentheses from a word.
fn strip_remarks(word: &str) -> &str {
    let mut word = word;
    while let Some(rest) = REMARKS.iter().find_map(|remark| word.strip_prefix(remark)) {
        word = rest;
    }
    word
}

fn is_remark(word: &str) -> bool {
    REMARKS.contains(&word)
        || word.starts_with("storage:")
        || word.starts_with("semantics:")
        || word.starts_with("scope:")
}

/// Converts `%9:s[0-1]` to `s[0:1]`; numbers are unchanged.
fn parse_source_operand(word: &str) -> MachineOperand {
    let register =
        word.strip_prefix('%').and_then(|rest| rest.split_once(':')).map_or(word, |(_, register)| register);
    parse_operand(register)
}

/// Returns the component mask of an image access: explicit (`dmask:xy`), or that of its result, or four
/// components.
fn component_mask(explicit: Option<&str>, operands: &[MachineOperand], written: usize) -> Option<String> {
    let bits = match (explicit, operands.first()) {
        (Some(names), _) => {
            names.chars().try_fold(0, |bits: u8, name| Some(bits | 1 << "xyzw".find(name)?))?
        }
        (None, Some(MachineOperand::Vector(result))) if written > 0 => {
            1_u8.checked_shl(result.count.into())?.checked_sub(1)?
        }
        _ => 0xf,
    };
    Some(format!("{bits:#x}"))
}

/// Reorders the operands of memory accesses as in machine text.
///
/// For buffers, ACO prints descriptor, address, offset, data; for images, descriptor, sampler, data,
/// coordinates; for addresses, address, base, data. The result precedes them.
fn reorder_operands(memory: MemoryInstruction, operands: Vec<MachineOperand>) -> Option<Vec<MachineOperand>> {
    let is_load = matches!(memory.action, AccessAction::Load { .. });
    let is_atomic = matches!(memory.action, AccessAction::Atomic(_));
    let is_absent = |operand: &MachineOperand| matches!(operand, MachineOperand::Unknown(word) if word == UNDEFINED_OPERAND);
    let count = operands.len();
    let mut remaining = operands.into_iter();
    Some(match memory.path {
        MemoryPath::Scalar | MemoryPath::ScalarBuffer => remaining.collect(),
        MemoryPath::Lds => {
            let m0 = MachineOperand::Scalar(RegisterRange { first: special::M0, count: 1 });
            remaining.filter(|operand| *operand != m0).collect()
        }
        MemoryPath::Buffer | MemoryPath::Texel | MemoryPath::Image => {
            let result = if is_load || is_atomic && count == 5 { Some(remaining.next()?) } else { None };
            let descriptor = remaining.next()?;
            let (second, third) = (remaining.next()?, remaining.next()?);
            // The returned value uses the register of the data; a buffer load ends with the offset.
            let fourth = remaining.next();
            match (memory.path, is_load) {
                (MemoryPath::Image, true) => vec![result?, fourth?, descriptor],
                (MemoryPath::Image, false) => vec![third, fourth?, descriptor],
                (_, true) => vec![result?, second, descriptor, third],
                (_, false) => vec![fourth?, second, descriptor, third],
            }
        }
        MemoryPath::Global | MemoryPath::Flat => {
            let mut ordered = Vec::new();
            if is_load || is_atomic && count == 4 {
                ordered.push(remaining.next()?);
            }
            ordered.push(remaining.next()?);
            let base = remaining.next()?;
            ordered.extend(remaining);
            ordered.extend((!is_absent(&base)).then_some(base));
            ordered
        }
    })
}

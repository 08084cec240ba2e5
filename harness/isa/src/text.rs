//! A parser for machine text: labels, and instructions with operands and modifiers. Nothing is dropped
//! silently.

mod aco;

use crate::opcode::Opcode;

/// The parsed text of a compiled kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineProgram {
    /// The instructions in the order of the text.
    pub instructions: Vec<MachineInstruction>,
    /// Labels with the index of the next instruction.
    pub labels: Vec<(String, usize)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineInstruction {
    /// Line of the text, from 1.
    pub line: u32,
    /// The line without encoding and surrounding white space.
    pub text: String,
    /// The mnemonic as written.
    pub mnemonic: String,
    pub opcode: Opcode,
    /// Its operands, in the order of the text.
    pub operands: Vec<MachineOperand>,
    pub modifiers: OperandModifiers,
    /// The other half of a dual-issue instruction: both read before either writes.
    pub dual_half: Option<Box<MachineInstruction>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineOperand {
    /// Scalar registers from `first` on.
    Scalar(RegisterRange),
    /// Vector registers from `first` on.
    Vector(RegisterRange),
    /// Half of a vector register.
    Half { register: u16, high: bool },
    /// Vector registers that need not be consecutive: an image's address.
    Vectors(Vec<u16>),
    /// A number as its 64 bits; negative ones are sign-extended.
    Number(i64),
    /// A floating-point constant, as the bits of its 32-bit value.
    Float(u32),
    /// `null`.
    Null,
    /// `off`: no address register.
    Off,
    /// Another name, such as a label.
    Name(String),
    /// A text of another form.
    Unknown(String),
}

/// Consecutive registers. Special scalar registers have separate numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterRange {
    pub first: u16,
    pub count: u16,
}

/// Numbers of special scalar registers.
pub mod special {
    /// `vcc_lo`; `vcc_hi` follows.
    pub const VCC: u16 = 106;
    /// `ttmp0`.
    pub const TTMP: u16 = 108;
    /// `m0`.
    pub const M0: u16 = 124;
    /// `exec_lo`; `exec_hi` follows.
    pub const EXEC: u16 = 126;
    /// `scc`.
    pub const SCC: u16 = 253;
}

/// The modifiers after the operands of an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperandModifiers {
    /// Coherence and other flags, such as `glc`, `dlc`, `offen`.
    pub flags: Vec<String>,
    /// Modifiers with a value, such as `offset:256` or `scope:SCOPE_DEV`.
    pub values: Vec<(String, String)>,
    pub unknown: Vec<String>,
}

impl OperandModifiers {
    /// Returns true if the flag is present.
    pub fn has_flag(&self, flag: &str) -> bool {
        self.flags.iter().any(|known| known == flag)
    }

    /// Returns the value of `key:value`.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.values.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Returns the value as a number; 0 if it is absent, `None` if it is not a number.
    pub fn value_as_number(&self, key: &str) -> Option<i64> {
        match self.value(key) {
            None => Some(0),
            Some(text) => parse_number(text),
        }
    }
}

/// Text that is not machine text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineTextError {
    /// The driver had no disassembler, so its text contains no instructions.
    #[error("the text was not disassembled: {0}")]
    NotDisassembled(String),
    /// A line that is not a label, instruction or comment.
    #[error("line {line}: not an instruction: `{text}`")]
    NotAnInstruction {
        /// From 1.
        line: u32,
        text: String,
    },
    #[error("no instruction in the text")]
    Empty,
    #[error("line {line}: label `{label}` is defined twice")]
    DuplicateLabel {
        /// From 1.
        line: u32,
        label: String,
    },
}

/// Phrases in drivers' messages about missing disassembly.
const MISSING_DISASSEMBLY_PHRASES: &[&str] = &[
    "disassembly is not supported",
    "Shader disassembly is not",
    "(invalid instruction)",
    "(invalid)",
    "Failed to disassemble",
];

/// Parses machine text.
///
/// The input is LLVM's disassembly from RADV, with or without encodings, or the hardware program that ACO
/// prints without a disassembler (GFX6, GFX7). Unknown instructions and operands are preserved, and reported
/// when they are executed.
///
/// # Errors
///
/// [`MachineTextError`] if the text was not disassembled, or a line is not machine text.
pub fn parse(text: &str) -> Result<MachineProgram, MachineTextError> {
    if let Some(at) = text.find(aco::PROGRAM_HEADING) {
        let skipped = text.get(..at).unwrap_or_default().lines().count();
        return aco::parse(text.get(at..).unwrap_or_default(), skipped as u32);
    }
    if let Some(line) =
        text.lines().find(|line| MISSING_DISASSEMBLY_PHRASES.iter().any(|phrase| line.contains(phrase)))
    {
        return Err(MachineTextError::NotDisassembled(line.trim().to_owned()));
    }
    let mut program = MachineProgram { instructions: Vec::new(), labels: Vec::new() };
    for (number, raw_line) in (1..).zip(text.lines()) {
        let code = strip_comment(raw_line).trim();
        if code.is_empty() {
            continue;
        }
        if let Some(label) = code.strip_suffix(':') {
            if !is_name(label) {
                return Err(MachineTextError::NotAnInstruction { line: number, text: code.to_owned() });
            }
            program.add_label(label, number)?;
            continue;
        }
        if let Some(is_well_formed) = parse_repetition(code) {
            // Only padding may be abbreviated; it has no effect.
            match program.instructions.last() {
                Some(last) if is_well_formed && last.opcode == Opcode::NoEffect => continue,
                _ => return Err(MachineTextError::NotAnInstruction { line: number, text: code.to_owned() }),
            }
        }
        let mut halves = code.split("::");
        let first = halves.next().unwrap_or_default();
        let mut instruction = parse_instruction(first.trim(), number)?;
        if let Some(second) = halves.next() {
            instruction.dual_half = Some(Box::new(parse_instruction(second.trim(), number)?));
        }
        if halves.next().is_some() {
            return Err(MachineTextError::NotAnInstruction { line: number, text: code.to_owned() });
        }
        instruction.text = code.to_owned();
        program.instructions.push(instruction);
    }
    if program.instructions.is_empty() {
        return Err(MachineTextError::Empty);
    }
    Ok(program)
}

impl MachineProgram {
    /// Records a label before the next instruction.
    pub(crate) fn add_label(&mut self, label: &str, line: u32) -> Result<(), MachineTextError> {
        if self.labels.iter().any(|(known, _)| known == label) {
            return Err(MachineTextError::DuplicateLabel { line, label: label.to_owned() });
        }
        self.labels.push((label.to_owned(), self.instructions.len()));
        Ok(())
    }

    /// Returns the index of the instruction after a label; one past the last at the end of the text.
    pub fn label_target(&self, label: &str) -> Option<usize> {
        self.labels.iter().find(|(known, _)| known == label).map(|(_, index)| *index)
    }
}

fn strip_comment(line: &str) -> &str {
    let line = line.split(';').next().unwrap_or_default();
    line.split("//").next().unwrap_or_default()
}

/// Parses `(then repeated 3 times)`: true if well-formed, `None` for another line.
fn parse_repetition(code: &str) -> Option<bool> {
    let rest = code.strip_prefix("(then repeated ")?;
    let count = rest.strip_suffix(" times)").or_else(|| rest.strip_suffix(" time)"));
    Some(count.is_some_and(|count| count.parse::<u32>().is_ok()))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.$@".contains(c))
}

pub(crate) fn is_mnemonic(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|c| c.is_ascii_lowercase())
        && text.contains('_')
        && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn parse_instruction(code: &str, line: u32) -> Result<MachineInstruction, MachineTextError> {
    let (mnemonic, rest) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
    if !is_mnemonic(mnemonic) {
        return Err(MachineTextError::NotAnInstruction { line, text: code.to_owned() });
    }
    let opcode = Opcode::from_mnemonic(mnemonic);
    let (operands, modifiers) = match &opcode {
        // The rest of these instructions is one word.
        Opcode::NoEffect | Opcode::DependencyWait | Opcode::Unknown => {
            (vec![MachineOperand::Name(rest.trim().to_owned())], OperandModifiers::default())
        }
        Opcode::Waitcnt => (Vec::new(), parse_wait_counts(rest)),
        _ => parse_operands(rest),
    };
    Ok(MachineInstruction {
        line,
        text: code.to_owned(),
        mnemonic: mnemonic.to_owned(),
        opcode,
        operands,
        modifiers,
        dual_half: None,
    })
}

/// Parses `vmcnt(0) lgkmcnt(0)`, optionally with `&`; a bare number remains unknown.
pub(crate) fn parse_wait_counts(text: &str) -> OperandModifiers {
    let mut modifiers = OperandModifiers::default();
    for word in text.split(|c: char| c.is_whitespace() || c == '&').filter(|word| !word.is_empty()) {
        let counted = word.strip_suffix(')').and_then(|word| word.split_once('('));
        match counted {
            Some((counter, count)) => modifiers.values.push((counter.to_owned(), count.to_owned())),
            None => modifiers.unknown.push(word.to_owned()),
        }
    }
    modifiers
}

/// Splits operands at commas; modifiers follow the last one, separated by blanks.
fn parse_operands(text: &str) -> (Vec<MachineOperand>, OperandModifiers) {
    let mut operands = Vec::new();
    let mut modifiers = OperandModifiers::default();
    let pieces = split_at_commas(text);
    for piece in &pieces {
        let mut words = piece.split_whitespace();
        let Some(first) = words.next() else {
            if pieces.len() > 1 {
                operands.push(MachineOperand::Unknown(String::new()));
            }
            continue;
        };
        // `v0, off glc` and `v0, offset:4`: a modifier may also take the position of an operand.
        if is_modifier(first) {
            modifiers.add_modifier(first)
        } else {
            operands.push(parse_operand(first))
        }
        for word in words {
            modifiers.add_modifier(word);
        }
    }
    (operands, modifiers)
}

/// Splits at commas outside of brackets.
fn split_at_commas(text: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut depth = 0_i32;
    for c in text.chars() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            _ => {}
        }
        if c == ',' && depth <= 0 {
            pieces.push(String::new());
        } else if depth > 0 && c.is_whitespace() {
            // `[v0, v1]` is one word.
        } else if let Some(last) = pieces.last_mut() {
            last.push(c);
        }
    }
    if pieces.len() == 1 && pieces.first().is_some_and(|only| only.trim().is_empty()) {
        pieces.clear();
    }
    pieces
}

/// Known flags; the executing code gives them their meaning.
const KNOWN_FLAGS: &[&str] = &[
    "glc", "slc", "dlc", "sc0", "sc1", "nt", "addr64", "offen", "idxen", "lds", "gds", "unorm", "d16", "a16",
    "r128", "tfe", "lwe", "da",
];

/// Known modifiers with a value.
const KNOWN_KEYS: &[&str] = &[
    "offset",
    "offset0",
    "offset1",
    "scope",
    "th",
    "dmask",
    "dim",
    "format",
    "dst_sel",
    "dst_unused",
    "src0_sel",
    "src1_sel",
];

fn is_modifier(word: &str) -> bool {
    KNOWN_FLAGS.contains(&word) || word.split_once(':').is_some_and(|(key, _)| KNOWN_KEYS.contains(&key))
}

impl OperandModifiers {
    pub(crate) fn add_modifier(&mut self, word: &str) {
        if KNOWN_FLAGS.contains(&word) {
            self.flags.push(word.to_owned());
            return;
        }
        match word.split_once(':') {
            Some((key, value)) if KNOWN_KEYS.contains(&key) => {
                self.values.push((key.to_owned(), value.to_owned()))
            }
            _ => self.unknown.push(word.to_owned()),
        }
    }
}

pub(crate) fn parse_operand(word: &str) -> MachineOperand {
    let special_register = |first, count| MachineOperand::Scalar(RegisterRange { first, count });
    match word {
        "null" => return MachineOperand::Null,
        "off" => return MachineOperand::Off,
        "vcc" => return special_register(special::VCC, 2),
        "vcc_lo" => return special_register(special::VCC, 1),
        "vcc_hi" => return special_register(special::VCC + 1, 1),
        "exec" => return special_register(special::EXEC, 2),
        "exec_lo" => return special_register(special::EXEC, 1),
        "exec_hi" => return special_register(special::EXEC + 1, 1),
        "m0" => return special_register(special::M0, 1),
        "scc" | "src_scc" => return special_register(special::SCC, 1),
        _ => {}
    }
    if let Some(value) = parse_number(word) {
        return MachineOperand::Number(value);
    }
    if word.contains('.')
        && let Ok(value) = word.parse::<f32>()
    {
        return MachineOperand::Float(value.to_bits());
    }
    if let Some(list) = word.strip_prefix('[').and_then(|word| word.strip_suffix(']')) {
        let registers: Option<Vec<u16>> = list
            .split(',')
            .map(|one| match parse_operand(one.trim()) {
                MachineOperand::Vector(RegisterRange { first, count: 1 }) => Some(first),
                _ => None,
            })
            .collect();
        return registers.map_or_else(|| MachineOperand::Unknown(word.to_owned()), MachineOperand::Vectors);
    }
    for (suffix, high) in [(".l", false), (".h", true)] {
        if let Some(register_name) = word.strip_suffix(suffix)
            && let MachineOperand::Vector(RegisterRange { first, count: 1 }) = parse_operand(register_name)
        {
            return MachineOperand::Half { register: first, high };
        }
    }
    for (prefix, base, vector) in [("ttmp", special::TTMP, false), ("s", 0, false), ("v", 0, true)] {
        if let Some(registers) = word.strip_prefix(prefix).and_then(|rest| parse_registers(rest, base)) {
            return if vector {
                MachineOperand::Vector(registers)
            } else {
                MachineOperand::Scalar(registers)
            };
        }
    }
    if is_name(word) {
        MachineOperand::Name(word.to_owned())
    } else {
        MachineOperand::Unknown(word.to_owned())
    }
}

/// Parses `4` or `[4:7]`, for a register file of at most 256 registers.
fn parse_registers(text: &str, base: u16) -> Option<RegisterRange> {
    let number = |text: &str| {
        let is_decimal = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        is_decimal.then(|| text.parse::<u16>().ok()).flatten().filter(|number| *number < 256)
    };
    if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let (first, last) = inner.split_once([':', '-']).unwrap_or((inner, inner));
        let (first, last) = (number(first)?, number(last)?);
        return (first <= last).then(|| RegisterRange { first: base + first, count: last - first + 1 });
    }
    Some(RegisterRange { first: base + number(text)?, count: 1 })
}

/// Parses a decimal or hexadecimal number of at most instruction width.
pub(crate) fn parse_number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hexadecimal) => {
            let is_valid = !hexadecimal.is_empty() && hexadecimal.chars().all(|c| c.is_ascii_hexdigit());
            is_valid.then(|| u64::from_str_radix(hexadecimal, 16).ok()).flatten()? as i64
        }
        None => {
            let is_valid = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
            is_valid.then(|| digits.parse::<i64>().ok()).flatten()?
        }
    };
    Some(if negative { value.wrapping_neg() } else { value })
}

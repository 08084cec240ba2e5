//! Assembles SPIR-V text to words, as `spirv-as` does, by the grammar tables of rspirv.
//!
//! Ids are numbered in order of appearance. Each instruction remembers its line. A comment `; Version: 1.3` at the start, as
//! disassemblers write it, sets the version of the module, which decides what is valid in it.

use std::collections::{BTreeMap, HashMap};

use rspirv::grammar::{OperandKind, OperandQuantifier};
use rspirv::spirv::Op;

use crate::enumerant::{enumerant_value, extended_instruction_number, has_parameters};
use crate::error::{SourcePosition, SpirvError, SpirvProblem};
use crate::opcode::{self, InstructionForm};

/// An assembled module, with the names of its ids.
#[derive(Clone, Debug, Default)]
pub struct AssembledModule {
    pub words: Vec<u32>,
    /// The line of each instruction.
    pub lines: Vec<u32>,
    /// The name of each id, without the `%`.
    pub names: BTreeMap<String, u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum AsmToken<'t> {
    Id(&'t str),
    Equals,
    Text(String),
    Word(&'t str),
}

/// SPIR-V version of assembled modules without a comment that names one: 1.6.
const ASSEMBLED_VERSION: u32 = 0x0001_0600;
pub(crate) const MAGIC_NUMBER: u32 = 0x0723_0203;
/// Upper bound on the instructions of a module.
pub(crate) const MAX_INSTRUCTIONS: usize = 4_000_000;

/// Assembles a text.
///
/// # Errors
/// Returns the line of the first syntax error.
pub fn assemble_text(text: &str) -> Result<AssembledModule, SpirvError> {
    let tokens = tokenize(text)?;
    let mut assembler = Assembler::default();
    let version = declared_version(text).unwrap_or(ASSEMBLED_VERSION);
    assembler.assembled.words = vec![MAGIC_NUMBER, version, 0, 0, 0];
    let mut at = 0;
    while at < tokens.len() {
        let start = at;
        at += 1;
        while at < tokens.len() && !begins_instruction(&tokens, start, at) {
            at += 1;
        }
        let line = tokens[start].1;
        let tokens: Vec<&AsmToken<'_>> = tokens[start..at].iter().map(|(token, _)| token).collect();
        assembler
            .assemble_instruction(&tokens)
            .map_err(|problem| problem.located_at(SourcePosition::Line(line)))?;
        assembler.assembled.lines.push(line);
    }
    assembler.assembled.words[3] = assembler.last_id + 1;
    Ok(assembler.assembled)
}

/// Returns the version that a comment before the first instruction names.
fn declared_version(text: &str) -> Option<u32> {
    let comments = text.lines().map(str::trim).take_while(|line| line.is_empty() || line.starts_with(';'));
    let mut named = comments.filter_map(|line| line.strip_prefix("; Version: 1."));
    let minor = named.next()?.parse::<u32>().ok().filter(|minor| *minor <= 6)?;
    Some(0x0001_0000 | minor << 8)
}

/// Returns true if a token starts the next instruction.
fn begins_instruction(tokens: &[(AsmToken<'_>, u32)], start: usize, at: usize) -> bool {
    match &tokens[at].0 {
        AsmToken::Word(word) => {
            // The opcode after `%id =` belongs to the same instruction.
            let named = matches!(tokens[at - 1].0, AsmToken::Equals) && at == start + 2;
            // No enumerant starts with `Op`, so a misspelled one is reported as an instruction.
            !named
                && word
                    .strip_prefix("Op")
                    .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
        }
        AsmToken::Id(_) => matches!(tokens.get(at + 1), Some((AsmToken::Equals, _))),
        _ => false,
    }
}

fn tokenize(text: &str) -> Result<Vec<(AsmToken<'_>, u32)>, SpirvError> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if found.len() > 16 * MAX_INSTRUCTIONS {
            return Err(SpirvProblem::Budget { what: "words of text", bound: 16 * MAX_INSTRUCTIONS }
                .located_at(SourcePosition::Line(line)));
        }
        if first == '\n' {
            line += 1;
            rest = &rest[1..];
        } else if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
        } else if first == ';' {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if first == '=' {
            found.push((AsmToken::Equals, line));
            rest = &rest[1..];
        } else if first == '"' {
            let first_line = line;
            let (string, after) = parse_quoted(&rest[1..], &mut line).ok_or_else(|| {
                SpirvProblem::Syntax("a string without a closing quote".to_owned())
                    .located_at(SourcePosition::Line(first_line))
            })?;
            found.push((AsmToken::Text(string), first_line));
            rest = after;
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || c == ';' || c == '=').unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            found.push((word.strip_prefix('%').map_or(AsmToken::Word(word), AsmToken::Id), line));
            rest = after;
        }
    }
    Ok(found)
}

/// Returns the string up to its closing quote, and the rest.
fn parse_quoted<'t>(text: &'t str, line: &mut u32) -> Option<(String, &'t str)> {
    let mut string = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((string, &text[at + 1..])),
            '\\' => string.push(characters.next()?.1),
            other => {
                *line += u32::from(other == '\n');
                string.push(other);
            }
        }
    }
    None
}

/// The format of a number in text.
#[derive(Clone, Copy)]
struct AsmNumberType {
    bits: u32,
    is_float: bool,
}

#[derive(Default)]
struct Assembler {
    assembled: AssembledModule,
    last_id: u32,
    /// Numeric types by id.
    number_types: HashMap<u32, AsmNumberType>,
    /// Types of results by id.
    result_types: HashMap<u32, u32>,
    /// Extended instruction sets by id.
    extended_sets: HashMap<u32, String>,
}

type Tokens<'a, 't> = &'a [&'a AsmToken<'t>];

impl Assembler {
    fn id_of_name(&mut self, name: &str) -> u32 {
        if let Some(id) = self.assembled.names.get(name) {
            return *id;
        }
        self.last_id += 1;
        self.assembled.names.insert(name.to_owned(), self.last_id);
        self.last_id
    }

    fn assemble_instruction(&mut self, tokens: Tokens<'_, '_>) -> Result<(), SpirvProblem> {
        let (result, tokens) = match tokens {
            [AsmToken::Id(name), AsmToken::Equals, rest @ ..] => (Some(self.id_of_name(name)), rest),
            rest => (None, rest),
        };
        let Some((AsmToken::Word(name), mut operands)) = tokens.split_first().map(|(t, rest)| (*t, rest))
        else {
            return Err(SpirvProblem::Syntax(
                "expected an opcode at the start of the instruction".to_owned(),
            ));
        };
        let Some(form) = opcode::by_name(name) else {
            return Err(SpirvProblem::Syntax(format!("unknown instruction `{name}`")));
        };
        if form.has_result != result.is_some() {
            let what = if form.has_result { "needs" } else { "has no" };
            return Err(SpirvProblem::Syntax(format!("{name} {what} result id")));
        }
        let mut words = vec![0];
        let mut ty = None;
        if form.has_type {
            let Some((AsmToken::Id(name), rest)) = operands.split_first().map(|(t, rest)| (*t, rest)) else {
                return Err(SpirvProblem::Syntax(format!("Op{name} needs a result type")));
            };
            let id = self.id_of_name(name);
            ty = Some(id);
            words.push(id);
            operands = rest;
        }
        words.extend(result);
        self.encode_operands(form, ty, operands, &mut words)?;
        self.record_type(form.op, ty, result, &words);
        let count = u32::try_from(words.len()).ok().filter(|count| *count < 1 << 16);
        let Some(count) = count else {
            return Err(SpirvProblem::Syntax(format!("{name} has too many words")));
        };
        words[0] = count << 16 | form.op as u32;
        self.assembled.words.append(&mut words);
        Ok(())
    }

    fn record_type(&mut self, op: Op, ty: Option<u32>, result: Option<u32>, words: &[u32]) {
        let Some(result) = result else { return };
        match op {
            Op::TypeInt | Op::TypeFloat => {
                let bits = words.get(2).copied().unwrap_or(32);
                self.number_types.insert(result, AsmNumberType { bits, is_float: op == Op::TypeFloat });
            }
            Op::ExtInstImport => {
                self.extended_sets.insert(result, decode_string(words.get(2..).unwrap_or_default()).0);
            }
            _ => {
                if let Some(ty) = ty {
                    self.result_types.insert(result, ty);
                }
            }
        }
    }

    fn encode_operands(
        &mut self,
        form: InstructionForm,
        ty: Option<u32>,
        mut tokens: Tokens<'_, '_>,
        words: &mut Vec<u32>,
    ) -> Result<(), SpirvProblem> {
        let name = form.name;
        for operand in form.operands {
            if matches!(operand.kind, OperandKind::IdResultType | OperandKind::IdResult) {
                continue;
            }
            loop {
                if tokens.is_empty() {
                    if operand.quantifier == OperandQuantifier::One {
                        return Err(SpirvProblem::Syntax(format!("Op{name} needs more operands")));
                    }
                    break;
                }
                tokens = self.encode_operand(form, ty, operand.kind, tokens, words)?;
                if operand.quantifier != OperandQuantifier::ZeroOrMore {
                    break;
                }
            }
        }
        match tokens.first() {
            None => Ok(()),
            Some(token) => {
                Err(SpirvProblem::Syntax(format!("Op{name}: unexpected {}", describe_token(token))))
            }
        }
    }

    /// Encodes an operand with the parameters of its value; returns the remaining tokens.
    fn encode_operand<'a, 't>(
        &mut self,
        form: InstructionForm,
        ty: Option<u32>,
        kind: OperandKind,
        tokens: Tokens<'a, 't>,
        words: &mut Vec<u32>,
    ) -> Result<Tokens<'a, 't>, SpirvProblem> {
        let Some((token, mut rest)) = tokens.split_first() else { return Ok(tokens) };
        let unexpected =
            || SpirvProblem::Syntax(format!("Op{}: unexpected {}", form.name, describe_token(token)));
        match (kind, token) {
            (
                OperandKind::IdRef
                | OperandKind::IdScope
                | OperandKind::IdMemorySemantics
                | OperandKind::PairIdRefIdRef
                | OperandKind::PairIdRefLiteralInteger,
                AsmToken::Id(name),
            ) => {
                words.push(self.id_of_name(name));
                if kind == OperandKind::PairIdRefIdRef {
                    rest = self.encode_operand(form, ty, OperandKind::IdRef, rest, words)?;
                } else if kind == OperandKind::PairIdRefLiteralInteger {
                    rest = self.encode_operand(form, ty, OperandKind::LiteralInteger, rest, words)?;
                }
            }
            (OperandKind::LiteralString, AsmToken::Text(text)) => push_string(text, words),
            (OperandKind::LiteralInteger | OperandKind::LiteralFloat, AsmToken::Word(word)) => {
                words.extend(
                    encode_number(word, AsmNumberType { bits: 32, is_float: false })
                        .ok_or_else(unexpected)?,
                );
            }
            (OperandKind::LiteralContextDependentNumber, AsmToken::Word(word)) => {
                let ty = ty.and_then(|ty| self.number_types.get(&ty)).copied();
                let ty = ty.ok_or_else(|| {
                    SpirvProblem::Syntax(format!("Op{}: its type has no numbers", form.name))
                })?;
                words.extend(encode_number(word, ty).ok_or_else(unexpected)?);
            }
            (OperandKind::PairLiteralIntegerIdRef, AsmToken::Word(word)) => {
                let selector = words.get(1).and_then(|selector| self.result_types.get(selector));
                let ty = selector.and_then(|ty| self.number_types.get(ty)).copied();
                let ty = ty.unwrap_or(AsmNumberType { bits: 32, is_float: false });
                words.extend(encode_number(word, ty).ok_or_else(unexpected)?);
                rest = self.encode_operand(form, Some(0), OperandKind::IdRef, rest, words)?;
            }
            (OperandKind::LiteralExtInstInteger, AsmToken::Word(word)) => {
                let set = words.get(3).and_then(|set| self.extended_sets.get(set)).map_or("", String::as_str);
                let number = extended_instruction_number(set, word).or_else(|| word.parse().ok());
                let what = || SpirvProblem::Syntax(format!("`{word}` is not an instruction of `{set}`"));
                words.push(number.ok_or_else(what)?);
                // Ids follow, or literals in older debug instruction sets.
                rest = self.encode_parameters(rest, true, words)?;
            }
            (OperandKind::LiteralSpecConstantOpInteger, AsmToken::Word(word)) => {
                let inner = opcode::by_name(&format!("Op{word}")).ok_or_else(unexpected)?;
                words.push(inner.op as u32);
                rest = self.encode_parameters(rest, true, words)?;
            }
            (kind, AsmToken::Word(word)) => {
                words.push(enumerant_value(kind, word).or_else(|| word.parse().ok()).ok_or_else(unexpected)?);
                if has_parameters(kind) {
                    let all = matches!(kind, OperandKind::Decoration | OperandKind::ExecutionMode);
                    rest = self.encode_parameters(rest, all, words)?;
                }
            }
            _ => return Err(unexpected()),
        }
        Ok(rest)
    }

    /// Encodes parameters: ids, numbers, strings and, with `accepts_words`, words.
    fn encode_parameters<'a, 't>(
        &mut self,
        mut tokens: Tokens<'a, 't>,
        accepts_words: bool,
        words: &mut Vec<u32>,
    ) -> Result<Tokens<'a, 't>, SpirvProblem> {
        while let Some((token, rest)) = tokens.split_first() {
            match token {
                AsmToken::Id(name) => words.push(self.id_of_name(name)),
                AsmToken::Text(text) => push_string(text, words),
                AsmToken::Word(word) => {
                    match encode_number(word, AsmNumberType { bits: 32, is_float: false }) {
                        Some(number) => words.extend(number),
                        None if !accepts_words => return Ok(tokens),
                        None => words.push(
                            crate::enumerant::parameter_value(word)
                                .ok_or_else(|| SpirvProblem::Syntax(format!("unknown word `{word}`")))?,
                        ),
                    }
                }
                AsmToken::Equals => return Err(SpirvProblem::Syntax("unexpected `=`".to_owned())),
            }
            tokens = rest;
        }
        Ok(tokens)
    }
}

fn describe_token(token: &AsmToken<'_>) -> String {
    match token {
        AsmToken::Id(name) => format!("`%{name}`"),
        AsmToken::Equals => "`=`".to_owned(),
        AsmToken::Text(_) => "string".to_owned(),
        AsmToken::Word(word) => format!("`{word}`"),
    }
}

fn encode_number(word: &str, ty: AsmNumberType) -> Option<Vec<u32>> {
    let bits: u64 = if let Some(raw) = word.strip_prefix('!') {
        return Some(vec![raw.parse().ok()?]);
    } else if ty.is_float {
        let value: f64 = word.parse().ok()?;
        match ty.bits {
            64 => value.to_bits(),
            32 => u64::from((value as f32).to_bits()),
            16 => u64::from(to_half_bits(value)),
            _ => return None,
        }
    } else {
        let (negative, digits) = word.strip_prefix('-').map_or((false, word), |digits| (true, digits));
        let magnitude = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok()?,
            None => digits.parse().ok()?,
        };
        if ty.bits <= 32 && magnitude > u64::from(u32::MAX) {
            return None;
        }
        if negative { magnitude.wrapping_neg() } else { magnitude }
    };
    let mut words = vec![bits as u32];
    if ty.bits > 32 {
        words.push((bits >> 32) as u32);
    }
    Some(words)
}

/// Converts to a 16-bit float, rounded toward zero.
pub fn to_half_bits(value: f64) -> u16 {
    let bits = (value as f32).to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let exponent = (bits >> 23 & 0xff) as i32 - 127 + 15;
    match exponent {
        ..=0 => sign,
        31.. => sign | 0x7c00,
        _ => sign | (exponent as u16) << 10 | (bits >> 13 & 0x3ff) as u16,
    }
}

fn push_string(text: &str, words: &mut Vec<u32>) {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    while !bytes.len().is_multiple_of(4) {
        bytes.push(0);
    }
    words.extend(bytes.chunks_exact(4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]])));
}

/// Decodes the string at the start of some words; also returns its length in words.
pub fn decode_string(words: &[u32]) -> (String, usize) {
    let mut bytes = Vec::new();
    for (index, word) in words.iter().enumerate() {
        for byte in word.to_le_bytes() {
            if byte == 0 {
                return (String::from_utf8_lossy(&bytes).into_owned(), index + 1);
            }
            bytes.push(byte);
        }
    }
    (String::from_utf8_lossy(&bytes).into_owned(), words.len())
}

//! SPIR-V text as `spirv-as` reads it, to words, by rspirv's tables of the grammar.
//!
//! Names of ids get numbers in the order in which they appear; what a line says is remembered for each instruction.

use std::collections::{BTreeMap, HashMap};

use rspirv::grammar::{OperandKind, OperandQuantifier};
use rspirv::spirv::Op;

use crate::error::{Place, Problem, Refusal};
use crate::opcode::{self, Form};
use crate::word::{has_parameters, number_of_extended, word_of};

/// A module in words, with what its text says besides.
#[derive(Clone, Debug, Default)]
pub struct Assembled {
    /// The words of the module.
    pub words: Vec<u32>,
    /// For each instruction the line that it begins on.
    pub lines: Vec<u32>,
    /// What the text calls each id, without the `%`.
    pub names: BTreeMap<String, u32>,
}

/// A word of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token<'t> {
    Id(&'t str),
    Equals,
    Text(String),
    Word(&'t str),
}

/// Version of the modules that text gives: 1.6.
const VERSION: u32 = 0x0001_0600;
const MAGIC: u32 = 0x0723_0203;
/// Instructions of a module at most.
pub(crate) const MAX_INSTRUCTIONS: usize = 4_000_000;

/// Assembles a text.
///
/// # Errors
/// What it has that is no assembly, with its line.
pub fn assemble(text: &str) -> Result<Assembled, Refusal> {
    let tokens = tokens(text)?;
    let mut assembler = Assembler::default();
    assembler.out.words = vec![MAGIC, VERSION, 0, 0, 0];
    let mut at = 0;
    while at < tokens.len() {
        let start = at;
        at += 1;
        while at < tokens.len() && !begins_instruction(&tokens, start, at) {
            at += 1;
        }
        let line = tokens[start].1;
        let tokens: Vec<&Token<'_>> = tokens[start..at].iter().map(|(token, _)| token).collect();
        assembler.instruction(&tokens).map_err(|problem| problem.at(Place::Line(line)))?;
        assembler.out.lines.push(line);
    }
    assembler.out.words[3] = assembler.next + 1;
    Ok(assembler.out)
}

/// Whether an instruction begins at a token that follows the beginning of another.
fn begins_instruction(tokens: &[(Token<'_>, u32)], start: usize, at: usize) -> bool {
    match &tokens[at].0 {
        Token::Word(word) => {
            // Behind `%id =` stands the opcode of the same instruction.
            let named = matches!(tokens[at - 1].0, Token::Equals) && at == start + 2;
            // No enumerant begins like this, so that what is misspelt is told as an instruction.
            !named
                && word
                    .strip_prefix("Op")
                    .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
        }
        Token::Id(_) => matches!(tokens.get(at + 1), Some((Token::Equals, _))),
        _ => false,
    }
}

fn tokens(text: &str) -> Result<Vec<(Token<'_>, u32)>, Refusal> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if found.len() > 16 * MAX_INSTRUCTIONS {
            return Err(
                Problem::Budget { what: "words of text", bound: 16 * MAX_INSTRUCTIONS }.at(Place::Line(line))
            );
        }
        if first == '\n' {
            line += 1;
            rest = &rest[1..];
        } else if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
        } else if first == ';' {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if first == '=' {
            found.push((Token::Equals, line));
            rest = &rest[1..];
        } else if first == '"' {
            let begun = line;
            let (string, after) = quoted(&rest[1..], &mut line).ok_or_else(|| {
                Problem::Syntax("a string without its closing quote".to_owned()).at(Place::Line(begun))
            })?;
            found.push((Token::Text(string), begun));
            rest = after;
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || c == ';' || c == '=').unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            found.push((word.strip_prefix('%').map_or(Token::Word(word), Token::Id), line));
            rest = after;
        }
    }
    Ok(found)
}

/// The string up to its closing quote, and what follows.
fn quoted<'t>(text: &'t str, line: &mut u32) -> Option<(String, &'t str)> {
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

/// How a number of a type is written.
#[derive(Clone, Copy)]
struct NumberType {
    bits: u32,
    float: bool,
}

#[derive(Default)]
struct Assembler {
    out: Assembled,
    next: u32,
    /// Types of numbers, by id.
    numbers: HashMap<u32, NumberType>,
    /// Types of results, by id.
    types: HashMap<u32, u32>,
    /// Sets of extended instructions, by id.
    sets: HashMap<u32, String>,
}

type Tokens<'a, 't> = &'a [&'a Token<'t>];

impl Assembler {
    fn id(&mut self, name: &str) -> u32 {
        if let Some(id) = self.out.names.get(name) {
            return *id;
        }
        self.next += 1;
        self.out.names.insert(name.to_owned(), self.next);
        self.next
    }

    fn instruction(&mut self, tokens: Tokens<'_, '_>) -> Result<(), Problem> {
        let (result, tokens) = match tokens {
            [Token::Id(name), Token::Equals, rest @ ..] => (Some(self.id(name)), rest),
            rest => (None, rest),
        };
        let Some((Token::Word(name), mut operands)) = tokens.split_first().map(|(t, rest)| (*t, rest)) else {
            return Err(Problem::Syntax("an instruction begins with its opcode".to_owned()));
        };
        let Some(form) = opcode::by_name(name) else {
            return Err(Problem::Syntax(format!("unknown instruction `{name}`")));
        };
        if form.has_result != result.is_some() {
            let what = if form.has_result { "needs" } else { "has no" };
            return Err(Problem::Syntax(format!("{name} {what} result id")));
        }
        let mut words = vec![0];
        let mut ty = None;
        if form.has_type {
            let Some((Token::Id(name), rest)) = operands.split_first().map(|(t, rest)| (*t, rest)) else {
                return Err(Problem::Syntax(format!("Op{name} needs a result type")));
            };
            let id = self.id(name);
            ty = Some(id);
            words.push(id);
            operands = rest;
        }
        words.extend(result);
        self.operands(form, ty, operands, &mut words)?;
        self.remember(form.op, ty, result, &words);
        let count = u32::try_from(words.len()).ok().filter(|count| *count < 1 << 16);
        let Some(count) = count else {
            return Err(Problem::Syntax(format!("{name} has too many words")));
        };
        words[0] = count << 16 | form.op as u32;
        self.out.words.append(&mut words);
        Ok(())
    }

    fn remember(&mut self, op: Op, ty: Option<u32>, result: Option<u32>, words: &[u32]) {
        let Some(result) = result else { return };
        match op {
            Op::TypeInt | Op::TypeFloat => {
                let bits = words.get(2).copied().unwrap_or(32);
                self.numbers.insert(result, NumberType { bits, float: op == Op::TypeFloat });
            }
            Op::ExtInstImport => {
                self.sets.insert(result, string_of(words.get(2..).unwrap_or_default()).0);
            }
            _ => {
                if let Some(ty) = ty {
                    self.types.insert(result, ty);
                }
            }
        }
    }

    fn operands(
        &mut self,
        form: Form,
        ty: Option<u32>,
        mut tokens: Tokens<'_, '_>,
        words: &mut Vec<u32>,
    ) -> Result<(), Problem> {
        let name = form.name;
        for operand in form.operands {
            if matches!(operand.kind, OperandKind::IdResultType | OperandKind::IdResult) {
                continue;
            }
            loop {
                if tokens.is_empty() {
                    if operand.quantifier == OperandQuantifier::One {
                        return Err(Problem::Syntax(format!("Op{name} needs more operands")));
                    }
                    break;
                }
                tokens = self.operand(form, ty, operand.kind, tokens, words)?;
                if operand.quantifier != OperandQuantifier::ZeroOrMore {
                    break;
                }
            }
        }
        match tokens.first() {
            None => Ok(()),
            Some(token) => Err(Problem::Syntax(format!("Op{name}: unexpected {}", shown(token)))),
        }
    }

    /// Writes one operand, with the parameters of its value; gives back what is left.
    fn operand<'a, 't>(
        &mut self,
        form: Form,
        ty: Option<u32>,
        kind: OperandKind,
        tokens: Tokens<'a, 't>,
        words: &mut Vec<u32>,
    ) -> Result<Tokens<'a, 't>, Problem> {
        let Some((token, mut rest)) = tokens.split_first() else { return Ok(tokens) };
        let unexpected = || Problem::Syntax(format!("Op{}: unexpected {}", form.name, shown(token)));
        match (kind, token) {
            (
                OperandKind::IdRef
                | OperandKind::IdScope
                | OperandKind::IdMemorySemantics
                | OperandKind::PairIdRefIdRef
                | OperandKind::PairIdRefLiteralInteger,
                Token::Id(name),
            ) => {
                words.push(self.id(name));
                if kind == OperandKind::PairIdRefIdRef {
                    rest = self.operand(form, ty, OperandKind::IdRef, rest, words)?;
                } else if kind == OperandKind::PairIdRefLiteralInteger {
                    rest = self.operand(form, ty, OperandKind::LiteralInteger, rest, words)?;
                }
            }
            (OperandKind::LiteralString, Token::Text(text)) => push_string(text, words),
            (OperandKind::LiteralInteger | OperandKind::LiteralFloat, Token::Word(word)) => {
                words.extend(number(word, NumberType { bits: 32, float: false }).ok_or_else(unexpected)?);
            }
            (OperandKind::LiteralContextDependentNumber, Token::Word(word)) => {
                let ty = ty.and_then(|ty| self.numbers.get(&ty)).copied();
                let ty =
                    ty.ok_or_else(|| Problem::Syntax(format!("Op{}: its type has no numbers", form.name)))?;
                words.extend(number(word, ty).ok_or_else(unexpected)?);
            }
            (OperandKind::PairLiteralIntegerIdRef, Token::Word(word)) => {
                let selector = words.get(1).and_then(|selector| self.types.get(selector));
                let ty = selector.and_then(|ty| self.numbers.get(ty)).copied();
                let ty = ty.unwrap_or(NumberType { bits: 32, float: false });
                words.extend(number(word, ty).ok_or_else(unexpected)?);
                rest = self.operand(form, Some(0), OperandKind::IdRef, rest, words)?;
            }
            (OperandKind::LiteralExtInstInteger, Token::Word(word)) => {
                let set = words.get(3).and_then(|set| self.sets.get(set)).map_or("", String::as_str);
                let number = number_of_extended(set, word).or_else(|| word.parse().ok());
                let what = || Problem::Syntax(format!("`{word}` is no instruction of `{set}`"));
                words.push(number.ok_or_else(what)?);
                // What follows is ids, and literals in the older sets of debug instructions.
                rest = self.parameters(rest, true, words)?;
            }
            (OperandKind::LiteralSpecConstantOpInteger, Token::Word(word)) => {
                let inner = opcode::by_name(&format!("Op{word}")).ok_or_else(unexpected)?;
                words.push(inner.op as u32);
                rest = self.parameters(rest, true, words)?;
            }
            (kind, Token::Word(word)) => {
                words.push(word_of(kind, word).or_else(|| word.parse().ok()).ok_or_else(unexpected)?);
                if has_parameters(kind) {
                    let all = matches!(kind, OperandKind::Decoration | OperandKind::ExecutionMode);
                    rest = self.parameters(rest, all, words)?;
                }
            }
            _ => return Err(unexpected()),
        }
        Ok(rest)
    }

    /// Writes parameters: ids, numbers, strings and, with `words_too`, words.
    fn parameters<'a, 't>(
        &mut self,
        mut tokens: Tokens<'a, 't>,
        words_too: bool,
        words: &mut Vec<u32>,
    ) -> Result<Tokens<'a, 't>, Problem> {
        while let Some((token, rest)) = tokens.split_first() {
            match token {
                Token::Id(name) => words.push(self.id(name)),
                Token::Text(text) => push_string(text, words),
                Token::Word(word) => match number(word, NumberType { bits: 32, float: false }) {
                    Some(number) => words.extend(number),
                    None if !words_too => return Ok(tokens),
                    None => words.push(
                        crate::word::word_of_parameter(word)
                            .ok_or_else(|| Problem::Syntax(format!("unknown word `{word}`")))?,
                    ),
                },
                Token::Equals => return Err(Problem::Syntax("unexpected `=`".to_owned())),
            }
            tokens = rest;
        }
        Ok(tokens)
    }
}

fn shown(token: &Token<'_>) -> String {
    match token {
        Token::Id(name) => format!("`%{name}`"),
        Token::Equals => "`=`".to_owned(),
        Token::Text(_) => "string".to_owned(),
        Token::Word(word) => format!("`{word}`"),
    }
}

/// The words of a number of a type.
fn number(word: &str, ty: NumberType) -> Option<Vec<u32>> {
    let bits: u64 = if let Some(raw) = word.strip_prefix('!') {
        return Some(vec![raw.parse().ok()?]);
    } else if ty.float {
        let value: f64 = word.parse().ok()?;
        match ty.bits {
            64 => value.to_bits(),
            32 => u64::from((value as f32).to_bits()),
            16 => u64::from(half_of(value)),
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

/// The bits of a number as a float of 16 bits, rounded toward zero.
pub(crate) fn half_of(value: f64) -> u16 {
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

/// The string at the beginning of some words, and how many words it has.
pub(crate) fn string_of(words: &[u32]) -> (String, usize) {
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

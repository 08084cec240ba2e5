//! Given conditions on inputs: a parser of every condition that a proof prints, and of others of their form.
//!
//! Comparisons are computed in 64 bits, so ordinary values do not wrap. That a number does not wrap, or that indices are
//! in bounds, is a condition of the shader's code, which is found by its text.

use std::collections::BTreeSet;

use spirv_reader::SpirvType;

use crate::condition::Condition;
use crate::input::GivenValue;
use crate::names::{NO_WRAP, is_signed, scalar_type, symbol_name, variable_name, wrap_text};
use crate::prover::{Claim, Prover};
use crate::term::{FunctionKind, Operator, TermId};

/// The texts around the name of an array whose indices are in bounds.
const IN_BOUNDS: [&str; 2] = ["indices of `", "` are in bounds"];

/// Returns the condition that indices of an array are in bounds.
pub(crate) fn in_bounds_text(name: &str) -> String {
    format!("{}{name}{}", IN_BOUNDS[0], IN_BOUNDS[1])
}

/// An input or size of the shader.
struct Symbol {
    name: String,
    term: TermId,
    /// The width of a float, which is compared by its bits.
    float_width: Option<u32>,
}

impl Prover<'_> {
    /// Returns the inputs and sizes of the shader.
    fn named_symbols(&mut self) -> Vec<Symbol> {
        (0..3).for_each(|axis| _ = self.summary.group_count(axis));
        let summary = &self.summary;
        let float_width = |term: TermId| match summary.terms.kind_of(term) {
            Some(FunctionKind::Contents(variable, width)) => {
                let offset = summary.terms.term(term).arguments.last()?;
                let ty = scalar_type(summary, *variable, summary.terms.constant_of(*offset)?);
                matches!(ty, Some(SpirvType::Float { .. })).then_some(*width)
            }
            _ => None,
        };
        let ids = summary.terms.ids();
        let named = ids.filter_map(|id| Some((symbol_name(summary, id)?, id)));
        let mut all: Vec<Symbol> =
            named.map(|(name, term)| Symbol { name, term, float_width: float_width(term) }).collect();
        for (name, value) in &self.summary.used {
            let (bits, width, float_width) = match *value {
                GivenValue::Integer(value) => (value as u64, 64, None),
                GivenValue::Float(bits, width) => (bits, width, Some(width)),
            };
            let term = self.summary.terms.constant(width, bits);
            all.push(Symbol { name: name.clone(), term, float_width });
        }
        all
    }

    /// Parses and assumes a given condition, such as `pc.stride >= pc.width and pc.n % 16 == 0`.
    ///
    /// # Errors
    /// Returns the column, counted from 1, with what was expected there.
    pub fn parse_condition(&mut self, text: &str) -> Result<Vec<Condition>, (usize, String)> {
        let symbols = self.named_symbols();
        let mut parser = Parser { text, at: 0, symbols, prover: self };
        let mut all = Vec::new();
        loop {
            parser.rest();
            let from = parser.at;
            let claim = parser.condition()?;
            let text = text[from..parser.at].trim().to_owned();
            all.push(Condition { claim, text, comparison: None });
            if !parser.take("and") && !parser.take("&&") {
                break;
            }
        }
        match parser.rest() {
            "" => Ok(all),
            _ => Err(parser.expected("`and` or the end")),
        }
    }

    /// Assumes that the numbers with a text do not wrap; returns false if there is none.
    fn assume_exact(&mut self, text: &str) -> bool {
        let sources = self.inexact_sources();
        let of_text = sources.iter().filter(|source| wrap_text(&self.summary, **source) == text);
        let whole: Vec<TermId> = of_text.copied().collect();
        // A condition of a number includes the sums and products in it.
        let parts = sources
            .into_iter()
            .filter(|source| whole.iter().any(|whole| self.summary.terms.has_part(*whole, *source)));
        self.exact.extend(parts.collect::<Vec<TermId>>());
        !whole.is_empty()
    }
}

/// A parser of conditions.
struct Parser<'t, 'p, 'm> {
    text: &'t str,
    at: usize,
    symbols: Vec<Symbol>,
    prover: &'p mut Prover<'m>,
}

/// Parses an integer literal of C, with an optional suffix such as `u`; `None` if it is none or needs 64 bits.
fn parse_number(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    u64::from_str_radix(digits, radix).ok().filter(|number| i64::try_from(*number).is_ok())
}

type Parsed<T> = Result<T, (usize, String)>;

impl Parser<'_, '_, '_> {
    fn rest(&mut self) -> &str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        &self.text[self.at..]
    }

    fn take(&mut self, token: &str) -> bool {
        let is_next = self.rest().starts_with(token);
        self.at += if is_next { token.len() } else { 0 };
        is_next
    }

    fn expected(&self, what: &str) -> (usize, String) {
        (self.text[..self.at].chars().count() + 1, format!("expected {what}"))
    }

    fn condition(&mut self) -> Parsed<Claim> {
        let rest = self.rest();
        let end = [" and ", "&&"].into_iter().filter_map(|word| rest.find(word)).min().unwrap_or(rest.len());
        let piece = rest[..end].trim_end().to_owned();
        let truth = Claim::Term(self.prover.summary.terms.truth(true));
        let of_array = piece.strip_prefix(IN_BOUNDS[0]).and_then(|rest| rest.strip_suffix(IN_BOUNDS[1]));
        if let Some(array) = of_array {
            if !self.prover.summary.bounds.iter().any(|bound| bound.name == array) {
                self.at += IN_BOUNDS[0].len();
                return Err(self.expected("the name of an array of fixed length"));
            }
            self.prover.bounded.insert(array.to_owned());
        } else if piece.contains(NO_WRAP) {
            if !self.prover.assume_exact(&piece) {
                return Err(self.expected("a sum or product of the shader, as a proof prints it"));
            }
        } else {
            return self.comparison();
        }
        self.at += piece.len();
        Ok(truth)
    }

    fn comparison(&mut self) -> Parsed<Claim> {
        if self.take("distinct(") {
            let module = self.prover.summary.module;
            let rest = self.rest().to_owned();
            let named = |id: &&u32| rest.starts_with(&format!("{})", variable_name(module, **id)));
            let found = module.variables.keys().find(named).copied();
            let found = found.ok_or_else(|| self.expected("the name of a buffer"))?;
            self.at += variable_name(module, found).len() + 1;
            return Ok(Claim::DistinctContents(found));
        }
        let start = self.at;
        if let Some((term, Some(width))) = self.symbol() {
            return self.float_comparison(term, width);
        }
        self.at = start;
        let left = self.bits()?;
        let operators = [">=", "<=", "==", "!=", ">", "<"];
        let Some(operator) = operators.into_iter().find(|one| self.take(one)) else {
            return Err(self.expected("a comparison: >=, <=, ==, !=, > or <"));
        };
        let right = self.bits()?;
        let terms = &mut self.prover.summary.terms;
        let term = match operator {
            "==" | "!=" => terms.equal(left, right),
            "<" | ">=" => terms.binary(Operator::LessSigned, left, right),
            _ => terms.binary(Operator::LessSigned, right, left),
        };
        Ok(Claim::Term(if matches!(operator, "!=" | ">=" | "<=") { terms.not(term) } else { term }))
    }

    /// Parses the comparison of a float with a literal, by their bits.
    fn float_comparison(&mut self, term: TermId, width: u32) -> Parsed<Claim> {
        let is_equal = self.take("==");
        if !is_equal && !self.take("!=") {
            return Err(self.expected("== or !=, the comparisons of a float"));
        }
        let rest = self.rest();
        let literal = &rest[..rest.find(|c: char| c.is_whitespace() || c == '&').unwrap_or(rest.len())];
        let bits = match width {
            32 => literal.parse::<f32>().ok().map(|value| u64::from(value.to_bits())),
            64 => literal.parse::<f64>().ok().map(f64::to_bits),
            _ => None,
        };
        let length = literal.len();
        let bits = bits.ok_or_else(|| self.expected("a number of 32 or 64 bits"))?;
        self.at += length;
        let terms = &mut self.prover.summary.terms;
        let value = terms.constant(width, bits);
        let equal = terms.equal(term, value);
        Ok(Claim::Term(if is_equal { equal } else { terms.not(equal) }))
    }

    /// Parses a conjunction of bits, which binds weaker than a sum, unlike in C.
    fn bits(&mut self) -> Parsed<TermId> {
        let mut left = self.sum()?;
        while !self.rest().starts_with("&&") && self.take("&") {
            let right = self.sum()?;
            left = self.prover.summary.terms.binary(Operator::And, left, right);
        }
        Ok(left)
    }

    fn sum(&mut self) -> Parsed<TermId> {
        let mut left = self.product()?;
        loop {
            let is_added = self.take("+");
            if !is_added && !self.take("-") {
                return Ok(left);
            }
            let right = self.product()?;
            let terms = &mut self.prover.summary.terms;
            left = if is_added { terms.add(left, right) } else { terms.subtract(left, right) };
        }
    }

    fn product(&mut self) -> Parsed<TermId> {
        let mut left = self.atom()?;
        let operators =
            [("*", Operator::Multiply), ("/", Operator::DivideSigned), ("%", Operator::RemainderSigned)];
        while let Some((_, operator)) = operators.iter().find(|(token, _)| self.take(token)) {
            let right = self.atom()?;
            left = self.prover.summary.terms.binary(operator.clone(), left, right);
        }
        Ok(left)
    }

    fn name(&mut self) -> String {
        let rest = self.rest();
        let name = rest[..rest.find(|c| !is_part_of_name(c)).unwrap_or(rest.len())].to_owned();
        self.at += name.len();
        name
    }

    fn atom(&mut self) -> Parsed<TermId> {
        if self.take("(") {
            let inner = self.bits()?;
            return if self.take(")") { Ok(inner) } else { Err(self.expected("`)`")) };
        }
        if self.take("-") {
            let value = self.atom()?;
            let zero = self.prover.summary.terms.constant(64, 0);
            return Ok(self.prover.summary.terms.subtract(zero, value));
        }
        let is_length = self.take("len(");
        self.rest();
        let start = self.at;
        if let (false, Some((term, _))) = (is_length, self.symbol()) {
            return Ok(self.extend(term));
        }
        let mut name = self.name();
        let is_number = name.starts_with(|c: char| c.is_ascii_digit()) && !name.contains(['.', '@', '[']);
        if !is_length && is_number {
            let number = parse_number(&name);
            self.at = if number.is_none() { start } else { self.at };
            let number = number.ok_or_else(|| {
                self.expected(
                    "a number below 2^63: decimal, octal (017), hexadecimal (0x1f) or binary (0b101)",
                )
            })?;
            return Ok(self.prover.summary.terms.constant(64, number));
        }
        if is_length && self.take(")") || name.ends_with(".length") && self.take("()") {
            name = format!("{}.length()", name.trim_end_matches(".length"));
        }
        // The last part of a name suffices if it is unique.
        let exact = self.symbols.iter().find(|known| known.name == name);
        let mut short = self.symbols.iter().filter(|known| known.name.ends_with(&format!(".{name}")));
        let found = exact.or_else(|| short.next().filter(|_| short.next().is_none()));
        let Some(term) = found.map(|known| known.term) else {
            self.at = start;
            let known: BTreeSet<&str> = self.symbols.iter().map(|known| &*known.name).collect();
            let known = Vec::from_iter(known).join(", ");
            return Err(self.expected(&format!("a number or one of {known}")));
        };
        Ok(self.extend(term))
    }

    /// Takes the longest name of an input or size that the text begins with; returns its term, and the width of a float.
    fn symbol(&mut self) -> Option<(TermId, Option<u32>)> {
        let rest = self.rest().to_owned();
        let is_next = |known: &&Symbol| {
            let after = rest.strip_prefix(known.name.as_str());
            after.is_some_and(|after| !after.starts_with(is_part_of_name))
        };
        let found = self.symbols.iter().filter(is_next).max_by_key(|known| known.name.len())?;
        self.at += found.name.len();
        Some((found.term, found.float_width))
    }

    fn extend(&mut self, term: TermId) -> TermId {
        let is_signed = is_signed(&self.prover.summary, term);
        self.prover.summary.terms.extend(term, 64, is_signed)
    }
}

fn is_part_of_name(c: char) -> bool {
    c.is_alphanumeric() || "_.[]$@".contains(c)
}

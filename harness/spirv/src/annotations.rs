//! Annotations of Dartagnan in the comments of SPIR-V text: grid, inputs and claims.
//!
//! `@Config: T, S, W` gives invocations per subgroup, subgroups per workgroup, and workgroups. `@Input: %v =
//! {{0, 1}}` gives an initial value in the shape of the type. `@Output: forall (…)` and `@Filter: (…)` are
//! formulas over final values.

use crate::error::{SourcePosition, SpirvError, SpirvProblem};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// Invocations per subgroup, subgroups per workgroup, workgroups.
    pub config: Option<[u32; 3]>,
    /// Initial values by the name of a variable or specialization constant.
    pub inputs: Vec<(String, Initial)>,
    /// The claims; all have to hold.
    pub outputs: Vec<QuantifiedFormula>,
    /// The final states to consider.
    pub filter: Option<Formula>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Initial {
    Number(i64),
    /// The parts of a composite.
    Parts(Vec<Initial>),
}

/// A claim about final states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantifiedFormula {
    pub quantifier: Quantifier,
    pub formula: Formula,
    /// The line of the annotation.
    pub line: u32,
}

/// The quantifier of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    Forall,
    Exists,
    NotExists,
}

/// A formula over final values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// A comparison with its operator.
    Compare(FormulaTerm, &'static str, FormulaTerm),
    And(Vec<Formula>),
    Or(Vec<Formula>),
    Not(Box<Formula>),
    /// A constant.
    Known(bool),
    /// An expectation of a script, with its line.
    AtLine(u32, Box<Formula>),
}

/// An operand of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormulaTerm {
    Number(i64),
    /// An element of a variable.
    Element(String, Vec<PathStep>),
    /// Bytes of a buffer, by descriptor set and binding; `initial` if the shader does not have it. The name is that of
    /// the element, if the shader is known.
    Bytes {
        name: Option<String>,
        binding: (u32, u32),
        offset: u64,
        bytes: u32,
        initial: i64,
    },
}

/// One step of a path into a composite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// An array element, or a member by index.
    Index(u64),
    /// A member by name.
    Member(String),
}

impl Formula {
    /// Calls a function with each term.
    pub fn for_each_term(&mut self, change: &mut impl FnMut(&mut FormulaTerm)) {
        match self {
            Formula::Compare(left, _, right) => [left, right].into_iter().for_each(change),
            Formula::And(parts) | Formula::Or(parts) => {
                parts.iter_mut().for_each(|part| part.for_each_term(change));
            }
            Formula::Not(inner) | Formula::AtLine(_, inner) => inner.for_each_term(change),
            Formula::Known(_) => {}
        }
    }

    /// Returns the formula without its line, and the line if it has one.
    pub fn placed(&self) -> (Option<u32>, &Formula) {
        match self {
            Formula::AtLine(line, inner) => (Some(*line), inner),
            _ => (None, self),
        }
    }
}

impl std::fmt::Display for Formula {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let joined = |f: &mut std::fmt::Formatter<'_>, parts: &[Formula], word: &str| {
            for (index, part) in parts.iter().enumerate() {
                let between = if index > 0 { word } else { "" };
                match part.placed().1 {
                    Formula::And(_) | Formula::Or(_) => write!(f, "{between}({part})")?,
                    part => write!(f, "{between}{part}")?,
                }
            }
            Ok(())
        };
        match self {
            Formula::Compare(left, sign, right) => write!(f, "{left} {sign} {right}"),
            Formula::And(parts) => joined(f, parts, " and "),
            Formula::Or(parts) => joined(f, parts, " or "),
            Formula::Not(inner) => write!(f, "not ({inner})"),
            Formula::Known(known) => write!(f, "{known}"),
            Formula::AtLine(_, inner) => write!(f, "{inner}"),
        }
    }
}

impl std::fmt::Display for FormulaTerm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FormulaTerm::Number(number) => write!(f, "{number}"),
            FormulaTerm::Bytes { name: Some(name), .. } => write!(f, "{name}"),
            FormulaTerm::Bytes { binding: (set, binding), offset, .. } => {
                write!(f, "{set}.{binding}@{offset}")
            }
            FormulaTerm::Element(name, path) => {
                // A numeric name needs its sigil.
                let number = name.starts_with(|c: char| c.is_ascii_digit()) && !name.contains('.');
                let sign = if number { "%" } else { "" };
                write!(f, "{sign}{name}")?;
                path.iter().try_for_each(|part| match part {
                    PathStep::Index(index) => write!(f, "[{index}]"),
                    PathStep::Member(member) => write!(f, ".{member}"),
                })
            }
        }
    }
}

impl Annotations {
    /// Parses the comments of a text.
    ///
    /// # Errors
    /// Returns the line of a malformed annotation.
    pub fn parse(text: &str) -> Result<Annotations, SpirvError> {
        let mut found = Annotations::default();
        for (index, line) in text.lines().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix(';') else { continue };
            let comment = comment.trim_start_matches(';').trim();
            let number = index as u32 + 1;
            let wrong =
                |what: String| SpirvProblem::Annotation(what).located_at(SourcePosition::Line(number));
            if let Some(rest) = comment.strip_prefix("@Config:") {
                let numbers: Vec<u32> = rest.split(',').filter_map(|part| part.trim().parse().ok()).collect();
                let config = <[u32; 3]>::try_from(numbers.get(..3).unwrap_or_default());
                found.config = Some(config.map_err(|_| wrong(format!("three numbers expected: `{rest}`")))?);
            } else if let Some(rest) = comment.strip_prefix("@Input:") {
                let mut parser = FormulaParser { rest };
                loop {
                    let input = parser.parse_input().map_err(&wrong)?;
                    found.inputs.push(input);
                    if !parser.consume_word_if(",") {
                        break;
                    }
                }
                parser.expect_end().map_err(&wrong)?;
            } else if let Some(rest) = comment.strip_prefix("@Output:") {
                let mut parser = FormulaParser { rest };
                let quantifier = if parser.consume_word_if("forall") {
                    Quantifier::Forall
                } else if parser.consume_word_if("exists") {
                    Quantifier::Exists
                } else if parser.consume_word_if("not exists") || parser.consume_word_if("~exists") {
                    Quantifier::NotExists
                } else {
                    return Err(wrong(format!("a quantifier expected: `{rest}`")));
                };
                let formula = parser.parse_disjunction(0).map_err(&wrong)?;
                parser.expect_end().map_err(&wrong)?;
                found.outputs.push(QuantifiedFormula { quantifier, formula, line: number });
            } else if let Some(rest) = comment.strip_prefix("@Filter:") {
                let mut parser = FormulaParser { rest };
                let formula = parser.parse_disjunction(0).map_err(&wrong)?;
                parser.expect_end().map_err(&wrong)?;
                found.filter = Some(match found.filter.take() {
                    Some(before) => Formula::And(vec![before, formula]),
                    None => formula,
                });
            }
        }
        Ok(found)
    }
}

/// Parses `SET.BINDING`.
pub fn parse_binding(name: &str) -> Option<(u32, u32)> {
    let (set, binding) = name.split_once('.')?;
    Some((set.parse().ok()?, binding.parse().ok()?))
}

/// Parses a claim in the notation of `@Output`, without its quantifier.
///
/// # Errors
/// Describes the syntax error.
pub fn parse_formula(text: &str) -> Result<Formula, SpirvProblem> {
    let mut parser = FormulaParser { rest: text };
    let formula = parser.parse_disjunction(0).map_err(SpirvProblem::Annotation)?;
    parser.expect_end().map_err(SpirvProblem::Annotation)?;
    Ok(formula)
}

struct FormulaParser<'t> {
    rest: &'t str,
}

/// Upper bound on nested parentheses.
const MAX_NESTING: u32 = 128;

type Parsed<T> = Result<T, String>;

impl<'t> FormulaParser<'t> {
    fn consume_word_if(&mut self, word: &str) -> bool {
        self.rest = self.rest.trim_start();
        // A word ends at a name boundary: `nothing` is not `not hing`.
        let is_word = word.ends_with(|c: char| c.is_ascii_alphanumeric());
        let continues_name = |rest: &&str| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        match self.rest.strip_prefix(word).filter(|rest| !(is_word && continues_name(rest))) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.consume_word_if(word) {
            Ok(())
        } else {
            Err(format!("`{word}` expected before `{}`", self.rest))
        }
    }

    fn expect_end(&mut self) -> Parsed<()> {
        if self.rest.trim().is_empty() { Ok(()) } else { Err(format!("unexpected `{}`", self.rest)) }
    }

    fn take_word(&mut self, inside: impl Fn(char) -> bool) -> &'t str {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c| !inside(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn parse_number(&mut self) -> Parsed<i64> {
        let negative = self.consume_word_if("-");
        let digits = self.take_word(|c| c.is_ascii_alphanumeric());
        let magnitude = match digits.strip_prefix("0x") {
            Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok(),
            None => match digits {
                "true" => Some(1),
                "false" => Some(0),
                digits => digits.parse::<u64>().ok(),
            },
        };
        let magnitude = magnitude.ok_or_else(|| format!("a number expected: `{digits}{}`", self.rest))?;
        Ok(if negative { magnitude.wrapping_neg() as i64 } else { magnitude as i64 })
    }

    fn parse_name(&mut self) -> Parsed<String> {
        self.consume_word_if("%");
        let name = self.take_word(|c| c.is_ascii_alphanumeric() || ['_', '$', '@'].contains(&c));
        if name.is_empty() { Err(format!("a name expected: `{}`", self.rest)) } else { Ok(name.to_owned()) }
    }

    /// Parses the name of a buffer without a name, `SET.BINDING`.
    fn parse_binding(&mut self) -> Option<String> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        // The last point is before a member.
        let name = self.rest.get(..end)?.trim_end_matches('.');
        let rest = self.rest.get(name.len()..)?;
        parse_binding(name).filter(|_| rest.starts_with(['[', '.']))?;
        self.rest = rest;
        Some(name.to_owned())
    }

    fn parse_input(&mut self) -> Parsed<(String, Initial)> {
        let name = self.parse_name()?;
        self.expect_word("=")?;
        Ok((name, self.parse_initial(0)?))
    }

    fn parse_initial(&mut self, depth: u32) -> Parsed<Initial> {
        if depth > MAX_NESTING {
            return Err("braces too deep".to_owned());
        }
        if !self.consume_word_if("{") {
            return Ok(Initial::Number(self.parse_number()?));
        }
        let mut parts = Vec::new();
        while !self.consume_word_if("}") {
            parts.push(self.parse_initial(depth + 1)?);
            if !self.consume_word_if(",") {
                self.expect_word("}")?;
                break;
            }
        }
        Ok(Initial::Parts(parts))
    }

    fn parse_disjunction(&mut self, depth: u32) -> Parsed<Formula> {
        let mut parts = vec![self.parse_conjunction(depth)?];
        while self.consume_word_if("or") || self.consume_word_if("\\/") || self.consume_word_if("||") {
            parts.push(self.parse_conjunction(depth)?);
        }
        Ok(if parts.len() == 1 { parts.swap_remove(0) } else { Formula::Or(parts) })
    }

    fn parse_conjunction(&mut self, depth: u32) -> Parsed<Formula> {
        let mut parts = vec![self.parse_atom(depth)?];
        while self.consume_word_if("and") || self.consume_word_if("/\\") || self.consume_word_if("&&") {
            parts.push(self.parse_atom(depth)?);
        }
        Ok(if parts.len() == 1 { parts.swap_remove(0) } else { Formula::And(parts) })
    }

    fn parse_atom(&mut self, depth: u32) -> Parsed<Formula> {
        if depth > MAX_NESTING {
            return Err("parentheses too deep".to_owned());
        }
        if self.consume_word_if("not") || self.consume_word_if("~") {
            return Ok(Formula::Not(Box::new(self.parse_atom(depth + 1)?)));
        }
        if self.consume_word_if("(") {
            let inner = self.parse_disjunction(depth + 1)?;
            self.expect_word(")")?;
            return Ok(inner);
        }
        let before = self.rest;
        if self.consume_word_if("true") || self.consume_word_if("false") {
            return Ok(Formula::Known(before.trim_start().starts_with("true")));
        }
        let left = self.parse_term()?;
        for sign in ["==", "!=", "<=", ">=", "<", ">", "="] {
            if self.consume_word_if(sign) {
                let sign = if sign == "=" { "==" } else { sign };
                return Ok(Formula::Compare(left, sign, self.parse_term()?));
            }
        }
        Err(format!("a comparison expected: `{}`", self.rest))
    }

    fn parse_term(&mut self) -> Parsed<FormulaTerm> {
        self.rest = self.rest.trim_start();
        let binding = self.parse_binding();
        if binding.is_none() && self.rest.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return Ok(FormulaTerm::Number(self.parse_number()?));
        }
        let name = match binding {
            Some(binding) => binding,
            None => self.parse_name()?,
        };
        let mut path = Vec::new();
        loop {
            if self.consume_word_if("[") {
                let index = self.parse_number()?;
                path.push(PathStep::Index(u64::try_from(index).map_err(|_| "a negative index".to_owned())?));
                self.expect_word("]")?;
            } else if self.consume_word_if(".") {
                path.push(PathStep::Member(self.parse_name()?));
            } else {
                return Ok(FormulaTerm::Element(name, path));
            }
        }
    }
}

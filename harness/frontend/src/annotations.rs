//! The peer's annotations: comments of a text that say the grid, the inputs and what is asked.
//!
//! `@Config: T, S, W` is so many invocations a subgroup, subgroups a workgroup, and workgroups. `@Input: %v = {{0, 1}}` is an
//! initial value in the shape of the type; `@Output: forall (…)` and `@Filter: (…)` speak of final values.

use crate::error::{Place, Problem, Refusal};

/// What the comments of a text say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// Invocations a subgroup, subgroups a workgroup, workgroups.
    pub config: Option<[u32; 3]>,
    /// Initial values by the name of a variable or specialization constant.
    pub inputs: Vec<(String, Initial)>,
    /// What is asked; several are to hold together.
    pub outputs: Vec<Asked>,
    /// What final states are looked at.
    pub filter: Option<Formula>,
}

/// An initial value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Initial {
    /// A number.
    Number(i64),
    /// The parts of a composite.
    Parts(Vec<Initial>),
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The quantifier.
    pub quantifier: Quantifier,
    /// What is said of final values.
    pub formula: Formula,
    /// The line that it stands on.
    pub line: u32,
}

/// The quantifier of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Quantifier {
    Forall,
    Exists,
    NotExists,
}

/// A formula over final values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// A comparison, by its sign.
    Compare(Side, &'static str, Side),
    /// All hold.
    And(Vec<Formula>),
    /// One holds.
    Or(Vec<Formula>),
    /// It does not hold.
    Not(Box<Formula>),
    /// Always true or false.
    Known(bool),
}

/// A side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// A number.
    Number(i64),
    /// A part of a variable.
    Element(String, Vec<Part>),
}

/// A step from a composite to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// An element, or a member by its number.
    Index(u64),
    /// A member.
    Member(String),
}

impl std::fmt::Display for Formula {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let joined = |f: &mut std::fmt::Formatter<'_>, parts: &[Formula], word: &str| {
            for (index, part) in parts.iter().enumerate() {
                let between = if index > 0 { word } else { "" };
                match part {
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
        }
    }
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Side::Number(number) => write!(f, "{number}"),
            Side::Element(name, path) => {
                // Numbers are names with their sign alone.
                let sign = if name.starts_with(|c: char| c.is_ascii_digit()) { "%" } else { "" };
                write!(f, "{sign}{name}")?;
                path.iter().try_for_each(|part| match part {
                    Part::Index(index) => write!(f, "[{index}]"),
                    Part::Member(member) => write!(f, ".{member}"),
                })
            }
        }
    }
}

impl Annotations {
    /// Reads the comments of a text.
    ///
    /// # Errors
    /// An annotation that is not understood, with its line.
    pub fn parse(text: &str) -> Result<Annotations, Refusal> {
        let mut found = Annotations::default();
        for (index, line) in text.lines().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix(';') else { continue };
            let comment = comment.trim_start_matches(';').trim();
            let number = index as u32 + 1;
            let wrong = |what: String| Problem::Annotation(what).at(Place::Line(number));
            if let Some(rest) = comment.strip_prefix("@Config:") {
                let numbers: Vec<u32> = rest.split(',').filter_map(|part| part.trim().parse().ok()).collect();
                let config = <[u32; 3]>::try_from(numbers.get(..3).unwrap_or_default());
                found.config = Some(config.map_err(|_| wrong(format!("three numbers expected: `{rest}`")))?);
            } else if let Some(rest) = comment.strip_prefix("@Input:") {
                let mut parser = Parser { rest };
                loop {
                    let input = parser.input().map_err(&wrong)?;
                    found.inputs.push(input);
                    if !parser.eat(",") {
                        break;
                    }
                }
                parser.end().map_err(&wrong)?;
            } else if let Some(rest) = comment.strip_prefix("@Output:") {
                let mut parser = Parser { rest };
                let quantifier = if parser.eat("forall") {
                    Quantifier::Forall
                } else if parser.eat("exists") {
                    Quantifier::Exists
                } else if parser.eat("not exists") || parser.eat("~exists") {
                    Quantifier::NotExists
                } else {
                    return Err(wrong(format!("a quantifier expected: `{rest}`")));
                };
                let formula = parser.disjunction(0).map_err(&wrong)?;
                parser.end().map_err(&wrong)?;
                found.outputs.push(Asked { quantifier, formula, line: number });
            } else if let Some(rest) = comment.strip_prefix("@Filter:") {
                let mut parser = Parser { rest };
                let formula = parser.disjunction(0).map_err(&wrong)?;
                parser.end().map_err(&wrong)?;
                found.filter = Some(match found.filter.take() {
                    Some(before) => Formula::And(vec![before, formula]),
                    None => formula,
                });
            }
        }
        Ok(found)
    }
}

/// Reads an assertion in the notation of `@Output`, without its quantifier.
///
/// # Errors
/// What is not understood.
pub fn parse_formula(text: &str) -> Result<Formula, Problem> {
    let mut parser = Parser { rest: text };
    let formula = parser.disjunction(0).map_err(Problem::Annotation)?;
    parser.end().map_err(Problem::Annotation)?;
    Ok(formula)
}

struct Parser<'t> {
    rest: &'t str,
}

/// Parentheses in parentheses at most.
const MAX_NESTING: u32 = 128;

type Parsed<T> = Result<T, String>;

impl<'t> Parser<'t> {
    fn eat(&mut self, word: &str) -> bool {
        self.rest = self.rest.trim_start();
        // A word ends where no name goes on: `nothing` is not `not hing`.
        let is_word = word.ends_with(|c: char| c.is_ascii_alphanumeric());
        let goes_on = |rest: &&str| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        match self.rest.strip_prefix(word).filter(|rest| !(is_word && goes_on(rest))) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, word: &str) -> Parsed<()> {
        if self.eat(word) { Ok(()) } else { Err(format!("`{word}` expected before `{}`", self.rest)) }
    }

    fn end(&mut self) -> Parsed<()> {
        if self.rest.trim().is_empty() { Ok(()) } else { Err(format!("unexpected `{}`", self.rest)) }
    }

    fn word(&mut self, inside: impl Fn(char) -> bool) -> &'t str {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c| !inside(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn number(&mut self) -> Parsed<i64> {
        let negative = self.eat("-");
        let digits = self.word(|c| c.is_ascii_alphanumeric());
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

    fn name(&mut self) -> Parsed<String> {
        self.eat("%");
        let name = self.word(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$');
        if name.is_empty() { Err(format!("a name expected: `{}`", self.rest)) } else { Ok(name.to_owned()) }
    }

    fn input(&mut self) -> Parsed<(String, Initial)> {
        let name = self.name()?;
        self.expect("=")?;
        Ok((name, self.initial(0)?))
    }

    fn initial(&mut self, depth: u32) -> Parsed<Initial> {
        if depth > MAX_NESTING {
            return Err("braces too deep".to_owned());
        }
        if !self.eat("{") {
            return Ok(Initial::Number(self.number()?));
        }
        let mut parts = Vec::new();
        while !self.eat("}") {
            parts.push(self.initial(depth + 1)?);
            if !self.eat(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(Initial::Parts(parts))
    }

    fn disjunction(&mut self, depth: u32) -> Parsed<Formula> {
        let mut parts = vec![self.conjunction(depth)?];
        while self.eat("or") || self.eat("\\/") || self.eat("||") {
            parts.push(self.conjunction(depth)?);
        }
        Ok(if parts.len() == 1 { parts.swap_remove(0) } else { Formula::Or(parts) })
    }

    fn conjunction(&mut self, depth: u32) -> Parsed<Formula> {
        let mut parts = vec![self.atom(depth)?];
        while self.eat("and") || self.eat("/\\") || self.eat("&&") {
            parts.push(self.atom(depth)?);
        }
        Ok(if parts.len() == 1 { parts.swap_remove(0) } else { Formula::And(parts) })
    }

    fn atom(&mut self, depth: u32) -> Parsed<Formula> {
        if depth > MAX_NESTING {
            return Err("parentheses too deep".to_owned());
        }
        if self.eat("not") || self.eat("~") {
            return Ok(Formula::Not(Box::new(self.atom(depth + 1)?)));
        }
        if self.eat("(") {
            let inner = self.disjunction(depth + 1)?;
            self.expect(")")?;
            return Ok(inner);
        }
        let before = self.rest;
        if self.eat("true") || self.eat("false") {
            return Ok(Formula::Known(before.trim_start().starts_with("true")));
        }
        let left = self.side()?;
        for sign in ["==", "!=", "<=", ">=", "<", ">", "="] {
            if self.eat(sign) {
                let sign = if sign == "=" { "==" } else { sign };
                return Ok(Formula::Compare(left, sign, self.side()?));
            }
        }
        Err(format!("a comparison expected: `{}`", self.rest))
    }

    fn side(&mut self) -> Parsed<Side> {
        self.rest = self.rest.trim_start();
        if self.rest.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return Ok(Side::Number(self.number()?));
        }
        let name = self.name()?;
        let mut path = Vec::new();
        loop {
            if self.eat("[") {
                let index = self.number()?;
                path.push(Part::Index(u64::try_from(index).map_err(|_| "a negative index".to_owned())?));
                self.expect("]")?;
            } else if self.eat(".") {
                path.push(Part::Member(self.name()?));
            } else {
                return Ok(Side::Element(name, path));
            }
        }
    }
}

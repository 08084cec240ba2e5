//! A parser of the cat language as far as the shipped models use it. Other constructs are refused by name.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::format::ModelText;

/// An expression of cat.
#[derive(Debug)]
pub(crate) enum Expression {
    Name(String),
    Call(String, Vec<Expression>),
    Binary(char, Box<(Expression, Expression)>),
    Unary(&'static str, Box<Expression>),
    Let(Bindings, Box<Expression>),
    /// `union(variable in family: body)`.
    Union(String, String, Box<Expression>),
}

/// The definitions of one `let`.
#[derive(Debug)]
pub(crate) struct Bindings {
    pub(crate) is_recursive: bool,
    pub(crate) list: Vec<Rc<Binding>>,
}

/// A definition; a function if it has parameters.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) name: String,
    pub(crate) parameters: Option<Vec<String>>,
    pub(crate) body: Expression,
}

/// The constraint of an axiom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AxiomShape {
    Acyclic,
    Irreflexive,
    Empty,
}

#[derive(Debug)]
pub(crate) enum Statement {
    Let(Bindings),
    Axiom { flag: bool, negated: bool, shape: AxiomShape, body: Expression, name: Option<String> },
}

#[derive(Debug)]
pub(crate) struct ParsedModel {
    pub(crate) statements: Vec<Statement>,
    /// The words `key=value` of the options comments; the first of a key counts.
    pub(crate) options: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Quoted(String),
    Sign(&'static str),
}

const SIGNS: [&str; 19] =
    ["^-1", "^+", "^*", "^?", "|", ";", "\\", "&", "~", "+", "*", "?", "(", ")", "[", "]", ",", "=", ":"];
const KEYWORDS: [&str; 9] =
    ["let", "include", "flag", "undefined_unless", "acyclic", "irreflexive", "empty", "as", "and"];
/// Words that begin constructs outside this part of the language.
const UNSUPPORTED_WORDS: [&str; 14] = [
    "procedure",
    "call",
    "with",
    "if",
    "show",
    "unshow",
    "cut",
    "try",
    "intersection",
    "match",
    "forall",
    "fun",
    "instructions",
    "enum",
];

/// Parses a model with its includes.
pub(crate) fn parse(text: &ModelText) -> Result<ParsedModel, String> {
    let mut model = ParsedModel { statements: Vec::new(), options: BTreeMap::new() };
    parse_file(&text.text, text, &mut model, 0)?;
    Ok(model)
}

fn parse_file(
    text: &str,
    model_text: &ModelText,
    model: &mut ParsedModel,
    depth: usize,
) -> Result<(), String> {
    if depth > 16 {
        return Err("includes of a file in itself".to_owned());
    }
    let tokens = tokenize(text, &mut model.options)?;
    let mut parser = Parser { tokens, next: 0 };
    let is_keyword = |token: &Token| matches!(token, Token::Word(word) if KEYWORDS.contains(&word.as_str()));
    parser.next = parser.tokens.iter().position(is_keyword).unwrap_or(parser.tokens.len());
    while parser.next < parser.tokens.len() {
        if parser.eat_word("include") {
            let Some(Token::Quoted(name)) = parser.next_token() else {
                return Err(parser.expected_error("a file"));
            };
            let included =
                model_text.includes.get(&name).ok_or(format!("no text of the included file {name}"))?;
            parse_file(included, model_text, model, depth + 1)?;
        } else {
            model.statements.push(parser.parse_statement()?);
        }
    }
    Ok(())
}

fn tokenize(text: &str, options: &mut BTreeMap<String, String>) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("(*") {
            let (mut depth, mut end) = (0, 0);
            while depth > 0 || end == 0 {
                let found = rest.get(end..).and_then(|tail| tail.find(['(', '*']));
                end += found.ok_or("a comment without an end")?;
                let tail = rest.get(end..).unwrap_or_default();
                match (tail.starts_with("(*"), tail.starts_with("*)")) {
                    (true, _) => (depth, end) = (depth + 1, end + 2),
                    (_, true) => (depth, end) = (depth - 1, end + 2),
                    _ => end += 1,
                }
            }
            let comment = rest.get(2..end - 2).unwrap_or_default();
            for word in comment.trim_start().strip_prefix("options:").unwrap_or_default().split_whitespace() {
                if let Some((key, value)) = word.split_once('=') {
                    options.entry(key.to_owned()).or_insert_with(|| value.to_owned());
                }
            }
            rest = rest.get(end..).unwrap_or_default();
        } else if rest.starts_with("//") {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some(quoted) = rest.strip_prefix('"') {
            let (name, tail) = quoted.split_once('"').ok_or("a string without an end")?;
            tokens.push(Token::Quoted(name.to_owned()));
            rest = tail;
        } else if first.is_ascii_alphanumeric() || first == '_' {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "_.-'".contains(c);
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let (word, tail) = rest.split_at(end);
            tokens.push(Token::Word(word.to_owned()));
            rest = tail;
        } else {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            let sign = sign.ok_or_else(|| format!("the sign {first} is not supported"))?;
            tokens.push(Token::Sign(sign));
            rest = rest.strip_prefix(sign).unwrap_or_default();
        }
        rest = rest.trim_start();
    }
    Ok(tokens)
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
}

impl Parser {
    fn next_token(&mut self) -> Option<Token> {
        self.next += 1;
        self.tokens.get(self.next - 1).cloned()
    }

    fn expected_error(&self, what: &str) -> String {
        format!("expected {what} at {:?}", self.tokens.get(self.next.saturating_sub(1)))
    }

    fn is_sign(&self, wanted: &str) -> bool {
        matches!(self.tokens.get(self.next), Some(Token::Sign(sign)) if *sign == wanted)
    }

    fn eat_sign(&mut self, wanted: &str) -> bool {
        let found = self.is_sign(wanted);
        self.next += usize::from(found);
        found
    }

    fn eat_word(&mut self, wanted: &str) -> bool {
        let found = matches!(self.tokens.get(self.next), Some(Token::Word(word)) if word == wanted);
        self.next += usize::from(found);
        found
    }

    fn expect_sign(&mut self, wanted: &'static str) -> Result<(), String> {
        if self.eat_sign(wanted) { Ok(()) } else { Err(self.expected_error(wanted)) }
    }

    fn parse_name(&mut self) -> Result<String, String> {
        match self.next_token() {
            Some(Token::Word(word)) if UNSUPPORTED_WORDS.contains(&word.as_str()) => {
                Err(format!("the construct {word} is not supported"))
            }
            Some(Token::Word(word)) if !KEYWORDS.contains(&word.as_str()) => Ok(word),
            _ => Err(self.expected_error("a name")),
        }
    }

    fn parse_statement(&mut self) -> Result<Statement, String> {
        if self.eat_word("let") {
            let bindings = self.parse_bindings()?;
            self.eat_word("in");
            return Ok(Statement::Let(bindings));
        }
        let is_undefined_unless = self.eat_word("undefined_unless");
        let flag = is_undefined_unless || self.eat_word("flag");
        let negated = self.eat_sign("~");
        let shape = match self.next_token() {
            Some(Token::Word(word)) if word == "acyclic" => AxiomShape::Acyclic,
            Some(Token::Word(word)) if word == "irreflexive" => AxiomShape::Irreflexive,
            Some(Token::Word(word)) if word == "empty" => AxiomShape::Empty,
            Some(Token::Word(word)) => return Err(format!("the construct {word} is not supported")),
            _ => return Err(self.expected_error("a statement")),
        };
        let body = self.parse_expression()?;
        let name = if self.eat_word("as") { Some(self.parse_name()?) } else { None };
        Ok(Statement::Axiom { flag, negated: negated != is_undefined_unless, shape, body, name })
    }

    fn parse_bindings(&mut self) -> Result<Bindings, String> {
        let recursive = self.eat_word("rec");
        let mut list = Vec::new();
        loop {
            let name = self.parse_name()?;
            let mut parameters = None;
            if self.eat_sign("(") {
                let mut names = Vec::new();
                while !self.eat_sign(")") {
                    names.push(self.parse_name()?);
                    self.eat_sign(",");
                }
                parameters = Some(names);
            }
            self.expect_sign("=")?;
            list.push(Rc::new(Binding { name, parameters, body: self.parse_expression()? }));
            if !self.eat_word("and") {
                return Ok(Bindings { is_recursive: recursive, list });
            }
        }
    }

    fn parse_expression(&mut self) -> Result<Expression, String> {
        self.parse_binary(0)
    }

    /// Binary operators, from the loosest to the tightest.
    fn parse_binary(&mut self, level: usize) -> Result<Expression, String> {
        let Some(operator) = ["|", ";", "\\", "&"].get(level) else { return self.parse_unary() };
        if level == 0 {
            self.eat_sign("|");
        }
        let mut left = self.parse_binary(level + 1)?;
        while self.eat_sign(operator) {
            let right = self.parse_binary(level + 1)?;
            left = Expression::Binary(operator.chars().next().unwrap_or('|'), Box::new((left, right)));
        }
        Ok(left)
    }

    fn parse_unary(&mut self) -> Result<Expression, String> {
        if self.eat_sign("~") {
            return Ok(Expression::Unary("~", Box::new(self.parse_unary()?)));
        }
        let mut operand = self.parse_primary()?;
        loop {
            let unary = ["^-1", "^+", "^*", "^?", "+", "?"].into_iter().find(|sign| self.eat_sign(sign));
            if let Some(sign) = unary {
                operand = Expression::Unary(sign.trim_start_matches('^'), Box::new(operand));
            } else if self.eat_sign("*") {
                // A product if an operand follows, else a closure.
                let ends = ["as", "and", "in", "let", "flag", "acyclic", "irreflexive", "empty", "include"];
                let follows = match self.tokens.get(self.next) {
                    Some(Token::Word(word)) => !ends.contains(&word.as_str()),
                    _ => self.is_sign("(") || self.is_sign("["),
                };
                operand = if follows {
                    Expression::Binary('*', Box::new((operand, self.parse_primary()?)))
                } else {
                    Expression::Unary("*", Box::new(operand))
                };
            } else {
                return Ok(operand);
            }
        }
    }

    fn parse_primary(&mut self) -> Result<Expression, String> {
        if self.eat_sign("(") {
            let inner = self.parse_expression()?;
            return self.expect_sign(")").map(|()| inner);
        }
        if self.eat_sign("[") {
            let inner = self.parse_expression()?;
            return self.expect_sign("]").map(|()| Expression::Unary("[]", Box::new(inner)));
        }
        if self.eat_word("let") {
            let bindings = self.parse_bindings()?;
            if !self.eat_word("in") {
                return Err(self.expected_error("in"));
            }
            return Ok(Expression::Let(bindings, Box::new(self.parse_expression()?)));
        }
        let name = self.parse_name()?;
        if !self.eat_sign("(") {
            return Ok(Expression::Name(name));
        }
        if name == "union" {
            let variable = self.parse_name()?;
            if !self.eat_word("in") {
                return Err("the construct union over tuples is not supported".to_owned());
            }
            let family = self.parse_name()?;
            self.expect_sign(":")?;
            let body = self.parse_expression()?;
            return self.expect_sign(")").map(|()| Expression::Union(variable, family, Box::new(body)));
        }
        let mut arguments = Vec::new();
        while !self.eat_sign(")") {
            arguments.push(self.parse_expression()?);
            if !self.eat_sign(",") && !self.is_sign(")") {
                return Err(self.expected_error(")"));
            }
        }
        Ok(Expression::Call(name, arguments))
    }
}

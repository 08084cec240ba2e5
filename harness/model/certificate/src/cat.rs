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
    pub(crate) recursive: bool,
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
pub(crate) enum Shape {
    Acyclic,
    Irreflexive,
    Empty,
}

/// A statement of a model.
#[derive(Debug)]
pub(crate) enum Statement {
    Let(Bindings),
    Axiom { flag: bool, negated: bool, shape: Shape, body: Expression, name: Option<String> },
}

/// A parsed model.
#[derive(Debug)]
pub(crate) struct Model {
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
const REFUSED: [&str; 14] = [
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
pub(crate) fn parse(text: &ModelText) -> Result<Model, String> {
    let mut model = Model { statements: Vec::new(), options: BTreeMap::new() };
    parse_file(&text.text, text, &mut model, 0)?;
    Ok(model)
}

fn parse_file(text: &str, all: &ModelText, model: &mut Model, depth: usize) -> Result<(), String> {
    if depth > 16 {
        return Err("includes of a file in itself".to_owned());
    }
    let tokens = tokenize(text, &mut model.options)?;
    let mut parser = Parser { tokens, next: 0 };
    let begins = |token: &Token| matches!(token, Token::Word(word) if KEYWORDS.contains(&word.as_str()));
    parser.next = parser.tokens.iter().position(begins).unwrap_or(parser.tokens.len());
    while parser.next < parser.tokens.len() {
        if parser.eat_word("include") {
            let Some(Token::Quoted(name)) = parser.take() else { return Err(parser.expected("a file")) };
            let included = all.includes.get(&name).ok_or(format!("no text of the included file {name}"))?;
            parse_file(included, all, model, depth + 1)?;
        } else {
            model.statements.push(parser.statement()?);
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
    fn take(&mut self) -> Option<Token> {
        self.next += 1;
        self.tokens.get(self.next - 1).cloned()
    }

    fn expected(&self, what: &str) -> String {
        format!("expected {what} at {:?}", self.tokens.get(self.next.saturating_sub(1)))
    }

    fn is_sign(&self, wanted: &str) -> bool {
        matches!(self.tokens.get(self.next), Some(Token::Sign(sign)) if *sign == wanted)
    }

    fn eat(&mut self, wanted: &str) -> bool {
        let found = self.is_sign(wanted);
        self.next += usize::from(found);
        found
    }

    fn eat_word(&mut self, wanted: &str) -> bool {
        let found = matches!(self.tokens.get(self.next), Some(Token::Word(word)) if word == wanted);
        self.next += usize::from(found);
        found
    }

    fn demand(&mut self, wanted: &'static str) -> Result<(), String> {
        if self.eat(wanted) { Ok(()) } else { Err(self.expected(wanted)) }
    }

    fn name(&mut self) -> Result<String, String> {
        match self.take() {
            Some(Token::Word(word)) if REFUSED.contains(&word.as_str()) => {
                Err(format!("the construct {word} is not supported"))
            }
            Some(Token::Word(word)) if !KEYWORDS.contains(&word.as_str()) => Ok(word),
            _ => Err(self.expected("a name")),
        }
    }

    fn statement(&mut self) -> Result<Statement, String> {
        if self.eat_word("let") {
            let bindings = self.bindings()?;
            self.eat_word("in");
            return Ok(Statement::Let(bindings));
        }
        let unless = self.eat_word("undefined_unless");
        let flag = unless || self.eat_word("flag");
        let negated = self.eat("~");
        let shape = match self.take() {
            Some(Token::Word(word)) if word == "acyclic" => Shape::Acyclic,
            Some(Token::Word(word)) if word == "irreflexive" => Shape::Irreflexive,
            Some(Token::Word(word)) if word == "empty" => Shape::Empty,
            Some(Token::Word(word)) => return Err(format!("the construct {word} is not supported")),
            _ => return Err(self.expected("a statement")),
        };
        let body = self.expression()?;
        let name = if self.eat_word("as") { Some(self.name()?) } else { None };
        Ok(Statement::Axiom { flag, negated: negated != unless, shape, body, name })
    }

    fn bindings(&mut self) -> Result<Bindings, String> {
        let recursive = self.eat_word("rec");
        let mut list = Vec::new();
        loop {
            let name = self.name()?;
            let mut parameters = None;
            if self.eat("(") {
                let mut names = Vec::new();
                while !self.eat(")") {
                    names.push(self.name()?);
                    self.eat(",");
                }
                parameters = Some(names);
            }
            self.demand("=")?;
            list.push(Rc::new(Binding { name, parameters, body: self.expression()? }));
            if !self.eat_word("and") {
                return Ok(Bindings { recursive, list });
            }
        }
    }

    fn expression(&mut self) -> Result<Expression, String> {
        self.binary(0)
    }

    /// Binary operators, from the loosest to the tightest.
    fn binary(&mut self, level: usize) -> Result<Expression, String> {
        let Some(operator) = ["|", ";", "\\", "&"].get(level) else { return self.complement() };
        if level == 0 {
            self.eat("|");
        }
        let mut left = self.binary(level + 1)?;
        while self.eat(operator) {
            let right = self.binary(level + 1)?;
            left = Expression::Binary(operator.chars().next().unwrap_or('|'), Box::new((left, right)));
        }
        Ok(left)
    }

    fn complement(&mut self) -> Result<Expression, String> {
        if self.eat("~") {
            return Ok(Expression::Unary("~", Box::new(self.complement()?)));
        }
        let mut operand = self.primary()?;
        loop {
            let unary = ["^-1", "^+", "^*", "^?", "+", "?"].into_iter().find(|sign| self.eat(sign));
            if let Some(sign) = unary {
                operand = Expression::Unary(sign.trim_start_matches('^'), Box::new(operand));
            } else if self.eat("*") {
                // A product if an operand follows, else a closure.
                let ends = ["as", "and", "in", "let", "flag", "acyclic", "irreflexive", "empty", "include"];
                let follows = match self.tokens.get(self.next) {
                    Some(Token::Word(word)) => !ends.contains(&word.as_str()),
                    _ => self.is_sign("(") || self.is_sign("["),
                };
                operand = if follows {
                    Expression::Binary('*', Box::new((operand, self.primary()?)))
                } else {
                    Expression::Unary("*", Box::new(operand))
                };
            } else {
                return Ok(operand);
            }
        }
    }

    fn primary(&mut self) -> Result<Expression, String> {
        if self.eat("(") {
            let inner = self.expression()?;
            return self.demand(")").map(|()| inner);
        }
        if self.eat("[") {
            let inner = self.expression()?;
            return self.demand("]").map(|()| Expression::Unary("[]", Box::new(inner)));
        }
        if self.eat_word("let") {
            let bindings = self.bindings()?;
            if !self.eat_word("in") {
                return Err(self.expected("in"));
            }
            return Ok(Expression::Let(bindings, Box::new(self.expression()?)));
        }
        let name = self.name()?;
        if !self.eat("(") {
            return Ok(Expression::Name(name));
        }
        if name == "union" {
            let variable = self.name()?;
            if !self.eat_word("in") {
                return Err("the construct union over tuples is not supported".to_owned());
            }
            let family = self.name()?;
            self.demand(":")?;
            let body = self.expression()?;
            return self.demand(")").map(|()| Expression::Union(variable, family, Box::new(body)));
        }
        let mut arguments = Vec::new();
        while !self.eat(")") {
            arguments.push(self.expression()?);
            if !self.eat(",") && !self.is_sign(")") {
                return Err(self.expected(")"));
            }
        }
        Ok(Expression::Call(name, arguments))
    }
}

//! Parses the sections after the table: listed names, the filter and the question.

use super::lexer::{Token, TokenKind};
use super::parser::{Parsed, Parser, check_room};
use super::words::is_thread;
use super::{MAX_COMPARISONS, MAX_NESTING};
use crate::comparison::Comparison;
use crate::condition::{Condition, Question, QuestionKind, Term};
use crate::error::ParseError;
use crate::test::{LocationId, RegisterId};

/// The nesting and size of a condition so far.
#[derive(Default)]
struct ConditionSize {
    depth: usize,
    comparisons: usize,
}

impl Parser<'_> {
    /// Parses `locations [ … ]`, `filter` and the question up to the end of the text.
    pub(super) fn parse_questions(&mut self) {
        let steps = [Self::parse_locations_section, Self::parse_filter_section, Self::parse_question_section];
        let steps = if self.is_hsa() { &steps[2..] } else { &steps[..] };
        for step in steps {
            if let Err(error) = step(self) {
                self.errors.push(error);
                self.skip_to_section();
            }
        }
        if self.peek().kind != TokenKind::End {
            let span = self.peek().span;
            let late_filter = self.at_word("filter") && self.test.question.is_some() && !self.is_hsa();
            self.errors.push(if late_filter {
                ParseError::FilterAfterQuestion { span }
            } else {
                ParseError::TrailingText { span }
            });
        }
    }

    /// Skips to the next section after the table.
    fn skip_to_section(&mut self) {
        while self.peek().kind != TokenKind::End {
            let section = ["locations", "filter", "exists", "forall", "final"];
            if section.iter().any(|word| self.at_word(word)) {
                return;
            }
            // `~` and `not` begin a question only before `exists`; inside a condition they are skipped.
            let negated = self.peek().kind == TokenKind::Tilde || self.at_word("not");
            let next = self.peek_at(1);
            if negated && next.kind == TokenKind::Word && self.token_text(next) == "exists" {
                return;
            }
            self.next();
        }
    }

    fn parse_locations_section(&mut self) -> Parsed<()> {
        if !self.at_word("locations") {
            return Ok(());
        }
        self.next();
        self.expect(TokenKind::OpenBracket, "`[`")?;
        while self.peek().kind != TokenKind::CloseBracket {
            let term = match self.parse_named_term()? {
                Some(NamedTerm::Register(thread, register)) => Term::Register(thread, register),
                Some(NamedTerm::Location(location)) => {
                    let component =
                        if self.is_vector(location) { self.parse_component(location)? } else { None };
                    if component.is_none() {
                        self.check_scalar(location)?;
                    }
                    Term::Location(location, component.unwrap_or(0))
                }
                None => return Err(self.unexpected_token("a location or a register such as `P0:r0`")),
            };
            self.test.listed_terms.push(term);
            if !self.accept(TokenKind::Semicolon) && self.peek().kind != TokenKind::CloseBracket {
                return Err(self.unexpected_token("`;` or `]`"));
            }
        }
        self.next();
        Ok(())
    }

    fn parse_filter_section(&mut self) -> Parsed<()> {
        if self.at_word("filter") {
            self.next();
            self.test.filter = Some(self.parse_condition()?);
            self.accept(TokenKind::Semicolon);
        }
        Ok(())
    }

    fn parse_question_section(&mut self) -> Parsed<()> {
        let start = self.peek().span;
        let kind = if self.at_negation() {
            self.next();
            if !self.at_word("exists") {
                return Err(self.unexpected_token("`exists`"));
            }
            QuestionKind::NotExists
        } else if self.at_word("exists") {
            QuestionKind::Exists
        } else if self.at_word("forall") {
            QuestionKind::Forall
        } else if self.at_word("final") && !self.is_hsa() {
            QuestionKind::Final
        } else if self.is_hsa() {
            return Err(self.unexpected_token("`exists`, `~exists` or `forall`"));
        } else {
            return Ok(());
        };
        self.next();
        let condition = self.parse_condition()?;
        let span = self.span_since(start);
        self.test.question = Some(Question { kind, condition, span });
        if !self.is_hsa() {
            self.accept(TokenKind::Semicolon);
        }
        Ok(())
    }

    /// Returns true if a `~` is next; the native dialect also writes `not`.
    fn at_negation(&self) -> bool {
        self.peek().kind == TokenKind::Tilde || self.at_word("not") && !self.is_hsa()
    }

    pub(super) fn parse_condition(&mut self) -> Parsed<Condition> {
        self.parse_disjunction(&mut ConditionSize::default())
    }

    fn parse_disjunction(&mut self, budget: &mut ConditionSize) -> Parsed<Condition> {
        let mut left = self.parse_conjunction(budget)?;
        while self.accept(TokenKind::Or) {
            left = Condition::Or(Box::new(left), Box::new(self.parse_conjunction(budget)?));
        }
        Ok(left)
    }

    fn parse_conjunction(&mut self, budget: &mut ConditionSize) -> Parsed<Condition> {
        let mut left = self.parse_negation(budget)?;
        while self.accept(TokenKind::And) {
            left = Condition::And(Box::new(left), Box::new(self.parse_negation(budget)?));
        }
        Ok(left)
    }

    fn parse_negation(&mut self, budget: &mut ConditionSize) -> Parsed<Condition> {
        let token = self.peek();
        let negated = self.at_negation();
        if !negated && token.kind != TokenKind::OpenParenthesis {
            return self.parse_comparison(budget);
        }
        self.next();
        budget.depth += 1;
        if budget.depth > MAX_NESTING {
            return Err(ParseError::NestedTooDeep { limit: MAX_NESTING, span: token.span });
        }
        let inner = if negated {
            Condition::Not(Box::new(self.parse_negation(budget)?))
        } else {
            let inner = self.parse_disjunction(budget)?;
            if self.peek().kind == TokenKind::End {
                return Err(ParseError::UnclosedParenthesis { span: token.span });
            }
            self.expect(TokenKind::CloseParenthesis, "`)`, `/\\` or `\\/`")?;
            inner
        };
        budget.depth -= 1;
        Ok(inner)
    }

    fn parse_comparison(&mut self, budget: &mut ConditionSize) -> Parsed<Condition> {
        let (what, span) = ("comparisons in one condition", self.peek().span);
        check_room(budget.comparisons, what, MAX_COMPARISONS, span)?;
        budget.comparisons += 1;
        // A comparison cannot follow, so a location may still have the name `true`.
        if self.at_word("true") && !self.is_hsa() && comparison_of(self.peek_at(1)).is_none() {
            let next = self.peek_at(1).kind;
            if next != TokenKind::OpenBracket {
                self.next();
                return Ok(Condition::True);
            }
        }
        let left = self.parse_term(false)?;
        let token = self.peek();
        let Some(comparison) = comparison_of(token) else {
            return Err(ParseError::ComparisonExpected {
                found: self.describe_token(token),
                span: token.span,
            });
        };
        self.next();
        Ok(Condition::Compare { left, comparison, right: self.parse_term(true)? })
    }

    /// Parses one side of a comparison. On the right, a bare location is its address, as in Dartagnan.
    fn parse_term(&mut self, right: bool) -> Parsed<Term> {
        let token = self.peek();
        // A number followed by `:` is a thread.
        if self.at_constant() && self.peek_at(1).kind != TokenKind::Colon {
            return Ok(Term::Constant(self.parse_constant()?));
        }
        if !self.is_hsa() && self.accept(TokenKind::Ampersand) {
            let token = self.parse_location_name()?;
            return Ok(Term::Address(self.resolve_location(token)?));
        }
        let bracketed = self.accept(TokenKind::OpenBracket);
        let location = match self.parse_named_term()? {
            Some(NamedTerm::Register(thread, register)) if !bracketed => {
                return Ok(Term::Register(thread, register));
            }
            Some(NamedTerm::Location(location)) => location,
            _ => {
                return Err(ParseError::TermExpected { found: self.describe_token(token), span: token.span });
            }
        };
        if self.is_hsa() && !bracketed {
            return Ok(Term::Location(location, 0));
        }
        if !bracketed && let Some(component) = self.parse_component(location)? {
            return Ok(Term::Location(location, component));
        }
        if !right || self.is_hsa() {
            self.check_scalar(location)?;
        }
        if bracketed {
            self.expect(TokenKind::CloseBracket, "`]`")?;
        }
        Ok(if right && !self.is_hsa() { Term::Address(location) } else { Term::Location(location, 0) })
    }

    fn is_vector(&self, location: LocationId) -> bool {
        self.test.location(location).is_vector()
    }

    /// Parses `[2]` after a location as the index of a component; only `0` for a scalar. `None` without a
    /// bracket.
    fn parse_component(&mut self, id: LocationId) -> Parsed<Option<u8>> {
        if !self.accept(TokenKind::OpenBracket) {
            return Ok(None);
        }
        let location = self.test.location(id);
        let (vector, components, name) = (location.is_vector(), location.components, location.name.clone());
        let expected = if vector { "the number of a component" } else { "`0`" };
        let token = self.expect(TokenKind::Number, expected)?;
        let component = self.token_text(token).parse().ok().filter(|index| *index < components);
        let Some(component) = component else {
            let index = self.token_text(token).chars().take(40).collect();
            let (last, span) = (components - 1, token.span);
            return Err(if vector {
                ParseError::IndexOutOfRange { index, name, last, span }
            } else {
                ParseError::BadIndex { index, span }
            });
        };
        self.expect(TokenKind::CloseBracket, "`]`")?;
        Ok(Some(component))
    }

    /// Parses a register with its thread, or a location; `None` if neither follows.
    fn parse_named_term(&mut self) -> Parsed<Option<NamedTerm>> {
        let token = self.peek();
        let word = self.token_text(token);
        let is_word = token.kind == TokenKind::Word;
        let number = token.kind == TokenKind::Number && !self.is_hsa();
        if number || (is_word && is_thread(word)) {
            let (number, span) = self.parse_thread_number()?;
            let thread = self.find_thread(number).ok_or(ParseError::UnknownThread { number, span })?;
            self.expect(TokenKind::Colon, "`:` and a register")?;
            let token = self.expect_register()?;
            let name = self.token_text(token);
            let registers = &self.test.thread(thread).registers;
            let Some(index) = registers.iter().position(|register| register.name == name) else {
                let name = name.to_owned();
                return Err(ParseError::UnknownRegister { thread: number, name, span: token.span });
            };
            return Ok(Some(NamedTerm::Register(thread, RegisterId(index as u16))));
        }
        if is_word && self.names_register(word) {
            return Err(ParseError::RegisterWithoutThread { name: word.to_owned(), span: token.span });
        }
        if is_word && self.names_location(word) {
            self.next();
            return Ok(Some(NamedTerm::Location(self.resolve_location(token)?)));
        }
        Ok(None)
    }

    fn resolve_location(&self, token: Token) -> Parsed<LocationId> {
        let name = self.token_text(token);
        self.find_location(name)
            .ok_or_else(|| ParseError::UnknownLocation { name: name.to_owned(), span: token.span })
    }
}

/// The subject of a term.
enum NamedTerm {
    Register(crate::test::ThreadId, RegisterId),
    Location(LocationId),
}

pub(super) fn comparison_of(token: Token) -> Option<Comparison> {
    Some(match token.kind {
        TokenKind::Equal | TokenKind::EqualEqual => Comparison::Equal,
        TokenKind::NotEqual => Comparison::NotEqual,
        TokenKind::Less => Comparison::Less,
        TokenKind::LessOrEqual => Comparison::LessOrEqual,
        TokenKind::Greater => Comparison::Greater,
        TokenKind::GreaterOrEqual => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

//! Expressions of cat.

use super::super::ast::{CatExpression, Comprehension, ComprehensionFamily, ExpressionKind};
use super::super::error::CatProblem;
use super::super::lexer::{CatToken, Keyword};
use super::super::source::CatSpan;
use super::{CatParser, DEPTH_LIMIT, ParseResult};

type MakeChain = fn(Vec<CatExpression>) -> ExpressionKind;

/// The binary operators that chain, by rising precedence.
const CHAIN_OPERATORS: [(CatToken, MakeChain); 4] = [
    (CatToken::Bar, ExpressionKind::Union),
    (CatToken::Semicolon, ExpressionKind::Sequence),
    (CatToken::Backslash, ExpressionKind::Difference),
    (CatToken::Ampersand, ExpressionKind::Intersection),
];

impl CatParser {
    pub(super) fn parse_expression(&mut self) -> ParseResult<CatExpression> {
        self.parse_nested(|parser| parser.parse_chain(0))
    }

    pub(super) fn parse_nested<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> ParseResult<T>,
    ) -> ParseResult<T> {
        if self.depth >= DEPTH_LIMIT {
            return Err(
                self.report_problem(CatProblem::NestedTooDeep { limit: DEPTH_LIMIT }, self.current_span())
            );
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    pub(super) fn make_expression(
        &mut self,
        kind: ExpressionKind,
        start: CatSpan,
    ) -> ParseResult<CatExpression> {
        let span = start.merge_with(self.previous_span());
        let depth = 1 + kind.inner_depth();
        if usize::from(depth) > DEPTH_LIMIT {
            return Err(self.report_problem(CatProblem::NestedTooDeep { limit: DEPTH_LIMIT }, start));
        }
        Ok(CatExpression { kind, span, depth })
    }

    /// A chain of one binary operator and all that bind tighter. `a | b | c` is one node: long chains are not deep.
    fn parse_chain(&mut self, precedence: usize) -> ParseResult<CatExpression> {
        let start = self.current_span();
        let Some((operator, kind)) = CHAIN_OPERATORS.get(precedence) else {
            return self.parse_unary();
        };
        let first = self.parse_chain(precedence + 1)?;
        if self.peek_token() != operator {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.eat_token(operator) {
            operands.push(self.parse_chain(precedence + 1)?);
        }
        self.make_expression(kind(operands), start)
    }

    fn parse_unary(&mut self) -> ParseResult<CatExpression> {
        let start = self.current_span();
        if self.eat_token(&CatToken::Tilde) {
            let operand = self.parse_nested(Self::parse_unary)?;
            return self.make_expression(ExpressionKind::Complement(Box::new(operand)), start);
        }
        let mut expression = self.parse_primary()?;
        loop {
            let operand = expression;
            let kind = match self.peek_token() {
                // In front of an operand, `*` is the Cartesian product; else it is the closure.
                CatToken::Star if self.starts_operand(1) => {
                    self.next_token();
                    let right = if *self.peek_token() == CatToken::Tilde {
                        self.parse_nested(Self::parse_unary)?
                    } else {
                        self.parse_primary()?
                    };
                    ExpressionKind::Product(Box::new([operand, right]))
                }
                CatToken::Star => {
                    self.next_token();
                    ExpressionKind::Star(Box::new(operand))
                }
                CatToken::Plus => {
                    self.next_token();
                    ExpressionKind::Plus(Box::new(operand))
                }
                CatToken::Question => {
                    self.next_token();
                    ExpressionKind::Optional(Box::new(operand))
                }
                CatToken::MinusOne => {
                    self.next_token();
                    ExpressionKind::Inverse(Box::new(operand))
                }
                CatToken::Hat => {
                    self.next_token();
                    let kind: fn(Box<CatExpression>) -> ExpressionKind = match self.peek_token() {
                        CatToken::MinusOne => ExpressionKind::Inverse,
                        CatToken::Plus => ExpressionKind::Plus,
                        CatToken::Star => ExpressionKind::Star,
                        CatToken::Question => ExpressionKind::Optional,
                        _ => return Err(self.report_unexpected("`-1`, `+`, `*` or `?`")),
                    };
                    self.next_token();
                    kind(Box::new(operand))
                }
                _ => return Ok(operand),
            };
            expression = self.make_expression(kind, start)?;
        }
    }

    /// Returns true if an operand of `*` starts at that distance; if none does, `*` is a closure.
    fn starts_operand(&self, distance: usize) -> bool {
        match self.peek_ahead(distance) {
            CatToken::Tilde => !matches!(
                self.peek_ahead(distance + 1),
                CatToken::Keyword(Keyword::Acyclic | Keyword::Irreflexive | Keyword::Empty)
            ),
            token => starts_argument(token),
        }
    }

    fn parse_primary(&mut self) -> ParseResult<CatExpression> {
        let start = self.current_span();
        let kind = match self.peek_token() {
            CatToken::Zero => {
                self.next_token();
                ExpressionKind::Zero
            }
            CatToken::Underscore => {
                self.next_token();
                ExpressionKind::Universe
            }
            CatToken::LeftParenthesis => {
                self.next_token();
                let inner = self.parse_expression()?;
                self.expect_token(&CatToken::RightParenthesis, "an operator or `)`")?;
                return Ok(CatExpression { span: start.merge_with(self.previous_span()), ..inner });
            }
            CatToken::LeftBracket => {
                self.next_token();
                let inner = self.parse_expression()?;
                self.expect_token(&CatToken::RightBracket, "an operator or `]`")?;
                ExpressionKind::Identity(Box::new(inner))
            }
            CatToken::Keyword(Keyword::Let) => {
                let bindings = self.parse_bindings()?;
                self.expect_token(&CatToken::Keyword(Keyword::In), "an operator or `in`")?;
                let body = self.parse_expression()?;
                ExpressionKind::Let(Box::new(bindings), Box::new(body))
            }
            CatToken::LeftBrace if *self.peek_ahead(1) == CatToken::RightBrace => {
                self.next_token();
                self.next_token();
                ExpressionKind::Zero
            }
            CatToken::Keyword(Keyword::Try) => {
                self.next_token();
                let first = self.parse_expression()?;
                self.expect_token(&CatToken::Keyword(Keyword::With), "an operator or `with`")?;
                ExpressionKind::Try(Box::new([first, self.parse_expression()?]))
            }
            CatToken::Name(_) if self.is_at_comprehension() => self.parse_comprehension()?,
            CatToken::Name(_) => {
                let name = self.parse_name("a name")?;
                if starts_argument(self.peek_token()) {
                    ExpressionKind::Call(name, self.parse_arguments()?)
                } else {
                    ExpressionKind::Name(name.text)
                }
            }
            _ => return Err(self.report_unexpected("an expression")),
        };
        self.make_expression(kind, start)
    }

    /// `f(a, b)`, and as in herd `f a`, where `a` is a name or delimited.
    pub(super) fn parse_arguments(&mut self) -> ParseResult<Vec<CatExpression>> {
        let mut arguments = Vec::new();
        while starts_argument(self.peek_token()) {
            let start = self.current_span();
            match self.peek_token() {
                CatToken::LeftParenthesis => {
                    self.next_token();
                    while *self.peek_token() != CatToken::RightParenthesis {
                        arguments.push(self.parse_expression()?);
                        if !self.eat_token(&CatToken::Comma) {
                            break;
                        }
                    }
                    self.expect_token(&CatToken::RightParenthesis, "an operator, `,` or `)`")?;
                }
                CatToken::Name(name) => {
                    let kind = ExpressionKind::Name(name.clone());
                    self.next_token();
                    arguments.push(self.make_expression(kind, start)?);
                }
                _ => arguments.push(self.parse_nested(Self::parse_primary)?),
            }
        }
        Ok(arguments)
    }

    /// Returns true if the parser is at `union (x in`, `union ((x, y) in`, or the same with `intersection`.
    fn is_at_comprehension(&self) -> bool {
        let CatToken::Name(word) = self.peek_token() else {
            return false;
        };
        if !matches!(word.as_str(), "union" | "intersection")
            || *self.peek_ahead(1) != CatToken::LeftParenthesis
        {
            return false;
        }
        let mut distance = 2;
        if *self.peek_ahead(2) == CatToken::LeftParenthesis {
            distance += 1;
            while matches!(self.peek_ahead(distance), CatToken::Name(_) | CatToken::Comma) {
                distance += 1;
            }
        }
        distance += 1;
        *self.peek_ahead(distance) == CatToken::Keyword(Keyword::In)
    }

    fn parse_comprehension(&mut self) -> ParseResult<ExpressionKind> {
        let union = self.parse_name("`union`")?.text == "union";
        self.expect_token(&CatToken::LeftParenthesis, "`(`")?;
        let mut variables = Vec::new();
        if self.eat_token(&CatToken::LeftParenthesis) {
            loop {
                variables.push(self.parse_name("a name to bind")?);
                if !self.eat_token(&CatToken::Comma) {
                    break;
                }
            }
            self.expect_token(&CatToken::RightParenthesis, "`,` or `)`")?;
        } else {
            variables.push(self.parse_name("a name to bind")?);
        }
        self.expect_token(&CatToken::Keyword(Keyword::In), "`in`")?;
        let family = if *self.peek_token() == CatToken::LeftBrace {
            ComprehensionFamily::Listed(self.parse_members(variables.len())?)
        } else {
            ComprehensionFamily::Named(self.parse_name("`masks`, `classes`, a mask, or a list in braces")?)
        };
        self.expect_token(&CatToken::Colon, "`:`")?;
        let body = self.parse_expression()?;
        self.expect_token(&CatToken::RightParenthesis, "an operator or `)`")?;
        Ok(ExpressionKind::Comprehension(Box::new(Comprehension {
            is_union: union,
            variables,
            family,
            body,
        })))
    }

    fn parse_members(&mut self, arity: usize) -> ParseResult<Vec<(Vec<CatExpression>, CatSpan)>> {
        self.next_token();
        let mut members = Vec::new();
        loop {
            let start = self.current_span();
            let mut member = Vec::new();
            if arity == 1 {
                member.push(self.parse_expression()?);
            } else {
                self.expect_token(&CatToken::LeftParenthesis, "`(`")?;
                loop {
                    member.push(self.parse_expression()?);
                    if !self.eat_token(&CatToken::Comma) {
                        break;
                    }
                }
                self.expect_token(&CatToken::RightParenthesis, "an operator, `,` or `)`")?;
            }
            members.push((member, start.merge_with(self.previous_span())));
            if !self.eat_token(&CatToken::Comma) {
                break;
            }
        }
        self.expect_token(&CatToken::RightBrace, "an operator, `,` or `}`")?;
        Ok(members)
    }
}

/// Returns true if a token starts an argument, which binds to the preceding name as in `f a`.
fn starts_argument(token: &CatToken) -> bool {
    matches!(
        token,
        CatToken::Name(_)
            | CatToken::Zero
            | CatToken::Underscore
            | CatToken::LeftParenthesis
            | CatToken::LeftBracket
    )
}

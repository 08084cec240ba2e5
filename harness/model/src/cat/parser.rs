//! Recursive-descent parser of cat, one text at a time. `reference.md` defines the grammar.

mod expression;

use super::ast::{
    Bindings, CatDefinition, CatExpression, ExpressionKind, Identifier, Procedure, StatementKind,
};
use super::error::CatProblem;
use super::lexer::{CatToken, Keyword};
use super::plan::AxiomKind;
use super::source::CatSpan;
use super::suggestions::similar_word;
use std::sync::Arc;

/// Bound on the nesting of parentheses and expressions.
pub(crate) const DEPTH_LIMIT: usize = 128;

/// A parsed element between two statement starts.
#[derive(Debug)]
pub(crate) enum ParsedItem {
    Statement(StatementKind, CatSpan),
    Include(Identifier),
}

/// The result of parsing one text.
#[derive(Debug, Default)]
pub(crate) struct ParsedFile {
    pub(crate) name: Option<String>,
    pub(crate) items: Vec<ParsedItem>,
    pub(crate) problems: Vec<(CatProblem, CatSpan)>,
}

/// A problem was reported; the statement is given up.
struct ParseAborted;

type ParseResult<T> = Result<T, ParseAborted>;

struct CatParser {
    tokens: Vec<(CatToken, CatSpan)>,
    position: usize,
    depth: usize,
    problems: Vec<(CatProblem, CatSpan)>,
}

/// Parses the tokens of one text, which end with [`CatToken::End`].
pub(crate) fn parse_tokens(tokens: Vec<(CatToken, CatSpan)>) -> ParsedFile {
    let mut parser = CatParser { tokens, position: 0, depth: 0, problems: Vec::new() };
    let name = parser.parse_model_name();
    let mut items = Vec::new();
    while *parser.peek_token() != CatToken::End {
        if let Err(ParseAborted) = parser.parse_item(&mut items) {
            parser.skip_to_statement();
        }
    }
    ParsedFile { name, items, problems: parser.problems }
}

impl CatParser {
    fn peek_token(&self) -> &CatToken {
        self.peek_ahead(0)
    }

    fn peek_ahead(&self, distance: usize) -> &CatToken {
        self.tokens.get(self.position + distance).map_or(&CatToken::End, |(token, _)| token)
    }

    fn current_span(&self) -> CatSpan {
        self.tokens.get(self.position).or(self.tokens.last()).map(|(_, span)| *span).unwrap_or_default()
    }

    fn previous_span(&self) -> CatSpan {
        let previous = self.position.checked_sub(1).and_then(|position| self.tokens.get(position));
        previous.map(|(_, span)| *span).unwrap_or_default()
    }

    fn next_token(&mut self) -> CatSpan {
        let span = self.current_span();
        // The last token is the end of the text, which is never passed.
        if self.position + 1 < self.tokens.len() {
            self.position += 1;
        }
        span
    }

    fn eat_token(&mut self, token: &CatToken) -> bool {
        let found = self.peek_token() == token;
        if found {
            self.next_token();
        }
        found
    }

    fn eat_keyword(&mut self, keyword: Keyword) -> bool {
        self.eat_token(&CatToken::Keyword(keyword))
    }

    fn expect_token(&mut self, token: &CatToken, expected: &'static str) -> ParseResult<CatSpan> {
        if self.peek_token() == token { Ok(self.next_token()) } else { Err(self.report_unexpected(expected)) }
    }

    fn report_unexpected(&mut self, expected: &'static str) -> ParseAborted {
        let problem = match self.peek_token() {
            CatToken::Unsupported(word) => CatProblem::Unsupported { word: word.clone() },
            token => {
                let similar = match token {
                    CatToken::Name(word) => similar_word(word, Keyword::ALL.map(Keyword::name)),
                    _ => None,
                };
                CatProblem::Unexpected { found: token.describe(), expected, similar }
            }
        };
        self.report_problem(problem, self.current_span())
    }

    fn report_problem(&mut self, problem: CatProblem, span: CatSpan) -> ParseAborted {
        self.problems.push((problem, span));
        ParseAborted
    }

    fn parse_name(&mut self, expected: &'static str) -> ParseResult<Identifier> {
        if let CatToken::Name(text) = self.peek_token() {
            let text = text.clone();
            return Ok(Identifier { text, span: self.next_token() });
        }
        Err(self.report_unexpected(expected))
    }

    /// Parses the name before the first statement: words and a string on one line.
    fn parse_model_name(&mut self) -> Option<String> {
        let mut words = Vec::new();
        let line = self.current_span().line;
        while let token @ (CatToken::Name(word) | CatToken::Text(word)) = self.peek_token()
            && self.current_span().line == line
        {
            words.push(word.clone());
            let is_last = matches!(token, CatToken::Text(_));
            self.next_token();
            if is_last {
                break;
            }
        }
        (!words.is_empty()).then(|| words.join(" "))
    }

    fn is_at_statement(&self) -> bool {
        match self.peek_token() {
            CatToken::End => true,
            CatToken::Keyword(keyword) => !matches!(
                keyword,
                Keyword::Rec
                    | Keyword::And
                    | Keyword::In
                    | Keyword::As
                    | Keyword::From
                    | Keyword::Try
                    | Keyword::Else
                    | Keyword::End
            ),
            // A negated axiom; a complement does not begin a statement.
            CatToken::Tilde => matches!(
                self.peek_ahead(1),
                CatToken::Keyword(Keyword::Acyclic | Keyword::Irreflexive | Keyword::Empty)
            ),
            _ => false,
        }
    }

    fn skip_to_statement(&mut self) {
        self.depth = 0;
        while !self.is_at_statement() {
            self.next_token();
        }
    }

    /// Reads the next statement; statements that only affect drawings, or that `if` excludes, add nothing.
    fn parse_item(&mut self, items: &mut Vec<ParsedItem>) -> ParseResult<()> {
        let start = self.current_span();
        let kind = match self.peek_token() {
            CatToken::Keyword(Keyword::Include) => {
                self.next_token();
                let text = self.parse_string("a file name in quotes")?;
                items.push(ParsedItem::Include(text));
                return Ok(());
            }
            CatToken::Keyword(Keyword::Show | Keyword::Unshow) => {
                self.next_token();
                return self.skip_show();
            }
            CatToken::Keyword(Keyword::Cut) => {
                self.next_token();
                self.parse_name("the name of an axiom")?;
                return Ok(());
            }
            CatToken::Keyword(Keyword::If) => return self.parse_nested(|parser| parser.parse_variant(items)),
            CatToken::Keyword(Keyword::With) => return self.parse_with_from(items),
            CatToken::Keyword(Keyword::Procedure) => self.parse_procedure()?,
            _ => self.parse_definition_or_call()?,
        };
        items.push(ParsedItem::Statement(kind, start.merge_with(self.previous_span())));
        Ok(())
    }

    /// Parses the items that a procedure may contain.
    fn parse_definition_or_call(&mut self) -> ParseResult<StatementKind> {
        match self.peek_token() {
            CatToken::Keyword(Keyword::Let) => {
                let bindings = self.parse_bindings()?;
                // herd lets a statement end so.
                self.eat_keyword(Keyword::In);
                Ok(StatementKind::Let(bindings))
            }
            CatToken::Keyword(Keyword::Call) => {
                self.next_token();
                let procedure = self.parse_name("the name of a procedure")?;
                let arguments = self.parse_arguments()?;
                let name = self.parse_axiom_name()?;
                Ok(StatementKind::Call { procedure, arguments, name })
            }
            _ => self.parse_axiom(),
        }
    }

    fn parse_string(&mut self, expected: &'static str) -> ParseResult<Identifier> {
        if let CatToken::Text(text) = self.peek_token() {
            let text = text.clone();
            return Ok(Identifier { text, span: self.next_token() });
        }
        Err(self.report_unexpected(expected))
    }

    fn parse_axiom_name(&mut self) -> ParseResult<Option<Identifier>> {
        if self.eat_keyword(Keyword::As) { Ok(Some(self.parse_name("the axiom's name")?)) } else { Ok(None) }
    }

    /// `if "variant" … else … end`. herd's variants are switches of its command line, all of them off here.
    fn parse_variant(&mut self, items: &mut Vec<ParsedItem>) -> ParseResult<()> {
        self.next_token();
        self.parse_string("the name of a variant in quotes")?;
        let end = |parser: &Self| *parser.peek_token() == CatToken::Keyword(Keyword::End);
        let (mut if_branch, mut off) = (Vec::new(), Vec::new());
        while !end(self) && !self.eat_keyword(Keyword::Else) {
            self.parse_item(&mut if_branch)?;
        }
        while !end(self) {
            self.parse_item(&mut off)?;
        }
        self.next_token();
        items.append(&mut off);
        Ok(())
    }

    /// `procedure p(a, b) = … end`
    fn parse_procedure(&mut self) -> ParseResult<StatementKind> {
        self.next_token();
        let name = self.parse_name("the name of a procedure")?;
        let parameters = self.parse_parameters()?.unwrap_or_default();
        self.expect_token(&CatToken::Equals, "`=`")?;
        let mut body = Vec::new();
        while !self.eat_keyword(Keyword::End) {
            if matches!(self.peek_token(), CatToken::Keyword(Keyword::Show | Keyword::Unshow)) {
                self.next_token();
                self.skip_show()?;
                continue;
            }
            let start = self.current_span();
            let kind = self.parse_definition_or_call()?;
            body.push((kind, start.merge_with(self.previous_span())));
        }
        Ok(StatementKind::Procedure(Procedure { name, parameters, body }))
    }

    /// Parses `with x from generate_cos(p)` and its variants. herd enumerates every order that contains `p`.
    /// This engine enumerates the modification order itself, so `x` is the corresponding part of it, and `p`
    /// must agree with it.
    fn parse_with_from(&mut self, items: &mut Vec<ParsedItem>) -> ParseResult<()> {
        let start = self.current_span();
        self.next_token();
        let name = self.parse_name("a name to define")?;
        self.expect_token(&CatToken::Keyword(Keyword::From), "`from`")?;
        let generator = self.parse_name("`generate_cos`, `generate_orders` or `linearisations`")?;
        let arguments = self.parse_arguments()?;
        let span = start.merge_with(self.previous_span());
        let new_expression = |kind: ExpressionKind| {
            let depth = 1 + kind.inner_depth();
            CatExpression { kind, span, depth }
        };
        let name_expression = |text: &str| new_expression(ExpressionKind::Name(text.to_owned()));
        let (set, order) = match (generator.text.as_str(), arguments.as_slice()) {
            ("generate_cos", [order]) => (name_expression("W"), order.clone()),
            ("generate_orders", [set, order]) => (set.clone(), order.clone()),
            ("linearisations", [set, _]) => {
                let body = Arc::new(new_expression(ExpressionKind::LinearOrder(Box::new(set.clone()))));
                let bindings = Bindings {
                    is_recursive: false,
                    bindings: vec![CatDefinition { name, parameters: None, body }],
                };
                items.push(ParsedItem::Statement(StatementKind::Let(bindings), span));
                return Ok(());
            }
            ("generate_cos" | "generate_orders" | "linearisations", found) => {
                let expected = if generator.text == "generate_cos" { 1 } else { 2 };
                let found = found.len();
                let problem = CatProblem::WrongArgumentCount { name: generator.text, expected, found };
                return Err(self.report_problem(problem, generator.span));
            }
            _ => {
                return Err(
                    self.report_problem(CatProblem::Unsupported { word: generator.text }, generator.span)
                );
            }
        };
        let both = new_expression(ExpressionKind::Product(Box::new([set.clone(), set])));
        let part = new_expression(ExpressionKind::Intersection(vec![name_expression("co"), both.clone()]));
        let restricted_order =
            new_expression(ExpressionKind::Intersection(vec![order, both, name_expression("loc")]));
        // The modification order and `p` agree if they have no cycle together.
        let agreeing =
            self.make_expression(ExpressionKind::Union(vec![part.clone(), restricted_order]), start)?;
        let bindings = Bindings {
            is_recursive: false,
            bindings: vec![CatDefinition { name, parameters: None, body: Arc::new(part) }],
        };
        let agreement_axiom = StatementKind::Axiom {
            kind: AxiomKind::Acyclic,
            negated: false,
            is_flag: false,
            body: agreeing,
            name: None,
        };
        // The axiom comes first: the definition may shadow `co`.
        items.push(ParsedItem::Statement(agreement_axiom, span));
        items.push(ParsedItem::Statement(StatementKind::Let(bindings), span));
        Ok(())
    }

    /// Skips a `show` list, which affects drawings only.
    fn skip_show(&mut self) -> ParseResult<()> {
        loop {
            self.parse_expression()?;
            if self.eat_keyword(Keyword::As) {
                self.parse_name("a name")?;
            }
            if !self.eat_token(&CatToken::Comma) {
                return Ok(());
            }
        }
    }

    fn parse_axiom(&mut self) -> ParseResult<StatementKind> {
        let undefined = self.eat_keyword(Keyword::UndefinedUnless);
        let flag = undefined || self.eat_keyword(Keyword::Flag);
        let tilde = self.eat_token(&CatToken::Tilde);
        let kind = match self.peek_token() {
            CatToken::Keyword(Keyword::Acyclic) => AxiomKind::Acyclic,
            CatToken::Keyword(Keyword::Irreflexive) => AxiomKind::Irreflexive,
            CatToken::Keyword(Keyword::Empty) => AxiomKind::Empty,
            _ if flag || tilde => return Err(self.report_unexpected("`acyclic`, `irreflexive` or `empty`")),
            _ => {
                return Err(
                    self.report_unexpected("`let`, `include`, `flag`, `acyclic`, `irreflexive` or `empty`")
                );
            }
        };
        self.next_token();
        let body = self.parse_expression()?;
        let name = self.parse_axiom_name()?;
        // `undefined_unless` raises its flag if the condition fails.
        Ok(StatementKind::Axiom { kind, negated: tilde != undefined, is_flag: flag, body, name })
    }

    fn parse_bindings(&mut self) -> ParseResult<Bindings> {
        self.next_token();
        let recursive = self.eat_keyword(Keyword::Rec);
        let mut bindings = Vec::new();
        loop {
            bindings.push(self.parse_binding()?);
            if !self.eat_keyword(Keyword::And) {
                return Ok(Bindings { is_recursive: recursive, bindings });
            }
        }
    }

    fn parse_binding(&mut self) -> ParseResult<CatDefinition> {
        let name = self.parse_name("a name to define")?;
        let parameters = self.parse_parameters()?;
        self.expect_token(&CatToken::Equals, "`=`")?;
        let body = Arc::new(self.parse_expression()?);
        Ok(CatDefinition { name, parameters, body })
    }

    /// `(a, b)`, and as in herd `a b`, up to `=`.
    fn parse_parameters(&mut self) -> ParseResult<Option<Vec<Identifier>>> {
        let mut parameters: Option<Vec<Identifier>> = None;
        while *self.peek_token() != CatToken::Equals {
            let list = parameters.get_or_insert_default();
            match self.peek_token() {
                CatToken::Name(_) => list.push(self.parse_name("a parameter")?),
                CatToken::LeftParenthesis => {
                    self.next_token();
                    while *self.peek_token() != CatToken::RightParenthesis {
                        list.push(self.parse_name("a parameter")?);
                        if !self.eat_token(&CatToken::Comma) {
                            break;
                        }
                    }
                    self.expect_token(&CatToken::RightParenthesis, "`,` or `)`")?;
                }
                _ => return Err(self.report_unexpected("a parameter or `=`")),
            }
        }
        Ok(parameters)
    }
}

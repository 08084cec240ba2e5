//! Tokens to syntax tree, one text at a time. The grammar is in `reference.md`.

use super::ast::{
    Binding, Bindings, Comprehension, Expression, ExpressionKind, Iterated, Name, Procedure, StatementKind,
};
use super::error::CatProblem;
use super::lexer::{Keyword, Token};
use super::plan::AxiomKind;
use super::source::CatSpan;
use std::sync::Arc;

/// How deep parentheses, and expressions, may nest.
pub(crate) const DEPTH_LIMIT: usize = 128;

/// What stands between two statements' starts.
#[derive(Debug)]
pub(crate) enum Item {
    Statement(StatementKind, CatSpan),
    Include(Name),
}

/// The result of parsing one text.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) name: Option<String>,
    pub(crate) items: Vec<Item>,
    pub(crate) problems: Vec<(CatProblem, CatSpan)>,
}

/// A problem was reported; the statement is given up.
struct GivenUp;

type Parse<T> = Result<T, GivenUp>;

struct Parser {
    tokens: Vec<(Token, CatSpan)>,
    position: usize,
    depth: usize,
    problems: Vec<(CatProblem, CatSpan)>,
}

/// Parses the tokens of one text, which end with [`Token::End`].
pub(crate) fn parse_tokens(tokens: Vec<(Token, CatSpan)>) -> Parsed {
    let mut parser = Parser { tokens, position: 0, depth: 0, problems: Vec::new() };
    let name = parser.model_name();
    let mut items = Vec::new();
    while *parser.peek() != Token::End {
        if let Err(GivenUp) = parser.item(&mut items) {
            parser.skip_to_statement();
        }
    }
    Parsed { name, items, problems: parser.problems }
}

type MakeChain = fn(Vec<Expression>) -> ExpressionKind;

/// The binary operators that chain, by rising precedence.
const CHAINS: [(Token, MakeChain); 4] = [
    (Token::Bar, ExpressionKind::Union),
    (Token::Semicolon, ExpressionKind::Sequence),
    (Token::Backslash, ExpressionKind::Difference),
    (Token::Ampersand, ExpressionKind::Intersection),
];

impl Parser {
    fn peek(&self) -> &Token {
        self.ahead(0)
    }

    fn ahead(&self, distance: usize) -> &Token {
        self.tokens.get(self.position + distance).map_or(&Token::End, |(token, _)| token)
    }

    fn span(&self) -> CatSpan {
        self.tokens.get(self.position).or(self.tokens.last()).map(|(_, span)| *span).unwrap_or_default()
    }

    fn previous_span(&self) -> CatSpan {
        let previous = self.position.checked_sub(1).and_then(|position| self.tokens.get(position));
        previous.map(|(_, span)| *span).unwrap_or_default()
    }

    fn next(&mut self) -> CatSpan {
        let span = self.span();
        if self.position + 1 < self.tokens.len() {
            self.position += 1;
        }
        span
    }

    fn eat(&mut self, token: &Token) -> bool {
        let found = self.peek() == token;
        if found {
            self.next();
        }
        found
    }

    fn eat_keyword(&mut self, keyword: Keyword) -> bool {
        self.eat(&Token::Keyword(keyword))
    }

    fn expect(&mut self, token: &Token, expected: &'static str) -> Parse<CatSpan> {
        if self.peek() == token { Ok(self.next()) } else { Err(self.unexpected(expected)) }
    }

    fn unexpected(&mut self, expected: &'static str) -> GivenUp {
        let problem = match self.peek() {
            Token::Unsupported(word) => CatProblem::Unsupported { word: word.clone() },
            token => CatProblem::Unexpected { found: token.describe(), expected },
        };
        self.report(problem, self.span())
    }

    fn report(&mut self, problem: CatProblem, span: CatSpan) -> GivenUp {
        self.problems.push((problem, span));
        GivenUp
    }

    fn name(&mut self, expected: &'static str) -> Parse<Name> {
        if let Token::Name(text) = self.peek() {
            let text = text.clone();
            return Ok(Name { text, span: self.next() });
        }
        Err(self.unexpected(expected))
    }

    /// The words before the first statement.
    fn model_name(&mut self) -> Option<String> {
        let mut words = Vec::new();
        while let Token::Name(word) | Token::Text(word) = self.peek() {
            words.push(word.clone());
            self.next();
        }
        (!words.is_empty()).then(|| words.join(" "))
    }

    fn at_statement(&self) -> bool {
        match self.peek() {
            Token::End => true,
            Token::Keyword(keyword) => !matches!(
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
            Token::Tilde => matches!(
                self.ahead(1),
                Token::Keyword(Keyword::Acyclic | Keyword::Irreflexive | Keyword::Empty)
            ),
            _ => false,
        }
    }

    fn skip_to_statement(&mut self) {
        self.depth = 0;
        while !self.at_statement() {
            self.next();
        }
    }

    /// Reads the next statement; those that only matter to drawings, or that `if` leaves out, add nothing.
    fn item(&mut self, items: &mut Vec<Item>) -> Parse<()> {
        let start = self.span();
        let kind = match self.peek() {
            Token::Keyword(Keyword::Include) => {
                self.next();
                let text = self.text("a file name in quotes")?;
                items.push(Item::Include(text));
                return Ok(());
            }
            Token::Keyword(Keyword::Show | Keyword::Unshow) => {
                self.next();
                return self.shown();
            }
            Token::Keyword(Keyword::Cut) => {
                self.next();
                self.name("the name of an axiom")?;
                return Ok(());
            }
            Token::Keyword(Keyword::If) => return self.nested(|parser| parser.variant(items)),
            Token::Keyword(Keyword::With) => return self.generated(items),
            Token::Keyword(Keyword::Procedure) => self.procedure()?,
            _ => self.definition_or_demand()?,
        };
        items.push(Item::Statement(kind, start.to(self.previous_span())));
        Ok(())
    }

    /// What may also stand in a procedure.
    fn definition_or_demand(&mut self) -> Parse<StatementKind> {
        match self.peek() {
            Token::Keyword(Keyword::Let) => {
                let bindings = self.bindings()?;
                // herd lets a statement end so.
                self.eat_keyword(Keyword::In);
                Ok(StatementKind::Let(bindings))
            }
            Token::Keyword(Keyword::Call) => {
                self.next();
                let procedure = self.name("the name of a procedure")?;
                let arguments = self.arguments()?;
                let name = self.given_name()?;
                Ok(StatementKind::Call { procedure, arguments, name })
            }
            _ => self.axiom(),
        }
    }

    fn text(&mut self, expected: &'static str) -> Parse<Name> {
        if let Token::Text(text) = self.peek() {
            let text = text.clone();
            return Ok(Name { text, span: self.next() });
        }
        Err(self.unexpected(expected))
    }

    fn given_name(&mut self) -> Parse<Option<Name>> {
        if self.eat_keyword(Keyword::As) { Ok(Some(self.name("the axiom's name")?)) } else { Ok(None) }
    }

    /// `if "variant" … else … end`. herd's variants are switches of its command line, all of them off here.
    fn variant(&mut self, items: &mut Vec<Item>) -> Parse<()> {
        self.next();
        self.text("the name of a variant in quotes")?;
        let end = |parser: &Self| *parser.peek() == Token::Keyword(Keyword::End);
        let (mut on, mut off) = (Vec::new(), Vec::new());
        while !end(self) && !self.eat_keyword(Keyword::Else) {
            self.item(&mut on)?;
        }
        while !end(self) {
            self.item(&mut off)?;
        }
        self.next();
        items.append(&mut off);
        Ok(())
    }

    /// `procedure p(a, b) = … end`
    fn procedure(&mut self) -> Parse<StatementKind> {
        self.next();
        let name = self.name("the name of a procedure")?;
        let parameters = self.parameters()?.unwrap_or_default();
        self.expect(&Token::Equals, "`=`")?;
        let mut body = Vec::new();
        while !self.eat_keyword(Keyword::End) {
            if matches!(self.peek(), Token::Keyword(Keyword::Show | Keyword::Unshow)) {
                self.next();
                self.shown()?;
                continue;
            }
            let start = self.span();
            let kind = self.definition_or_demand()?;
            body.push((kind, start.to(self.previous_span())));
        }
        Ok(StatementKind::Procedure(Procedure { name, parameters, body }))
    }

    /// `with x from generate_cos(p)` and its like. herd tries every order that holds `p`; here the modification order is
    /// tried already, so that `x` is the part of it that is meant, and `p` must agree with it.
    fn generated(&mut self, items: &mut Vec<Item>) -> Parse<()> {
        let start = self.span();
        self.next();
        let name = self.name("a name to define")?;
        self.expect(&Token::Keyword(Keyword::From), "`from`")?;
        let generator = self.name("`generate_cos`, `generate_orders` or `linearisations`")?;
        let arguments = self.arguments()?;
        let span = start.to(self.previous_span());
        let named = |kind: ExpressionKind| {
            let depth = 1 + kind.inner_depth();
            Expression { kind, span, depth }
        };
        let word = |text: &str| named(ExpressionKind::Name(text.to_owned()));
        let (set, order) = match (generator.text.as_str(), arguments.as_slice()) {
            ("generate_cos", [order]) => (word("W"), order.clone()),
            ("generate_orders", [set, order]) => (set.clone(), order.clone()),
            ("linearisations", [set, _]) => {
                let body = Arc::new(named(ExpressionKind::LinearOrder(Box::new(set.clone()))));
                let bindings =
                    Bindings { recursive: false, bindings: vec![Binding { name, parameters: None, body }] };
                items.push(Item::Statement(StatementKind::Let(bindings), span));
                return Ok(());
            }
            ("generate_cos" | "generate_orders" | "linearisations", found) => {
                let expected = if generator.text == "generate_cos" { 1 } else { 2 };
                let found = found.len();
                let problem = CatProblem::WrongArgumentCount { name: generator.text, expected, found };
                return Err(self.report(problem, generator.span));
            }
            _ => return Err(self.report(CatProblem::Unsupported { word: generator.text }, generator.span)),
        };
        let both = named(ExpressionKind::Product(Box::new([set.clone(), set])));
        let part = named(ExpressionKind::Intersection(vec![word("co"), both.clone()]));
        let within = named(ExpressionKind::Intersection(vec![order, both, word("loc")]));
        let agreeing = self.make(ExpressionKind::Union(vec![part.clone(), within]), start)?;
        let bindings = Bindings {
            recursive: false,
            bindings: vec![Binding { name, parameters: None, body: Arc::new(part) }],
        };
        let demand = StatementKind::Axiom {
            kind: AxiomKind::Acyclic,
            negated: false,
            flag: false,
            body: agreeing,
            name: None,
        };
        // The demand comes first: the definition may hide `co`.
        items.push(Item::Statement(demand, span));
        items.push(Item::Statement(StatementKind::Let(bindings), span));
        Ok(())
    }

    /// What `show` lists; it matters to drawings only.
    fn shown(&mut self) -> Parse<()> {
        loop {
            self.expression()?;
            if self.eat_keyword(Keyword::As) {
                self.name("a name")?;
            }
            if !self.eat(&Token::Comma) {
                return Ok(());
            }
        }
    }

    fn axiom(&mut self) -> Parse<StatementKind> {
        let undefined = self.eat_keyword(Keyword::UndefinedUnless);
        let flag = undefined || self.eat_keyword(Keyword::Flag);
        let tilde = self.eat(&Token::Tilde);
        let kind = match self.peek() {
            Token::Keyword(Keyword::Acyclic) => AxiomKind::Acyclic,
            Token::Keyword(Keyword::Irreflexive) => AxiomKind::Irreflexive,
            Token::Keyword(Keyword::Empty) => AxiomKind::Empty,
            _ if flag || tilde => return Err(self.unexpected("`acyclic`, `irreflexive` or `empty`")),
            _ => return Err(self.unexpected("`let`, `include`, `flag`, `acyclic`, `irreflexive` or `empty`")),
        };
        self.next();
        let body = self.expression()?;
        let name = self.given_name()?;
        Ok(StatementKind::Axiom { kind, negated: tilde != undefined, flag, body, name })
    }

    fn bindings(&mut self) -> Parse<Bindings> {
        self.next();
        let recursive = self.eat_keyword(Keyword::Rec);
        let mut bindings = Vec::new();
        loop {
            bindings.push(self.binding()?);
            if !self.eat_keyword(Keyword::And) {
                return Ok(Bindings { recursive, bindings });
            }
        }
    }

    fn binding(&mut self) -> Parse<Binding> {
        let name = self.name("a name to define")?;
        let parameters = self.parameters()?;
        self.expect(&Token::Equals, "`=`")?;
        let body = Arc::new(self.expression()?);
        Ok(Binding { name, parameters, body })
    }

    /// `(a, b)`, and as in herd `a b`, up to `=`.
    fn parameters(&mut self) -> Parse<Option<Vec<Name>>> {
        let mut parameters: Option<Vec<Name>> = None;
        while *self.peek() != Token::Equals {
            let list = parameters.get_or_insert_default();
            match self.peek() {
                Token::Name(_) => list.push(self.name("a parameter")?),
                Token::LeftParenthesis => {
                    self.next();
                    while *self.peek() != Token::RightParenthesis {
                        list.push(self.name("a parameter")?);
                        if !self.eat(&Token::Comma) {
                            break;
                        }
                    }
                    self.expect(&Token::RightParenthesis, "`,` or `)`")?;
                }
                _ => return Err(self.unexpected("a parameter or `=`")),
            }
        }
        Ok(parameters)
    }

    fn expression(&mut self) -> Parse<Expression> {
        self.nested(|parser| parser.chain(0))
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= DEPTH_LIMIT {
            return Err(self.report(CatProblem::NestedTooDeep { limit: DEPTH_LIMIT }, self.span()));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn make(&mut self, kind: ExpressionKind, start: CatSpan) -> Parse<Expression> {
        let span = start.to(self.previous_span());
        let depth = 1 + kind.inner_depth();
        if usize::from(depth) > DEPTH_LIMIT {
            return Err(self.report(CatProblem::NestedTooDeep { limit: DEPTH_LIMIT }, start));
        }
        Ok(Expression { kind, span, depth })
    }

    /// A chain of one binary operator and all that bind tighter. `a | b | c` is one node: long chains are not deep.
    fn chain(&mut self, precedence: usize) -> Parse<Expression> {
        let start = self.span();
        let Some((operator, kind)) = CHAINS.get(precedence) else {
            return self.prefixed();
        };
        let first = self.chain(precedence + 1)?;
        if self.peek() != operator {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.eat(operator) {
            operands.push(self.chain(precedence + 1)?);
        }
        self.make(kind(operands), start)
    }

    fn prefixed(&mut self) -> Parse<Expression> {
        let start = self.span();
        if self.eat(&Token::Tilde) {
            let operand = self.nested(Self::prefixed)?;
            return self.make(ExpressionKind::Complement(Box::new(operand)), start);
        }
        let mut expression = self.primary()?;
        loop {
            let operand = expression;
            let kind = match self.peek() {
                Token::Star if self.starts_operand(1) => {
                    self.next();
                    let right = if *self.peek() == Token::Tilde {
                        self.nested(Self::prefixed)?
                    } else {
                        self.primary()?
                    };
                    ExpressionKind::Product(Box::new([operand, right]))
                }
                Token::Star => {
                    self.next();
                    ExpressionKind::Star(Box::new(operand))
                }
                Token::Plus => {
                    self.next();
                    ExpressionKind::Plus(Box::new(operand))
                }
                Token::Question => {
                    self.next();
                    ExpressionKind::Optional(Box::new(operand))
                }
                Token::MinusOne => {
                    self.next();
                    ExpressionKind::Inverse(Box::new(operand))
                }
                Token::Hat => {
                    self.next();
                    let kind: fn(Box<Expression>) -> ExpressionKind = match self.peek() {
                        Token::MinusOne => ExpressionKind::Inverse,
                        Token::Plus => ExpressionKind::Plus,
                        Token::Star => ExpressionKind::Star,
                        Token::Question => ExpressionKind::Optional,
                        _ => return Err(self.unexpected("`-1`, `+`, `*` or `?`")),
                    };
                    self.next();
                    kind(Box::new(operand))
                }
                _ => return Ok(operand),
            };
            expression = self.make(kind, start)?;
        }
    }

    /// Whether an operand of `*` starts at that distance; if none does, `*` is a closure.
    fn starts_operand(&self, distance: usize) -> bool {
        match self.ahead(distance) {
            Token::Tilde => !matches!(
                self.ahead(distance + 1),
                Token::Keyword(Keyword::Acyclic | Keyword::Irreflexive | Keyword::Empty)
            ),
            token => starts_argument(token),
        }
    }

    fn primary(&mut self) -> Parse<Expression> {
        let start = self.span();
        let kind = match self.peek() {
            Token::Zero => {
                self.next();
                ExpressionKind::Zero
            }
            Token::Underscore => {
                self.next();
                ExpressionKind::Universe
            }
            Token::LeftParenthesis => {
                self.next();
                let inner = self.expression()?;
                self.expect(&Token::RightParenthesis, "an operator or `)`")?;
                return Ok(Expression { span: start.to(self.previous_span()), ..inner });
            }
            Token::LeftBracket => {
                self.next();
                let inner = self.expression()?;
                self.expect(&Token::RightBracket, "an operator or `]`")?;
                ExpressionKind::Identity(Box::new(inner))
            }
            Token::Keyword(Keyword::Let) => {
                let bindings = self.bindings()?;
                self.expect(&Token::Keyword(Keyword::In), "an operator or `in`")?;
                let body = self.expression()?;
                ExpressionKind::Let(Box::new(bindings), Box::new(body))
            }
            Token::LeftBrace if *self.ahead(1) == Token::RightBrace => {
                self.next();
                self.next();
                ExpressionKind::Zero
            }
            Token::Keyword(Keyword::Try) => {
                self.next();
                let first = self.expression()?;
                self.expect(&Token::Keyword(Keyword::With), "an operator or `with`")?;
                ExpressionKind::Try(Box::new([first, self.expression()?]))
            }
            Token::Name(_) if self.at_comprehension() => self.comprehension()?,
            Token::Name(_) => {
                let name = self.name("a name")?;
                if starts_argument(self.peek()) {
                    ExpressionKind::Call(name, self.arguments()?)
                } else {
                    ExpressionKind::Name(name.text)
                }
            }
            _ => return Err(self.unexpected("an expression")),
        };
        self.make(kind, start)
    }

    /// `f(a, b)`, and as in herd `f a`, where `a` is a name or delimited.
    fn arguments(&mut self) -> Parse<Vec<Expression>> {
        let mut arguments = Vec::new();
        while starts_argument(self.peek()) {
            let start = self.span();
            match self.peek() {
                Token::LeftParenthesis => {
                    self.next();
                    while *self.peek() != Token::RightParenthesis {
                        arguments.push(self.expression()?);
                        if !self.eat(&Token::Comma) {
                            break;
                        }
                    }
                    self.expect(&Token::RightParenthesis, "an operator, `,` or `)`")?;
                }
                Token::Name(name) => {
                    let kind = ExpressionKind::Name(name.clone());
                    self.next();
                    arguments.push(self.make(kind, start)?);
                }
                _ => arguments.push(self.nested(Self::primary)?),
            }
        }
        Ok(arguments)
    }

    /// Whether `union (x in` or `union ((x, y) in` stands here, or the same with `intersection`.
    fn at_comprehension(&self) -> bool {
        let Token::Name(word) = self.peek() else {
            return false;
        };
        if !matches!(word.as_str(), "union" | "intersection") || *self.ahead(1) != Token::LeftParenthesis {
            return false;
        }
        let mut distance = 2;
        if *self.ahead(2) == Token::LeftParenthesis {
            distance += 1;
            while matches!(self.ahead(distance), Token::Name(_) | Token::Comma) {
                distance += 1;
            }
        }
        distance += 1;
        *self.ahead(distance) == Token::Keyword(Keyword::In)
    }

    fn comprehension(&mut self) -> Parse<ExpressionKind> {
        let union = self.name("`union`")?.text == "union";
        self.expect(&Token::LeftParenthesis, "`(`")?;
        let mut variables = Vec::new();
        if self.eat(&Token::LeftParenthesis) {
            loop {
                variables.push(self.name("a name to bind")?);
                if !self.eat(&Token::Comma) {
                    break;
                }
            }
            self.expect(&Token::RightParenthesis, "`,` or `)`")?;
        } else {
            variables.push(self.name("a name to bind")?);
        }
        self.expect(&Token::Keyword(Keyword::In), "`in`")?;
        let family = if *self.peek() == Token::LeftBrace {
            Iterated::Listed(self.members(variables.len())?)
        } else {
            Iterated::Named(self.name("`masks`, `classes`, a mask, or a list in braces")?)
        };
        self.expect(&Token::Colon, "`:`")?;
        let body = self.expression()?;
        self.expect(&Token::RightParenthesis, "an operator or `)`")?;
        Ok(ExpressionKind::Comprehension(Box::new(Comprehension { union, variables, family, body })))
    }

    fn members(&mut self, arity: usize) -> Parse<Vec<(Vec<Expression>, CatSpan)>> {
        self.next();
        let mut members = Vec::new();
        loop {
            let start = self.span();
            let mut member = Vec::new();
            if arity == 1 {
                member.push(self.expression()?);
            } else {
                self.expect(&Token::LeftParenthesis, "`(`")?;
                loop {
                    member.push(self.expression()?);
                    if !self.eat(&Token::Comma) {
                        break;
                    }
                }
                self.expect(&Token::RightParenthesis, "an operator, `,` or `)`")?;
            }
            members.push((member, start.to(self.previous_span())));
            if !self.eat(&Token::Comma) {
                break;
            }
        }
        self.expect(&Token::RightBrace, "an operator, `,` or `}`")?;
        Ok(members)
    }
}

/// Whether a token starts an argument: what binds to a name before it as `f a` does.
fn starts_argument(token: &Token) -> bool {
    matches!(
        token,
        Token::Name(_) | Token::Zero | Token::Underscore | Token::LeftParenthesis | Token::LeftBracket
    )
}

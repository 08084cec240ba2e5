//! Expressions to nodes.

use super::names::{Builtin, FAMILIES, Meaning};
use super::{Bound, Compiler, DEPTH_LIMIT, Lower, Lowered, Reported, STEP_LIMIT, Scope, Value};
use crate::cat::ast::{Binding, Comprehension, Expression, ExpressionKind, Iterated, Name};
use crate::cat::error::CatProblem;
use crate::cat::graph::Graph;
use crate::cat::plan::{AxiomKind, Node, NodeId, NodeKind};
use crate::cat::source::CatSpan;
use crate::cat::vocabulary::Entry;

/// A relation or a set, and the recursive name that it depends on.
type Found<'m> = (NodeId, Option<&'m str>);

/// An operation that chains, on sets and on relations.
struct Chain {
    sets: fn(&mut Graph<'_>, NodeId, NodeId) -> NodeId,
    relations: fn(&mut Graph<'_>, NodeId, NodeId) -> NodeId,
    /// How many operands must stay in front.
    fixed: usize,
    /// Whether one operand alone can be what makes a pair a member.
    alternatives: bool,
}

const UNION: Chain = Chain {
    sets: |graph, a, b| graph.set_union(a, b),
    relations: |graph, a, b| graph.union(a, b),
    fixed: 0,
    alternatives: true,
};
const INTERSECTION: Chain = Chain {
    sets: |graph, a, b| graph.set_intersection(a, b),
    relations: |graph, a, b| graph.intersection(a, b),
    fixed: 0,
    alternatives: false,
};
const DIFFERENCE: Chain = Chain {
    sets: |graph, a, b| graph.set_difference(a, b),
    relations: |graph, a, b| graph.difference(a, b),
    fixed: 1,
    alternatives: false,
};

impl<'m> Compiler<'m> {
    /// The node that an axiom speaks of.
    pub(super) fn axiom_body(
        &mut self,
        kind: AxiomKind,
        body: &'m Expression,
        scope: Scope,
    ) -> Lower<NodeId> {
        let lowered = self.lower(body, scope)?;
        match (kind, lowered.value) {
            (AxiomKind::Empty, Value::Set(node)) => Ok(node),
            (kind, _) => {
                let (node, _) = self.as_relation(lowered, body.span)?;
                // A relation is acyclic just when its closure is.
                match (kind, self.graph.node(node)) {
                    (AxiomKind::Acyclic, Node::Plus(inner)) => Ok(inner),
                    _ => Ok(node),
                }
            }
        }
    }

    pub(super) fn lower(&mut self, expression: &'m Expression, scope: Scope) -> Lower<Lowered<'m>> {
        if self.stopped {
            return Err(Reported);
        }
        self.steps += 1;
        let limit = if self.steps > STEP_LIMIT {
            CatProblem::ExpansionTooLarge { limit: STEP_LIMIT }
        } else if self.depth >= DEPTH_LIMIT {
            CatProblem::NestedTooDeep { limit: DEPTH_LIMIT }
        } else {
            return self.lower_within_limits(expression, scope);
        };
        self.stopped = true;
        Err(self.report(limit, expression.span))
    }

    fn lower_within_limits(&mut self, expression: &'m Expression, scope: Scope) -> Lower<Lowered<'m>> {
        self.depth += 1;
        let result = self.lower_kind(expression, scope);
        self.depth -= 1;
        result
    }

    fn lower_kind(&mut self, expression: &'m Expression, scope: Scope) -> Lower<Lowered<'m>> {
        match &expression.kind {
            ExpressionKind::Zero => Ok(plain(Value::Zero)),
            ExpressionKind::Universe => Ok(plain(Value::Set(self.graph.universe()))),
            ExpressionKind::Name(name) => self.lower_name(name, expression.span, scope),
            ExpressionKind::Union(list) => self.lower_chain(list, &UNION, scope),
            ExpressionKind::Intersection(list) => self.lower_chain(list, &INTERSECTION, scope),
            ExpressionKind::Difference(list) => self.lower_difference(list, scope),
            ExpressionKind::Sequence(list) => self.lower_sequence(list, scope),
            ExpressionKind::Product(pair) => {
                let left = self.set(&pair[0], scope);
                let right = self.set(&pair[1], scope);
                let ((left, first), (right, second)) = (left?, right?);
                Ok(relation(self.graph.product(left, right), first.or(second)))
            }
            ExpressionKind::Complement(inner) => self.lower_complement(inner, scope),
            ExpressionKind::Inverse(inner) => self.lower_unary(inner, scope, Graph::inverse),
            ExpressionKind::Plus(inner) => self.lower_unary(inner, scope, Graph::plus),
            ExpressionKind::Star(inner) => self.lower_unary(inner, scope, Graph::star),
            ExpressionKind::Optional(inner) => self.lower_unary(inner, scope, Graph::optional),
            ExpressionKind::Identity(inner) => {
                let (set, recursive) = self.set(inner, scope)?;
                Ok(relation(self.graph.identity_on(set), recursive))
            }
            ExpressionKind::Call(name, arguments) => self.lower_call(name, arguments, expression.span, scope),
            ExpressionKind::Let(bindings, body) => {
                let inner = self.bind_all(bindings, scope);
                self.lower(body, inner)
            }
            ExpressionKind::Comprehension(comprehension) => {
                self.lower_comprehension(comprehension, expression.span, scope)
            }
            ExpressionKind::Try(pair) => {
                let [first, second] = &**pair;
                let before = self.errors.len();
                let lowered = self.lower(first, scope);
                let mut found = self.errors[before..].iter();
                if found.len() == 0
                    || !found.all(|error| matches!(error.problem, CatProblem::UnknownName { .. }))
                {
                    return lowered;
                }
                self.errors.truncate(before);
                self.lower(second, scope)
            }
            ExpressionKind::LinearOrder(set) => {
                let (node, _) = self.set(set, scope)?;
                if node == self.graph.empty_set() {
                    Ok(plain(Value::Relation(self.graph.empty())))
                } else {
                    Err(self.report(CatProblem::LinearOrder, set.span))
                }
            }
        }
    }

    fn as_relation(&mut self, lowered: Lowered<'m>, span: CatSpan) -> Lower<Found<'m>> {
        match lowered.value {
            Value::Relation(node) => Ok((node, lowered.recursive)),
            Value::Zero => Ok((self.graph.empty(), lowered.recursive)),
            other => {
                let problem = CatProblem::WrongKind { expected: "a relation", found: other.describe() };
                Err(self.report(problem, span))
            }
        }
    }

    fn relation(&mut self, expression: &'m Expression, scope: Scope) -> Lower<Found<'m>> {
        let lowered = self.lower(expression, scope)?;
        self.as_relation(lowered, expression.span)
    }

    fn set(&mut self, expression: &'m Expression, scope: Scope) -> Lower<Found<'m>> {
        let lowered = self.lower(expression, scope)?;
        match lowered.value {
            Value::Set(node) => Ok((node, lowered.recursive)),
            Value::Zero => Ok((self.graph.empty_set(), lowered.recursive)),
            other => {
                let problem = CatProblem::WrongKind { expected: "a set", found: other.describe() };
                Err(self.report(problem, expression.span))
            }
        }
    }

    fn lower_unary(
        &mut self,
        inner: &'m Expression,
        scope: Scope,
        operation: impl FnOnce(&mut Graph<'m>, NodeId) -> NodeId,
    ) -> Lower<Lowered<'m>> {
        let (node, recursive) = self.relation(inner, scope)?;
        Ok(relation(operation(&mut self.graph, node), recursive))
    }

    /// Reports a recursive name in a place whose growth would shrink the whole.
    fn must_not_recur(&mut self, recursive: Option<&'m str>, span: CatSpan) -> Lower<()> {
        match recursive {
            Some(name) => Err(self.report(CatProblem::NotMonotone { name: name.to_owned() }, span)),
            None => Ok(()),
        }
    }

    fn lower_complement(&mut self, inner: &'m Expression, scope: Scope) -> Lower<Lowered<'m>> {
        let lowered = self.lower(inner, scope)?;
        self.must_not_recur(lowered.recursive, inner.span)?;
        if let Value::Set(node) = lowered.value {
            return Ok(plain(Value::Set(self.graph.set_complement(node))));
        }
        let (node, _) = self.as_relation(lowered, inner.span)?;
        Ok(plain(Value::Relation(self.graph.complement(node))))
    }

    fn lower_sequence(&mut self, list: &'m [Expression], scope: Scope) -> Lower<Lowered<'m>> {
        let mut product: Option<Found<'m>> = None;
        let mut reported = false;
        for operand in list {
            match (self.relation(operand, scope), product) {
                (Ok((node, recursive)), Some((before, earlier))) => {
                    product = Some((self.graph.sequence(before, node), earlier.or(recursive)));
                }
                (Ok(found), None) => product = Some(found),
                (Err(Reported), _) => reported = true,
            }
        }
        match product {
            Some((node, recursive)) if !reported => Ok(relation(node, recursive)),
            _ => Err(Reported),
        }
    }

    fn lower_chain(&mut self, list: &'m [Expression], chain: &Chain, scope: Scope) -> Lower<Lowered<'m>> {
        let mut operands = Vec::with_capacity(list.len());
        let mut reported = false;
        let mut cited = Vec::new();
        for operand in list {
            match self.lower(operand, scope) {
                Ok(lowered) => {
                    if chain.alternatives {
                        self.label_part(operand, lowered.value, &mut cited);
                    }
                    operands.push((lowered, operand.span));
                }
                Err(Reported) => reported = true,
            }
        }
        if reported { Err(Reported) } else { self.combine(&operands, chain) }
    }

    fn lower_difference(&mut self, list: &'m [Expression], scope: Scope) -> Lower<Lowered<'m>> {
        let mut operands = Vec::with_capacity(list.len());
        let mut reported = false;
        for (index, operand) in list.iter().enumerate() {
            let lowered = self.lower(operand, scope).and_then(|lowered| {
                if index > 0 {
                    self.must_not_recur(lowered.recursive, operand.span)?;
                }
                Ok(lowered)
            });
            match lowered {
                Ok(lowered) => operands.push((lowered, operand.span)),
                Err(Reported) => reported = true,
            }
        }
        if reported { Err(Reported) } else { self.combine(&operands, &DIFFERENCE) }
    }

    /// Folds operands of one kind; `0` takes the kind of the others.
    fn combine(&mut self, operands: &[(Lowered<'m>, CatSpan)], chain: &Chain) -> Lower<Lowered<'m>> {
        let recursive = operands.iter().find_map(|(lowered, _)| lowered.recursive);
        let decisive = operands.iter().find(|(lowered, _)| !matches!(lowered.value, Value::Zero));
        let Some((first, first_span)) = decisive else {
            return Ok(Lowered { value: Value::Zero, recursive });
        };
        let is_set = matches!(first.value, Value::Set(_));
        let mut nodes = Vec::with_capacity(operands.len());
        for (lowered, span) in operands {
            nodes.push(match lowered.value {
                Value::Set(node) if is_set => node,
                Value::Relation(node) if !is_set => node,
                Value::Zero if is_set => self.graph.empty_set(),
                Value::Zero => self.graph.empty(),
                Value::Mask(_) => {
                    let expected = "a set or a relation";
                    let problem = CatProblem::WrongKind { expected, found: lowered.value.describe() };
                    return Err(self.report(problem, *span));
                }
                // The decisive operand is a mask, which is reported at its own place.
                Value::Set(_) | Value::Relation(_) if matches!(first.value, Value::Mask(_)) => continue,
                Value::Set(_) | Value::Relation(_) => {
                    let (left, right) = if is_set { ("set", "relation") } else { ("relation", "set") };
                    let label = (format!("this is a {left}"), *first_span);
                    return Err(self.report_with(CatProblem::MixedKinds { left, right }, *span, vec![label]));
                }
            });
        }
        // Steadier operands first, but for what is subtracted from.
        if let Some(movable) = nodes.get_mut(chain.fixed..) {
            movable.sort_by_key(|node| self.graph.rank(*node));
        }
        let operation = if is_set { chain.sets } else { chain.relations };
        let folded = nodes.into_iter().reduce(|before, node| operation(&mut self.graph, before, node));
        match folded {
            Some(node) if is_set => Ok(Lowered { value: Value::Set(node), recursive }),
            Some(node) => Ok(relation(node, recursive)),
            None => Err(Reported),
        }
    }

    fn lower_name(&mut self, name: &'m str, span: CatSpan, scope: Scope) -> Lower<Lowered<'m>> {
        let function = || CatProblem::FunctionAsValue { name: name.to_owned() };
        let index = || CatProblem::MissingIndex { name: name.to_owned() };
        match self.meaning(name, scope) {
            Some(Meaning::Bound(Bound::Value(lowered))) => Ok(lowered),
            Some(Meaning::Bound(Bound::Broken)) => Err(Reported),
            Some(Meaning::Bound(Bound::Function(..))) => Err(self.report(function(), span)),
            Some(Meaning::Builtin(Builtin::Identity)) => Ok(plain(Value::Relation(self.graph.identity()))),
            Some(Meaning::Builtin(_)) => Err(self.report(function(), span)),
            Some(Meaning::Base(Entry::Plain(NodeKind::Set))) => {
                Ok(plain(Value::Set(self.graph.base(name, NodeKind::Set))))
            }
            Some(Meaning::Base(Entry::Plain(NodeKind::Relation))) => {
                Ok(plain(Value::Relation(self.graph.base(name, NodeKind::Relation))))
            }
            Some(Meaning::Base(Entry::Indexed(_))) => Err(self.report(index(), span)),
            Some(Meaning::Base(Entry::Class { set, class })) => {
                let mask = 1_u8.checked_shl(u32::from(class)).unwrap_or(0);
                match self.vocabulary.membership(&set) {
                    Some(membership) => Ok(plain(Value::Set(self.graph.indexed_set(&set, membership, mask)))),
                    None => Err(self.unknown(&set, span, scope)),
                }
            }
            None => Err(self.unknown(name, span, scope)),
        }
    }

    fn lower_call(
        &mut self,
        name: &'m Name,
        arguments: &'m [Expression],
        span: CatSpan,
        scope: Scope,
    ) -> Lower<Lowered<'m>> {
        match self.meaning(&name.text, scope) {
            Some(Meaning::Bound(Bound::Function(function, inner))) => {
                let lowered = self.inline(function, inner, arguments, span, scope)?;
                self.label_call(function, lowered.value);
                Ok(lowered)
            }
            Some(Meaning::Bound(Bound::Broken)) => Err(Reported),
            Some(Meaning::Builtin(builtin)) => self.lower_builtin(builtin, name, arguments, span, scope),
            Some(Meaning::Base(Entry::Indexed(membership))) => {
                let argument = self.only_argument(name, arguments, span)?;
                let lowered = self.lower(argument, scope)?;
                let Value::Mask(mask) = lowered.value else {
                    let problem = CatProblem::WrongKind {
                        expected: "a set of storage classes",
                        found: lowered.value.describe(),
                    };
                    return Err(self.report(problem, argument.span));
                };
                Ok(plain(Value::Set(self.graph.indexed_set(&name.text, membership, mask))))
            }
            Some(Meaning::Bound(Bound::Value(_)) | Meaning::Base(_)) => {
                Err(self.report(CatProblem::NotAFunction { name: name.text.clone() }, name.span))
            }
            None => Err(self.unknown(&name.text, name.span, scope)),
        }
    }

    fn wrong_count(&mut self, name: &str, expected: usize, found: usize, span: CatSpan) -> Reported {
        self.report(CatProblem::WrongArgumentCount { name: name.to_owned(), expected, found }, span)
    }

    fn only_argument(
        &mut self,
        name: &Name,
        arguments: &'m [Expression],
        span: CatSpan,
    ) -> Lower<&'m Expression> {
        match arguments {
            [argument] => Ok(argument),
            _ => Err(self.wrong_count(&name.text, 1, arguments.len(), span)),
        }
    }

    fn lower_builtin(
        &mut self,
        builtin: Builtin,
        name: &'m Name,
        arguments: &'m [Expression],
        span: CatSpan,
        scope: Scope,
    ) -> Lower<Lowered<'m>> {
        if let Builtin::Identity = builtin {
            return Err(self.report(CatProblem::NotAFunction { name: name.text.clone() }, name.span));
        }
        let argument = self.only_argument(name, arguments, span)?;
        if let Builtin::ToIdentity = builtin {
            let (set, recursive) = self.set(argument, scope)?;
            return Ok(relation(self.graph.identity_on(set), recursive));
        }
        let (node, recursive) = self.relation(argument, scope)?;
        match builtin {
            Builtin::Domain => Ok(Lowered { value: Value::Set(self.graph.domain(node)), recursive }),
            Builtin::Range => Ok(Lowered { value: Value::Set(self.graph.range(node)), recursive }),
            Builtin::Immediate | Builtin::Identity | Builtin::ToIdentity => {
                self.must_not_recur(recursive, argument.span)?;
                Ok(plain(Value::Relation(self.graph.immediate(node))))
            }
        }
    }

    /// What the arguments of a function or a procedure are.
    pub(super) fn argument_values(
        &mut self,
        name: &str,
        parameters: usize,
        arguments: &'m [Expression],
        span: CatSpan,
        scope: Scope,
    ) -> Lower<Vec<Lowered<'m>>> {
        if parameters != arguments.len() {
            return Err(self.wrong_count(name, parameters, arguments.len(), span));
        }
        // All of them are looked at, so that each one's mistakes are told.
        let values: Vec<Lower<Lowered<'m>>> =
            arguments.iter().map(|argument| self.lower(argument, scope)).collect();
        values.into_iter().collect()
    }

    fn inline(
        &mut self,
        function: &'m Binding,
        inner: Scope,
        arguments: &'m [Expression],
        span: CatSpan,
        scope: Scope,
    ) -> Lower<Lowered<'m>> {
        let name = &function.name.text;
        let parameters = function.parameters.as_deref().unwrap_or_default();
        let values = self.argument_values(name, parameters.len(), arguments, span, scope)?;
        // Equal calls are common where one function builds on another; without this they would multiply.
        let key = (function.name.span, inner, values);
        if let Some(known) = self.results.get(&key) {
            return Ok(*known);
        }
        let named = parameters.iter().zip(&key.2);
        let body_scope = named
            .fold(inner, |outer, (parameter, value)| self.bind(outer, &parameter.text, Bound::Value(*value)));
        self.calls.push((name, span));
        let result = self.lower(&function.body, body_scope);
        self.calls.pop();
        if let Ok(lowered) = result {
            self.results.insert(key, lowered);
        }
        result
    }

    fn lower_comprehension(
        &mut self,
        comprehension: &'m Comprehension,
        span: CatSpan,
        scope: Scope,
    ) -> Lower<Lowered<'m>> {
        let members = self.family(comprehension, span, scope)?;
        let mut values = Vec::with_capacity(members.len());
        let body = &comprehension.body;
        for member in &members {
            let mut inner = scope;
            for (variable, value) in comprehension.variables.iter().zip(member) {
                inner = self.bind(inner, &variable.text, Bound::Value(*value));
            }
            values.push((self.lower(body, inner)?, body.span));
        }
        if values.is_empty() {
            // The body is checked all the same, and says whether the neutral value is a set or a relation.
            let mut inner = scope;
            for variable in &comprehension.variables {
                inner = self.bind(inner, &variable.text, Bound::Value(plain(Value::Mask(0))));
            }
            let sample = self.lower(body, inner)?;
            let value = match sample.value {
                _ if comprehension.union => Value::Zero,
                Value::Set(_) => Value::Set(self.graph.universe()),
                _ => Value::Relation(self.graph.full()),
            };
            return Ok(plain(value));
        }
        self.combine(&values, if comprehension.union { &UNION } else { &INTERSECTION })
    }

    /// The members of a family: for each, the values of the comprehension's variables.
    fn family(
        &mut self,
        comprehension: &'m Comprehension,
        span: CatSpan,
        scope: Scope,
    ) -> Lower<Vec<Vec<Lowered<'m>>>> {
        let arity = comprehension.variables.len();
        let masks = match &comprehension.family {
            Iterated::Listed(members) => {
                let mut values = Vec::with_capacity(members.len());
                for (member, place) in members {
                    if member.len() != arity {
                        let problem = CatProblem::WrongMemberSize { expected: arity, found: member.len() };
                        return Err(self.report(problem, *place));
                    }
                    let lowered: Lower<Vec<_>> =
                        member.iter().map(|value| self.lower(value, scope)).collect();
                    values.push(lowered?);
                }
                return Ok(values);
            }
            Iterated::Named(name) => match self.bound(&name.text, scope) {
                Some(Bound::Value(Lowered { value: Value::Mask(mask), .. })) => classes_of(mask),
                Some(Bound::Broken) => return Err(Reported),
                None if name.text == FAMILIES[0] => self.families.masks.clone(),
                None if name.text == FAMILIES[1] => classes_of(self.families.all_classes()),
                _ => return Err(self.report(CatProblem::NotAFamily { name: name.text.clone() }, name.span)),
            },
        };
        if arity != 1 {
            return Err(self.report(CatProblem::WrongMemberSize { expected: arity, found: 1 }, span));
        }
        Ok(masks.into_iter().map(|mask| vec![plain(Value::Mask(mask))]).collect())
    }
}

fn plain<'m>(value: Value) -> Lowered<'m> {
    Lowered { value, recursive: None }
}

fn relation(node: NodeId, recursive: Option<&str>) -> Lowered<'_> {
    Lowered { value: Value::Relation(node), recursive }
}

/// Each class of a mask as a mask of its own.
fn classes_of(mask: u8) -> Vec<u8> {
    (0..8).map(|class| 1 << class).filter(|class| mask & class != 0).collect()
}

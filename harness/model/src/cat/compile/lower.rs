//! Lowers expressions to nodes of the expression graph.

use super::names::{Builtin, FAMILIES, NameMeaning};
use super::{
    BoundName, CatCompiler, DEPTH_LIMIT, ErrorReported, LowerResult, LoweredTerm, STEP_LIMIT, ScopeId,
    TypedNode,
};
use crate::cat::ast::{
    CatDefinition, CatExpression, Comprehension, ComprehensionFamily, ExpressionKind, Identifier,
};
use crate::cat::error::CatProblem;
use crate::cat::plan::{AxiomKind, NodeId, NodeKind, PlanNode};
use crate::cat::source::CatSpan;
use crate::cat::vocabulary::VocabularyEntry;

/// A relation or a set, and the recursive name that it depends on.
type LoweredNode<'m> = (NodeId, Option<&'m str>);

/// An operation that chains, on sets and on relations.
struct OperatorChain {
    operation: fn(NodeKind, NodeId, NodeId) -> PlanNode,
    /// Number of leading operands whose order is significant.
    ordered_prefix: usize,
    /// True if membership in one operand is enough for membership in the result.
    is_union: bool,
}

const UNION: OperatorChain = OperatorChain { operation: PlanNode::Union, ordered_prefix: 0, is_union: true };
const INTERSECTION: OperatorChain =
    OperatorChain { operation: PlanNode::Intersection, ordered_prefix: 0, is_union: false };
const DIFFERENCE: OperatorChain =
    OperatorChain { operation: PlanNode::Difference, ordered_prefix: 1, is_union: false };

impl<'m> CatCompiler<'m> {
    pub(super) fn lower_axiom_body(
        &mut self,
        kind: AxiomKind,
        body: &'m CatExpression,
        scope: ScopeId,
    ) -> LowerResult<NodeId> {
        let lowered = self.lower_expression(body, scope)?;
        match (kind, lowered.value) {
            (AxiomKind::Empty, TypedNode::Set(node)) => Ok(node),
            (kind, _) => {
                let (node, _) = self.as_relation(lowered, body.span)?;
                // A relation is acyclic if and only if its closure is.
                match (kind, self.graph.node(node)) {
                    (AxiomKind::Acyclic, PlanNode::Plus(inner)) => Ok(inner),
                    _ => Ok(node),
                }
            }
        }
    }

    pub(super) fn lower_expression(
        &mut self,
        expression: &'m CatExpression,
        scope: ScopeId,
    ) -> LowerResult<LoweredTerm<'m>> {
        if self.limit_reached {
            return Err(ErrorReported);
        }
        self.steps += 1;
        let limit = if self.steps > STEP_LIMIT {
            CatProblem::ExpansionTooLarge { limit: STEP_LIMIT }
        } else if self.depth >= DEPTH_LIMIT {
            CatProblem::NestedTooDeep { limit: DEPTH_LIMIT }
        } else {
            return self.lower_within_limits(expression, scope);
        };
        self.limit_reached = true;
        Err(self.report_problem(limit, expression.span))
    }

    fn lower_within_limits(
        &mut self,
        expression: &'m CatExpression,
        scope: ScopeId,
    ) -> LowerResult<LoweredTerm<'m>> {
        self.depth += 1;
        let result = self.lower_expression_kind(expression, scope);
        self.depth -= 1;
        result
    }

    fn lower_expression_kind(
        &mut self,
        expression: &'m CatExpression,
        scope: ScopeId,
    ) -> LowerResult<LoweredTerm<'m>> {
        match &expression.kind {
            ExpressionKind::Zero => Ok(LoweredTerm { value: TypedNode::Zero, recursive: None }),
            ExpressionKind::Universe => Ok(self.lowered(PlanNode::Full(NodeKind::Set), None)),
            ExpressionKind::Name(name) => self.lower_name(name, expression.span, scope),
            ExpressionKind::Union(list) => self.lower_chain(list, &UNION, scope),
            ExpressionKind::Intersection(list) => self.lower_chain(list, &INTERSECTION, scope),
            ExpressionKind::Difference(list) => self.lower_chain(list, &DIFFERENCE, scope),
            ExpressionKind::Sequence(list) => self.lower_sequence(list, scope),
            ExpressionKind::Product(pair) => {
                // Lowers both sides before the first error returns, so that mistakes in either are
                // reported.
                let left = self.lower_set(&pair[0], scope);
                let right = self.lower_set(&pair[1], scope);
                let ((left, first), (right, second)) = (left?, right?);
                Ok(self.lowered(PlanNode::Product(left, right), first.or(second)))
            }
            ExpressionKind::Complement(inner) => self.lower_complement(inner, scope),
            ExpressionKind::Inverse(inner) => self.lower_unary(inner, scope, PlanNode::Inverse),
            ExpressionKind::Plus(inner) => self.lower_unary(inner, scope, PlanNode::Plus),
            ExpressionKind::Star(inner) => self.lower_unary(inner, scope, PlanNode::Star),
            ExpressionKind::Optional(inner) => self.lower_unary(inner, scope, PlanNode::Optional),
            ExpressionKind::Identity(inner) => {
                let (set, recursive) = self.lower_set(inner, scope)?;
                Ok(self.lowered(PlanNode::IdentityOn(set), recursive))
            }
            ExpressionKind::Call(name, arguments) => self.lower_call(name, arguments, expression.span, scope),
            ExpressionKind::Let(bindings, body) => {
                let inner = self.bind_definitions(bindings, scope);
                self.lower_expression(body, inner)
            }
            ExpressionKind::Comprehension(comprehension) => {
                self.lower_comprehension(comprehension, expression.span, scope)
            }
            ExpressionKind::Try(pair) => {
                let [first, second] = &**pair;
                let before = self.errors.len();
                let lowered = self.lower_expression(first, scope);
                let mut found = self.errors[before..].iter();
                // Only a missing name selects the alternative. Every other error in the first
                // operand is reported.
                if lowered.is_ok()
                    || !found.all(|error| matches!(error.problem, CatProblem::UnknownName { .. }))
                {
                    return lowered;
                }
                self.errors.truncate(before);
                self.lower_expression(second, scope)
            }
            ExpressionKind::LinearOrder(set) => {
                let (node, _) = self.lower_set(set, scope)?;
                // The linear orders of a set would have to be enumerated. Only the empty set has a
                // single one.
                if self.graph.node(node) == PlanNode::Empty(NodeKind::Set) {
                    Ok(self.lowered(PlanNode::Empty(NodeKind::Relation), None))
                } else {
                    Err(self.report_problem(CatProblem::LinearOrder, set.span))
                }
            }
        }
    }

    /// The value of an operation.
    fn lowered(&mut self, node: PlanNode, recursive: Option<&'m str>) -> LoweredTerm<'m> {
        LoweredTerm { value: TypedNode::new(node.kind(), self.graph.simplify(node)), recursive }
    }

    fn as_relation(&mut self, lowered: LoweredTerm<'m>, span: CatSpan) -> LowerResult<LoweredNode<'m>> {
        match lowered.value {
            TypedNode::Relation(node) => Ok((node, lowered.recursive)),
            TypedNode::Zero => {
                Ok((self.graph.intern_node(PlanNode::Empty(NodeKind::Relation)), lowered.recursive))
            }
            other => {
                let problem = CatProblem::WrongKind { expected: "a relation", found: other.describe() };
                Err(self.report_problem(problem, span))
            }
        }
    }

    fn lower_relation(
        &mut self,
        expression: &'m CatExpression,
        scope: ScopeId,
    ) -> LowerResult<LoweredNode<'m>> {
        let lowered = self.lower_expression(expression, scope)?;
        self.as_relation(lowered, expression.span)
    }

    fn lower_set(&mut self, expression: &'m CatExpression, scope: ScopeId) -> LowerResult<LoweredNode<'m>> {
        let lowered = self.lower_expression(expression, scope)?;
        match lowered.value {
            TypedNode::Set(node) => Ok((node, lowered.recursive)),
            TypedNode::Zero => {
                Ok((self.graph.intern_node(PlanNode::Empty(NodeKind::Set)), lowered.recursive))
            }
            other => {
                let problem = CatProblem::WrongKind { expected: "a set", found: other.describe() };
                Err(self.report_problem(problem, expression.span))
            }
        }
    }

    fn lower_unary(
        &mut self,
        inner: &'m CatExpression,
        scope: ScopeId,
        operation: fn(NodeId) -> PlanNode,
    ) -> LowerResult<LoweredTerm<'m>> {
        let (node, recursive) = self.lower_relation(inner, scope)?;
        Ok(self.lowered(operation(node), recursive))
    }

    /// Reports a recursive name in an antitone position, which would make the recursion non-monotone.
    fn reject_recursion(&mut self, recursive: Option<&'m str>, span: CatSpan) -> LowerResult<()> {
        match recursive {
            Some(name) => Err(self.report_problem(CatProblem::NotMonotone { name: name.to_owned() }, span)),
            None => Ok(()),
        }
    }

    fn lower_complement(&mut self, inner: &'m CatExpression, scope: ScopeId) -> LowerResult<LoweredTerm<'m>> {
        let lowered = self.lower_expression(inner, scope)?;
        self.reject_recursion(lowered.recursive, inner.span)?;
        let complement = match lowered.value {
            TypedNode::Set(node) => PlanNode::Complement(NodeKind::Set, node),
            _ => PlanNode::Complement(NodeKind::Relation, self.as_relation(lowered, inner.span)?.0),
        };
        Ok(self.lowered(complement, None))
    }

    fn lower_sequence(&mut self, list: &'m [CatExpression], scope: ScopeId) -> LowerResult<LoweredTerm<'m>> {
        let mut product: Option<LoweredNode<'m>> = None;
        // After a mistake, the other operands are lowered too, to report theirs.
        let mut reported = false;
        for operand in list {
            match (self.lower_relation(operand, scope), product) {
                (Ok((node, recursive)), Some((before, earlier))) => {
                    let sequence = self.graph.simplify(PlanNode::Sequence(before, node));
                    product = Some((sequence, earlier.or(recursive)));
                }
                (Ok(found), None) => product = Some(found),
                (Err(ErrorReported), _) => reported = true,
            }
        }
        match product {
            Some((node, recursive)) if !reported => {
                Ok(LoweredTerm { value: TypedNode::Relation(node), recursive })
            }
            _ => Err(ErrorReported),
        }
    }

    fn lower_chain(
        &mut self,
        list: &'m [CatExpression],
        chain: &OperatorChain,
        scope: ScopeId,
    ) -> LowerResult<LoweredTerm<'m>> {
        let mut operands = Vec::with_capacity(list.len());
        let mut reported = false;
        let mut cited = Vec::new();
        for (index, operand) in list.iter().enumerate() {
            let lowered = self.lower_expression(operand, scope).and_then(|lowered| {
                // The operands after an ordered one are subtracted, which is an antitone position.
                if chain.ordered_prefix > 0 && index >= chain.ordered_prefix {
                    self.reject_recursion(lowered.recursive, operand.span)?;
                }
                Ok(lowered)
            });
            match lowered {
                Ok(lowered) => {
                    if chain.is_union {
                        self.label_part(operand, lowered.value, &mut cited);
                    }
                    operands.push((lowered, operand.span));
                }
                Err(ErrorReported) => reported = true,
            }
        }
        if reported { Err(ErrorReported) } else { self.fold_operands(&operands, chain) }
    }

    /// Folds operands of one kind; `0` takes the kind of the others.
    fn fold_operands(
        &mut self,
        operands: &[(LoweredTerm<'m>, CatSpan)],
        chain: &OperatorChain,
    ) -> LowerResult<LoweredTerm<'m>> {
        let recursive = operands.iter().find_map(|(lowered, _)| lowered.recursive);
        let first_typed = operands.iter().find(|(lowered, _)| !matches!(lowered.value, TypedNode::Zero));
        let Some((first, first_span)) = first_typed else {
            return Ok(LoweredTerm { value: TypedNode::Zero, recursive });
        };
        let is_set = matches!(first.value, TypedNode::Set(_));
        let kind = if is_set { NodeKind::Set } else { NodeKind::Relation };
        let mut nodes = Vec::with_capacity(operands.len());
        for (lowered, span) in operands {
            nodes.push(match lowered.value {
                TypedNode::Set(node) if is_set => node,
                TypedNode::Relation(node) if !is_set => node,
                TypedNode::Zero => self.graph.intern_node(PlanNode::Empty(kind)),
                TypedNode::Mask(_) => {
                    let expected = "a set or a relation";
                    let problem = CatProblem::WrongKind { expected, found: lowered.value.describe() };
                    return Err(self.report_problem(problem, *span));
                }
                // The decisive operand is a mask, which is reported at its position.
                TypedNode::Set(_) | TypedNode::Relation(_) if matches!(first.value, TypedNode::Mask(_)) => {
                    continue;
                }
                TypedNode::Set(_) | TypedNode::Relation(_) => {
                    let (left, right) = if is_set { ("set", "relation") } else { ("relation", "set") };
                    let label = (format!("this is a {left}"), *first_span);
                    return Err(self.report_with_help(
                        CatProblem::MixedKinds { left, right },
                        *span,
                        vec![label],
                    ));
                }
            });
        }
        // Operands that change less often come first, except for the minuend.
        if let Some(movable) = nodes.get_mut(chain.ordered_prefix..) {
            movable.sort_by_key(|node| self.graph.node_rank(*node));
        }
        let folded = nodes
            .into_iter()
            .reduce(|before, node| self.graph.simplify((chain.operation)(kind, before, node)));
        folded.map(|node| LoweredTerm { value: TypedNode::new(kind, node), recursive }).ok_or(ErrorReported)
    }

    fn lower_name(&mut self, name: &'m str, span: CatSpan, scope: ScopeId) -> LowerResult<LoweredTerm<'m>> {
        let function = || CatProblem::FunctionAsValue { name: name.to_owned() };
        let index = || CatProblem::MissingIndex { name: name.to_owned() };
        match self.resolve_name(name, scope) {
            Some(NameMeaning::Bound(BoundName::Value(lowered))) => Ok(lowered),
            Some(NameMeaning::Bound(BoundName::Broken)) => Err(ErrorReported),
            Some(NameMeaning::Bound(BoundName::Function(..))) => Err(self.report_problem(function(), span)),
            Some(NameMeaning::Builtin(Builtin::Identity)) => Ok(self.lowered(PlanNode::Identity, None)),
            Some(NameMeaning::Builtin(_)) => Err(self.report_problem(function(), span)),
            Some(NameMeaning::Base(VocabularyEntry::Plain(kind))) => {
                Ok(non_recursive_term(TypedNode::new(kind, self.graph.base_node(name, kind))))
            }
            Some(NameMeaning::Base(VocabularyEntry::Indexed(_))) => Err(self.report_problem(index(), span)),
            Some(NameMeaning::Base(VocabularyEntry::Class { set, class })) => {
                let mask = 1_u8.checked_shl(u32::from(class)).unwrap_or(0);
                match self.vocabulary.membership_of(&set) {
                    Some(membership) => {
                        Ok(non_recursive_term(TypedNode::Set(self.graph.indexed_set(&set, membership, mask))))
                    }
                    None => Err(self.report_unknown_name(&set, span, scope)),
                }
            }
            None => Err(self.report_unknown_name(name, span, scope)),
        }
    }

    fn lower_call(
        &mut self,
        name: &'m Identifier,
        arguments: &'m [CatExpression],
        span: CatSpan,
        scope: ScopeId,
    ) -> LowerResult<LoweredTerm<'m>> {
        match self.resolve_name(&name.text, scope) {
            Some(NameMeaning::Bound(BoundName::Function(function, inner))) => {
                let lowered = self.inline_call(function, inner, arguments, span, scope)?;
                self.label_call(function, lowered.value);
                Ok(lowered)
            }
            Some(NameMeaning::Bound(BoundName::Broken)) => Err(ErrorReported),
            Some(NameMeaning::Builtin(builtin)) => self.lower_builtin(builtin, name, arguments, span, scope),
            Some(NameMeaning::Base(VocabularyEntry::Indexed(membership))) => {
                let argument = self.lower_single_argument(name, arguments, span)?;
                let lowered = self.lower_expression(argument, scope)?;
                let TypedNode::Mask(mask) = lowered.value else {
                    let problem = CatProblem::WrongKind {
                        expected: "a set of storage classes",
                        found: lowered.value.describe(),
                    };
                    return Err(self.report_problem(problem, argument.span));
                };
                Ok(non_recursive_term(TypedNode::Set(self.graph.indexed_set(&name.text, membership, mask))))
            }
            Some(NameMeaning::Bound(BoundName::Value(_)) | NameMeaning::Base(_)) => {
                Err(self.report_problem(CatProblem::NotAFunction { name: name.text.clone() }, name.span))
            }
            None => Err(self.report_unknown_name(&name.text, name.span, scope)),
        }
    }

    fn report_wrong_count(
        &mut self,
        name: &str,
        expected: usize,
        found: usize,
        span: CatSpan,
    ) -> ErrorReported {
        self.report_problem(CatProblem::WrongArgumentCount { name: name.to_owned(), expected, found }, span)
    }

    fn lower_single_argument(
        &mut self,
        name: &Identifier,
        arguments: &'m [CatExpression],
        span: CatSpan,
    ) -> LowerResult<&'m CatExpression> {
        match arguments {
            [argument] => Ok(argument),
            _ => Err(self.report_wrong_count(&name.text, 1, arguments.len(), span)),
        }
    }

    fn lower_builtin(
        &mut self,
        builtin: Builtin,
        name: &'m Identifier,
        arguments: &'m [CatExpression],
        span: CatSpan,
        scope: ScopeId,
    ) -> LowerResult<LoweredTerm<'m>> {
        if let Builtin::Identity = builtin {
            return Err(self.report_problem(CatProblem::NotAFunction { name: name.text.clone() }, name.span));
        }
        let argument = self.lower_single_argument(name, arguments, span)?;
        if let Builtin::ToIdentity = builtin {
            let (set, recursive) = self.lower_set(argument, scope)?;
            return Ok(self.lowered(PlanNode::IdentityOn(set), recursive));
        }
        let (node, recursive) = self.lower_relation(argument, scope)?;
        match builtin {
            Builtin::Domain => Ok(self.lowered(PlanNode::Domain(node), recursive)),
            Builtin::Range => Ok(self.lowered(PlanNode::Range(node), recursive)),
            Builtin::Immediate | Builtin::Identity | Builtin::ToIdentity => {
                self.reject_recursion(recursive, argument.span)?;
                Ok(self.lowered(PlanNode::Immediate(node), None))
            }
        }
    }

    /// Lowers the arguments of a function or procedure call.
    pub(super) fn lower_arguments(
        &mut self,
        name: &str,
        parameters: usize,
        arguments: &'m [CatExpression],
        span: CatSpan,
        scope: ScopeId,
    ) -> LowerResult<Vec<LoweredTerm<'m>>> {
        if parameters != arguments.len() {
            return Err(self.report_wrong_count(name, parameters, arguments.len(), span));
        }
        // Lower all arguments before failing, so that every error is reported.
        let values: Vec<LowerResult<LoweredTerm<'m>>> =
            arguments.iter().map(|argument| self.lower_expression(argument, scope)).collect();
        values.into_iter().collect()
    }

    fn inline_call(
        &mut self,
        function: &'m CatDefinition,
        inner: ScopeId,
        arguments: &'m [CatExpression],
        span: CatSpan,
        scope: ScopeId,
    ) -> LowerResult<LoweredTerm<'m>> {
        let name = &function.name.text;
        let parameters = function.parameters.as_deref().unwrap_or_default();
        let values = self.lower_arguments(name, parameters.len(), arguments, span, scope)?;
        // Memoize: calls repeat where functions build on each other, and inlining would be exponential.
        let key = (function.name.span, inner, values);
        if let Some(known) = self.memoized_calls.get(&key) {
            return Ok(*known);
        }
        let named = parameters.iter().zip(&key.2);
        let body_scope = named.fold(inner, |outer, (parameter, value)| {
            self.bind_name(outer, &parameter.text, BoundName::Value(*value))
        });
        self.calls.push((name, span));
        let result = self.lower_expression(&function.body, body_scope);
        self.calls.pop();
        if let Ok(lowered) = result {
            self.memoized_calls.insert(key, lowered);
        }
        result
    }

    fn lower_comprehension(
        &mut self,
        comprehension: &'m Comprehension,
        span: CatSpan,
        scope: ScopeId,
    ) -> LowerResult<LoweredTerm<'m>> {
        let members = self.lower_family(comprehension, span, scope);
        let body = &comprehension.body;
        let variables = &comprehension.variables;
        let mut lower_body = |values: &mut dyn Iterator<Item = BoundName<'m>>| {
            let named = variables.iter().zip(values);
            let inner =
                named.fold(scope, |outer, (variable, value)| self.bind_name(outer, &variable.text, value));
            self.lower_expression(body, inner)
        };
        let Ok(members) = members else {
            // Mistakes in the body are reported too.
            return lower_body(&mut std::iter::repeat(BoundName::Broken)).and(Err(ErrorReported));
        };
        let mut values = Vec::with_capacity(members.len());
        for member in members {
            values.push((lower_body(&mut member.into_iter().map(BoundName::Value))?, body.span));
        }
        if values.is_empty() {
            // Check the body although the family is empty: it determines the kind of the neutral element.
            let no_class = BoundName::Value(non_recursive_term(TypedNode::Mask(0)));
            let sample = lower_body(&mut std::iter::repeat(no_class))?;
            let value = match sample.value {
                _ if comprehension.is_union => TypedNode::Zero,
                // The intersection of no members is everything.
                TypedNode::Set(_) => TypedNode::Set(self.graph.intern_node(PlanNode::Full(NodeKind::Set))),
                _ => TypedNode::Relation(self.graph.intern_node(PlanNode::Full(NodeKind::Relation))),
            };
            return Ok(non_recursive_term(value));
        }
        self.fold_operands(&values, if comprehension.is_union { &UNION } else { &INTERSECTION })
    }

    /// The members of a family: for each, the values of the comprehension's variables.
    fn lower_family(
        &mut self,
        comprehension: &'m Comprehension,
        span: CatSpan,
        scope: ScopeId,
    ) -> LowerResult<Vec<Vec<LoweredTerm<'m>>>> {
        let arity = comprehension.variables.len();
        let masks = match &comprehension.family {
            ComprehensionFamily::Listed(members) => {
                let mut values = Vec::with_capacity(members.len());
                for (member, member_span) in members {
                    if member.len() != arity {
                        let problem = CatProblem::WrongMemberSize { expected: arity, found: member.len() };
                        return Err(self.report_problem(problem, *member_span));
                    }
                    let lowered: LowerResult<Vec<_>> =
                        member.iter().map(|value| self.lower_expression(value, scope)).collect();
                    values.push(lowered?);
                }
                return Ok(values);
            }
            ComprehensionFamily::Named(name) => match self.lookup_binding(&name.text, scope) {
                Some(BoundName::Value(LoweredTerm { value: TypedNode::Mask(mask), .. })) => {
                    single_class_masks(mask)
                }
                Some(BoundName::Broken) => return Err(ErrorReported),
                None if name.text == FAMILIES[0] => self.families.masks.clone(),
                None if name.text == FAMILIES[1] => single_class_masks(self.families.all_classes()),
                _ => {
                    return Err(
                        self.report_problem(CatProblem::NotAFamily { name: name.text.clone() }, name.span)
                    );
                }
            },
        };
        if arity != 1 {
            return Err(self.report_problem(CatProblem::WrongMemberSize { expected: arity, found: 1 }, span));
        }
        Ok(masks.into_iter().map(|mask| vec![non_recursive_term(TypedNode::Mask(mask))]).collect())
    }
}

fn non_recursive_term<'m>(value: TypedNode) -> LoweredTerm<'m> {
    LoweredTerm { value, recursive: None }
}

/// Splits a mask into one single-class mask per class.
fn single_class_masks(mask: u8) -> Vec<u8> {
    (0..8).map(|class| 1 << class).filter(|class| mask & class != 0).collect()
}

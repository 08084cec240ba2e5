//! Name resolution, and suggestions for misspelled names.

use super::{BoundName, CatCompiler, ErrorReported, ScopeId};
use crate::cat::ast::{Bindings, CatDefinition, CatExpression, ComprehensionFamily, ExpressionKind};
use crate::cat::error::CatProblem;
use crate::cat::prelude;
use crate::cat::source::CatSpan;
use crate::cat::suggestions::similar_word;
use crate::cat::vocabulary::VocabularyEntry;

/// The entity that a name resolves to.
pub(super) enum NameMeaning<'m> {
    Bound(BoundName<'m>),
    Builtin(Builtin),
    Base(VocabularyEntry),
}

/// Names that are available to every model.
#[derive(Clone, Copy)]
pub(super) enum Builtin {
    Identity,
    Domain,
    Range,
    Immediate,
    ToIdentity,
}

const BUILTINS: &[(&str, Builtin)] = &[
    ("id", Builtin::Identity),
    ("domain", Builtin::Domain),
    ("range", Builtin::Range),
    ("imm", Builtin::Immediate),
    ("toid", Builtin::ToIdentity),
];

/// The families that the engine gives.
pub(super) const FAMILIES: [&str; 2] = ["masks", "classes"];

/// The names bound inside an expression: innermost last.
type LocalNames<'m> = Vec<&'m str>;

impl<'m> CatCompiler<'m> {
    pub(super) fn lookup_binding(&self, name: &str, mut scope: ScopeId) -> Option<BoundName<'m>> {
        while let Some(entry) = scope.and_then(|index| self.scopes.get(index)) {
            if entry.name == name {
                return Some(entry.bound);
            }
            scope = entry.outer;
        }
        None
    }

    pub(super) fn resolve_name(&mut self, name: &str, scope: ScopeId) -> Option<NameMeaning<'m>> {
        if let Some(bound) = self.lookup_binding(name, scope) {
            return Some(NameMeaning::Bound(bound));
        }
        if let Some((_, builtin)) = BUILTINS.iter().find(|(known, _)| *known == name) {
            return Some(NameMeaning::Builtin(*builtin));
        }
        if let Some(entry) = self.vocabulary.find_entry(name) {
            return Some(NameMeaning::Base(entry.clone()));
        }
        let derived = prelude::find_binding(name)?;
        Some(NameMeaning::Bound(if derived.parameters.is_some() {
            BoundName::Function(derived, None)
        } else {
            self.lower_expression(&derived.body, None).map_or(BoundName::Broken, BoundName::Value)
        }))
    }

    fn is_known(&self, name: &str, scope: ScopeId) -> bool {
        self.lookup_binding(name, scope).is_some()
            || BUILTINS.iter().any(|(known, _)| *known == name)
            || self.vocabulary.find_entry(name).is_some()
            || prelude::find_binding(name).is_some()
    }

    pub(super) fn report_unknown_name(&mut self, name: &str, span: CatSpan, scope: ScopeId) -> ErrorReported {
        let name = name.to_owned();
        if FAMILIES.contains(&name.as_str()) {
            return self.report_problem(CatProblem::FamilyAsValue { name }, span);
        }
        let similar = self.suggest_similar_name(&name, scope);
        self.report_problem(CatProblem::UnknownName { name, similar }, span)
    }

    /// Returns the known name with the most similar spelling, if one is close.
    fn suggest_similar_name(&self, name: &str, mut scope: ScopeId) -> Option<String> {
        let mut candidates: Vec<&str> = self.vocabulary.entry_names().collect();
        while let Some(entry) = scope.and_then(|index| self.scopes.get(index)) {
            candidates.push(entry.name);
            scope = entry.outer;
        }
        for name in prelude::iter_names().chain(BUILTINS.iter().map(|(name, _)| *name)) {
            candidates.push(name);
        }
        similar_word(name, candidates).map(str::to_owned)
    }

    /// Checks the parameters of a function and the names in its body, which is not lowered before it is called.
    pub(super) fn check_function(&mut self, function: &'m CatDefinition, scope: ScopeId) {
        let parameters = function.parameters.as_deref().unwrap_or_default();
        for (index, parameter) in parameters.iter().enumerate() {
            if let Some(first) = parameters[..index].iter().find(|other| other.text == parameter.text) {
                let problem = CatProblem::DuplicateName { name: parameter.text.clone() };
                self.report_with_help(problem, parameter.span, vec![("first here".into(), first.span)]);
            }
        }
        let mut local: LocalNames<'m> = parameters.iter().map(|parameter| parameter.text.as_str()).collect();
        self.check_names(&function.body, function, scope, &mut local);
    }

    fn check_name(
        &mut self,
        name: &str,
        span: CatSpan,
        function: &'m CatDefinition,
        scope: ScopeId,
        local: &LocalNames<'m>,
    ) {
        if local.contains(&name) || self.is_known(name, scope) {
            return;
        }
        if name == function.name.text {
            self.report_problem(CatProblem::RecursiveFunction { name: name.to_owned() }, span);
        } else {
            self.report_unknown_name(name, span, scope);
        }
    }

    fn check_names(
        &mut self,
        expression: &'m CatExpression,
        function: &'m CatDefinition,
        scope: ScopeId,
        local: &mut LocalNames<'m>,
    ) {
        let outer = local.len();
        match &expression.kind {
            ExpressionKind::Zero | ExpressionKind::Universe => {}
            ExpressionKind::Name(name) => self.check_name(name, expression.span, function, scope, local),
            ExpressionKind::Union(list)
            | ExpressionKind::Intersection(list)
            | ExpressionKind::Difference(list)
            | ExpressionKind::Sequence(list) => {
                list.iter().for_each(|operand| self.check_names(operand, function, scope, local));
            }
            ExpressionKind::Product(pair) => {
                pair.iter().for_each(|operand| self.check_names(operand, function, scope, local));
            }
            // The first alternative may contain unknown names; then the second one applies.
            ExpressionKind::Try(pair) => self.check_names(&pair[1], function, scope, local),
            ExpressionKind::Complement(inner)
            | ExpressionKind::Inverse(inner)
            | ExpressionKind::Plus(inner)
            | ExpressionKind::Star(inner)
            | ExpressionKind::Optional(inner)
            | ExpressionKind::LinearOrder(inner)
            | ExpressionKind::Identity(inner) => self.check_names(inner, function, scope, local),
            ExpressionKind::Call(name, arguments) => {
                self.check_name(&name.text, name.span, function, scope, local);
                arguments.iter().for_each(|argument| self.check_names(argument, function, scope, local));
            }
            ExpressionKind::Let(bindings, body) => {
                self.check_bindings(bindings, function, scope, local);
                self.check_names(body, function, scope, local);
            }
            ExpressionKind::Comprehension(comprehension) => {
                match &comprehension.family {
                    ComprehensionFamily::Named(name) if FAMILIES.contains(&name.text.as_str()) => {}
                    ComprehensionFamily::Named(name) => {
                        self.check_name(&name.text, name.span, function, scope, local)
                    }
                    ComprehensionFamily::Listed(members) => {
                        for inner in members.iter().flat_map(|(member, _)| member) {
                            self.check_names(inner, function, scope, local);
                        }
                    }
                }
                local.extend(comprehension.variables.iter().map(|variable| variable.text.as_str()));
                self.check_names(&comprehension.body, function, scope, local);
            }
        }
        local.truncate(outer);
    }

    /// Checks the right-hand sides of an inner `let` and leaves its names in `local`.
    fn check_bindings(
        &mut self,
        bindings: &'m Bindings,
        function: &'m CatDefinition,
        scope: ScopeId,
        local: &mut LocalNames<'m>,
    ) {
        let names = || bindings.bindings.iter().map(|binding| binding.name.text.as_str());
        if bindings.is_recursive {
            local.extend(names());
        }
        for binding in &bindings.bindings {
            let before = local.len();
            local.extend(binding.parameters.iter().flatten().map(|parameter| parameter.text.as_str()));
            self.check_names(&binding.body, function, scope, local);
            local.truncate(before);
        }
        if !bindings.is_recursive {
            local.extend(names());
        }
    }
}

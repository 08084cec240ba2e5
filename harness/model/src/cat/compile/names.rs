//! Name resolution, and suggestions for misspelled names.

use super::{BoundName, CatCompiler, ErrorReported, ScopeId};
use crate::cat::ast::{CatDefinition, Identifier};
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

    pub(super) fn report_unknown_name(&mut self, name: &str, span: CatSpan, scope: ScopeId) -> ErrorReported {
        let name = name.to_owned();
        if FAMILIES.contains(&name.as_str()) {
            return self.report_problem(CatProblem::FamilyAsValue { name }, span);
        }
        if self.checked_functions.contains(&name.as_str()) {
            return self.report_problem(CatProblem::RecursiveFunction { name }, span);
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

    /// Reports the names that a list contains twice, and returns true if there are any.
    pub(super) fn report_duplicates<'i>(&mut self, names: impl Iterator<Item = &'i Identifier>) -> bool {
        let mut earlier: Vec<&Identifier> = Vec::new();
        let mut found = false;
        for name in names {
            if let Some(first) = earlier.iter().find(|other| other.text == name.text) {
                let problem = CatProblem::DuplicateName { name: name.text.clone() };
                self.report_with_help(problem, name.span, vec![("first here".into(), first.span)]);
                found = true;
            }
            earlier.push(name);
        }
        found
    }

    /// Reports mistakes in the parameters and unknown names in the body of a function. All other mistakes in the body
    /// are reported where it is called, because a function of a library may be unused.
    pub(super) fn check_function(&mut self, function: &'m CatDefinition, scope: ScopeId) {
        let parameters = function.parameters.as_deref().unwrap_or_default();
        self.report_duplicates(parameters.iter());
        let (errors, labels) = (self.errors.len(), self.labels.len());
        // Nothing is reported about the uses of the parameters.
        let inner = parameters
            .iter()
            .fold(scope, |outer, parameter| self.bind_name(outer, &parameter.text, BoundName::Broken));
        self.checked_functions.push(&function.name.text);
        let lowered = self.lower_expression(&function.body, inner);
        self.checked_functions.pop();
        self.labels.truncate(labels);
        if lowered.is_err() {
            let body = function.body.span;
            let found = self.errors.split_off(errors);
            self.errors.extend(found.into_iter().filter(|error| match error.problem {
                CatProblem::ExpansionTooLarge { .. } | CatProblem::NestedTooDeep { .. } => true,
                CatProblem::UnknownName { .. }
                | CatProblem::RecursiveFunction { .. }
                | CatProblem::FamilyAsValue { .. } => {
                    let range = body.offset..body.end_offset();
                    error.span.source == body.source && range.contains(&error.span.offset)
                }
                _ => false,
            }));
        }
    }
}

//! Predefined relations that every model may use.

use super::ast::{CatDefinition, CatModel, Procedure, StatementKind};
use super::load::parse_model_from;
use super::source::{SourceId, SourceText};
use std::sync::LazyLock;

/// The number of the prelude's text: past any text that a model can have.
const PRELUDE_SOURCE: SourceId = SourceId(u16::MAX);

static PRELUDE: LazyLock<Option<CatModel>> = LazyLock::new(|| {
    parse_model_from(PRELUDE_SOURCE, "prelude.cat", include_str!("prelude.cat"), &|_| None).ok()
});

fn iter_bindings() -> impl Iterator<Item = &'static CatDefinition> {
    PRELUDE.iter().flat_map(|model| &model.statements).flat_map(|statement| match &statement.kind {
        StatementKind::Let(bindings) => bindings.bindings.as_slice(),
        StatementKind::Axiom { .. } | StatementKind::Procedure(_) | StatementKind::Call { .. } => &[],
    })
}

pub(crate) fn find_binding(name: &str) -> Option<&'static CatDefinition> {
    iter_bindings().find(|binding| binding.name.text == name)
}

/// The procedures that every model may call.
pub(crate) fn iter_procedures() -> impl Iterator<Item = &'static Procedure> {
    PRELUDE.iter().flat_map(|model| &model.statements).filter_map(|statement| match &statement.kind {
        StatementKind::Procedure(procedure) => Some(procedure),
        _ => None,
    })
}

/// The names that it defines.
pub(crate) fn iter_names() -> impl Iterator<Item = &'static str> {
    iter_bindings().map(|binding| binding.name.text.as_str())
}

/// The prelude's text, for messages.
pub(crate) fn find_source(id: SourceId) -> Option<&'static SourceText> {
    PRELUDE.as_ref().filter(|_| id == PRELUDE_SOURCE).and_then(|model| model.sources.first())
}

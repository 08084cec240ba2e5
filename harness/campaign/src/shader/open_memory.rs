//! The memory that other programs access, as `--open` names it.

use std::collections::BTreeSet;

use analysis::placed_refusal_text;
use entry_point::AnalysisOptions;
use entry_point::open_memory::{OpenPart, OpenParts};
use spirv_reader::SpirvModule;
use spirv_reader::annotations::{Formula, FormulaTerm};

use crate::Failure;

/// A descriptor, or a scalar of its buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTerm {
    text: String,
    at: (u32, u32),
    /// The scalar; `None` for the whole buffer.
    element: Option<FormulaTerm>,
}

impl OpenTerm {
    /// Parses `SET.BINDING` or the path of a scalar, such as `SET.BINDING[INDEX]`; `None` if malformed.
    pub fn parse(text: &str) -> Option<OpenTerm> {
        let new_term = |at, element| OpenTerm { text: text.to_owned(), at, element };
        if let Some(at) = entry_point::inputs::parse_binding(text) {
            return Some(new_term(at, None));
        }
        // The parser of claims needs a comparison.
        let Ok(Formula::Compare(term @ FormulaTerm::Element(..), ..)) =
            spirv_reader::annotations::parse_formula(&format!("{text} == 0"))
        else {
            return None;
        };
        let FormulaTerm::Element(name, _) = &term else { return None };
        Some(new_term(entry_point::inputs::parse_binding(name)?, Some(term)))
    }

    /// Returns the term as its author wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The memory that other programs access; `None` for all.
pub type OpenTerms = Option<Vec<OpenTerm>>;

/// Returns the parts of a module's buffers that terms name.
///
/// # Errors
/// If a descriptor or an element does not exist.
pub fn resolve_open_terms(
    file: &str,
    module: &SpirvModule,
    options: &AnalysisOptions,
    terms: &OpenTerms,
) -> Result<OpenParts, Failure> {
    let Some(terms) = terms else { return Ok(None) };
    let known = module.descriptors();
    let mut parts = BTreeSet::new();
    for term in terms {
        let variable = module.variable_at(term.at).map(|id| module.decorations_of(id));
        let bound =
            variable.and_then(|decorations| Some((decorations.set.unwrap_or(0), decorations.binding?)));
        let Some((set, binding)) = bound else {
            let known: Vec<String> = known.iter().map(|(set, binding)| format!("{set}.{binding}")).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Failure::input_message(format!(
                "--open {}: {file} has no such descriptor; expected one of {known}: pass `--open all` for every one",
                term.text
            )));
        };
        parts.insert(match &term.element {
            None => OpenPart { set, binding, scalar: None },
            Some(element) => entry_point::question::resolve_open_part(module, options, element)
                .map_err(|refusal| Failure::input_message(placed_refusal_text(file, &refusal)))?,
        });
    }
    Ok(Some(parts))
}
